"""Code that measures itself: how often each of its lines runs, and how long that takes."""

from __future__ import annotations

from copy import copy
from functools import cache
from time import perf_counter_ns
from typing import NamedTuple

from graphcore.ir import Node

from .nesting import INDENT
from .running_code import Running
from .source import Code, Line


class Spent(NamedTuple):
    """How often a line ran in one call, and how many nanoseconds that took."""

    line: Line
    calls: int
    nanoseconds: float


class Inside(NamedTuple):
    """How often a loop or branch ran, and the nanoseconds and looks at the clock within it."""

    node: Node
    calls: int
    nanoseconds: float
    looks: int


class Clock:
    """How often each of several lines and blocks ran, and how many nanoseconds that took."""

    def __init__(self, lines: int, blocks: int = 0) -> None:
        self.calls, self.spent, self.last = [0] * lines, [0] * lines, 0
        self.runs, self.within, self.began = [0] * blocks, [0] * blocks, 0

    def begin(self) -> None:
        """A line begins."""
        self.last = perf_counter_ns()

    def end(self, at: int) -> None:
        """A line ends."""
        self.spent[at] += perf_counter_ns() - self.last
        self.calls[at] += 1

    def enter(self) -> None:
        """A block begins, which holds lines and no blocks that are timed."""
        self.began = perf_counter_ns()

    def leave(self, at: int) -> None:
        """A block ends."""
        self.within[at] += perf_counter_ns() - self.began
        self.runs[at] += 1


@cache
def look_twice() -> tuple[float, float]:
    """The nanoseconds that two looks at the clock add to the line between them, and in all."""
    clock = Clock(BATCHES)
    begin, end, times = clock.begin, clock.end, []
    for at in range(BATCHES):
        start = perf_counter_ns()
        for _ in range(1000):
            begin()
            end(at)
        times.append(perf_counter_ns() - start)
    return min(clock.spent) / 1000, min(times) / 1000


BATCHES = 20


class Timed(Running):
    """Code as one function that looks at the clock before and after each line of a node.

    It is for one call at a time, after a `reset`.
    """

    def __init__(self, code: Code) -> None:
        self.timed: list[tuple[Line, int]] = []  # with the block that it is in
        self.blocks = code.blocks
        self.inside: dict[int, int] = {}  # the block of a line, by its identity
        self.clock = Clock(0)
        own = copy(code)
        own.rows = [*code.rows]
        for at, (start, stop, _) in reversed([*enumerate(code.blocks)]):  # later ones stay in place
            rows = code.rows[start:stop]
            self.inside |= {id(line): at for _, line in rows if line is not None}
            around = (f"{INDENT}{ENTER}()", None), (f"{INDENT}{LEAVE}({at})", None)
            own.rows[start:stop] = [around[0], *rows, around[1]]
        super().__init__(own, own.render(self.timed_text))

    def timed_text(self, text: str, line: Line | None) -> str:
        """The text of a line between two looks at the clock."""
        if line is None or text.endswith(":"):
            return text
        self.timed.append((line, self.inside.get(id(line), -1)))
        bare = text.lstrip()
        indent = text[: len(text) - len(bare)]
        return f"{indent}{BEGIN}(); {bare}; {END}({len(self.timed) - 1})"

    def reset(self) -> None:
        """From now on another call is measured."""
        self.clock = clock = Clock(len(self.timed), len(self.blocks))
        functions = clock.begin, clock.end, clock.enter, clock.leave
        self.scope.update(zip(NAMES, functions, strict=True))

    def collect(self) -> tuple[list[Spent], list[Inside]]:
        """What the lines took, in the order of the code, and the loops and branches themselves."""
        clock = self.clock
        lines = [line for line, _ in self.timed]
        looks, own = [0] * len(self.blocks), [*clock.within]
        for (_, block), calls, spent in zip(self.timed, clock.calls, clock.spent, strict=True):
            if block >= 0:
                looks[block] += calls
                own[block] -= spent
        return (
            [*map(Spent, lines, clock.calls, clock.spent)],
            [*map(Inside, [block.node for block in self.blocks], clock.runs, own, looks)],
        )


NAMES = BEGIN, END, ENTER, LEAVE = (
    *("profile_begin", "profile_end", "profile_enter", "profile_leave"),
)
"""Names in the code; no generated name has an underscore in its middle."""
