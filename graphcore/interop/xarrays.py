"""Results as `xarray.DataArray`s, with the coordinates that come through from the arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from graphcore.ir import Graph, Hidden, Node, toposort
from graphcore.ir.errors import GraphError
from graphcore.ops import leaf
from graphcore.ops.labels import coordinates_of, is_levels

from .coordinates import PICKED, Source, sources
from .label_joins import Join, labelled, override

Compute = Callable[..., Sequence[Any]]
"""A compiled program: from the arguments of a call to the positions of elements."""
Variable = Any
"""A variable of xarray."""
Place: TypeAlias = tuple[str, Source]
"""A dim of a result, and the elements of an argument that its elements stand for."""


class DataArrays:
    """Makes DataArrays of the values of a graph's outputs; xarray is loaded when it is built.

    `compiled` compiles a graph: the positions of elements that are picked are computed at the call.
    """

    def __init__(self, graph: Graph, compiled: Callable[[Graph], Compute], join: Join) -> None:
        try:
            import xarray
        except ImportError as error:
            cure = "pip install xarray, or leave returns='numpy'"
            raise GraphError(f"compile: returns='xarray' needs xarray\n  cure: {cure}") from error
        self._make, self._join = xarray.DataArray, join
        self._nodes = labelled(graph)
        self._known = [coordinates_of(x.attrs["labels"]) for x in self._nodes[len(graph.params) :]]
        found = sources(graph, self._nodes)
        self._outputs = [
            Output(y, self._nodes, facts) for y, facts in zip(graph.outputs, found, strict=True)
        ]
        picked = [
            source.positions
            for output in self._outputs
            for _, source in output.places
            if source.positions is not None
        ]
        self._picked = list(dict.fromkeys(picked))
        self._positions = compiled(Graph(graph.params, tuple(self._picked))) if picked else None

    def __call__(self, values: Iterable[Any], arguments: Sequence[Any]) -> list[Any]:
        """Each value with its dims, and the coordinates on which the arguments agree."""
        found = self._positions(*arguments) if self._positions is not None else ()
        positions = dict(zip(self._picked, found, strict=True))
        given = [*arguments, *self._known]
        if self._join == "override":
            given = override(self._nodes, given)
        return [
            self._result(output, value, output.coordinates(given, positions, value.shape))
            for value, output in zip(values, self._outputs, strict=True)
        ]

    def leave_out(self, unread: Collection[Node]) -> None:
        """Have labels left out whose positions follow from the values of these inputs."""
        for output in self._outputs:
            output.places = [
                (dim, source)
                for dim, source in output.places
                if source.positions is None
                or set(unread).isdisjoint(leaf.inputs_among(toposort([source.positions])))
            ]

    def _result(self, output: Output, value: Any, found: Coordinates) -> Any:
        import xarray

        made = self._make(value, dims=output.dims, coords=found.variables)
        for dim, index in found.indexes.items():
            labels = xarray.Coordinates.from_pandas_multiindex(index, dim)
            made = made.drop_vars([name for name in labels if name in made.coords])
            made = made.assign_coords(labels)
        return made


class Coordinates:
    """The coordinates of a result: those of one dim or several, and indexes of several levels."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._given: dict[str, list[Variable]] = {}
        self._indexes: dict[str, list[Any]] = {}

    def add(self, name: str, variable: Variable) -> None:
        """Enter a coordinate, unless its sizes or dims are not those of the result."""
        if isinstance(name, Hidden):
            return
        along_itself = name not in self._sizes or variable.dims == (name,)
        if along_itself and variable.sizes.items() <= self._sizes.items():
            self._given.setdefault(name, []).append(variable)

    def add_index(self, dim: str, index: Any) -> None:
        """Enter an index of several levels."""
        if len(index) == self._sizes[dim]:
            self._indexes.setdefault(dim, []).append(index)

    @property
    def variables(self) -> dict[str, Variable]:
        """The coordinates on which all agree."""
        return agreed(self._given)

    @property
    def indexes(self) -> dict[str, Any]:
        """The indexes on which all agree."""
        return agreed(self._indexes)


def agreed(given: Mapping[str, list[Any]]) -> dict[str, Any]:
    """The first of each, where all others equal it."""
    return {name: first for name, (first, *more) in given.items() if all(map(first.equals, more))}


class Output:
    """The dims of an output, with their sources, and the inputs that it depends on."""

    def __init__(self, y: Node, nodes: Sequence[Node], facts: Mapping[str, Any]) -> None:
        self.dims = y.type.dims
        needed = frozenset(Graph((), (y,)).every_node())
        self._needed = [n for n, node in enumerate(nodes) if node in needed]
        self.places: list[Place] = [
            (dim, source) for dim, some in facts.items() for source in sorted(some or (), key=order)
        ]

    def coordinates(
        self, given: Sequence[Any], positions: Mapping[Node, Any], shape: Sequence[int]
    ) -> Coordinates:
        """The coordinates that come through from arguments and constants."""
        found = Coordinates(dict(zip(self.dims, shape, strict=True)))
        for number in self._needed:
            for name, variable in self.along(number, given[number], positions):
                found.add(name, variable)
            for dim, index in self.indexes(number, given[number], positions):
                found.add_index(dim, index)
        for dim, source in self.places:
            if len(source.bases) > 1:
                for name, variable in one_after_the_other(source, dim, given, positions):
                    found.add(name, variable)
        self.add_levels(found, positions)
        return found

    def of(self, number: int) -> dict[str, list[Place]]:
        """The places whose elements are those of one argument, by its dims."""
        places: dict[str, list[Place]] = {}
        for dim, source in self.places:
            base, *others = source.bases
            if base.number == number and not others:
                places.setdefault(base.dim, []).append((dim, source))
        return places

    def along(
        self, number: int, argument: Any, positions: Mapping[Node, Any]
    ) -> Iterator[tuple[str, Variable]]:
        """The coordinates of an argument in the result."""
        places, merged = self.of(number), names_of_levels(argument)
        for name, variable in variables_of(argument):
            for chosen in product(*[places.get(dim, ()) for dim in variable.dims]):
                levels = [source.bases[0].level for _, source in chosen]
                if name in merged and levels != [name] and chosen[0][0] != PICKED:
                    continue  # the whole index is entered
                if any(levels) and not (levels == [name] and splits(variable, chosen, positions)):
                    continue
                if (found := at(variable, chosen, positions)) is not None:
                    yield shown(name, chosen), found

    def indexes(
        self, number: int, argument: Any, positions: Mapping[Node, Any]
    ) -> Iterator[tuple[str, Any]]:
        """The indexes of several levels that an argument has along dims of the result."""
        for own, places in self.of(number).items():
            index = getattr(argument, "xindexes", {}).get(own)
            if index is None or not is_levels(index):
                continue
            for dim, source in places:
                if source.bases[0].level is not None:
                    continue
                place = None if source.positions is None else positions[source.positions]
                if place is None:
                    yield dim, index.index
                elif dim != PICKED and place.ndim == 1 and (place >= 0).all():
                    yield dim, index.index.take(place)

    def add_levels(self, found: Coordinates, positions: Mapping[Node, Any]) -> None:
        """Indexes of several levels along the dims that merge others."""
        import pandas

        variables = found.variables
        for dim in self.dims:
            merged = [source for of, source in self.places if of == dim and source.levels]
            if not merged:
                continue
            levels = merged[0].levels
            if any(source.levels != levels for source in merged):
                continue
            if not any(level in variables for level in levels):
                continue
            arrays = []
            for level in levels:
                if level in variables:
                    arrays.append(variables[level].values)
                else:
                    places = [s for s in merged if s.name == level and s.positions is not None]
                    arrays += [positions[p] for s in places[:1] if (p := s.positions) is not None]
            if len(arrays) == len(levels) and all(x.ndim == 1 for x in arrays):
                index = pandas.MultiIndex.from_arrays(arrays, names=levels)
                found.add_index(dim, index)


def order(source: Source) -> tuple[Any, ...]:
    """The first argument's coordinate is the one that a result gets, with its attributes."""
    return tuple((base.number, base.dim) for base in source.bases)


def shown(name: str, chosen: Iterable[Place]) -> str:
    """The name by which a coordinate is known in a result."""
    for _, source in chosen:
        for own, new in source.bases[0].shown:
            if own == name:
                return new
    return name


def variables_of(argument: Any) -> Iterator[tuple[str, Variable]]:
    """The coordinates of an argument, those that are levels of an index as plain arrays."""
    merged = names_of_levels(argument)
    for name, labels in getattr(argument, "coords", {}).items():
        variable = labels.variable.to_base_variable()
        if name in merged:
            variable = type(variable)(variable.dims, np.asarray(labels.values))
        yield name, variable


def names_of_levels(argument: Any) -> set[str]:
    """The coordinates of an argument that belong to indexes of several levels."""
    indexes = getattr(argument, "xindexes", {})
    return {name for name, index in indexes.items() if is_levels(index)}


def splits(variable: Variable, chosen: Sequence[Place], positions: Mapping[Node, Any]) -> bool:
    """Whether a level has the same labels in each part of a dim that is split row-major."""
    ((_, source),) = chosen
    place = positions[source.positions] if source.positions is not None else None
    if place is None or place.ndim != 1 or not len(place):
        return False
    step = place[1] - place[0] if len(place) > 1 else len(variable)
    labels = variable.values
    own = labels[place][np.arange(len(labels)) // step % len(place)]
    return bool((own == labels).all())


def one_after_the_other(
    source: Source, dim: str, given: Sequence[Any], positions: Mapping[Node, Any]
) -> Iterator[tuple[str, Variable]]:
    """The coordinates along one dim that all of several arguments have."""
    parts: list[dict[str, Variable]] = []
    for base in source.bases:
        alone = dim, source._replace(bases=(base,), positions=None)
        parts.append(
            {
                shown(name, [alone]): at(variable, [alone], positions)
                for name, variable in variables_of(given[base.number])
                if variable.dims == (base.dim,)
            }
        )
    for name in parts[0]:
        if all(name in part for part in parts):
            whole = type(parts[0][name]).concat([part[name] for part in parts], dim)
            found = at(whole, [(dim, source)], positions)
            if found is not None:
                yield name, found


def at(variable: Variable, chosen: Sequence[Place], positions: Mapping[Node, Any]) -> Any:
    """A coordinate at the positions of its elements in a result, with the dims of the result.

    None where blocks of it have no mean.
    """
    make, picked = type(variable), {}
    dims: list[Any] = []
    there: list[Variable] = []
    blocks: list[int] = []
    for axis, (dim, source) in enumerate(chosen):
        if source.positions is None:
            dims.append(dim)
            continue
        dims.append(axis)  # no dim of a result has a number for its name
        place = positions[source.positions]
        own = () if dim == PICKED else (dim,)
        inner = [-(64 * axis + i + 1) for i in range(place.ndim - len(own))]
        blocks += inner
        picked[axis] = make((*own, *inner), place)
        if source.missing:
            there.append(picked[axis] >= 0)
    found = variable.copy(deep=False)
    found.dims = tuple(dims)
    found = found.isel(picked)
    for known in there:
        found = found.where(known)
    try:
        for block in blocks:
            found = found.mean(block) if found.size else found.isel({block: 0})
    except (TypeError, ValueError):  # of strings
        return None
    return found
