"""Programs whose sizes are rounded up: few compilations, and the results of the exact sizes.

Arguments are padded to the next powers of two. How many elements axes really have is a traced
number, by which the padding is left out wherever elements are brought together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from graphcore.backends.boundary import Requirement
from graphcore.ir import Graph, Size, TensorType
from graphcore.ir.errors import GraphValueError
from graphcore.ir.sizes import evaluate, unknown, unknowns

from .running import Traced, XLAProgram
from .sizes import Sizes


def bucket(size: int) -> int:
    """The size that an axis has in memory."""
    return 1 << max(size - 1, 0).bit_length()


def name_of(size: Size) -> str | None:
    """The name of a size that is one unknown, and not an expression."""
    return next((name for name in unknowns(size) if size is unknown(name)), None)


def following(equal: Sequence[Requirement]) -> list[tuple[str, Size]]:
    """The unknown sizes that are rounded up by others, which they must equal.

    An expression comes first: of `faces == cells - 1` and `faces == others`, faces are rounded up
    by cells, and others by faces.
    """
    sides = [(x.need.left, x.need.right) for x in equal]
    sides += [(right, left) for left, right in sides]
    found: dict[str, Size] = {}
    for size, other in sides:
        name = name_of(size)
        if name is not None and name_of(other) is None and name not in unknowns(other):
            found.setdefault(name, other)
    for size, other in sides * len(found):  # a name may be found after others that must equal it
        name, same = name_of(size), name_of(other)
        if name is not None and same in found:
            found.setdefault(name, other)
    return [*found.items()]


class Bucketed(Traced):
    """A graph as a function that XLA compiles for sizes that are rounded up.

    Parameters
    ----------
    graph, names
        As for any graph.
    on_device
        Whether results are arrays of JAX.
    equal
        The sizes that must be equal.
    """

    def __init__(
        self, graph: Graph, names: Sequence[str], on_device: bool, equal: Sequence[Requirement]
    ) -> None:
        super().__init__(graph, names)
        self.on_device = on_device
        self.equal = [
            x for x in equal if {*names} >= unknowns(x.need.left) | unknowns(x.need.right)
        ]
        self.following = following(self.equal)

    def trace(
        self,
        arrays: Sequence[Any],
        constants: Sequence[Any],
        sizes: tuple[int, ...],
        capacities: tuple[int, ...],
    ) -> tuple[list[Any], Any]:
        """What XLA compiles; the last array has the counts of all sizes."""
        *arrays, counts = arrays
        found = self.find_sizes(sizes, capacities)
        found.counts |= {name: counts[i] for i, name in enumerate(self.names)}
        return self.emit(arrays, constants, found, (sizes, capacities))

    def find_sizes(self, sizes: tuple[int, ...], capacities: tuple[int, ...]) -> Sizes:
        """All sizes are counted."""
        steps = dict(zip(self.counted, capacities, strict=True))
        return Sizes({}, {**self.known(sizes), **steps})

    def round_up(self, sizes: Mapping[str, int]) -> Sizes:
        """The sizes in memory: the next powers of two, but equal where sizes must be."""
        memory = Sizes({}, {name: bucket(size) for name, size in sizes.items()})
        memory.counts |= sizes
        for _ in self.following:  # one may follow from another that follows from a third
            for name, size in self.following:
                memory.capacities[name] = memory.in_memory(size)
        for need, op, origin in self.equal:
            if memory.in_memory(need.left) != memory.in_memory(need.right):
                said = f"{op} at {origin} needs {need.left} == {need.right}, which are padded apart"
                raise GraphValueError(f"call: {said}\n  cure: sizes='exact' pads none")
        return memory

    def __call__(self, arrays: Sequence[Any], sizes: tuple[int, ...]) -> list[Any]:
        """The results for arrays and numbers, without the padding."""
        memory = self.round_up(self.known(sizes))
        rounded = tuple(memory.capacities.values())
        types = [param.type for param in self.graph.params]
        given = [widened(x, memory, type) for x, type in zip(arrays, types, strict=True)]
        results = super().__call__([*given, np.array(sizes, np.int64)], rounded)
        known = self.known(sizes)
        whole = results if self.on_device else map(np.asarray, results)
        return [
            y[tuple([slice(evaluate(size, known)) for size in of.type.shape])]
            for y, of in zip(whole, self.graph.outputs, strict=True)
        ]


def widened(x: Any, memory: Sizes, type: TensorType) -> Any:
    """An argument with zeros in the padding."""
    shape = tuple(map(memory.in_memory, type.shape))
    if shape == x.shape:
        return x
    if isinstance(x, jax.Array):
        return jnp.pad(
            x, [(0, capacity - size) for capacity, size in zip(shape, x.shape, strict=True)]
        )
    wide = np.zeros(shape, x.dtype)
    wide[tuple(map(slice, x.shape))] = x
    return wide


class BucketedProgram(XLAProgram):
    """A graph that runs on JAX, compiled for sizes that are rounded up."""

    def part(self, graph: Graph, names: Sequence[str]) -> Traced:
        """A graph of the program, for XLA."""
        equal = [x for x in self.boundary.needs if x.need.relation == "=="]
        return Bucketed(graph, names, self.on_device, equal)
