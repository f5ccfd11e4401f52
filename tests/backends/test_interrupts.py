"""Signal handlers that raise while a program is compiled or runs: their errors pass as they are."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import program as native
from graphcore.ir.interrupts import is_interrupt
from graphcore.ops import elementwise
from graphcore.rewrites.engine import on
from tests.backends.llvm_kernels.native import needs_machine_code

X = gc.tensor("x", {"a": 3})
ERRORS = ValueError, TypeError, MemoryError, gc.GraphValueError


def raises(error: Exception, *_: object) -> None:
    raise error


class Handler:
    """A handler that is an object, or a method of one."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, number: int, frame: object) -> None:
        raise self.error

    def other(self, *given: object) -> None:
        self(1, None)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


def handled(error: Exception) -> Exception:
    """An error that the handler raises."""
    signal.signal(signal.SIGUSR1, partial(raises, error))
    return error


@on(elementwise.multiply)
def rule(_: Any) -> Any:
    return signalled()


def signalled(*_: Any, **__: Any) -> Any:
    """A signal comes while this runs."""
    signal.raise_signal(signal.SIGUSR1)


@pytest.mark.parametrize(
    "form", [Handler, lambda e: Handler(e).other, lambda e: partial(raises, e)]
)
def test_handlers_of_every_form(form: Any) -> None:
    signal.signal(signal.SIGUSR1, form(ValueError("late")))
    with pytest.raises(ValueError, match="late") as found:
        signalled()
    assert is_interrupt(found.value)
    with pytest.raises(ValueError, match="late") as found:
        form(ValueError("late"))(1, None)
    assert not is_interrupt(found.value)
    assert is_interrupt(KeyboardInterrupt())


@needs_machine_code
@pytest.mark.parametrize("kind", ERRORS)
def test_while_machine_code_is_made(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    error = handled(kind("late"))
    f = gc.compile([X], 2 * X, native=True)
    with monkeypatch.context() as patch:
        patch.setattr(native, "build", signalled)
        with pytest.raises(kind) as found:
            f(np.ones(3))
    assert found.value is error
    np.testing.assert_array_equal(f(np.ones(3)), np.full(3, 2.0))


@pytest.mark.parametrize("kind", ERRORS)
def test_while_a_rule_runs_and_within_a_callback(kind: type[Exception]) -> None:
    """No note says that the rule is wrong, and no words that the function has raised."""
    error = handled(kind("late"))
    with pytest.raises(kind) as found:
        gc.compile([X], 2 * X, native=False, rules=[rule])
    assert found.value is error
    assert not hasattr(error, "__notes__")
    error = handled(kind("late"))
    f = gc.compile([X], gc.callback(signalled, X)(X), native=False)
    with pytest.raises(kind) as found:
        f(np.ones(3))
    assert found.value is error
