"""Signals: loops look for them now and then, so that Ctrl-C ends them.

The loop of a long nest looks after each block of its steps, which are a loop of their own. A loop
around such loops does not look itself: the inner ones count their work, also where they are short,
and look once it is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .entrance import STOPPED
from .loop_text import RARELY, USUALLY

WORK = 2**16
"""About how many instructions a loop runs between two looks."""
CALL = 64
"""The work of calling a function, in instructions."""


class Signals:
    """The work of the loops being written, and which of them look for signals.

    `routine` finds the address of `poll`, which looks. Loops of the program always look, after
    enough of their steps; loops of nests only if `in_nests`, in code for long nests.
    """

    def __init__(self) -> None:
        self.routine: Callable[[], str] | None = None
        self.in_nests = False
        self.work = 0
        self.loops = 0
        self.used = False
        self.around: list[bool] = []

    @contextmanager
    def step(self, looks: bool) -> Iterator[Step]:
        """A context in which one step of a loop is written; `looks` if its body looks itself."""
        step, before, self.work = Step(self, looks), self.work, 0
        self.around.append(looks)
        yield step
        self.around.pop()
        step.work, self.work = self.work, before

    def look(self, k: str) -> list[str]:
        """Lines that look for signals, and leave if one of them raises."""
        assert self.routine is not None
        return self.outside(k, f"{self.routine()}(ptr %record)")

    def outside(self, k: str, call: str) -> list[str]:
        """Lines that call a function of the entrance, and leave if Python has raised in it."""
        self.used = True
        return [
            f"  %status{k} = call i64 {call}",
            f"  %sound{k} = icmp eq i64 %status{k}, 0",
            f"  br i1 %sound{k}, label %on{k}, label %stop, {USUALLY}",
            f"on{k}:",
        ]

    def spend(self, k: str, tank: str, work: str) -> list[str]:
        """Lines that take work from a tank, which counts down to the next look."""
        return [
            f"  %fuel{k} = load i64, ptr {tank}",
            f"  %left{k} = sub i64 %fuel{k}, {work}",
            f"  store i64 %left{k}, ptr {tank}",
            f"  %spent{k} = icmp slt i64 %left{k}, 0",
            f"  br i1 %spent{k}, label %look{k}, label %go{k}, {RARELY}",
            f"look{k}:",
            *self.look(k),
            f"  br label %go{k}",
            f"go{k}:",
        ]

    @property
    def end(self) -> list[str]:
        """The end of a function that a signal has stopped."""
        return ["stop:", f"  ret i64 {STOPPED}"] if self.used else []

    @property
    def inside(self) -> bool:
        """Whether the innermost loop around relies on the loops in it to look."""
        return bool(self.around) and not self.around[-1]


class Step:
    """One step of a loop: the work in it, once it has been written."""

    def __init__(self, signals: Signals, looks: bool) -> None:
        self.signals, self.looks = signals, looks
        self.before, self.work = signals.loops, 0

    def block(self, lines: int, steps: int | None) -> int | None:
        """How many steps there are between two looks; None if the loop does not look by itself.

        `steps` is how many it has at most, if that is known.
        """
        signals = self.signals
        self.work += lines
        whole = WORK if steps is None else min(steps * self.work, WORK)
        signals.work += whole
        if not signals.in_nests or signals.loops != self.before or whole < WORK:
            return None
        signals.loops += 1
        return None if self.looks else max(1, WORK // max(self.work, 1))
