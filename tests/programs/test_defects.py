"""Thirteen defects of a named-axis library, each measured there; here the right answer."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest

import graphcore as gc

A = np.arange(6.0).reshape(2, 3)


def compute(y: gc.Tensor, x: gc.Tensor, value: np.ndarray[Any, Any] = A) -> Any:
    return gc.compile([x], y)(value)


def test_1_relabelling_by_swapped_names_moves_no_data() -> None:
    """There: the values came out transposed."""
    x = gc.tensor("x", {"a": 2, "b": 3})
    swapped = x.rename(a="b", b="a")
    assert swapped.dims == ("b", "a")
    np.testing.assert_array_equal(compute(swapped, x), A)
    np.testing.assert_array_equal(compute(swapped * gc.constant([1, 10], "b"), x), A * [[1], [10]])
    there_and_back = swapped.rename(a="b", b="a")
    assert there_and_back.dims == x.dims
    np.testing.assert_array_equal(compute(there_and_back, x), A)


def test_2_stack_merges_in_the_order_given() -> None:
    """There: the order was ignored."""
    x = gc.tensor("x", {"a": 2, "b": 3})
    np.testing.assert_array_equal(compute(x.stack(z=("b", "a")), x), [0, 3, 1, 4, 2, 5])
    np.testing.assert_array_equal(compute(x.stack(z=("a", "b")), x), [0, 1, 2, 3, 4, 5])


def test_3_pointwise_positions_of_lengths_1_and_3_are_refused() -> None:
    """There: the shorter was repeated, silently."""
    u = gc.tensor("u", {"a": 4, "b": 4})
    i = gc.tensor("i", {"point": "n_i"}, dtype="int64")
    j = gc.tensor("j", {"point": "n_j"}, dtype="int64")
    f = gc.compile([u, i, j], u.isel(a=i, b=j))
    np.testing.assert_array_equal(f(np.eye(4), [0, 1, 2], [0, 2, 2]), [1, 0, 1])
    with pytest.raises(gc.GraphIndexError, match=r"n_i == n_j for dim 'point'.*1 and 3"):
        f(np.eye(4), [0], [0, 1, 2])
    with pytest.raises(gc.GraphIndexError, match="'point' has sizes 1 and 3"):
        u.isel(a=("point", [0]), b=("point", [0, 1, 2]))


def test_4_a_broadcast_that_is_not_used_whole_is_still_checked() -> None:
    """There: a result of shape (4, 5) with `feature` of sizes 3 and 5."""
    m = gc.tensor("m", {"time": None, "feature": "n_m"})
    w = gc.tensor("w", {"feature": "n_w"})
    for y in gc.broadcast(m, w):
        f = gc.compile([m, w], y)
        assert f(np.ones((4, 3)), np.ones(3)).shape == (4, 3)
        with pytest.raises(gc.GraphValueError, match=r"for dim 'feature', but they are"):
            f(np.ones((4, 3)), np.ones(5))


def test_5_operands_that_cancel_are_still_checked() -> None:
    """There: ones(5)."""
    a, b = gc.tensor("a", {"t": "n_a"}), gc.tensor("b", {"t": "n_b"})
    f = gc.compile([a, b], (a * 0 + b) - b + b * 1)
    with pytest.raises(gc.GraphValueError, match=r"n_a == n_b for dim 't'.*2 and 5"):
        f(np.ones(2), np.ones(5))


@pytest.mark.parametrize("mask", [[True], [True, False, True]])
def test_6_a_mask_of_the_wrong_length_is_refused(mask: list[bool]) -> None:
    """There: a mask too short or too long lost its last places."""
    x = gc.tensor("x", {"row": 2, "col": 3})
    with pytest.raises(gc.GraphIndexError, match=r"a mask of .* for dim 'row' of size 2"):
        x[{"row": mask}]


def test_7_equal_reductions_are_one_and_show_their_dims() -> None:
    """There: they never compared equal, and printed without their dims."""
    x = gc.tensor("x", {"row": 2, "col": 3})
    total = x.sum("row")
    assert total is gc.sum(x, dim="row")
    assert total is not x.sum("col")
    out = io.StringIO()
    gc.debug_print(total + x.sum("row"), file=out)
    assert out.getvalue().count("sum(x; over row)") == 1


def test_8_stack_and_unstack_take_keywords() -> None:
    """There: TypeError, missing 'dim'."""
    x = gc.tensor("x", {"a": 2, "b": 3})
    z = x.stack(z=("a", "b"))
    assert z is x.stack({"z": ("a", "b")})
    assert z.unstack(z={"a": 2, "b": 3}).sizes == x.sizes
    np.testing.assert_array_equal(compute(z.unstack(z={"a": 2, "b": 3}), x), A)


def test_9_an_open_size_is_inferred_and_other_negative_ones_are_refused() -> None:
    """There: a static shape (2, -1, 1)."""
    x = gc.tensor("x", {"a": 2, "b": 3})
    assert x.unstack(b={"p": -1, "q": 1}).sizes == {"a": 2, "p": 3, "q": 1}
    with pytest.raises(gc.GraphValueError, match="'p' has size -3"):
        x.unstack(b={"p": -3, "q": -1})
    with pytest.raises(gc.GraphValueError, match="sizes must multiply to it"):
        x.unstack(b={"p": -1, "q": 2})


def test_10_places_set_to_values_of_another_size_are_refused_when_built() -> None:
    """There: 7 against 3 was accepted."""
    m, y = gc.tensor("m", {"time": 4, "feature": 3}), gc.tensor("y", {"feature": 7})
    with pytest.raises(gc.GraphValueError, match="dim 'feature' has 3 elements and 7 values"):
        m.at[{"time": 0}].set(y)


def test_11_a_dim_that_a_broadcast_adds_may_not_be_there_with_another_size() -> None:
    """There: the check compared the wrong names, and could not fire."""
    x, like = gc.tensor("x", {"row": 2}), gc.tensor("like", {"row": 2, "col": 3})
    wide = gc.tensor("wide", {"col": 4, "row": 2})
    assert x.broadcast_like(like).sizes == {"row": 2, "col": 3}
    with pytest.raises(gc.GraphValueError, match="broadcast_like: dim 'col' has sizes 3 and 4"):
        wide.broadcast_like(like)


def test_12_a_tensor_is_no_sequence_and_no_array() -> None:
    """There: `list(x)` never ended, and arrays of objects were made."""
    x = gc.tensor("x", {"row": 3})
    with pytest.raises(gc.GraphTypeError, match="items to iterate over"):
        list(x)
    with pytest.raises(gc.GraphTypeError, match="no dims"):
        np.ones(3) * x
    with pytest.raises(gc.GraphTypeError, match="has no value yet"):
        np.asarray(x)
    doubled = np.float64(2) * x
    assert isinstance(doubled, gc.Tensor)


def attention(x: gc.Tensor, layer: int) -> tuple[gc.Tensor, list[gc.Tensor]]:
    weights = [
        gc.tensor(f"{name}{layer}", {"feature": 16, "head": 2, "depth": 8}) for name in "qkvo"
    ]
    q, k, v = (gc.dot(x, w, dim="feature") for w in weights[:3])
    k, v = k.rename(time="key"), v.rename(time="key")
    scores = gc.special.softmax(gc.dot(q, k, dim="depth") / 8**0.5, dim="key")
    return x + gc.dot(gc.dot(scores, v, dim="key"), weights[3], dim=("head", "depth")), weights


def test_13_gradients_of_attention_compile_to_matrix_products() -> None:
    """There: three layers took 32 s, as every dot became an einsum."""
    x = gc.tensor("x", {"batch": None, "time": None, "feature": 16})
    y, weights = x, []
    for layer in range(3):
        y, more = attention(y, layer)
        weights += more
    f = gc.compile([x, *weights], gc.grad((y * y).sum(), weights))
    assert not re.search(r"\beinsum\(", f.source)
    assert re.search(r"\bmatmul\(", f.source)


def test_a_contraction_of_one_place_keeps_its_dtype() -> None:
    """A sum over one place was the place itself, in the narrower dtype of what is summed."""
    x = gc.tensor("x", {"p": 1, "q": 3}, dtype="int32")
    squares = gc.dot(x, x, dim="p")
    found = gc.compile([x], squares)(np.array([[1, 2, 3]], "int32"))
    np.testing.assert_array_equal(found, [1, 4, 9])
    assert found.dtype == squares.dtype
    row = gc.tensor("row", {"a": 3, "b": 3}, dtype="int32")
    part = row.unstack(a={"p": 1, "q": None})[{"b": 0}]
    assert gc.compile([row], gc.dot(part, part, dim="p"))(np.eye(3, dtype="int32")).sum() == 1


def test_a_factor_without_a_tangent_is_passed_over() -> None:
    """A loop on the way has results that do not vary, so that their factor has no tangent."""
    x, xs = gc.tensor("x", {}), gc.tensor("xs", {"row": 3})
    _, rows = gc.scan(lambda c, e: (gc.sin(c) + e, gc.vander(e, 2)), x, xs, "row")
    lower = gc.linalg.lu(rows, ("row", "power")).lower
    slope = gc.pushforward(lower, x, x, disconnected="zero")
    assert not gc.compile([x, xs], slope)(0.5, np.array([1.0, 2.0, 3.0])).any()
