"""Each matrix is factored once: all ops and all steps that need its factors share them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from graphcore.analysis.cost import TargetCosts
from graphcore.analysis.matrices import DEFINITE, facts, matrix_of
from graphcore.ir import Graph, Node, Op, Rule
from graphcore.ir.graph import bodies_of, with_bodies
from graphcore.ir.sizes import lower_bound
from graphcore.ir.transform import transform
from graphcore.ops import control, leaf, linalg, tensor
from graphcore.ops.control import LOOPS, Loop
from graphcore.ops.elementwise import conjugate, log, square

from .engine import convert
from .loops.placement import Steps
from .plain import cast, full, sum_over
from .plain_matrices import diagonal, eye_like, h, real_part

WHOLE: dict[Op, tuple[Op, int]] = {
    linalg.eigvalsh: (linalg.eigh, 0),
    linalg.svdvals: (linalg.svd, 1),
    linalg.eigvals: (linalg.eig, 0),
}
"""Ops whose result is one of the results of another op."""

BY_LU = frozenset({linalg.solve, linalg.inv, linalg.det, linalg.slogdet})


def share_factors(graph: Graph, costs: TargetCosts) -> Graph:
    """The graph in which each matrix is factored once."""
    if not any(op.dialect == "linalg" for op in graph.ops()):
        return graph
    return with_one_factor(with_whole(graph), costs)


def with_whole(graph: Graph) -> Graph:
    """Ops whose result is one result of another op on the same matrix take it from there."""
    made = {(node.op, node.inputs) for node in graph.every_node()}

    def part(node: Node, x: Node) -> Node:
        op, index = WHOLE[node.op]
        return op(x)[index] if (op, node.inputs) in made else node.with_inputs(x)

    return convert(graph, dict.fromkeys(WHOLE, part))


def is_worth(a: Node, costs: TargetCosts) -> bool:
    """Whether the factors of `a` are worth sharing: for one matrix, or a batch of large ones."""
    return a.type.ndim == 2 or (lower_bound(a.type.shape[-1]) or 0) >= costs.rows_factored_alone


def by_cholesky(node: Node, check: bool, transposed: bool, a: Node, *rest: Node) -> Node:
    """a⁻¹ b = l⁻ᴴ l⁻¹ b, det(a) = Π l[i,i]², and its logarithm 2 Σ log l[i,i]

    The factor of aᵀ, the conjugate of a, is that of l.
    """
    factor = linalg.cholesky(a, check=check)
    if transposed and a.type.dtype.kind == "c":
        factor = conjugate(factor)
    if node.op in (linalg.solve, linalg.inv):
        b = rest[0] if rest else eye_like(a)
        how = {"unit": False, "check": check}
        half = linalg.solve_triangular(factor, b, lower=True, **how)
        return linalg.solve_triangular(h(factor), half, lower=False, **how)
    values = real_part(diagonal(factor))
    axis = values.type.ndim - 1
    if node.op is linalg.det:
        return square(cast(tensor.prod(values, axis=axis), node.type.dtype))
    return leaf.tuple_(full(1, a.type.dtype), 2 * sum_over(log(values), (axis,)))


def by_lu(node: Node, check: bool, transposed: bool, a: Node, *rest: Node) -> Node:
    """a = p l u, of which a solution takes two substitutions, and a determinant diag(u)"""
    several = linalg.lu_factor(a)
    packed, exchanges = several[0], several[1]
    if node.op is linalg.det:
        return linalg.lu_det(packed, exchanges)
    if node.op is linalg.slogdet:
        return linalg.lu_slogdet(packed, exchanges)
    b = rest[0] if rest else eye_like(a)
    return linalg.lu_solve(packed, exchanges, b, transposed=transposed, check=check)


Factors = Callable[[Node], "tuple[Node, Node] | None"]
"""The LU factors of a matrix as nodes, if it is the same at all steps."""


def factor_before_loops(graph: Graph, costs: TargetCosts) -> Graph:
    """Solves of a matrix that is the same at all steps are by its factors, which leave the loop.

    A singular matrix is still an error of a step: the LU factors of any matrix can be computed. So
    definite ones have these as well; two substitutions a step would cost more than Cholesky saves.
    """
    if linalg.solve not in graph.ops() or LOOPS.isdisjoint(graph.ops()):
        return graph

    inside = partial(factor_before_loops, costs=costs)

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node]:
        new = Node(node.op, inputs, with_bodies(node, inside))
        loop = Loop.of(new)
        steps = Steps(loop, new.attrs["body"])

        def factors(a: Node) -> tuple[Node, Node] | None:
            if steps.varies(a) or not is_worth(a, costs):
                return None
            several = linalg.lu_factor(a)
            return several[0], several[1]

        body = solve_by(factors, Graph((), loop.roots))
        return factor_before_loops, loop.with_roots(body.outputs).build()

    return transform(graph, visit, at=LOOPS, bodies=inside)


def solve_by(factors: Factors, graph: Graph) -> Graph:
    """The body of a loop, or a graph in it, that solves by factors where there are some."""

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node.op is not linalg.solve:
            return solve_by, with_factors(node, inputs, factors)
        a, transposed = matrix_of(node.inputs[0])
        if (found := factors(a)) is None:
            return None
        how = {"transposed": transposed, "check": node.attrs["check"]}
        return solve_by, linalg.lu_solve(*found, inputs[1], **how)

    return transform(graph, visit, at={linalg.solve, control.call, control.switch})


def with_factors(node: Node, inputs: tuple[Node, ...], factors: Factors) -> Node:
    """A call or a choice of branches that is given the factors of its operands."""
    given = control.given_to_bodies(node, node.inputs)
    more: dict[Node, Node] = {}
    changed: dict[Graph, Graph] = {}
    for body in bodies_of(node):
        operands = dict(zip(body.params, given, strict=True))

        def own(a: Node, operands: Mapping[Node, Node] = operands) -> tuple[Node, Node] | None:
            if a not in operands or (found := factors(operands[a])) is None:
                return None
            number = given.index(operands[a])
            names = f"factors of {number}", f"exchanges of {number}"
            packed, exchanges = (leaf.param(*x) for x in zip(names, [y.type for y in found]))
            more.update({packed: found[0], exchanges: found[1]})
            return packed, exchanges

        changed[body] = solve_by(own, body)
    attrs = with_bodies(node, lambda body: Graph((*body.params, *more), changed[body].outputs))
    return Node(node.op, (*inputs, *more.values()), attrs)


def with_one_factor(graph: Graph, costs: TargetCosts) -> Graph:
    """Solves and determinants of one matrix share its Cholesky factor, or its LU factors.

    NumPy does each of a batch in one call, which is quicker than to factor small ones one by one.
    """
    met: Counter[Node] = Counter()
    checked: set[Node] = set()
    for node in graph.every_node():
        if node.op in BY_LU and is_worth(node.inputs[0], costs):
            key, _ = matrix_of(node.inputs[0])
            met[key] += 1
            if node.attrs.get("check"):
                checked.add(key)
        elif node.op is linalg.lu_factor:  # of a loop
            met[node.inputs[0]] += 1

    def by_factors(node: Node, x: Node, *rest: Node) -> Node:
        key, transposed = matrix_of(node.inputs[0])
        a = matrix_of(x)[0] if transposed else x
        if key in met and DEFINITE in facts(key):
            return by_cholesky(node, key in checked, transposed, a, *rest)
        if met[key] < 2:
            return node.with_inputs(x, *rest)
        return by_lu(node, key in checked, transposed, a, *rest)

    return convert(graph, dict.fromkeys(BY_LU, by_factors))
