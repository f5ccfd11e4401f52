"""Sizes in Python's notation; the caller decides how unknowns are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .name_text import show_dim

if TYPE_CHECKING:
    from .sizes import Atom, Size

Spell = Callable[[str], str]


def text(size: Size, spell: Spell) -> str:
    """`size`, its unknowns spelled by `spell`."""
    if isinstance(size, int):
        return str(size)
    said = ""
    for monomial, scale in size.terms:
        factors = [atom for atom, power in monomial for _ in range(power)]
        sign = "-" if scale < 0 else "+"
        if abs(scale) == 1 and len(factors) == 1 and (said or scale == 1):
            product = atom_text(factors[0], spell)
        else:
            words = [] if abs(scale) == 1 and factors else [str(abs(scale))]
            product = "*".join(words + [closed_atom(atom, spell) for atom in factors])
        said = f"{said} {sign} {product}" if said else product if scale >= 0 else f"-{product}"
    return said


def atom_text(atom: Atom, spell: Spell) -> str:
    """An unknown's name, or an operation."""
    return operation(atom.name, *atom.operands, spell) if atom.operands else spell(atom.name)


def operation(name: str, a: Size, b: Size, spell: Spell) -> str:
    """`a // b`, or `min(a, b)`."""
    if name in ("min", "max"):
        return f"{name}({text(a, spell)}, {text(b, spell)})"
    sign = name if name == "//" else f" {name} "
    return f"{operand_text(a, spell)}{sign}{operand_text(b, spell)}"


def operand_text(size: Size, spell: Spell) -> str:
    """`size` as an operand of any operator: in parentheses unless it is a name, number or call."""
    if isinstance(size, int):
        return str(size) if size >= 0 else f"({size})"
    match size.terms:
        case ((((atom, 1),), 1),):
            return closed_atom(atom, spell)
    return f"({text(size, spell)})"


def closed_atom(atom: Atom, spell: Spell) -> str:
    """An atom as an operand of any operator."""
    alone = not atom.operands or atom.name in ("min", "max")
    return atom_text(atom, spell) if alone else f"({atom_text(atom, spell)})"


def show_unknown(name: str) -> str:
    """The name of an unknown size, quoted where it would read as a number or an expression."""
    return f"'{show_dim(name)}'" if reads_as_expression(name) else show_dim(name)


def reads_as_expression(text: str) -> bool:
    """Whether `text` looks like a number or an expression in sizes, and not like a name."""
    return text.isdecimal() or not set("+-*/%()").isdisjoint(text)
