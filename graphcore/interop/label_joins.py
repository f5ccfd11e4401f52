"""How labels of arguments and of constants that are DataArrays are joined: `join` in `compile`.

They are joined along each dim that they have with one size. A dim with a size of another name,
`{"time": "n_other"}`, is another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Literal

from graphcore.backends.argument_checks import Parameter, quote, refusal
from graphcore.backends.arguments import Arguments
from graphcore.backends.label_checks import COMPARED, Along, Index, differences, indexes_of
from graphcore.ir import Graph, Node, TensorType, reached
from graphcore.ir.errors import GraphError, GraphValueError
from graphcore.ir.graph import bodies_of
from graphcore.ir.sizes import unknown
from graphcore.ops import leaf, named
from graphcore.ops.labels import coordinates_of

Join = Literal["exact", "override", "inner"]


def labelled(graph: Graph) -> list[Node]:
    """The inputs of a program, and the constants that have labels, those in bodies included."""
    if leaf.constant not in graph.ops():
        return [*graph.params]
    constants = [x for x in graph.every_node() if x.op is leaf.constant and x.attrs.get("labels")]
    return [*graph.params, *dict.fromkeys(constants)]


def given(graph: Graph) -> list[Node]:
    """Those of `labelled` that a user gave, not the labels that an op gives to its result."""
    constants = labelled(graph)[len(graph.params) :]
    if not constants:
        return [*graph.params]
    values = reached(
        graph.outputs,
        lambda x: (*computed_from(x), *(y for body in bodies_of(x) for y in body.outputs)),
    )
    return [*graph.params, *[x for x in constants if x in values]]


def computed_from(node: Node) -> Sequence[Node]:
    """The operands that a value is computed from."""
    return node.inputs[:1] if node.op is named.labelled else node.inputs


def along_dims(nodes: Sequence[Node]) -> list[tuple[str, list[int]]]:
    """The dims that several of some inputs and constants have with one size, with their numbers.

    A known size agrees with an open one, until the call.
    """
    found: dict[tuple[str, Any], list[int]] = {}
    for number, node in enumerate(nodes):
        for dim, size in node.type.sizes.items():
            open_size = isinstance(size, int) or size is unknown(dim)
            found.setdefault((dim, None if open_size else size), []).append(number)
    return [(dim, numbers) for (dim, _), numbers in found.items() if len(numbers) > 1]


def joined_dims(graph: Graph) -> list[Along]:
    """The dims along which labels are joined: those of arguments, and known ones of constants."""
    nodes, many = given(graph), len(graph.params)
    found = []
    for dim, numbers in along_dims(nodes):
        known = [
            (index, words(nodes[n]))
            for n in numbers
            if n >= many and (index := labels_along(nodes[n], dim)) is not None
        ]
        params = tuple(n for n in numbers if n < many)
        if len(params) + len(known) > 1:
            found.append(Along(dim, params, tuple(known)))
    return found


def labels_along(constant: Node, dim: str) -> Index | None:
    """The labels of a constant."""
    return indexes_of(coordinates_of(constant.attrs["labels"])).get(dim)


def words(node: Node) -> str:
    """A constant, in an error."""
    return f"the constant {node.type}, built at {node.origin},"


def check_constants(dims: Sequence[Along]) -> None:
    """Refuse constants whose labels of one dim differ."""
    for along in dims:
        firsts: dict[int, tuple[Index, str]] = {}
        for index, of in along.constants:
            first, other = firsts.setdefault(len(index.index), (index, of))
            if not COMPARED.equal(first, index):
                raise disagreeing(along.dim, other, first, of, index)


def disagreeing(dim: str, first: str, left: Index, other: str, right: Index) -> GraphError:
    """The error for two constants whose labels differ."""
    lines = [f"labels of dim {quote(dim)} differ", *differences(first, left, other, right)]
    cure = (
        "align them first, a, b = xr.align(a, b, join='inner'); or leave the labels of one out, "
        f"a.drop_vars({quote(dim)})"
    )
    return GraphValueError("constant: " + "\n  ".join([*lines, f"cure: {cure}"]))


class Inner(Arguments):
    """The arguments of a call, with the elements whose labels all of them have."""

    def __init__(
        self,
        forms: list[Any],
        params: Sequence[Parameter],
        types: Sequence[TensorType],
        dims: Sequence[Along],
    ) -> None:
        super().__init__(forms, params)
        self.types, self.dims = types, dims

    def arrange(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """One argument for each input, at the labels that all have along each dim."""
        found = list(super().arrange(args, kwargs))
        for along in self.dims:
            self.join(along, found)
        return tuple(found)

    def join(self, along: Along, values: list[Any]) -> None:
        """Take from arguments the elements along a dim whose labels all have."""
        dim = along.dim
        given = {n: indexes_of(values[n]).get(dim) for n in along.parameters}
        labelled = {n: index for n, index in given.items() if index is not None}
        every = [index for index, _ in along.constants] + [*labelled.values()]
        if all(COMPARED.equal(every[0], index) for index in every[1:]):
            return
        if not all(x.index.is_unique for x in every):
            cure = f"leave repeated labels out before the call, a.drop_duplicates({quote(dim)})"
            raise refusal(f"labels of dim {quote(dim)} differ, and some are repeated", cure=cure)
        common = reduce(lambda a, b: a.intersection(b, sort=False), [x.index for x in every])
        for index, of in along.constants:
            if not index.index.equals(common):
                raise self.declared(dim, of, len(index.index), len(common))
        for number, index in labelled.items():
            if index.index.equals(common):
                continue
            declared = isinstance(self.types[number].sizes[dim], int)
            if declared and len(index.index) != len(common):
                of = f"input {self._params[number].shown}"
                raise self.declared(dim, of, len(index.index), len(common))
            values[number] = values[number].isel({dim: index.index.get_indexer(common)})

    def declared(self, dim: str, of: str, size: int, common: int) -> GraphError:
        """The error for a size that is declared, so that elements cannot be left out."""
        reason = f"{of} has {size} labels along dim {quote(dim)}, of which {common} are common to "
        reason += "all, and its size is declared"
        cure = f"declare the dim with an unknown size, {{{quote(dim)}: None}}, or align before"
        return refusal(reason, cure=f"{cure} the call: xr.align(a, b, join='inner')")


def override(nodes: Sequence[Node], values: Sequence[Any]) -> list[Any]:
    """Arrays of xarray with the labels that the first of them has along each dim."""
    import xarray

    found = list(values)
    for dim, numbers in along_dims(nodes):
        first: Index | None = None
        for number in numbers:
            index = indexes_of(found[number]).get(dim)
            if index is None:
                continue
            if first is None:
                first = index
            elif not COMPARED.equal(first, index):
                made = first.create_variables()
                indexes: dict[Any, Any] = dict.fromkeys(made, first)
                labels = xarray.Coordinates(made, indexes)
                gone = [name for name, other in found[number].xindexes.items() if other is index]
                found[number] = found[number].drop_vars(gone).assign_coords(labels)
    return found
