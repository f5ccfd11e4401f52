"""The table of public functions: what each means on DataArrays, one module for each family."""

from __future__ import annotations

from tests.operations import (
    arithmetic,
    calculus,
    contraction,
    control,
    convolution,
    counting,
    creation,
    derivatives,
    diagonals,
    fft,
    indexing,
    linalg,
    moves,
    nn,
    padding,
    quantiles,
    reductions,
    searching,
    segments,
    shape,
    signal,
    sorting,
    special,
    statistics,
    updates,
    windows,
)
from tests.operations.case import Case

FAMILIES = (
    arithmetic,
    calculus,
    contraction,
    control,
    counting,
    convolution,
    creation,
    derivatives,
    fft,
    diagonals,
    indexing,
    linalg,
    moves,
    nn,
    padding,
    quantiles,
    reductions,
    segments,
    searching,
    shape,
    signal,
    sorting,
    special,
    statistics,
    windows,
    updates,
)
CASES: dict[str, Case] = {}
for family in FAMILIES:
    twice = CASES.keys() & family.CASES.keys()
    assert not twice, twice
    CASES |= family.CASES
