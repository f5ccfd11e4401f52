"""A slow reading of plain graphs, one op at a time, sharing no code with any backend.

What a lazy derivative makes, and all that is made of it, is None: it has no meaning of its own
until it is expanded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import evaluate
from graphcore.ir.types import TupleType
from graphcore.ops import autodiff, control, elementwise, leaf, outside, tensor
from graphcore.schedule.order import in_order
from tests import matrices
from tests.functions import OURS


def run(
    graph: Graph, values: dict[str, np.ndarray], sizes: dict[str, int]
) -> list[np.ndarray | None]:
    """The outputs of a plain graph for inputs by name and unknown sizes by name."""
    done: dict[Node, Any] = {}
    sizes = dict(sizes)
    with np.errstate(all="ignore"):
        for node in in_order(graph.nodes()):
            done[node] = compute(node, [done[x] for x in node.inputs], values, sizes)
    return [done[x] for x in graph.outputs]


def compute(node: Node, xs: list[np.ndarray], values: Any, sizes: dict[str, int]) -> Any:
    op, attrs = node.op, node.attrs
    if op in autodiff.LAZY or any(x is None for x in xs):
        return None
    if op in (autodiff.barrier, autodiff.stop_gradient):
        return xs[0]
    if op is leaf.tuple_:
        return xs
    if op is leaf.project:
        return xs[0][attrs["index"]]

    def known(shape: Any) -> tuple[int, ...]:
        return tuple(evaluate(size, sizes) for size in shape)

    if op in CONTROL:
        return CONTROL[op](node, xs, sizes)
    if op is leaf.input_:
        return np.asarray(values[attrs["name"]], node.type.dtype)
    if op is leaf.constant:
        return attrs["value"].array
    if op is leaf.full:
        return np.full(known(attrs["shape"]), attrs["value"].array, attrs["value"].array.dtype)
    if op is leaf.iota:
        return np.arange(evaluate(attrs["size"], sizes), dtype=attrs["dtype"])
    if op is leaf.extent:
        return np.asarray(evaluate(attrs["size"], sizes), attrs["dtype"])
    if op is leaf.as_size:
        (name,) = attrs["size"].unknowns
        sizes[name] = int(xs[0])
    if op in (leaf.as_size, leaf.after):
        return xs[0]
    several = isinstance(node.type, TupleType)
    found = REFERENCE[op](xs, attrs, known)
    results = [np.asarray(result) for result in (found if several else [found])]
    for result, type in zip(results, node.type.items if several else [node.type], strict=True):
        assert result.shape == known(type.shape), (node, result.shape)
        assert result.dtype == type.dtype, (node, result.dtype)
    return results if several else results[0]


def spread(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    (x,) = xs
    sizes = dict(zip(attrs["axes"], known(attrs["sizes"]), strict=True))
    old = iter(x.shape)
    shape = [sizes[i] if i in sizes else next(old) for i in range(x.ndim + len(sizes))]
    return np.array(np.broadcast_to(np.expand_dims(x, attrs["axes"]), shape))


def places(starts: Any, sizes: Any, steps: Any) -> tuple[np.ndarray, ...]:
    """The positions of a range on every axis, as an open mesh."""
    ranges = zip(starts, sizes, steps, strict=True)
    return np.ix_(*[start + step * np.arange(size) for start, size, step in ranges])


def sliced(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    (x,) = xs
    if not x.ndim:
        return x
    return x[places(known(attrs["starts"]), known(attrs["sizes"]), attrs["steps"])]


def embedded(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    (x,) = xs
    if not x.ndim:
        return x
    zeros = np.zeros(known(attrs["shape"]), x.dtype)
    zeros[places(known(attrs["starts"]), x.shape, attrs["steps"])] = x
    return zeros


def window_places(shape: Any, attrs: Any, sizes: Any) -> Any:
    """For each place in a window: its offset, and the places of all windows as an open mesh."""
    axes, steps, dilations = attrs["axes"], attrs["strides"], attrs["dilations"]
    for offset in np.ndindex(*sizes):
        mesh = [np.arange(n) for n in shape]
        for axis, j, size, step, dilation in zip(
            axes, offset, sizes, steps, dilations, strict=True
        ):
            mesh[axis] = np.arange(j * dilation, shape[axis] - (size - 1 - j) * dilation, step)
        yield (slice(None),) * axes[0] + offset, np.ix_(*mesh)


def windowed(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    (x,), sizes, first = xs, known(attrs["sizes"]), attrs["axes"][0]
    parts = [x[mesh] for _, mesh in window_places(x.shape, attrs, sizes)]
    shape = parts[0].shape
    found = np.stack(parts, axis=first)
    return found.reshape(*shape[:first], *sizes, *shape[first:])


def overlapped(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    (x,), axes = xs, attrs["axes"]
    sizes = x.shape[axes[0] : axes[0] + len(axes)]
    shape = [*x.shape[: axes[0]], *x.shape[axes[0] + len(axes) :]]
    for axis, size in zip(axes, known(attrs["sizes"]), strict=True):
        shape[axis] = size
    zeros = np.zeros(shape, x.dtype)
    for offset, mesh in window_places(shape, attrs, sizes):
        zeros[mesh] += x[offset]
    return zeros


def recurrence(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    a, b = (np.moveaxis(x, attrs["axis"], 0) for x in xs)
    h = np.zeros_like(b)
    for t in range(len(b)):
        h[t] = b[t] + (np.where(a[t] == 0, 0, a[t] * h[t - 1]) if t else 0)
    return np.moveaxis(h, 0, attrs["axis"])


def gathered(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    x, *indices = xs
    moved = np.moveaxis(x, attrs["axes"], range(len(attrs["axes"])))
    return moved[tuple(indices)]


def scattered(start: int, change: Any) -> Any:
    """Updates that come together, one after the other."""

    def run(xs: Any, attrs: Any, known: Any) -> np.ndarray:
        whole = np.full(known(attrs["shape"]), start, xs[0].dtype)
        return received(change)((whole, *xs), attrs, known)

    return run


def received(change: Any) -> Any:
    """x changed by updates one after the other, row-major."""

    def run(xs: Any, attrs: Any, known: Any) -> np.ndarray:
        x, updates, *indices = xs
        result = x.copy()
        view = np.moveaxis(result, attrs["axes"], range(len(attrs["axes"])))
        for place in np.ndindex(*indices[0].shape):
            at = tuple(i[place] for i in indices)
            view[at] = change(view[at], updates[place])
        return result

    return run


def overwritten(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    x, part = xs
    result = x.copy()
    result[places(known(attrs["starts"]), part.shape, attrs["steps"]) if x.ndim else ()] = part
    return result


def contracted(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    terms = [t for pair in zip(xs, attrs["operands"], strict=True) for t in pair]
    return np.einsum(*terms, attrs["result"])


def norm(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    """The sum in the widest floats there are."""
    (x,) = xs
    total = np.sum(np.square(x.astype(np.longdouble)), axis=attrs["axes"])
    return np.asarray(np.sqrt(total)).astype(x.dtype)


def logsumexp(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    (x,), axes = xs, attrs["axes"]
    if not x.size:
        return np.sum(x, axis=axes) - np.inf
    return scipy.special.logsumexp(x, axis=axes) if axes else x


def transformed(x: np.ndarray, axis: int, size: int, sign: int) -> np.ndarray:
    """The first `size` values of a Fourier transform, by its matrix."""
    n = x.shape[axis]
    matrix = np.exp(sign * 2j * np.pi / n * np.outer(np.arange(size), np.arange(n)))
    found = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
    return found.astype(np.result_type(x.dtype, np.complex64))


def inverse_of_real(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    """Each value but the first, and the last of an even size, stands for its conjugate as well."""
    (x,), axis, (size,) = xs, attrs["axis"], known((attrs["size"],))
    k = np.arange(size // 2 + 1)
    weight = np.where((k == 0) | (2 * k == size), 1, 2)
    matrix = weight * np.exp(2j * np.pi / size * np.outer(np.arange(size), k))
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis).real.astype(x.real.dtype)


def logcumsumexp(x: np.ndarray, axis: int) -> np.ndarray:
    """Each place from all before it, afresh."""
    moved = np.moveaxis(x, axis, 0)
    found = np.zeros_like(moved)
    for t in range(len(moved)):
        found[t] = scipy.special.logsumexp(moved[: t + 1], axis=0) if moved.size else 0
    return np.moveaxis(found, 0, axis)


def softmax(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    (x,) = xs
    if not x.size:
        return x
    found = scipy.special.softmax(x, axis=attrs["axes"])
    lost = np.all(x == -np.inf, axis=attrs["axes"], keepdims=True)
    return np.where(lost, np.zeros_like(found), found)


def log_softmax(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    (x,) = xs
    return scipy.special.log_softmax(x, axis=attrs["axes"]) if x.size else x


def cast(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    (x,) = xs
    real = x.real if attrs["dtype"].kind not in "cb" else x
    return real.astype(attrs["dtype"])


def along(reduce: Any) -> Any:
    return lambda xs, attrs, known: reduce(xs[0], axis=attrs["axes"])


def extreme(reduce: Any, sign: int) -> Any:
    """The lowest or highest of the dtype, where there is nothing to choose from."""

    def run(xs: Any, attrs: Any, known: Any) -> np.ndarray:
        (x,) = xs
        given = attrs.get("initial")
        if given is None and x.dtype.kind != "f":
            return reduce(x, axis=attrs["axes"])
        start = sign * np.inf if given is None else given.array
        return reduce(x, axis=attrs["axes"], initial=start)

    return run


def on_axis(function: Any) -> Any:
    return lambda xs, attrs, known: function(xs[0], axis=attrs["axis"])


def position_in_order(row: np.ndarray, descending: bool) -> list[int]:
    """Python's own sort, which keeps ties as they are in either direction; nan is the largest."""
    places = range(len(row))
    keys = [(bool(np.isnan(v)), 0 if np.isnan(v) else v) for v in row]
    return sorted(places, key=keys.__getitem__, reverse=descending)


def ordered(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    (x,), axis = xs, attrs["axis"]
    moved = np.moveaxis(x, axis, -1)
    found = np.zeros(moved.shape, np.int64)
    for row in np.ndindex(moved.shape[:-1]):
        found[row] = position_in_order(moved[row], attrs["descending"])
    (size,) = known((attrs["size"],))
    return np.moveaxis(found[..., :size], -1, axis)


def searched(xs: Any, attrs: Any, known: Any) -> np.ndarray:
    """Counted, one value after the other."""
    x, values = xs
    found = np.zeros(values.shape, np.int64)
    for place in np.ndindex(values.shape):
        row, value = x[place[: x.ndim - 1]], values[place]
        past = (np.isnan(value) & ~np.isnan(row)) | (row < value)
        if attrs["side"] == "right":
            past |= (row == value) | (np.isnan(value) & np.isnan(row))
        found[place] = past.sum()
    return found


def pointwise(f: Any) -> Any:
    function = OURS.get(f) or getattr(scipy.special, f) if isinstance(f, str) else f
    return lambda xs, attrs, known: function(*xs)


def inside(graph: Graph, values: Any, sizes: Any) -> list[Any]:
    """The outputs of a body for its params in order."""
    names = [param.attrs["name"] for param in graph.params]
    return run(graph, dict(zip(names, values, strict=True)), sizes)


def stacked(steps: list[list[Any]], types: Any, order: int, sizes: Any) -> list[Any]:
    """The results of all steps, one array for each."""
    columns = zip(*steps[::order], strict=True) if steps else [[] for _ in types]
    return [
        np.stack(column) if len(column) else np.zeros(
            [0, *[evaluate(size, sizes) for size in type.shape[1:]]], type.dtype)
        for column, type in zip(columns, types, strict=True)
    ]  # fmt: skip


def scan(node: Node, xs: list[Any], sizes: Any) -> list[Any]:
    n, m = node.attrs["carries"], node.attrs["sequences"]
    carry, walked, captured = xs[:n], xs[n : n + m], xs[n + m :]
    order = -1 if node.attrs["reverse"] else 1
    steps = []
    for t in range(evaluate(node.attrs["length"], sizes))[::order]:
        outputs = inside(node.attrs["body"], [*carry, *[x[t] for x in walked], *captured], sizes)
        carry = outputs[:n]
        steps.append(outputs[n:])
    return [*carry, *stacked(steps, node.type.items[n:], order, sizes)]


def while_loop(node: Node, xs: list[Any], sizes: Any) -> list[Any]:
    n, trips = node.attrs["carries"], node.attrs["trips"]
    carry, captured = xs[:n], xs[n:]
    steps = []
    while inside(node.attrs["predicate"], [*carry, *captured], sizes)[0]:
        outputs = inside(node.attrs["body"], [*carry, *captured], sizes)
        carry = outputs[:n]
        steps.append(outputs[n:])
    if trips is None:
        return carry
    (name,) = trips.unknowns
    sizes[name] = len(steps)
    return [*carry, *stacked(steps, node.type.items[n:], 1, sizes)]


def of_matrices(op: Any) -> Any:
    """An op on matrices: the only result, or all of them."""
    several = len(matrices.linalg.SIGNATURES[op].results) > 1

    def run(xs: Any, attrs: Any, known: Any) -> Any:
        results = matrices.each(op, xs, attrs)
        return results if several else results[0]

    return run


CONTROL: dict[Any, Any] = {
    control.scan: scan,
    control.while_loop: while_loop,
    control.switch: lambda node, xs, sizes: inside(
        node.attrs["branches"][int(xs[0])], xs[1:], sizes
    ),
    control.call: lambda node, xs, sizes: inside(node.attrs["body"], xs, sizes),
    control.custom: lambda node, xs, sizes: inside(node.attrs["body"], xs, sizes),
    control.linear: lambda node, xs, sizes: inside(node.attrs["body"], xs, sizes),
}


def called(xs: list[np.ndarray], attrs: Any, known: Any) -> list[np.ndarray]:
    """A user's function of each element of the batch, where a mask holds if there is one."""
    lead = xs[0].shape[: len(attrs["batch"])]
    rest = iter(known(attrs["sizes"]))
    shapes = [tuple(next(rest) for _ in dims) for dims in attrs["made"]]
    found = [np.zeros((*lead, *of), dtype) for of, dtype in zip(shapes, attrs["dtypes"])]
    *xs, mask = xs if attrs["masked"] else (*xs, np.ones(lead, bool))
    for at in np.ndindex(lead):
        if mask[at]:
            made = attrs["function"]([x[at].copy() for x in xs])
            for y, (_, value) in zip(found, attrs["function"].parts(made), strict=True):
                y[at] = value
    return found


REFERENCE: dict[Any, Any] = {
    **{op: pointwise(f) for op, f in elementwise.UFUNC.items()},
    elementwise.real: lambda xs, attrs, known: xs[0].real,
    elementwise.imag: lambda xs, attrs, known: xs[0].imag,
    elementwise.cast: cast,
    elementwise.where: lambda xs, attrs, known: np.where(*xs),
    tensor.print_: lambda xs, attrs, known: xs[0],
    outside.callback_: called,
    tensor.expand: spread,
    **dict.fromkeys(
        (tensor.reshape, tensor.pack),
        lambda xs, attrs, known: xs[0].reshape(known(attrs["shape"])),
    ),
    tensor.transpose: lambda xs, attrs, known: xs[0].transpose(attrs["perm"]),
    tensor.slice_: sliced,
    tensor.embed: embedded,
    tensor.windows: windowed,
    tensor.overlap_add: overlapped,
    tensor.concat: lambda xs, attrs, known: np.concatenate(xs, axis=attrs["axis"]),
    tensor.sum_: along(np.sum),
    tensor.prod: on_axis(np.prod),
    tensor.max_: extreme(np.max, -1),
    tensor.min_: extreme(np.min, 1),
    tensor.wins: lambda xs, attrs, known: np.where(
        xs[1] > xs[2], xs[0], np.where(xs[1] == xs[2], xs[0] / 2, 0)
    ),
    tensor.absorb: lambda xs, attrs, known: np.where(
        (xs[0] == 0) & ~np.isfinite(xs[1]), xs[0], xs[0] * xs[1]
    ),
    tensor.norm: norm,
    tensor.any_: along(np.any),
    tensor.all_: along(np.all),
    tensor.argmax: on_axis(np.argmax),
    tensor.argmin: on_axis(np.argmin),
    tensor.sort: on_axis(np.sort),
    tensor.argsort: ordered,
    tensor.searchsorted: searched,
    tensor.logsumexp: logsumexp,
    tensor.softmax: softmax,
    tensor.log_softmax: log_softmax,
    tensor.fft: lambda xs, attrs, known: transformed(
        xs[0], attrs["axis"], xs[0].shape[attrs["axis"]], 1 if attrs["inverse"] else -1
    ),
    tensor.rfft: lambda xs, attrs, known: transformed(
        xs[0], attrs["axis"], xs[0].shape[attrs["axis"]] // 2 + 1, -1
    ),
    tensor.irfft: inverse_of_real,
    tensor.cumsum: on_axis(np.cumsum),
    tensor.cumprod: on_axis(np.cumprod),
    tensor.cummax: on_axis(np.maximum.accumulate),
    tensor.cummin: on_axis(np.minimum.accumulate),
    tensor.logcumsumexp: on_axis(logcumsumexp),
    tensor.recurrence: recurrence,
    tensor.einsum: contracted,
    tensor.matmul: lambda xs, attrs, known: np.matmul(*xs),
    tensor.matvec: lambda xs, attrs, known: np.matmul(xs[0], xs[1][..., None])[..., 0],
    tensor.vecdot: lambda xs, attrs, known: np.sum(xs[0] * xs[1], axis=-1),
    tensor.gather: gathered,
    tensor.scatter: scattered(0, np.add),
    tensor.scatter_prod: scattered(1, np.multiply),
    tensor.put: received(lambda old, new: new),
    tensor.scatter_add: received(np.add),
    tensor.scatter_max: received(np.maximum),
    tensor.scatter_min: received(np.minimum),
    tensor.overwrite: overwritten,
    **{op: of_matrices(op) for op in matrices.ONE},
}
