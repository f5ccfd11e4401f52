"""Loops that may never end for members of a batch that take no part.

A branch that is chosen for each element is computed for all elements, and so is a step of a batched
loop. A `while_loop` inside would wait for members of the other branch as well, and for these it may
never end. So only members that take part decide whether it goes on. Where these cannot be told
apart from the others it is refused, unless a counter ends it.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphcore.frontend.core.base import refusal
from graphcore.ir import Node, reached, toposort
from graphcore.ir.transform import substitute
from graphcore.ops import control, elementwise, leaf, named
from graphcore.ops.control import Loop

from .batch_members import Served, members_of, peeled


def may_not_end(node: Node) -> bool:
    """Whether a node is a loop that no counter ends, or holds one."""
    held = [x for graph in control.computed_bodies(node) for x in graph.every_node()]
    loops = [x for x in (node, *held) if x.op is control.while_loop]
    return not all(is_counted(Loop.of(x)) for x in loops)


def is_counted(loop: Loop) -> bool:
    """Whether one of the tests that each step must pass is of a counter, which steps add to."""
    counters = {x.param: x.update for x in loop.carries}
    for test in tests(loop):
        if test.op is elementwise.less:
            count, bound = peeled(test.inputs[0]), test.inputs[1]
            stays = counters.keys().isdisjoint(toposort([bound]))
            if stays and count in counters and grows(counters[count], count):
                return True
    return False


def tests(loop: Loop) -> Iterator[Node]:
    """The conditions that must all hold for a member to go on."""
    assert loop.condition is not None
    waiting = [loop.condition]
    while waiting:
        x = waiting.pop()
        if x.op in (named.any_, elementwise.logical_and, elementwise.bitwise_and):
            waiting += x.inputs
        else:
            yield x


def grows(update: Node, param: Node) -> bool:
    """Whether a carry becomes itself and a positive number more, where its member goes on."""
    update = peeled(update)
    while update.op is elementwise.where and peeled(update.inputs[2]) is param:
        update = peeled(update.inputs[1])
    added = [x.attrs["value"].item() for x in update.inputs if x.op is leaf.full]
    return update.op is elementwise.add and param in update.inputs and any(n > 0 for n in added)


def ended_by(loop: Loop, mask: Node, served: Served) -> Loop:
    """The loop that goes on only for members of the mask, which is one of its params.

    `served` are the dims of its operands that tell members apart.
    """
    if is_counted(loop):
        return loop
    going, dims = members_of(loop)
    known = dict(zip(loop.params.all, served, strict=True))
    deciding = deciding_params(loop)
    apart: set[str] = set()
    for dim in mask.type.dims:
        own = [known[x] for x in deciding if dim in x.type.dims]
        if own and not (dim in dims and all(some is not None and dim in some for some in own)):
            reason = (
                f"a while_loop in it is computed for all members along {dim!r} together, so that "
            )
            reason += "those that take no part may never let it end"
            cure = f"use gc.map(function, xs, {dim!r}), which takes one member at a time, let its "
            cure += f"condition have the dim {dim!r}, give max_steps=, or move it outside"
            raise refusal(reason, cure=cure)
        if own:
            apart.add(dim)
    away = tuple(dim for dim in mask.type.dims if dim not in apart)
    some = named.any_(mask, dims=away) if away else mask
    return loop.with_roots(substitute(loop.roots, {going: elementwise.logical_and(going, some)}))


def deciding_params(loop: Loop) -> list[Node]:
    """The params that the condition is computed from, in this step or in later ones."""
    assert loop.condition is not None
    updates = {x.param: x.update for x in loop.carries}
    found = reached([loop.condition], lambda x: (updates[x],) if x in updates else x.inputs)
    return [x for x in found if x in loop.params.all]
