"""Whole programs give the same bits with AVX2 and AVX-512, made quickly or with care."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from benchmarks.programs import NAMES, Program
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import elementary, machine
from tests.machine_code import build

pytestmark = pytest.mark.skipif(
    machine.unavailable() is not None or len(machine.levels()) < 2, reason="needs AVX-512"
)

QUICK = {"heat1d", "vadv", "gmm"}  # they differed when LLVM chose what is rounded once


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in sorted(NAMES)],
)
def test_programs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that come from BLAS or LAPACK are those of one library, and equal too."""
    program = Program(name)
    compiled = program.make("graphcore")
    given = program.module.inputs("tiny")
    arguments = tuple(given[param.name] for param in compiled._boundary.params)
    found = []
    for level, effort in product(machine.levels(), (machine.QUICKLY, machine.WITH_CARE)):

        def made(*args: Any, how: Any = (level, effort), **_: Any) -> machine.Code:
            return elementary.compiled(*args, level=how[0], effort=how[1])

        monkeypatch.setattr(llvm_kernels, "compiled", made)
        monkeypatch.setattr(llvm_kernels, "MADE", {})
        monkeypatch.setattr(llvm_kernels, "RECENT", machine.Recent())
        found.append(build(compiled)(*arguments))
    for one, other in pairwise(found):
        for x, y in zip(one, other, strict=True):
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
