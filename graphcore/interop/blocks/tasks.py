"""Tasks of Dask that compute programs by blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from operator import getitem
from typing import Any, NamedTuple, TypeAlias

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.graph_manipulation import bind
from dask.highlevelgraph import HighLevelGraph

from graphcore.analysis.instances import instance_axes
from graphcore.ir import Node
from graphcore.ir.sizes import evaluate

from .axes import axes_in, sizes_along
from .plan import Plan, Program
from .shipped import Shipped

DaskArray: TypeAlias = Any
Chunks: TypeAlias = Mapping[str, tuple[int, ...]]
"""The sizes of the blocks along each axis."""
TOGETHER = 8
"""How many parts of blocks are combined at a time."""


def run(shipped: Shipped, *blocks: Any) -> tuple[Any, ...]:
    """What a program computes of one block."""
    return tuple(map(np.asarray, shipped.program()(*blocks)))


def pick(places: Sequence[int], values: Sequence[Any]) -> tuple[Any, ...]:
    """Some of several values."""
    return tuple(values[place] for place in places)


def combine(hows: Sequence[str], parts: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """Each of several values, combined from the parts of blocks, in their order."""
    found = []
    with np.errstate(all="ignore"):
        for how, (first, *rest) in zip(hows, zip(*parts, strict=True), strict=True):
            whole = np.array(first)
            for part in rest:
                getattr(np, how)(whole, part, out=whole)
            found.append(whole)
    return tuple(found)


class Tuples(NamedTuple):
    """Tuples of values, one for each block: the keys of `array`, which end in `tail` zeros."""

    array: DaskArray
    tail: int = 0

    def key(self, at: Sequence[int]) -> tuple[Any, ...]:
        """The key of one block."""
        return (self.array.name, *at, *(0,) * self.tail)


class Tasks:
    """The arrays of the values of a plan, as Dask computes them.

    `values` are the arrays of inputs; those along an axis have its blocks. Those of `read_again`
    are read once more in each pass, so that none of their blocks waits for the next one.
    """

    def __init__(
        self,
        plan: Plan,
        values: Mapping[Node, DaskArray],
        read_again: Collection[Node],
        chunks: Chunks,
        sizes: Mapping[str, int],
    ) -> None:
        self.plan, self.chunks, self.sizes = plan, chunks, sizes
        self.values, self.read_again = dict(values), read_again
        for axis, total in plan.cuts.totals.items():
            self.values[total] = da.from_array(np.asarray(sum(chunks[axis])))
        for program in plan.programs:
            self.enter(program)

    def enter(self, program: Program) -> None:
        """Enter the values that one program makes."""
        blocks = self.of_blocks(program)
        kept: dict[frozenset[str], list[int]] = {}
        for place, x in enumerate(program.made):
            if x in self.plan.cuts.cuts:
                gone = frozenset(program.grid) - axes_in(self.plan.axes(x))
                kept.setdefault(gone, []).append(place)
            else:
                self.values[x] = self.of_value(blocks, program.grid, x, place)
        for gone, places in kept.items():
            left = tuple(axis for axis in program.grid if axis not in gone)
            whole = self.combined(blocks, program, left, places)
            for number, place in enumerate(places):
                x = program.made[place]
                self.values[x] = self.of_value(whole, left, x, number)

    def places(self, grid: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """The numbers of all blocks along some axes."""
        return product(*[range(len(self.chunks[axis])) for axis in grid])

    def of_blocks(self, program: Program) -> Tuples:
        """The values that each block makes, in one task."""
        numbers = {axis: number for number, axis in enumerate(self.chunks)}
        operands: list[Any] = []
        whole = dict[int, None]()
        for x in program.params:
            found, index = self.plan.axes(x), []
            for i, dim in enumerate(x.type.dims, len(numbers)):
                axes = instance_axes(found.get(dim, ()))
                index.append(numbers[axes[0]] if axes else i)
                whole |= {} if axes else {i: None}
            operands += [self.read(x, program), tuple(index)]
        dims = [*[numbers[axis] for axis in program.grid], *whole]
        made = da.blockwise(
            run,
            tuple(dims),
            dask.delayed(program.run, name=f"program-{program.run.digest}", traverse=False),
            None,
            *operands,
            align_arrays=False,
            dtype=object,
            meta=np.empty((0,) * len(dims), dtype=object),
            token="blocks",
        )
        return Tuples(made, len(whole))

    def read(self, x: Node, program: Program) -> DaskArray:
        """The array of an input; in a later pass one that is read after earlier ones."""
        array = self.values[x]
        if program.number == 0 or x not in self.read_again:
            return array
        before = [self.values[y] for y in program.params if y in self.plan.cuts.cuts]
        return bind(array, before, seed=tokenize(*[y.name for y in before]))

    def of_value(self, of: Tuples, grid: Sequence[str], x: Node, place: int) -> DaskArray:
        """The array of one of the values in tuples."""
        found, chunks, order = self.plan.axes(x), [], []
        for dim, size in x.type.sizes.items():
            axes, rest = sizes_along(found, dim, size)
            number = evaluate(rest, self.sizes)
            chunks.append(tuple(n * number for n in self.chunks[axes[0]]) if axes else (number,))
            order.append(grid.index(axes[0]) if axes else None)
        name = f"value-{tokenize(of.array.name, place)}"
        graph = {
            (name, *[0 if i is None else at[i] for i in order]): (getitem, of.key(at), place)
            for at in self.places(grid)
        }
        return made_of(name, graph, of.array, chunks, x.type.dtype)

    def combined(
        self, blocks: Tuples, program: Program, left: Sequence[str], places: Sequence[int]
    ) -> Tuples:
        """Some values combined over the axes that are not `left`, a few blocks at a time."""
        cuts = self.plan.cuts.cuts
        together = partial(combine, tuple(cuts[program.made[place]].how for place in places))
        name = f"combine-{tokenize(blocks.array.name, tuple(places))}"
        rows: dict[tuple[int, ...], list[Any]] = {}
        graph: dict[Any, Any] = {}
        for at in self.places(program.grid):
            key = (f"{name}-part", *at)
            graph[key] = (partial(pick, tuple(places)), blocks.key(at))
            own = tuple(i for i, axis in zip(at, program.grid, strict=True) if axis in left)
            rows.setdefault(own, []).append(key)
        for own, keys in rows.items():
            number = 0
            while len(keys) > TOGETHER:
                number += 1
                groups = [keys[i : i + TOGETHER] for i in range(0, len(keys), TOGETHER)]
                keys = [(f"{name}-{number}", *own, i) for i in range(len(groups))]
                graph |= {key: (together, group) for key, group in zip(keys, groups, strict=True)}
            graph[name, *own] = (together, keys)
        chunks = [(1,) * len(self.chunks[axis]) for axis in left]
        return Tuples(made_of(name, graph, blocks.array, chunks, np.dtype(object)))


def made_of(
    name: str, graph: Mapping[Any, Any], of: DaskArray, chunks: Sequence[Any], dtype: Any
) -> DaskArray:
    """The array of this name among tasks that read another one."""
    whole = HighLevelGraph.from_collections(name, graph, dependencies=[of])
    meta = np.empty((0,) * len(chunks), dtype=dtype)
    return da.Array(whole, name, chunks=tuple(chunks), meta=meta)
