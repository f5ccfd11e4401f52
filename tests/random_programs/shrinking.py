"""A failing program made smaller, as long as it fails in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .drawing import NAME, Block, Program, Statement
from .running import Outcome, kind_of, outcome


def smallest(
    program: Program, tries: int = 300, targets: Sequence[bool | None] = (None,)
) -> tuple[Program, Outcome]:
    """The smallest program found that fails as this one does, and how it fails."""
    result = outcome(program, targets=targets)
    found = True
    while found and tries > 0:
        found = False
        for smaller in candidates(program):
            tries -= 1
            try:
                new = outcome(smaller, targets=targets)
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
