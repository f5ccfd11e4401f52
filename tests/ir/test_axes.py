"""The kind of axes and the traits that ops declare, against what they compute."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphcore.ir.axes import How, Source
from graphcore.ir.graph import Graph
from graphcore.ir.node import OPS, Node
from graphcore.ir.op import Op, Trait
from graphcore.ir.sizes import evaluate
from graphcore.ops import elementwise, leaf, linalg, meaning, outside, tensor
from tests import interpreter
from tests.ops.tables import INTERNAL, arity
from tests.rewrites.test_calculus import TENSOR, given

N = 3
X, Y, CUBE = given("x", 4, 5), given("y", 4, 5), given("q", 2, 3, 4)
AT, WORDS = given("i", 5, dtype="i8"), given("words", 4, 5, dtype="i8")
COMPLEX = given("z", 2, 3, 4, dtype="c16")

NODES: dict[str, Node] = {
    **TENSOR,
    "reshape with axes left and right": tensor.reshape(given("r", 5, 2, 3, 4), shape=(5, 6, 4)),
    "reshape that splits": tensor.reshape(given("r", 5, 6, 4), shape=(5, 3, 2, 4)),
    "slice with a whole axis": tensor.slice_(
        CUBE, starts=(0, 1, 0), sizes=(2, 2, 4), steps=(1,) * 3
    ),
    "embed with a whole axis": tensor.embed(X, shape=(6, 5), starts=(1, 0), steps=(1, 1)),
    "overwrite with a whole axis": tensor.overwrite(
        X, given("p", 2, 5), starts=(1, 0), steps=(1, 1)
    ),
    "windows of several": tensor.windows(
        given("r", 4, 5, 6), axes=(0, 1), sizes=(2, 2), strides=(1, 2), dilations=(1, 1)
    ),
    "recurrence of one": tensor.recurrence(given("r", 5, 4), given("r", 5, 4), axis=0),
    "windows in the middle": tensor.windows(
        given("r", 2, 7, 3), axes=(1,), sizes=(2,), strides=(2,), dilations=(3,)
    ),
    "any": tensor.any_(e := elementwise.greater(CUBE, elementwise.multiply(CUBE, CUBE)), axes=(0,)),
    "all": tensor.all_(e, axes=(1, 2)),
    "argmax": tensor.argmax(CUBE, axis=1),
    "argmin": tensor.argmin(CUBE, axis=2),
    "argsort": tensor.argsort(CUBE, axis=1, size=2, descending=True),
    "searchsorted": tensor.searchsorted(
        tensor.sort(given("rows", 2, 6), axis=1), given("v", 2, 3, 4), side="left"
    ),
    "fft": tensor.fft(COMPLEX, axis=1, inverse=False),
    "callback": outside.callback_(
        CUBE,
        given("more", 2, 4),
        function=outside.Function(lambda x, y: x.sum() + x * y.sum(), list, list, ("result",)),
        batch=("batch",),
        made=(("j", "k"),),
        sizes=(3, 4),
        dtypes=(np.dtype("f8"),),
        masked=False,
    ),
    "matmul": tensor.matmul(given("a", 2, 3, 4), given("b", 2, 4, 5)),
    "einsum with a batch": tensor.einsum(
        CUBE, given("b", 2, 4, 5), operands=((0, 1, 2), (0, 2, 3)), result=(3, 0, 1)
    ),
    "gather by tables": tensor.gather(
        given("r", 3, 4, 5), elementwise.remainder(WORDS, WORDS), axes=(1,)
    ),
    "scatter by tables": tensor.scatter(given("u", 4, 5, 2), WORDS, axes=(1,), shape=(2, 4)),
}
"""Plain nodes, several for ops whose attrs speak of axes."""


def elementwise_nodes() -> Iterator[tuple[str, Node]]:
    elementwise_ops = {op for op in OPS.values() if op.dialect == "elementwise"} - INTERNAL
    for op in sorted(elementwise_ops, key=repr):
        match op:
            case elementwise.cast:
                yield op.name, op(X, dtype=np.dtype("i8"))
            case elementwise.where:
                yield op.name, op(given("f", 4, 5, dtype="?"), X, Y)
            case elementwise.real | elementwise.imag | elementwise.conjugate:
                yield op.name, op(given("z", 4, 5, dtype="c16"))
            case _:
                for dtype in ("f8", "i8", "?"):
                    count = arity(op)
                    xs = [given(f"x{i}", 4, 5, dtype=dtype) for i in range(count)]
                    try:
                        node = op(*xs)
                    except TypeError:
                        continue
                    yield op.name, node
                    break


def matrix_nodes() -> Iterator[tuple[str, Node]]:
    """Every op on matrices, of a batch of one axis."""
    attrs: dict[Op, dict[str, Any]] = {
        **{op: {"check": False} for op in (linalg.cholesky, linalg.inv, linalg.solve)},
        linalg.solve_triangular: {"lower": True, "unit": False, "check": False},
        linalg.lu_solve: {"transposed": True, "check": False},
        linalg.pinv: {"rtol": None},
    }
    for op, signature in linalg.SIGNATURES.items():
        sizes = {"m": 4, "n": 3, "c": 2, "k": 3}
        xs = [
            given(f"x{i}", 2, *[sizes[letter] for letter in letters])
            for i, letters in enumerate(signature.operands)
        ]
        if op in (linalg.lu_solve, linalg.lu_det, linalg.lu_slogdet):
            factors = linalg.lu_factor(xs[0])
            xs[:2] = factors[0], factors[1]
        yield op.name, op(*xs, **attrs.get(op, {}))


NODES |= dict([*elementwise_nodes(), *matrix_nodes()])


def test_every_plain_op_is_here() -> None:
    plain = {op for op in OPS.values() if op.dialect in ("elementwise", "tensor", "linalg")}
    assert plain - {node.op for node in NODES.values()} == INTERNAL


@pytest.mark.parametrize("name", NODES)
def test_batch_axes_are_those_along_which_elements_depend_on_one_alone(name: str) -> None:
    """Single elements of operands are moved, to see which elements of the results change."""
    node = NODES[name]
    random = np.random.default_rng(3)
    xs = operands_of(node, random)
    base = computed(node, xs)
    declared = node.op.axes.sources(node)
    for number, x in enumerate(xs):
        if number in elementwise.UNKNOWN.get(node.op, ()):
            continue
        changes = [
            (element, [np.argwhere(differs(*pair)) for pair in zip(base, moved, strict=True)])
            for element in np.ndindex(x.shape)
            for moved in with_other_values(node, xs, number, element, random)
        ]
        for i, y in enumerate(base):
            seen = [(element, found[i]) for element, found in changes if len(found[i])]
            for axis, own in np.ndindex(y.ndim, x.ndim):
                if y.shape[axis] == 1 or y.shape[axis] != x.shape[own]:
                    continue
                alone = bool(seen) and all(
                    (places[:, axis] == element[own]).all() for element, places in seen
                )
                match declared[i][number][axis]:
                    case Source((at,), How.EACH) if at == own:
                        assert alone or not seen, f"{axis} of result {i}: not {own} of {number}"
                    case Source((at,), How.ALONG) if at == own and Trait.UPDATES in node.op.traits:
                        pass  # what comes to the other operands' positions stands there alone
                    case _:
                        assert not alone, f"axis {axis} of result {i} is {own} of operand {number}"


def operands_of(node: Node, random: np.random.Generator) -> list[np.ndarray]:
    """Values for the operands of a node, computed from those of the inputs below them."""
    drawn = {
        x.attrs["name"]: value(x, random) for x in Graph((), (node,)).nodes() if x.op is leaf.input_
    }
    xs = [np.array(x) for x in interpreter.run(Graph((), node.inputs), drawn, {"n": N})]
    for number in elementwise.UNKNOWN.get(node.op, ()):
        xs[number][...] = 1  # orders are one number throughout
    if node.op in DEFINITE:
        xs[0] = xs[0] + xs[0].swapaxes(1, 2) + 3 * np.eye(xs[0].shape[1])
    return xs


DEFINITE = (linalg.cholesky, linalg.logm, linalg.sqrtm, linalg.lyapunov)


def value(x: Node, random: np.random.Generator) -> np.ndarray:
    shape = [size if isinstance(size, int) else evaluate(size, {"n": N}) for size in x.type.shape]
    match x.type.dtype.kind:
        case "i":
            return random.integers(0, 2, size=shape)
        case "b":
            return random.integers(0, 2, size=shape).astype(bool)
        case "c":
            return random.normal(size=shape) + 1j * random.normal(size=shape)
    return random.uniform(0.2, 0.8, size=shape)


def with_other_values(
    node: Node, xs: list[np.ndarray], number: int, at: tuple[int, ...], random: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """The results for other values of one element of one operand."""
    x = xs[number]
    for other in (
        (not x[at],) if x.dtype.kind in "ib" else (x[at] * 1.01, *random.uniform(0.1, [1, 9]), -20)
    ):
        moved = x.copy()
        moved[at] = other
        yield computed(node, [*xs[:number], moved, *xs[number + 1 :]])


def computed(node: Node, xs: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return meaning.compute(node, xs, {"n": N})


def differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ~((a == b) | ((a != a) & (b != b)))


BINARY = [op for op, ufunc in elementwise.UFUNC.items() if getattr(ufunc, "nin", 1) == 2]
"""Those of NumPy: rounding of special functions differs between versions of SciPy."""


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_commutative_ops_are_those_whose_operands_may_be_exchanged(op: Op) -> None:
    function = meaning.MEANING[op]
    random = np.random.default_rng(0)
    same = True
    for dtype in ("f8", "i8", "?"):
        edges = [0.0, -0.0, 1.0, 2.5, -3.0] + [np.inf, -np.inf, np.nan] * (dtype == "f8")
        drawn = [*edges, *random.uniform(-4, 4, 40)]
        x, y = (np.array(side).astype(dtype) for side in np.meshgrid(drawn, drawn))
        with np.errstate(all="ignore"):
            try:
                left, right = function(x, y), function(y, x)
            except (TypeError, ValueError):
                continue
        same = same and not differs(left, right).any()
    assert (Trait.COMMUTATIVE in op.traits) == same


SEVERAL = [
    name
    for name, node in NODES.items()
    if len(node.inputs) > 1
    and not node.op.pointwise
    and all(x.type.dtype.kind == "f" for x in node.inputs)
]


@pytest.mark.parametrize("name", SEVERAL)
def test_products_are_the_ops_that_are_linear_in_each_operand(name: str) -> None:
    """A result doubles with any one operand: exactly, as a factor of 2 rounds nothing."""
    node = NODES[name]
    xs = operands_of(node, np.random.default_rng(4))
    base = computed(node, xs)
    doubled = [computed(node, [*xs[:i], 2 * x, *xs[i + 1 :]]) for i, x in enumerate(xs)]
    linear = all(np.array_equal(2 * a, b) for some in doubled for a, b in zip(base, some))
    assert (Trait.PRODUCT in node.op.traits) == linear


def test_what_is_known_is_in_the_attr_value() -> None:
    known = {op for op in OPS.values() if Trait.KNOWN in op.traits}
    leaves = {op for op in OPS.values() if op.dialect == "leaf"}
    assert known == {op for op in leaves if "value" in inspect.signature(op.rule).parameters}
    assert known <= {op for op in OPS.values() if Trait.FREE in op.traits}
