"""Early ends of a kernel: its record of a failure, the error made of that, and signals.

The record holds the number of a site, then numbers that describe the failure, such as a position
and the size of its axis, then the steps of the loops around the site, outermost first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np

from graphcore.backends.errors import axis_of
from graphcore.backends.failing import position_outside
from graphcore.backends.numpy_backend import KernelError
from graphcore.backends.numpy_backend.linalg import MatrixError
from graphcore.ir import Graph, Node, Size, Trait, TupleType
from graphcore.ir.axes import Reduces
from graphcore.ir.sizes import count, evaluate, unknowns
from graphcore.ops import control
from graphcore.ops.schedule import kernel
from graphcore.schedule.regions import in_place

from .builder import TRUE, Builder, Value, integer
from .entrance import FULL, Kernel


class Call(NamedTuple):
    """A kernel that another one calls, and the loops around the call.

    The steps of these are in the record from the word `begin` on.
    """

    node: Node
    loops: tuple[Node, ...]
    begin: int


class Site(NamedTuple):
    """Where a kernel may end early: a node, and the loops around it.

    `calls` are the calls of kernels around these, the outermost first. Without a reason, a position
    is outside of an axis, which is one of those that `node` indexes.
    """

    node: Node
    loops: tuple[Node, ...]
    numbers: int
    axis: int = 0
    reason: str = ""
    calls: tuple[Call, ...] = ()

    @property
    def words(self) -> int:
        """How many words of the record a failure at this site fills."""
        if self.calls:
            return self.calls[0].begin + len(self.calls[0].loops)
        return 1 + self.numbers + len(self.loops)


@dataclass(frozen=True, eq=False)
class Machine:
    """A kernel that has been made of a graph, and the sites of its failures.

    `calls` are the kernels whose code it calls, which have to live as long.
    """

    kernel: Kernel
    graph: Graph
    sites: Sequence[Site]
    calls: Sequence[Machine]

    def failed(self, record: list[int], known: dict[str, int]) -> KernelError:
        """The error that the record of the kernel describes."""
        return report(self.graph, self.sites, record, known)


class Around(NamedTuple):
    """A loop around code, the number of its step in errors, and how many steps came before."""

    loop: Node
    step: Value
    made: Value


class Failures:
    """The sites of a kernel, and the loops around the code being written."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.around: list[Around] = []

    @property
    def words(self) -> int:
        """How many words the record has."""
        return max([site.words for site in self.sites], default=1)

    @contextmanager
    def within(self, loop: Node, step: Value, made: Value) -> Iterator[None]:
        """A context in which all code that is written belongs to a step of a loop."""
        self.around.append(Around(loop, step, made))
        yield
        self.around.pop()

    def is_first(self, b: Builder, level: int) -> Value:
        """Whether all loops inside of a level are in their first steps.

        If not, code here has read before what is known at that level. True as well within a branch
        that the first step of a loop need not have taken.
        """
        inside, holds = [each.made for each in self.around if each.made.level > level], TRUE
        if any(b.floors[-1] > made.level for made in inside):
            return TRUE
        for made in inside:
            holds = b.both(holds, b.op("icmp eq", made, integer(0)))
        return holds

    def outside(
        self, b: Builder, wrong: Value, node: Node, axis: int, at: Value, size: Value
    ) -> None:
        """Leave where the position `at` is outside of an axis; each lane has its own position."""
        self._leave(b, wrong, Site(node, self.loops(), 2, axis), (at, size))

    def failed(
        self, b: Builder, wrong: Value, node: Node, reason: str, index: Sequence[Value] = ()
    ) -> None:
        """Leave where there is no result, for a reason, of the matrix at an index of the batch."""
        self._leave(b, wrong, Site(node, self.loops(), len(index), 0, reason), index)

    def called(
        self, b: Builder, status: Value, node: Node, sites: Sequence[Site], words: int
    ) -> None:
        """Leave if a called kernel has, which has these sites, and a record of so many words."""
        k, first = b.name(""), len(self.sites)
        call = Call(node, self.loops(), words)
        self.sites += [site._replace(calls=(call, *site.calls)) for site in sites]
        b.do(f"%ended{k} = icmp ne i64 {status.text}, 0")
        b.do(f"br i1 %ended{k}, label %fail{k}, label %fine{k}")
        b.label(f"fail{k}")
        if sites:
            b.do(f"%its{k} = load i64, ptr %record")
            b.do(f"%own{k} = icmp sge i64 %its{k}, 0")  # FULL is no site
            b.do(f"%moved{k} = add i64 %its{k}, {first}")
            b.do(f"%site{k} = select i1 %own{k}, i64 %moved{k}, i64 %its{k}")
            b.do(f"store i64 %site{k}, ptr %record")
            for n, step in enumerate(self.steps(), words):
                b.do(f"%at{k}.{n} = getelementptr i64, ptr %record, i64 {n}")
                b.do(f"store i64 {step.text}, ptr %at{k}.{n}")
        b.do(f"ret i64 {status.text}")
        b.label(f"fine{k}")

    def loops(self) -> tuple[Node, ...]:
        """The loops around."""
        return tuple([each.loop for each in self.around])

    def steps(self) -> list[Value]:
        """The steps of the loops around."""
        return [each.step for each in self.around]

    def _leave(self, b: Builder, wrong: Value, site: Site, numbers: Sequence[Value]) -> None:
        if wrong.text == "false":
            return
        self.sites.append(site)
        k, some = b.name(""), b.any_lane(wrong)
        b.do(f"br {some.typed}, label %fail{k}, label %fine{k}", some)
        b.read(wrong, *numbers, *self.steps())
        b.label(f"fail{k}")
        if wrong.wide:
            bits = f"i{wrong.wide}"
            b.declared[f"@llvm.cttz.{bits}"] = f"declare {bits} @llvm.cttz.{bits}({bits}, i1)"
            b.do(f"%bits{k} = bitcast {wrong.typed} to {bits}")
            b.do(f"%lane{k} = call {bits} @llvm.cttz.{bits}({bits} %bits{k}, i1 false)")
        words = [str(len(self.sites) - 1)]
        for n, x in enumerate((*numbers, *self.steps())):
            if x.wide:
                b.do(f"%word{k}.{n} = extractelement {x.typed}, i{wrong.wide} %lane{k}")
            words.append(f"%word{k}.{n}" if x.wide else x.text)
        for n, text in enumerate(words):
            b.do(f"%at{k}.{n} = getelementptr i64, ptr %record, i64 {n}")
            b.do(f"store i64 {text}, ptr %at{k}.{n}")
        b.do("ret i64 1")
        b.label(f"fine{k}")


def work(body: Graph, found: frozenset[str] = frozenset()) -> Size:
    """About how many values a step computes, those of loops within it left out.

    `found` are sizes that are not known where the loop begins; they count as nothing.
    """
    total: Size = 1
    for node in body.nodes():
        if node.op is kernel:
            total = total + work(node.attrs["body"], found)
        elif node.inputs and not isinstance(node.type, TupleType):
            shape = node.type.shape
            if Trait.PRODUCT in node.op.traits:
                shape = (*shape, node.inputs[0].type.shape[-1])
            elif isinstance(node.op.axes, Reduces):
                shape = node.inputs[0].type.shape
            if not any(unknowns(size) & found for size in shape):
                total = total + count(shape)
    return total


def report(
    graph: Graph, sites: Sequence[Site], record: Sequence[int], known: Mapping[str, int]
) -> KernelError:
    """The error that NumPy would raise for a record, at a node of the graph."""
    if record[0] == FULL:
        error, node = without_memory(graph, dict(known))
        return KernelError(lambda _: (error, "", ""), node)
    site = sites[record[0]]
    numbers = record[1:][: site.numbers]
    around = [(len(site.calls), site.loops, 1 + site.numbers)]
    around += [(i, call.loops, call.begin) for i, call in enumerate(site.calls)][::-1]
    steps = [
        (outside(loop, site.calls[:depth]), step)
        for depth, loops, begin in around
        for loop, step in reversed(list(zip(loops, record[begin:], strict=False)))
    ]
    return KernelError(partial(said, site, numbers), outside(site.node, site.calls), steps)


def outside(node: Node, calls: Sequence[Call]) -> Node:
    """The node of the whole graph for a node in the body of the last of some calls."""
    for call in reversed(calls):
        node = in_place(call.node).get(node, node)
    return node


def said(site: Site, numbers: Sequence[int], node: Node) -> tuple[Exception, str, str]:
    """The error of a site, and its reason and cure if they are ours.

    `node` is the node of the whole graph which that of the site stands for.
    """
    if site.reason:
        return MatrixError(site.reason, tuple(numbers)), "", ""
    at, size = numbers
    if node.op is control.switch:
        return IndexError(f"there is no branch {at} among {size}"), "", ""
    axes = node.attrs["axes"]
    signed = node.inputs[-len(axes) + axes.index(site.axis)].type.dtype.kind == "i"
    axis = axis_of(node, site.axis)
    reason, cure = position_outside(axis, at, size, -size if signed else 0)
    return IndexError(reason), reason, cure


def without_memory(graph: Graph, known: Mapping[str, int]) -> tuple[Exception, Node | None]:
    """The error for a lack of memory, and a node whose values do not fit, else the largest node."""
    largest, bytes = None, -1
    for node in graph.every_node():
        if not node.inputs or Trait.VIEW in node.op.traits:
            continue
        for type in node.type.items if isinstance(node.type, TupleType) else [node.type]:
            with suppress(KeyError):  # a size that only a loop finds
                shape = [evaluate(size, known) for size in type.shape]
                try:
                    np.empty(shape, type.dtype)
                except (MemoryError, ValueError) as error:
                    return error, node
                if (its := prod(shape) * type.dtype.itemsize) > bytes:
                    largest, bytes = node, its
    return MemoryError("there is not enough memory for all values"), largest
