"""Linear algebra of integers and bools, of nan and infinities, of DataArrays, and unchecked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray

import graphcore as gc
from graphcore import linalg as L
from graphcore.ir.dtypes import FLOAT
from graphcore.ir.op import Op
from graphcore.ir.types import TensorType
from graphcore.ops import leaf, linalg
from graphcore.ops.named import matrices
from tests.linalg.linalg_table import PQ, TABLE
from tests.linalg.test_linalg import close, meant

BATCH = ("b", *PQ)


def drawn(name: str, batch: int) -> tuple[gc.Tensor, np.ndarray]:
    variant = TABLE[name]
    values = variant.draw(np.random.default_rng(len(name)), (batch,), "float64")
    return gc.tensor("x", dict(zip(BATCH, (None, *variant.shape), strict=True))), values


@pytest.mark.parametrize("name", [name for name in TABLE if "of rank 2" not in name])
def test_integers_count_as_floats(name: str) -> None:
    x, values = drawn(name, 2)
    whole = gc.tensor("x", x.sizes, dtype="int64")
    values = np.round(4 * values)
    y = TABLE[name].ours(whole)
    found = gc.compile([whole], y)(values.astype("int64"))
    close(found, gc.compile([x], TABLE[name].ours(x))(values), 1e-12)
    assert found.dtype == y.dtype


OF_BOOL: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    **{function.__name__: function for function in (L.cholesky, L.inv, L.det, L.expm, L.svdvals)},
    "solve": lambda x: L.solve(x, x.isel(col=0)),
    "qr": lambda x: L.qr(x).r,
    "norm": L.norm,
    "pinv": L.pinv,
}


@pytest.mark.parametrize("name", OF_BOOL)
def test_bools_count_as_floats(name: str) -> None:
    x, truth = (gc.tensor("x", {"row": 3, "col": 3}, dtype=dtype) for dtype in ("float64", "bool"))
    values = np.eye(3, dtype=bool)
    found = gc.compile([truth], OF_BOOL[name](truth))(values)
    assert found.dtype == "float64"
    close(found, gc.compile([x], OF_BOOL[name](x))(values.astype("float64")), 1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", TABLE)
def test_what_is_not_finite_stays_in_its_matrix(name: str, bad: float) -> None:
    """The others of a batch are what they are without it; it is no error."""
    x, values = drawn(name, 3)
    y = TABLE[name].ours(x).transpose("b", *TABLE[name].dims)
    f = gc.compile([x], y)
    given = values.copy()
    given[1, 0, 0] = given[1, 1, 0] = given[1, -1, -1] = bad
    found = f(given)
    close(found[[0, 2]], f(values[[0, 2]]), 1e-12)
    if np.isnan(bad) and y.dtype.kind in "fc" and name not in ("matrix_power 0", "slogdet sign"):
        assert np.isnan(found[1]).any()


@pytest.mark.parametrize("name", TABLE)
def test_results_as_dataarrays(name: str) -> None:
    """Batch keeps its coordinates, also where arguments come with other orders of dims."""
    x, values = drawn(name, 2)
    coords = {"b": ["u", "v"], **dict(zip(PQ, map(np.arange, values.shape[1:]), strict=True))}
    given = xarray.DataArray(values, coords, BATCH).transpose("q", "b", "p")
    y = TABLE[name].ours(x)
    found = gc.compile([x], y, returns="xarray")(given)
    assert found.dims == y.dims
    close(found.transpose("b", *TABLE[name].dims).values, meant(TABLE[name], values), 1e-7)
    if name != "matrix_power 0":
        assert list(found.coords["b"].values) == ["u", "v"]


ROWS, COLS = gc.constant([1.0, 2.0], "p"), gc.constant([1.0, 2.0], "q")
CHECKED: dict[str, Callable[[gc.Tensor, bool], gc.Tensor]] = {
    "cholesky": lambda x, check: L.cholesky(x, PQ, check=check),
    "cholesky upper": lambda x, check: L.cholesky(x, PQ, upper=True, check=check),
    "solve": lambda x, check: L.solve(x, ROWS, PQ, check=check),
    "solve transposed": lambda x, check: L.solve(x, COLS, ("q", "p"), check=check),
    "solve_triangular": lambda x, check: L.solve_triangular(x, ROWS, PQ, check=check),
    "inv": lambda x, check: L.inv(x, PQ, check=check),
}


@pytest.mark.parametrize("name", CHECKED)
def test_singular_matrices_are_errors_unless_unchecked(name: str) -> None:
    x = gc.tensor("x", {"b": None, "p": 2, "q": 2})
    batch = np.array([[[2.0, 1.0], [1.0, 3.0]], [[1.0, 1.0], [0.0, 0.0]]])
    checked, unchecked = (CHECKED[name](x, check) for check in (True, False))
    g, h = (gc.compile([x], [y, gc.grad((y * y).sum(), x)]) for y in (checked, unchecked))
    with pytest.raises(gc.GraphValueError, match=r"the matrix is [^,]*, for b=1\n.*f64\[b, "):
        g(batch)
    for found, alone in zip(h(batch), g(batch[:1]), strict=True):
        close(found[:1], alone, 1e-14)
        assert not np.isfinite(found[1]).all()


FACTORS: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "eig": lambda x: L.eig(x, PQ).vectors,
    "eigh": lambda x: L.eigh(x, PQ).vectors,
    "svd": lambda x: L.svd(x, PQ)[0],
    "qr": lambda x: L.qr(x, PQ).q,
    "lu": lambda x: L.lu(x, PQ).lower,
    "expm": lambda x: L.expm(x, PQ),
}


@pytest.mark.parametrize("name", FACTORS)
def test_empty_matrices_have_derivatives(name: str) -> None:
    x = gc.tensor("x", {"b": None, "p": "n", "q": "n"})
    y = gc.abs(FACTORS[name](x)).sum()
    found, slope = gc.compile([x], [y, gc.grad(y, x)])(np.ones((2, 0, 0)))
    assert found == 0
    assert slope.shape == (2, 0, 0)


@pytest.mark.parametrize("op", [*linalg.SIGNATURES, *matrices.PLAIN], ids=str)
def test_attributes_that_an_op_does_not_declare_are_refused(op: Op) -> None:
    """`lowr=True` was taken, and the other triangle read."""
    declared = linalg.SIGNATURES[matrices.PLAIN.get(op, op)].attrs
    attrs = dict.fromkeys([*declared, *(["dims", "new"] if op in matrices.PLAIN else [])], ())
    cure = ", ".join(declared) or "leave it out"
    with pytest.raises(gc.GraphTypeError, match=f"no attribute 'lowr'(.|\n)*cure: .*{cure}"):
        op(leaf.param("x", TensorType(FLOAT, (3, 3))), **attrs, lowr=True)
