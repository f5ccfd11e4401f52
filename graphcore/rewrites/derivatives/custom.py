"""Functions with a pullback of their own, whose rule is linear in the cotangents.

Where the graph of a rule does not show that, because a loop ends by the size of a value,
the rule is not differentiated with respect to them: it is that map itself, and its transpose is
found from its results for units. So each loop gets only values that it was written for.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import reduce

from graphcore.ir import INT, Graph, Node, Op, TensorType, full_like
from graphcore.ir.dtypes import differentiable
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.sizes import count
from graphcore.ir.transform import substitute
from graphcore.ops import control, elementwise, leaf
from graphcore.ops.leaf import values
from graphcore.rewrites.plain import cast, expand, reshape, sum_over, transpose

from .control import (
    Params,
    Rules,
    Several,
    indices_of_present,
    operands_of_pullback,
    pick,
    place_values,
    present,
    pulled_back,
    pushed_forward,
    zero_for,
)
from .linearity import Growth, variation


def custom_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    """The cotangents by the rule."""
    asked = [i for i, use in enumerate(wanted) if use]
    given = [zero_for(ct, y) for ct, y in zip(cts, values(node), strict=True)]
    rule = by_rule(node, asked, given)
    shares = in_line(rule) if shows_linear(node, node.attrs["rule"], asked) else values(rule)
    return place_values(asked, shares, len(node.inputs))


def custom_pushforward(node: Node, tangents: Several) -> Several:
    """The tangents by the user's `pushforward`, else by the transpose of the rule."""
    given, zeros = indices_of_present(tangents), [full_like(y, 0) for y in values(node)]
    rule = by_rule(node, given, zeros)
    moved = present(tangents)
    if (forward := node.attrs["forward"]) is not None:
        linear = shows_linear(node, forward, range(len(zeros)))
        pushed = transpose_map(rule, moved)
        return in_line(pushed) if linear else values(pushed)
    if not shows_linear(node, node.attrs["rule"], given):
        return operand_cotangents(rule, moved)
    back, asked = pulled_back(rule.attrs["body"], moved, moves(rule))
    made = values(control.call(*operands_of_pullback(rule, moved), body=back))
    return place_values(asked, made, len(rule.inputs))[-len(zeros) :]


def by_rule(node: Node, asked: Sequence[int], cts: Sequence[Node]) -> Node:
    """The cotangents of some operands, as a map of those of the results."""
    rule, forward, apart = (node.attrs[name] for name in ("rule", "forward", "apart"))
    several = len(cts)
    back = None
    if forward is not None:
        first = len(forward.params) - len(node.inputs)
        moving = [first + i for i in asked]
        rest = [x for i, x in enumerate(forward.params[first:], first) if i not in moving]
        outputs = substitute(forward.outputs, {x: full_like(x, 0) for x in rest})
        back = Graph((*forward.params[:first], *pick(forward.params, moving)), outputs)
    return control.linear(
        *node.inputs,
        *values(node),
        *cts,
        body=Graph(rule.params, tuple(pick(rule.outputs, asked))),
        back=back,
        moving=several,
        apart=(*apart, *apart[-several:], *pick(apart, asked)),
    )


def in_line(node: Node) -> Sequence[Node]:
    """The results of a map, computed where it stands."""
    body = node.attrs["body"]
    return substitute(body.outputs, dict(zip(body.params, node.inputs, strict=True)))


def shows_linear(node: Node, rule: Graph, asked: Iterable[int]) -> bool:
    """Whether the graph of a rule shows that its results are linear; refused if they are not."""
    forth = rule is node.attrs["forward"]
    whole = variation(rule, len(node.inputs if forth else node.type.items))
    asked = [i for i in asked if differentiable(rule.outputs[i].type.dtype)]
    what = "tangent" if forth else "ct"
    for i in asked:
        power, bend = whole[i].growth, whole[i].bend
        if power in (1, Growth.ANY, Growth.UNKNOWN):
            continue
        how = f"grows as {what}**{power}"
        if power in (0, Growth.NONE):
            how = f"does not grow with {what}" if power == 0 else f"is not a multiple of {what}"
        name = rule.params[len(node.inputs) + i if forth else i].attrs["name"]
        made = f"the {'tangent' if forth else 'cotangent'} of {name!r} {how}"
        lines = [f"custom_pullback at {node.origin}: {made}"]
        if bend is not None:
            lines.append(f"  it is not linear in {what} after {bend.op.said} at {bend.origin}")
        cure = f"return {what} times the derivative, such as {what} * 2 * x for x**2"
        raise GraphTypeError("\n".join([*lines, f"  cure: {cure}"]))
    return all(whole[i].bend is None for i in asked)


# ---- maps whose graphs do not show that they are linear


def fixed_count(node: Node) -> int:
    """How many operands a map is not linear in; they come first."""
    count: int = len(node.inputs) - node.attrs["moving"]
    return count


def moves(node: Node) -> list[bool]:
    """Which operands a map is linear in."""
    return [i >= fixed_count(node) for i in range(len(node.inputs))]


def linear_pushforward(node: Node, tangents: Several) -> Several:
    """The map itself of tangents that it is linear in, and its derivative in the other operands."""
    n, apart = fixed_count(node), node.attrs["apart"]
    found: list[Several] = []
    if present(tangents[n:]):
        moved = [zero_for(t, x) for t, x in zip(tangents[n:], node.inputs[n:], strict=True)]
        found.append(values(node.with_inputs(*node.inputs[:n], *moved)))
    if given := indices_of_present(tangents[:n]):

        def push_body(graph: Graph) -> Graph:
            """The tangents of a graph's outputs, for tangents of the fixed operands."""
            return moved_up(pushed_forward(graph, given), n, len(given))

        back = node.attrs["back"]
        along = control.linear(
            *node.inputs[:n],
            *present(tangents[:n]),
            *node.inputs[n:],
            body=push_body(node.attrs["body"]),
            back=None if back is None else push_body(back),
            moving=node.attrs["moving"],
            apart=(*apart[:n], *pick(apart, given), *apart[n:]),
        )
        found.append(values(along))
    return [reduce(operator.add, present(column)) for column in zip(*found, strict=True)]


def linear_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    """The transpose for operands that the map is linear in, its derivative in the others.

    That derivative is linear in the same operands; its transpose is a derivative of the transpose.
    """
    n, whole, apart = fixed_count(node), len(node.inputs), node.attrs["apart"]
    given = [zero_for(ct, y) for ct, y in zip(cts, values(node), strict=True)]
    found: list[Node | None] = [None] * whole
    if asked := [i for i in range(n) if wanted[i]]:
        # The map is linear in its cotangents, so that its body holds none of them.
        of_any = values(node)
        body, asked = pulled_back(node.attrs["body"], of_any, [*wanted[:n], *[False] * (whole - n)])
        back = node.attrs["back"]
        shares = control.linear(
            *node.inputs[:n],
            *given,
            *node.inputs[n:],
            body=moved_up(body, n, len(given)),
            back=None if back is None else pushed_forward(back, asked),
            moving=node.attrs["moving"],
            apart=(*apart[:n], *apart[whole:], *apart[n:whole], *pick(apart, asked)),
        )
        found[:] = place_values(asked, values(shares), whole)
    if any(wanted[n:]):
        found[n:] = operand_cotangents(node, given)
    return found


def moved_up(graph: Graph, n: int, count: int) -> Graph:
    """A graph whose last `count` params come after the first `n`."""
    params = graph.params
    return Graph((*params[:n], *params[-count:], *params[n:-count]), graph.outputs)


def transpose_map(node: Node, cts: Sequence[Node]) -> Node:
    """The transpose of a map, where it is known, at cotangents of its results."""
    n, whole, apart = fixed_count(node), len(node.inputs), node.attrs["apart"]
    return control.linear(
        *node.inputs[:n],
        *cts,
        body=node.attrs["back"],
        back=node.attrs["body"],
        moving=len(cts),
        apart=(*apart[:n], *apart[whole:], *apart[n:whole]),
    )


def operand_cotangents(node: Node, cts: Sequence[Node]) -> Several:
    """The cotangents of the operands that a map is linear in: by its transpose, or place by place.

        ct[k] of an operand = <map(1 at k and 0 elsewhere), cts of the results>

    Places along the axes that lie `apart`, as those of a batch do, share one run of the map.
    """
    if node.attrs["back"] is not None:
        return values(transpose_map(node, cts))
    return [
        place_by_place(node, i, cts) if differentiable(x.type.dtype) else None
        for i, x in enumerate(node.inputs)
        if i >= fixed_count(node)
    ]


def place_by_place(node: Node, operand: int, cts: Sequence[Node]) -> Node:
    """The same for one operand."""
    body, x = node.attrs["body"], node.inputs[operand]
    n = fixed_count(node)
    along = node.attrs["apart"][operand]
    own = [axis for axis in range(x.type.ndim) if axis not in along]
    sizes = tuple(x.type.shape[axis] for axis in own)
    outer = (*node.inputs[:n], *cts)
    new = Params(body.params)
    inner = (*body.params[:n], *new.like("ct of", body.outputs))
    if count(sizes) == 1:
        made = answer(node, operand, full_like(x, 1), inner)
        found = control.call(*outer, body=Graph(inner, (made,)))[0]
    else:
        place = new.new("place", TensorType(INT))
        places = leaf.iota(size=count(sizes), dtype=INT, dims=None)
        here = elementwise.equal(places, expand(place, [0], places.type.shape))
        unit = expand(reshape(cast(here, x.type.dtype), sizes), along, x.type.shape)
        found = control.scan(
            places,
            *outer,
            body=Graph((place, *inner), (answer(node, operand, unit, inner),)),
            carries=0,
            sequences=1,
            length=count(sizes),
            reverse=False,
            dim=None,
            checkpoint=(),
        )[0]
    order = (*own, *along)
    found = reshape(found, tuple(x.type.shape[axis] for axis in order))
    return transpose(found, [order.index(axis) for axis in range(x.type.ndim)])


def answer(node: Node, operand: int, unit: Node, values: Sequence[Node]) -> Node:
    """<map(unit), cts>, where `values` are the operands that the map is not linear in, and cts.

    For a complex operand a unit of 1 gives the real part, and a unit of -i the imaginary part.
    """
    made = products(node, operand, unit, values)
    if unit.type.dtype.kind != "c":
        return made
    return made + 1j * products(node, operand, -1j * unit, values)


def products(node: Node, operand: int, unit: Node, values: Sequence[Node]) -> Node:
    """The real parts of the products of the map's results and cts, added up."""
    body, apart = node.attrs["body"], node.attrs["apart"]
    n, whole = fixed_count(node), len(node.inputs)
    units = [unit if i == operand else full_like(body.params[i], 0) for i in range(n, whole)]
    new = dict(zip(body.params, (*values[:n], *units), strict=True))
    found = []
    for axes, made, ct in zip(
        apart[whole:], substitute(body.outputs, new), values[n:], strict=True
    ):
        product, kept = made * ct, sorted(axes)
        if product.type.dtype.kind == "c":
            product = elementwise.real(product)
        rest = [axis for axis in range(product.type.ndim) if axis not in kept]
        total = transpose(sum_over(product, rest), [kept.index(axis) for axis in axes])
        found.append(cast(total, unit.type.dtype))
    return reduce(operator.add, found)


OWN: dict[Op, Rules] = {
    control.custom: Rules(custom_pullback, custom_pushforward),
    control.linear: Rules(linear_pullback, linear_pushforward),
}
"""Both modes of functions with a pullback of their own."""
