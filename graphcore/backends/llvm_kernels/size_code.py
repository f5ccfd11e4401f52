"""Sizes as values: their polynomials, floor-divisions and remainders in instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphcore.ir import Size
from graphcore.ir.sizes import lower_bound

from .builder import Builder, Value, integer, real


def size_code(b: Builder, size: Size, known: Mapping[str, Value]) -> Value:
    """A size as a value, from the unknown ones."""
    if isinstance(size, int):
        return integer(size)
    total = integer(0)
    for monomial, coefficient in size.terms:
        term = integer(coefficient)
        for atom, power in monomial:
            for _ in range(power):
                term = b.mul(term, atom_code(b, atom, known))
        total = b.add(total, term)
    return total


def atom_code(b: Builder, atom: Any, known: Mapping[str, Value]) -> Value:
    """An unknown size, or an operation of two sizes, as a value."""
    if not atom.operands:
        return known[atom.name]
    x, y = [size_code(b, each, known) for each in atom.operands]
    if atom.name in ("min", "max"):
        return b.call(f"s{atom.name}", x, y)
    if (lower_bound(atom.operands[1]) or 0) < 1:  # a size that is 0 is refused before the call
        y = b.select(b.op("icmp eq", y, integer(0)), integer(1), y)
    # As in Python, (-1) % n is n - 1 and (-1) // n is -1; LLVM rounds towards 0.
    rest = b.op("srem", x, y)
    odd = b.op("icmp ne", rest, integer(0))
    below = b.both(odd, b.op("icmp slt", b.op("xor", rest, y), integer(0)))
    if atom.name == "%":
        return b.select(below, b.op("add", rest, y), rest)
    quotient = b.op("sdiv", x, y)
    return b.select(below, b.op("sub", quotient, integer(1)), quotient)


def magnitude(b: Builder, size: Size, known: Mapping[str, Value]) -> Value:
    """A float64 that no integer in the code of a size exceeds, but for rounding."""
    return in_floats(b, size, known)[1]


def in_floats(b: Builder, size: Size, known: Mapping[str, Value]) -> tuple[Value, Value]:
    """About the value of a size, and of the largest integer that its code computes."""
    if isinstance(size, int):
        return real(float(size)), real(float(abs(size)))
    total = most = real(0.0)
    for monomial, coefficient in size.terms:
        term, largest = real(float(coefficient)), real(float(abs(coefficient)))
        for atom, power in monomial:
            factor, inside = atom_in_floats(b, atom, known)
            most = b.op("fadd", most, inside)
            some = b.call("maxnum", b.call("fabs", factor), real(1.0))
            for _ in range(power):
                term, largest = b.op("fmul", term, factor), b.op("fmul", largest, some)
        total, most = b.op("fadd", total, term), b.op("fadd", most, largest)
    return total, most


def atom_in_floats(b: Builder, atom: Any, known: Mapping[str, Value]) -> tuple[Value, Value]:
    """The same for an unknown size, or an operation of two sizes."""
    if not atom.operands:
        return b.convert("sitofp", known[atom.name], "f64"), real(0.0)
    (x, inside), (y, other) = [in_floats(b, each, known) for each in atom.operands]
    most = b.op("fadd", inside, other)
    if atom.name in ("min", "max"):
        return b.call(f"{atom.name}num", x, y), most
    y = b.select(b.op("fcmp oeq", y, real(0.0)), real(1.0), y)
    quotient = b.call("floor", b.op("fdiv", x, y))
    if atom.name == "//":
        return quotient, most
    return b.op("fsub", x, b.op("fmul", y, quotient)), most
