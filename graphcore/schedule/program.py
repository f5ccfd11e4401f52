"""A program as flat steps on numbered registers, which runs without being compiled by Python.

A step calls a function on the values of some registers. Registers hold constants, sizes, buffers,
the arguments of a call and the results of its steps. Whatever does not depend on the arguments is
put together once for all calls of the same sizes: see `Program.bind`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

Registers: TypeAlias = "list[Any]"
Operands: TypeAlias = "Callable[[Registers], Sequence[Any]]"


class Step(NamedTuple):
    """`function` of the values of some registers, and the register of its result."""

    function: Callable[..., Any]
    operands: tuple[int, ...]
    result: int


BoundStep: TypeAlias = "tuple[Callable[..., Any], Sequence[Any], Operands | None, int]"
"""A function, its operands if they are known before the call, else the function that gets them, and
the register of the result."""


class Bound(NamedTuple):
    """A program for calls of the same sizes, one at a time: the registers before a call."""

    registers: Registers
    steps: list[BoundStep]


class Program(NamedTuple):
    """Steps in order. `sized` ones depend on sizes alone; `known` registers are set before a call.

    The arguments of a call are in the first registers.
    """

    registers: Registers
    sized: list[Step]
    steps: list[Step]
    known: set[int]
    results: tuple[int, ...]

    def bind(self, given: Mapping[int, Any]) -> Bound:
        """The program for calls with these sizes and buffers, one at a time."""
        registers = self.registers.copy()
        for at, value in given.items():
            registers[at] = value
        for function, operands, result in self.sized:
            registers[result] = function(*[registers[at] for at in operands])
        bound: list[BoundStep] = []
        for function, operands, result in self.steps:
            get = getter(operands)
            if self.known.issuperset(operands):
                bound.append((function, get(registers), None, result))
            else:
                bound.append((function, (), get, result))
        return Bound(registers, bound)

    def run(self, arguments: Sequence[Any], bound: Bound) -> list[Any]:
        """The results of one call."""
        registers = bound.registers.copy()
        registers[: len(arguments)] = arguments
        for function, operands, get, result in bound.steps:
            if get is None:
                registers[result] = function(*operands)
            else:
                registers[result] = function(*get(registers))
        return [registers[at] for at in self.results]


def getter(registers: tuple[int, ...]) -> Operands:
    """The function that gets the values of registers, several or one."""
    if len(registers) > 1:
        return itemgetter(*registers)
    at = registers[0] if registers else 0
    return itemgetter(slice(at, at + len(registers)))
