"""Loops and branches, and functions with a say in their derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, V, X

W = Input("col")


def stepped(reverse: bool = False, dim: str = "row") -> Any:
    """A linear recurrence with its squares, step by step."""

    def theirs(x: Any, w: Any) -> Any:
        carry, steps = x.sum(dim) * 0 * w, []
        for t in range(x.sizes[dim])[:: -1 if reverse else 1]:
            carry = np.sin(carry * w) + x.isel({dim: t})
            steps.append(carry * carry)
        if not steps:
            return xarray.zeros_like(x).transpose(dim, ...) * w
        return xarray.concat(steps[:: -1 if reverse else 1], dim)

    return theirs


def recurrence(x: gc.Tensor, w: gc.Tensor, **options: Any) -> Any:
    def body(carry: gc.Tensor, x: gc.Tensor) -> Any:
        new = gc.sin(carry * w) + x
        return new, new * new

    return gc.scan(body, 0.0, x, "row", **options)


def powers(x: Any) -> Any:
    """sin(x)^n for as many n as keep it above 0.1 in size, each place on its own."""

    def one(value: float) -> float:
        total = power = 1.0
        while abs(power) > 0.1:
            power *= 0.6 * np.sin(value)
            total += power
        return total

    return xarray.apply_ufunc(np.vectorize(one, otypes=[x.dtype]), x)


def powers_by_loop(x: gc.Tensor) -> gc.Tensor:
    state = gc.while_loop(
        lambda state: abs(state[0]) > 0.1,
        lambda state: (0.6 * gc.sin(x) * state[0], state[1] + 0.6 * gc.sin(x) * state[0]),
        (gc.ones_like(x), gc.ones_like(x)),
    )
    return state[1]


def branches(x: Any) -> Any:
    return np.sin(x) if float(x.sum()) > 0 else x * x


def inverse_cube(x: gc.Tensor) -> gc.Tensor:
    """The cube root by Newton's method, differentiated by the implicit function theorem."""
    return gc.custom_pullback(
        lambda x: gc.fori_loop(0, 60, lambda i, r: r - (r**3 - x) / (3 * r * r), gc.sign(x)),
        lambda operands, root, ct: (ct / (3 * root * root),),
    )(x)


def last(x: Any, w: Any) -> Any:
    carry = x.sum("row") * 0 * w
    for t in range(x.sizes["row"]):
        carry = np.sin(carry * w) + x.isel(row=t)
    return carry


def sines(x: Any) -> Any:
    y = x.sum("col") * 0 + x.dtype.type(1)
    for _ in range(x.sizes["col"]):
        y = np.sin(y) * x.sum("col")
    return y


CASES: dict[str, Case] = {
    "scan": Case(lambda x, w: recurrence(x, w)[1], stepped(), (X, W)),
    "scan reverse": Case(
        lambda x, w: recurrence(x, w, reverse=True)[1], stepped(reverse=True), (X, W)
    ),
    "scan last": Case(
        lambda x, w: recurrence(x, w)[0],
        last,
        (X, W),
    ),
    "scan checkpoint": Case(lambda x, w: recurrence(x, w, checkpoint=2)[1], stepped(), (X, W)),
    "scan log": Case(
        lambda x, w: recurrence(x, w, checkpoint="log", reverse=True)[1],
        stepped(reverse=True),
        (X, W),
    ),
    "map": Case(
        lambda x, w: gc.map(lambda row: gc.cumsum(row * w, "col"), x, "row"),
        lambda x, w: (x * w).cumsum("col"),
        (X, W),
    ),
    "fori_loop": Case(
        lambda x: gc.fori_loop(1, 4, lambda i, y: gc.sin(y) * i.astype(y.dtype), x),
        lambda x: np.sin(np.sin(np.sin(x) * 1) * 2) * 3,
    ),
    "fori_loop counted": Case(
        lambda x: gc.fori_loop(0, x.sizes["col"], lambda i, y: gc.sin(y) * x.sum("col"), 1.0),
        lambda x: sines(x),
        (X,),
    ),
    "while_loop": Case(powers_by_loop, powers),
    "cond": Case(lambda x: gc.cond(x.sum() > 0, gc.sin, lambda x: x * x, x), branches, batch=False),
    "cond by place": Case(
        lambda x, y: gc.cond(x > 0, lambda: gc.log(x), lambda: y * x),
        lambda x, y: xarray.where(x > 0, np.log(np.abs(x)), y * x).transpose("row", "col"),
        (X, V),
    ),
    "switch": Case(
        lambda x: gc.switch(
            gc.arange(x.sizes["row"], dim="row").sum() * 0 + gc.ones({"r": 1}, "int64").sum(),
            [gc.cos, gc.sin, gc.exp],
            x,
        ),
        np.sin,
    ),
    "switch by place": Case(
        lambda x, i: gc.switch(i, [gc.sin, gc.cos, lambda x: x * x], x),
        lambda x, i: xarray.where(
            i == 0, np.sin(x), xarray.where(i == 1, np.cos(x), x * x)
        ).transpose("batch", "row", "col"),
        (X, Input("batch", 0, 3, "int64")),
    ),
    "checkpoint": Case(
        lambda x, w: gc.checkpoint(lambda x: gc.exp(gc.sin(x)) * w)(x),
        lambda x, w: np.exp(np.sin(x)) * w,
        (X, W),
    ),
    "custom_pullback": Case(inverse_cube, np.cbrt, (Input("row col", 0.5, 2.0),)),
}
