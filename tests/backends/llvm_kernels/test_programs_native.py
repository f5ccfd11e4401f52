"""Programs of others as machine code, beside NumPy calls."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.programs import FURTHER, NAMES, Program, compared
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels.program import NativeProgram
from tests.machine_code import build, kernels

from .native import needs_machine_code

pytestmark = needs_machine_code

TOLERANCE = {"eos": 1e-9, "vadv": 1e-9, "hierarchical_gp": 1e-10}
"""How far the targets may be apart where a program cancels; elsewhere 1e-12.

The last rounding of its inputs moves a gradient of hierarchical_gp by 2e-11.
"""
SOME = (
    *("contour_integral", "eos", "expm_chain", "gmm", "hmm", "isoneutral", "kmeans", "lstm"),
    *("saddle", "softmax", "spmv"),
)
"""Programs of all kinds that compile quickly; the others are slow tests."""
SLOWLY = [pytest.param(name, marks=pytest.mark.slow) for name in {*NAMES, *FURTHER} - {*SOME}]


@pytest.mark.parametrize("size", ["tiny", pytest.param("small", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*SOME, *sorted(SLOWLY, key=lambda one: one.values)])
def test_programs(name: str, size: str) -> None:
    program = Program(name)
    compiled = program.make("graphcore")
    native = build(compiled)
    graph = kernels(compiled)
    if llvm_kernels.single_kernel(graph) is not None:
        lines = NativeProgram(graph, compiled._boundary).lines()
        assert not any("unknown:0" in line for line, _ in lines)
    given = program.module.inputs(size)
    arguments = tuple(given[param.name] for param in compiled._boundary.params)
    expected = compiled(**given)
    first = dict(zip(expected, native(*arguments), strict=True))
    errors = compared(first, expected)
    assert max(errors.values()) <= TOLERANCE.get(name, 1e-12), errors
    again = native(*arguments)
    for x, y in zip(first.values(), again, strict=True):
        np.testing.assert_array_equal(x, y)
