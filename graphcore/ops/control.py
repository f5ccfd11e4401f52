"""Loops and branches. Their bodies are closed graphs: a captured value is an operand like others.

Operands come in the order of a body's params. On named stages a loop takes the elements of its
sequences along `dim`, on plain ones (`dim` is None) along their first axis. The results of single
steps are stacked in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from graphcore.ir import BOOL, INT, Expression, Graph, Node, Op, Size, TensorType, Trait, TupleType
from graphcore.ir.axes import Opaque
from graphcore.ir.errors import GraphTypeError, Refusal, require
from graphcore.ir.graph import WITH_BODIES, bodies_among
from graphcore.ir.node import Attrs, agree_in_type, natural, need
from graphcore.ir.op import op
from graphcore.ir.sizes import same

from .leaf import iota
from .named.dims import has

Axes = tuple[int, ...]
Checkpoint = tuple[int, ...]
"""Lengths of the chunks, and of the chunks in a chunk, whose first carries are saved."""


def one_step(x: TensorType, dim: str | None, length: Size) -> TensorType:
    """The type of one element of a sequence that is `length` long."""
    if dim is not None:
        has(x, (dim,))
    axis = 0 if dim is None else (x.dims or ()).index(dim)
    size = x.shape[axis]
    decided = same(size, length)
    shown = f"dim {dim!r}" if dim else "the first axis"
    if decided is False:
        raise Refusal(
            f"{shown} of {x} has size {size}, but the loop has {length} steps",
            "scan over tensors of one size, and leave length out",
        )
    if decided is None:
        need(dim or "", size, "==", length)
    dims = None if x.dims is None else (*x.dims[:axis], *x.dims[axis + 1 :])
    return TensorType(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]), dims)


def all_steps(y: TensorType, dim: str | None, length: Size) -> TensorType:
    """The type of the results `y` of all steps, the first axis new."""
    dims = None if y.dims is None or dim is None else (dim, *y.dims)
    if dims is not None:
        reason = f"a step's result {y} has dim {dim!r} already"
        require(len(set(dims)) == len(dims), reason, "give the dim of the steps another name: dim=")
    return TensorType(y.dtype, (length, *y.shape), dims)


def accept(graph: Graph, operands: tuple[TensorType, ...]) -> None:
    """Refuse operands that are not those of the graph's params."""
    wanted = tuple([param.type for param in graph.params])
    if wanted != operands:
        reason = f"the body takes {[*map(str, wanted)]}, not {[*map(str, operands)]}"
        require(len(wanted) == len(operands), reason)
        for param, operand in zip(wanted, operands, strict=True):
            agree_in_type(param, operand, reason)


def keep(body: Graph, carries: int) -> list[TensorType]:
    """The types of carries; refused if a body makes those of other types of them."""
    few = 0 <= carries <= min(len(body.params), len(body.outputs))
    require(few, f"the body has no {carries} carries")
    pairs = [(x.type, y.type) for x, y in zip(body.params[:carries], body.outputs, strict=False)]
    return [
        old if old is new else agree_in_type(old, new, f"a carry of {old} becomes {new}")
        for old, new in pairs
    ]


@op(axes=Opaque())
def scan(
    *operands: TensorType,
    body: Graph,
    carries: int,
    sequences: int,
    length: Size,
    reverse: bool,
    dim: str | None,
    checkpoint: Checkpoint,
) -> TupleType:
    """(*carries, *sequences, *captured) -> (*last carries, *results of all steps).

    The body computes (*new carries, *results) from (*carries, *one element of each sequence,
    *captured). `reverse` takes the last element first. A pullback saves the carries that chunks
    start from (`checkpoint`), or, if there are no chunks, those of every step.
    """
    natural(dim or "", length)
    steps = [one_step(x, dim, length) for x in operands[carries : carries + sequences]]
    accept(body, (*operands[:carries], *steps, *operands[carries + sequences :]))
    carried = keep(body, carries)
    results = [all_steps(y.type, dim, length) for y in body.outputs[carries:]]
    return TupleType((*carried, *results))


@op(axes=Opaque())
def while_loop(
    *operands: TensorType,
    predicate: Graph,
    body: Graph,
    carries: int,
    trips: Size | None,
    most: Size | None = None,
) -> TupleType:
    """(*carries, *captured) -> (*last carries, *results of all steps), while the predicate holds.

    Both graphs take all operands. The body computes new carries and, if `trips` names the number of
    steps, which is known only after the loop, results of each step. The predicate sees to it that
    there are no more steps than `most`, where that is known.
    """
    for graph in (predicate, body):
        accept(graph, operands)
    named = trips is None or (isinstance(trips, Expression) and len(trips.unknowns) == 1)
    require(named, f"the number of steps is found by the loop, not {trips}")
    carried = keep(body, carries)
    (condition,) = predicate.outputs
    require(
        condition.type.dtype == BOOL and not condition.type.shape,
        f"the condition is {condition.type}, not one bool",
        "compare something, for instance `error > 1e-9`",
        GraphTypeError,
    )
    steps = (
        () if trips is None else [all_steps(y.type, None, trips) for y in body.outputs[carries:]]
    )
    return TupleType((*carried, *steps))


LOOPS = frozenset({scan, while_loop})
"""The ops that compute a body at each step."""


def is_counter(sequence: Node) -> bool:
    """Whether a sequence holds the number of each step, which a loop knows without it."""
    return sequence.op is iota and sequence.type.dtype == INT


def computed_bodies(node: Node) -> list[Graph]:
    """The bodies that a node computes: all but the rules of its derivative."""
    if node.op.dialect not in WITH_BODIES:
        return []
    return bodies_among(map(node.attrs.get, ("predicate", "body", "branches")))


# ---- a loop as named groups

Item = TypeVar("Item")
Other = TypeVar("Other")


class Groups(NamedTuple, Generic[Item]):
    """One item for each operand of a loop."""

    carries: tuple[Item, ...]
    sequences: tuple[Item, ...]
    captured: tuple[Item, ...]

    @property
    def all(self) -> tuple[Item, ...]:
        """The items in the order of the operands."""
        return (*self.carries, *self.sequences, *self.captured)

    def split(self, items: Iterable[Other]) -> Groups[Other]:
        """Other items, one for each of these, in the same groups."""
        rest = iter(items)
        parts = [tuple(islice(rest, len(group))) for group in self]
        assert next(rest, rest) is rest, "there are more items than operands"
        return Groups(*parts)


class Carry(NamedTuple):
    """A value that each step computes anew: its param, its start, and the node of the new value."""

    param: Node
    start: Node
    update: Node


class LoopOperand(NamedTuple):
    """A sequence or a captured value: its param, and the node outside of the loop."""

    param: Node
    value: Node


class Loop(NamedTuple):
    """A `scan` or a `while_loop` as named groups. Nothing changes a record: passes make new ones.

    `results` are the nodes whose values of all steps the loop returns, `condition` is the node that
    decides whether a `while_loop` makes another step. `settings` are the other attrs: `length`,
    `reverse`, `dim` and `checkpoint`, or `trips` and `most`.
    """

    op: Op
    settings: Mapping[str, Any]
    carries: tuple[Carry, ...]
    sequences: tuple[LoopOperand, ...]
    captured: tuple[LoopOperand, ...]
    results: tuple[Node, ...]
    condition: Node | None = None

    @classmethod
    def of(cls, node: Node) -> Loop:
        """The groups of a loop."""
        settings = dict(node.attrs)
        body, n, m = settings.pop("body"), settings.pop("carries"), settings.pop("sequences", 0)
        predicate = settings.pop("predicate", None)
        assert predicate is None or predicate.params == body.params
        pairs = list(map(LoopOperand, body.params, node.inputs))
        return cls(
            node.op,
            settings,
            tuple(Carry(*pair, y) for pair, y in zip(pairs[:n], body.outputs, strict=False)),
            tuple(pairs[n : n + m]),
            tuple(pairs[n + m :]),
            body.outputs[n:],
            predicate and predicate.outputs[0],
        )

    @property
    def params(self) -> Groups[Node]:
        """The params of the body."""
        groups = (self.carries, self.sequences, self.captured)
        return Groups(*[tuple([x.param for x in group]) for group in groups])

    @property
    def operands(self) -> Groups[Node]:
        """The nodes outside of the loop that the params stand for."""
        values = [tuple([x.value for x in group]) for group in (self.sequences, self.captured)]
        return Groups(tuple([x.start for x in self.carries]), *values)

    @property
    def updates(self) -> tuple[Node, ...]:
        """The new values of the carries."""
        return tuple([x.update for x in self.carries])

    @property
    def outputs(self) -> tuple[Node, ...]:
        """The outputs of the body: new carries, then results."""
        return (*self.updates, *self.results)

    @property
    def roots(self) -> tuple[Node, ...]:
        """All that a step computes, the condition included."""
        return self.outputs if self.condition is None else (*self.outputs, self.condition)

    def with_roots(self, roots: Iterable[Node]) -> Loop:
        """The loop whose steps compute other `roots`, in the same order."""
        rest = iter(roots)
        carries = tuple(carry._replace(update=next(rest)) for carry in self.carries)
        results = tuple(islice(rest, len(self.results)))
        return self._replace(carries=carries, results=results, condition=next(rest, None))

    def build(self, operands: Iterable[Node] | None = None) -> Node:
        """The node of these groups, on other operands if they are given."""
        params = self.params.all
        attrs: dict[str, Any] = {"body": Graph(params, self.outputs), "carries": len(self.carries)}
        if self.condition is None:
            attrs["sequences"] = len(self.sequences)
        else:
            attrs = {"predicate": Graph(params, (self.condition,)), **attrs}
        inputs = self.operands.all if operands is None else tuple(operands)
        return Node(self.op, inputs, Attrs({**attrs, **self.settings}))


@op(axes=Opaque(), traits=[Trait.MAY_RAISE])
def switch(index: TensorType, *operands: TensorType, branches: tuple[Graph, ...]) -> TupleType:
    """The results of branch number `index` of the operands; no other branch is computed."""
    require(
        index.dtype.kind in "iu" and not index.shape,
        f"the number of the branch is {index}, not one integer",
        "",
        GraphTypeError,
    )
    first, *rest = branches
    for branch in branches:
        accept(branch, operands)
    types = [y.type for y in first.outputs]
    for branch in rest:
        pairs = zip(types, branch.outputs, strict=True)
        types = [agree_in_type(a, b.type, "the branches differ in their results") for a, b in pairs]
    return TupleType(tuple(types))


def given_to_bodies(node: Node, items: Sequence[Item]) -> Sequence[Item]:
    """Those of the items for a node's operands that stand for params of its bodies.

    No branch is given the number by which it is chosen.
    """
    return items[1:] if node.op is switch else items


@op(axes=Opaque(), said="checkpoint")
def call(*operands: TensorType, body: Graph) -> TupleType:
    """The results of a body; a pullback saves nothing but the operands."""
    accept(body, operands)
    return TupleType(tuple(y.type for y in body.outputs))


@op(axes=Opaque(), said="custom_pullback")
def custom(
    *operands: TensorType,
    body: Graph,
    rule: Graph,
    forward: Graph | None,
    apart: tuple[Axes, ...],
) -> TupleType:
    """The results of a body, with a derivative of its own.

    The pullback is `rule`: (*operands, *results, *cts) -> cts of operands. The pushforward is
    `forward`, if that is given: (*operands, *results, *tangents) -> tangents of results. Both treat
    elements along some axes as independent, like the members of a batch: `apart` lists these axes,
    in the same order for each operand and then each result.
    """
    accept(body, operands)
    results = tuple(y.type for y in body.outputs)
    accept(rule, (*operands, *results, *results))
    for x, ct in zip(operands, rule.outputs, strict=True):
        agree_in_type(x, ct.type, f"the cotangent of {x} cannot be {ct.type}")
    if forward is not None:
        accept(forward, (*operands, *results, *operands))
        for y, tangent in zip(results, forward.outputs, strict=True):
            agree_in_type(y, tangent.type, f"the tangent of {y} cannot be {tangent.type}")
    return TupleType(results)


@op(axes=Opaque(), said="custom_pullback")
def linear(
    *operands: TensorType, body: Graph, back: Graph | None, moving: int, apart: tuple[Axes, ...]
) -> TupleType:
    """The results of a body that is linear in its last `moving` operands.

    Its graph need not show that: the steps of a loop in it may depend on their values. `back`, if
    it is given, computes the cotangents of these operands from the other operands and the
    cotangents of the results; `apart` is as for `custom`.
    """
    accept(body, operands)
    return TupleType(tuple(y.type for y in body.outputs))
