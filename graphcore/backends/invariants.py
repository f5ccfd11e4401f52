"""What a target can rely on beside the contract of a stage; `pytest --checked` holds passes to it.

Each invariant is a function of the graph before a pass and the one after it, which gives words for
what is broken. Its docstring is the invariant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from inspect import unwrap
from itertools import zip_longest
from typing import TypeAlias

from graphcore.ir import Graph, Trait
from graphcore.ir.errors import ContractError
from graphcore.ir.graph import unknowns_of
from graphcore.ir.node import infer_anew
from graphcore.ir.trace import rule_name
from graphcore.ir.types import fits
from graphcore.ops import autodiff, control, leaf
from graphcore.rewrites.pipeline import Stage
from graphcore.rewrites.shared_factors import factor_before_loops
from graphcore.schedule.order import finders

Invariant: TypeAlias = Callable[[Graph, Graph], Iterator[str]]


def types(before: Graph, after: Graph) -> Iterator[str]:
    """The rule of its op gives the type of each node, and what the node needs of unknown sizes."""
    known = () if after is before else before.every_node()
    for node in {*after.every_node()}.difference(known):
        type, needs = infer_anew(node.op, node.inputs, node.attrs)
        if (type, needs) != (node.type, node.needs):
            yield f"{node!r} at {node.origin}: its rule says {type}, and {needs} of sizes"


def ends(before: Graph, after: Graph) -> Iterator[str]:
    """Params and outputs keep their number, order and types; lowering alone drops their dims."""
    pairs = [*zip_longest(before.params, after.params), *zip_longest(before.outputs, after.outputs)]
    for x, y in pairs:
        if not (x and y and (fits(x.type, y.type) or fits(x.type.plain(), y.type))):
            yield f"{y!r} takes the place of {x!r}"


def closed(before: Graph, after: Graph) -> Iterator[str]:
    """A graph reads no inputs but its params: what a body captures is an operand of its node."""
    free = {*leaf.inputs_among(after.nodes())}.difference(after.params)
    yield from (f"{x!r} named {x.attrs['name']!r} is free in {after!r}" for x in free)
    if len({*after.params}) < len(after.params):
        yield f"two params of {after!r} are one"
    for body in after.bodies():
        yield from closed(body, body)


def sizes(before: Graph, after: Graph) -> Iterator[str]:
    """An unknown size is one of the program, or a node of the graph finds it."""
    if lost := sizes_read(after) - sizes_read(before):
        yield f"no node finds the sizes {sorted(lost)}"


def sizes_read(graph: Graph) -> set[str]:
    """The unknown sizes in a graph that no node of it finds."""
    nodes = [*graph.every_node()]
    return set[str]().union(*map(unknowns_of, nodes)) - finders(nodes).keys()


def calls(before: Graph, after: Graph) -> Iterator[str]:
    """What is inside of a `call` is computed there alone: no call comes to have more operands.

    Only derivatives make calls: these compute again what no one saved.
    """
    was, now = (
        sorted([len(x.inputs) for x in graph.every_node() if x.op is control.call], reverse=True)
        for graph in (before, after)
    )
    more = any(new > old for old, new in zip_longest(was, now, fillvalue=-1))
    if more and autodiff.LAZY.isdisjoint(before.ops()):
        yield f"calls of {was} operands become calls of {now}"


def effects(before: Graph, after: Graph) -> Iterator[str]:
    """No effect is new, nor is one moved into or out of a loop or a branch.

    Its attr `number` is its place in the order of all.
    """
    if new := {*effects_in(after)}.difference(effects_in(before)):
        yield f"{sorted(new)} are new"


def effects_in(graph: Graph, around: tuple[str, ...] = ()) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The number of each effect, and the loops and branches around it."""
    for node in graph.nodes():
        if Trait.EFFECT in node.op.traits:
            yield node.attrs["number"], around
        own = (node.op.name,) * (node.op in control.LOOPS or node.op is control.switch)
        for body in control.computed_bodies(node):
            yield from effects_in(body, (*around, *own))


INVARIANTS: Sequence[Invariant] = types, ends, closed, sizes, calls, effects

EXCEPT = {factor_before_loops: calls}
"""What a pass breaks on purpose: a call in a loop is given the factors of its matrices."""


def verify(stages: Sequence[Stage]) -> None:
    """Refuse a compilation of which a stage breaks its contract or an invariant.

    Raises
    ------
    ContractError
        It names the stage, the pass, and what is broken.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": None})
    >>> verify(gc.compile([x], gc.grad(gc.exp(x).sum(), x)).passes)
    """
    before = first = stages[0].graph
    for stage in stages:
        after = stage.graph
        stage.contract.check(after, stage.name)
        change = unwrap(stage.change)
        laws = INVARIANTS if after is not before or stage is stages[0] else ()
        kept = [law for law in laws if law is not EXCEPT.get(change)]
        broken = [f"  {law.__name__}: {words}" for law in kept for words in law(before, after)]
        if stage is stages[-1] and Counter(effects_in(first)) != Counter(effects_in(after)):
            broken.append("  effects: the program has another number")
        if broken:
            head = f"stage {stage.name!r}, made by {rule_name(change)}, breaks"
            raise ContractError("\n".join([head, *broken]))
        before = after
