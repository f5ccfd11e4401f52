"""NumPy's functions of tensors: ours where no axis is meant, else refused with what to write."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.frontend.core.suggestions import INSTEAD, public
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


def test_no_namesake_is_listed_as_missing() -> None:
    """A function of ours is named by itself, unless NumPy's of that name is another."""
    assert set(INSTEAD) & set(public()) == {
        *("dot", "einsum", "expand_dims", "pad", "ravel", "stack", "transpose", "unstack")
    }
    assert set(public()) >= AXISLESS
