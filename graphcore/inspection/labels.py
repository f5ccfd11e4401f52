"""The names of axes on stages that know them by position alone, for people to read.

Lowering leaves `labels` on the nodes it makes. Nodes that later passes make have none: theirs
follow from their operands'. `LABELS` says how: `rule(node, *labels of the operands)`. An axis that
is still unlabelled is called what its users call it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.types import TensorType
from graphcore.ops import autodiff, leaf, linalg, tensor

Labels = tuple[str | None, ...]
Rule = Callable[..., Labels]


def infer(nodes: Iterable[Node]) -> dict[Node, Labels]:
    """Labels for the axes of every node, None where unknown; `nodes` come inputs first."""
    known: dict[Node, Labels] = {}
    for node in nodes:
        known[node] = labels_of(node, known)
    for node in reversed(known):
        if node.op in ALIGNED:
            for x in node.inputs:
                if None in known[x]:
                    known[x] = merge(known[x], known[node])
    return known


def labels_of(node: Node, known: Mapping[Node, Labels]) -> Labels:
    """The labels of one node, given those of its operands; of several values, none."""
    own = node.labels
    if own is not None and None not in own:
        return own
    if not isinstance(node.type, TensorType):
        return ()
    blank = (None,) * len(node.type.shape)
    if node.op is leaf.project:
        inferred = items_of(node.inputs[0], known)[node.attrs["index"]]
    elif (rule := LABELS.get(node.op)) is not None:
        inferred = rule(node, *[known[x] for x in node.inputs])
    else:
        inferred = blank
    return inferred if own is None else merge(own, inferred)


def items_of(node: Node, known: Mapping[Node, Labels]) -> list[Labels]:
    """The labels of each of the values that `node` makes."""
    if (typed_like := ITEMS.get(node.op)) is not None:
        return [known[x] for x in typed_like(node)]
    if node.op in MATRICES:
        return matrices(node, *[known[x] for x in node.inputs])
    return [item.dims or (None,) * len(item.shape) for item in node.type.items]


def merge(*operands: Labels) -> Labels:
    """Axis by axis the first label known."""
    first, *rest = operands
    if None not in first or not rest:
        return first
    return tuple(next(filter(None, axis), None) for axis in zip(*operands, strict=True))


def pick(labels: Labels, axes: Iterable[int]) -> Labels:
    return tuple(labels[axis] for axis in axes)


def without(labels: Labels, axes: Iterable[int]) -> Labels:
    gone = set(axes)
    return tuple(label for axis, label in enumerate(labels) if axis not in gone)


def same(node: Node, first: Labels, *rest: Labels) -> Labels:
    return first


def merged(node: Node, *operands: Labels) -> Labels:
    return merge(*operands)


def reduced(node: Node, x: Labels) -> Labels:
    return without(x, node.attrs["axes"])


def reduced_one(node: Node, x: Labels) -> Labels:
    return without(x, (node.attrs["axis"],))


def expand(node: Node, x: Labels) -> Labels:
    old, new = iter(x), set(node.attrs["axes"])
    return tuple(None if axis in new else next(old) for axis in range(len(node.type.shape)))


def reshape(node: Node, x: Labels) -> Labels:
    """Row-major, leading and trailing axes of equal sizes are the same axes."""
    before, after = node.inputs[0].type.shape, node.type.shape
    head = common(before, after)
    tail = common(before[head:][::-1], after[head:][::-1])
    middle = (None,) * (len(after) - head - tail)
    return x[:head] + middle + x[len(x) - tail :]


def common(a: Sequence[object], b: Sequence[object]) -> int:
    """How many leading elements are equal."""
    differs = (i for i, (left, right) in enumerate(zip(a, b, strict=False)) if left != right)
    return next(differs, min(len(a), len(b)))


def einsum(node: Node, *operands: Labels) -> Labels:
    named = letters(node, operands)
    return tuple(named.get(letter) for letter in node.attrs["result"])


def letters(node: Node, operands: Sequence[Labels]) -> dict[int, str]:
    """The label of each letter of an einsum that has one."""
    found: dict[int, str] = {}
    axes = chain.from_iterable(node.attrs["operands"])
    for letter, label in zip(axes, chain.from_iterable(operands), strict=True):
        if label is not None:
            found.setdefault(letter, label)
    return found


def matmul(node: Node, x: Labels, y: Labels) -> Labels:
    return (*merge(x[:-2], y[:-2]), x[-2], y[-1])


def gather(node: Node, x: Labels, *indices: Labels) -> Labels:
    return merge(*indices) + without(x, node.attrs["axes"])


def windows(node: Node, x: Labels) -> Labels:
    axes = node.attrs["axes"]
    return (*x[: axes[0]], *(None,) * len(axes), *x[axes[0] :])


def overlap_add(node: Node, x: Labels) -> Labels:
    axes = node.attrs["axes"]
    return (*x[: axes[0]], *x[axes[0] + len(axes) :])


def scatter(node: Node, updates: Labels, *indices: Labels) -> Labels:
    rest, axes = iter(updates[len(indices[0]) :]), set(node.attrs["axes"])
    return tuple(None if axis in axes else next(rest) for axis in range(len(node.type.shape)))


def matrices(node: Node, *operands: Labels) -> list[Labels]:
    """Of each result of an op on matrices: batch first, then what `MATRICES` says."""
    given, made = (side.split(",") for side in MATRICES[node.op].split("->"))
    if node.attrs.get("transposed"):
        given[0] = " ".join(reversed(given[0].split()))
    named: dict[str, str | None] = {}
    batches = []
    for labels, letters in zip(operands, map(str.split, given), strict=True):
        batch, own = labels[: -len(letters)], labels[-len(letters) :]
        batches.append(batch)
        for letter, label in zip(letters, own, strict=True):
            named[letter] = named.get(letter) or label
    return [(*merge(*batches), *map(named.get, item.split())) for item in made]


MATRICES: dict[Op, str] = {
    **dict.fromkeys((linalg.cholesky, linalg.cofactor), "r c -> r c"),
    **dict.fromkeys((linalg.expm, linalg.logm, linalg.sqrtm, linalg.polar), "r c -> r c"),
    **dict.fromkeys((linalg.inv, linalg.pinv), "r c -> c r"),
    **dict.fromkeys((linalg.solve, linalg.solve_triangular), "r c, r k -> c k"),
    linalg.solve_tridiagonal: "n, n, n, n k -> n k",
    linalg.lyapunov: "a b, r c -> r c",
    linalg.det: "r c -> ",
    linalg.slogdet: "r c -> , ",
    **dict.fromkeys((linalg.qr, linalg.qr_complete), "r c -> r new, new c"),
    linalg.lu: "r c -> old, old new, new c",
    **dict.fromkeys((linalg.svd, linalg.svd_full), "r c -> r new, new, new c"),
    **dict.fromkeys((linalg.eigh, linalg.eig), "r c -> new, r new"),
    **dict.fromkeys((linalg.svdvals, linalg.eigvalsh, linalg.eigvals), "r c -> new"),
    linalg.lu_factor: "r c -> r c, r",
    linalg.lu_solve: "r c, i, r k -> c k",
    linalg.lu_det: "r c, i -> ",
    linalg.lu_slogdet: "r c, i -> , ",
}
"""The axes of results that are axes of the operands; letters that no operand has are new axes."""

ALIGNED = frozenset((*tensor.POINTWISE, autodiff.barrier, autodiff.stop_gradient))
"""Ops whose plain operands and result have the same axes."""

LABELS: dict[Op, Rule] = {
    **dict.fromkeys(ALIGNED, merged),
    **dict.fromkeys((tensor.slice_, tensor.embed, tensor.softmax, tensor.log_softmax), same),
    **dict.fromkeys((tensor.sort, tensor.argsort), same),
    tensor.searchsorted: lambda node, x, values: values,
    **dict.fromkeys((tensor.cumsum, tensor.cumprod, tensor.cummax, tensor.cummin), same),
    tensor.logcumsumexp: same,
    **dict.fromkeys((tensor.fft, tensor.rfft, tensor.irfft), same),
    **dict.fromkeys((tensor.concat, tensor.recurrence, tensor.overwrite), merged),
    **dict.fromkeys((tensor.sum_, tensor.max_, tensor.min_, tensor.logsumexp), reduced),
    **dict.fromkeys((tensor.any_, tensor.all_, tensor.norm), reduced),
    **dict.fromkeys((tensor.prod, tensor.argmax, tensor.argmin), reduced_one),
    tensor.transpose: lambda node, x: pick(x, node.attrs["perm"]),
    tensor.expand: expand,
    **dict.fromkeys((tensor.reshape, tensor.pack), reshape),
    tensor.einsum: einsum,
    tensor.matmul: matmul,
    tensor.matvec: lambda node, x, y: (*merge(x[:-2], y[:-1]), x[-2]),
    tensor.vecdot: lambda node, x, y: merge(x, y)[:-1],
    tensor.windows: windows,
    tensor.overlap_add: overlap_add,
    tensor.gather: gather,
    **dict.fromkeys((tensor.scatter, tensor.scatter_prod), scatter),
    **dict.fromkeys((tensor.put, tensor.scatter_add, tensor.scatter_max, tensor.scatter_min), same),
    **dict.fromkeys(MATRICES, lambda node, *operands: matrices(node, *operands)[0]),
}

ITEMS: dict[Op, Callable[[Node], Sequence[Node]]] = {
    leaf.tuple_: lambda node: node.inputs,
    autodiff.pullback: lambda node: node.inputs[node.attrs["ys"] :][: node.attrs["wrt"]],
    autodiff.pushforward: lambda node: node.inputs[: node.attrs["ys"]],
}
"""Ops of several values: the operand that each value is typed like."""
