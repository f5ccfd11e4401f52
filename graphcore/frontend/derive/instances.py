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
from graphcore.ir.types import TupleType
from graphcore.ops import autodiff, control, leaf, named
from graphcore.ops.control import Loop

Axes = dict[str, tuple[str | Size, ...]]
"""For dims of a tensor the axes of the instances that run along them, slowest first.

What is merged with an axis and tells no instances apart is there by its size.
"""

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
                several = [found.get(x, [{}]) for x in node.inputs]
                if node.op in (autodiff.pullback, autodiff.pushforward):
                    found[node] = self.derivative(node, [axes for axes, *_ in several], sources)
                else:
                    found[node] = self.after(node, several)
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
                return [stacked(node, given[0])]
            case named.unstack:
                return [self.unstacked(node, given[0])]
            case control.scan | control.while_loop:
                return self.loop(node, given)
            case control.switch:
                branches = [self.inside(b, given[1:]) for b in node.attrs["branches"]]
                return [joined(node, [given[0], *ys]) for ys in zip(*branches, strict=True)]
            case control.call:
                return self.inside(node.attrs["body"], given)
            case control.custom:
                return self.custom(node, given)
        if node.op not in FREE:
            apart(node, worked(node), given)
        results = len(node.type.items) if isinstance(node.type, TupleType) else 1
        return [joined(node, given)] * results

    def derivative(
        self, node: Node, given: Sequence[Axes], sources: Mapping[Node, Axes]
    ) -> list[Axes]:
        """The axes of tangents are those of the results; cotangents have those that they meet.

        What it is taken by may have axes for the derivative only: the program is followed again.
        """
        ys, wrt = node.attrs["ys"], node.attrs["wrt"]
        results, xs, moved = given[:ys], given[ys : ys + wrt], given[ys + wrt :]
        nodes = node.inputs[ys : ys + wrt]
        if node.op is autodiff.pushforward:
            taken = [joined(node, pair) for pair in zip(xs, moved, strict=True)]
        else:
            flowing = [*results, *moved]
            taken = [completed(node, x, own, flowing) for x, own in zip(nodes, xs, strict=True)]
        found = self.follow(node.inputs[:ys], {**sources, **dict(zip(nodes, taken, strict=True))})
        made = [found.get(y, [{}])[0] for y in node.inputs[:ys]]
        if node.op is autodiff.pushforward:
            return made
        for pair in zip(made, moved, strict=True):
            joined(node, pair)
        return taken

    def unstacked(self, node: Node, given: Axes) -> Axes:
        """A merged dim in its parts again, if they are those that were merged."""
        rest, dim = dict(given), node.attrs["dim"]
        if not (axes := rest.pop(dim, ())):
            return rest
        sizes = node.attrs["sizes"]
        merged = [self.sizes[axis] if isinstance(axis, str) else axis for axis in axes]
        if len(axes) != len(sizes) or not all(map(same, sizes, merged)):
            raise Mixed(node, told(axes)[0], f"splits dim {dim!r} into other parts")
        parts = zip(node.attrs["names"], axes, strict=True)
        return rest | {name: (axis,) for name, axis in parts if isinstance(axis, str)}

    def inside(self, body: Graph, given: Sequence[Axes]) -> list[Axes]:
        """The axes of a body's outputs."""
        sources = {param: axes for param, axes in zip(body.params, given, strict=True) if axes}
        found = self.follow(body.outputs, sources)
        return [found.get(y, [{}])[0] for y in body.outputs]

    def custom(self, node: Node, given: Sequence[Axes]) -> list[Axes]:
        """The axes of a function's results; the rule must not mix the cotangents that matter."""
        rule = node.attrs["rule"]
        made = self.inside(node.attrs["body"], given)
        shares = [share for share, axes in zip(rule.outputs, given, strict=True) if axes]
        self.inside(Graph(rule.params, tuple(shares)), [*given, *made, *made])
        return made

    def loop(self, node: Node, given: Sequence[Axes]) -> list[Axes]:
        """The axes of a loop's results; those that a carry takes on in a step it keeps."""
        loop, params = Loop.of(node), list(given)
        n, dim = len(loop.carries), loop.settings.get("dim")
        if dim is not None:
            apart(node, {dim}, loop.params.split(given).sequences)
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


def told(axes: Sequence[str | Size]) -> list[str]:
    """The axes that tell instances apart."""
    return [axis for axis in axes if isinstance(axis, str)]


def stacked(node: Node, given: Axes) -> Axes:
    """The merged dim has the axes of its parts, if any has one."""
    rest, (x,) = dict(given), node.inputs
    parts = [rest.pop(dim, ()) or (x.type.size(dim),) for dim in node.attrs["dims"]]
    merged = tuple(axis for part in parts for axis in part)
    return rest | ({node.attrs["name"]: merged} if told(merged) else {})


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
                raise Mixed(node, told(axes)[0], f"works along dim {dim!r}")


def joined(node: Node, given: Sequence[Axes]) -> Axes:
    """The axes of operands that align by name."""
    found: Axes = {}
    where: dict[str, str] = {}
    for operand in given:
        for dim, axes in operand.items():
            if axes and found.setdefault(dim, axes) != axes:
                other = told(found[dim])[0]
                raise Mixed(node, told(axes)[0], f"brings it together with axis {other!r}")
            for axis in told(axes):
                if where.setdefault(axis, dim) != dim:
                    raise Mixed(node, axis, f"has it along both {where[axis]!r} and {dim!r}")
    return found


def completed(node: Node, x: Node, own: Axes, flowing: Sequence[Axes]) -> Axes:
    """Axes of what a pullback is taken by: its own, and those that flow along dims it has as well.

    A cotangent sums the shares of all that depends on it, so it must have all axes that flow.
    """
    whole = dict(own)
    for axes in flowing:
        whole |= {
            dim: along for dim, along in axes.items() if dim in x.type.sizes and dim not in whole
        }
    known = {axis for along in whole.values() for axis in told(along)}
    moving = {axis for axes in flowing for along in axes.values() for axis in told(along)}
    for axis in sorted(moving - known):
        raise Mixed(node, axis, "sums over it")
    return whole
