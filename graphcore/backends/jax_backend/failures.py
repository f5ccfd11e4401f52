"""What fails while a program runs, as numbers beside its results, and the words for it.

The record of a call holds the number of the site that failed first, two numbers that describe the
failure, the steps of the loops around the site, and the counts that sizes had. On a mesh it is
made by reductions alone: an index would gather from all devices. Loops carry it along where a step
may change it, and a `while_loop` ends once a site has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphcore.backends.errors import axis_of, in_step, reword
from graphcore.backends.failing import position_outside
from graphcore.ir import Graph, Node
from graphcore.ir.errors import GraphError
from graphcore.ir.graph import bodies_of
from graphcore.ir.op import may_raise
from graphcore.ops import control, elementwise, leaf, outside
from graphcore.schedule.order import SIZE_FOUND

from .entries import Emission
from .host import KEPT
from .sizes import Sizes

SITE, FIRST, SECOND, REST = range(4)
"""Places in a record; the steps of loops come after these, then the counts of sizes."""


Words = Callable[[int, int], str]
"""What has failed, for the two numbers of a record."""


class MatrixError(ValueError):
    """A matrix without a result: the reason, and its place in the batch."""

    element: tuple[int, ...] = ()


class Site(NamedTuple):
    """Where a program may fail: the node, and the loops around it.

    An `axis` is that of a position, `batch` is the shape of a batch of matrices.
    """

    node: Node
    loops: tuple[Node, ...]
    reason: Words
    kind: type[Exception] = ValueError
    axis: int | None = None
    batch: tuple[int, ...] = ()

    def error(self, record: Sequence[int]) -> GraphError:
        """The refusal that a record describes."""
        node, first, second = self.node, int(record[FIRST]), int(record[SECOND])
        steps = zip(record[REST:], self.loops, strict=False)
        within = [in_step(int(step), loop) for step, loop in steps][::-1]
        if self.axis is not None:
            axes = node.attrs["axes"]
            unsigned = node.inputs[axes.index(self.axis) - len(axes)].type.dtype.kind == "u"
            least = 0 if unsigned else -second
            words = position_outside(axis_of(node, self.axis), first, second, least)
            return reword(IndexError(), node, *words, *within)
        if node.op is outside.callback_:
            return raised(node, first, *within)
        error = self.kind(self.reason(first, second))
        if isinstance(error, MatrixError) and self.batch:
            error.element = tuple(map(int, np.unravel_index(first, self.batch)))
        return reword(error, node, "", "", *within)


def raised(node: Node, number: int, *within: str) -> GraphError:
    """The refusal for an exception that a function of the user's has raised."""
    error = KEPT.take(number)
    made = reword(error, node, "", error.cure, *within)
    made.__cause__ = error.__cause__ or error
    return made


def can_fail(graph: Graph) -> bool:
    """Whether a graph may change the record: an op refuses values, or a count is found."""
    return any(map(changes_record, graph.every_node()))


def changes_record(node: Node) -> bool:
    """Whether a node may change the record, its bodies aside."""
    integers = node.op is elementwise.power and node.type.dtype.kind == "i"
    needs = node.op is leaf.after and bool(node.attrs["needs"])
    found = SIZE_FOUND.get(node.op)
    counts = found is not None and node.attrs[found] is not None
    raises = may_raise(node) and not has_every_branch(node)
    return raises or integers or needs or counts


def has_every_branch(node: Node) -> bool:
    """Whether a node chooses between two branches by a bool, so that there is no other one."""
    if node.op is not control.switch or len(node.attrs["branches"]) != 2:
        return False
    index = node.inputs[0]
    return index.op is elementwise.cast and index.inputs[0].type.dtype.kind == "b"


def depth_of(graph: Graph) -> int:
    """How many loops are inside each other at most."""
    return max(
        [
            (node.op in control.LOOPS) + max(map(depth_of, bodies_of(node)), default=0)
            for node in graph.nodes()
        ],
        default=0,
    )


class Failures:
    """The record of a tracing, and the sites that may change it.

    Parameters
    ----------
    depth
        How many loops are inside each other at most.
    counted
        The names of the sizes that are counted while the program runs.
    """

    def __init__(self, depth: int, counted: Sequence[str]) -> None:
        self.sites: list[Site] = []
        self.loops: list[Node] = []
        self.counted = [*counted]
        self._counts = REST + depth
        self.record: Any = jnp.zeros(self._counts + len(counted), jnp.int64)

    @property
    def failed(self) -> Any:
        """Whether a site has failed."""
        return self.record[SITE] != 0

    def note(self, flag: Any, site: Site, first: Any = 0, second: Any = 0) -> None:
        """Let a site have failed where a flag holds, unless another one has before."""
        self.sites.append(site)
        new = self.record
        for place, number in ((SITE, len(self.sites)), (FIRST, first), (SECOND, second)):
            new = with_number(new, place, number)
        self.record = jnp.where(flag & ~self.failed, new, self.record)

    def needs(self, name: str, count: Any) -> None:
        """Note a count: the greatest of those that one size has had says what room it needs."""
        place = self._counts + self.counted.index(name)
        self.record = with_number(self.record, place, jnp.maximum(self.record[place], count))

    def count(self, record: Sequence[int], name: str) -> int:
        """The greatest count of a size, by a record."""
        return int(record[self._counts + self.counted.index(name)])

    def stepped(self, before: Any, step: Any) -> None:
        """Note the number of a step of the innermost loop, if something has failed in it."""
        if self.record is not before:
            new = (before[SITE] == 0) & self.failed
            place = REST + len(self.loops) - 1
            self.record = jnp.where(new, with_number(self.record, place, step), self.record)


def with_number(record: Any, place: int, number: Any) -> Any:
    """A record with a number at a place: a choice, which XLA joins with those before and after."""
    there = lax.iota(jnp.int64, record.size) == place
    return jnp.where(there, jnp.asarray(number).astype(jnp.int64), record)


def first_true(flags: Any) -> Any:
    """The number of the first flag that holds, or of none the count."""
    return jnp.min(jnp.where(flags.reshape(-1), numbered(flags), flags.size))


def numbered(values: Any) -> Any:
    """The numbers of values, from 0."""
    return lax.iota(jnp.int32 if values.size < 2**31 else jnp.int64, values.size)


def first_outside(positions: Any, size: Any, meshed: bool) -> tuple[Any, Any]:
    """Whether a position is outside of an axis, and the first that is.

    One device reads it. On a mesh that would gather all positions: there it is the sum of those
    with its number.
    """
    signed = np.dtype(positions.dtype).kind == "i"
    wide = positions.astype(jnp.int64 if signed else jnp.uint64)
    size = jnp.asarray(size).astype(wide.dtype)
    which = first_true((wide >= size) | (wide < -size) if signed else wide >= size)
    flat = positions.reshape(-1)
    if meshed:
        at = jnp.sum(jnp.where(numbered(flat) == which, flat, 0))
    else:
        at = flat[jnp.minimum(which, positions.size - 1)]
    return which < positions.size, at.astype(jnp.int64)


class Tracing(Emission, Protocol):
    """A graph while JAX traces it: what loops, branches and padding ask of it, beside the rest."""

    found: Sizes
    failures: Failures

    def note(self, node: Node, flag: Any, site: Site, first: Any = 0, second: Any = 0) -> None:
        """Let the call fail at a site where a flag holds, unless the node checks nothing."""

    def site(self, node: Node, reason: str = "", kind: type[Exception] = ValueError) -> Site:
        """A site in the loops that are traced now; "{}" in the reason stands for a number."""

    def body(self, graph: Graph, given: Sequence[Any]) -> list[Any]:
        """The outputs of a body."""
