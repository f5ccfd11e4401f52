"""Values are stored over values that are read for the last time, and over no others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import entrance, overwriting, storing, writer
from graphcore.backends.llvm_kernels.arena import Need, packed
from graphcore.ir.sizes import evaluate

from .native import Both, needs_machine_code

pytestmark = needs_machine_code
SIZES = (1, 3, 8, 13, 67)
Made = Callable[[gc.Tensor], list[gc.Tensor]]


def again(x: gc.Tensor) -> gc.Tensor:
    """A value that is stored, as two places of it are read for one."""
    y = gc.tanh(x)
    return y + y.roll(j=1)


OVER: dict[str, Made] = {
    "one": lambda y: [again(2 * y + 1)],
    "a result": lambda y: [2 * y + 1],
    "two at its place": lambda y: [again(gc.exp(y) - y * y)],
    "several": lambda y: [again(2 * y), again(3 - y), y.sum("j")],
    "a chain": lambda y: [again(again(again(2 * y) + 1) * 3) - 1],
    "integers": lambda y: [gc.floor(9 * y).astype("int64")],
    "in a loop": lambda y: [
        gc.scan(lambda c, _: (again(3 - again(c)) + 1, None), y, length=3, dim="step")[0]
    ],
}
"""Programs in which some value is stored over y, which a routine makes."""
NOT: dict[str, tuple[Made, str]] = {
    "neighbours": (lambda y: [again(y + y.roll(j=1))], "places"),
    "another row": (lambda y: [2 * y + y.roll(i=3)], "places"),
    "one for all": (lambda y: [y - y.isel(i=0)], "places"),
    "the transpose": (lambda y: [y + y.rename(i="j", j="i")], "places"),
    "read later": (lambda y: [again(again(2 * y) * y)], "last"),
    "wider": (lambda y: [again(y.astype("float64") + 1)], "sizes"),
    "turned": (lambda y: [(y * 3).transpose("j", "i")], "once"),
}
"""Programs in which none may be, and the condition that says so."""


def plant(fault: str, patch: pytest.MonkeyPatch) -> None:
    """Leave a condition out."""
    real, read = writer.overwriting, overwriting.readings

    def anywhere(*given: Any) -> Any:
        here, others = read(*given)
        return here | dict.fromkeys(others), set()

    def ever(planned: Any, known: Any) -> Any:
        return real(planned._replace(last=defaultdict(lambda: ANY)), known)

    match fault:
        case "places":
            patch.setattr(overwriting, "readings", anywhere)
        case "last":
            patch.setattr(writer, "overwriting", ever)
        case "sizes":
            patch.setattr(overwriting, "same_size", lambda a, b: a.type.shape == b.type.shape)
        case "once":
            patch.setattr(overwriting, "computed_once", lambda root: True)
            patch.setattr(overwriting, "readings", anywhere)


def both_of(made: Made, dtype: str = "float64") -> Both:
    x = gc.tensor("x", {"i": "n", "j": "n"}, dtype=dtype)
    return Both.of(gc.compile([x], made(gc.sort(x, "j"))))


def agree(both: Both, dtype: str = "float64", filled: bool = False) -> None:
    rng = np.random.default_rng(0)
    for n in SIZES if filled else (0, *SIZES):
        both.agree_when_called([rng.standard_normal((n, n)).astype(dtype)], 8)


def memory(both: Both, n: int) -> int:
    """The bytes of all rooms for calls of size n."""
    slots = [slot for slot in both.kernel.slots if isinstance(slot, entrance.Room)]
    known = dict.fromkeys(both.kernel.unknowns, n)
    return packed([Need(evaluate(slot.bytes, known), slot.times) for slot in slots])[1]


@pytest.fixture(autouse=True, params=[True, False], ids=["masks", "no masks"])
def anew(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of each test is its own, for CPUs whose masks are quick and for others."""
    monkeypatch.setattr(storing, "masks_are_quick", lambda: request.param)
    monkeypatch.setattr(llvm_kernels, "MADE", {})


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", OVER)
def test_read_for_the_last_time(name: str, dtype: str) -> None:
    agree(both_of(OVER[name], dtype), dtype)


@pytest.mark.parametrize("name", ["one", "a result", "integers"])
def test_less_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = memory(both_of(OVER[name]), 64)
    monkeypatch.setattr(llvm_kernels, "MADE", {})
    monkeypatch.setattr(writer, "overwriting", lambda planned, known: {})
    assert ours <= memory(both_of(OVER[name]), 64) - 64 * 64 * 8


@pytest.mark.parametrize("name", NOT)
def test_not_stored_over(name: str) -> None:
    dtype = "float32" if name == "wider" else "float64"
    agree(both_of(NOT[name][0], dtype), dtype, filled=True)


@pytest.mark.parametrize("name", NOT)
def test_each_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, fault = NOT[name]
    plant(fault, monkeypatch)
    dtype = "float32" if name == "wider" else "float64"
    with pytest.raises(AssertionError):
        agree(both_of(made, dtype), dtype, filled=True)


def test_the_last_root_that_reads_takes_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[Any, Any]] = []
    real = writer.overwriting

    def seen(planned: Any, known: Any) -> Any:
        found.append(real(planned, known))
        roots = [step.roots for step in planned.steps if isinstance(step, overwriting.Nest)]
        several = next(nest for nest in roots if len(nest) > 1)
        assert [*found[-1]] == several[-1:]
        return found[-1]

    monkeypatch.setattr(writer, "overwriting", seen)
    agree(both_of(lambda y: [2 * y, 3 - y, y * y]))
    assert found


def test_results_and_arguments_stay() -> None:
    x = gc.tensor("x", {"i": None})
    y = gc.exp(x)
    both = Both.of(gc.compile([x], [y, gc.sort(y, "i") + 1, x * 2]))
    both.agree_when_called([np.random.default_rng(0).standard_normal(37)], 8)
