"""Which elements of a program's inputs the elements of its results stand for, along each dim.

A dim keeps the labels of an input where each of its elements stands for one element of that input:
for the same one, for one at a known position, or for the block whose mean it is. Where one position
was picked, the dim is gone, and its label is a scalar. Decided from the user's graph alone: by the
kinds of axes of its ops, and by `RULES` for the ops whose positions are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, cast

from graphcore.analysis.dataflow import Known
from graphcore.analysis.following import Facts, Follower
from graphcore.ir import INT, Graph, Hidden, Literal, Node, Op, Size, toposort
from graphcore.ir.axes import How, operands, values
from graphcore.ops import elementwise, leaf, named


class Base(NamedTuple):
    """The dim of an input, or of a constant with labels, by its number, and its size.

    `shown` are its coordinates that have other names by now, as pairs (own, new). With `level` it
    is that level of an index of several.
    """

    number: int
    dim: str
    size: Size
    shown: tuple[tuple[str, str], ...] = ()
    level: str | None = None

    @property
    def name(self) -> str:
        """The name of its labels."""
        own = self.level or self.dim
        return dict(self.shown).get(own, own)


class Source(NamedTuple):
    """The elements of inputs that those of a dim stand for.

    `positions` are those of the elements in the bases, one base after the other: a node with one
    dim, or with none where one element was picked; -1 where an element stands for none. None means
    all of them, in their order. Further dims of the node are those of blocks, whose labels have a
    mean. `levels` are the dims that a dim merges. `missing`: whether
    elements stand for none, or did before they were left out, so that integers are floats.
    """

    bases: tuple[Base, ...]
    positions: Node | None = None
    levels: tuple[str, ...] = ()
    missing: bool = False

    @property
    def name(self) -> str:
        """The name of its labels."""
        return self.bases[0].name


Origin = frozenset[Source] | None
"""The elements of inputs that those of a dim stand for; None where they stand for none."""

PICKED = Hidden("picked")
"""Among the dims of a value: the single elements of inputs that the whole of it stands for."""
BLOCK = Hidden("block")

CoordinateRule: TypeAlias = Callable[[Node, Sequence[Facts[Origin]]], Facts[Origin]]
"""From a node and the facts of its operands to facts that those by its kind of axes lack."""
RULES: dict[Op, CoordinateRule] = {}
"""The rules of ops that move elements to positions that are known."""


def rule(*ops: Op) -> Callable[[CoordinateRule], CoordinateRule]:
    """Enter the rule of some ops."""

    def enter(function: CoordinateRule) -> CoordinateRule:
        RULES.update(dict.fromkeys(ops, function))
        return function

    return enter


def sources(graph: Graph, nodes: Sequence[Node]) -> list[Facts[Origin]]:
    """The sources of each output among `nodes`, the inputs and constants that may have labels.

    A dim that is missing is new, and takes any coordinate.
    """
    given: dict[Node, Facts[Origin]] = {
        node: {
            dim: frozenset([Source((Base(number, dim, size),))])
            for dim, size in node.type.sizes.items()
        }
        for number, node in enumerate(nodes)
    }
    found = Origins(graph, given).follow(graph.outputs, given)
    return [found[y][0] for y in graph.outputs]


class Origins(Follower[Origin]):
    """Follows dims to the inputs that they come from."""

    def __init__(self, graph: Graph, given: Mapping[Node, Facts[Origin]]) -> None:
        self._outside = frozenset(graph.nodes())
        """The nodes outside of bodies."""
        self._constants = {x: facts for x, facts in given.items() if x not in graph.params}

    def follow(
        self, roots: Sequence[Node], sources: Mapping[Node, Facts[Origin]]
    ) -> Known[Facts[Origin]]:
        """The constants of bodies have labels as well."""
        return super().follow(roots, {**self._constants, **sources})

    def by_kind(self, node: Node, given: Sequence[Facts[Origin]]) -> list[Facts[Origin]]:
        """Elements that an op moves are lost, unless another operand keeps its own in place."""
        types = operands(node)
        results: list[Facts[Origin]] = []
        for y, by_operand in zip(values(node.type), node.op.axes.sources(node), strict=True):
            new: Facts[Origin] = {}
            for axis, dim in enumerate(y.dims or ()):
                kept: list[Origin] = []
                moved = False
                for x, facts, axes in zip(types, given, by_operand, strict=True):
                    match axes[axis]:
                        case (own, How.EACH | How.ALONG):
                            kept.append(facts.get((x.dims or ())[own[0]], frozenset()))
                        case (_, How.MOVED | How.PART):
                            moved = True
                new[dim] = both(kept) if kept or not moved else None
            results.append(new)
        if node.op in RULES:
            more = RULES[node.op](node, given)
            if node not in self._outside:
                more = {dim: self.computable(origin) for dim, origin in more.items()}
            results[0] |= more
        single = both([facts.get(PICKED, frozenset()) for facts in given]) or frozenset()
        before = {dim for x in types for dim in x.dims or ()}
        single = frozenset(source for source in single if source.name not in before)
        return [found | {PICKED: beside(found, single)} for found in results]

    def computable(self, origin: Origin) -> Origin:
        """Sources of a value in a body, if their positions follow from the inputs alone."""
        places = [source.positions for source in origin or () if source.positions is not None]
        inside = [x for x in leaf.inputs_among(toposort(places)) if x not in self._outside]
        return None if inside else origin

    def join(self, node: Node, several: Sequence[Facts[Origin]]) -> Facts[Origin]:
        """A dim has the sources that it has in all values together; single elements may differ.

        Where each step moves the elements once more, they stand for none.
        """
        dims = dict.fromkeys(dim for facts in several for dim in facts if dim != PICKED)
        found = {dim: both([facts[dim] for facts in several if dim in facts]) for dim in dims}
        return {dim: None if is_moved_on(origin) else origin for dim, origin in found.items()}

    def all_steps(
        self, node: Node, fact: Facts[Origin], given: Sequence[Facts[Origin]]
    ) -> Facts[Origin]:
        """The results of all steps are at the positions of the sequences' elements."""
        dim, n = node.attrs.get("dim"), node.attrs["carries"]
        if dim is None:
            return fact
        sequences = given[n : n + node.attrs["sequences"]]
        return {dim: both([facts[dim] for facts in sequences if dim in facts])} | fact


MOST_POSITIONS = 8
"""The most positions of elements that are joined, in a loop or of branches."""


def is_moved_on(origin: Origin) -> bool:
    """Whether elements stand for those at more positions than are joined."""
    return sum(source.positions is not None for source in origin or ()) > MOST_POSITIONS


def beside(found: Facts[Origin], single: frozenset[Source]) -> Origin:
    """The single elements of a value, but those of labels that it has along a dim."""
    names = {source.name for dim in found if dim != PICKED for source in found[dim] or ()}
    every = single | (found.get(PICKED) or frozenset())
    return frozenset(source for source in every if source.name not in {*found, *names})


def both(some: Sequence[Origin]) -> Origin:
    """The sources of a dim along which several values are aligned."""
    return None if None in some else frozenset().union(*filter(None, some))


# ---- positions


def positions(source: Source, x: Node, dim: str) -> Node:
    """The positions of a source, as a node whose dim is `dim` of `x`, then those of blocks."""
    if source.positions is None:
        return leaf.iota(size=x.type.size(dim), dtype=INT, dims=(dim,))
    own = source.positions.type.dims[0]
    return source.positions if own == dim else named.rename(source.positions, names=((own, dim),))


def placed(origin: Origin, x: Node, dim: str, place: Callable[[Node], Node]) -> Origin:
    """The sources of `dim` of `x` at other positions."""
    return origin and frozenset(
        source._replace(positions=place(positions(source, x, dim))) for source in origin
    )


@rule(named.slice_)
def cut(node: Node, given: Sequence[Facts[Origin]]) -> Facts[Origin]:
    """Each dim that is cut, at the positions that are left."""
    (x,), found = node.inputs, Facts[Origin]()
    rows = zip(*(node.attrs[key] for key in ("dims", "starts", "sizes", "steps")), strict=True)
    for dim, start, size, step in rows:
        cuts = {"dims": (dim,), "starts": (start,), "sizes": (size,), "steps": (step,)}
        found[dim] = placed(given[0].get(dim), x, dim, partial(named.slice_, **cuts))
    return found


@rule(named.index, named.squeeze)
def pick(node: Node, given: Sequence[Facts[Origin]]) -> Facts[Origin]:
    """The single elements that are picked."""
    (x,), found = node.inputs, set[Source]()
    dims = node.attrs["dims"]
    for dim, at in zip(dims, node.attrs.get("positions", (0,) * len(dims)), strict=True):
        one = {"dims": (dim,), "positions": (at,)}
        some = placed(given[0].get(dim), x, dim, partial(named.index, **one))
        found.update(some or ())
    return {PICKED: frozenset(found)}


def picked(p: Node, index: Node, dim: str) -> Node:
    """The positions at those of another node."""
    return named.gather(p, index, dims=(dim,))


@rule(named.gather)
def gather(node: Node, given: Sequence[Facts[Origin]]) -> Facts[Origin]:
    """The sources along the dims of positions that have one dim or none."""
    x, *indices = node.inputs
    found: Facts[Origin] = {}
    for dim, index, own in zip(node.attrs["dims"], indices, given[1:], strict=True):
        if len(index.type.dims) < 2:
            (new,) = index.type.dims or (PICKED,)
            some = placed(
                given[0].get(dim),
                x,
                dim,
                partial(picked, index=index, dim=dim),
            )
            known = own.get(new) if new != PICKED else None
            found[new] = (found.get(new) or frozenset()) | (some or frozenset()) | (known or set())
    return found


# ---- names


@rule(named.rename)
def rename(node: Node, given: Sequence[Facts[Origin]]) -> Facts[Origin]:
    """The coordinate of the name of the dim has the new name as well."""
    return {
        new: origin
        and frozenset(
            source._replace(bases=tuple(shown_as(base, old, new) for base in source.bases))
            for source in origin
        )
        for old, new in node.attrs["names"]
        for origin in [given[0].get(old)]
    }


def shown_as(base: Base, old: str, new: str) -> Base:
    """A base whose coordinate named `old` by now is named `new`."""
    names = dict(base.shown)
    own = next((own for own, name in names.items() if name == old), old)
    return base._replace(shown=tuple(sorted({**names, own: new}.items())))


# ---- several


@rule(named.concat)
def join(node: Node, given: Sequence[Facts[Origin]]) -> Facts[Origin]:
    """The labels of the parts one after the other; those of a block of numbers are missing."""
    dim, sizes = node.attrs["dim"], [x.type.sizes.get(node.attrs["dim"], 1) for x in node.inputs]
    parts: list[list[Source]] = []
    for x, facts in zip(node.inputs, given, strict=True):
        if dim in x.type.dims:
            origin = facts.get(dim, frozenset())
            part = [s._replace(positions=positions(s, x, dim)) for s in ordered(origin)]
        else:
            picked = [s for s in ordered(facts.get(PICKED)) if s.name == dim]
            origin = frozenset(picked) or None
            part = [s._replace(positions=as_row(s.positions, dim)) for s in picked]
        if origin is None:
            return {dim: None}
        parts.append(part)
    most = max(map(len, parts))
    rows = [[part[at % len(part)] if part else None for part in parts] for at in range(most)]
    return {dim: frozenset(joined(row, sizes, dim) for row in rows) or None}


def joined(row: Sequence[Source | None], sizes: Sequence[Size], dim: str) -> Source:
    """A source for each part, or none, as one."""
    found = [source for source in row if source is not None]
    bases = found[0].bases
    several = any(source.bases != bases for source in found)
    places, whole, before = list[Node](), tuple[Base, ...](), cast(Size, 0)
    for source, size in zip(row, sizes, strict=True):
        if source is None or source.positions is None:
            places.append(leaf.full(value=Literal(-1, INT), shape=(size,), dims=(dim,)))
            continue
        p = source.positions
        if several and before != 0:
            later = elementwise.add(p, leaf.extent(size=before, dtype=INT, dims=()))
            p = elementwise.where(
                elementwise.less(p, leaf.full(value=Literal(0, INT), shape=(), dims=())), p, later
            )
        places.append(p)
        whole += source.bases
        before = before + sum((base.size for base in source.bases), cast(Size, 0))
    levels = {source.levels for source in found}
    line = places[0] if len(places) == 1 else named.concat(*places, dim=dim)
    merged = levels.pop() if len(levels) == 1 else ()
    missing = len(found) < len(row) or any(source.missing for source in found)
    return Source(whole if several else bases, line, merged, missing)


def ordered(origin: Origin) -> list[Source]:
    """Sources in an order that is that of the arguments."""
    return sorted(origin or (), key=lambda source: source.bases)


def as_row(place: Node | None, dim: str) -> Node:
    """A single position along `dim`."""
    assert place is not None
    return named.broadcast(place, dims=(dim, *place.type.dims), sizes=(1, *place.type.shape))


@rule(named.labelled)
def as_labelled(node: Node, given: Sequence[Facts[Origin]]) -> Facts[Origin]:
    """The sources of the second operand, or the blocks of them."""
    like, dims = node.inputs[1], node.attrs["dims"]
    blocks = node.attrs["blocks"] or (1,) * len(dims)
    found: Facts[Origin] = {}
    for dim, size in zip(dims, blocks, strict=True):
        found[dim] = given[1].get(dim, frozenset())
        if size != 1:
            many = node.type.size(dim)

            def in_blocks(p: Node, dim: str = dim, many: Size = many, size: Size = size) -> Node:
                inner = p.type.dims[1:]
                block = Hidden(f"{BLOCK} {len(inner)}")
                attrs = {"dim": dim, "names": (dim, block), "sizes": (many, size)}
                return named.transpose(named.unstack(p, **attrs), dims=(dim, *inner, block))

            found[dim] = placed(given[1].get(dim), like, dim, in_blocks)
    return found | {PICKED: given[1].get(PICKED, frozenset())}


@rule(named.stack)
def merge(node: Node, given: Sequence[Facts[Origin]]) -> Facts[Origin]:
    """Each element stands for one of each of the dims, whose labels are the levels of an index."""
    (x,), dims, name = node.inputs, node.attrs["dims"], node.attrs["name"]
    sizes = tuple(x.type.size(dim) for dim in dims)
    origins = {dim: given[0].get(dim) or frozenset() for dim in dims}
    levels = dims
    if any(isinstance(dim, Hidden) for dim in dims):  # a user knows one of them at most
        levels = ()
        if sum(map(bool, origins.values())) > 1:
            return {name: None}
    found = set()
    for dim in dims:
        for source in origins[dim]:
            if source.levels:  # an index of several levels is no level
                return {name: None}
            p = positions(source, x, dim)
            wide = named.broadcast(p, dims=(*dims, *p.type.dims[1:]),
                                   sizes=(*sizes, *p.type.shape[1:]))  # fmt: skip
            merged = named.stack(wide, dims=dims, name=name)
            order = (name, *p.type.dims[1:])
            found.add(source._replace(positions=named.transpose(merged, dims=order), levels=levels))
    return {name: frozenset(found) or None}


@rule(named.unstack)
def split(node: Node, given: Sequence[Facts[Origin]]) -> Facts[Origin]:
    """The labels of the dims that were merged, or of the levels of an index of an input."""
    dim, names, sizes = (node.attrs[key] for key in ("dim", "names", "sizes"))
    found: dict[str, set[Source]] = {name: set() for name in names}
    for source in given[0].get(dim) or ():
        if (merged := merged_part(source.positions)) is not None:
            at, p, wide = merged
            if len(wide) == len(sizes):  # that they are equal is seen at the call
                own, new = p.type.dims[0], names[at]
                p = p if own == new else named.rename(p, names=((own, new),))
                bases = tuple(shown_as(base, base.name, new) for base in source.bases)
                found[new].add(Source(bases, p))
        elif source.positions is None and len(source.bases) == 1:
            whole = leaf.iota(size=node.inputs[0].type.size(dim), dtype=INT, dims=(dim,))
            p = named.unstack(whole, dim=dim, names=names, sizes=sizes)
            for name in names:
                others = tuple(other for other in names if other != name)
                first = named.index(p, dims=others, positions=(0,) * len(others))
                found[name].add(Source((source.bases[0]._replace(level=name),), first))
    return {name: frozenset(some) or None for name, some in found.items()}


def merged_part(place: Node | None) -> tuple[int, Node, tuple[Size, ...]] | None:
    """Of positions that `merge` made: the number of the dim, its positions, and all sizes."""
    if place is None or place.op is not named.transpose or place.inputs[0].op is not named.stack:
        return None
    merged = place.inputs[0]
    (wide,), dims = merged.inputs, merged.attrs["dims"]
    (p,) = wide.inputs
    return dims.index(p.type.dims[0]), p, tuple(wide.type.size(dim) for dim in dims)


@rule(named.swap_dims)
def swap(node: Node, given: Sequence[Facts[Origin]]) -> Facts[Origin]:
    """Coordinates keep their names."""
    return {new: given[0].get(old, frozenset()) for old, new in node.attrs["names"]}
