"""An operation as text. `PHRASES` says how an op's attrs are read; others are shown as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from string import ascii_letters

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.size_text import show_dim
from graphcore.ir.sizes import Expression, Size
from graphcore.ir.types import show_dtype
from graphcore.ops import autodiff, elementwise, leaf, linalg, named, tensor
from graphcore.ops.named import matrices as by_name

from .labels import Labels
from .text import few, show, show_literal
from .view import View

Phrase = Callable[[Node, View], str]


def call(node: Node, view: View) -> str:
    """`dot(x, w; over feature)`: the op, its operands, then what its attrs say."""
    name = node.op.name
    if (whole := WHOLE.get(node.op)) is not None:
        return f"{name}{whole(node, view)}"
    phrase = PHRASES.get(node.op, fallback)(node, view)
    return f"{name}({'; '.join(filter(None, [view.names(node.inputs), phrase]))})"


def fallback(node: Node, view: View) -> str:
    """Attrs of ops that `PHRASES` does not know; graphs among them follow below the line."""
    attrs = {key: value for key, value in node.attrs.items() if not holds(value)}
    return few(
        f"{key} {view.size(value) if isinstance(value, Expression) else show(value)}"
        for key, value in attrs.items()
    )


def holds(value: object) -> bool:
    """Whether an attr is a graph, or several."""
    first = value[0] if isinstance(value, tuple) and value else value
    return isinstance(first, Graph)


def dims(names: Iterable[str]) -> str:
    return few(map(show_dim, names))


def over(node: Node, view: View) -> str:
    shown = f"over {dims(node.attrs['dims'])}" if node.attrs["dims"] else ""
    ddof = node.attrs.get("ddof")
    return ", ".join(filter(None, [shown, f"ddof {ddof}" if ddof else ""]))


def axis(labels: Labels, position: int) -> str:
    """The label of an axis if it tells the axis, else its position."""
    label = labels[position]
    return f"axis {position}" if label is None or labels.count(label) > 1 else show_dim(label)


def axes(labels: Labels, positions: Iterable[int]) -> str:
    return few(axis(labels, position) for position in positions)


def operand_axes(word: str) -> Phrase:
    """The attr `axes`, or `axis`, of the first operand."""

    def phrase(node: Node, view: View) -> str:
        attrs = node.attrs
        positions = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
        return f"{word} {axes(view.labels[node.inputs[0]], positions)}"

    return phrase


def result_axes(word: str) -> Phrase:
    """The attr `axes` of the result."""
    return lambda node, view: f"{word} {axes(view.labels[node], node.attrs['axes'])}"


def places(start: Size, size: Size, step: int, view: View) -> str:
    """`1:+5:2`: five places from 1 on, each 2 after the one before."""
    first, count = view.size(start), view.size(size)
    return f"{first}:+{count}" if step == 1 else f"{first}:+{count}:{step}"


def slice_dims(node: Node, view: View) -> str:
    return ranged(node, node.attrs["sizes"], view)


def placed_dims(node: Node, view: View) -> str:
    part = node.inputs[-1].type
    return ranged(node, [part.size(dim) for dim in node.attrs["dims"]], view)


def ranged(node: Node, sizes: Iterable[Size], view: View) -> str:
    attrs = node.attrs
    ranges = zip(attrs["dims"], attrs["starts"], sizes, attrs["steps"], strict=True)
    return few(f"{show_dim(dim)}[{places(start, n, step, view)}]" for dim, start, n, step in ranges)


def slice_axes(whole_of: Node, sizes: Iterable[Size], node: Node, view: View) -> str:
    """The axes of which not every place is meant."""
    labels, starts = view.labels[whole_of], node.attrs["starts"]
    whole = node.attrs["shape"] if "shape" in node.attrs else node.inputs[0].type.shape
    ranges = zip(starts, sizes, node.attrs["steps"], whole, strict=True)
    return few(
        f"{axis(labels, i)}[{places(start, size, step, view)}]"
        for i, (start, size, step, full) in enumerate(ranges)
        if (start, size, step) != (0, full, 1)
    )


def arriving(node: Node, places: str) -> str:
    """`batch → class=3`: the dims of updates that vanish, and those they go to."""
    return f"{dims(node.attrs['over'])} → {places}".lstrip()


def index(node: Node, view: View) -> str:
    pairs = zip(node.attrs["dims"], node.attrs["positions"], strict=True)
    return few(f"{show_dim(dim)}[{view.size(position)}]" for dim, position in pairs)


def sized(names: Iterable[str], sizes: Iterable[Size], view: View) -> str:
    """`batch, class=3`."""
    pairs = zip(map(show_dim, names), map(view.size, sizes), strict=True)
    return few(dim if dim == size else f"{dim}={size}" for dim, size in pairs)


def transpose(node: Node, view: View) -> str:
    x = view.labels[node.inputs[0]]
    told = None not in x and len(set(x)) == len(x)
    order = axes(x, node.attrs["perm"]) if told else f"axes {few(map(str, node.attrs['perm']))}"
    return f"to {order}"


def window(size: str, stride: int, dilation: int) -> str:
    """`3 step 2 by 4`: three places, each 4 after the one before, taken anew every 2."""
    step = f" step {stride}" if stride != 1 else ""
    return f"{size}{step}" + (f" by {dilation}" if dilation != 1 else "")


def window_dims(node: Node, view: View) -> str:
    """`time → lag=3`."""
    rows = zip(*[node.attrs[key] for key in ("dims", "names", "strides", "dilations")], strict=True)
    type = (node if node.op is named.windows else node.inputs[0]).type
    return few(
        f"{show_dim(dim)} → {show_dim(name)}={window(view.size(type.size(name)), *steps)}"
        for dim, name, *steps in rows
    )


def window_axes(node: Node, view: View) -> str:
    """`along time: 3`."""
    axes, strides, dilations = (node.attrs[key] for key in ("axes", "strides", "dilations"))
    whole, seen = (node.inputs[0], node)[:: 1 if node.op is tensor.windows else -1]
    sizes = map(view.size, seen.type.shape[axes[0] :])
    return few(
        f"{axis(view.labels[whole], i)}: {window(*steps)}"
        for i, *steps in zip(axes, sizes, strides, dilations, strict=False)
    )


def einsum(node: Node, view: View) -> str:
    """`batch feature, feature class → batch class`, or letters where labels do not tell."""
    operands, result = node.attrs["operands"], node.attrs["result"]
    every = dict.fromkeys(letter for operand in operands for letter in operand)
    named: dict[int, str] = {}
    for x, letters in zip(node.inputs, operands, strict=True):
        for letter, label in zip(letters, view.labels[x], strict=True):
            if label is not None:
                named.setdefault(letter, label)
    gap = " "
    if named.keys() != every.keys() or len(set(named.values())) < len(named):
        gap = "" if len(every) <= len(ascii_letters) else " "
        signs = ascii_letters if not gap else map(str, range(len(every)))
        named = dict(zip(every, signs, strict=False))
    else:
        named = {letter: show_dim(label) for letter, label in named.items()}

    def spell(axes: tuple[int, ...]) -> str:
        return gap.join(named[letter] for letter in axes)

    return f"{few(map(spell, operands))} → {spell(result)}".rstrip()


def derivative(word: str) -> Callable[[Node, View], str]:
    """`(%9, wrt w, ct 1)`: results, what they are differentiated by, the given direction."""

    def whole(node: Node, view: View) -> str:
        ys, wrt = node.attrs["ys"], node.attrs["wrt"]
        y, x, given = node.inputs[:ys], node.inputs[ys : ys + wrt], node.inputs[ys + wrt :]
        return f"({view.names(y)}, wrt {view.names(x)}, {word} {view.names(given)})"

    return whole


def extreme(word: str) -> Phrase:
    """`over class; at least -1.7e+308`: the axes or dims, and what the result does not pass."""

    def phrase(node: Node, view: View) -> str:
        axes = operand_axes("over") if "axes" in node.attrs else over
        initial = node.attrs.get("initial")
        bound = [] if initial is None else [f"{word} {initial.item():.4g}"]
        return "; ".join([axes(node, view), *bound])

    return phrase


def along_dim(node: Node, view: View) -> str:
    """The one dim of a named op."""
    return f"along {show_dim(node.attrs['dim'])}"


def ordered(along: Phrase) -> Phrase:
    """`along col; first 3; descending`."""

    def phrase(node: Node, view: View) -> str:
        size, x = node.attrs["size"], node.inputs[0].type
        first = "" if x.shape == node.type.shape else f"first {view.size(size)}"
        descending = "descending" if node.attrs["descending"] else ""
        return "; ".join(filter(None, [along(node, view), first, descending]))

    return phrase


def matrices(node: Node, view: View) -> str:
    """`row col, row → col; upper`: the dims of the matrices, and how these are read."""
    attrs = node.attrs
    told = [signs[attrs[name]] for name, signs in READ.items() if name in attrs]
    if attrs.get("rtol") is not None:
        told.append(f"rtol {attrs['rtol']}")
    if node.op in by_name.PLAIN:
        letters = linalg.SIGNATURES[by_name.PLAIN[node.op]]
        given, made = (
            few(filter(None, (" ".join(map(show_dim, part)) for part in by_name.parted(*side))))
            for side in ((attrs["dims"], letters.operands), (attrs["new"], letters.results))
        )
        told.insert(0, f"{given} → {made}".rstrip(" →"))
    return "; ".join(filter(None, told))


READ = {
    "lower": ("upper", "lower"),
    "unit": ("", "unit diagonal"),
    "transposed": ("", "transposed"),
    "check": ("unchecked", ""),
}
"""What is said of an op on matrices where a flag is false, and where it is true."""


def nothing(node: Node, view: View) -> str:
    """The type column says it all."""
    return ""


WHOLE: dict[Op, Phrase] = {
    leaf.input_: nothing,
    leaf.iota: nothing,
    leaf.constant: lambda node, view: f" {show_literal(node.attrs['value'])}",
    leaf.full: lambda node, view: f" {show_literal(node.attrs['value'])}",
    leaf.extent: lambda node, view: f" {view.size(node.attrs['size'])}",
    autodiff.pullback: derivative("ct"),
    autodiff.pushforward: derivative("tangent"),
}
"""Ops whose text is more than operands and attrs: what follows their name."""

PHRASES: dict[Op, Phrase] = {
    elementwise.cast: lambda node, view: f"to {show_dtype(node.attrs['dtype'])}",
    named.transpose: lambda node, view: f"to {dims(node.attrs['dims'])}",
    named.broadcast: lambda node, view: f"to {dims(node.attrs['dims'])}",
    named.squeeze: lambda node, view: dims(node.attrs["dims"]),
    **dict.fromkeys((named.concat, named.sort), along_dim),
    named.argsort: ordered(along_dim),
    named.searchsorted: lambda node, view: f"{along_dim(node, view)}, {node.attrs['side']}",
    named.gather: lambda node, view: f"along {dims(node.attrs['dims'])}",
    named.rename: lambda node, view: few(
        f"{show_dim(old)}→{show_dim(new)}" for old, new in node.attrs["names"]
    ),
    named.stack: lambda node, view: f"{dims(node.attrs['dims'])} → {show_dim(node.attrs['name'])}",
    named.unstack: lambda node, view: (
        f"{show_dim(node.attrs['dim'])} → {sized(node.attrs['names'], node.attrs['sizes'], view)}"
    ),
    named.slice_: slice_dims,
    **dict.fromkeys((named.windows, named.overlap_add), window_dims),
    **dict.fromkeys(
        (named.scatter, named.scatter_prod),
        lambda node, view: arriving(node, sized(node.attrs["dims"], node.attrs["sizes"], view)),
    ),
    **dict.fromkeys(
        (named.put, named.scatter_max, named.scatter_min),
        lambda node, view: arriving(node, dims(node.attrs["dims"])),
    ),
    **dict.fromkeys((named.embed, named.overwrite), placed_dims),
    named.index: index,
    tensor.expand: result_axes("new"),
    **dict.fromkeys((tensor.reshape, tensor.pack), nothing),
    tensor.transpose: transpose,
    tensor.slice_: lambda node, view: slice_axes(node.inputs[0], node.attrs["sizes"], node, view),
    tensor.embed: lambda node, view: slice_axes(node, node.inputs[0].type.shape, node, view),
    **dict.fromkeys((tensor.windows, tensor.overlap_add), window_axes),
    tensor.einsum: einsum,
    **dict.fromkeys(
        (
            *(tensor.scatter, tensor.scatter_prod, tensor.put),
            *(tensor.scatter_add, tensor.scatter_max, tensor.scatter_min),
        ),
        result_axes("along"),
    ),
    tensor.overwrite: lambda node, view: slice_axes(node, node.inputs[1].type.shape, node, view),
    **dict.fromkeys((named.sum_, named.prod, named.mean, named.var, named.std), over),
    **dict.fromkeys((named.any_, named.all_, named.argmax, named.argmin, named.dot), over),
    **dict.fromkeys((named.norm, named.logsumexp, named.softmax, named.log_softmax), over),
    **dict.fromkeys(
        (named.cumsum, named.cumprod, named.cummax, named.cummin, named.logcumsumexp),
        lambda node, view: f"along {dims(node.attrs['dims'])}",
    ),
    **dict.fromkeys(
        (tensor.sum_, tensor.prod, tensor.any_, tensor.all_, tensor.norm), operand_axes("over")
    ),
    **dict.fromkeys(
        (tensor.argmax, tensor.argmin, tensor.logsumexp, tensor.softmax, tensor.log_softmax),
        operand_axes("over"),
    ),
    **dict.fromkeys((named.max_, tensor.max_), extreme("at least")),
    **dict.fromkeys((named.min_, tensor.min_), extreme("at most")),
    **dict.fromkeys((*by_name.PLAIN, *linalg.SIGNATURES), matrices),
    tensor.sort: operand_axes("along"),
    tensor.argsort: ordered(operand_axes("along")),
    tensor.searchsorted: lambda node, view: node.attrs["side"],
    **dict.fromkeys(
        (tensor.cumsum, tensor.cumprod, tensor.cummax, tensor.cummin, tensor.logcumsumexp),
        operand_axes("along"),
    ),
    **dict.fromkeys(
        (tensor.recurrence, tensor.concat, tensor.gather),
        operand_axes("along"),
    ),
}
"""Ops whose attrs are better told than listed: what follows the operands."""
