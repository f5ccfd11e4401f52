"""Random programs mean what they mean to xarray: dims, their order, dtypes, values and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray
from hypothesis import given, note, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.random_xarray import LARGEST, Step, Value, draw_step, inputs, quiet

MOST_STEPS = 6
MOST_VALUES = 5000
TOLERANCE = {False: 1e-8, True: 2e-3}
"""For values that are rounded to 24 bits on the way, and for others."""

# Where graphcore is stricter than xarray, on purpose: the step and what the refusal says.
STRICTER = [
    ("pad", "there is no dim"),  # a tensor without dims is padded along any in xarray
    ("median", "complex numbers have no order"),
    ("astype", "would lose the imaginary part"),  # NumPy warns
]

# Where it is laxer: the step, and what xarray says.
LAXER = [
    ("stack", "cannot create a new dimension with the same name"),  # of a dim that it merges
    ("rolling", "window shape cannot be larger than input"),  # no window has values enough
    ("rolling", "loop of ufunc does not support"),  # deviations of bool
    ("stack", "Must pass non-zero number of levels/codes"),  # no dim, into one of size 1
    ("stack", "cannot reshape array of size 0"),
    ("diff", "numpy boolean subtract"),  # of bool whether neighbours differ, as numpy.diff
    ("rolling", "did not contain a loop"),  # of bool
    ("quantile", "numpy boolean subtract"),
    ("quantile", "size 0"),  # nan of nothing, as the median
    ("quantile", "from an empty axes"),
    ("quantile", "unexpected dimensions ['quantile']"),  # which is no new dim, of one share
]


def listed(step: Step, error: Exception, rules: list[tuple[str, str]]) -> bool:
    return any(name in step.text and says in str(error) for name, says in rules)


def theirs_of(step: Step) -> xarray.DataArray | Exception:
    """What xarray makes of a step, without coordinates."""
    try:
        with quiet():
            made = xarray.DataArray(step.theirs(*[x.theirs for x in step.operands]))
            made = made.drop_vars(list(made.coords)).rename(None)
    except Exception as error:
        return error
    if len(set(made.dims)) < made.ndim:
        return ValueError("two dims of one name")
    return made


def usable(step: Step, made: xarray.DataArray) -> bool:
    """Whether a value can be computed with, and rounding cannot have decided what it is."""
    exact = all(x.exact for x in step.operands)
    values = made.values
    if values.dtype.kind not in "biufc" or values.dtype == np.float16 or values.size > MOST_VALUES:
        return False
    if values.dtype.kind in "bi":
        return True
    finite = np.isfinite(values)
    if np.abs(values[finite]).max(initial=0) > LARGEST:
        return False
    return (
        exact or bool(finite.all()) or not all(np.isfinite(x.theirs).all() for x in step.operands)
    )


def keeps_exact(step: Step, made: xarray.DataArray) -> bool:
    """Whether a value is a small multiple of a small power of two, and was so all the way."""
    if made.dtype.kind in "bi":
        return all(x.exact for x in step.operands)
    values = made.values[np.isfinite(made.values)] * 256
    whole = bool((values == np.rint(values.real) + 1j * np.rint(values.imag)).all())
    small = np.abs(values).max(initial=0) < 2**16
    return step.exact and all(x.exact for x in step.operands) and whole and bool(small)


def is_rounded(made: xarray.DataArray, step: Step) -> bool:
    """Whether a value, or one that it is made of, is rounded to single precision."""
    return made.dtype in (np.float32, np.complex64) or any(x.rounded for x in step.operands)


def close(ours: Any, theirs: xarray.DataArray, exact: bool, rounded: bool) -> None:
    assert ours.dtype == theirs.dtype
    assert ours.dims == theirs.dims
    assert ours.shape == theirs.shape
    tolerance = 0.0 if exact or theirs.dtype.kind in "bi" else TOLERANCE[rounded]
    with quiet():
        scale = np.abs(theirs.values[np.isfinite(theirs.values)]).max(initial=1)
        np.testing.assert_allclose(ours.values, theirs.values, tolerance, tolerance * scale)


def run(step: Step, given: list[Value], y: gc.Tensor) -> xarray.DataArray:
    f = gc.compile([x.ours for x in given], y, returns="xarray")
    made = f(*[x.theirs for x in given])
    assert isinstance(made, xarray.DataArray)
    return made


def check_program(draw: Any) -> None:
    """Draw a program, and compare each of its steps."""
    given = inputs(draw)
    for i, x in enumerate(given):
        values = np.array2string(x.theirs.values.ravel(), threshold=20).replace("\n", "")
        note(f"v{i} = {x.ours!r}  {x.sizes} {values}")
    pool = list(given)
    for _ in range(draw(st.integers(1, MOST_STEPS))):
        step = draw_step(draw, pool)
        if step.jumps and not all(x.exact for x in step.operands):
            continue
        places = [next((i for i, y in enumerate(pool) if x is y), "cond") for x in step.operands]
        note(f"v{len(pool)} = {step.text} of {places}")
        made = theirs_of(step)
        if isinstance(made, xarray.DataArray) and not usable(step, made):
            continue
        try:
            ours = step.ours(*[x.ours for x in step.operands])
            result = run(step, given, ours)
        except gc.GraphError as error:
            if isinstance(made, Exception) or listed(step, error, STRICTER):
                continue
            if isinstance(error, gc.GraphIndexError) and made.size == 0:
                continue  # a position outside is refused, also where no value would be picked
            raise AssertionError(f"refused, but xarray has {made}") from error
        if isinstance(made, Exception):
            if listed(step, made, LAXER):
                continue
            raise AssertionError(f"xarray refuses: {made!r}, but ours is\n{result}")
        exact = keeps_exact(step, made)
        assert ours.dims == made.dims
        rounded = is_rounded(made, step)
        close(result, made, exact, rounded)
        pool.append(Value(ours, made, exact, rounded and not exact))


@given(st.data())
@settings(max_examples=80)
def test_programs_mean_what_they_mean_to_xarray(data: st.DataObject) -> None:
    check_program(data.draw)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=3000)
def test_more_programs_mean_what_they_mean_to_xarray(data: st.DataObject) -> None:
    check_program(data.draw)


@pytest.mark.parametrize("dim", [None, ..., "a", "b", "c", []])
def test_a_contraction_of_small_integers_keeps_their_dtype(dim: Any) -> None:
    x, y = (
        gc.tensor("x", {"a": 2, "b": 2}, dtype="int32"),
        gc.tensor("y", {"b": 2, "c": 3}, dtype="bool"),
    )
    z = gc.dot(x, y, dim=dim)
    given = np.full((2, 2), 2**30, np.int32), np.ones((2, 3), bool)
    theirs = xarray.dot(
        xarray.DataArray(given[0], dims=("a", "b")),
        xarray.DataArray(given[1], dims=("b", "c")),
        dim=dim,
    )
    result = gc.compile([x, y], z)(*given)
    assert result.dtype == z.dtype == theirs.dtype
    np.testing.assert_array_equal(result, theirs)


def test_a_contraction_over_an_empty_dim_is_zero() -> None:
    x, y = gc.tensor("x", {"a": None, "b": 2}), gc.tensor("y", {"b": 2, "c": None})
    f = gc.compile([x, y], gc.dot(x, y, dim=...))
    assert f(np.full((3, 2), np.inf), np.zeros((2, 0))) == 0
    assert f(np.full((3, 2), 1.0), np.ones((2, 2))) == 12


def test_blocks_of_integers_are_counted_only_if_they_part_the_dim() -> None:
    x = gc.tensor("x", {"a": None}, dtype="int64")
    f = gc.compile([x], x.coarsen(a=3).count())
    np.testing.assert_array_equal(f([1, 2, 3]), [3])
    with pytest.raises(gc.GraphValueError, match="for dim 'a'"):
        f([1, 2])
