"""What programs call beside graphcore: its derivatives, taken of Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import graphcore as gc

Function = Callable[..., gc.Tensor]


def grad(f: Function, *xs: gc.Tensor) -> list[gc.Tensor]:
    return gc.grad(f(*xs), list(xs), disconnected="zero")


def per(f: Function, dims: Sequence[str], *xs: gc.Tensor) -> list[gc.Tensor]:
    found = gc.grad(f(*xs), list(xs), per=dims, disconnected="zero")
    return [
        g.transpose(*[d for d in dims if d not in x.dims], *x.dims)
        for g, x in zip(found, xs, strict=True)
    ]


def pullback(f: Function, xs: Sequence[gc.Tensor], ct: gc.Tensor) -> list[gc.Tensor]:
    return gc.pullback(f(*xs), list(xs), ct, disconnected="zero")


def pushforward(f: Function, xs: Sequence[gc.Tensor], ts: Sequence[gc.Tensor]) -> gc.Tensor:
    return gc.pushforward(f(*xs), list(xs), list(ts), disconnected="zero")


def jacobian(f: Function, x: gc.Tensor) -> gc.Tensor:
    return gc.jacobian(f(x), x)


def hessian(f: Function, x: gc.Tensor) -> gc.Tensor:
    return gc.hessian(f(x), x)


def hvp(f: Function, x: gc.Tensor, v: gc.Tensor) -> gc.Tensor:
    return gc.hvp(f(x), x, v)


def vectorize(f: Function, olds: Sequence[gc.Tensor], wides: Sequence[gc.Tensor]) -> gc.Tensor:
    pairs = dict(zip(olds, wides, strict=True))
    old = f(*olds)
    y = gc.vectorize(old, pairs)
    sizes = {d: s for x, w in pairs.items() for d, s in w.sizes.items() if d not in x.dims}
    y = y.expand_dims({d: s for d, s in sizes.items() if d not in y.dims})
    return y.transpose(*sizes, *old.dims)
