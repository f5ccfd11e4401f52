"""Functions with a pullback of their own, whose rule is linear in the cotangents.

Where the graph of a rule does not show that, because a loop goes by the size of what it works on,
no derivative by the cotangents is taken of it: the rule itself is that map, and its transpose is
found from its answers to units. So each loop works for the values that it was written for.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

from graphcore.ir.dtypes import INT, differentiable
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node, full_like, substitute
from graphcore.ir.op import Op
from graphcore.ir.sizes import count
from graphcore.ir.types import TensorType
from graphcore.ops import autodiff, control, elementwise, leaf
from graphcore.rewrites.plain import cast, expand, reshape, sum_over, transpose

from .control import Params, Rules, Several, pick, present, pulled_back, results, zero_for
from .linearity import Growth, variation


def custom_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    """What the rule says."""
    asked = [i for i, use in enumerate(wanted) if use]
    given = [zero_for(ct, y) for ct, y in zip(cts, results(node), strict=True)]
    rule = by_rule(node, asked, given)
    if shows_linear(node, asked):
        body = rule.attrs["body"]
        shares = substitute(body.outputs, dict(zip(body.params, rule.inputs, strict=True)))
    else:
        shares = tuple(results(rule))
    found = dict(zip(asked, shares, strict=True))
    return [found.get(i) for i in range(len(node.inputs))]


def custom_pushforward(node: Node, tangents: Several) -> Several:
    """The transpose of the rule."""
    given = [i for i, t in enumerate(tangents) if t is not None]
    cts = [full_like(y, 0) for y in results(node)]
    rule = by_rule(node, given, cts)
    if not shows_linear(node, given):
        return transposed(rule, present(tangents))
    body = rule.attrs["body"]
    back, asked = pulled_back(body, present(tangents), moves(rule))
    found = dict(zip(asked, results(control.call(*rule.inputs, *present(tangents), body=back))))
    first = len(rule.inputs) - len(cts)
    return [found.get(first + i) for i in range(len(cts))]


def by_rule(node: Node, asked: Sequence[int], cts: Sequence[Node]) -> Node:
    """The cotangents of some operands, as a map of those of the results."""
    rule, apart = node.attrs["rule"], node.attrs["apart"]
    several = len(cts)
    return control.linear(
        *node.inputs,
        *results(node),
        *cts,
        body=Graph(rule.params, tuple(pick(rule.outputs, asked))),
        moving=several,
        apart=(*apart, *apart[-several:], *[apart[i] for i in asked]),
    )


def shows_linear(node: Node, operands: Sequence[int]) -> bool:
    """Whether a graph shows that the cotangents of operands are linear; refused if they are not."""
    rule = node.attrs["rule"]
    whole = variation(rule, len(node.type.items))
    for i in operands:
        power, bend = whole[i].growth, whole[i].bend
        if power in (1, Growth.ANY, Growth.UNKNOWN):
            continue
        how = f"grows as ct**{power}"
        if power in (0, Growth.NONE):
            how = "does not grow with ct" if power == 0 else "is no multiple of ct"
        name = rule.params[i].attrs["name"]
        lines = [f"custom_pullback at {node.origin}: the cotangent of {name!r} {how}"]
        if bend is not None:
            lines.append(f"  it is not linear in ct after {bend.op.said} at {bend.origin}")
        cure = "return ct times the derivative, such as (ct * 2 * x,) for x**2"
        raise GraphTypeError("\n".join([*lines, f"  cure: {cure}"]))
    return all(whole[i].bend is None for i in operands)


# ---- maps whose graphs do not show that they are linear


def moves(node: Node) -> list[bool]:
    """Which operands a node is linear in."""
    fixed = len(node.inputs) - node.attrs["moving"]
    return [i >= fixed for i in range(len(node.inputs))]


def linear_pushforward(node: Node, tangents: Several) -> Several:
    """The map itself of tangents that it is linear in, and its derivative by the other operands."""
    body, apart = node.attrs["body"], node.attrs["apart"]
    n = len(node.inputs) - node.attrs["moving"]
    found: list[Several] = []
    if present(tangents[n:]):
        moved = [zero_for(t, x) for t, x in zip(tangents[n:], node.inputs[n:], strict=True)]
        found.append(results(node.with_inputs(*node.inputs[:n], *moved)))
    if given := [i for i, t in enumerate(tangents[:n]) if t is not None]:
        new = Params(body).like("tangent of", pick(body.params, given))
        ys, wrt = body.outputs, pick(body.params, given)
        pushed = autodiff.pushforward(*ys, *wrt, *new, ys=len(ys), wrt=len(wrt))
        along = control.linear(
            *node.inputs[:n],
            *present(tangents[:n]),
            *node.inputs[n:],
            body=Graph((*body.params[:n], *new, *body.params[n:]),
                       tuple(pushed[i] for i in range(len(ys)))),
            moving=node.attrs["moving"],
            apart=(*apart[:n], *[apart[i] for i in given], *apart[n:]),
        )  # fmt: skip
        found.append(results(along))
    return [reduce(operator.add, present(column)) for column in zip(*found, strict=True)]


def linear_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    """The transpose for what the map is linear in, and its derivative by the other operands."""
    body, apart = node.attrs["body"], node.attrs["apart"]
    n, whole = len(node.inputs) - node.attrs["moving"], len(node.inputs)
    found: list[Node | None] = [None] * whole
    if asked := [i for i in range(n) if wanted[i]]:
        given = [i for i, ct in enumerate(cts) if ct is not None]
        ys, wrt = pick(body.outputs, given), pick(body.params, asked)
        new = Params(body).like("ct of", ys)
        pulled = autodiff.pullback(*ys, *wrt, *new, ys=len(ys), wrt=len(wrt))
        back = control.linear(
            *node.inputs[:n],
            *present(cts),
            *node.inputs[n:],
            body=Graph((*body.params[:n], *new, *body.params[n:]),
                       tuple(pulled[i] for i in range(len(wrt)))),
            moving=node.attrs["moving"],
            apart=(*apart[:n], *[apart[whole + i] for i in given], *apart[n:whole],
                   *[apart[i] for i in asked]),
        )  # fmt: skip
        for i, share in zip(asked, results(back), strict=True):
            found[i] = share
    if any(wanted[n:]):
        found[n:] = transposed(node, [zero_for(ct, y) for ct, y in zip(cts, results(node))])
    return found


def transposed(node: Node, cts: Sequence[Node]) -> Several:
    """The cotangents of what a map is linear in, place by place.

        ct[k] of an operand = <map(1 at k and 0 elsewhere), cts of the results>

    Places along the axes that lie `apart`, as those of a batch do, share one run of the map.
    """
    n = len(node.inputs) - node.attrs["moving"]
    return [
        place_by_place(node, i, cts) if differentiable(x.type.dtype) else None
        for i, x in enumerate(node.inputs)
        if i >= n
    ]


def place_by_place(node: Node, operand: int, cts: Sequence[Node]) -> Node:
    """The same of one operand."""
    body, x = node.attrs["body"], node.inputs[operand]
    n = len(node.inputs) - node.attrs["moving"]
    along = node.attrs["apart"][operand]
    walked = [axis for axis in range(x.type.ndim) if axis not in along]
    sizes = tuple(x.type.shape[axis] for axis in walked)
    outer = (*node.inputs[:n], *cts)
    new = Params(body)
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
    order = (*walked, *along)
    found = reshape(found, tuple(x.type.shape[axis] for axis in order))
    return transpose(found, [order.index(axis) for axis in range(x.type.ndim)])


def answer(node: Node, operand: int, unit: Node, values: Sequence[Node]) -> Node:
    """<map(unit), cts>, where `values` are the operands that the map is not linear in, and cts.

    Of a complex operand a unit of 1 gives the real part, and one of -i the imaginary part.
    """
    made = products(node, operand, unit, values)
    if unit.type.dtype.kind != "c":
        return made
    return made + 1j * products(node, operand, -1j * unit, values)


def products(node: Node, operand: int, unit: Node, values: Sequence[Node]) -> Node:
    """The real parts of the products of the map's results and cts, added up."""
    body, apart = node.attrs["body"], node.attrs["apart"]
    n, whole = len(node.inputs) - node.attrs["moving"], len(node.inputs)
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
