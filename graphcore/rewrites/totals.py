"""What no later step needs, computed after its loop from what the steps recorded.

added up       total + f(a[t])   -> f(a) of all steps at once, summed over them
results        y[t] = f(a[t])    -> f(a) of all steps at once
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from graphcore.ir.node import Node, substitute, toposort
from graphcore.ir.sizes import Size
from graphcore.ops import elementwise, tensor

from .loops import Loop, found_inside, speaks_of
from .stacked import (
    LEAVES,
    REPEATED,
    STACKED,
    count_of,
    einsum_letter,
    inside,
    invariants,
    no_more,
)

Varies = Callable[[Node], bool]
"""Whether a value differs from step to step."""
REDUCING = frozenset({tensor.sum_, tensor.max_, tensor.min_, tensor.any_, tensor.all_})
After = Callable[[Node, Loop], Node]
"""(the loop as it became, its parts) -> a value computed after it"""


def all_steps(step: Node, node: Node, loop: Loop) -> Node:
    """The values of one result of all steps."""
    now = list(loop.steps.values())
    at = list(loop.steps).index(step) if step in loop.steps else now.index(step)
    return node[len(loop.start) + at]


def summed(loop: Loop) -> dict[Node, After]:
    """How carries that only add up are computed from what they add up."""
    roots = inside(loop)
    used = Counter(roots)
    used.update(x for node in toposort(roots) for x in node.inputs)
    added = {param: addend(param, y, used) for param, y in loop.update.items()}
    terms = {param: term for param, term in added.items() if term is not None}
    others = [y for param, y in loop.update.items() if param not in terms]
    needed = set(toposort((*others, *loop.steps.values(), *loop.tests)))
    varies = variation(loop)
    late = computed_late(loop, terms.values(), needed, varies)
    totals: dict[Node, After] = {}
    while found := {
        param: total
        for param, term in terms.items()
        if param not in totals and (total := total_of(loop, term, late, varies)) is not None
    }:  # what one of them has recorded may be all that another needs
        totals |= found
    return totals


def results_after(loop: Loop) -> dict[Node, After]:
    """How results that no carry needs are computed, from as much recorded as they would be."""
    needed = set(toposort((*loop.update.values(), *loop.tests)))
    varies = variation(loop)
    late = computed_late(loop, loop.steps.values(), needed, varies)
    found: dict[Node, After] = {}
    for key, y in reversed([*loop.steps.items()]):
        if y not in late and y not in loop.walked:
            continue
        del loop.steps[key]
        given = sources_of(y, loop, late, varies)
        new = unrecorded(loop, given)
        if y in loop.walked or (no_more(count_of(new), y.type.count) and not single(given)):
            record(loop, new)
            found[key] = at_once(given, y, varies)
        else:
            loop.steps[key] = y
    return found


def at_once(given: Iterable[Node], y: Node, varies: Varies) -> After:
    """`y` of all steps, made of what is given."""

    def after(node: Node, loop: Loop) -> Node:
        return stacked(given, [y], varies, node, loop)[y]

    return after


def stacked(
    given: Iterable[Node], roots: Sequence[Node], varies: Varies, node: Node, loop: Loop
) -> dict[Node, Node]:
    """The values of all steps of some roots, and of all that they are made of."""
    values = {x: loop.walked.get(x) or all_steps(x, node, loop) for x in given}
    for x in above(given, roots, varies):
        xs, own = stacked_inputs(x, values, loop)
        values[x] = STACKED[x.op](x, xs, own, loop.attrs["length"])
    return values


def variation(loop: Loop) -> Varies:
    """What differs from step to step."""
    fixed = invariants(loop)
    return lambda x: x not in fixed and x.op not in LEAVES


def computed_late(
    loop: Loop, terms: Iterable[Node], needed: set[Node], varies: Varies
) -> set[Node]:
    """The nodes that no step needs, and that can be computed of all steps without more room."""
    local = found_inside(loop.node.attrs["body"])
    late: set[Node] = set()
    for node in toposort(terms):
        if node in needed or node.op not in STACKED or not any(map(varies, node.inputs)):
            continue
        if stays_small(node, varies) and not speaks_of(node, local):
            late.add(node)
    return late


def stays_small(node: Node, varies: Varies) -> bool:
    """Whether the values of all steps take no more room than those that they are made of."""
    own = [x.inputs[0] if x.op in REPEATED else x for x in node.inputs if varies(x)]
    if node.op is tensor.einsum:
        pairs = zip(node.attrs["operands"], node.inputs, strict=True)
        return any(varies(x) and {*letters} >= {*node.attrs["result"]} for letters, x in pairs)
    return node.op in REPEATED | REDUCING or no_more(node.type.count, count_of(own))


def total_of(loop: Loop, term: Node, late: set[Node], varies: Varies) -> After | None:
    """How one term is added up, from as little recorded as it takes; None if it is not worth it."""
    views = []
    while term.op in (tensor.reshape, tensor.transpose, elementwise.negative):
        views.append(term)
        (term,) = term.inputs
    contracts = term.op in (tensor.einsum, tensor.sum_)
    parts = [x for x in term.inputs if varies(x)] if contracts or term in late else [term]
    if not parts or not varies(term) or not (contracts or term.type.dtype.kind in "fc"):
        return None
    alike = parts if term.op in tensor.POINTWISE else ()  # as large as the term, if by another name

    def room(some: Iterable[Node]) -> Size:
        return count_of(term if x in alike else x for x in some)

    deep = {part: sources_of(part, loop, late, varies) for part in parts}
    shallow = {
        x: y if no_more(room(unrecorded(loop, y)), room([x])) else {x: None}
        for x, y in deep.items()
    }
    for chosen in (deep, shallow):
        given = {x: None for sources in chosen.values() for x in sources}
        new = unrecorded(loop, given)
        if no_more(room(new), room(parts if contracts else [x for x in given if x not in new])):
            break
    else:
        if not contracts:
            return None
    if single([term, *given]):
        return None
    record(loop, new)

    def total(node: Node, loop: Loop) -> Node:
        values = stacked(given, parts if contracts else [term], varies, node, loop)
        if contracts:
            found = over_steps(term, *stacked_inputs(term, values, loop))
        else:
            found = tensor.sum_(values[term], axes=(0,))
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


def single(some: Iterable[Node]) -> bool:
    """Whether all are single numbers: a step costs less with them than a call for all steps."""
    return not any(x.type.shape for x in some)


def record(loop: Loop, some: Iterable[Node]) -> None:
    """Have a loop remember the values of all steps."""
    loop.steps.update((x, x) for x in some)


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
