"""Each rule off and on: the same bits, or as far apart as the rule says, and as NumPy's calls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import entrance
from graphcore.backends.llvm_kernels.arena import Need, packed
from graphcore.ir.sizes import evaluate
from tests.machine_code import kernels

from .native import Both, needs_machine_code
from .rules import RULES, Patches, Program, Rule, patched

pytestmark = needs_machine_code


def made(program: Program, dtype: str, patches: Patches) -> tuple[Both, list[str]]:
    """A program in both targets, and the IR of it."""
    with patched(patches):
        compiled = program.compiled(dtype)
        whole = llvm_kernels.single_kernel(kernels(compiled))
        assert whole is not None
        both = Both.of(compiled, whole.attrs["body"])
        return both, [*llvm_kernels.RECENT._made]


def cases(others: bool) -> Iterator[object]:
    for name, rule in RULES.items():
        programs = rule.others if others else rule.programs
        for which, program in programs.items():
            for dtype in program.dtypes:
                marks = () if others or dtype == program.dtypes[0] else pytest.mark.slow
                yield pytest.param(rule, program, dtype, id=f"{name}-{which}-{dtype}", marks=marks)


@pytest.mark.parametrize(("rule", "program", "dtype"), [*cases(others=False)])
def test_results_are_the_same_without_it(rule: Rule, program: Program, dtype: str) -> None:
    usual, text = made(program, dtype, rule.on)
    without, other = made(program, dtype, [*rule.on, *rule.off])
    assert text != other, "the rule does not change this program"
    for sizes in program.sizes:
        given = program.arguments(sizes, dtype)
        found = usual.agree_when_called(given, 1e4)
        arrays, known = without.bind(given)
        for x, y in zip(found, without.native(arrays, known), strict=True):
            if not rule.units or x.dtype.kind not in "fc":
                np.testing.assert_array_equal(x, y)
                continue
            scale = rule.units * np.finfo(x.dtype).eps
            most = np.max(np.abs(y[np.isfinite(y)]), initial=0.1)
            np.testing.assert_allclose(x, y, scale, scale * most)


@pytest.mark.parametrize(("rule", "program", "dtype"), [*cases(others=True)])
def test_it_leaves_others_alone(rule: Rule, program: Program, dtype: str) -> None:
    usual, text = made(program, dtype, rule.on)
    _, other = made(program, dtype, [*rule.on, *rule.off])
    assert text == other
    for sizes in program.sizes:
        usual.agree_when_called(program.arguments(sizes, dtype), 1e4)


LESS = {
    "results written over their operands": ["one", "a result", "integers"],
    "values are computed again": ["masked", "shifted"],
    "some rows at a time go through a chain": ["attention"],
}
"""The rules, and programs, that take less memory, a large array of it at least."""


def bytes_of_buffers(both: Both, n: int) -> int:
    """The memory of a call in which all unknown sizes are n."""
    slots = [slot for slot in both.kernel.slots if isinstance(slot, entrance.Scratch)]
    known = dict.fromkeys(both.kernel.unknowns, n)
    return packed([Need(evaluate(slot.bytes, known), slot.times) for slot in slots])[1]


@pytest.mark.parametrize(
    ("name", "which"), [(name, which) for name, several in LESS.items() for which in several]
)
def test_memory_is_less(name: str, which: str) -> None:
    rule, n = RULES[name], 1000
    program = rule.programs[which]
    usual, _ = made(program, "float64", rule.on)
    without, _ = made(program, "float64", [*rule.on, *rule.off])
    assert bytes_of_buffers(usual, n) <= bytes_of_buffers(without, n) - 7 * n * n


def test_every_pass_of_machine_code_is_a_rule() -> None:
    assert {one.name for one in llvm_kernels.OWN} - {"kernels"} <= RULES.keys()
    assert all(rule.programs for rule in RULES.values())
