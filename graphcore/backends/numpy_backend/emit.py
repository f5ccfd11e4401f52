"""EMIT: how each plain op is computed by NumPy, `(node, writer, out) -> call`.

`out` names the array to write into, or is "" where NumPy shall make one. The writer names operands:
`array` where broadcasting is as good as repetition, `full` where every element must exist. A rule
returns a name instead of a call where there is nothing to compute.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from graphcore.analysis.values import are_distinct
from graphcore.backends.printing import show
from graphcore.ir import Literal, Node, Op, Shape, Size
from graphcore.ir.op import for_every
from graphcore.ir.sizes import count
from graphcore.ir.types import show_dtype
from graphcore.ops import elementwise, leaf, linalg, outside, tensor
from graphcore.rewrites.decompose import DECOMPOSE

from . import fourier, routines, sums
from .by_function import with_attrs
from .call_text import call, item, sequence
from .callbacks import Caller
from .scalars import ANY
from .value_names import is_number, repeats_number
from .writer import Writer

Front: TypeAlias = "Callable[[str], str]"
Emit: TypeAlias = Callable[[Node, Writer, str], str]


def ufunc(node: Node, w: Writer, out: str) -> str:
    """An elementwise op: the ufunc with `out` as its last argument, the quickest way to pass it."""
    function = elementwise.UFUNC[node.op]
    name = w.special(function) if isinstance(function, str) else w.bind(node.op.name, function)
    return call(name, *[w.operand(x) for x in node.inputs], out)


def ufunc_by_keyword(node: Node, w: Writer, out: str) -> str:
    """A ufunc of two that takes `out` as a keyword."""
    return ufunc(node, w, f"out={out}")


def reduction(name: str, function: np.ufunc, sign: int = 0) -> Emit:
    """A ufunc's reduction over `axes`, or `axis`.

    With a sign it is the largest or smallest value, which starts from the limit of the dtype where
    there may be no values.
    """

    def emit(node: Node, w: Writer, out: str) -> str:
        (x,), attrs = node.inputs, node.attrs
        over = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
        initial = attrs.get("initial")
        start = () if initial is None else (w.literal(initial),)
        sizes = [x.type.shape[axis] for axis in over]
        if sign and not start and not all(isinstance(size, int) and size for size in sizes):
            start = (w.bind(f"{name}_start_{w.dtype(x.type.dtype)}", limit(x, sign)),)
        reduce = w.bind(f"{name}_reduce", function.reduce)
        axis = str(over[0] if len(over) == 1 else over)
        return call(reduce, w.full(x), axis, "None", out, *(("False", *start) if start else ()))

    return emit


def limit(x: Node, sign: int) -> object:
    """The lowest (sign -1) or the highest (1) value of the dtype."""
    dtype = x.type.dtype
    if dtype.kind == "b":
        return sign > 0
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return bounds.max if sign > 0 else bounds.min
    return dtype.type(complex(sign * np.inf, sign * np.inf) if dtype.kind == "c" else sign * np.inf)


def in_blocks(few: int, plainly: Emit, name: str) -> Emit:
    """A sum by a function of `sums`, or `plainly` where no more than `few` values are added up."""
    function = getattr(sums, name)

    def emit(node: Node, w: Writer, out: str) -> str:
        many = count(summed(node))
        if node.type.dtype.kind not in "fc" or (isinstance(many, int) and many <= few):
            return plainly(node, w, out)
        over = [str(node.attrs[key]) for key in ("axes", "axis") if key in node.attrs]
        return call(w.bind(name, function), *map(w.full, node.inputs), *over, out)

    return emit


def summed(node: Node) -> Shape:
    """The sizes of the axes along which values are added up."""
    shape = node.inputs[0].type.shape
    if "axis" in node.attrs:
        return (shape[node.attrs["axis"]],)
    return tuple([shape[axis] for axis in node.attrs.get("axes", (-1,))])


def norm(node: Node, w: Writer, out: str) -> str:
    x, axes = w.full(node.inputs[0]), str(node.attrs["axes"])
    return call(w.bind("norm", routines.norm), x, axes, out)


def accumulation(name: str, function: np.ufunc) -> Emit:
    """A ufunc's running reduction along `axis`."""

    def emit(node: Node, w: Writer, out: str) -> str:
        accumulate = w.bind(f"{name}_accumulate", function.accumulate)
        return call(accumulate, w.full(node.inputs[0]), str(node.attrs["axis"]), "None", out)

    return emit


def routine(name: str) -> Emit:
    """One of our own routines, which always write into `out`."""

    def emit(node: Node, w: Writer, out: str) -> str:
        return call(w.bind(name, getattr(routines, name)), *map(w.array, node.inputs), out)

    return emit


def ranges(node: Node, sizes: Shape, w: Writer) -> str:
    """The index of a range on each axis."""
    parts = [
        one_range(start, size, step, whole, w)
        for start, size, step, whole in zip(
            node.attrs["starts"], sizes, node.attrs["steps"], full_shape(node), strict=True
        )
    ]
    text = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return w.from_sizes(text, *node.attrs["starts"], *sizes, *full_shape(node))


def full_shape(node: Node) -> Shape:
    """The shape of the larger array of a slice or an embed, in which its ranges lie."""
    shape: Shape = (node if node.op is tensor.embed else node.inputs[0]).type.shape
    return shape


def one_range(start: Size, size: Size, step: int, whole: Size, w: Writer) -> str:
    """The slice of one axis; computed at the call where it depends on unknown sizes."""
    if start == 0 and step == 1 and size == whole:
        return w.bind("ALL", slice(None))
    if isinstance(start, int) and isinstance(size, int):
        found = routines.span(start, size, step)
        return f"slice({found.start}, {found.stop}, {found.step})"
    return call(w.bind("span", routines.span), w.size(start), w.size(size), str(step))


def slice_(node: Node, w: Writer, out: str) -> str:
    x = w.full(node.inputs[0])
    return item(x, ranges(node, node.type.shape, w)) if node.type.shape else x


def embed(node: Node, w: Writer, out: str) -> str:
    (x,) = node.inputs
    index = ranges(node, x.type.shape, w) if node.type.shape else "()"
    return call(w.bind("embed", routines.embed), w.array(x), index, out)


def window_arguments(node: Node) -> tuple[str, ...]:
    """The axes of windows, and how they step."""
    attrs = node.attrs
    return str(attrs["axes"]), str(attrs["strides"]), str(attrs["dilations"])


def windows(node: Node, w: Writer, out: str) -> str:
    sizes = w.shape(node.attrs["sizes"])
    function = w.bind("windows", routines.windows)
    return call(function, w.full(node.inputs[0]), sizes, *window_arguments(node))


def overlap_add(node: Node, w: Writer, out: str) -> str:
    function = w.bind("overlap_add", routines.overlap_add)
    return call(function, w.full(node.inputs[0]), *window_arguments(node), out)


def expand(node: Node, w: Writer, out: str) -> str:
    """The view that broadcasts to the repeated values; leading axes need none."""
    x, axes = w.full(node.inputs[0]), node.attrs["axes"]
    rank = node.type.ndim
    lead = 0
    while lead < rank and lead in axes:
        lead += 1
    index = ["None" if axis in axes else ":" for axis in range(lead, rank)]
    return item(x, *index) if "None" in index else x


def product(name: str, rank: int) -> Emit:
    """A contraction of two operands: `dot` where a result of `rank` axes leaves none for batch.

    It is quicker to call than `matmul`, which matters in loops, but first clears its result, which
    matters where matrices are large.
    """

    def emit(node: Node, w: Writer, out: str) -> str:
        operands, kind = map(w.full, node.inputs), node.type.dtype.kind
        if node.type.ndim > rank or (rank == 2 and kind in "fc" and w.block == 0):
            return call(w.bind(name, getattr(np, name)), *operands, out)
        return call(w.bind("dot", np.dot), *operands, out)

    return emit


def concat(node: Node, w: Writer, out: str) -> str:
    parts = f"({', '.join(map(w.full, node.inputs))})"
    return call(w.bind("concatenate", np.concatenate), parts, str(node.attrs["axis"]), out)


def where(node: Node, w: Writer, out: str) -> str:
    """A choice: of two numbers in Python's words where the condition is one."""
    condition, x, y = node.inputs
    one = condition.inputs[0] if repeats_number(condition) else condition
    if is_number(one.type):
        chosen = ANY[elementwise.where].format(w.scalar(one), w.array(x), w.array(y))
        w.do(call(w.bind("copyto", np.copyto), out, chosen), node)
        return out
    return call(w.bind("either", routines.either), *map(w.array, node.inputs), out)


def overwrite(node: Node, w: Writer, out: str) -> str:
    x, part = node.inputs
    index = ranges(node, part.type.shape, w) if node.type.shape else "()"
    return call(w.bind("overwrite", routines.overwrite), w.array(x), w.array(part), index, out)


def positions(node: Node, w: Writer, whole: Node) -> tuple[Front, list[str]]:
    """The function that moves the indexed axes of `whole` to the front, and their index there."""
    axes = node.attrs["axes"]
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    rest = [axis for axis in range(whole.type.ndim) if axis not in axes]
    perm = (*sorted(axes), *rest)

    def front(x: str) -> str:
        return x if perm == tuple(range(len(perm))) else call(f"{x}.transpose", str(perm))

    if at_one_place(node):
        return front, [w.scalar(indices_of(node)[i]) for i in order]
    spelled = spelled_indices(node, w)
    for at, index in enumerate(indices_of(node)):
        if index.type.dtype == np.uint64:  # NumPy would let it count from the end
            size = w.size(whole.type.shape[axes[at]])
            spelled[at] = call(w.bind("from_start", routines.from_start), spelled[at], size)
    return front, [spelled[i] for i in order]


def at_one_place(node: Node) -> bool:
    """Whether every position of `node` is a single number."""
    return all(is_number(index.type) for index in indices_of(node))


def indices_of(node: Node) -> tuple[Node, ...]:
    """The operands that are positions: the last ones."""
    return node.inputs[-len(node.attrs["axes"]) :]


def spelled_indices(node: Node, w: Writer) -> list[str]:
    """Indices that broadcast to their full shape."""
    indices = indices_of(node)
    spelled = [w.array(index) for index in indices]
    if not any(w.is_full_shape(index) for index in indices):
        spelled[0] = w.full(indices[0])
    return spelled


def gather(node: Node, w: Writer, out: str) -> str:
    """Values picked, in memory of their own.

    NumPy gives a view where each position is one number, in any dtype, else a copy.
    """
    x = node.inputs[0]
    front, index = positions(node, w, x)
    single = not indices_of(node)[0].type.shape
    if node.attrs["axes"] == (0,) and x.type.ndim > 1 and not single:
        return call(w.bind("rows", routines.rows), w.full(x), *index)
    picked = item(front(w.full(x)), *index)
    return call(f"{picked}.copy") if single and node.type.shape else picked


def update_emitter(routine: Callable[..., object], *combine: np.ufunc, start: int = 0) -> Emit:
    """Updates of `start` or of a tensor: all at once where no position occurs twice."""

    def emit(node: Node, w: Writer, out: str) -> str:
        indices = indices_of(node)
        *first, updates = node.inputs[: -len(indices)]
        begin = w.array(first[0]) if first else w.literal(Literal(start, node.type.dtype))
        ufuncs = [w.bind(f"{ufunc.__name__}_ufunc", ufunc) for ufunc in combine]
        if are_distinct(indices):
            front, index = positions(node, w, node)
            where = (front(out), sequence(*index), w.array(updates), out)
            if not (combine and first):
                return call(w.bind("place", routines.place), begin, *where)
            return call(w.bind("combine", routines.combine), *ufuncs, begin, *where)
        axes, indexed = str(node.attrs["axes"]), sequence(*spelled_indices(node, w))
        function = w.bind(routine.__name__, routine)
        return call(function, *ufuncs, begin, axes, indexed, w.array(updates), out)

    return emit


def sort(node: Node, w: Writer, out: str) -> str:
    function = w.bind("sort", routines.sort)
    return call(function, w.array(node.inputs[0]), str(node.attrs["axis"]), out)


def argsort(node: Node, w: Writer, out: str) -> str:
    size = w.size(node.attrs["size"])
    how = (str(node.attrs["axis"]), size, str(node.attrs["descending"]))
    return call(w.bind("argsort", routines.argsort), w.full(node.inputs[0]), *how)


def transform(node: Node, w: Writer, out: str) -> str:
    inverse = node.op is tensor.irfft or node.attrs.get("inverse", False)
    name = {tensor.rfft: "rfft", tensor.irfft: "irfft"}.get(node.op, "ifft" if inverse else "fft")
    size = (w.size(node.attrs["size"]),) if node.op is tensor.irfft else ()
    how = (str(node.attrs["axis"]), *size)
    return call(w.bind(name, getattr(fourier, name)), w.full(node.inputs[0]), *how)


def print_(node: Node, w: Writer, out: str) -> str:
    """The operand; the function knows the label, which is no part of the code."""
    label, dims = node.attrs["label"], node.attrs["dims"]
    function = w.bind(
        w.sheet.name("print"), partial(show, label, show_dtype(node.type.dtype), dims)
    )
    return call(function, w.full(node.inputs[0]))


def callback(node: Node, w: Writer, out: str) -> str:
    """A function that a user gave; the shapes of its results are checked."""
    function = w.bind(w.sheet.name("callback"), Caller(node.attrs))
    shapes = sequence(*[w.shape(y.shape) for y in node.type.items])
    return call(function, shapes, *map(w.full, node.inputs))


def searchsorted(node: Node, w: Writer, out: str) -> str:
    function = w.bind("searchsorted", routines.searchsorted)
    return call(function, *map(w.full, node.inputs), repr(node.attrs["side"]))


def recurrence(node: Node, w: Writer, out: str) -> str:
    a, b = map(w.full, node.inputs)
    return call(w.bind("recurrence", routines.recurrence), a, b, str(node.attrs["axis"]))


def iota(node: Node, w: Writer, out: str) -> str:
    dtype = w.dtype(node.type.dtype)
    return call(w.bind("arange", np.arange), w.size(node.attrs["size"]), f"dtype={dtype}")


def matrices(node: Node, w: Writer, out: str) -> str:
    """The routine of an op on matrices, its attrs as keywords."""
    from . import linalg as own

    return with_attrs(w.bind(f"linalg_{node.op.name}", getattr(own, node.op.name)), node, w)


def extent(node: Node, w: Writer, out: str) -> str:
    dtype = w.dtype(node.type.dtype)
    return call(w.bind("asarray", np.asarray), w.size(node.attrs["size"]), dtype)


def as_size(node: Node, w: Writer, out: str) -> str:
    """A value as a size: the first of a size gives it, others must agree with it."""
    (name,) = node.attrs["size"].unknowns
    x = w.scalar(node.inputs[0])
    if (known := w.sizes.get(name)) is not None:
        w.require_size(known, "==", x, f"the size {name} is computed twice", node)
    else:
        value = call(w.bind("found_size", routines.found_size), x)
        w.sizes[name] = w.sheet.sizes[name] = w.assign("m", value, node)
        w.check_needs(name, node)
    return w.array(node.inputs[0])


def of_axis(name: str) -> Emit:
    """A method of arrays that takes one axis."""

    def emit(node: Node, w: Writer, out: str) -> str:
        return call(f"{w.full(node.inputs[0])}.{name}", str(node.attrs["axis"]))

    return emit


def leaf_name(node: Node, w: Writer, out: str) -> str:
    """Inputs and constants have their names from the start."""
    return w.array(node)


INTO: dict[Op, Emit] = {
    **dict.fromkeys((elementwise.maximum, elementwise.minimum), ufunc_by_keyword),
    elementwise.real: routine("real"),
    elementwise.imag: routine("imag"),
    elementwise.cast: routine("cast"),
    elementwise.where: where,
    tensor.where_greater: routine("where_greater"),
    tensor.multiply_no_nan: routine("multiply_no_nan"),
    tensor.pack: lambda node, w, out: call(
        w.bind("pack", routines.pack), w.full(node.inputs[0]), out
    ),
    tensor.embed: embed,
    tensor.overlap_add: overlap_add,
    tensor.concat: concat,
    tensor.sum_: in_blocks(sums.SHORT, reduction("add", np.add), "sum_in_blocks"),
    tensor.prod: reduction("multiply", np.multiply),
    tensor.max_: reduction("maximum", np.maximum, -1),
    tensor.min_: reduction("minimum", np.minimum, 1),
    tensor.norm: norm,
    tensor.any_: reduction("logical_or", np.logical_or),
    tensor.all_: reduction("logical_and", np.logical_and),
    tensor.sort: sort,
    tensor.cumsum: in_blocks(sums.SHORT, accumulation("add", np.add), "cumsum"),
    tensor.cumprod: accumulation("multiply", np.multiply),
    tensor.cummax: accumulation("maximum", np.maximum),
    tensor.cummin: accumulation("minimum", np.minimum),
    tensor.logcumsumexp: in_blocks(
        sums.SHORT, accumulation("logaddexp", np.logaddexp), "logcumsumexp"
    ),
    tensor.matmul: in_blocks(sums.SHORT, product("matmul", 2), "matmul_in_blocks"),
    tensor.matvec: in_blocks(sums.SHORT, product("matvec", 1), "matvec_in_blocks"),
    tensor.vecdot: in_blocks(sums.SHORT, product("vecdot", 0), "vecdot_in_blocks"),
    tensor.scatter: update_emitter(routines.scatter, np.add),
    tensor.scatter_add: update_emitter(routines.scatter, np.add),
    tensor.scatter_prod: update_emitter(routines.scatter, np.multiply, start=1),
    tensor.scatter_max: update_emitter(routines.scatter, np.maximum),
    tensor.scatter_min: update_emitter(routines.scatter, np.minimum),
    tensor.put: update_emitter(routines.put),
    tensor.overwrite: overwrite,
}
"""Ops whose lines write into the array `out`."""

NEW: dict[Op, Emit] = {
    tensor.argmax: of_axis("argmax"),
    tensor.argmin: of_axis("argmin"),
    tensor.argsort: argsort,
    tensor.searchsorted: searchsorted,
    tensor.fft: transform,
    tensor.rfft: transform,
    tensor.irfft: transform,
}
"""Ops for which NumPy makes a new array, if the result has axes."""

EMIT: dict[Op, Emit] = {
    **INTO,
    **NEW,
    **dict.fromkeys(linalg.SIGNATURES.keys() - DECOMPOSE.keys(), matrices),
    leaf.project: lambda node, w, out: item(w.array(node.inputs[0]), str(node.attrs["index"])),
    leaf.input_: leaf_name,
    leaf.constant: leaf_name,
    leaf.full: leaf_name,
    leaf.iota: iota,
    leaf.extent: extent,
    leaf.as_size: as_size,
    leaf.after: lambda node, w, out: w.full(node.inputs[0]),
    tensor.expand: expand,
    tensor.reshape: lambda node, w, out: call(
        f"{w.full(node.inputs[0])}.reshape", w.shape(node.type.shape)
    ),
    tensor.transpose: lambda node, w, out: call(
        f"{w.full(node.inputs[0])}.transpose", str(node.attrs["perm"])
    ),
    tensor.slice_: slice_,
    tensor.windows: windows,
    tensor.recurrence: recurrence,
    tensor.gather: gather,
    tensor.print_: print_,
    outside.callback_: callback,
}


def emit_elementwise(op: Op) -> None:
    """Elementwise ops without a rule of their own are ufuncs."""
    if op not in EMIT and op not in DECOMPOSE:
        EMIT[op] = INTO[op] = ufunc


for_every("elementwise", emit_elementwise)
