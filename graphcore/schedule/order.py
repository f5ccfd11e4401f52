"""The order of steps, which a graph leaves open and a backend needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from graphcore.ir import Graph, Node, Trait
from graphcore.ir.graph import bodies_of, has_effect, unknowns_of
from graphcore.ir.sizes import unknowns
from graphcore.ops import control, leaf

from .buffers import roots

Finds: TypeAlias = Mapping[str, Sequence[Node]]
"""The nodes that find sizes while a program runs, by the names of the sizes."""

SIZE_FOUND = {control.while_loop: "trips", leaf.as_size: "size"}
"""The attr that names the size that nodes of an op find."""


def finders(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """The nodes that find sizes: loops their trip counts, and values that are sizes.

    Several loops find one count where a loop is computed again, as for a derivative.
    """
    found: dict[str, list[Node]] = {}
    for node in nodes:
        if (attr := SIZE_FOUND.get(node.op)) is not None and node.attrs[attr] is not None:
            for name in unknowns(node.attrs[attr]):
                found.setdefault(name, []).append(node)
    return found


def found_first(node: Node, finds: Finds) -> list[Node]:
    """The nodes that must have run before a node, as they find sizes that it reads.

    Of several that find one size, this is the first; each of the others finds it anew.
    """
    if not finds:
        return []
    read = sizes_in(node)
    return [first[0] for name, first in finds.items() if name in read and node not in first]


def sizes_in(node: Node) -> set[str]:
    """The unknown sizes in a node, and in its bodies, but for those found there."""
    found = unknowns_of(node)
    for body in bodies_of(node):
        inside = body.every_node()
        found |= set[str]().union(*map(unknowns_of, inside)) - finders(inside).keys()
    return found


def in_order(nodes: Sequence[Node]) -> Sequence[Node]:
    """Nodes in an order in which a size is found before anything that depends on it.

    Nodes with an effect, and those that hold some, come in the order in which they were written.
    """
    finds = finders(nodes)
    effects = [node for node in nodes if has_effect(node)]
    if not finds and len(effects) < 2:
        return nodes
    effects.sort(key=first_effect)
    done: dict[Node, None] = {}
    for root in (*effects, *nodes):
        stack = [root]
        while stack:
            node = stack[-1]
            needed = [*node.inputs, *found_first(node, finds)]
            if waiting := [x for x in needed if x not in done]:
                stack.extend(waiting)
            else:
                done[stack.pop()] = None
    return list(done)


def first_effect(node: Node) -> int:
    """The number of a node with an effect, or the first such number in its bodies."""
    if Trait.EFFECT in node.op.traits:
        return int(node.attrs["number"])
    inside = [x for graph in bodies_of(node) for x in graph.nodes() if has_effect(x)]
    return min(map(first_effect, inside))


class BodyOrder(NamedTuple):
    """The order of a loop's body, and the carries that live in one array.

    The new value of such a carry is the old one, or is written over it.
    """

    nodes: Sequence[Node]
    in_place: set[Node]


def order_of_body(body: Graph, carries: int) -> BodyOrder:
    """The order in which updates of a carry come after all readers of values they write over."""
    new = dict(zip(body.params[:carries], body.outputs, strict=False))
    chains = {param: updates(y, param) for param, y in new.items()}
    nodes: Sequence[Node] = body.nodes()
    for chain in chains.values():
        for update in chain:
            late = {update}
            for node in nodes:
                if not late.isdisjoint(node.inputs):
                    late.add(node)
            nodes = sorted(nodes, key=late.__contains__)
    nodes = in_order(nodes)
    root, step = roots(nodes), {node: i for i, node in enumerate(nodes)}
    readers: dict[Node, list[Node]] = {}
    for node in nodes:
        for x in node.inputs if Trait.VIEW not in node.op.traits else ():
            readers.setdefault(root[x], []).append(node)
    held = {root[y] for y in body.outputs}
    in_place = {param for param, y in new.items() if y is param}
    for param, chain in chains.items():
        alone = chain and all(
            old not in held
            and readers[old].count(update) == 1
            and all(step[reader] <= step[update] for reader in readers[old])
            for old, update in pairwise((param, *chain))
        )
        if alone:
            in_place.add(param)
    return BodyOrder(nodes, in_place)


def updates(y: Node, param: Node) -> list[Node]:
    """The updates of positions that make `y` from a param, in order; none if other ops do."""
    found: list[Node] = []
    while Trait.UPDATES in y.op.traits and y.type is param.type:
        found.append(y)
        y = y.inputs[0]
    return found[::-1] if y is param else []
