"""Where a call spends its time: the generated function runs with a clock between its operations."""

from __future__ import annotations

import ast
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.measure import seconds
from graphcore.backends.numpy_backend.running_code import Running
from graphcore.backends.numpy_backend.scalars import is_spelled
from graphcore.backends.numpy_backend.source import Code
from graphcore.compile.compiled import Compiled

LEAST = 0.3
"""For how many seconds a function is called, at least three times; the fastest call counts."""

SHOWN = 0.05
"""What takes a smaller share of the time is not said."""

ENTRANCE = "the call itself"
"""Arguments are checked and results handed over."""

PYTHON = "plain Python"
"""Arithmetic on single numbers, and what prepares the next step of a loop."""

Simple = ast.Assign | ast.AugAssign | ast.Expr | ast.Pass


class Loop(NamedTuple):
    """How many steps of a loop a call takes, and how long one is, without loops inside of it."""

    steps: int
    seconds: float


class Where(NamedTuple):
    """What a call spends on each op and in each loop, the longest first."""

    seconds: float
    calls: int
    shares: dict[str, float]
    loops: list[Loop]

    def __str__(self) -> str:
        shares = [f"{share:.0%} {op}" for op, share in self.shares.items() if share > SHOWN]
        loops = [
            f"{loop.steps:,} steps of {seconds(loop.seconds)}"
            for loop in self.loops
            if loop.steps * loop.seconds > SHOWN * self.seconds
        ]
        said = "; ".join(", ".join(each) for each in (shares, loops) if each)
        return f"{said} ({self.calls:,} calls, {seconds(self.seconds)})"

    def as_json(self) -> dict[str, Any]:
        """All of it, and the line that says the most."""
        loops = [loop._asdict() for loop in self.loops]
        return {"said": str(self), **self._asdict(), "loops": loops}


class Group(NamedTuple):
    """Lines one after the other that call the same, in the loop that begins at a line."""

    calls: str
    lines: int
    loop: int


class Clocked:
    """A function with the seconds that each group of its lines took, and how often it ran."""

    def __init__(self, source: str, scope: Mapping[str, Any], ops: Mapping[int, str]) -> None:
        self.ops, self.groups = ops, [Group(ENTRANCE, 0, 0)]
        tree = ast.parse(source)
        (definition,) = tree.body
        assert isinstance(definition, ast.FunctionDef)
        *statements, result = definition.body
        definition.body = [
            *ast.parse("_spent[0] += _clock() - _edge[0]").body,
            *self.block(statements, 0),
            *ast.parse("_edge[0] = _clock()").body,
            result,
        ]
        self.edge, self.spent, self.times = [0.0], [0.0], [0]
        own = {"_clock": perf_counter, "_edge": self.edge, "_spent": self.spent}
        values = {**scope, **own, "_times": self.times}
        exec(compile(tree, "<clocked>", "exec"), values)
        self.run = values[definition.name]

    def call(self, compiled: Compiled, given: Mapping[str, Any]) -> list[float]:
        """The seconds of each group in one call, without those of the clocks."""
        least = price()
        self.spent[:] = self.times[:] = [0] * len(self.groups)
        function = compiled._program.function.run_as(self.running)
        bind = compiled._boundary.bind

        def run(*args: Any) -> list[Any]:
            return function(*bind(args))

        plain, compiled._values = compiled._values, run
        try:
            self.edge[0] = perf_counter()
            compiled(**given)
            self.spent[0] += perf_counter() - self.edge[0]
        finally:
            compiled._values = plain
        return [max(s - least * n, 0.0) for s, n in zip(self.spent, self.times)]

    def running(self, code: Code) -> Running:
        """The code of the function, which runs with the clocks."""
        found = Running(code)
        found.run = self.run
        return found

    def block(self, statements: Sequence[ast.stmt], loop: int) -> Iterable[ast.stmt]:
        """Statements with clocks between them, and in the blocks among them."""
        for simple, run in groupby(statements, lambda s: isinstance(s, Simple)):
            if simple:
                yield from self.straight(run, loop)
                continue
            for statement in run:
                within = statement.lineno if isinstance(statement, ast.For | ast.While) else loop
                for field in ("body", "orelse"):
                    if inner := getattr(statement, field, None):
                        setattr(statement, field, list(self.block(inner, within)))
                yield statement

    def straight(self, statements: Iterable[ast.stmt], loop: int) -> Iterable[ast.stmt]:
        """Simple statements; what they took is added up behind all of them."""
        yield from ast.parse("_0 = _clock()").body
        added = []
        for number, (name, group) in enumerate(groupby(statements, self.called), 1):
            lines, place = list(group), len(self.groups)
            yield from [*lines, *ast.parse(f"_{number} = _clock()").body]
            added.append(f"_spent[{place}] += _{number} - _{number - 1}; _times[{place}] += 1")
            self.groups.append(Group(name, len(lines), loop))
        yield from ast.parse("\n".join(added)).body

    def called(self, statement: ast.stmt) -> str:
        """The op that a statement computes, or the function it calls."""
        match getattr(statement, "value", None):
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return self.ops.get(statement.lineno, name)
        return self.ops.get(statement.lineno, PYTHON)


def price() -> float:
    """What the clock itself takes."""
    return statistics.median(-perf_counter() + perf_counter() for _ in range(1000))


def where(compiled: Compiled, given: Mapping[str, Any]) -> Where:
    """What a call with these arguments spends its time on."""
    code = compiled._program.function.code
    source = code.source()
    nodes = {number: line.node for number, line in source.lines.items()}
    ops = {number: node.op.said for number, node in nodes.items() if not is_spelled(node)}
    clocked = Clocked(source.text, code.scope, ops)
    stop = perf_counter() + LEAST
    taken = [clocked.call(compiled, given) for _ in range(3)]
    while perf_counter() < stop:
        taken.append(clocked.call(compiled, given))
    return summary(clocked, map(min, *taken))


def summary(clocked: Clocked, taken: Iterable[float]) -> Where:
    """What was found, by op and by loop."""
    spent, loops, steps = Counter[str](), Counter[int](), Counter[int]()
    calls = 0
    for group, part, times in zip(clocked.groups, taken, clocked.times):
        spent[group.calls] += part
        calls += 0 if group.calls == PYTHON else times * group.lines
        if group.loop:
            loops[group.loop] += part
            steps[group.loop] = max(steps[group.loop], times)
    total = spent.total()
    return Where(
        total,
        calls,
        {op: part / total for op, part in spent.most_common()},
        [Loop(n, part / n) for loop, part in loops.most_common() if (n := steps[loop])],
    )
