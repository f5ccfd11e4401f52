"""Arithmetic of integer inputs wherever a public function takes a size, length, position or step.

The signatures say where integers are taken: a new one must be entered in one of three tables.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.frontend.core.contents import SPACES
from graphcore.frontend.core.public_calls import public
from graphcore.frontend.order.groups import GroupBy
from graphcore.frontend.window.rolling import Coarsen, Rolling

N = gc.tensor("n", {}, dtype="int64")
T = gc.tensor("t", {"t": None})
ROW = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0, 5.0, 3.5, 7.0, 8.0, 2.5])
IDS = gc.constant(np.arange(12) % 2, "t")
KERNEL = gc.constant([1.0, -2.0], "t")
MATRIX = T.unstack(t={"row": 3, "col": None})
WINDOWS = T.unstack(t={"t": 4, "w": 3})
BIG = T > 2.2
PLACES: dict[str, Callable[[Any], gc.Tensor]] = {
    "full.sizes": lambda m: gc.full({"a": m}, T.sum()),
    "ones.sizes": lambda m: gc.ones({"a": m}) * T.sum(),
    "zeros.sizes": lambda m: gc.zeros({"a": m}),
    "arange.start": lambda m: gc.arange(m, 20, dim="a"),
    "arange.stop": lambda m: gc.arange(m, dim="a"),
    "arange.step": lambda m: gc.arange(0, 20, m, dim="a"),
    "linspace.num": lambda m: gc.linspace(0, T.sum(), m, dim="a"),
    "logspace.num": lambda m: gc.logspace(0, 1, m, dim="a"),
    "geomspace.num": lambda m: gc.geomspace(1, 9, m, dim="a"),
    "one_hot.classes": lambda m: gc.one_hot(IDS, m),
    "vander.n": lambda m: gc.vander(T, m, "p"),
    "eye.dims": lambda m: gc.eye({"a": m, "b": m + 1}),
    "eye.shape": lambda m: gc.eye(("a", "b"), (m, 3)),
    "eye.k": lambda m: gc.eye({"a": 5, "b": 5}, k=m),
    "tri.dims": lambda m: gc.tri({"a": m, "b": m + 1}),
    "tri.shape": lambda m: gc.tri(("a", "b"), (m, 3)),
    "tri.k": lambda m: gc.tri({"a": 5, "b": 5}, k=m - 1),
    "dropna.size": lambda m: T.dropna("t", size=m),
    "groupby.size": lambda m: T.groupby(IDS, m).sum(),
    "segment_sum.size": lambda m: gc.segment_sum(T, IDS, m),
    "segment_prod.size": lambda m: gc.segment_prod(T, IDS, m),
    "segment_mean.size": lambda m: gc.segment_mean(T, IDS, m),
    "segment_max.size": lambda m: gc.segment_max(T, IDS, m),
    "segment_min.size": lambda m: gc.segment_min(T, IDS, m),
    "bincount.size": lambda m: gc.bincount(IDS, m),
    "histogram.bins": lambda m: gc.histogram(T, m).counts,
    "expand_dims.dim": lambda m: T.expand_dims({"a": m}),
    "expand_dims.sizes": lambda m: T.expand_dims(a=m),
    "unstack.dims": lambda m: T.unstack({"t": {"a": m, "b": None}}),
    "unstack.dims_kwargs": lambda m: T.unstack(t={"a": m, "b": None}),
    "rearrange.sizes": lambda m: gc.rearrange("(a b) -> b a", T, a=m),
    "split.parts": lambda m: gc.split(T, [m, T.sizes["t"] - m], "t")[1],
    "repeat.repeats": lambda m: gc.repeat(T, m, "t"),
    "repeat.size": lambda m: gc.repeat(T, IDS, "t", size=m),
    "tile.copies": lambda m: gc.tile(T, {"t": m}),
    "tile.copies_kwargs": lambda m: gc.tile(T, t=m),
    "diag.offset": lambda m: gc.diag(T, "t", offset=m),
    "diagonal.offset": lambda m: gc.diagonal(MATRIX, ("row", "col"), offset=m - 1),
    "trace.offset": lambda m: gc.trace(MATRIX, ("row", "col"), offset=m - 1),
    "tril.k": lambda m: gc.tril(MATRIX, k=m - 3),
    "triu.k": lambda m: gc.triu(MATRIX, k=m - 3),
    "head.sizes": lambda m: T.head({"t": m}),
    "head.sizes_kwargs": lambda m: T.head(t=m),
    "tail.sizes": lambda m: T.tail({"t": m}),
    "tail.sizes_kwargs": lambda m: T.tail(t=m),
    "thin.steps": lambda m: T.thin({"t": m}),
    "thin.steps_kwargs": lambda m: T.thin(t=m),
    "roll.shifts": lambda m: T.roll({"t": -m}),
    "roll.shifts_kwargs": lambda m: T.roll(t=m),
    "shift.shifts": lambda m: T.shift({"t": -m}, 0.0),
    "shift.shifts_kwargs": lambda m: T.shift(t=m, fill_value=0.0),
    "top_k.k": lambda m: gc.top_k(T, m).values,
    "nonzero.size": lambda m: gc.nonzero(BIG, m)["t"],
    "unique.size": lambda m: gc.unique(T, m),
    "unique_all.size": lambda m: gc.unique_all(T, m).counts,
    "Tensor.where.size": lambda m: T.where(BIG, drop=True, size=m),
    "rolling.dim": lambda m: T.rolling({"t": m}).mean(skipna=True),
    "rolling.window_kwargs": lambda m: T.rolling(t=m, min_periods=1).mean(),
    "coarsen.dim": lambda m: T.coarsen({"t": m + 1}, boundary="trim").mean(),
    "coarsen.window_kwargs": lambda m: T.coarsen(t=m + 1, boundary="pad").mean(),
    "Rolling.construct.stride": lambda m: T.rolling(t=3).construct("w", stride=m, fill_value=0.0),
    "windows.sizes": lambda m: gc.windows(T, {"t": m}, "w", dilation=2),
    "windows.stride": lambda m: gc.windows(T, {"t": 3}, "w", stride=m, dilation=2),
    "overlap_add.sizes": lambda m: gc.overlap_add(WINDOWS, {"t": 9 + m * 0}, "w", stride=2),
    "overlap_add.stride": lambda m: gc.overlap_add(WINDOWS, {"t": None}, "w", stride=m),
    "conv.stride": lambda m: gc.conv(T, KERNEL, "t", stride=m, padding="same"),
    "conv.padding": lambda m: gc.conv(T, KERNEL, "t", padding=(m, 1)),
    "conv_transpose.stride": lambda m: gc.conv_transpose(T, KERNEL, "t", stride=m),
    "conv_transpose.padding": lambda m: gc.conv_transpose(T, KERNEL, "t", padding=m),
    "conv_transpose.sizes": lambda m: gc.conv_transpose(
        T, KERNEL, "t", stride=m, sizes={"t": 11 * m + 2}
    ),
    "max_pool.sizes": lambda m: gc.max_pool(T, {"t": m}),
    "max_pool.stride": lambda m: gc.max_pool(MATRIX, {"row": 2, "col": 3}, {"row": 1, "col": m}),
    "max_pool.padding": lambda m: gc.max_pool(T, {"t": 5}, padding=m),
    "mean_pool.sizes": lambda m: gc.mean_pool(T, {"t": m}),
    "mean_pool.stride": lambda m: gc.mean_pool(T, {"t": 3}, m, padding="full"),
    "mean_pool.padding": lambda m: gc.mean_pool(T, {"t": 5}, padding=m),
    "scan.length": lambda m: gc.scan(lambda c, _: (c + T.sum(), c), 0.0, length=m)[1],
    "linalg.fill_triangular.size": lambda m: gc.linalg.fill_triangular(
        T.head(t=m * (m + 1) // 2), size=m
    ),
    "fft.fft.n": lambda m: abs(gc.fft.fft(T, "t", n=m)),
    "fft.ifft.n": lambda m: abs(gc.fft.ifft(T, "t", n=m)),
    "fft.rfft.n": lambda m: abs(gc.fft.rfft(T, "t", n=m)),
    "fft.irfft.n": lambda m: gc.fft.irfft(T, "t", n=m),
    "fft.hfft.n": lambda m: gc.fft.hfft(T, "t", n=m),
    "fft.ihfft.n": lambda m: abs(gc.fft.ihfft(T, "t", n=m)),
    "fft.fftn.n": lambda m: abs(gc.fft.fftn(T, "t", n={"t": m})),
    "fft.ifftn.n": lambda m: abs(gc.fft.ifftn(T, "t", n={"t": m})),
    "fft.rfftn.n": lambda m: abs(gc.fft.rfftn(T, "t", n={"t": m})),
    "fft.irfftn.n": lambda m: gc.fft.irfftn(T, "t", n={"t": m}),
    "fft.fftfreq.n": lambda m: gc.fft.fftfreq(m, dim="a"),
    "fft.rfftfreq.n": lambda m: gc.fft.rfftfreq(m, dim="a"),
    "signal.hann.size": lambda m: gc.signal.hann(m, dim="a"),
    "signal.hamming.size": lambda m: gc.signal.hamming(m, dim="a"),
    "signal.blackman.size": lambda m: gc.signal.blackman(m, dim="a"),
    "signal.bartlett.size": lambda m: gc.signal.bartlett(m, dim="a"),
    "GroupBy.map.most": lambda m: T.groupby(IDS, 2, name="g").map(
        lambda x, there: gc.where(there, x, 0).sum(), most=m + 4
    ),
    # where signatures say less
    "position": lambda m: T[{"t": m}],
    "slice": lambda m: T[m :: m + 1],
    "at": lambda m: T.at[1::m].multiply(3.0),
    "pad": lambda m: gc.pad(T, {"t": (m, 1)}, constant_values=1.0),
}  # fmt: skip
"""Programs that take an integer at a place, known now or at the call."""

KNOWN: dict[str, Callable[[Any], object]] = {
    "round.decimals": lambda m: gc.round(T, m),
    "dropna.thresh": lambda m: T.dropna("t", thresh=m),
    "sum.min_count": lambda m: T.sum(min_count=m, skipna=True),
    "prod.min_count": lambda m: T.prod(min_count=m, skipna=True),
    "var.ddof": lambda m: T.var(ddof=m),
    "std.ddof": lambda m: T.std(ddof=m),
    "cov.ddof": lambda m: gc.cov(T, T, "t", ddof=m),
    "GroupBy.var.ddof": lambda m: T.groupby(IDS, 2).var(ddof=m),
    "GroupBy.std.ddof": lambda m: T.groupby(IDS, 2).std(ddof=m),
    "ffill.limit": lambda m: T.ffill("t", limit=m),
    "bfill.limit": lambda m: T.bfill("t", limit=m),
    "rolling.min_periods": lambda m: T.rolling(t=3, min_periods=m),
    "windows.dilation": lambda m: gc.windows(T, {"t": 3}, "w", dilation=m),
    "overlap_add.dilation": lambda m: gc.overlap_add(WINDOWS, {"t": None}, "w", dilation=m),
    "conv.dilation": lambda m: gc.conv(T, KERNEL, "t", dilation=m),
    "conv_transpose.dilation": lambda m: gc.conv_transpose(T, KERNEL, "t", dilation=m),
    "max_pool.dilation": lambda m: gc.max_pool(T, {"t": 3}, dilation=m),
    "mean_pool.dilation": lambda m: gc.mean_pool(T, {"t": 3}, dilation=m),
    "diff.n": lambda m: gc.diff(T, "t", n=m),
    "gradient.edge_order": lambda m: gc.gradient(T, dim="t", edge_order=m),
    "scan.checkpoint": lambda m: gc.scan(lambda c, x: (c, x), 0.0, T, dim="t", checkpoint=m),
    "map.checkpoint": lambda m: gc.map(gc.exp, T, dim="t", checkpoint=m),
    "fori_loop.checkpoint": lambda m: gc.fori_loop(0, 3, lambda i, c: c, 0.0, checkpoint=m),
    "special.multigammaln.d": lambda m: gc.special.multigammaln(T, m),
    "special.polygamma.n": lambda m: gc.special.polygamma(m, T),
    "special.expn.n": lambda m: gc.special.expn(m, T),
    "linalg.polyfit.deg": lambda m: gc.linalg.polyfit(T, T, m),
    "linalg.matrix_power.n": lambda m: gc.linalg.matrix_power(MATRIX, m),
    "threads.n": lambda m: gc.threads(m),
}
"""Places that take integers known now: they are no sizes, or decide what is computed."""
OTHERS = {
    "tensor.dims",
    "tensor.shape",
    "check_grads.most",
    "debug_print.limit",
    "debug_print.width",
    *("join_processes.count", "join_processes.number", "join_processes.heartbeat"),
}
"""Places of declarations and tools."""
TAKES = re.compile(r"\b(int|Size|SizeLike|Whole|Expression|Steps|Gaps|Padding)\b")


def places() -> Iterator[str]:
    """Each place of a public function or method whose annotation lets integers in."""
    owners: list[tuple[str, Any]] = [(f"{space}.", public(space)) for space in SPACES]
    owners += [(f"{kind.__name__}.", vars(kind)) for kind in (gc.Tensor, Rolling, Coarsen, GroupBy)]
    met = set()
    for start, functions in [("", public()), *owners]:
        for name, function in functions.items():
            own = inspect.unwrap(function) if inspect.isfunction(function) else None
            if own is None or name.startswith("_") or own in met:
                continue
            met.add(own)
            for parameter in inspect.signature(own).parameters.values():
                if TAKES.search(str(parameter.annotation)):
                    yield f"{start}{name}.{parameter.name}"


def test_every_place_is_in_a_table() -> None:
    found = [*places()]
    tables = [*PLACES, *KNOWN, *OTHERS]
    assert [place for place in found if tables.count(place) != 1] == []
    assert [place for place in tables if "." in place and place not in found] == []


@pytest.mark.parametrize("place", KNOWN)
def test_places_that_need_a_known_integer_say_so(place: str) -> None:
    with pytest.raises(gc.GraphError, match=r"(?s)(checkpoint|is).*cure: .*(integer|number)"):
        KNOWN[place](N + 1)


def with_slopes(m: Any) -> dict[str, Any]:
    made = {place: make(m) for place, make in PLACES.items()}
    found: dict[str, Any] = dict(made)
    for place, y in made.items():
        if y.dtype.kind == "f":
            found[f"{place} slope"] = gc.grad((y * y).sum(), T, disconnected="zero")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("native", [False, True])
def test_values_are_taken_in_all_places(native: bool) -> None:
    f = gc.compile([T, N], with_slopes(N + 1), native=native)
    for n in (1, 2, 3):
        wanted = gc.compile([T], with_slopes(n + 1), native=False)(ROW)
        for place, found in f(ROW, n).items():
            np.testing.assert_allclose(found, wanted[place], rtol=1e-9, atol=1e-12, err_msg=place)


def strided(m: Any) -> list[gc.Tensor]:
    """Each function of strides, several dims among them, for any size of `T`."""
    image = T.expand_dims(copy=4)
    return [
        T.rolling(t=3).construct("w", stride=m, fill_value=0.0),
        gc.windows(T, {"t": 2}, "w", stride=m, dilation=2),
        gc.windows(image, {"copy": 2, "t": 2}, {"copy": "v", "t": "w"}, {"copy": 2, "t": m}),
        gc.overlap_add(gc.windows(T, {"t": 2}, "w", stride=m), {"t": None}, "w", stride=m),
        gc.conv(T, KERNEL, "t", stride=m, padding="full"),
        gc.conv_transpose(T, KERNEL, "t", stride=m, padding="same"),
        gc.max_pool(T, {"t": 2}, m, padding="same"),
        gc.mean_pool(image, {"copy": m, "t": m}),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("native", [False, True])
def test_strides_by_value_of_few_elements(native: bool) -> None:
    def made(m: Any) -> list[gc.Tensor]:
        ys = strided(m)
        z = sum((gc.sin(y) * y).sum() for y in ys)
        slope, way = gc.grad(z, T), gc.stop_gradient(gc.cos(T))
        return [*ys, slope, gc.grad((slope * way).sum(), T), gc.pushforward(slope, T, way)]

    f = gc.compile([T, N], made(N), native=native)
    for n in (1, 2, 3, 4):
        known = gc.compile([T], made(n), native=False)
        for size in (0, 1, 2, 5, 12):
            found = f(ROW[:size], n)
            for y, wanted in zip(found, known(ROW[:size]), strict=True):
                np.testing.assert_allclose(y, wanted, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found[-1], found[-2], rtol=1e-9, atol=1e-12)
