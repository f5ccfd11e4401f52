"""Special functions that machine code calls in SciPy: the values are those of NumPy calls."""

from __future__ import annotations

import numpy as np
import pytest

from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import capsules
from graphcore.backends.llvm_kernels.elementary import FUNCTIONS
from graphcore.backends.llvm_kernels.maths import special
from graphcore.ir.graph import Graph
from graphcore.ops import special as ops

from .native import Both, N, given, needs_machine_code

pytestmark = needs_machine_code

THEIRS = [name for name in special.FUNCTIONS if FUNCTIONS[name] is special.FUNCTIONS[name]]


@pytest.mark.parametrize("name", THEIRS)
def test_values_are_those_of_the_numpy_calls(name: str) -> None:
    """Those of float32 are computed in float64."""
    rng = np.random.default_rng(0)
    op, several = getattr(ops, name), special.ARITY[name]
    double, single = (
        Both([op(*[given(f"x{i}", N, dtype=dtype) for i in range(several)])])
        for dtype in ("float64", "float32")
    )
    for n in (0, 1, 9, 60):
        arrays = [rng.normal(size=n).astype(np.float32).astype(float) for _ in range(several)]
        for x in arrays:
            x[::7] = np.abs(x[::7]) / 4
            x[3::11] = rng.choice([0, 1, -1, np.nan, np.inf, 0.5, 2, 30])
            x[5::9] = x[4::9][: len(x[5::9])]
        if name == "expn":
            arrays[0] = np.floor(np.abs(arrays[0]))
        (wanted,) = double.agree(arrays, (n, 0))
        (found,) = single.native([x.astype(np.float32) for x in arrays], (n, 0))
        np.testing.assert_array_equal(found, wanted.astype(np.float32))


def test_what_scipy_does_not_offer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    y = ops.gammaln(given("x", N))
    graph = Graph((y.inputs[0],), (y,))
    assert not llvm_kernels.refused(graph)
    monkeypatch.setattr(capsules, "special", lambda name, arity: None)
    assert llvm_kernels.refused(graph)


def test_signatures_are_checked() -> None:
    assert capsules.special("gammaln", 1)
    assert capsules.special("gammaln", 2) is None
    assert capsules.special("nothing", 1) is None
