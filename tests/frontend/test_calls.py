"""Calls that do not fit a signature are refused in words, by every public function."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

x = gc.tensor("x", {"row": 2, "col": 3})


def test_a_long_range_takes_no_memory_before_it_is_needed() -> None:
    assert gc.arange(2**40, dim="t").shape == (2**40,)
    assert gc.arange(1, 2**40, 2, dim="t").shape == (2**39,)


def test_an_error_inside_of_a_function_of_the_user_passes_unchanged() -> None:
    def body(carry: gc.Tensor, other: gc.Tensor) -> Any:
        return carry + len(3)  # type: ignore[arg-type]

    for call in (
        lambda: gc.fori_loop(0, 3, lambda i, carry: body(carry, i), 0.0),
        lambda: gc.scan(body, 0.0, x, "row"),
    ):
        with pytest.raises(TypeError, match="has no len") as e:
            call()
        assert not isinstance(e.value, gc.GraphError)


def test_functions_stay_what_they_were() -> None:
    assert list(inspect.signature(gc.sort).parameters) == ["x", "dim", "descending"]
    assert gc.sort.__doc__ == inspect.unwrap(gc.sort).__doc__
    assert gc.Tensor.sort is gc.sort
    assert pickle.loads(pickle.dumps(gc.sort)) is gc.sort


X = gc.tensor("x", {"a": 4, "b": 6})
UNORDERED: dict[str, Callable[[Any], gc.Tensor]] = {
    "sum": lambda dims: X.sum(dims),
    "dot": lambda dims: gc.dot(X, X, dim=dims),
    "flip": lambda dims: gc.flip(X, dims),
    "fftn": lambda dims: abs(gc.fft.fftn(X, dims)),
    "fftshift": lambda dims: gc.fft.fftshift(X, dims),
    "ifftshift": lambda dims: gc.fft.ifftshift(X, dims),
    "convolve": lambda dims: gc.signal.convolve(X, gc.ones({"a": 2, "b": 2}), dim=dims),
    "exclude": lambda dims: gc.broadcast_like(X, gc.ones({"a": 2, "b": 2, "c": 3}), exclude=dims),
    "per": lambda dims: gc.grad(X * X, X, per=dims),
}


@pytest.mark.parametrize("name", UNORDERED)
def test_dims_whose_order_means_nothing_may_be_a_set(name: str) -> None:
    """As in `set(x.dims) - {"c"}`."""
    call, x = UNORDERED[name], np.arange(24.0).reshape(4, 6)
    found, wanted = gc.compile([X], [call({"b", "a"}), call(("a", "b"))])(x)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


NEW_DIMS = {
    *("arange", "linspace", "logspace", "geomspace", "fftfreq", "rfftfreq", "concat"),
    *("hann", "hamming", "blackman", "bartlett"),
}
"""Functions whose `dim` names a new dim."""


def test_no_function_asks_for_the_dim_of_a_vector():
    for module in (gc, gc.fft, gc.linalg, gc.nn, gc.signal, gc.special):
        for name in dir(module):
            function = getattr(module, name)
            dim = inspect.isfunction(function) and inspect.signature(function).parameters.get("dim")
            if dim and name not in NEW_DIMS:
                assert dim.default is not dim.empty, f"{name} needs dim="


OF_VECTORS = {
    **dict.fromkeys(("argsort", "bfill", "cumulative_prod", "cumulative_sum", "diag", "diff"), ""),
    **dict.fromkeys(("ffill", "gradient", "rank", "sort", "trapezoid", "unbind", "flip"), ""),
    **dict.fromkeys(("cumulative_trapezoid", "cumsum", "median", "dropna"), ""),
    **dict.fromkeys(("repeat", "top_k"), "n"),
    **{"cross": "x", "interp": "xx", "searchsorted": "x", "take": "i", "take_along": "i"},
    **dict.fromkeys(("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.hfft", "fft.ihfft"), ""),
    **{"linalg.solve_tridiagonal": "xxx", "nn.cross_entropy": "j"},
}
"""More operands of functions of a vector: vectors `x`, a size `n`, positions `i` and one `j`."""


@pytest.mark.parametrize("name", OF_VECTORS)
def test_a_vector_needs_no_dim_and_a_matrix_does(name):
    *module, short = name.split(".")
    function = getattr(getattr(gc, module[0]) if module else gc, short)

    def operands(sizes):
        made = {"x": gc.tensor("x", sizes), "n": 2, "i": gc.constant([1, 0], "pick"),
                "j": gc.constant(1)}  # fmt: skip
        return [made[letter] for letter in "x" + OF_VECTORS[name]]

    vectors = operands({"t": 3})
    assert gc.tree.leaves(function(*vectors)) == gc.tree.leaves(function(*vectors, dim="t"))
    if name not in ("flip", "cumsum", "median"):  # of all dims
        with pytest.raises(gc.GraphTypeError, match="dim is missing, and f64") as caught:
            function(*operands({"row": 3, "col": 3}))
        assert "name one: dim='col'" in str(caught.value)


def test_loops_and_groups_of_vectors_need_no_dim():
    x = gc.tensor("x", {"t": 4})
    add = lambda total, part: (total + part, total)
    assert gc.scan(add, 0.0, x) == gc.scan(add, 0.0, x, "t")
    swap = lambda carry, parts: (carry + parts[0], parts[1])
    assert gc.scan(swap, 0.0, (x, -x)) == gc.scan(swap, 0.0, (x, -x), "t")
    assert gc.scan(add, 0.0, gc.tensor("m", {"time": 2, "t": 4}))[1].dims == ("time", "t")
    assert gc.map(gc.exp, x) is gc.map(gc.exp, x, "t")
    with pytest.raises(gc.GraphValueError, match="scan: xs has no dim 'time'"):
        gc.scan(lambda c, pair: (c, pair), 0.0, (x, gc.tensor("y", {"s": 4})))
    ids = [0, 1, 1, 0]
    for name in ("sum", "prod", "mean", "max", "min"):
        reduce = getattr(gc, f"segment_{name}")
        assert reduce(x, ids, 2) is reduce(x, ids, 2, "t")
        assert getattr(x.groupby(ids, 2), name)() is getattr(x.groupby(ids, 2, "t"), name)()
    named = x.groupby(list("abba")).mean()
    assert named is x.groupby(list("abba"), dim="t").mean()
    assert named.dims == ("t",)


def test_points_of_lists_have_no_dim():
    assert gc.interp(0.5, [0, 1], [2.0, 4.0]).eval() == 3
    assert gc.searchsorted([1, 2, 3], 2.5).eval() == 2
    x = gc.tensor("x", {"t": 4})
    assert x.roll(1) is x.roll(t=1)
    assert x.shift(-2) is x.shift(t=-2)
