"""The code of a program as steps that run one by one; only its blocks are compiled by Python."""

from __future__ import annotations

import re
from operator import getitem
from typing import Any

from graphcore.ops import leaf
from graphcore.schedule.program import Program, Step

from .calls import Argument, Call, function_of, is_form
from .nesting import INDENT
from .source import Block, Code, Line, Source, laid_out

LOCAL = re.compile(r"\b[a-z]\d+\b")
"""Names of values; those of dtypes look the same, but are global."""


class BlockFunction:
    """A block as a function of the names that it reads, which returns those that others read."""

    def __init__(self, name: str, block: Block, at: int, result: int) -> None:
        self.name, self.block, self.at, self.result = name, block, at, result
        self.reads: dict[str, int] = {}
        self.results: dict[str, int] = {}

    def source(self, scope: dict[str, Any]) -> Source:
        """The function as text."""
        text = [
            f"def {self.name}({', '.join(self.reads)}):",
            *self.block.text,
            f"{INDENT}return ({''.join(f'{name}, ' for name in self.results)})",
        ]
        lines = {at + 2: line for at, line in self.block.lines.items()}
        return laid_out(text, lines, scope, f"{self.name}_")


class Assembly:
    """Gives each name of the code a register, and each line its steps."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.registers: list[Any] = []
        self.names: dict[str, int] = {}
        self.sized: list[Step] = []
        self.steps: list[Step] = []
        self.lines: dict[int, Line] = {}  # by the register of a step's result
        self.blocks: list[BlockFunction] = []
        self.made_by: dict[str, BlockFunction] = {}
        for name in code.params:
            self.names[name] = self.register()
        sizes = code.known_sizes()
        for name in (*sizes, *code.buffers.values()):
            self.names[name] = self.register()
        self.of_sizes = {self.names[name] for name in sizes}
        self.known = self.of_sizes | {self.names[name] for name in code.buffers.values()}
        for name, value in code.first.values():
            self.names[name] = self.slot(value)
        for part in code.lines:
            if isinstance(part, Block):
                self.add_block(part)
            else:
                self.add_line(part)
        self.results = tuple([self.slot(value) for value in code.results])

    def register(self, value: Any = None) -> int:
        """A new register."""
        self.registers.append(value)
        return len(self.registers) - 1

    def constant(self, value: Any) -> int:
        """A new register that holds a value in every call."""
        at = self.register(value)
        self.known.add(at)
        return at

    def slot(self, value: Argument, line: Line | None = None) -> int:
        """The register of a value."""
        if isinstance(value, Call):
            return self.step(value, line)
        if (at := self.names.get(value)) is None:
            at = self.names[value] = self.new_slot(value)
        return at

    def new_slot(self, text: str) -> int:
        """The register of a global name, of a name that a block assigns, or of an expression."""
        scope = self.code.scope
        if text in scope:
            return self.constant(scope[text])
        if (block := self.made_by.get(text)) is not None:
            return block.results.setdefault(text, self.register())
        names = self.locals_in(text)
        function = eval(f"lambda {', '.join(names)}: {text}", scope)
        if not names:
            return self.constant(function())
        return self.apply(function, tuple([self.slot(name) for name in names]), None)

    def locals_in(self, text: str) -> list[str]:
        """The names of values in a text."""
        found = dict.fromkeys(LOCAL.findall(text))
        return [name for name in found if name not in self.code.scope]

    def step(self, value: Call, line: Line | None) -> int:
        """The step of a call, after those of calls among its arguments."""
        form = value.function
        function = function_of(form) if is_form(form) else self.code.scope[form]
        operands = tuple([self.slot(x, line) for x in value.arguments])
        return self.apply(function, operands, line)

    def apply(self, function: Any, operands: tuple[int, ...], line: Line | None) -> int:
        """One step; numbers that depend on sizes alone are found before the call."""
        step = Step(function, operands, self.register())
        is_size = line is None or line.node.op is leaf.extent
        if is_size and self.of_sizes.issuperset(operands):
            self.sized.append(step)
            self.of_sizes.add(step.result)
            self.known.add(step.result)
        else:
            self.steps.append(step)
            if line is not None:
                self.lines[step.result] = line
        return step.result

    def add_line(self, line: Line) -> None:
        """A line; the name of a result that is written into an array is one of that array."""
        at = self.slot(line.value, line)
        if line.name:
            self.names[line.name] = self.names[line.out] if line.out else at

    def add_block(self, block: Block) -> None:
        """A block, as a step whose result is a tuple."""
        name = f"loop{len(self.blocks)}"
        function = BlockFunction(name, block, len(self.steps), self.register())
        self.blocks.append(function)
        for name in self.locals_in("\n".join(block.text)):
            if name in self.names or name in self.made_by:
                function.reads[name] = self.slot(name)
            else:
                self.made_by[name] = function

    def source(self) -> Source:
        """The functions of all blocks as text."""
        text, lines, above = [], {}, 0
        for block in self.blocks:
            source = block.source(self.code.scope)
            text.append(source.text)
            lines.update({above + number: line for number, line in source.lines.items()})
            above += source.text.count("\n")
        return Source("".join(text), lines)

    def program(self) -> Program:
        """The steps, once the functions of blocks are in the scope."""
        steps = self.steps.copy()
        for block in self.blocks[::-1]:
            reads = tuple(block.reads.values())
            results = [
                Step(getitem, (block.result, self.constant(i)), at)
                for i, at in enumerate(block.results.values())
            ]
            steps[block.at : block.at] = [
                Step(self.code.scope[block.name], reads, block.result),
                *results,
            ]
        return Program(self.registers, self.sized, steps, self.known, self.results)
