"""RULES: the words for an op at an element, `(words, node, index) -> phrase`.

They mirror those of places.py: views are arithmetic on the index, elementwise ops ask their
operands for the same place, reductions bind an index of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.inspection.text import show_literal
from graphcore.ir import Node, Op, Shape, Size
from graphcore.ir.sizes import unknown, unknowns
from graphcore.ir.types import show_dtype
from graphcore.ops import elementwise as e
from graphcore.ops import leaf
from graphcore.ops import tensor as t

from .arithmetic import SCALAR
from .places import counts_through, of_windows
from .reductions import axes_of
from .wording import (
    AND,
    ATOM,
    CHOICE,
    COMPARED,
    LOOSE,
    MINUS,
    NOT,
    OR,
    PRODUCT,
    SUM,
    At,
    Index,
    Operand,
    Part,
    Phrase,
    Place,
    Rule,
    Words,
    between,
)

INFIX: dict[Op, tuple[str, int]] = {
    **{e.add: ("+", SUM), e.subtract: ("-", SUM)},
    **{e.multiply: ("*", PRODUCT), e.divide: ("/", PRODUCT)},
    **{e.floor_divide: ("//", PRODUCT), e.remainder: ("%", PRODUCT)},
    **{e.equal: ("==", COMPARED), e.not_equal: ("!=", COMPARED), e.less: ("<", COMPARED)},
    **{e.less_equal: ("<=", COMPARED), e.greater: (">", COMPARED)},
    **{e.greater_equal: (">=", COMPARED), e.logical_and: ("and", AND), e.logical_or: ("or", OR)},
}
PREFIX = {e.negative: ("-", MINUS), e.logical_not: ("not ", NOT)}
WORDS = {
    t.sum_: "sum",
    t.prod: "product",
    t.max_: "max",
    t.min_: "min",
    t.any_: "any",
    t.all_: "all",
}


def phrase(w: Words, node: Node, index: At) -> Phrase:
    """The words for a node that has no name at a place."""
    if node.op in SCALAR:
        return elementwise(w, node, index)
    return RULES[node.op](w, node, index)


def elementwise(w: Words, node: Node, index: At) -> Phrase:
    xs = [w.at(x, index) for x in node.inputs]
    if node.op in INFIX:
        sign, binding = INFIX[node.op]
        return Phrase(node, infix(sign, binding, *xs), binding)
    if node.op in PREFIX:
        sign, binding = PREFIX[node.op]
        return Phrase(node, [sign, Operand(xs[0], binding)], binding)
    if node.op is e.where:
        chosen = Operand(xs[1], OR), " if ", Operand(xs[0], OR), " else ", Operand(xs[2], CHOICE)
        return Phrase(node, [*chosen], CHOICE)
    name = show_dtype(node.attrs["dtype"]) if node.op is e.cast else node.op.name
    items = [[Operand(x, CHOICE if len(xs) > 1 else LOOSE)] for x in xs]
    return Phrase(node, [name, *between("(", items, ")")])


def infix(sign: str, binding: int, x: Phrase, y: Phrase) -> list[Part]:
    """`x - (y + z)`: equal operators are applied from left to right."""
    left = Operand(x, binding + (binding == COMPARED))
    return [left, f" {sign} ", Operand(y, binding + 1)]


# ---- views


def expand(w: Words, node: Node, index: At) -> Phrase:
    axes = node.attrs["axes"]
    return w.at(node.inputs[0], tuple(i for axis, i in enumerate(index) if axis not in axes))


def transpose(w: Words, node: Node, index: At) -> Phrase:
    perm = node.attrs["perm"]
    return w.at(node.inputs[0], tuple(index[perm.index(i)] for i in range(len(perm))))


def slice_(w: Words, node: Node, index: At) -> Phrase:
    ranges = zip(index, node.attrs["starts"], node.attrs["steps"], strict=True)
    return w.at(node.inputs[0], tuple(i * step + start for i, start, step in ranges))


def reshape(w: Words, node: Node, index: At) -> Phrase:
    (x,), new = node.inputs, node.type.shape
    old = x.type.shape
    if not counts_through(node):
        rest = iter([i for i, n in zip(index, new, strict=True) if n != 1])
        return w.at(x, tuple(0 if n == 1 else next(rest) for n in old))
    if (stored := w.stored.get(x)) is not None and old:
        places = between("[", [[Place(i)] for i in index[stored.skipped :]], "]")
        before = between("[", [[Place(i)] for i in stored.before], "]")
        return Phrase(node, [f"reshape({stored.name}", *before, ")", *places])
    same = 0
    while same < min(len(old), len(new)) - 1 and old[same] == new[same]:
        same += 1
    total: Size = 0
    at: list[Size] = []
    for i, n in zip(index[same:], new[same:], strict=True):
        total = total * n + i
    for size in reversed(old[same + 1 :]):
        at.append(total % size if size != 0 else 0)
        total = total // size if size != 0 else 0
    return w.at(x, (*index[:same], total, *reversed(at)) if old else ())


def windows(w: Words, node: Node, index: At) -> Phrase:
    at, settings = of_windows(node, index)
    for axis, j, stride, dilation in settings:
        at[axis] = at[axis] * stride + j * dilation
    return w.at(node.inputs[0], tuple(at))


def inside(
    index: At, starts: Shape, sizes: Shape, steps: Sequence[int], whole: Shape
) -> tuple[At, list[list[Part]]]:
    """Where a place falls into a part of a tensor, and the conditions under which it does."""
    at, holds = list[Size](), list[list[Part]]()
    for i, start, size, step, full in zip(index, starts, sizes, steps, whole, strict=True):
        j = i - start
        if step != 1 and step != -1:
            holds.append([Place(j), f" % {step} == 0"])
        at.append(-j if step == -1 else j if step == 1 else j // step)
        if step == 1:
            if start != 0:
                holds.append([Place(start), " <= ", Place(i)])
            if start + size != full:
                holds.append([Place(i), " < ", Place(start + size)])
        else:
            holds.append(["0 <= ", Place(at[-1]), " < ", Place(size)])
    return tuple(at), holds


def chosen(node: Node, x: Phrase, holds: Sequence[Sequence[Part]], otherwise: Part) -> Phrase:
    """`x if 0 < row and row < 8 else 0`."""
    found: list[Part] = [Operand(x, OR), " if "]
    for n, condition in enumerate(holds):
        found += [" and ", *condition] if n else condition
    return Phrase(node, [*found, " else ", otherwise], CHOICE)


def embed(w: Words, node: Node, index: At) -> Phrase:
    (x,), attrs = node.inputs, node.attrs
    at, holds = inside(index, attrs["starts"], x.type.shape, attrs["steps"], node.type.shape)
    if not holds:
        return w.at(x, at)
    return chosen(node, w.at(x, at), holds, "0")


def overwrite(w: Words, node: Node, index: At) -> Phrase:
    (x, part), attrs = node.inputs, node.attrs
    shape = part.type.shape
    at, holds = inside(index, attrs["starts"], shape, attrs["steps"], node.type.shape)
    if not holds:
        return w.at(part, at)
    return chosen(node, w.at(part, at), holds, Operand(w.at(x, index), CHOICE))


def concat(w: Words, node: Node, index: At) -> Phrase:
    axis, end, parts = node.attrs["axis"], node.type.shape[node.attrs["axis"]], list[Part]()
    found: Phrase | None = None
    for x in reversed(node.inputs):
        start = end - x.type.shape[axis]
        value = w.at(x, (*index[:axis], index[axis] - start, *index[axis + 1 :]))
        parts = [Operand(value, OR), " if ", Place(index[axis]), " < ", Place(end), " else "]
        if found is not None:
            value = w.counted(Phrase(node, [*parts, Operand(found, CHOICE)], CHOICE))
        found, end = value, start
    assert found is not None
    return found


def gather(w: Words, node: Node, index: At) -> Phrase:
    x, *indices = node.inputs
    axes, rank = node.attrs["axes"], indices[0].type.ndim
    rest = iter(index[rank:])
    at: list[Size] = [0 if axis in axes else next(rest) for axis in range(x.type.ndim)]
    for axis, positions in zip(axes, indices, strict=True):
        value = w.at(positions, index[:rank])
        at[axis] = w.names.place(Index("", value.level, value))
    return w.at(x, tuple(at))


# ---- values over axes


def over(w: Words, node: Node, word: str, new: Sequence[Size], sizes: Shape, x: Phrase) -> Phrase:
    """`sum over col of ...`."""
    axes = ", ".join([w.names.axis(i, n) for i, n in zip(new, sizes, strict=True)])
    return Phrase(node, [f"{word} over {axes} of " if axes else "", Operand(x)], LOOSE, binds=True)


def fold(w: Words, node: Node, index: At) -> Phrase:
    (x,), axes = node.inputs, axes_of(node)
    new = w.bound([w.view.labels[x][axis] for axis in axes], index)
    inner, others = dict(zip(axes, new, strict=True)), iter(index)
    at = tuple(inner[i] if i in inner else next(others) for i in range(x.type.ndim))
    word, initial = WORDS.get(node.op, node.op.name), node.attrs.get("initial")
    if initial is not None:
        word += f" with {initial.item():.4g}"
    return over(w, node, word, new, tuple(x.type.shape[axis] for axis in axes), w.at(x, at))


def products(free_x: int, free_y: int) -> Rule:
    def rule(w: Words, node: Node, index: At) -> Phrase:
        x, y = node.inputs
        batch = len(index) - free_x - free_y
        lead, row, column = index[:batch], index[batch : batch + free_x], index[batch + free_x :]
        (i,) = w.bound([w.view.labels[x][-1] or w.view.labels[y][batch]], index)
        parts = infix("*", PRODUCT, w.at(x, (*lead, *row, i)), w.at(y, (*lead, i, *column)))
        product = w.counted(Phrase(node, parts, PRODUCT))
        return over(w, node, "sum", [i], x.type.shape[-1:], product)

    return rule


def overlap_add(w: Words, node: Node, index: At) -> Phrase:
    (x,), attrs = node.inputs, node.attrs
    axes, shape = attrs["axes"], x.type.shape
    first, several = axes[0], len(axes)
    new = w.bound(w.view.labels[x][first : first + several], index)
    at, holds = list(index), list[list[Part]]()
    settings = zip(axes, new, attrs["strides"], attrs["dilations"], strict=True)
    for axis, j, stride, dilation in settings:
        moved = index[axis] - j * dilation
        if stride != 1:
            holds.append([Place(moved), f" % {stride} == 0"])
        at[axis] = moved // stride
        holds.append(["0 <= ", Place(at[axis]), " < ", Place(shape[axis + several])])
    value = w.at(x, (*at[:first], *new, *at[first:]))
    value = w.counted(chosen(node, value, holds, "0"))
    return over(w, node, "sum", new, shape[first : first + several], value)


# ---- leaves


def constant(w: Words, node: Node, index: At) -> Phrase:
    literal = show_literal(node.attrs["value"])
    return Phrase(node, [literal], MINUS if literal.startswith("-") else ATOM)


def iota(w: Words, node: Node, index: At) -> Phrase:
    return numbered(node, index[0])


def extent(w: Words, node: Node, index: At) -> Phrase:
    return numbered(node, node.attrs["size"])


def numbered(node: Node, size: Size) -> Phrase:
    """The number of a place, or of places, as a value."""
    alone = any(size is unknown(name) for name in unknowns(size))
    return Phrase(node, [Place(size)], ATOM if alone else LOOSE)


RULES: dict[Op, Rule] = {
    **{t.expand: expand, t.transpose: transpose, t.slice_: slice_, t.windows: windows},
    **{t.reshape: reshape, t.pack: reshape, t.embed: embed, t.overwrite: overwrite},
    **{t.concat: concat, t.gather: gather, t.overlap_add: overlap_add},
    **dict.fromkeys((t.sum_, t.prod, t.max_, t.min_, t.any_, t.all_), fold),
    **dict.fromkeys((t.argmax, t.argmin, t.norm), fold),
    **{t.matvec: products(1, 0), t.vecdot: products(0, 0), t.matmul: products(1, 1)},
    **{leaf.constant: constant, leaf.full: constant, leaf.iota: iota, leaf.extent: extent},
}
"""The words of each op of PLACES, and of constants."""
