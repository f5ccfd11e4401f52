"""Whole programs give the same bits with AVX2 and with AVX-512."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.programs import NAMES, Program
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import functions, machine
from tests.machine_code import build

pytestmark = pytest.mark.skipif(
    machine.refusal() is not None or len(machine.levels()) < 2, reason="needs AVX-512"
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
    for level in machine.levels():
        monkeypatch.setattr(llvm_kernels, "compiled", partial(functions.compiled, level=level))
        monkeypatch.setattr(llvm_kernels, "MADE", {})
        found.append(build(compiled)(*arguments))
    for x, y in zip(*found, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
