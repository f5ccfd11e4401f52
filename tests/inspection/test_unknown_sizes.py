"""Every view shows programs whose attrs are sizes that only the call knows."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import graphcore as gc
from graphcore.inspection.attrs import hints_of
from graphcore.ir.node import OPS
from graphcore.ir.sizes import Expression

X = gc.tensor("x", {"time": None})
W = gc.tensor("w", {"time": None, "row": 3})
N = X.sizes["time"]
K = gc.constant([0, 1, 0], "row")
PROGRAMS: dict[str, Callable[[], gc.Tensor]] = {
    "irfft": lambda: gc.fft.irfft(gc.fft.rfft(X, "time"), "time", n=N),
    "rfft": lambda: abs(gc.fft.rfft(X, "time")) ** 2,
    "hfft": lambda: gc.fft.hfft(X + 0j, "time"),
    "ihfft": lambda: abs(gc.fft.ihfft(X, "time")) ** 2,
    "arange": lambda: X * gc.arange(N, dim="time") * N,
    "full": lambda: X + gc.full({"time": N}, 0.5),
    "broadcast": lambda: gc.sin(W) * X,
    "sorted": lambda: gc.take_along(X, gc.top_k(X, (N + 1) // 2, "time").indices, "time"),
    "argsort": lambda: X.isel(time=gc.argsort(X, "time")),
    "slices": lambda: X.head(time=N // 2) * X.tail(time=N // 2),
    "one place": lambda: X.isel(time=N - 1) * X,
    "embedded": lambda: X.pad(time=(N, 1)) ** 2,
    "overwritten": lambda: X.at[{"time": slice(N // 2, None)}].set(0.5),
    "groups": lambda: gc.segment_sum(W, gc.arange(N, dim="time") % 2, N, name="group"),
    "products of groups": lambda: gc.segment_prod(W, gc.arange(N, dim="time") % 2, N, name="g"),
    "stacked": lambda: (W.stack(all=["time", "row"]) ** 2).unstack(all={"time": N, "row": 3}),
    "diagonal": lambda: gc.diag(X, "time", ("time", "place"), offset=1) ** 2,
    "windows": lambda: gc.windows(X, {"time": (N + 1) // 2}, "lag").sum("lag") ** 2,
    "overlap": lambda: gc.overlap_add(gc.sin(X * W), {"time": N + 2}, "row"),
    "kept": lambda: X[X > 2.5] ** 2,
    "cumulated": lambda: gc.cumsum(X, "time") * gc.cumprod(X, "time"),
    "scan": lambda: gc.scan(lambda c, x: (gc.sin(c) * x, c), 0.5, X)[1] * X,
    "checkpoints": lambda: gc.scan(lambda c, x: (gc.sin(c) * x, c), 0.5, X, checkpoint=2)[0],
    "while": lambda: gc.while_loop(lambda c: abs(c).sum() > 1, lambda c: gc.sin(c) / 2, X),
    "callback": lambda: gc.callback(
        np.sin, X, dims="time", pullback=lambda xs, y, ct: (ct * gc.cos(xs[0]),)
    )(X),
    "mask": lambda: X[X > 2],
}


def made(name: str) -> tuple[gc.Tensor, gc.Compiled]:
    """A result, and the program of it and of its gradient."""
    y = PROGRAMS[name]()
    return y, gc.compile([X, W], [y, gc.grad((y * 1.0).sum(), [X, W], disconnected="zero")])


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_view(name: str, tmp_path: Path) -> None:
    y, f = made(name)
    gc.debug_print(y, file=io.StringIO())
    arrays = np.arange(1.0, 6.0), np.arange(1.0, 16.0).reshape(5, 3)
    assert all(map(str, f.stages.values()))
    assert f.diff("named", "optimized")
    assert str(f.profile(*arrays))
    assert str(f.why(y))
    f.to_html(tmp_path / "page.html")
    f.trace(*arrays)
    f.check(*arrays)


def test_every_op_with_a_size_among_its_attrs_is_here() -> None:
    seen = {x.op for name in PROGRAMS for stage in made(name)[1].stages.values()
            for x in stage.every_node()}  # fmt: skip
    sized = {
        op
        for op in OPS.values()
        for name, hint in hints_of(op).items()
        if name != "return" and Expression.__name__ in str(hint)
    }
    assert {str(op) for op in sized - seen} == {"tensor.pack"}  # which is printed as a reshape is
