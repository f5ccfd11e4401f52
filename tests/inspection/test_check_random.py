"""`check` on random programs: it finds the nan that an argument was given, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tests.random_programs.running import built
from tests.random_programs.statements import drawn

EACH = 10
DEFAULT, SLOW = 10, 200


def is_finite(results: list[np.ndarray]) -> bool:
    return all(np.isfinite(y).all() for y in results if y.dtype.kind in "fc")


def check(seed: int) -> None:
    program = drawn(seed)
    try:
        f, _ = built(program)
        arguments = [np.array(x) for x in program.arguments(0)]
        healthy = is_finite(f(*arguments))
    except Exception:  # it is refused, as others are that the eager reference refuses as well
        return
    assert (f.check(*arguments) is None) == healthy
    if not healthy:
        return
    assert not any(fault.outputs for fault in f.check(*arguments, any=True))
    rng = np.random.default_rng(seed)
    for given, x in zip(program.inputs, arguments, strict=True):
        if x.dtype.kind == "f" and x.size:
            at = tuple(int(rng.integers(size)) for size in x.shape)
            before, x[at] = x[at], np.nan
            try:
                finite = is_finite(f(*arguments))
            except Exception:  # a matrix of nan may be refused
                finite = None
            if finite is not None:
                fault = f.check(*arguments)
                assert (fault is None) == finite
                if fault is not None:
                    assert (fault.op, [*fault.place.values()]) == (f"input {given.name}", [*at])
            x[at] = before


@pytest.mark.parametrize("first", range(0, DEFAULT, EACH))
def test_a_nan_in_an_argument_is_found(first: int) -> None:
    for seed in range(first, first + EACH):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(DEFAULT, DEFAULT + SLOW, EACH))
def test_a_nan_in_an_argument_of_more_programs_is_found(first: int) -> None:
    for seed in range(first, first + EACH):
        check(seed)
