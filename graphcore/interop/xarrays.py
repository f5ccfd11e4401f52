"""Results as `xarray.DataArray`s, with the coordinates that come through from the arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

from graphcore.ir.errors import GraphError
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node, toposort

from .coordinates import Source, sources

Compute = Callable[..., Sequence[Any]]
"""A compiled program: from the arguments of a call to the positions of elements."""


class DataArrays:
    """Makes DataArrays of the values of a graph's outputs; xarray is loaded when it is built.

    `compiled` compiles a graph: the positions of elements that are picked are computed at the call.
    """

    def __init__(self, graph: Graph, compiled: Callable[[Graph], Compute]) -> None:
        try:
            import xarray
        except ImportError as error:
            cure = "pip install xarray, or leave returns='numpy'"
            raise GraphError(f"compile: returns='xarray' needs xarray\n  cure: {cure}") from error
        self._make = xarray.DataArray
        self._outputs = [
            Output(graph, y, {dim: sorted(some, key=order) for dim, some in found.items() if some})
            for y, found in zip(graph.outputs, sources(graph), strict=True)
        ]
        picked = [
            source.positions
            for output in self._outputs
            for source in output.every_source()
            if source.positions is not None
        ]
        self._picked = list(dict.fromkeys(picked))
        self._positions = compiled(Graph(graph.params, tuple(self._picked))) if picked else None

    def __call__(self, values: Iterable[Any], arguments: Sequence[Any]) -> list[Any]:
        """Each value with its dims, and the coordinates on which the arguments agree."""
        found = self._positions(*arguments) if self._positions is not None else ()
        positions = dict(zip(self._picked, found, strict=True))
        return [
            self._make(value, dims=output.dims, coords=output.coordinates(arguments, positions))
            for value, output in zip(values, self._outputs, strict=True)
        ]


def order(source: Source) -> tuple[int, str]:
    """The first argument's coordinate is the one that a result gets, with its attributes."""
    return source.number, source.dim


class Output:
    """The dims of an output, with their sources, and the arguments that it depends on."""

    def __init__(self, graph: Graph, y: Node, found: dict[str, list[Source]]) -> None:
        self.dims = y.type.dims
        self._found = found
        needed = frozenset(toposort([y]))
        self._needed = [n for n, param in enumerate(graph.params) if param in needed]

    def every_source(self) -> list[Source]:
        """The sources of all dims."""
        return [source for some in self._found.values() for source in some]

    def coordinates(self, arguments: Sequence[Any], positions: dict[Node, Any]) -> dict[str, Any]:
        """The coordinates on which the arguments agree, by name."""
        given: dict[str, list[Any]] = {}
        for number in self._needed:
            places: dict[str, list[Place]] = {}
            for dim, some in self._found.items():
                for source in some:
                    if source.number == number:
                        places.setdefault(source.dim, []).append((dim, source))
            for name, labels in labels_of(arguments[number]):
                for chosen in product(*[places.get(dim, ()) for dim in labels.dims]):
                    known = name
                    labelled = [dim for dim, _ in chosen if labels.dims == (name,)]
                    if labelled:
                        known = chosen[0][1].name or labelled[0]
                    if known in labelled or known not in self.dims:
                        given.setdefault(known, []).append(at(labels, chosen, positions))
        return {
            name: first for name, (first, *more) in given.items() if all(map(first.equals, more))
        }


Place = tuple[str, Source]
"""A dim of a result, and the elements of an argument that its elements stand for."""


def labels_of(argument: Any) -> Iterable[tuple[str, Any]]:
    """The coordinates of an argument, but those of several levels."""
    levels = {
        level
        for dim in getattr(argument, "indexes", ())
        if argument.indexes[dim].nlevels > 1
        for level in (dim, *argument.indexes[dim].names)
    }
    for name, labels in getattr(argument, "coords", {}).items():
        if name not in levels:
            yield name, labels


def at(labels: Any, chosen: Sequence[Place], positions: dict[Node, Any]) -> Any:
    """A coordinate at the positions of its elements in a result, with the dims of the result."""
    found = labels.variable.to_base_variable().copy(deep=False)
    make, picked = type(found), {}
    dims: list[Any] = []
    for axis, (dim, source) in enumerate(chosen):
        if source.positions is None:
            dims.append(dim)
            continue
        dims.append(axis)  # no dim of a result has a number for its name
        picked[axis] = make((dim,) * source.positions.type.ndim, positions[source.positions])
    found.dims = tuple(dims)
    return found.isel(picked)
