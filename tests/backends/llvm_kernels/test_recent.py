"""Equal IR is compiled once in a process, also after the program that had it is gone."""

from __future__ import annotations

import gc as collector
import weakref

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import machine

pytestmark = pytest.mark.skipif(
    machine.unavailable() is not None, reason=str(machine.unavailable())
)


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The IR of all kernels that are compiled from now on; none has been before."""
    found: list[str] = []
    made = llvm_kernels.compiled

    def compiled(text: str, *names: str, effort: int) -> machine.Code:
        found.append(text)
        return made(text, *names, effort=effort)

    monkeypatch.setattr(llvm_kernels, "compiled", compiled)
    monkeypatch.setattr(llvm_kernels, "RECENT", machine.Recent())
    return found


def program(*numbers: float) -> gc.Compiled:
    x = gc.tensor("x", {"row": len(numbers)})
    return gc.compile([x], gc.cumsum(x * gc.constant(np.array(numbers), "row"), "row"), native=True)


@pytest.mark.usefixtures("plain_machine_code")
def test_programs_that_differ_in_constants_share_code(objects: list[str]) -> None:
    first, second = program(1.0, 2.0, 3.0), program(5.0, 7.0, 9.0)
    x = np.array([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(first(x), [1, 21, 321])
    np.testing.assert_array_equal(second(x), [5, 75, 975])
    assert len(objects) == 1
    program(1.0, 2.0)(x[:2])
    assert len(objects) == 2


@pytest.mark.usefixtures("plain_machine_code")
def test_code_stays_when_its_program_is_dropped(objects: list[str]) -> None:
    one = program(4.0, 6.0, 8.0)
    one(np.ones(3))
    del one
    collector.collect()
    np.testing.assert_array_equal(program(4.0, 6.0, 8.0)(np.ones(3)), [4, 10, 18])
    assert len(objects) == 1


def test_the_oldest_code_goes_first() -> None:
    recent = machine.Recent(most=2 * machine.MODULE + 10)
    kept = [weakref.ref(recent.of(letter * 4, _never)) for letter in "ab"]
    assert recent.of("a" * 4, _never) is kept[0]()
    recent.of("c" * 4, _never)
    assert [each() is None for each in kept] == [False, True]
    recent.of("d" * (machine.MODULE + 11), _never)  # too long to be kept
    assert recent.bytes == 2 * (machine.MODULE + 4)
    assert kept[0]() is not None


def _never(effort: int) -> machine.Code:
    raise AssertionError
