"""Powers of bases that a loop does not change."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc

from .native import needs_machine_code

pytestmark = needs_machine_code

BASES = [0.0, -0.0, 1.0, -1.0, 2.5, -2.0, 1e-310, -1e-310, 1e300, np.inf, -np.inf, np.nan, 0.999]
EXPONENTS = [0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, -0.5, 1e3, -1e3, 1e300, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits_are_those_of_bases_that_change(dtype: str) -> None:
    """The logarithm of such a base is found once for all exponents."""
    x, y = gc.tensor("x", {"row": None}, dtype=dtype), gc.tensor("y", {"col": None}, dtype=dtype)
    z = gc.tensor("z", {"row": None, "col": None}, dtype=dtype)
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        bases = np.array([*BASES, *rng.uniform(0.1, 9.0, 20)]).astype(dtype)
        exponents = np.array([*EXPONENTS, *rng.standard_normal(30) * 20]).astype(dtype)
    each = np.repeat(bases[:, None], len(exponents), 1)
    once = gc.compile([x, y], x**y, native=True)
    always = gc.compile([z, y], z**y, native=True)
    assert ("log_high" in once.llvm) == (dtype == "float64")
    assert "log_high" not in always.llvm
    np.testing.assert_array_equal(once(bases, exponents), always(each, exponents))
    if dtype == "float64":
        plain = gc.compile([x, y], x**y, native=False)(bases, exponents)
        np.testing.assert_allclose(once(bases, exponents), plain, rtol=1e-14)


def test_derivatives_and_a_base_for_all() -> None:
    x, y = gc.tensor("x", {}), gc.tensor("y", {"t": None})
    p = gc.scan(lambda s, y: (s + x**y, x ** (y + s)), 0.0, y, dim="t")[0]
    outputs = [x**y, p, *gc.grad(p + (x**y).sum(), [x, y])]
    plain, native = (gc.compile([x, y], outputs, native=native) for native in (False, True))
    for n in (0, 1, 9, 40):
        values = 1.25, np.linspace(-2.0, 2.0, n)
        for a, b in zip(plain(*values), native(*values), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12)
