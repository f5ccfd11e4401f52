"""`over_blocks`: programs over DataArrays that are in chunks, and may be larger than memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphcore.backends.chunked import is_chunked
from graphcore.frontend.core.base import brief, refusal, type_refusal
from graphcore.frontend.core.wrong_calls import reword_errors
from graphcore.ir.help_text import parameters
from graphcore.ir.structures import leaves

from .compiled import Compiled
from .functions import Function


@reword_errors
@parameters(
    f="A compiled program, or a `gc.function`.",
    arguments="The arguments of a call, in the form of its inputs: DataArrays, of which one at "
    "least is in chunks of Dask, and arrays, which each block gets as they are, or its part of.",
    by_name="Arguments by name.",
)
def over_blocks(
    f: Compiled[Any] | Function[..., Any, Any], /, *arguments: Any, **by_name: Any
) -> Any:
    """The results of a call as lazy DataArrays, computed by Dask block by block.

    They are in the form of the outputs, and have the coordinates that `returns="xarray"` gives. The
    same as `f(*arguments)`, which does so wherever a DataArray is in chunks.

    The program must be free of what mixes blocks, which is proven by the kinds of axes of its
    operations. On all paths, those of integers included, a dim with several chunks is batch. Or it
    is taken last, by a sum, mean, variance, product, extreme, any, all, count, contraction or sum
    of groups. Parts of blocks are then combined, a few at a time: extremes, any and all to the bit,
    sums to rounding. Gradients of such sums and means are sums over blocks as well. What depends on
    the result of a reduction, such as `x - x.mean(dim)`, takes another pass over the data.

    Each process compiles the program once. Results that are computed together, by
    `dask.compute(*results)`, are made by one task for each block and pass.

    GraphError if no argument is in chunks, or if blocks would mix: the error names the line. If a
    dim with several chunks is declared with a size, or the program uses its size as a number. If a
    derivative goes through an extreme or product over blocks.

    >>> import graphcore as gc, numpy as np, xarray
    >>> x = gc.tensor("x", {"time": None, "lat": None})
    >>> f = gc.compile([x], {"mean": x.mean("time"), "away": x - x.mean("lat")})
    >>> X = xarray.DataArray(np.arange(6.0).reshape(3, 2), dims=("time", "lat"))
    >>> found = gc.over_blocks(f, X.chunk(time=2))
    >>> found["away"].chunks, found["mean"].values
    (((2, 1), (2,)), array([2., 3.]))
    """
    if not isinstance(f, Compiled | Function):
        cure = "compile it: f = gc.compile(inputs, outputs)"
        raise type_refusal(f"takes a compiled program or a gc.function, not {brief(f)}", cure=cure)
    if not any(map(holds_chunks, [*arguments, *by_name.values()])):
        reason = "no argument is a DataArray in chunks"
        cure = "call the program itself for arrays in memory; DataArrays have a method `chunk`"
        raise refusal(reason, cure=cure)
    return f(*arguments, **by_name)


def holds_chunks(argument: Any) -> bool:
    """Whether an argument, or one in a tree or Dataset of them, is in chunks."""
    if isinstance(argument, Mapping):
        return any(map(holds_chunks, argument.values()))
    return any(is_chunked(x) for _, x in leaves(argument))
