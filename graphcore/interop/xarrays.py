"""Results as `xarray.DataArray`s, with the coordinates that come through from the arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphcore.ir.errors import GraphError
from graphcore.ir.graph import Graph

from .coordinates import Source, sources


class DataArrays:
    """Makes DataArrays of the values of a graph's outputs; xarray is loaded when it is built."""

    def __init__(self, graph: Graph) -> None:
        try:
            import xarray
        except ImportError as error:
            cure = "pip install xarray, or leave returns='numpy'"
            raise GraphError(f"compile: returns='xarray' needs xarray\n  cure: {cure}") from error
        self._make = xarray.DataArray
        self._outputs = [
            (y.type.dims, {dim: sorted(some) for dim, some in found.items() if some})
            for y, found in zip(graph.outputs, sources(graph), strict=True)
        ]

    def __call__(self, values: Iterable[Any], arguments: Sequence[Any]) -> list[Any]:
        """Each value with its dims, and the coordinates on which the arguments agree."""
        made = []
        for value, (dims, found) in zip(values, self._outputs, strict=True):
            coords = {dim: agreed(dim, some, arguments) for dim, some in found.items()}
            known = {dim: labels for dim, labels in coords.items() if labels is not None}
            made.append(self._make(value, dims=dims, coords=known))
        return made


def agreed(dim: str, some: Iterable[Source], arguments: Sequence[Any]) -> Any:
    """The one coordinate that arguments give for their dims, under the name `dim`; else None."""
    given = [found for number, own in some if (found := labels(arguments[number], own)) is not None]
    if not given or not all(given[0].equals(other) for other in given[1:]):
        return None
    return given[0].rename({given[0].dims[0]: dim}).variable


def labels(argument: Any, dim: str) -> Any:
    """The coordinate that labels a dim of an argument, if it has one, of one level."""
    if dim not in getattr(argument, "coords", ()):  # `.get` would make up a range
        return None
    found = argument.coords[dim]
    return found if found.to_index().nlevels == 1 else None
