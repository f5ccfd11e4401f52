"""Zeros that stand for values left out, and the axes along which they vary."""

from __future__ import annotations

import numpy as np
import pytest

from graphcore.analysis.omissions import (
    NOTHING,
    OMISSIONS,
    WHOLE,
    Omits,
    may_omit,
    omits,
    with_more,
    zeros_of,
)
from graphcore.ir.dtypes import BOOL, FLOAT
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import evaluate, unknown
from graphcore.ops import autodiff, control, elementwise, leaf, tensor
from graphcore.rewrites.expand import expand_derivatives
from graphcore.rewrites.plain import expand, full, times
from tests import interpreter
from tests.rewrites.test_calculus import CASES


def value(name: str, *shape: int, dtype: np.dtype = FLOAT) -> Node:
    return leaf.input_(name=name, dtype=dtype, shape=shape, dims=None)


def patterns(*axes: tuple[int, ...]) -> Omits:
    return frozenset(map(frozenset, axes))


X, Y = value("x", 3), value("y", 3)
CHOICE = value("c", 3, dtype=BOOL)
ZERO, ONE = full(0, FLOAT, (3,)), full(1, FLOAT, (3,))
CHOSEN = elementwise.where(CHOICE, X, ZERO)
ROWS = tensor.embed(value("r", 1, 4), shape=(3, 4), starts=(1, 0), steps=(1, 1))
"""Of three rows one is left."""


def test_which_operands_make_a_result_zero() -> None:
    assert zeros_of(elementwise.multiply, 2) == ([0, 1], True)
    assert zeros_of(elementwise.divide, 2) == ([0], False)
    assert zeros_of(elementwise.add, 2) == zeros_of(elementwise.subtract, 2) == ([], True)
    assert zeros_of(elementwise.negative, 1) == ([0], True)
    assert zeros_of(elementwise.exp, 1) == ([], False)


def test_a_choice_by_a_size_leaves_no_elements_out() -> None:
    """The sum over no places is 0: of a value that may be there, all elements are."""
    assert not may_omit(times(X, unknown("n")))
    assert may_omit(times(CHOSEN, unknown("n")))


def test_zeros_for_values_left_out_come_from_the_ops_that_make_them() -> None:
    part = leaf.input_(name="part", dtype=FLOAT, shape=(1,), dims=None)
    inside = tensor.embed(part, shape=(3,), starts=(1,), steps=(1,))
    given = autodiff.barrier(X)  # a cotangent from outside
    for x in (ZERO, CHOSEN, inside, given, tensor.where_greater(X, X, Y)):
        assert may_omit(x)
        assert may_omit(-x)
        assert may_omit(x * Y)
        assert may_omit(x / Y)
        assert may_omit(x + x)
        assert may_omit(tensor.expand(x, axes=(0,), sizes=(2,)))
        assert not may_omit(Y / x)
        assert not may_omit(x + Y)
        assert not may_omit(Y - x)
    for x in (X, ONE, X * Y, elementwise.exp(CHOSEN), X + CHOSEN):
        assert not may_omit(x)


def test_along_which_axes_they_vary() -> None:
    assert omits(ROWS) == patterns((0,))
    assert omits(tensor.transpose(ROWS, perm=(1, 0))) == patterns((1,))
    assert omits(expand(ROWS, [0], (2, 3, 4))) == patterns((1,))
    corner = tensor.embed(value("k", 1, 2), shape=(3, 4), starts=(0, 0), steps=(1, 1))
    assert omits(corner) == patterns((0,), (1,))
    assert omits(corner + ROWS) == patterns((0,), (0, 1))
    mask = expand(CHOICE, [1], (3, 4))
    assert omits(elementwise.where(mask, value("m", 3, 4), full(0, FLOAT, (3, 4)))) == patterns(
        (0,)
    )
    assert omits(full(0, FLOAT, (3, 4))) == WHOLE
    place = value("p", 2, dtype=np.dtype("i8"))
    assert omits(tensor.scatter(value("u", 2, 4), place, axes=(0,), shape=(3, 4))) == patterns((0,))


def test_what_is_left_of_them_by_sums_and_contractions() -> None:
    square = value("s", 4, 4)
    assert omits(tensor.sum_(ROWS, axes=(1,))) == patterns((0,))
    assert omits(tensor.sum_(ROWS, axes=(0,))) == WHOLE  # all rows may be left out
    assert omits(tensor.matmul(ROWS, square)) == patterns((0,))
    columns = tensor.transpose(ROWS, perm=(1, 0))
    assert omits(tensor.matmul(square, columns)) == patterns((1,))
    assert omits(tensor.matmul(columns, value("t", 3, 5))) == NOTHING  # something is expected left


def test_in_loops() -> None:
    """A sequence of which steps are left out, a carry, and what all steps make."""
    carry, row = value("carry", 4), value("row", 4)
    how = {"carries": 1, "sequences": 1, "reverse": False, "dim": None, "checkpoint": ()}
    body = Graph((carry, row), (carry + row, row * 2))
    for start, sequence, last, all_steps in (
        (value("start", 4), ROWS, NOTHING, patterns((0,))),
        (full(0, FLOAT, (4,)), ROWS, WHOLE, patterns((0,))),
        (full(0, FLOAT, (4,)), value("all", 3, 4), NOTHING, NOTHING),
    ):
        loop = control.scan(start, sequence, body=body, length=3, **how)
        assert (omits(loop[0]), omits(loop[1])) == (last, all_steps)


def test_patterns_of_a_carry_come_to_an_end() -> None:
    """Once there were too many, others make them more and never fewer: a loop would go on."""
    known = with_more(NOTHING, patterns(*((axis,) for axis in range(9))))
    assert known == WHOLE
    for axis in range(20):
        before, known = known, with_more(known, patterns((axis,)))
        assert before <= known
    assert WHOLE < known == with_more(known, patterns((20,)))


@pytest.mark.parametrize("name", CASES)
def test_every_zero_that_a_rule_makes_is_known(name: str) -> None:
    """The cases have all ops with a derivative; no operand and no cotangent is 0."""
    y, sizes = CASES[name], {"n": 3}
    inputs = [node for node in Graph((), (y,)).nodes() if node.op is leaf.input_]
    wrt = [x for x in inputs if x.type.dtype.kind in "fc"]
    ct = leaf.input_(name="ct", dtype=y.type.dtype, shape=y.type.shape, dims=None)
    pulled = autodiff.pullback(y, *wrt, ct, ys=1, wrt=len(wrt))
    params = (*inputs, ct)
    graph = expand_derivatives(Graph(params, tuple(pulled[i] for i in range(len(wrt)))))
    random = np.random.default_rng(3)

    def draw(x: Node) -> np.ndarray:
        shape = [evaluate(size, sizes) for size in x.type.shape]
        match x.type.dtype.kind:
            case "b":
                return np.ones(shape, bool)
            case "i":
                return random.integers(0, 2, size=shape)
            case "c":
                return random.uniform(0.5, 1.5, size=shape) + 1j * random.uniform(size=shape)
        return random.uniform(0.5, 1.5, size=shape)

    found = interpreter.run(graph, {x.attrs["name"]: draw(x) for x in params}, sizes)
    known = OMISSIONS.inside(graph, [NOTHING] * len(params))
    for output, values in zip(graph.outputs, found, strict=True):
        assert may_omit(output, known) or (values != 0).all()
