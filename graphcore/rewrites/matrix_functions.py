"""Functions of Hermitian matrices that are written by eigenvalues w and eigenvectors v.

    v f(w) v^H, v f(w) v^H b, b^H v f(w) v^H b  ->  `matrix_function`
    sum(f(w))                                   ->  `trace_of_function`

Where eigenvalues are equal their vectors have no derivative, but a smooth function of the matrix
has one: so it is found before anything is differentiated.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from graphcore.ir import Graph, Node, Size, full_like, unwrap
from graphcore.ir.transform import substitute
from graphcore.ops import autodiff, leaf, linalg, tensor
from graphcore.ops import elementwise as e

from . import plain
from .einsums import single
from .engine import RuleSet, simplify
from .expand import is_lazy
from .factored import Factor, products, split
from .plain import Axes
from .plain_matrices import diagonal, hermitian, real_part

functions = RuleSet()
NOT_ANALYTIC = frozenset({e.absolute, e.conjugate, e.imag, e.real, e.sign})
"""Ops whose derivative in a complex operand depends on the direction."""
MOST_FACTORS = 32
"""The most factors of a product that is searched for a function of a matrix."""


def functions_of_matrices(graph: Graph) -> Graph:
    """The graph in which functions of matrices are found, if it is going to be differentiated."""
    if not is_lazy(graph) or graph.ops().isdisjoint({linalg.eigh, linalg.eigvalsh}):
        return graph
    return simplify(graph, FINDING)


@functions.on(tensor.einsum, tensor.sum_)
def function_of_matrix(node: Node) -> Node | None:
    """einsum(v, f(w), conj(v), ...) = einsum(matrix_function(x), ...) for w, v = eigh(x)"""
    if node.type.dtype.kind not in "fc":
        return None
    if node.op is tensor.sum_:
        (x,) = node.inputs
        letters = tuple(range(x.type.ndim))
        result = tuple(letter for letter in letters if letter not in node.attrs["axes"])
        factors = [Factor(unwrap(x, e.real), letters)]
    else:
        result = node.attrs["result"]
        factors = list(map(Factor, node.inputs, node.attrs["operands"]))
    for eigen in sorted({letter for factor in factors for letter in factor.letters} - {*result}):
        if (found := function_product(eigen, factors, result)) is not None:
            real = node.type.dtype.kind == "f"
            return plain.cast(real_part(found) if real else found, node.type.dtype)
    return None


@functions.on(tensor.logsumexp)
def logarithm_of_trace(node: Node) -> Node | None:
    """logsumexp(y) = log(sum(exp(y - max(y)))) + max(y) for a function y of eigenvalues"""
    (y,), axes = node.inputs, node.attrs["axes"]
    if axes != (y.type.ndim - 1,) or function_of([y]) is None:
        return None
    top = tensor.max_(y, axes=axes, initial=None)
    top = autodiff.stop_gradient(plain.where(e.isfinite(top), top, 0))
    return e.log(plain.sum_over(e.exp(y - plain.unsum(top, axes, y)), axes)) + top


def function_product(eigen: int, factors: Sequence[Factor], result: Axes) -> Node | None:
    """The product in which the factors along the letter `eigen` are a function of a matrix."""
    fresh = count(1 + max(letter for factor in factors for letter in factor.letters))
    inside: list[Factor] = []
    others: list[Factor] = []
    sizes: dict[int, Size] = {}
    stack = list(reversed(factors))
    while stack and len(inside) + len(others) < MOST_FACTORS:
        factor = stack.pop()
        sizes |= zip(factor.letters, factor.node.type.shape, strict=True)
        if eigen not in factor.letters:
            others.append(factor)
        elif parts := split(factor, fresh):
            stack.extend(reversed(parts))
        else:
            inside.append(factor)
    vectors = [factor for factor in inside if is_vectors(factor)]
    values = [factor for factor in inside if not is_vectors(factor)]
    if stack or not inside or len(vectors) not in (0, 2):
        return None
    batch = vectors[0].letters[:-2] if vectors else values[0].letters[:-1]
    if any(factor.letters != (*batch, eigen) for factor in values):
        return None
    places: Axes = ()
    if vectors:
        left, right = vectors
        left, right = (right, left) if left.conjugated else (left, right)
        alike = left.node.type.dtype.kind == "f" or left.conjugated != right.conjugated
        if left.node is not right.node or not alike:
            return None
        if any(factor.letters != (*batch, factor.letters[-2], eigen) for factor in vectors):
            return None
        places = left.letters[-2], right.letters[-2]
    a = vectors[0].node.inputs[0].inputs[0] if vectors else None
    found = function_of([factor.value() for factor in values], a)
    if found is None:
        return None
    if len({*places}) < len(places):
        found, places = diagonal(found), places[:1]
    terms = [Factor(found, (*batch, *places)), *others]
    lost = sizes.keys() - {eigen, *(letter for factor in terms for letter in factor.letters)}
    if lost:  # a sum over repeated values
        shape = tuple(sizes[letter] for letter in lost)
        terms.append(Factor(plain.full(1, found.type.dtype, shape), tuple(lost)))
    if len(terms) == 1:
        return single(found, (*batch, *places), result)
    return tensor.einsum(
        *[factor.value() for factor in terms],
        operands=tuple(factor.letters for factor in terms),
        result=result,
    )


def is_vectors(factor: Factor) -> bool:
    """Whether a factor is the vectors of an `eigh`."""
    x = factor.node
    return part_of_eigh(x) and x.attrs["index"] == 1 and not factor.inverted


def part_of_eigh(x: Node) -> bool:
    return x.op is leaf.project and x.inputs[0].op is linalg.eigh


def function_of(factors: Sequence[Node], vectors_of: Node | None = None) -> Node | None:
    """The function of a matrix whose values are a product of `factors`, or its trace; if it is one.

    Factors that are the same for all eigenvalues of a matrix are numbers that the function takes.
    """
    values: dict[Node, Node] = {}
    numbers: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = list(factors)
    while stack:
        x = stack.pop()
        if x in seen or x.op is leaf.full:
            continue
        seen.add(x)
        if x.op is linalg.eigvalsh or (part_of_eigh(x) and x.attrs["index"] == 0):
            values[x] = x.inputs[0] if x.op is linalg.eigvalsh else x.inputs[0].inputs[0]
        elif x.op is tensor.expand and x.type.ndim - 1 in x.attrs["axes"]:
            numbers[x] = None
        elif x.op.dialect != "elementwise" or (
            x.op in NOT_ANALYTIC and x.inputs[0].type.dtype.kind == "c"
        ):
            return None
        else:
            stack.extend(x.inputs)
    matrices = {*values.values(), *([vectors_of] if vectors_of else ())}
    if len(matrices) != 1:
        return None
    (a,) = matrices
    w, v = linalg.eigh(a)[0], linalg.eigh(a)[1]
    params = [leaf.param(f"number{i}", x.type) for i, x in enumerate((w, *numbers))]
    total = factors[0] if factors else full_like(w, 1)
    for factor in factors[1:]:
        total = total * factor
    new = dict.fromkeys(values, params[0]) | dict(zip(numbers, params[1:], strict=True))
    f = Graph(tuple(params), substitute([total], new))
    given = []
    for x in numbers:
        others = [axis for axis in x.attrs["axes"] if axis != w.type.ndim - 1]
        given.append(plain.expand(x.inputs[0], others, w.type.shape[:-1]))
    used = next(iter(values), w)
    op = autodiff.matrix_function if vectors_of else autodiff.trace_of_function
    fixed = autodiff.stop_gradient(used), autodiff.stop_gradient(v)
    return op(hermitian(a), *fixed, *given, f=f, numbers=len(given))


FINDING = products | functions
