"""Per-instance gradients: which axes of a program tell its instances apart, and where they mix.

An axis is followed by identity, not by name: through rename, stack and unstack, and into the bodies
of loops. An op that works along one mixes the instances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphcore.ir.dtypes import differentiable
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node, toposort
from graphcore.ir.sizes import Size, same
from graphcore.ops import autodiff, control, leaf, named

Axes = dict[str, tuple[str, ...]]
"""For each dim of a tensor the axes of the instances that run along it, slowest first."""

FREE = frozenset({named.transpose, named.broadcast})
WORKS = ("dims", "dim", "over")
"""Attrs that name the dims an op works along."""


class Mixed(Exception):
    """Instances along an axis meet in a node."""

    def __init__(self, node: Node, axis: str, how: str) -> None:
        self.node, self.axis, self.how = node, axis, how


class Instances:
    """Follows axes of known sizes down a graph."""

    def __init__(self, sizes: Mapping[str, Size]) -> None:
        self.sizes = sizes

    def follow(self, roots: Sequence[Node], sources: Mapping[Node, Axes]) -> dict[Node, list[Axes]]:
        """The axes of each node that depends on `sources`, a list of one for each of its values."""
        found = {node: [axes] for node, axes in sources.items()}
        order = toposort(roots)
        live = set(roots)
        for node in reversed(order):
            if node in live and node.op is not autodiff.stop_gradient:
                live.update(x for x in node.inputs if carries(x))
        for node in order:
            if node in live and node not in found and any(x in found for x in node.inputs):
                found[node] = self.after(node, [found.get(x, [{}]) for x in node.inputs])
        return found

    def after(self, node: Node, several: Sequence[list[Axes]]) -> list[Axes]:
        """The axes of what a node makes of its operands, or Mixed where it works along one."""
        if node.op is leaf.project:
            return [several[0][node.attrs["index"]]]
        given = [axes for axes, *_ in several]
        match node.op:
            case named.rename:
                names = dict(node.attrs["names"])
                return [{names.get(dim, dim): axes for dim, axes in given[0].items()}]
            case named.stack:
                rest = dict(given[0])
                parts = [rest.pop(dim, ()) for dim in node.attrs["dims"]]
                return [rest | {node.attrs["name"]: tuple(a for part in parts for a in part)}]
            case named.unstack:
                return [self.unstacked(node, given[0])]
            case autodiff.pullback | autodiff.pushforward:
                return derivative(node, given)
            case control.scan | control.while_loop:
                return self.loop(node, given)
            case control.switch:
                branches = [self.inside(b, given[1:]) for b in node.attrs["branches"]]
                return [joined(node, [given[0], *ys]) for ys in zip(*branches, strict=True)]
            case control.call | control.custom:
                return self.inside(node.attrs["body"], given)
        if node.op not in FREE:
            apart(node, worked(node), given)
        return [joined(node, given)]

    def unstacked(self, node: Node, given: Axes) -> Axes:
        """A merged dim in its parts again, if they are those that were merged."""
        rest, dim = dict(given), node.attrs["dim"]
        if not (axes := rest.pop(dim, ())):
            return rest
        sizes = node.attrs["sizes"]
        merged = [self.sizes[axis] for axis in axes]
        if len(axes) != len(sizes) or not all(map(same, sizes, merged)):
            raise Mixed(node, axes[0], f"splits dim {dim!r} into other parts")
        return rest | {name: (axis,) for name, axis in zip(node.attrs["names"], axes, strict=True)}

    def inside(self, body: Graph, given: Sequence[Axes]) -> list[Axes]:
        """The axes of a body's outputs."""
        sources = {param: axes for param, axes in zip(body.params, given, strict=True) if axes}
        found = self.follow(body.outputs, sources)
        return [found.get(y, [{}])[0] for y in body.outputs]

    def loop(self, node: Node, given: Sequence[Axes]) -> list[Axes]:
        """The axes of a loop's results; those that a carry takes on in a step it keeps."""
        dim, n = node.attrs.get("dim"), node.attrs["carries"]
        if dim is not None:
            apart(node, {dim}, given[n : n + node.attrs["sequences"]])
        params = list(given)
        while True:
            made = self.inside(node.attrs["body"], params)
            carried = [joined(node, pair) for pair in zip(params[:n], made, strict=False)]
            if carried == params[:n]:
                return made
            params[:n] = carried


def carries(node: Node) -> bool:
    """Whether a derivative can flow through a value: it is made of floats, or of several values."""
    dtype = getattr(node.type, "dtype", None)
    return dtype is None or differentiable(dtype)


def worked(node: Node) -> set[str]:
    """The dims that an op names as those it works along."""
    found: set[str] = set()
    for name in WORKS:
        value = node.attrs.get(name, ())
        found.update([value] if isinstance(value, str) else value)
    return found


def apart(node: Node, dims: set[str], given: Sequence[Axes]) -> None:
    """Raise Mixed if an operand has instances along one of `dims`."""
    for operand in given:
        for dim, axes in operand.items():
            if dim in dims and axes:
                raise Mixed(node, axes[0], f"works along dim {dim!r}")


def joined(node: Node, given: Sequence[Axes]) -> Axes:
    """The axes of operands that align by name."""
    found: Axes = {}
    where: dict[str, str] = {}
    for operand in given:
        for dim, axes in operand.items():
            if axes and found.setdefault(dim, axes) != axes:
                raise Mixed(node, axes[0], f"brings it together with axis {found[dim][0]!r}")
            for axis in axes:
                if where.setdefault(axis, dim) != dim:
                    raise Mixed(node, axis, f"has it along both {where[axis]!r} and {dim!r}")
    return found


def derivative(node: Node, given: Sequence[Axes]) -> list[Axes]:
    """A cotangent sums the shares of all that depends on it: its axes must be those of the rest."""
    ys, wrt = node.attrs["ys"], node.attrs["wrt"]
    if node.op is autodiff.pushforward:
        return list(given[:ys])
    flowing = {axis for axes in given for along in axes.values() for axis in along}
    for axes in given[ys : ys + wrt]:
        own = {axis for along in axes.values() for axis in along}
        for axis in sorted(flowing - own):
            raise Mixed(node, axis, "sums over it")
    return list(given[ys : ys + wrt])
