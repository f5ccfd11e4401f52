"""Derivatives against differences, and against each other."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphcore as gc
from graphcore.backends.targets import NUMPY
from graphcore.compile.inputs import with_sizes
from graphcore.ir.graph import Graph
from graphcore.ir.sizes import evaluate
from graphcore.rewrites import pipeline
from tests import interpreter


def differences(f: Any, doubt: Any, step: float = 1e-4) -> list[np.ndarray]:
    """df/dt at 0 by central differences, extrapolated; `doubt(False)` where they do not settle."""
    coarse, fine = (
        [(b - a) / (2 * h) for a, b in zip(f(-h), f(h), strict=True)] for h in (step, step / 2)
    )
    for a, b in zip(coarse, fine, strict=True):  # a kink is near
        doubt(np.abs(a - b).max(initial=0) < 1e-4 * (1 + np.abs(b).max(initial=0)))
    return [(4 * b - a) / 3 for a, b in zip(coarse, fine, strict=True)]


def inner(xs: Any, ys: Any) -> float:
    """The real pairing of cotangents and tangents."""
    return float(sum(np.sum(x * y).real for x, y in zip(xs, ys, strict=True)))


def close(found: Any, wanted: Any, scale: float = 1, rtol: float = 1e-9) -> None:
    """Equal up to rounding, measured by the largest value, as sums cancel."""
    assert found.shape == wanted.shape
    scale = max(scale, np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale)


def check_derivatives(
    y: gc.Tensor,
    xs: list[gc.Tensor],
    others: list[gc.Tensor],
    values: dict[str, np.ndarray],
    sizes: dict[str, int],
    doubt: Any,
) -> None:
    """First and second derivatives of `y` in both modes, and every nesting of the two.

    The pushforward is compared with differences along a random direction, the pullback with the
    pushforward by the dot test, and the same again for the pullback as a function of its inputs.
    """
    random, values = np.random.default_rng(0), dict(values)

    def partner(prefix: str, like: gc.Tensor) -> gc.Tensor:
        made = gc.tensor(f"{prefix} {like.name}", like.sizes, dtype=like.dtype)
        shape = [evaluate(size, sizes) for size in like.shape]
        value = random.normal(size=shape)
        if like.dtype.kind == "c":
            value = value + 1j * random.normal(size=shape)
        values[made.name] = np.asarray(value, like.dtype)
        return made

    ct, vs, ws = partner("ct", y), [partner("v", x) for x in xs], [partner("w", x) for x in xs]
    zero = {"disconnected": "zero"}
    back = gc.pullback(y, xs, ct, **zero)
    forth = gc.pushforward(y, xs, vs, **zero)
    for slope, x in zip(back, xs, strict=True):
        assert (slope.dims, slope.shape, slope.dtype) == (x.dims, x.shape, x.dtype)
    assert (forth.dims, forth.shape, forth.dtype) == (y.dims, y.shape, y.dtype)
    second = [
        *gc.pushforward(back, xs, vs, **zero),
        *gc.pullback(back, xs, ws, **zero),
        gc.pushforward(forth, xs, vs, **zero),
        *gc.pullback(forth, xs, ct, **zero),
    ]
    params = tuple(t.node for t in (*xs, *others, ct, *vs, *ws))
    first, rest = (
        pipeline.run(Graph(params, with_sizes([t.node for t in outputs])), NUMPY.passes)[-1].graph
        for outputs in ([y, forth, *back], second)
    )

    def along(t: float) -> list[np.ndarray]:
        moved = {x.name: values[x.name] + t * values[v.name] for x, v in zip(xs, vs, strict=True)}
        return interpreter.run(first, values | moved, sizes)

    now, slopes = along(0), differences(along, doubt)
    second_now = interpreter.run(rest, values, sizes)
    for value in (*now, *second_now):
        doubt(bool(np.isfinite(value).all() and np.abs(value).max(initial=0) < 1e4))
    n = len(xs)
    f, jv, *b = now
    hv, gg, jvv, jg = (
        second_now[:n],
        second_now[n : 2 * n],
        second_now[2 * n],
        second_now[2 * n + 1 :],
    )
    c, v, w = values[ct.name], [values[t.name] for t in vs], [values[t.name] for t in ws]

    scale = 1 + sum(np.abs(value).max(initial=0) for value in (f, c, *b))
    for derivative, slope in zip((jv, jvv, *hv), slopes, strict=True):
        close(derivative, slope, scale, 1e-6)
    for left, right in (
        (([c], [jv]), (b, v)),
        ((w, hv), (gg, v)),
        (([c], [jvv]), (jg, v)),
    ):
        terms = sum(np.sum(np.abs(p * q)) for p, q in zip(*right, strict=True))
        assert abs(inner(*left) - inner(*right)) < 1e-9 * (scale + terms)
