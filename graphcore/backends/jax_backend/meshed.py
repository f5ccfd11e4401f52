"""Programs on a mesh: compiled for arrays at their places, and asked what they send."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from graphcore.backends.argument_checks import Parameter
from graphcore.backends.boundary import Boundary
from graphcore.backends.mesh import Sharding, refused
from graphcore.backends.messages import Message, Messages, messages, served
from graphcore.inspection.exchanges import exchanges
from graphcore.ir import Graph, Node, TensorType
from graphcore.ir.errors import GraphWarning
from graphcore.ir.name_text import show_dim
from graphcore.ir.provenance import described_by, user_line

from .lacks import unpadded
from .placement import Placement
from .running import Traced, XLAProgram
from .sizes import Sizes

LARGE = 2**20
"""A value of so many bytes is said, or refused, if every device must have it as a whole."""


class MeshedGraph(Traced):
    """A graph as XLA compiles it for the devices of a mesh.

    Parameters
    ----------
    graph, names
        As for any graph.
    placement
        Where arrays lie.
    given, made
        The types of inputs and results, with the names of dims.
    on_device
        Whether results are arrays of JAX.
    """

    meshed = True

    def __init__(
        self,
        graph: Graph,
        names: Sequence[str],
        placement: Placement,
        given: Sequence[TensorType],
        made: Sequence[TensorType],
        on_device: bool,
    ) -> None:
        self.placement, self.given, self.made = placement, given, made
        self.on_device = on_device
        self.programs: dict[Any, Any] = {}
        self.said: dict[Any, Messages] = {}
        self.last = Messages()
        super().__init__(graph, names)

    def jit(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that puts arrays at their places, and compiles where sizes are new."""
        return self.on_devices

    def on_devices(
        self,
        arrays: Sequence[Any],
        constants: Sequence[Any],
        sizes: tuple[int, ...],
        capacities: tuple[int, ...],
    ) -> tuple[list[Any], Any]:
        """The results, without padding, and the record."""
        found, key = self.find_sizes(sizes, capacities), (sizes, capacities)
        shapes = [tuple(map(found.in_memory, type.shape)) for type in self.given]
        placed = [*map(self.placement.put, arrays, self.given, shapes)]
        spread = [jax.device_put(x, self.placement.everywhere) for x in constants]
        new = key not in self.programs
        if new:
            self.programs[key] = self.compile(placed, spread, sizes, capacities)
            text = self.programs[key].as_text()
            self.said[key] = messages(text, self.placement.sharding.mesh.axes)
        self.last = self.said[key]
        if new or self.placement.sharding.gather == "refuse":
            self.judge()
        results, record = self.programs[key](placed, spread)
        if self.placement.waits:
            for result in results:
                result.block_until_ready()
        return [self.cut(found, *pair) for pair in zip(results, self.made, strict=True)], record

    def compile(self, arrays: Any, constants: Any, sizes: Any, capacities: Any) -> Any:
        """XLA's program for arrays of these shapes at their places."""
        found, at = self.find_sizes(sizes, capacities), self.placement
        for node in self.graph.every_node():
            if found.counts and unpadded(node, found.counts) is not None:
                raise self.not_padded(node, found)
        shapes = [tuple(map(found.in_memory, type.shape)) for type in self.made]
        places = [*map(at.of, self.made, shapes)], at.everywhere if self.reads else None
        traced = partial(self.trace, sizes=sizes, capacities=capacities)
        return jax.jit(traced, out_shardings=places).lower(arrays, constants).compile()

    def find_sizes(self, sizes: tuple[int, ...], capacities: tuple[int, ...]) -> Sizes:
        """The sizes of a tracing: those that devices do not divide evenly have more room."""
        found = super().find_sizes(sizes, capacities)
        more = self.placement.capacities(self.given, found.known)
        found.capacities |= more
        found.counts |= {name: found.known[name] for name in more}
        return found

    def cut(self, found: Sizes, result: Any, type: TensorType) -> Any:
        """A result without padding."""
        shape = tuple(map(found.count, type.shape))
        if shape == result.shape:
            return result
        whole = result if self.on_device else np.asarray(result)
        return whole[tuple(map(slice, shape))]

    # ---- refusals and warnings

    def not_padded(self, node: Node, found: Sizes) -> Exception:
        """The refusal of sizes that are not divided evenly, as a node works along them."""
        name, count = next(iter(found.counts.items()))
        capacity = found.capacities[name]
        with described_by(self.graph.trace):
            reason = (
                f"the size {show_dim(name)}={count} is not divided evenly by the devices of "
                f"{self.placement.sharding.mesh}, and {node.said} at {node.origin} needs all of it"
            )
        return refused(reason, f"give {capacity} elements, or shard another dim", name="call")

    def judge(self) -> None:
        """Say or refuse large values that every device must have as a whole."""
        refuses = self.placement.sharding.gather == "refuse"
        for message in self.last:
            if message.kind == "all-gather" and message.bytes >= LARGE:
                reason = f"{self.words(message)} and sends {message.bytes:,} bytes to every device"
                if refuses:
                    cure = 'shard another dim, or leave gather="refuse" out'
                    raise refused(reason, cure, name="call")
                line = user_line()
                cure = 'shard another dim; gather="refuse" refuses it'
                said = f"call: {reason}\n  called at {line}\n  cure: {cure}"
                warnings.warn_explicit(said, GraphWarning, line.file, line.line)

    def words(self, message: Message) -> str:
        """What a message serves, with the dims that it needs."""
        places = self.placement.places.items()
        dims = [
            f"{show_dim(dim)}@{show_dim(axis)}" for dim, axis in places if axis in message.along
        ]
        return f"{served(message)} needs all of {' or '.join(dims) or 'a value'}"


class MeshedProgram(XLAProgram):
    """A graph that runs on the devices of a mesh."""

    def __init__(
        self, graph: Graph, boundary: Boundary, on_device: bool, sharding: Sharding
    ) -> None:
        self.placement = Placement(sharding)
        super().__init__(graph, boundary, on_device)
        with described_by(graph.trace):
            self.exchanges = exchanges(graph, sharding.places)
        if self.placement.processes > 1 and not on_device:
            for type in boundary.results:
                if any(dim in sharding.places for dim in type.dims or ()):
                    reason = f"a result {type} lies in parts on several processes"
                    raise refused(reason, 'write returns="jax"')

    def part(self, graph: Graph, names: Sequence[str]) -> Traced:
        """A graph of the program, for XLA and the mesh; the whole graph comes last."""
        results = self.boundary.results if graph is self.graph else [y.type for y in graph.outputs]
        types = self.boundary.types, results
        self.meshed = MeshedGraph(graph, names, self.placement, *types, self.on_device)
        return self.meshed

    @property
    def places(self) -> Mapping[str, str]:
        """The axes of the mesh along which dims lie."""
        return self.placement.places

    def note(self, node: Node) -> str:
        """What a node needs of other devices."""
        return "; ".join(map(str, self.exchanges.get(node, ())))

    def below(self) -> str:
        """What devices send in calls of the sizes for which there is a program."""
        if not self.meshed.said:
            return "what devices send is known after a call, or by f.messages(*args)"
        parts = []
        for (sizes, _), found in self.meshed.said.items():
            known = self.meshed.known(sizes).items()
            shown = ", ".join(f"{show_dim(name)}={size}" for name, size in known)
            parts.append(f"devices send, for {shown or 'all calls'}:\n{found}")
        return "\n".join(parts)

    def place(self, given: Sequence[Any]) -> list[Any]:
        """Arguments as arrays on the mesh; this process gives a part of each."""
        triples = zip(given, self.boundary.params, self.boundary.types, strict=True)
        with jax.enable_x64(True):
            return [self.place_part(*triple) for triple in triples]

    def place_part(self, x: Any, param: Parameter, type: TensorType) -> Any:
        """An argument as an array on the mesh, of which this process gives a part."""
        of_any_size = Parameter(
            param.number, param.name, param.dims, param.dtype, None, param.declared
        )
        part, at = of_any_size.convert(x), self.placement
        shape = at.whole(type, part.shape)
        if not (at.is_even(type, shape) or at.processes == 1):
            reason = f"the part of input {param.shown} has shape {part.shape}, and the input {type}"
            cure = "give as many elements along a dim to each device of the process"
            raise refused(f"{reason} lies on {at.sharding.mesh}", cure)
        made: Callable[..., Any] = jax.make_array_from_process_local_data
        return made(at.of(type, shape), part, shape)

    def messages(self, given: Sequence[Any]) -> Messages:
        """What devices send in a call with these arguments, which is made."""
        self.prepare()(*given)
        return self.meshed.last
