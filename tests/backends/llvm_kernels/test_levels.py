"""Whole programs give the same bits with AVX2 and with AVX-512."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.programs import NAMES, Program
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import functions, machine

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
    graph, boundary = compiled.stages["scheduled"], compiled._boundary
    if ops := llvm_kernels.refused(graph):
        pytest.skip(f"no machine code for {', '.join(ops)}")
    given = program.module.inputs("tiny")
    arguments = tuple(given[param.name] for param in boundary.params)
    found = []
    for level in machine.levels():
        monkeypatch.setattr(llvm_kernels, "compiled", partial(functions.compiled, level=level))
        found.append(llvm_kernels.build(graph, boundary.unknowns, boundary.bind)(*arguments))
    for x, y in zip(*found, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
