"""NumPy's functions of tensors: ours where no axis is meant, else refused with what to write."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.frontend.core.instead import INSTEAD, public
from graphcore.frontend.numpy_functions import AXISLESS

X = gc.tensor("x", {"row": 3, "col": 4})
Z = gc.tensor("z", {"row": 3}, dtype="complex128")
VALUES = np.random.default_rng(0).normal(size=(3, 4))

MORE = {"where", "select", "full_like", "isclose", "isin", "quantile"}
"""Functions that take more than one operand."""


def fix(x: Any) -> Any:
    """np.fix, which NumPy 2.5 deprecates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return np.fix(x)


CALLS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in sorted(AXISLESS - MORE)},
    "fix": fix,
    "where": lambda x: np.where(x > 0, x, 0.5),
    "select": lambda x: np.select([x > 1, x > 0], [x, -x], default=0.25),
    "full_like": lambda x: np.full_like(x, 2.5),
    "full_like dtype": lambda x: np.full_like(x, 2.5, dtype="float32"),
    "zeros_like dtype": lambda x: np.zeros_like(x, dtype="int64"),
    "isclose": lambda x: np.isclose(x, 0.1, atol=0.5),
    "isin": lambda x: np.isin(x, [1.0, 2.0]),
    "quantile": lambda x: np.quantile(x, 0.3),
    "clip": lambda x: np.clip(x, -0.5, 0.5),
    "clip keywords": lambda x: np.clip(x, a_max=0.5, a_min=None),
    "clip new keywords": lambda x: np.clip(x, max=0.5),
    "round": lambda x: np.round(x, 1),
    "around": lambda x: np.around(x, decimals=2),
    "amax": np.amax,
    "sum axis None": lambda x: np.sum(x, axis=None),
    "std ddof": lambda x: np.std(x, ddof=1),
    "angle deg": lambda x: np.angle(x, deg=True),
    "nan_to_num": lambda x: np.nan_to_num(np.log(x), nan=2.0),
    "divmod": lambda x: np.divmod(x, 0.3)[1],
    "float32 scalar": lambda x: np.float32(2) * x,
    "scalar array": lambda x: np.asarray(2.0) / x,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_function_without_an_axis_is_ours(name: str) -> None:
    function = CALLS[name]
    y = function(X)
    assert isinstance(y, gc.Tensor)
    with np.errstate(all="ignore"):
        result, wanted = gc.compile([X], y)(VALUES), function(VALUES)
    assert result.dtype == wanted.dtype
    np.testing.assert_allclose(result, wanted, rtol=1e-12)


def test_functions_of_complex_values() -> None:
    for function in (np.real, np.imag, np.angle, np.iscomplex):
        assert function(Z) is getattr(gc, function.__name__)(Z)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: np.sum(X, axis=1), "numpy.sum: takes no axis .*gc.sum(x, dim='col')"),
    (lambda: np.sum(X, 0), "gc.sum(x, dim='row')"),
    (lambda: np.median(X, axis=-2), "gc.median(x, dim='row')"),
    (lambda: np.var(X, axis=(0, 1)), "gc.var(x, dim='row')"),
    (lambda: np.transpose(X, (1, 0)), "x.transpose('row', ...)"),
    (lambda: np.where(X > 0), "gc.where(condition, x, y)"),
    (lambda: np.cumsum(X), "gc.cumsum(x, dim='row')"),
    (lambda: np.sort(X), "gc.sort(x, dim='row')"),
    (lambda: np.concatenate([X, X], axis=1), "gc.concat(xs, dim='col')"),
    (lambda: np.linalg.norm(X), "gc.linalg.norm(x, dims=('row', 'col'))"),
    (lambda: np.linalg.norm(X.isel(row=0)), "gc.linalg.norm(x, dims='col')"),
    (lambda: np.linalg.norm(X, axis=1), "gc.linalg.norm(x, dims='col')"),
    (lambda: np.linalg.inv(X.isel(row=0)), "gc.linalg.inv(x)"),
    (lambda: np.stack([X, X]), "gc.stack(xs, 'new')"),
    (lambda: np.reshape(X, (4, 3)), "x.stack(new=('row', ...))"),
    (lambda: np.swapaxes(X, 0, 1), "x.transpose('row', ...)"),
    (lambda: np.take_along_axis(X, X, 0), "gc.take_along(x, index, dim='row')"),
    (lambda: np.expand_dims(X, 0), "gc.expand_dims(x"),
    (lambda: np.einsum("ij->i", X), "gc.einsum('row col, col -> row', x, y)"),
    (lambda: np.dot(X, X), "gc.dot(x, y, dim='row')"),
    (lambda: np.matmul(X, X), "gc.dot(x, y, dim='row')"),
    (lambda: np.ones((2, 3)) @ X, "gc.dot(x, y, dim='row')"),
    (lambda: np.nanmean(X), "gc.mean(x, dim='row', skipna=True)"),
    (lambda: np.trace(X), "gc.trace(x, dims=('row', 'col'))"),
    (lambda: np.allclose(X, X), "gc.isclose(x, y).all()"),
    (lambda: np.shape(X), "use x.sizes"),
    (lambda: np.add.reduce(X), "numpy.add.reduce: takes axes by position .*gc.sum(x, dim='row')"),
    (lambda: np.multiply.accumulate(X), "gc.cumprod(x, dim='row')"),
    (lambda: np.add(X, X, out=np.ones(3)), "numpy.add: takes no out .*gc.add(x, y)"),
    (lambda: np.histogramdd(X), "gc.callback(np.histogramdd, result)(x)"),
    (lambda: np.polyfit(X, X, 1), "gc.linalg.polyfit(x, y, 1, dim='row')"),
    (lambda: np.packbits(X), "give arrays to np.packbits"),
    (lambda: np.ones(3) * X, "gc.constant(array, dims)"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_refusal_says_what_to_write(number: int) -> None:
    function, says = REFUSED[number]
    with pytest.raises(gc.GraphTypeError) as caught:
        function()
    message = str(caught.value).replace("\n", " ")
    assert all(part in message for part in says.split(".*")), message
    assert "test_numpy_functions.py:" in message


def test_no_namesake_is_listed_as_missing() -> None:
    """A function of ours is named by itself, unless NumPy's of that name is another."""
    assert set(INSTEAD) & set(public()) == {
        *("dot", "einsum", "pad", "ravel", "stack", "transpose", "unstack")
    }
    assert set(public()) >= AXISLESS
