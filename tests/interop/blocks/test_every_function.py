"""Every public function, by blocks along each dim: it is refused, or equal to the whole."""

from __future__ import annotations

import contextlib
from typing import Any

import dask
import numpy as np
import pytest
import xarray

import graphcore as gc
from graphcore.ir import structures
from tests.interop.test_labels import DATA, SAME
from tests.operations import CASES
from tests.operations.case import DEFAULT, Case
from tests.shares import shared

PARTS = 12
SIZES = {**DEFAULT, "batch": 3}


def gradients(ys: list[gc.Tensor], inputs: list[gc.Tensor]) -> list[gc.Tensor]:
    """Those of sums of squares, where there are some."""
    found = []
    for y in ys:
        for x in inputs:
            if y.dtype.kind == x.dtype.kind == "f":
                with contextlib.suppress(gc.GraphError):
                    found.append(gc.grad((y * y).sum(), x, disconnected="zero"))
    return found


def lazy_or_none(f: gc.Compiled[Any], *given: Any) -> Any:
    """Lazy results; None where a program is refused, with a cure."""
    try:
        return f(*given)
    except gc.GraphError as error:
        if "over_blocks: " not in str(error) or "cure: " not in str(error):
            raise
        return None


def blocks_or_refused(f: gc.Compiled[Any], given: list[Any], expected: list[Any]) -> bool:
    """Whether a program runs by blocks, which then give what is expected."""
    if (lazy := lazy_or_none(f, *given)) is None:
        return False
    with np.errstate(all="ignore"):
        (found,) = dask.compute(lazy, scheduler="sync")
    for y, other in zip(found, expected, strict=True):
        assert y.dtype == other.dtype
        np.testing.assert_allclose(y.values, other, rtol=1e-9, atol=1e-11)
    return True


def arguments(case: Case) -> tuple[list[gc.Tensor], list[xarray.DataArray]]:
    """The inputs of a case with unknown sizes, and values for them."""
    random = np.random.default_rng(0)
    inputs, given = [], []
    for number, x in enumerate(case.inputs):
        dims, values = x.dims.split(), x.draw(random, SIZES)
        sizes = {dim: SIZES[dim] if dim in case.fixed else None for dim in dims}
        inputs.append(gc.tensor(f"x{number}", sizes, dtype=str(values.dtype)))
        given.append(xarray.DataArray(values, dims=dims))
    return inputs, given


def check(case: Case) -> list[bool]:
    """Whether a case runs by blocks along each of its dims, and its gradients."""
    inputs, given = arguments(case)
    try:
        made = structures.leaves(case.ours(*inputs))
    except gc.GraphError:  # it needs known sizes
        return []
    ys = [y for _, y in made if isinstance(y, gc.Tensor)]
    found = []
    for outputs in filter(None, (ys, gradients(ys, inputs))):
        try:
            f = gc.compile(inputs, outputs, native=False)
            with np.errstate(all="ignore"):
                expected = f(*given)
        except gc.GraphError:
            continue
        for dim in dict.fromkeys(dim for x in given for dim in x.dims):
            parts = [x.chunk({dim: 2}) if dim in x.dims else x for x in given]
            several = any(len(x.chunksizes.get(dim, ())) > 1 for x in parts)
            if several and dim not in case.fixed:
                found.append(blocks_or_refused(f, parts, expected))
    return found


@pytest.mark.parametrize("part", shared(range(PARTS), 3))
def test_every_function(part: int) -> None:
    found: list[bool] = []
    for case in [*CASES.values()][part::PARTS]:
        found += check(case)
    assert found.count(True) > 100
    assert found.count(False) > 30


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [{"time": 4}, {"lat": 3}])
def test_labels(chunks: dict[str, int]) -> None:
    x = gc.tensor("x", {"time": None, "lat": None})
    count = 0
    for name, function in SAME.items():
        try:
            f = gc.compile([x], function(x), returns="xarray", native=False)
            expected = f(DATA)
        except gc.GraphError:
            continue
        if (lazy := lazy_or_none(f, DATA.chunk(chunks))) is None:
            continue
        found = lazy.compute(scheduler="sync")
        count += 1
        assert {*found.coords} == {*expected.coords}, name
        xarray.testing.assert_allclose(found, expected)
    assert count > 20
