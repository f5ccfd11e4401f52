"""Values of both programs, steps, and what random steps are made of."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray
from hypothesis import strategies as st

import graphcore as gc

Draw = Callable[[st.SearchStrategy[Any]], Any]
DIMS = "abc"
NUMBERS = (2, -1, 0, 1.5, -0.0, True, np.float32(0.5), np.int64(3), np.float64(2.25), np.int32(-2))
LARGEST = 1e4
"""Larger values are not computed with: no tolerance would do for what follows."""


class Value(NamedTuple):
    """One value of both programs."""

    ours: gc.Tensor
    theirs: xarray.DataArray
    exact: bool
    rounded: bool = False

    @property
    def dims(self) -> tuple[str, ...]:
        return self.theirs.dims  # type: ignore[return-value]

    @property
    def sizes(self) -> dict[str, int]:
        return dict(self.theirs.sizes)  # type: ignore[arg-type]

    @property
    def kind(self) -> str:
        return self.theirs.dtype.kind


class Step(NamedTuple):
    """What to do with some values."""

    text: str
    operands: tuple[Value, ...]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    exact: bool = True  # of exact values the result is exact
    jumps: bool = False  # asked of exact values only


def both(text: str, function: Callable[..., Any], *operands: Value, **options: Any) -> Step:
    return Step(text, operands, function, function, **options)


def method(
    name: str, x: Value, *args: Any, exact: bool = True, jumps: bool = False, **options: Any
) -> Step:
    words = [*map(repr, args), *(f"{key}={value!r}" for key, value in options.items())]
    function = lambda x: getattr(x, name)(*args, **options)
    return both(f"{name}({', '.join(words)})", function, x, exact=exact, jumps=jumps)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """NumPy's and xarray's warnings are not what is compared."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def pick(draw: Draw, *choices: Any) -> Any:
    return draw(st.sampled_from(choices))


def one_dim(draw: Draw, x: Value) -> str:
    """A dim of `x`; rarely one it lacks."""
    if not x.dims or draw(st.integers(0, 19)) == 0:
        return str(pick(draw, "q", *DIMS))
    return str(pick(draw, *x.dims))


def some_dims(draw: Draw, x: Value, least: int = 0) -> list[str]:
    if not x.dims:
        return ["q"] if draw(st.integers(0, 9)) == 0 else []
    return list(draw(st.lists(st.sampled_from(x.dims), min_size=least, unique=True)))


def any_dims(draw: Draw, x: Value) -> Any:
    """What reductions take for `dim`."""
    match pick(draw, "all", "one", "several"):
        case "all":
            return None
        case "one":
            return one_dim(draw, x)
    return some_dims(draw, x) or None  # over no dim at all xarray keeps bool and small integers


def bounded(draw: Draw, x: Value, dim: str) -> int:
    """An amount of places about the size of a dim."""
    return int(draw(st.integers(-x.sizes.get(dim, 1) - 1, x.sizes.get(dim, 1) + 1)))


def arrays(draw: Draw, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Numbers that floats hold exactly, also after a few operations."""
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if kind == "i":
        return random.integers(-3, 4, shape).astype(dtype)
    values = random.integers(-8, 9, shape) / 4
    if kind == "c":
        return np.asarray(values + 0.25j * random.integers(-8, 9, shape), dtype)
    if draw(st.integers(0, 2)) == 0:
        special = random.choice([np.nan, np.inf, -np.inf, -0.0, 1.0], shape)
        values = np.where(random.random(shape) < 0.3, special, values)
    return np.asarray(values, dtype)


def inputs(draw: Draw) -> list[Value]:
    """Up to three inputs; sizes are declared, left open, or have names of their own."""
    common = {dim: draw(st.sampled_from([3, 2, 4, 1, 5, 0])) for dim in DIMS}
    made = []
    for number in range(draw(st.integers(1, 3))):
        dims = draw(st.permutations(DIMS))[: draw(st.integers(0 if number else 1, 3))]
        dtype = pick(draw, *["float64"] * 3, "float32", "float32", "int64", "int32", "bool",
                     "complex128")  # fmt: skip
        sizes, declared = {}, {}
        for dim in dims:
            sizes[dim] = common[dim]
            if draw(st.integers(0, 24)) == 0:
                sizes[dim] = draw(st.integers(0, 4))
            usual = sizes[dim] == common[dim]
            declared[dim] = pick(draw, sizes[dim], f"n{number}_{dim}", *[None] * usual)
        values = arrays(draw, tuple(sizes.values()), dtype)
        ours = gc.tensor(f"x{number}", declared, dtype=dtype)
        made.append(Value(ours, xarray.DataArray(values, dims=tuple(dims)), exact=True))
    return made
