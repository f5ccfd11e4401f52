"""A failing program made smaller, as long as it fails in the same way; and shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import pytest

from .drawing import NAME, Block, Program, Skip, Statement
from .running import Outcome, kind_of, outcome, standalone
from .values import Refused, Unclear

Check = Callable[[Program], object]


def require(run: Callable[[Program], Outcome], programs: Iterable[Program]) -> None:
    """Fail with the smallest program found for which `run` finds something bad."""
    for program in programs:
        if run(program).bad:
            pytest.fail(standalone(*smallest(program, run)), pytrace=False)


def held(check: Check) -> Callable[[Program], Outcome]:
    """What comes of a test of programs, which may say that one tells nothing."""

    def run(program: Program) -> Outcome:
        try:
            check(program)
        except (Skip, Unclear, Refused):  # whether the reference refuses rightly is another test's
            return Outcome("unclear")
        except Exception as error:
            return Outcome("fails", f"{type(error).__name__}: {error}")
        return Outcome("same")

    return run


def smallest(
    program: Program, run: Callable[[Program], Outcome] = outcome, tries: int = 300
) -> tuple[Program, Outcome]:
    """The smallest program found that fails as this one does, and how it fails."""
    result = run(program)
    found = True
    while found and tries > 0:
        found = False
        for smaller in candidates(program):
            tries -= 1
            try:
                new = run(smaller)
            except Exception:
                continue
            if new.kind == result.kind and alike(new.reason, result.reason):
                program, result, found = smaller, new, True
                break
            if tries <= 0:
                break
    return program, result


def alike(one: str, other: str) -> bool:
    return bool(re.match(r"call \d, .*: v", one)) or kind_of(one) == kind_of(other)


def size(program: Program) -> int:
    return len(program.text())


def candidates(program: Program) -> Iterator[Program]:
    if len(program.outputs) > 1:
        for name in program.outputs:
            yield program.pruned([name])
        for name in program.outputs:
            yield program.pruned([n for n in program.outputs if n != name])
    if len(program.outputs) == 1:
        last = program.outputs[0]
        for s in program.block.statements:
            if s.block is None and last not in s.targets:
                for name in s.targets:
                    if name.startswith("v"):
                        yield program.pruned([name])
    for block in shorter(program.block):
        new = program._replace(block=block).pruned(program.outputs)
        if size(new) < size(program):
            yield new


def shorter(block: Block) -> Iterator[Block]:
    """Blocks in which one value is another, or one function is smaller."""
    for i, s in enumerate(block.statements):
        rest = block.statements
        if s.block is not None:
            for inner in shorter(s.block):
                yield block._replace(
                    statements=[*rest[:i], s._replace(block=inner), *rest[i + 1 :]]
                )
            continue
        if len(s.targets) == 1 and " = " in s.text:
            (target,) = s.targets
            operands = [n for n in dict.fromkeys(NAME.findall(s.text.split(" = ", 1)[1]))
                        if n[0] in "vp"]  # fmt: skip
            for other in operands:
                text = f"{target} = {other}"
                if text != s.text:
                    yield block._replace(
                        statements=[*rest[:i], Statement(s.targets, text), *rest[i + 1 :]]
                    )
