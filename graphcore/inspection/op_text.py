"""An operation as text. `PHRASES` says how an op's attrs are read; others are shown as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from string import ascii_letters

from graphcore.ir import Expression, Graph, Node, Op, Size, TensorType
from graphcore.ir import axes as kinds
from graphcore.ir.name_text import show_dim
from graphcore.ir.types import show_dtype
from graphcore.ops import autodiff, elementwise, leaf, linalg, named, tensor
from graphcore.ops.named import matrices as by_name
from graphcore.ops.outside import Calls

from .axis_labels import Labels
from .text import few, show, show_literal, show_name
from .view import View

Phrase = Callable[[Node, View], str]


def call(node: Node, view: View) -> str:
    """`dot(x, w; over feature)`: the op, its operands, then its attrs in words."""
    name = node.op.name
    if (whole := WHOLE.get(node.op)) is not None:
        return f"{name}{whole(node, view)}"
    phrase = (PHRASES.get(node.op) or BY_KIND.get(type(node.op.axes), fallback))(node, view)
    return f"{name}({'; '.join(filter(None, [view.names(node.inputs), phrase]))})"


def fallback(node: Node, view: View) -> str:
    """Attrs of ops that `PHRASES` does not know; graphs among them follow below the line."""
    return attr_texts({key: value for key, value in node.attrs.items() if not holds(value)}, view)


def attr_texts(attrs: Mapping[str, object], view: View) -> str:
    """Attrs as they are, but for those that say nothing: `carries 1, reverse, length time`."""
    return few(
        key
        if value is True
        else f"{key} {view.size(value) if isinstance(value, Expression) else show(value)}"
        for key, value in attrs.items()
        if isinstance(value, Expression) or not (value is None or value is False or value == ())
    )


def holds(value: object) -> bool:
    """Whether an attr is a graph, or several."""
    first = value[0] if isinstance(value, tuple) and value else value
    return isinstance(first, Graph)


def dims(names: Iterable[str]) -> str:
    return few(map(show_dim, names))


def axis(labels: Labels, position: int) -> str:
    """`axis 1: class`: the position of an axis, and its label if that is known."""
    label = labels[position]
    return f"axis {position}" if label is None else f"axis {position}: {show_dim(label)}"


def axes(labels: Labels, positions: Sequence[int]) -> str:
    """`axes 0, 2: day, site`: the labels too if all are known, as types show those of each."""
    if len(positions) == 1:
        return axis(labels, positions[0])
    known = [label for position in positions if (label := labels[position]) is not None]
    shown = f"axes {few(map(str, positions))}"
    return f"{shown}: {dims(known)}" if known and len(known) == len(positions) else shown


def axes_text(node: Node, view: View) -> str:
    """The axes or dims that an op works along: `axis 1: time` if plain, `along time` if named."""
    kind = node.op.axes
    assert isinstance(kind, kinds.ByAttr)
    said = node.attrs[kind.attr]
    several = said if isinstance(said, tuple) else (said,)
    if several and isinstance(several[0], int):
        return axes(view.labels[node.inputs[0]], several)
    return f"{kind.word} {dims(several)}" if several else ""


def worked_and_more(node: Node, view: View) -> str:
    """`over row; ddof 1`: and the other attrs that say something."""
    kind = node.op.axes
    assert isinstance(kind, kinds.ByAttr)
    more = {
        name: value
        for name, value in node.attrs.items()
        if name != kind.attr and (isinstance(value, Expression) or value)
    }
    more = dict(sorted(more.items(), key=lambda item: item[1] is not True))  # flags first
    return "; ".join(filter(None, [axes_text(node, view), attr_texts(more, view)]))


def result_axes(node: Node, view: View) -> str:
    """The attr `axes`, which are axes of the result."""
    return axes(view.labels[node], node.attrs["axes"])


def places(start: Size, size: Size, step: int, view: View) -> str:
    """`1:+5:2`: five places from 1 on, each 2 after the one before."""
    first, count = view.size(start), view.size(size)
    return f"{first}:+{count}" if step == 1 else f"{first}:+{count}:{step}"


def range_texts(node: Node, view: View) -> str:
    """The ranges of named dims: of the operand in `slice`, of the result where it is put."""
    attrs, part = node.attrs, part_of(node)
    sizes = [part.size(dim) for dim in attrs["dims"]]
    ranges = zip(attrs["dims"], attrs["starts"], sizes, attrs["steps"], strict=True)
    return few(f"{show_dim(dim)}[{places(start, n, step, view)}]" for dim, start, n, step in ranges)


def slice_axes(node: Node, view: View) -> str:
    """`axis 0: time[2:+5:3]`: the ranges of axes, but for those that are whole."""
    whole = node.inputs[0] if part_of(node) is node.type else node
    ranges = zip(
        node.attrs["starts"],
        part_of(node).shape,
        node.attrs["steps"],
        whole.type.shape,
        strict=True,
    )
    return few(
        f"{axis(view.labels[whole], i)}[{places(start, size, step, view)}]"
        for i, (start, size, step, full) in enumerate(ranges)
        if (start, size, step) != (0, full, 1)
    )


def part_of(node: Node) -> TensorType:
    """The type of the elements in the ranges: the result of a slice, else the last operand."""
    kind = node.op.axes
    moved = isinstance(kind, kinds.Ranges) and kinds.How.MOVED in kind.hows
    part: TensorType = node.type if moved else node.inputs[-1].type
    return part


def update_dims(node: Node, view: View) -> str:
    """`batch → class=3`: the dims of updates that vanish, and those they go to."""
    attrs = node.attrs
    to = (
        size_texts(attrs["dims"], attrs["sizes"], view) if "sizes" in attrs else dims(attrs["dims"])
    )
    return f"{dims(attrs['over'])} → {to}".lstrip()


def reshape_text(node: Node, view: View) -> str:
    """`row, col → place`, `place → row=2, col=3`."""
    attrs = node.attrs
    if "name" in attrs:
        return f"{dims(attrs['dims'])} → {show_dim(attrs['name'])}"
    return f"{show_dim(attrs['dim'])} → {size_texts(attrs['names'], attrs['sizes'], view)}"


def index(node: Node, view: View) -> str:
    pairs = zip(node.attrs["dims"], node.attrs["positions"], strict=True)
    return few(f"{show_dim(dim)}[{view.size(position)}]" for dim, position in pairs)


def size_texts(names: Iterable[str], sizes: Iterable[Size], view: View) -> str:
    """`batch, class=3`."""
    pairs = zip(map(show_dim, names), map(view.size, sizes), strict=True)
    return few(dim if dim == size else f"{dim}={size}" for dim, size in pairs)


def transpose(node: Node, view: View) -> str:
    """`to axes 1, 0: col, row`: the axes of the operand in their new order."""
    return f"to {axes(view.labels[node.inputs[0]], node.attrs['perm'])}"


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
    """`axis 1: time → 3`."""
    axes, strides, dilations = (node.attrs[key] for key in ("axes", "strides", "dilations"))
    whole, seen = (node.inputs[0], node)[:: 1 if node.op is tensor.windows else -1]
    sizes = map(view.size, seen.type.shape[axes[0] :])
    return few(
        f"{axis(view.labels[whole], i)} → {window(*steps)}"
        for i, *steps in zip(axes, sizes, strides, dilations, strict=False)
    )


def einsum(node: Node, view: View) -> str:
    """`batch feature, feature class → batch class`, or letters where labels are not enough."""
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
    """`(%9, wrt w, ct 1)`: results, operands of the derivative, and the given direction."""

    def whole(node: Node, view: View) -> str:
        y, x, given = autodiff.group(node, node.inputs)
        return f"({view.names(y)}, wrt {view.names(x)}, {word} {view.names(given)})"

    return whole


def extreme(word: str) -> Phrase:
    """`over class; at least -1.7e+308`: the axes or dims, and the bound of the result."""

    def phrase(node: Node, view: View) -> str:
        initial = node.attrs.get("initial")
        bound = [] if initial is None else [f"{word} {initial.item():.4g}"]
        return "; ".join([axes_text(node, view), *bound])

    return phrase


def sort_text(node: Node, view: View) -> str:
    """`along col; first 3; descending`."""
    size, x = node.attrs["size"], node.inputs[0].type
    first = "" if x.shape == node.type.shape else f"first {view.size(size)}"
    descending = "descending" if node.attrs["descending"] else ""
    return "; ".join(filter(None, [axes_text(node, view), first, descending]))


def matrices(node: Node, view: View) -> str:
    """`row col, row → col; upper`: the dims of the matrices, and how these are read."""
    attrs = node.attrs
    words = [signs[attrs[name]] for name, signs in READ.items() if name in attrs]
    if attrs.get("rtol") is not None:
        words.append(f"rtol {attrs['rtol']}")
    if node.op in by_name.PLAIN:
        letters = linalg.SIGNATURES[by_name.PLAIN[node.op]]
        letter_names = by_name.letter_names
        given, made = (
            few(filter(None, (" ".join(map(show_dim, part)) for part in letter_names(*side))))
            for side in ((attrs["dims"], letters.operands), (attrs["new"], letters.results))
        )
        words.insert(0, f"{given} → {made}".rstrip(" →"))
    return "; ".join(filter(None, words))


READ = {
    "lower": ("upper", "lower"),
    "unit": ("", "unit diagonal"),
    "transposed": ("", "transposed"),
    "check": ("unchecked", ""),
}
"""The words for a flag of an op on matrices: where it is false, and where it is true."""


def nothing(node: Node, view: View) -> str:
    """Nothing more, as the type column has it all."""
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
"""The text after the names of ops for which it is more than operands and attrs."""


def print_text(node: Node, view: View) -> str:
    """The label; the number is that of the process."""
    return f"as {show_name(node.attrs['label'])}" if node.attrs["label"] else ""


def outside_text(node: Node, view: View) -> str:
    """`brentq, for each row`: the user's function, and the dims that it does not know."""
    batch = node.attrs.get("batch")
    if batch is None:
        known = {dim for some in node.attrs["dims"] for dim in some}
        batch = dict.fromkeys(d for x in node.inputs for d in x.type.dims if d not in known)
    each = f", for each {few(map(show_dim, batch))}" if batch else ""
    return f"{node.attrs['function']!r}{each}"


def needs_text(node: Node, view: View) -> str:
    """The relations of sizes that are checked."""
    found = [f"{view.size(a)} {how} {view.size(b)}" for _, a, how, b in node.attrs["needs"]]
    return f"where {few(found)}" if found else ""


PHRASES: dict[Op, Phrase] = {
    leaf.as_size: lambda node, view: view.size(node.attrs["size"]),
    leaf.after: needs_text,
    elementwise.cast: lambda node, view: f"to {show_dtype(node.attrs['dtype'])}",
    named.squeeze: lambda node, view: dims(node.attrs["dims"]),
    named.index: index,
    **dict.fromkeys((named.argsort, tensor.argsort), sort_text),
    **dict.fromkeys((named.max_, tensor.max_), extreme("at least")),
    **dict.fromkeys((named.min_, tensor.min_), extreme("at most")),
}
"""The text after the operands, for ops whose attrs read better than by the kind of their axes."""


def by_dims(of_dims: Phrase, of_axes: Phrase) -> Phrase:
    """A phrase for named ops and one for plain ops, as a single phrase."""
    return lambda node, view: (of_dims if node.type.dims is not None else of_axes)(node, view)


def labels_text(node: Node, view: View) -> str:
    """`along time`: the dims that have the labels of the second operand, or means of blocks."""
    blocks = few(view.size(size) for size in node.attrs["blocks"]) if node.attrs["blocks"] else ""
    along = f"along {dims(node.attrs['dims'])}" if node.attrs["dims"] else ""
    return f"{along}, means of {blocks}" if blocks else along


BY_KIND: dict[type[kinds.AxisKind], Phrase] = {
    **dict.fromkeys((kinds.Reduces, kinds.Along), worked_and_more),
    **dict.fromkeys((kinds.Joins, kinds.Indexes), axes_text),
    kinds.Seen: print_text,
    Calls: outside_text,
    kinds.Inserts: by_dims(
        lambda node, view: f"to {dims(node.attrs['dims'])}",
        lambda node, view: f"new {result_axes(node, view)}",
    ),
    kinds.Permutes: by_dims(lambda node, view: f"to {dims(node.attrs['dims'])}", transpose),
    kinds.Renames: lambda node, view: few(
        f"{show_dim(old)}→{show_dim(new)}" for old, new in node.attrs["names"]
    ),
    kinds.Relabels: labels_text,
    kinds.Reshapes: nothing,
    kinds.Splits: reshape_text,
    kinds.Ranges: by_dims(range_texts, slice_axes),
    kinds.Contracts: einsum,
    **dict.fromkeys((kinds.Matrices, kinds.NamedMatrices), matrices),
    **dict.fromkeys((kinds.Windows, kinds.Overlaps), by_dims(window_dims, window_axes)),
    kinds.Receives: by_dims(update_dims, result_axes),
    kinds.Searches: lambda node, view: ", ".join(
        [*[f"along {show_dim(dim)}" for dim in [node.attrs.get("dim")] if dim], node.attrs["side"]]
    ),
}
"""The text after the operands, by the kind of an op's axes."""
