"""Carries that only add up, computed after their loop: total + f(a[t]) -> sum of f(a) over steps.

What only they need is computed after the loop as well, for all steps at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from graphcore.ir.node import Node, substitute, toposort
from graphcore.ir.sizes import Size, upper_bound
from graphcore.ops import elementwise, tensor
from graphcore.ops.control import spoken

from .loops import Loop, found_inside
from .stacked import LEAVES, REPEATED, STACKED, einsum_letter, inside, invariants

Varies = Callable[[Node], bool]
"""Whether a value differs from step to step."""
Total = Callable[[Node, Loop], Node]
"""(the loop as it became, its parts) -> what a carry that only adds up has added up"""


def all_steps(step: Node, node: Node, loop: Loop) -> Node:
    """The values of one result of all steps."""
    now = list(loop.steps.values())
    at = list(loop.steps).index(step) if step in loop.steps else now.index(step)
    return node[len(loop.start) + at]


def summed(loop: Loop) -> dict[Node, Total]:
    """How carries that only add up are computed after the loop, from what they add up.

    What only they need is computed after it as well, for all steps at once.
    """
    roots = inside(loop)
    used = Counter(roots)
    used.update(x for node in toposort(roots) for x in node.inputs)
    added = {param: addend(param, y, used) for param, y in loop.update.items()}
    terms = {param: term for param, term in added.items() if term is not None}
    others = [y for param, y in loop.update.items() if param not in terms]
    needed = set(toposort((*others, *loop.steps.values(), *loop.tests)))
    fixed = invariants(loop)

    def varies(x: Node) -> bool:
        return x not in fixed and x.op not in LEAVES

    late = computed_late(loop, terms.values(), needed, varies)
    totals: dict[Node, Total] = {}
    while found := {
        param: total
        for param, term in terms.items()
        if param not in totals and (total := total_of(loop, term, late, varies)) is not None
    }:  # what one of them has recorded may be all that another needs
        totals |= found
    return totals


def computed_late(
    loop: Loop, terms: Iterable[Node], needed: set[Node], varies: Varies
) -> set[Node]:
    """The nodes that no step needs, and that can be computed of all steps without more room."""
    local = found_inside(loop.node.attrs["body"])
    late: set[Node] = set()
    for node in toposort(terms):
        own = [x.inputs[0] if x.op in REPEATED else x for x in node.inputs if varies(x)]
        if not own or node in needed or node.op not in STACKED:
            continue
        if local.isdisjoint(spoken(node)) and (node.op in REPEATED or no_more([node], own)):
            late.add(node)
    return late


def total_of(loop: Loop, term: Node, late: set[Node], varies: Varies) -> Total | None:
    """How one term is added up, from as little recorded as it takes; None if it is not worth it."""
    views = []
    while term.op in (tensor.reshape, tensor.transpose, elementwise.negative):
        views.append(term)
        (term,) = term.inputs
    contracts = term.op in (tensor.einsum, tensor.sum_)
    parts = [x for x in term.inputs if varies(x)] if contracts or term in late else [term]
    if not parts or not varies(term) or not (contracts or term.type.dtype.kind in "fc"):
        return None
    deep = {part: sources_of(part, loop, late, varies) for part in parts}
    shallow = {x: y if no_more(unrecorded(loop, y), [x]) else {x: None} for x, y in deep.items()}
    for chosen in (deep, shallow):
        given = {x: None for sources in chosen.values() for x in sources}
        new = unrecorded(loop, given)
        if no_more(new, parts if contracts else [x for x in given if x not in new]):
            break
    else:
        if not contracts:
            return None
    loop.steps.update((x, x) for x in new)

    def total(node: Node, loop: Loop) -> Node:
        at_once = {x: loop.walked.get(x) or all_steps(x, node, loop) for x in given}
        for x in above(given, parts if contracts else [term], varies):
            xs, own = stacked_inputs(x, at_once, loop)
            at_once[x] = STACKED[x.op](x, xs, own, loop.attrs["length"])
        if contracts:
            found = over_steps(term, *stacked_inputs(term, at_once, loop))
        else:
            found = tensor.sum_(at_once[term], axes=(0,))
        for view in reversed(views):
            found = Node(view.op, (found,), view.attrs)
        return found

    return total


def sources_of(part: Node, loop: Loop, late: set[Node], varies: Varies) -> dict[Node, None]:
    """The nearest nodes below that steps must give, or that are walked."""
    found: dict[Node, None] = {}
    stack, seen = [part], {part}
    while stack:
        x = stack.pop()
        if x in loop.walked or x not in late:
            found[x] = None
            continue
        below = [y for y in x.inputs if varies(y) and y not in seen]
        seen.update(below)
        stack += below
    return found


def above(given: Iterable[Node], roots: Iterable[Node], varies: Varies) -> list[Node]:
    """What is made of given nodes, and of what does not vary, on the way to `roots`."""
    seen, made = set(given), set()
    stack = list(roots)
    while stack:
        x = stack.pop()
        if x not in seen and varies(x):
            seen.add(x)
            made.add(x)
            stack += x.inputs
    return [x for x in toposort(roots) if x in made]


def unrecorded(loop: Loop, some: Iterable[Node]) -> list[Node]:
    """Those of some nodes whose values of all steps are not there yet."""
    there = {*loop.walked, *loop.steps, *loop.steps.values()}
    return [x for x in some if x not in there]


def no_more(some: Iterable[Node], others: Iterable[Node]) -> bool:
    """Whether some values take provably no more room than others."""
    room: Size = 0
    for x in some:
        room = room + x.type.count
    for x in others:
        room = room - x.type.count
    most = upper_bound(room)
    return most is not None and most <= 0


def stacked_inputs(
    node: Node, at_once: dict[Node, Node], loop: Loop
) -> tuple[list[Node], list[bool]]:
    """The operands of a node outside of the loop, and which of them are of all steps."""
    xs = [at_once.get(x) or substitute([x], loop.captured)[0] for x in node.inputs]
    return xs, [x in at_once for x in node.inputs]


def over_steps(node: Node, xs: Sequence[Node], stacked: Sequence[bool]) -> Node:
    """A contraction or a sum, over the first axis of stacked operands as well."""
    if node.op is tensor.sum_:
        return tensor.sum_(xs[0], axes=(0, *[axis + 1 for axis in node.attrs["axes"]]))
    new, pairs = einsum_letter(node), zip(node.attrs["operands"], stacked, strict=True)
    operands = tuple((new, *letters) if own else letters for letters, own in pairs)
    return tensor.einsum(*xs, operands=operands, result=node.attrs["result"])


def addend(param: Node, update: Node, used: Counter[Node]) -> Node | None:
    """What each step adds to a carry that nothing else depends on."""
    if used[param] != 1 or used[update] != 1:
        return None
    if update.op not in (elementwise.add, elementwise.subtract) or param not in update.inputs:
        return None
    left, right = update.inputs
    if update.op is elementwise.subtract:
        if right is param:
            return None
        right = -right
    return right if left is param else left
