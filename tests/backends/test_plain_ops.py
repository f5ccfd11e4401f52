"""Each plain op, emitted and run alone, has its meaning; also in forms that only rewrites make."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphcore.backends.numpy_backend.emit import EMIT
from graphcore.backends.numpy_backend.function import Function
from graphcore.inspection.interpreter import alone
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import unknown
from graphcore.ops import elementwise, leaf, meaning, tensor
from tests import interpreter
from tests.ir.test_axes import NODES, operands_of
from tests.reference import close

N = unknown("n")
EDGES = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])


def given(name: str, *shape: object, dtype: str = "float64") -> Node:
    return leaf.input_(name=name, dtype=np.dtype(dtype), shape=shape, dims=None)


def agrees(node: Node, *arrays: np.ndarray, n: int = 0) -> None:
    """The backend computes what the interpreter does, the sign of zero included."""
    params = tuple(x for x in Graph((), (node,)).nodes() if x.op is leaf.input_)
    names = sorted(params, key=lambda x: x.attrs["name"])
    (found,) = Function(Graph(tuple(names), (node,)), ("n",))(arrays, (n,))
    given = dict(zip((x.attrs["name"] for x in names), arrays, strict=True))
    with np.errstate(all="ignore"):
        (wanted,) = interpreter.run(Graph((), (node,)), given, {"n": n})
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    if wanted.dtype.kind == "f":
        zeros = wanted == 0
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


PAIRS = np.array(list(itertools.product(EDGES, EDGES)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
@pytest.mark.parametrize("values", [PAIRS, PAIRS[np.isfinite(PAIRS).all(1)], PAIRS[:0]])
def test_multiply_no_nan(dtype: str, values: np.ndarray) -> None:
    x, y = given("x", N, dtype=dtype), given("y", N, dtype=dtype)
    a, b = values.T.astype(dtype)
    one = given("y", dtype=dtype)
    agrees(tensor.multiply_no_nan(x, y), a, b, n=len(a))
    for operands in ((elementwise.negative(x), y), (x, elementwise.sin(y))):
        agrees(tensor.multiply_no_nan(*operands), a, b, n=len(a))  # in the buffer of an operand
    repeated = tensor.expand(one, axes=(0,), sizes=(N,))
    for value in EDGES.astype(dtype):
        agrees(tensor.multiply_no_nan(x, repeated), a, value, n=len(a))
        agrees(tensor.multiply_no_nan(repeated, x), a, value, n=len(a))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_multiply_no_nan_of_single_numbers(dtype: str) -> None:
    for a, b in PAIRS.astype(dtype):
        x, y = given("x", dtype=dtype), given("y", dtype=dtype)
        agrees(tensor.multiply_no_nan(x, y), np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("size", [0, 1, 3])
def test_what_is_done_with_one_number_everywhere(size: int) -> None:
    """A number that is repeated has no name until an array is made of it."""
    number = elementwise.sin(given("x"))
    row = tensor.expand(number, axes=(0,), sizes=(N,))
    table = tensor.expand(number, axes=(0, 1), sizes=(2, N))
    for node in (
        tensor.reshape(row, shape=(N, 1)),
        tensor.reshape(table, shape=(N, 2)),
        tensor.transpose(table, perm=(1, 0)),
        tensor.slice_(table, starts=(1, 0), sizes=(1, N), steps=(1, 1)),
        tensor.expand(row, axes=(1,), sizes=(2,)),
        tensor.embed(row, shape=(N + 1,), starts=(1,), steps=(1,)),
        tensor.concat(row, row, axis=0),
        tensor.pack(table, shape=(N, 2)),
        tensor.sum_(table, axes=(0,)),
        tensor.max_(table, axes=(0,)),
        tensor.cumsum(row, axis=0),
        elementwise.multiply(table, tensor.reshape(table, shape=(2, N))),
    ):
        agrees(node, np.asarray(0.5), n=size)
    windows = {"axes": (0,), "sizes": (1,), "strides": (1,), "dilations": (1,)}
    agrees(tensor.windows(row, **windows), np.asarray(0.5), n=size)


EMITTED = [n for n, x in NODES.items() if x.op in EMIT and x.op not in elementwise.UNKNOWN]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", EMITTED)
def test_numpy_computes_what_an_op_means(name: str) -> None:
    node = NODES[name]
    xs = operands_of(node, np.random.default_rng(5))
    found = Function(alone(node), ("n",))(xs, (3,))
    for ours, wanted in zip(found, meaning.compute(node, xs, {"n": 3}), strict=True):
        assert ours.dtype == wanted.dtype
        close(ours, wanted)
