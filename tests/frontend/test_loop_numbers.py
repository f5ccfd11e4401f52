"""Loops that start from Python numbers: their dtype and dims, and how often a body is traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.node import toposort

N = gc.tensor("n", {}, dtype="int64")
exactly = np.testing.assert_array_equal


def run(inputs: Any, outputs: Any, *values: Any) -> Any:
    return gc.compile(inputs, outputs)(*values)


@pytest.mark.parametrize(
    "dtype", ["uint8", "int32", "uint64", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("start", [True, 1, 1.0, 1 + 0j])
def test_numbers_take_the_dtype_of_what_they_meet(start: complex, dtype: str) -> None:
    """That of NumPy's sum of an array and a Python number."""
    x = gc.tensor("x", {"time": 3, "row": 2}, dtype=dtype)
    wanted = np.result_type(np.dtype(dtype), start)
    values = np.arange(6).reshape(3, 2).astype(dtype)
    last, ys = gc.scan(lambda c, x: (c + x, c), start, x)
    assert (last.dims, last.dtype) == (("row",), wanted)
    assert (ys.dims, ys.dtype) == (("time", "row"), wanted)
    found = run([x], [last, ys], values)
    assert [v.dtype for v in found] == [wanted, wanted]
    exactly(found[0], 1 + values.sum(0))
    exactly(found[1], 1 + np.cumsum(values, 0) - values)


def test_numbers_that_meet_no_other_are_those_of_python() -> None:
    def body(c: Any, _: None) -> Any:
        return (c[0] / 2, c[1] + 1, ~c[2], ~c[3], -c[4]), None

    last, _ = gc.scan(body, (1.0, 0, True, 5, 1j), length=3)
    kinds = [np.float64, np.int64, np.bool_, np.int64, np.complex128]
    assert [v.dtype for v in last] == kinds
    assert [v.item() for v in run([], list(last))] == [0.125, 3, False, -6, -1j]


def test_a_number_that_is_replaced() -> None:
    """By values of a dtype that can hold it; by those of no other (see `changed_number`)."""
    x = gc.tensor("x", {"time": 2}, dtype="float32")
    last, ys = gc.scan(lambda c, x: (x, c), 0, x)
    assert (last.dtype, ys.dtype) == (np.float32, np.float32)
    exactly(run([x], ys, np.array([0.5, 1.5], "f4")), [0.0, 0.5])
    half = gc.tensor("x", {"time": 2}, dtype="float16")
    last, ys = gc.scan(lambda c, x: (x, c), 0.0, half)
    assert (last.dtype, ys.dtype) == (np.float16, np.float16)
    exactly(run([half], ys, np.array([0.5, 1.5], "f2")), [0.0, 0.5])


class Traces:
    """A body that counts how often it is traced."""

    def __init__(self, body: Any) -> None:
        self.body, self.count = body, 0

    def __call__(self, *args: Any) -> Any:
        self.count += 1
        return self.body(*args)


def squares(i: gc.Tensor, s: gc.Tensor) -> gc.Tensor:
    return gc.where(s > 0.5, gc.sqrt(s) * 0.1 + i, s / 3) + gc.tensor("row", {"row": 2})


def halves(i: gc.Tensor, s: gc.Tensor) -> gc.Tensor:
    return s * 0.5 + gc.tensor("f4", {"row": 2}, dtype="float32")


@pytest.mark.parametrize("start", [False, 0, 0.0, 0j])
@pytest.mark.parametrize(
    "body",
    [
        lambda i, s: s + 1,
        lambda i, s: s + i,
        lambda i, s: s + 1.5,
        lambda i, s: s / 3 + gc.tensor("f8", {}),
        lambda i, s: gc.tensor("x", {"row": 2}) + s,
        lambda i, s: gc.where(i < 2, s * 0.1, 2.5) + gc.tensor("f4", {"row": 2}, dtype="float32"),
        squares,
        halves,
    ],
)
def test_a_body_is_traced_once(body: Any, start: complex) -> None:
    """Whatever dims and size of dtype elementwise functions give a number; twice for a new kind."""
    if start == 0 and isinstance(start, complex) and body is squares:
        start = 0.0
    counted = Traces(body)
    last = gc.fori_loop(0, 3, counted, start)
    assert counted.count == (1 if last.dtype.kind == np.asarray(start).dtype.kind else 2)
    again = gc.fori_loop(0, 3, body, gc.full_like(last, start))
    assert last.node.type == again.node.type
    inputs = [gc.Tensor(x) for x in last_inputs(last)]
    assert set(last_inputs(again)) == set(last_inputs(last))
    values = [np.ones([2] * x.ndim, x.dtype) for x in inputs]
    f = gc.compile(inputs, [last, again])
    exactly(*f(*values))


def last_inputs(y: gc.Tensor) -> list[Any]:
    """The inputs that a tensor is computed of."""
    return [node for node in toposort([y.node]) if node.op.name == "input"]


def test_a_number_that_meets_more_is_traced_again() -> None:
    """What a body does to a number may depend on its dims: it is traced on what they become."""
    x = gc.tensor("x", {"row": 2})
    body = Traces(lambda s: s.sum() + x)
    last = gc.while_loop(lambda s: s.sum() < 10, body, 0.0)
    assert body.count == 2
    exactly(run([x], last, np.array([1.0, 2.0])), [10.0, 11.0])


def test_numbers_of_loops_in_loops() -> None:
    """A number that an inner loop starts from is still a number: 0 becomes a float in both."""
    x = gc.tensor("x", {"row": 2}, dtype="float32")

    def nested(add: Any) -> gc.Tensor:
        return gc.fori_loop(0, 3, lambda i, s: gc.fori_loop(0, 2, lambda j, t: t + add, s), 0)

    assert [nested(y).dtype for y in (1, 0.5, x)] == [np.int64, np.float64, np.float32]
    assert run([], nested(1)) == 6
    assert run([], nested(0.5)) == 3.0
    exactly(run([x], nested(x), np.array([1, 2], "f4")), [6.0, 12.0])
    chosen = gc.fori_loop(0, 4, lambda i, s: gc.cond(i < 2, lambda: s + x, lambda: s), 0)
    assert chosen.dtype == np.float32
    exactly(run([x], chosen, np.array([1, 2], "f4")), [2.0, 4.0])
    passed = gc.fori_loop(0, 4, lambda i, s: gc.cond(i < 2, lambda s: s + x, lambda s: s, s), 0)
    assert passed.dtype == np.float32


def test_a_predicate_that_gets_dims_stops_each_member() -> None:
    """The predicate of the one trace has no dims yet, so the step must be traced once more."""
    x = gc.tensor("x", {"row": 2})
    start = 0.0, np.inf
    last, _ = gc.while_loop(
        lambda s: abs(s[0] - s[1]) > 1e-9, lambda s: (s[0] / 2 + x, s[0]), start
    )
    found = run([x], last, np.array([0.0, 1.0]))
    np.testing.assert_allclose(found, [0.0, 2.0], atol=1e-8)
    alone = [run([x], last[{"row": 0}], np.full(2, v)) for v in (0.0, 1.0)]
    exactly(found, alone)


def test_functions_that_do_nothing_to_one_dtype_do_something_to_another() -> None:
    """They leave no node in the trace, or one that means something else for another dtype."""
    x, z = gc.tensor("x", {}, dtype="float32"), gc.tensor("z", {}, dtype="complex128")
    wide = gc.fori_loop(0, 2, lambda i, s: (s.astype("float64") * 0.1).astype("float32") + x, 0.5)
    again = gc.fori_loop(
        0, 2, lambda i, s: (s.astype("float64") * 0.1).astype("float32") + x, np.float32(0.5)
    )
    assert wide.dtype == again.dtype == np.float32
    exactly(*run([x], [wide, again], np.float32(0.3)))
    real = gc.fori_loop(0, 2, lambda i, s: gc.real(s) + z, 0.5)
    exactly(run([z], real, 1 + 2j), 2.5 + 2j)
    whole = gc.fori_loop(0, 2, lambda i, s: gc.floor(s) + 0.75, 0)
    exactly(run([], whole), 0.75)


def test_a_number_that_meets_two_dtypes_has_the_larger_everywhere() -> None:
    """Where it met the smaller first it is not rounded to that."""
    x, y = gc.tensor("x", {}, dtype="float32"), gc.tensor("y", {})
    last = gc.fori_loop(0, 2, lambda i, s: (s + 0.1) * x + y, 0.0)
    assert last.dtype == np.float64
    exactly(run([x, y], last, np.float32(1), 0.0), 0.1 + 0.1)
    inside = gc.fori_loop(
        0, 2, lambda i, s: gc.cond(i < 9, lambda: (s + 0.1) * x, lambda: s) + y, 0.0
    )
    exactly(run([x, y], inside, np.float32(1), 0.0), 0.1 + 0.1)


def test_an_error_in_a_body_is_the_users() -> None:
    """It comes from the one trace there is, not from another that was tried in vain."""
    x = gc.tensor("x", {"row": 3}, dtype="float32")
    body = Traces(lambda i, s: s + x.isel(col=0))
    with pytest.raises(gc.GraphError, match="isel: there is no dim 'col'"):
        gc.fori_loop(0, 3, body, 0.0)
    assert body.count == 1

    def broken(i: gc.Tensor, s: gc.Tensor) -> gc.Tensor:
        assert s.dtype == np.float64, s.dtype
        return s + 1.0

    assert gc.fori_loop(0, 3, broken, 0.0).dtype == np.float64


def test_integers_are_positions_where_floats_are_not_settled() -> None:
    x = gc.tensor("x", {"row": 3}, dtype="float32")
    total, n = gc.while_loop(
        lambda s: x.isel(row=s[1]) > 0, lambda s: (s[0] + x.isel(row=s[1]), s[1] + 1), (0.0, 0)
    )
    assert (total.dtype, n.dtype) == (np.float32, np.int64)
    assert [v.item() for v in run([x], [total, n], np.array([2, 3, -1], "f4"))] == [5.0, 2]


def test_numbers_as_results_of_branches() -> None:
    x = gc.tensor("x", {"row": 2}, dtype="float32")
    y = gc.switch(N, [lambda: (1, x), lambda: (2.5, 0), lambda: (True, 0.5)])
    assert [v.dtype for v in y] == [np.float64, np.float32]
    for number, wanted in ((0, (1, [3, 4])), (1, (2.5, [0, 0])), (2, (1, [0.5, 0.5]))):
        found = run([N, x], y, number, np.array([3, 4], "f4"))
        assert found[0] == wanted[0]
        exactly(found[1], wanted[1])


def test_a_number_grows_the_dims_of_the_body() -> None:
    """Also where the other carry has to grow first."""
    x = gc.tensor("x", {"row": 2})
    last, _ = gc.scan(lambda c, _: ((c[1], c[1] + x), None), (0.0, 1.0), length=2)
    assert [v.dims for v in last] == [("row",), ("row",)]
    found = run([x], list(last), np.array([1.0, 2.0]))
    exactly(found[0], [2.0, 3.0])
    exactly(found[1], [3.0, 5.0])
