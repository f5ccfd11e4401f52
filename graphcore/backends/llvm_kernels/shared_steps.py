"""Which steps of a kernel threads share: those that its code for large sizes has in parts."""

from __future__ import annotations

from collections.abc import Mapping

from graphcore.ir import Graph, Node
from graphcore.ir.graph import bodies_of
from graphcore.ir.transform import keep_node, transform
from graphcore.ops.leaf import values
from graphcore.ops.schedule import kernel
from graphcore.schedule.regions import inline, sizes_needed, without_kernels

from . import counts_of, entrance, written
from .codegen import GraphWriter
from .nests import Check, Shares, Step
from .places import is_register
from .writer import Homes


def shares(body: Graph, unknowns: tuple[str, ...]) -> Shares:
    """The shares of a kernel that is called from outside, by nodes of its body without kernels."""
    counts = counts_of(body, frozenset(unknowns))
    long = [n for n in counts if not isinstance(n, int) or n >= entrance.HUGE_NEST]
    always = any(isinstance(n, int) for n in long)
    found = shares_of(body, unknowns, {}) if long else {}
    return {x: sure and always for x, sure in found.items()}


def shares_of(body: Graph, unknowns: tuple[str, ...], known: dict[Graph, Shares]) -> Shares:
    """Those of the code for large sizes; `known` are of kernels that others call as well."""
    if body not in known:
        _, program = written(body, unknowns, patient=True, writer=Outline)
        known[body] = without_calls(body, program.sharing.found, known)
    return known[body]


def without_calls(graph: Graph, own: Shares, known: dict[Graph, Shares]) -> Shares:
    """Shares of the nodes of a graph, or of loops in it, by nodes of the graph without kernels."""
    became: dict[Node, Node] = {}
    inline(graph, became)
    found = {became_of(x, became): sure for x, sure in own.items()}
    for node in graph.nodes():
        if node.op is kernel:
            body = node.attrs["body"]
            plain = without_kernels(body)
            there = dict(zip(plain.params, [became[x] for x in node.inputs], strict=True))
            transform(plain, keep_node, at=(), done=there)
            within = shares_of(body, sizes_needed(body), known)
            found |= {became_of(x, there): sure for x, sure in within.items()}
            continue
        for inner in bodies_of(node):
            found |= without_calls(inner, own, known)
    return found


def became_of(x: Node | Check, became: Mapping[Node, Node]) -> Node | Check:
    """What takes the place of a value, or of a check of positions."""
    return Check(became.get(x.node, x.node)) if isinstance(x, Check) else became.get(x, x)


class Outline(GraphWriter):
    """A writer of one kernel alone, whose calls of others it leaves out."""

    def step(self, step: Step, homes: Homes) -> None:
        """One step of a graph."""
        if not isinstance(step, Node) or step.op is not kernel:
            super().step(step, homes)
            return
        for y in values(step):
            new = self.home(y)
            self.know([y], [self.load(new) if is_register(y.type) else new])
