"""Programs block by block, over DataArrays whose values are Dask arrays; Dask is loaded here.

A program runs on blocks as it is where it treats the dims with chunks as batch, which is proven on
the user's graph. Where it reduces over them last, blocks compute parts that are combined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import unify_chunks
from xarray import Variable

from graphcore.analysis.instances import instance_axes
from graphcore.backends.argument_checks import Parameter, quote
from graphcore.backends.boundary import Boundary
from graphcore.backends.chunked import is_chunked
from graphcore.interop.xarrays import DataArrays
from graphcore.ir import Graph, Node, Size
from graphcore.ir.names import ValueOf
from graphcore.ir.sizes import evaluate, unknown, unknowns

from .axes import refused
from .plan import SIZES, Compile, Lower, Plan, plan
from .tasks import Chunks, DaskArray, Tasks


class ByBlocks:
    """Calls a program with DataArrays in chunks, for lazy results."""

    def __init__(
        self,
        graph: Graph,
        boundary: Boundary,
        compiled: Compile,
        lowered: Lower,
        labels: Callable[[], DataArrays],
    ) -> None:
        self._graph, self._boundary = graph, boundary
        self._compiled, self._lowered, self._labels = compiled, lowered, labels
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._labellers: dict[tuple[int, ...], DataArrays] = {}

    def __call__(self, arguments: Sequence[Any], out: Any = None) -> list[Any]:
        """The outputs as lazy DataArrays, for one argument for each input."""
        if out is not None:
            reason = "results of arguments in chunks are lazy, and not written into out"
            raise refused(reason, "leave out= out, and write y.compute(), or y.to_zarr(path)")
        params = self._boundary.params
        shells = [shell(param, x) for param, x in zip(params, arguments, strict=True)]
        _, sizes = self._boundary.bind_named(shells)
        arrays = [
            array_of(param, x) if is_chunked(x) else None
            for param, x in zip(params, arguments, strict=True)
        ]
        axes = self._axes(arrays)
        if axes not in self._plans:
            self._plans[axes] = plan(self._graph, axes, self._compiled, self._lowered)
        made = self._lazy(self._plans[axes], arguments, arrays, sizes)
        lazy = tuple(i for i, array in enumerate(arrays) if array is not None)
        if lazy not in self._labellers:
            self._labellers[lazy] = found = self._labels()
            found.leave_out([self._graph.params[i] for i in lazy])
        # Without a name of its own a DataArray would have that of its tasks.
        return [y.rename(None) for y in self._labellers[lazy](made, shells)]

    def _axes(self, arrays: Sequence[DaskArray | None]) -> tuple[str, ...]:
        """The unknown sizes of dims with several chunks, in the order of the arguments."""
        found: dict[str, None] = {}
        for node, param, x in zip(self._graph.params, self._boundary.params, arrays, strict=True):
            for dim, parts in zip(param.dims, x.chunks if x is not None else (), strict=False):
                if len(parts) > 1:
                    found[axis_of(param, dim, node.type.size(dim))] = None
        return tuple(found)

    def _lazy(
        self,
        plan: Plan,
        arguments: Sequence[Any],
        arrays: Sequence[DaskArray | None],
        sizes: Mapping[str, int],
    ) -> list[DaskArray]:
        """The arrays of the outputs."""
        given, known = dict[Node, DaskArray](), dict[Node, Any]()
        rows = zip(self._graph.params, self._boundary.params, arguments, arrays, strict=True)
        for node, param, x, lazy in rows:
            if lazy is None:
                known[node] = param.convert(x)
            else:
                given[node] = lazy
        for node in {x for program in plan.programs for x in program.params}:
            if node.type.dims == (SIZES,):
                known[node] = np.broadcast_to(np.False_, [evaluate(node.type.shape[0], sizes)])
        for node, constant in plan.cuts.lifted.items():
            known[node] = constant.attrs["value"].array
        read = [*given]
        chunks = in_one_way(plan, given)
        given |= {node: in_blocks(plan, node, x, chunks) for node, x in known.items()}
        tasks = Tasks(plan, given, read, chunks, sizes)
        return [tasks.values[y] for y in plan.outputs]


def axis_of(param: Parameter, dim: str, size: Size) -> str:
    """The name of the size of a dim with several chunks."""
    name, *more = [*unknowns(size)] or [""]
    if more or size is not unknown(name) or isinstance(name, ValueOf):
        reason = f"dim {quote(dim)} of input {param.shown} has several chunks, and the size {size}"
        one = f"array.chunk({{{quote(dim)}: -1}})"
        cure = f"declare it with an unknown size, {{{quote(dim)}: None}}, or give it one chunk: "
        raise refused(f"{reason}, which blocks have not", cure + one)
    return name


def shell(param: Parameter, x: Any) -> Any:
    """An argument as the entrance checks it: of one in chunks the labels, and no values."""
    if not is_chunked(x):
        return x
    if any(math.isnan(size) for size in x.shape):
        reason = f"input {param.shown} has chunks of unknown sizes"
        raise refused(reason, "compute them: array.data.compute_chunk_sizes()")
    if param.integer:
        reason = f"input {param.shown} is one integer in a chunk"
        raise refused(reason, "pass its value: array.compute()")
    # The dtype is checked on no values: a conversion of all would need memory for them.
    empty = Parameter(param.number, param.name, param.dims, param.dtype, None, param.declared)
    empty.convert(Variable(x.dims, np.empty((0,) * x.ndim, x.dtype)))
    return x.copy(data=np.broadcast_to(np.zeros((), param.dtype), x.shape))


def array_of(param: Parameter, x: Any) -> DaskArray:
    """The array of an argument with its dims in the declared order, and without empty chunks."""
    array = x.variable.transpose(*param.dims).data if hasattr(x, "variable") else x.data
    chunks = tuple(tuple(n for n in parts if n) or (0,) for parts in array.chunks)
    return array if chunks == array.chunks else array.rechunk(chunks)


def in_one_way(plan: Plan, given: dict[Node, DaskArray]) -> Chunks:
    """The sizes of blocks along each axis, once all arrays are in the same ones."""
    operands: list[Any] = []
    for x, array in given.items():
        found = plan.axes(x)
        operands += [array, [found.get(dim) or (x, dim) for dim in x.type.dims]]
    chunks, arrays = unify_chunks(*operands, warn=False)
    given.update(zip(given, arrays, strict=True))
    return {axis: chunks[axis,] for axis in plan.cuts.totals}


def in_blocks(plan: Plan, x: Node, array: Any, chunks: Chunks) -> DaskArray:
    """An array in memory, in blocks along axes."""
    found = plan.axes(x)
    parts = [
        next((chunks[axis] for axis in instance_axes(found.get(dim, ()))), (n,))
        for dim, n in zip(x.type.dims, array.shape, strict=True)
    ]
    return da.from_array(array, chunks=tuple(parts))
