"""Devices by name, and which dims of a program lie along them. JAX is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Literal, NamedTuple

from graphcore.ir import Graph, Node
from graphcore.ir.errors import GraphError, GraphTypeError, GraphValueError
from graphcore.ir.name_text import show_dim
from graphcore.ir.node import describe_operand
from graphcore.ir.provenance import public_call, user_line
from graphcore.ops.named.dims import close_match

Gather = Literal["say", "refuse"]
"""What is done about a large value that every device must have as a whole."""


def refused(
    reason: str,
    cure: str,
    node: Node | None = None,
    kind: type[GraphError] = GraphValueError,
    name: str = "",
) -> GraphError:
    """The error for a mesh, or for dims along it, that cannot be accepted."""
    operand = [] if node is None else [describe_operand(node, reason)]
    head, line = f"{name or public_call()}: {reason}", f"  asked at {user_line()}"
    return kind("\n".join([head, *operand, line, f"  cure: {cure}"]))


class Mesh:
    """Devices in a grid whose axes have names.

    `gc.Mesh({"data": 4, "model": 2})` are eight, in four rows of two.
    `gc.compile(..., target="jax", mesh=mesh, shard={"batch": "data"})` lays a dim along an axis.
    JAX and its devices are asked for when a program is compiled.

    Attributes
    ----------
    axes
        How many devices are along each axis.
    devices
        The devices of JAX, row by row; by default the first of those of all processes.

    GraphError if the axes are not names with numbers of devices.

    >>> import graphcore as gc
    >>> gc.Mesh({"data": 4, "model": 2})
    Mesh({'data': 4, 'model': 2})
    """

    def __init__(self, axes: Mapping[str, int], devices: Sequence[Any] | None = None) -> None:
        named = isinstance(axes, Mapping) and all(isinstance(axis, str) for axis in axes)
        if not named or not axes:
            cure = 'write gc.Mesh({"data": 8}), or gc.Mesh({"data": 4, "model": 2})'
            reason = f"{axes!r:.60} does not name the axes of a mesh"
            raise refused(reason, cure, None, GraphTypeError, "Mesh")
        for axis, count in axes.items():
            if type(count) is not int or count < 1:
                cure = "give the number of devices along it, from 1 on"
                reason = f"axis {show_dim(axis)!r} has {count!r:.60} devices"
                raise refused(reason, cure, name="Mesh")
        self.axes = dict(axes)
        self.devices = None if devices is None else (*devices,)
        self._made: Any = None

    @property
    def count(self) -> int:
        """The number of devices."""
        return prod(self.axes.values())

    @property
    def jax(self) -> Any:
        """The mesh of JAX. GraphError if there are too few devices."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> Any:
        import jax

        devices = jax.devices() if self.devices is None else self.devices
        if len(devices) < self.count:
            kind = devices[0].platform if devices else "no"
            reason = f"{self} needs {self.count} devices, and JAX has {len(devices)} ({kind})"
            virtual = f"JAX_NUM_CPU_DEVICES={self.count} in the environment, before JAX is imported"
            raise refused(reason, f"name fewer; to try it on one CPU, set {virtual}")
        kinds = (jax.sharding.AxisType.Auto,) * len(self.axes)
        shape, names = tuple(self.axes.values()), tuple(self.axes)
        return jax.make_mesh(shape, names, axis_types=kinds, devices=devices[: self.count])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        return (*self.axes.items(), self.devices) == (*other.axes.items(), other.devices)

    def __hash__(self) -> int:
        return hash((*self.axes.items(), self.devices))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.devices is not None:
            cure = "leave devices out: a process that loads it then takes its own"
            raise refused("a mesh of given devices cannot be pickled", cure, kind=GraphTypeError)
        return Mesh, (self.axes,)

    def __repr__(self) -> str:
        return f"Mesh({self.axes})"


class Sharding(NamedTuple):
    """Which dims lie along which axes of a mesh, and what is done about large values."""

    mesh: Mesh
    places: Mapping[str, str]
    gather: Gather

    def check(self, graph: Graph) -> None:
        """Refuse dims that inputs and outputs lack, and axes that are unknown or needed twice."""
        known = dims_of(graph)
        for dim, axis in self.places.items():
            if dim not in known:
                reason = f"shard: no input and no output has dim {show_dim(dim)!r}"
                raise refused(reason, close_match(dim, tuple(known)))
            if axis not in self.mesh.axes:
                reason = f"shard: {self.mesh} has no axis {show_dim(axis)!r}"
                raise refused(reason, close_match(axis, tuple(self.mesh.axes)))
        for node in (*graph.params, *graph.outputs):
            self.check_node(node)

    def among(self, graph: Graph) -> Sharding:
        """The places of the dims that a graph has."""
        known = dims_of(graph)
        return self._replace(places={x: at for x, at in self.places.items() if x in known})

    def check_node(self, node: Node) -> None:
        """Refuse an input or output with two dims on one axis, or of a size that does not fit."""
        used: dict[str, str] = {}
        for dim, size in zip(node.type.dims, node.type.shape, strict=True):
            axis = self.places.get(dim)
            if axis is None:
                continue
            if axis in used:
                both = f"dims {show_dim(used[axis])!r} and {show_dim(dim)!r} of one value"
                cure = "let one of them lie along another axis of the mesh, or along none"
                raise refused(f"shard: {both} lie along axis {show_dim(axis)!r}", cure, node)
            used[axis] = dim
            count = self.mesh.axes[axis]
            if isinstance(size, int) and size % count:
                reason = f"shard: dim {show_dim(dim)!r} has size {size}, on {count} devices"
                cure = f"declare the size as None: it is padded then; or as a multiple of {count}"
                raise refused(reason, cure, node)


def dims_of(graph: Graph) -> dict[str, None]:
    """The dims of inputs and outputs, in order."""
    return dict.fromkeys(x for node in (*graph.params, *graph.outputs) for x in node.type.dims)


def sharding_of(
    mesh: Mesh | None, shard: Mapping[str, str] | None, gather: Gather
) -> Sharding | None:
    """What the arguments of `compile` say about devices; None without a mesh."""
    if mesh is None:
        if shard is not None or gather != "say":
            given = "shard" if shard is not None else "gather"
            raise refused(f"{given}= says nothing without a mesh", 'give mesh=gc.Mesh({"data": 8})')
        return None
    if not isinstance(mesh, Mesh):
        cure = 'write mesh=gc.Mesh({"data": 8})'
        raise refused(f"mesh={mesh!r:.60} is no mesh", cure, kind=GraphTypeError)
    pairs = isinstance(shard, Mapping) and all(
        isinstance(word, str) for pair in shard.items() for word in pair
    )
    if not pairs:
        reason = f"shard={shard!r:.60} does not say which dims lie along axes of the mesh"
        example = f'{{"batch": "{show_dim(next(iter(mesh.axes)))}"}}'
        raise refused(reason, f"write shard={example}, {{}} for none", kind=GraphTypeError)
    assert shard is not None
    return Sharding(mesh, dict(shard), gather)
