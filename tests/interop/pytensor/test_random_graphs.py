"""Random small graphs of PyTensor, by the number of a test: values and slopes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytensor", minversion="3.0")

import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.tensor.elemwise import Elemwise

from .compared import same_slopes, same_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

KINDS = ["float64", "float64", "float64", "float32", "int64", "int32", "int8", "uint8", "bool"]
UNARY = [ps.exp, ps.sin, ps.tanh, ps.sqr, ps.sigmoid, ps.abs, ps.floor, ps.sign, ps.cast]
BINARY = [ps.add, ps.mul, ps.true_div, ps.int_div, ps.mod, ps.lt, ps.eq, ps.arctan2, ps.pow]

Random = np.random.Generator
Case = tuple[Callable[..., list[Any]], list[Any]]


def pick(r: Random, some: Any) -> Any:
    return some[r.integers(len(some))]


def array(r: Random, kind: str, shape: Any) -> Any:
    low = 0 if kind in ("uint8", "bool") else -3
    whole = r.integers(low, 2 if kind == "bool" else 6, shape)
    return (whole + r.normal(size=shape) if kind.startswith("float") else whole).astype(kind)


def shape_of(r: Random, least: int = 0) -> tuple[int, ...]:
    sizes = r.integers(0 if r.random() < 0.1 else 1, 5, r.integers(least, 4))
    return tuple(int(n) for n in sizes)


def one_op(r: Random, xs: list[Any]) -> Any:
    """An op on some of these, as far as PyTensor lets it be."""
    x, y, z = (pick(r, xs) for _ in range(3))
    match r.integers(7):
        case 0 | 1:
            op = pick(r, UNARY)
            return pt.cast(x, pick(r, KINDS)) if op is ps.cast else Elemwise(op)(pt.clip(x, 0, 3))
        case 2:
            return pt.switch(x, y, z)
        case 3:
            return pt.clip(x, y, z)
        case 4:
            return pt.logaddexp(x, y)
        case _:
            op = pick(r, BINARY)
            return op_of_positives(x, y) if op is ps.pow else Elemwise(op)(x, y)


def op_of_positives(x: Any, y: Any) -> Any:
    return pt.pow(abs(pt.cast(x, "float64")) + 1, pt.clip(y, 0, 2))


def elementwise(r: Random) -> Case:
    whole = shape_of(r)
    ones = [r.random(len(whole)) < 0.3 for _ in range(3)]
    drop = r.integers(0, len(whole) + 1, 3)
    shapes = [np.where(k, 1, whole)[n:].astype(int) for k, n in zip(ones, drop)]
    arrays = [array(r, pick(r, KINDS), tuple(shape)) for shape in shapes]
    chosen = r.integers(1 << 30)

    def build(*xs: Any) -> list[Any]:
        again, found = np.random.default_rng(chosen), list(xs)
        for _ in range(4):
            found.append(one_op(again, found))
        return found[-2:]

    return build, arrays


def reductions(r: Random) -> Case:
    x = array(r, pick(r, KINDS), shape_of(r, 1))
    axis = pick(r, [None, *range(-x.ndim, x.ndim)])
    number = x.astype("int8") if x.dtype == bool else x
    some = [pt.sum, pt.prod, pt.mean, pt.var, pt.any, pt.all, pt.cumprod, pt.logsumexp]
    some += [pt.max, pt.min, pt.argmax, pt.argmin, pt.sort] if number.size else []
    chosen = [pick(r, some) for _ in range(2)]
    floats = {pt.logsumexp, pt.mean, pt.var}

    def build(x: Any) -> list[Any]:
        ys = [f(pt.cast(x, "float64") if f in floats else x, axis=axis) for f in chosen]
        return [y for y in ys if y.dtype != "int8"]  # PyTensor's own type of running products

    return build, [number]


def index(r: Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index of each axis: slices, numbers, positions, masks."""
    key: list[Any] = []
    for n in shape:
        ends = [int(k) if r.random() < 0.7 else None for k in r.integers(-n - 1, n + 2, 2)]
        choices: list[Any] = [slice(*ends, pick(r, [None, 1, 2, -1, -2]))]
        if n:
            choices += [int(r.integers(-n, n)), r.integers(-n, n, 3), r.integers(-n, n, (2, 1))]
            choices += [np.sort(r.permutation(n)[:3]) if n >= 3 else slice(None)]
        key.append(pick(r, choices))
    return tuple(key)


def read(r: Random) -> Case:
    x = array(r, pick(r, KINDS), shape_of(r, 1))
    keys = [index(r, x.shape) for _ in range(2)]
    return lambda x: [x[key] for key in keys], [x]


def updated(r: Random) -> Case:
    x = array(r, pick(r, KINDS[:-1]), shape_of(r, 1))
    key = index(r, x.shape)
    region = x[key].shape
    drop = int(r.integers(0, len(region) + 1))
    y = array(r, x.dtype.name, region[drop:])
    once = np.zeros(x.shape)
    np.add.at(once, key, 1)
    doubled = once.max(initial=0) > 1  # which of two values is set last, PyTensor does not say
    return lambda x, y: [x[key].inc(y), *([] if doubled else [x[key].set(y)])], [x, y]


def loops(r: Random) -> Case:
    n, inner, back = int(r.integers(1, 6)), pick(r, [(), (2,)]), bool(r.random() < 0.3)
    taps = pick(r, [[-1], [-2, -1], [-3]])
    arrays = [r.normal(size=(n, *inner)), r.normal(size=(-min(taps), *inner)), r.normal(size=inner)]
    chosen = r.integers(1 << 30)

    def step(x: Any, *rest: Any) -> list[Any]:
        again, (*pasts, c) = np.random.default_rng(chosen), rest
        y = sum(again.uniform(0.2, 0.6) * p for p in pasts) + pick(again, [pt.sin, pt.tanh])(x) * c
        return [y, (y * c).sum()]

    def build(xs: Any, start: Any, c: Any) -> list[Any]:
        first = start[0] if taps == [-1] else start
        states = [{"initial": first, "taps": taps}, None]
        found = pytensor.scan(step, xs, states, c, go_backwards=back, return_updates=False)
        return [found[0][-1], found[1][::2], found[0].sum(0)]

    return build, arrays


FAMILIES = {f.__name__: f for f in (elementwise, reductions, read, updated, loops)}


@pytest.mark.parametrize("number", range(60, 70))
@pytest.mark.parametrize("family", FAMILIES)
def test_values(family: str, number: int) -> None:
    build, arrays = FAMILIES[family](np.random.default_rng([number, len(family)]))
    narrow = any(a.dtype not in (float, int) for a in arrays)
    static = bool(number % 2) or family == "elementwise"  # sizes of 1 must be known to broadcast
    with np.errstate(all="ignore"):
        same_values(build, arrays, static, rtol=3e-4 if narrow else 1e-9)


@pytest.mark.parametrize("number", range(20, 24))
@pytest.mark.parametrize("family", ["read", "updated", "loops"])
def test_slopes(family: str, number: int) -> None:
    build, arrays = FAMILIES[family](np.random.default_rng([number, len(family)]))
    same_slopes(build, [a.astype(float) for a in arrays], rtol=1e-7)
