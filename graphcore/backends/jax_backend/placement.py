"""Where arrays lie on a mesh: inputs and outputs by the names of their dims; the rest XLA finds.

A size that devices do not divide evenly is padded: the axis has room for the next multiple, and the
elements that it has are counted, as those of a loop's steps are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import lcm
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from graphcore.backends.mesh import Sharding
from graphcore.ir import Size, TensorType
from graphcore.ir.names import ValueOf
from graphcore.ir.sizes import unknown, unknowns


class Placement:
    """The places of arrays of named types."""

    def __init__(self, sharding: Sharding) -> None:
        self.sharding = sharding
        self.mesh, self.places = sharding.mesh.jax, sharding.places
        self.everywhere = self.along()

    @property
    def waits(self) -> bool:
        """Whether a call ends before the next one begins.

        Devices of a CPU share its threads: where several calls exchange values at once, each may
        hold threads that another one waits for, and XLA ends the process.
        """
        return any(device.platform == "cpu" for device in self.mesh.devices.flat)

    @property
    def processes(self) -> int:
        """Over how many processes the mesh is spread."""
        return len({device.process_index for device in self.mesh.devices.flat})

    def along(self, *axes: str | None) -> NamedSharding:
        """Places along these axes of the mesh."""
        spec: Any = PartitionSpec
        return NamedSharding(self.mesh, spec(*axes))

    def of(self, type: TensorType, shape: Sequence[int]) -> NamedSharding:
        """Where an array of this shape lies: an axis that devices cannot divide is everywhere."""
        axes = []
        for dim, size in zip(type.dims or (), shape, strict=True):
            axis = self.places.get(dim)
            even = axis is not None and size % self.mesh.shape[axis] == 0
            axes.append(axis if even else None)
        return self.along(*axes)

    def constrain(self, x: Any, type: TensorType) -> Any:
        """An array at its place, while JAX traces it; XLA pads what is not divided evenly."""
        place = self.along(*map(self.places.get, type.dims or ()))
        constrained: Callable[..., Any] = jax.lax.with_sharding_constraint
        return constrained(x, place)

    def is_even(self, type: TensorType, shape: Sequence[int]) -> bool:
        """Whether devices divide an array of this shape evenly."""
        places = [self.places.get(dim) for dim in type.dims or ()]
        pairs = zip(places, shape, strict=True)
        return all(axis is None or size % self.mesh.shape[axis] == 0 for axis, size in pairs)

    def whole(self, type: TensorType, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of an array of which this process has a part of this shape."""
        own = [x.process_index == jax.process_index() for x in self.mesh.devices.flat]
        at = np.argwhere(np.reshape(own, self.mesh.devices.shape))
        local = {axis: len({*at[:, k]}) for k, axis in enumerate(self.mesh.axis_names)}
        return tuple(
            size * self.mesh.shape[axis] // local[axis] if (axis := self.places.get(dim)) else size
            for dim, size in zip(type.dims or (), shape, strict=True)
        )

    def capacities(self, types: Sequence[TensorType], known: Mapping[str, int]) -> dict[str, int]:
        """The room for each unknown size that devices do not divide evenly."""
        parts: dict[str, int] = {}
        for type in types:
            for dim, size in zip(type.dims or (), type.shape, strict=True):
                axis, name = self.places.get(dim), name_of(size)
                if axis is not None and name in known:
                    parts[name] = lcm(parts.get(name, 1), self.mesh.shape[axis])
        capacities = {name: -(-known[name] // count) * count for name, count in parts.items()}
        return {name: capacity for name, capacity in capacities.items() if capacity != known[name]}

    def put(self, x: Any, type: TensorType, shape: Sequence[int]) -> Any:
        """An array at its place, with zeros in the room that it does not fill."""
        more = [(0, capacity - size) for capacity, size in zip(shape, x.shape, strict=True)]
        place = self.of(type, shape)
        if isinstance(x, jax.Array):
            x = jnp.pad(x, more) if x.shape != tuple(shape) else x
            return x if x.sharding.is_equivalent_to(place, x.ndim) else jax.device_put(x, place)
        x = np.pad(x, more) if x.shape != tuple(shape) else x
        if self.processes == 1:
            return jax.device_put(x, place)
        return jax.make_array_from_callback(x.shape, place, lambda at: x[at])


def name_of(size: Size) -> str:
    """The name of an unknown size by itself, which an axis gives; "" of any other size."""
    name = next(iter(unknowns(size)), "")
    return "" if isinstance(name, ValueOf) or size is not unknown(name) else name
