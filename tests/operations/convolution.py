"""Convolution and pooling: windows by the places they see, contracted or reduced."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input
from tests.operations.windows import added, seen

IMAGE, KERNEL = Input("six col batch"), Input("row one i batch")
MOVES = {"six": "row", "col": "i"}


def ends_of(n: int, size: int, stride: int, dilation: int, padding: Any) -> tuple[int, int]:
    """What padding means for a dim of n places."""
    reach = (size - 1) * dilation
    if padding == "same":
        lack = max((-(-n // stride) - 1) * stride + reach + 1 - n, 0)
        return lack // 2, lack - lack // 2
    return {"valid": (0, 0), "full": (reach, reach)}.get(padding) or padding


def moved(
    x: Any, sizes: Any, moves: Any, stride: int, dilation: int, padding: Any, fill: float = 0
) -> Any:
    """The windows of `x` that a kernel meets."""
    for dim, place in moves.items():
        if sizes[place] == 0:
            raise ValueError("a window has one place at least")
        ends = ends_of(x.sizes[dim], sizes[place], stride, dilation, padding)
        x = x.pad({dim: ends}, constant_values=x.dtype.type(fill))
        x = seen(x, dim, place, sizes[place], stride, dilation)
    return x


def conv(contract: Any, moves: Any = MOVES, stride: int = 1, dilation: int = 1,
         padding: Any = "valid", kernel: Input = KERNEL) -> Case:  # fmt: skip
    def theirs(x: Any, k: Any) -> Any:
        windows = moved(x, k.sizes, moves, stride, dilation, padding)
        return xarray.dot(windows, k, dim=[*moves.values(), *contract])

    return Case(
        lambda x, k: gc.conv(x, k, moves, contract, stride, dilation, padding),
        theirs, (IMAGE, kernel),
    )  # fmt: skip


def transposed(contract: Any, stride: int = 1, dilation: int = 1, padding: Any = "valid") -> Case:
    """Every place spread to where the windows took it from, what was padded cut off."""

    def theirs(x: Any, k: Any) -> Any:
        x = xarray.dot(x, k, dim=contract)
        for dim, place in MOVES.items():
            n, size = x.sizes[dim], x.sizes[place]
            if size == 0 or (padding == "full" and n < (size - 1) * dilation):
                raise ValueError("no convolution has a result of this size")
            reach = (n - 1) * stride + (size - 1) * dilation + 1
            ends = ends_of(n * stride, size, stride, dilation, padding)
            kept = n * stride if padding == "same" else max(reach - sum(ends), 0)
            x = added(x, dim, place, kept + sum(ends), stride, dilation)
            x = x.isel({dim: slice(ends[0], ends[0] + kept)})
        return x

    return Case(
        lambda x, k: gc.conv_transpose(x, k, MOVES, contract, stride, dilation, padding),
        theirs, (IMAGE, KERNEL),
    )  # fmt: skip


def pool(
    name: str, stride: int, dilation: int, padding: Any, fill: float = 0, **options: Any
) -> Case:
    moves, sizes = {"six": "p", "col": "q"}, {"p": 3, "q": 2}

    def theirs(x: Any) -> Any:
        windows = moved(x, sizes, moves, stride, dilation, padding, fill)
        if options:
            ones = moved(xarray.ones_like(x), sizes, moves, stride, dilation, padding)
            return windows.sum(["p", "q"]) / ones.sum(["p", "q"])
        return getattr(windows, name)(["p", "q"])

    return Case(
        lambda x: getattr(gc, f"{name}_pool")(
            x, {"six": 3, "col": 2}, stride, dilation, padding, **options
        ),
        theirs, (IMAGE,),
    )  # fmt: skip


CASES: dict[str, Case] = {
    "conv": conv(["batch"]),
    "conv same": conv(["batch"], padding="same"),
    "conv same apart": conv(["batch"], stride=2, dilation=2, padding="same"),
    "conv full": conv(["batch", "one"], stride=3, padding="full"),
    "conv padded": conv(["batch"], stride=2, padding=(2, 1)),
    "conv in groups": conv([], padding="same"),
    "conv of one dim": conv(["row"], {"six": "i"}, padding="same"),
    "conv shared": Case(
        lambda x, k: gc.conv(x, k.rename(i="col"), "col"),
        lambda x, k: xarray.dot(moved(x, k.sizes, {"col": "i"}, 1, 1, "valid"), k,
                                dim=["i", "batch"]),
        (IMAGE, Input("i batch row")),
        fixed=("i",),
    ),
    "conv_transpose": transposed(["batch"]),
    "conv_transpose same": transposed(["batch"], 2, padding="same"),
    "conv_transpose full": transposed(["batch"], dilation=2, padding="full"),
    "conv_transpose apart": transposed(["one"], 3, padding=(1, 0)),
    "conv_transpose sized": Case(
        lambda x, k: gc.conv_transpose(x, k, {"col": "i"}, "batch", stride=3, sizes={"col": 12}),
        lambda x, k: added(xarray.dot(x, k, dim="batch"), "col", "i", 12, 3),
        (IMAGE, Input("i batch row")),
        fixed=("col", "i"),
    ),
    "max_pool": Case(
        lambda x: gc.max_pool(x, {"six": 2}),
        lambda x: moved(x, {"p": 2}, {"six": "p"}, 2, 1, "valid").max("p"),
        (IMAGE,),
    ),
    "max_pool padded": pool("max", 2, 1, "same", -np.inf),
    "max_pool dilated": pool("max", 1, 2, (1, 2), -np.inf),
    "mean_pool": Case(
        lambda x: gc.mean_pool(x, {"six": 3}),
        lambda x: moved(x, {"p": 3}, {"six": "p"}, 3, 1, "valid").mean("p"),
        (IMAGE,),
    ),
    "mean_pool padded": pool("mean", 2, 1, "same"),
    "mean_pool of values": pool("mean", 2, 2, "same", count_include_pad=False),
}  # fmt: skip
