"""Graphs of xtensor: by their own names, and lowered by PyTensor in our mode."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytensor.xtensor")

import pytensor
import pytensor.tensor as pt
import pytensor.xtensor as px
from pytensor.xtensor import xtensor

import graphcore as gc
from graphcore.interop.pytensor import from_pytensor

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

R = np.random.default_rng(7)
A, B = R.normal(size=(3, 4)), R.normal(size=(4, 2))
P = A[:, :3] @ A[:, :3].T + np.eye(3)
AT = np.array([2, 0, 2])

CASES: dict[str, Callable[..., Any]] = {
    "elementwise": lambda a, b: [
        a + b,
        a * 2 - b,
        px.math.exp(a),
        (a > 0) & (b < 1),
        px.math.where(a > 0, a, b),
    ],
    "reductions": lambda a, b: [
        a.sum(),
        a.sum("row"),
        a.mean("col"),
        b.prod("new"),
        a.max("row"),
        (a > 0).any("row"),
        a.var("col"),
    ],
    "running": lambda a, b: [a.cumsum("row"), a.cumprod("col"), a.cumsum()],
    "dims": lambda a, b: [
        a.transpose("col", "row"),
        a.rename(row="x"),
        a.expand_dims("x"),
        a.expand_dims({"z": 2}),
        a.isel(row=[0]).squeeze("row"),
    ],
    "stacks": lambda a, b: [
        a.stack({"all": ["row", "col"]}),
        a.stack({"all": ["row", "col"]}).unstack({"all": {"row": 3, "col": 4}}),
    ],
    "joins": lambda a, b: [
        px.concat([a, a * 2], dim="row"),
        px.concat([a, b.isel(new=0)], dim="row"),
        px.concat([a, a], dim="x"),
    ],
    "products": lambda a, b: [a.dot(b), a.dot(b, dim="col"), a.dot(b, dim=...), px.dot(a, a)],
    "broadcast": lambda a, b: [*px.broadcast(a, b), a.broadcast_like(b)],
    "indices": lambda a, b: [
        a.isel(row=0),
        a.isel(col=slice(1, 3)),
        a[{"row": -1}],
        a[1:, ::-1],
        a.isel(row=[2, 0]),
        a.isel(row=AT[:2], col=[1, 1, 3]),
    ],
    "pointwise": lambda a, b: [
        a.isel(row=("at", AT), col=("at", AT)),
        a.isel(row=px.as_xtensor(AT, dims=("at",))),
    ],
    "updates": lambda a, b: [
        a.isel(row=0).set(1.0),
        a.isel(col=slice(1, None)).inc(2.0),
        a.isel(row=[0, 2]).set(a.isel(row=1)),
    ],
    "softmax": lambda a, b: [px.math.softmax(a, dim="col"), px.math.logsumexp(a, dim="row")],
    "axes": lambda a, b: [
        px.as_xtensor(a.values.T, dims=("x", "y")),
        a.values.sum(0),
        a + a.sizes["row"],
    ],
    "a dim named as an axis": lambda a, b: [
        px.linalg.cholesky(
            px.as_xtensor(P, dims=("row", "x")) + 0 * b.rename(col="d0", new="d1").sum(),
            dims=["row", "x"],
        )
    ],
    "linalg": lambda a, b: [
        px.linalg.cholesky(
            a.dot(a.rename(row="other")) + px.as_xtensor(np.eye(3), dims=("row", "other")),
            dims=["row", "other"],
        )
    ],
}


def variables() -> list[Any]:
    return [xtensor("a", dims=("row", "col")), xtensor("b", dims=("col", "new"))]


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    inputs = variables()
    outputs = CASES[name](*inputs)
    wanted = pytensor.function(inputs, outputs, mode="FAST_COMPILE", on_unused_input="ignore")(A, B)
    lowered = pytensor.function(inputs, outputs, mode="GRAPHCORE", on_unused_input="ignore")(A, B)
    ours, made = from_pytensor(inputs, outputs)
    assert ours[0].dims == ("row", "col")
    for y, v in zip(made, outputs, strict=True):
        if hasattr(v.type, "dims"):
            assert y.dims == v.type.dims
    for target in ("numpy", "native"):
        found = gc.compile(ours, made, target=target)(A, B)
        for x, y, z in zip(found, lowered, wanted, strict=True):
            np.testing.assert_allclose(x, z, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(y, z, rtol=1e-12, atol=1e-14)


def test_slopes_by_name() -> None:
    """Those of the named graph, which PyTensor differentiates only after it is lowered."""
    inputs = variables()
    a, b = inputs
    ours, made = from_pytensor(inputs, (px.math.exp(a.dot(b)) * a.mean("col")).sum())
    slopes = gc.compile(ours, gc.grad(made, ours))(A, B)
    u, v = pt.matrix("u"), pt.matrix("v")
    plain = (pt.exp(u @ v) * u.mean(1)[:, None]).sum()
    theirs = pytensor.function([u, v], pytensor.grad(plain, [u, v]), mode="FAST_COMPILE")
    for y, z in zip(slopes, theirs(A, B), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-12)
