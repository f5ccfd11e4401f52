"""Every public function in both targets, with derivatives: at all sizes, in memory of any form."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.ir.sizes import evaluate
from tests import guards
from tests.operations import CASES, convolution, linalg, signal
from tests.operations.case import DEFAULT, Case
from tests.ops.test_ops import declare, draw
from tests.shares import shared
from tests.targets.comparing import Both, Verdict, attempt, same
from tests.targets.drawing import asked, forms

pytestmark = pytest.mark.skipif(
    llvm_kernels.unavailable() is not None, reason=str(llvm_kernels.unavailable())
)

SIZES = (0, 1, 7, 8, 9, 17)
SHORTLY = ("exp", "sum all", "dot", "take")
"""Functions that the default tests run."""
LONG = 1030
CONVOLVING = {name for name in signal.CASES if "convolve" in name or "correlate" in name}
COSTLY = {*linalg.CASES, *convolution.CASES, *CONVOLVING}
"""Functions whose oracle is slow: they run up to size 9."""


def lengths(name: str, case: Case) -> Iterator[dict[str, int]]:
    """All dims alike, each dim of another size, and one dim that is long."""
    sizes = SIZES[:-1] if name in COSTLY else SIZES
    for n, size in enumerate(sizes):
        yield dict.fromkeys(DEFAULT, size)
        yield {dim: sizes[(n + k) % len(sizes)] for k, dim in enumerate(DEFAULT, 1)}
    kept = {*case.fixed, "one"}
    if name not in COSTLY:
        for dim in sorted({dim for given in case.inputs for dim in given.dims.split()} - kept):
            yield DEFAULT | {dim: LONG}


def compiled(case: Case) -> tuple[Both, list[gc.Tensor]]:
    """A case with derivatives of both modes, and the inputs that come with these."""
    given = {x.name: x for x in declare(case)}
    y = case.ours(*given.values())
    if y.dtype.kind != "f":
        return Both(gc.compile([*given.values()], y)), []
    return asked(y, given)


def check(name: str) -> list[Verdict]:
    """Machine code against NumPy calls, and against itself for arguments of other forms."""
    case, rng, verdicts = CASES[name], np.random.default_rng(0), []
    both, more = compiled(case)
    for sizes in lengths(name, case):
        known = sizes | {dim: DEFAULT[dim] for dim in (*case.fixed, "one")}
        values = [x.values for x in draw(case, sizes)]
        for x in more:
            shape = [evaluate(size, known) for size in x.shape]
            values.append(np.asarray(rng.normal(size=shape)).astype(x.dtype))
        for byte in guards.RUBBISH:
            with guards.rubbish(byte):
                verdicts.append(both.compare(values))
                assert verdicts[-1].kind != "differs", f"{sizes}: {verdicts[-1].reason}"
                wanted = attempt(both.native, values)
        before = [x.copy() for x in values]
        others = [forms(x) for x in values]
        for form in others[0] if others else ():
            found = attempt(both.native, [other[form] for other in others])
            if isinstance(wanted, str):
                assert found == wanted, f"{form}, {sizes}"
            else:
                alike = all(map(same, found, wanted))
                if not both.whole:  # rounding of NumPy's depends on how operands lie
                    given = [other[form] for other in others]
                    alike = alike or both.compare(given).kind != "differs"
                assert alike, f"{form}, {sizes}"
            for x, other in zip(before, others, strict=True):
                np.testing.assert_array_equal(np.asarray(other[form], x.dtype), x)
    return verdicts


@pytest.mark.parametrize("name", [*SHORTLY, *shared([x for x in CASES if x not in SHORTLY], 5)])
def test_at_every_size(name: str) -> None:
    with guards.guarded():
        check(name)
        assert guards.found() == []
