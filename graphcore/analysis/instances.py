"""Per-instance gradients: which axes of a program distinguish its instances, and where they mix.

An axis is followed by identity, not by name: through rename, stack and unstack, and into the bodies
of loops. An op that works along an axis mixes its instances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphcore.ir import Graph, Node, Size, TensorType
from graphcore.ir.axes import How, Relabels, Sources, Splits, operands, values
from graphcore.ir.provenance import setting
from graphcore.ir.sizes import same
from graphcore.ops import autodiff, control

from .dataflow import Known
from .following import Facts, Follower
from .paths import of_floats

Along = tuple[str | Size, ...]
"""The axes of the instances that run along a dim, slowest first.

A part of a merged dim that distinguishes no instances is listed by its size.
"""

Axes = Facts[Along]


class Mixed(Exception):
    """Instances along an axis are combined by a node."""

    def __init__(self, node: Node, axis: str, how: str) -> None:
        self.node, self.axis, self.how = node, axis, how


class Instances(Follower[Along]):
    """Follows axes of known sizes down a graph."""

    def __init__(self, sizes: Mapping[str, Size]) -> None:
        self.sizes = sizes
        self._sources: Mapping[Node, Axes] = {}

    def follow(self, roots: Sequence[Node], sources: Mapping[Node, Axes]) -> Known[Axes]:
        """The axes of the nodes through which a derivative flows."""
        with setting(self, _sources=sources):
            return super().follow(roots, sources)

    def reads(self, node: Node) -> Sequence[Node]:
        """The operands through which a derivative flows."""
        stops = node.op is autodiff.stop_gradient
        return () if stops else [x for x in node.inputs if of_floats(x.type)]

    def after(self, node: Node, given: Sequence[Axes], known: Known[Axes]) -> Sequence[Axes]:
        """The axes of the results of a node; Mixed is raised where it works along one."""
        if not any(given):
            return [{} for _ in values(node.type)]
        if node.op in autodiff.LAZY:
            return self.derivative(node, given)
        made = super().after(node, given, known)
        if node.op is control.custom:
            self.check_rule(node, given, made)
        return made

    def by_kind(self, node: Node, given: Sequence[Axes]) -> list[Axes]:
        """Dims that are batch keep their axes, and merged ones have those of their parts."""
        if isinstance(node.op.axes, Relabels):
            given = [given[0], {}]  # of the second operand nothing but labels is read
        if isinstance(node.op.axes, Splits):
            merges = isinstance(node.attrs[node.op.axes.old], tuple)
            return [merge_axes(node, given[0]) if merges else self.unstack(node, given[0])]
        results = []
        for y, by_operand in zip(values(node.type), node.op.axes.sources(node), strict=True):
            aligned: list[Axes] = []
            for x, axes, sources in zip(operands(node), given, by_operand, strict=True):
                kept = batch_dims(x, y, sources)
                for dim, along in axes.items():
                    if along and dim not in kept:
                        raise Mixed(node, instance_axes(along)[0], f"works along dim {dim!r}")
                aligned.append({kept[dim]: along for dim, along in axes.items() if along})
            results.append(self.join(node, aligned))
        return results

    def join(self, node: Node, several: Sequence[Axes]) -> Axes:
        """The axes of operands that align by name."""
        found: Axes = {}
        where: dict[str, str] = {}
        for operand in several:
            for dim, axes in operand.items():
                if axes and found.setdefault(dim, axes) != axes:
                    other = instance_axes(found[dim])[0]
                    raise Mixed(
                        node, instance_axes(axes)[0], f"brings it together with axis {other!r}"
                    )
                for axis in instance_axes(axes):
                    if where.setdefault(axis, dim) != dim:
                        raise Mixed(node, axis, f"has it along both {where[axis]!r} and {dim!r}")
        return found

    def one_step(self, node: Node, x: Node, fact: Axes) -> Axes:
        """Steps are not instances: a loop works along its dim."""
        dim = node.attrs["dim"]
        if along := fact.get(dim):
            raise Mixed(node, instance_axes(along)[0], f"works along dim {dim!r}")
        return super().one_step(node, x, fact)

    def check_rule(self, node: Node, given: Sequence[Axes], made: Sequence[Axes]) -> None:
        """The rule of a function must not mix the cotangents that matter."""
        rule = node.attrs["rule"]
        shares = [share for share, axes in zip(rule.outputs, given, strict=True) if axes]
        self.of_outputs(Graph(rule.params, tuple(shares)), [*given, *made, *made])

    def derivative(self, node: Node, given: Sequence[Axes]) -> list[Axes]:
        """The axes of tangents are those of the results; cotangents have those that they meet.

        The program is followed again from the tensors that the derivative is taken with respect to,
        as these may have axes for the derivative only.
        """
        results, xs, moved = autodiff.group(node, given)
        ys, nodes, _ = autodiff.group(node, node.inputs)
        if node.op is autodiff.pushforward:
            own_axes = [self.join(node, pair) for pair in zip(xs, moved, strict=True)]
        else:
            flowing = [*results, *moved]
            own_axes = [
                complete_axes(node, x, own, flowing) for x, own in zip(nodes, xs, strict=True)
            ]
        found = self.follow(ys, {**self._sources, **dict(zip(nodes, own_axes, strict=True))})
        made = [found[y][0] for y in ys]
        if node.op is autodiff.pushforward:
            return made
        for pair in zip(made, moved, strict=True):
            self.join(node, pair)
        return own_axes

    def unstack(self, node: Node, given: Axes) -> Axes:
        """A merged dim in its parts again, if they are those that were merged."""
        rest, dim = dict(given), node.attrs["dim"]
        if not (axes := rest.pop(dim, ())):
            return rest
        sizes = node.attrs["sizes"]
        merged = [self.sizes[axis] if isinstance(axis, str) else axis for axis in axes]
        if len(axes) != len(sizes) or not all(map(same, sizes, merged)):
            raise Mixed(node, instance_axes(axes)[0], f"splits dim {dim!r} into other parts")
        parts = zip(node.attrs["names"], axes, strict=True)
        return rest | {name: (axis,) for name, axis in parts if isinstance(axis, str)}


def instance_axes(axes: Sequence[str | Size]) -> list[str]:
    """The axes that distinguish instances."""
    return [axis for axis in axes if isinstance(axis, str)]


def merge_axes(node: Node, given: Axes) -> Axes:
    """The merged dim has the axes of its parts, if any has one."""
    rest, (x,) = dict(given), node.inputs
    parts = [rest.pop(dim, ()) or (x.type.size(dim),) for dim in node.attrs["dims"]]
    merged = tuple(axis for part in parts for axis in part)
    return rest | ({node.attrs["name"]: merged} if instance_axes(merged) else {})


def batch_dims(x: TensorType, y: TensorType, sources: Sources) -> dict[str, str]:
    """The dims of an operand that are batch dims of a result, and their names there."""
    return {
        (x.dims or ())[source.axes[0]]: dim
        for dim, source in zip(y.dims or (), sources, strict=True)
        if source is not None and source.how is How.EACH
    }


def complete_axes(node: Node, x: Node, own: Axes, flowing: Sequence[Axes]) -> Axes:
    """Axes of a source of a pullback: its own, and those that flow along dims it has as well.

    A cotangent sums the contributions of all nodes that depend on it, so it has all axes that flow.
    """
    whole = dict(own)
    for axes in flowing:
        whole |= {
            dim: along for dim, along in axes.items() if dim in x.type.sizes and dim not in whole
        }
    known = {axis for along in whole.values() for axis in instance_axes(along)}
    moving = {axis for axes in flowing for along in axes.values() for axis in instance_axes(along)}
    for axis in sorted(moving - known):
        raise Mixed(node, axis, "sums over it")
    return whole
