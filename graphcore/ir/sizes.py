"""Sizes of axes: integers, or integer expressions in the unknown sizes of the inputs.

An expression is a polynomial in canonical form, so two that are equal are one object::

    terms     ((monomial, coefficient), ...)   graded lexicographic order: the constant comes last
    monomial  ((atom, power), ...)             in the order of the atoms' ranks
    atom      an unknown, or a floor-division, remainder, min or max of two sizes
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any, NamedTuple, TypeAlias

from .interning import Interned
from .names import spell_name
from .remembered import remembered
from .size_formulas import Number
from .size_text import operation, show_unknown, text


class Atom(NamedTuple):
    """An unknown without operands, or the operation `name` of two sizes; ordered by `rank`."""

    rank: tuple[int, str]
    name: str
    operands: tuple[()] | tuple[Size, Size] = ()


Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
Terms: TypeAlias = tuple[tuple[Monomial, int], ...]
Bounds: TypeAlias = tuple[int | None, int | None]


@dataclass(frozen=True, eq=False, repr=False, slots=True, weakref_slot=True)
class Expression(Number):
    """A size known only at the call; made by `unknown` and arithmetic, equal by identity.

    With integers it makes sizes, by `+ - * // % **`; with other numbers and by `/`, formulas.
    """

    terms: Terms
    unknowns: frozenset[str]
    bounds: Bounds

    def __add__(self, other: Any) -> Any:
        whole = isinstance(other, (int, Expression))
        return _sum(self, 1, other) if whole else Number.__add__(self, other)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (int, Expression)):
            return Number.__mul__(self, other)
        return self if other == 1 else _product(self, other)

    def __neg__(self) -> Size:
        return _sum(0, -1, self)

    def __abs__(self) -> Size:
        return maximum(self, -self)

    def __sub__(self, other: Any) -> Any:
        whole = isinstance(other, (int, Expression))
        return _sum(self, -1, other) if whole else Number.__sub__(self, other)

    def __rsub__(self, other: Any) -> Any:
        return _sum(other, -1, self) if isinstance(other, int) else Number.__rsub__(self, other)

    def __pow__(self, other: Any) -> Any:
        if not isinstance(other, int) or not 0 <= other <= MOST_TERMS:
            return Number.__pow__(self, other)
        return functools.reduce(operator.mul, [self] * other, 1)

    def __floordiv__(self, other: Any) -> Any:
        whole = isinstance(other, (int, Expression))
        return _divmod(self, other)[0] if whole else Number.__floordiv__(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        whole = isinstance(other, int)
        return _divmod(other, self)[0] if whole else Number.__rfloordiv__(self, other)

    def __mod__(self, other: Any) -> Any:
        whole = isinstance(other, (int, Expression))
        return _divmod(self, other)[1] if whole else Number.__mod__(self, other)

    def __rmod__(self, other: Any) -> Any:
        whole = isinstance(other, int)
        return _divmod(other, self)[1] if whole else Number.__rmod__(self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __repr__(self) -> str:
        return text(self, show_unknown)

    def __reduce__(self) -> tuple[Callable[[Terms], Expression], tuple[Terms]]:
        return _interned, (self.terms,)


Size: TypeAlias = int | Expression
Shape: TypeAlias = tuple[Size, ...]


def unknown(name: str) -> Expression:
    """The unknown size `name`, zero or more.

    >>> unknown("batch") is unknown("batch")
    True
    """
    return _of_atom(Atom((0, spell_name(name)), name))


def minimum(a: Size, b: Size) -> Size:
    """The smaller of two sizes.

    >>> batch = unknown("batch")
    >>> minimum(batch, 8), minimum(batch, batch + 2), minimum(batch // 2, batch)
    (min(batch, 8), batch, batch//2)
    """
    if a is b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        return a if a <= b else b
    return _extreme_operand("min", a, b, b - a)


def maximum(a: Size, b: Size) -> Size:
    """The larger of two sizes.

    >>> batch = unknown("batch")
    >>> maximum(batch - 3, 0), maximum(batch, 0)
    (max(batch - 3, 0), batch)
    """
    if a is b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        return a if a >= b else b
    return _extreme_operand("max", a, b, a - b)


def same(a: Size, b: Size) -> bool | None:
    """Whether two sizes are equal at every call (True), at none (False), or undecided (None).

    >>> batch = unknown("batch")
    >>> same(batch + batch, 2 * batch), same(batch + 1, 0), same(batch, 32)
    (True, False, None)
    """
    if a is b:
        return True
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    *variable, (monomial, constant) = difference.terms
    odd = not monomial and constant % gcd(*(coefficient for _, coefficient in variable)) != 0
    return False if odd or _at_least(difference, 1) or _at_least(-difference, 1) else None


def lower_bound(a: Size) -> int | None:
    """An integer that `a` never falls below; None where none is provable.

    >>> batch = unknown("batch")
    >>> lower_bound(batch + 2), lower_bound(batch - batch // 2), lower_bound(-batch)
    (2, 0, None)
    """
    return _lower(a, 6)


def upper_bound(a: Size) -> int | None:
    """An integer that `a` never exceeds; None where none is provable.

    >>> upper_bound(minimum(unknown("batch"), 8))
    8
    """
    low = lower_bound(-a)
    return None if low is None else -low


def count(shape: Iterable[Size]) -> Size:
    """The number of values in a shape.

    >>> count((unknown("batch"), 2, unknown("head")))
    2*batch*head
    """
    product: Size = 1
    for size in shape:
        product = product * size
    return product


def unknowns(size: Size) -> frozenset[str]:
    """The names of the unknown sizes in `size`.

    >>> unknowns(unknown("batch") + 1)
    frozenset({'batch'})
    """
    return frozenset() if isinstance(size, int) else size.unknowns


def evaluate(size: Size, known: Mapping[str, int]) -> int:
    """The value of `size` where every unknown is known; a division by zero is a ValueError.

    >>> evaluate((unknown("batch") + 1) // 2, {"batch": 8})
    4
    """
    value = substitute(size, known)
    if isinstance(value, int):
        return value
    raise KeyError(f"{size} needs the size of {', '.join(sorted(value.unknowns))}")


def substitute(size: Size, known: Mapping[str, Size]) -> Size:
    """`size` with other sizes in place of the unknowns in `known`.

    >>> substitute(2 * unknown("batch"), {"batch": unknown("time") + 1})
    2*time + 2
    """
    if isinstance(size, int) or known.keys().isdisjoint(size.unknowns):
        return size
    total: Size = 0
    for monomial, coefficient in size.terms:
        values = (_substitute_atom(atom, known) for atom, power in monomial for _ in range(power))
        total = total + count((coefficient, *values))
    return total


def code(size: Size, names: Mapping[str, str]) -> str:
    """Python source of `size`, where `names` holds a Python name for each unknown.

    >>> code((unknown("batch") + 1) // 2, {"batch": "s0"})
    '(s0 + 1)//2'
    """
    return text(size, names.__getitem__)


_APPLY: dict[str, Callable[[Size, Size], Size]] = {
    "//": operator.floordiv,
    "%": operator.mod,
    "min": minimum,
    "max": maximum,
}


def _substitute_atom(atom: Atom, known: Mapping[str, Size]) -> Size:
    if not atom.operands:
        return known[atom.name] if atom.name in known else _of_atom(atom)
    a, b = (substitute(operand, known) for operand in atom.operands)
    try:
        return _APPLY[atom.name](a, b)
    except ZeroDivisionError:
        whole = _of_atom(atom)
        where = ", ".join(f"{n} = {known[n]}" for n in sorted(whole.unknowns) if n in known)
        raise ValueError(f"{whole} divides by zero where {where}") from None


# --- canonical form -----------------------------------------------------------------------------
_table: Interned[Expression] = Interned()
MOST_TERMS = 1000  # no size of a program has so many terms, or such a power


def _interned(terms: Terms) -> Expression:
    """The one expression with these canonical terms."""
    if (found := _table.get(terms)) is not None:
        return found
    parts = (_atom_unknowns(atom) for monomial, _ in terms for atom, _ in monomial)
    new = Expression(terms, frozenset[str]().union(*parts), _sum_bounds(terms))
    return _table.add(terms, new)


@remembered
def _sum(a: Size, scale: int, b: Size) -> Size:
    """`a + scale * b`."""
    if b == 0:
        return a
    total = dict(_terms(a))
    for monomial, coefficient in _terms(b):
        total[monomial] = total.get(monomial, 0) + scale * coefficient
    return _size(total)


@remembered
def _product(a: Expression, b: Size) -> Size:
    total: dict[Monomial, int] = {}
    for left, scale in a.terms:
        for right, coefficient in _terms(b):
            monomial = _times(left, right)
            total[monomial] = total.get(monomial, 0) + scale * coefficient
    return _size(total)


def _size(total: dict[Monomial, int]) -> Size:
    """The sum of `coefficient * monomial`."""
    terms = tuple([term for term in total.items() if term[1]])
    if len(terms) > 1:
        terms = tuple(sorted(terms, key=_grade))
    return 0 if not terms else _interned(terms) if terms[0][0] else terms[0][1]


def _grade(term: tuple[Monomial, int]) -> tuple[int, list[tuple[tuple[int, str], int]]]:
    """The place of a term: higher degree first, then higher powers of earlier atoms."""
    powers = [(atom.rank, -power) for atom, power in term[0]]
    return sum(power for _, power in powers), powers


def _terms(size: Size) -> Terms:
    return (((), size),) if isinstance(size, int) else size.terms


def _times(left: Monomial, right: Monomial, sign: int = 1) -> Monomial:
    """The product, or the quotient where `sign` is -1."""
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + sign * power
    return tuple(sorted(item for item in powers.items() if item[1]))


def _of_atom(atom: Atom) -> Expression:
    return _interned(((((atom, 1),), 1),))


def _operation(name: str, a: Size, b: Size) -> Expression:
    return _of_atom(Atom((1, operation(name, a, b, spell_name)), name, (a, b)))


def _atom_unknowns(atom: Atom) -> frozenset[str]:
    if not atom.operands:
        return frozenset([atom.name])
    a, b = atom.operands
    return unknowns(a) | unknowns(b)


def _nested_parts(size: Size, name: str) -> tuple[Size, int, int] | None:
    """(a, i, j) where `size` is `name(a, i) + j` for integers i and j."""
    match _terms(size):
        case ((((Atom(_, op, (a, int(i))), 1),), 1), *rest) if op == name:
            match rest:
                case []:
                    return a, i, 0
                case [((), j)]:
                    return a, i, j
    return None


def _extreme_operand(name: str, a: Size, b: Size, gap: Size) -> Size:
    """The operand that `gap`, the lead of `a`, proves to be the extreme one."""
    first, second = _at_least(gap, 0), _at_least(-gap, 0)
    if first and second:  # equal in two forms: an int, or the same one in either order
        return min(a, b, key=lambda size: (isinstance(size, Expression), text(size, spell_name)))
    return a if first else b if second else _extreme(name, a, b)


def _extreme(name: str, a: Size, b: Size) -> Size:
    """`min` or `max` of two sizes that nothing orders."""
    key = functools.partial(text, spell=spell_name)
    if isinstance(a, int) or (isinstance(b, Expression) and key(b) < key(a)):
        a, b = b, a
    inner = _nested_parts(a, name)
    if inner is not None and isinstance(b, int):
        (x, i, j), apply = inner, _APPLY[name]  # max(max(x, i) + j, b) = max(x + j, max(i + j, b))
        return apply(x + j, apply(i + j, b))
    return _operation(name, a, b)


def _divmod(a: Size, b: Size) -> tuple[Size, Size]:
    """`(a // b, a % b)` where at least one is an expression."""
    if isinstance(b, int) and b < 0:
        quotient, remainder = _divmod(-a, -b)
        return quotient, -remainder
    if b == 0:
        raise ZeroDivisionError(f"{a} is divided by zero")
    if b == 1:
        return a, 0
    whole, part, factor, low, b = _division_parts(a, b) if isinstance(b, int) else (0, a, 1, 0, b)
    if _at_least(part, 0) and _at_least(b - part, 1):
        quotient, remainder = 0, part
    elif isinstance(b, Expression) and (exact := _exact(part, b)) is not None:
        quotient, remainder = exact, 0
    else:
        quotient, remainder = _operation("//", part, b), _operation("%", part, b)
        inner = _nested_parts(part, "//")
        if inner is not None and isinstance(b, int):  # (x//i + j)//b = (x + i*j)//(i*b)
            x, i, j = inner
            quotient = (x + i * j) // (i * b)
    return whole + quotient, factor * remainder + low


def _division_parts(a: Size, b: int) -> tuple[Size, Size, int, int, int]:
    """(whole, part, factor, low, c) where `a = b*whole + factor*part + low` and `b = factor*c`."""
    split = {
        monomial: (0, coefficient) if monomial and coefficient % b else divmod(coefficient, b)
        for monomial, coefficient in _terms(a)
    }
    factor = gcd(b, *(rest for monomial, (_, rest) in split.items() if monomial))
    whole = _size({monomial: quotient for monomial, (quotient, _) in split.items()})
    part = _size({monomial: rest // factor for monomial, (_, rest) in split.items()})
    low = split.get((), (0, 0))[1] % factor
    return whole, part, factor, low, b // factor


def _exact(a: Size, b: Expression) -> Size | None:
    """`a / b` where the polynomial b divides a and is never zero."""
    if not (_at_least(b, 1) or _at_least(-b, 1)):
        return None
    (leading, scale), *_ = b.terms
    quotient: Size = 0
    while isinstance(a, Expression) and len(_terms(quotient)) < MOST_TERMS // 10:
        (monomial, coefficient), *_ = a.terms
        ratio = _times(monomial, leading, -1)
        if coefficient % scale or any(power < 0 for _, power in ratio):
            return None
        share = _size({ratio: coefficient // scale})
        quotient, a = quotient + share, a - share * b
    return quotient if a == 0 else None


# --- bounds -------------------------------------------------------------------------------------


def _at_least(size: Size, bound: int) -> bool:
    return (low := lower_bound(size)) is not None and low >= bound


@remembered
def _lower(size: Size, steps: int) -> int | None:
    """The best of the interval bound and the one with an operation replaced by its limits."""
    if isinstance(size, int):
        return size
    single = [(scale, *monomial[0]) for monomial, scale in size.terms if len(monomial) == 1]
    linear = [(scale, atom) for scale, atom, power in single if power == 1 and atom.operands]
    found = [size.bounds[0]]
    if steps and linear:
        scale, atom = min(linear)
        rest = _sum(size, -scale, _of_atom(atom))
        match atom:
            case Atom(_, "//", (a, int(k))):  # a - k + 1 <= k * (a // k) <= a
                limit = a if scale < 0 else a - (k - 1)
                low = _lower(_sum(k * rest, scale, limit), steps - 1)
                found.append(None if low is None else -(-low // k))
            case Atom(_, ("min" | "max") as name, (a, b)):
                lows = [_lower(_sum(rest, scale, limit), steps - 1) for limit in (a, b)]
                found += lows if (name == "max") == (scale > 0) else [_every(min, lows)]
    return max((low for low in found if low is not None), default=None)


def _every(pick: Callable[[list[int]], int], bounds: Collection[int | None]) -> int | None:
    """`pick` of the bounds if all are known."""
    known = [bound for bound in bounds if bound is not None]
    return pick(known) if len(known) == len(bounds) else None


def _bounds(size: Size) -> Bounds:
    return (size, size) if isinstance(size, int) else size.bounds


def _sum_bounds(terms: Terms) -> Bounds:
    low: int | None = 0
    high: int | None = 0
    for monomial, scale in terms:
        least, most = _product_bounds(monomial)
        if scale < 0:
            least, most = most, least
        low = None if low is None or least is None else low + scale * least
        high = None if high is None or most is None else high + scale * most
    return low, high


def _product_bounds(monomial: Monomial) -> Bounds:
    low: int = 1
    high: int | None = 1
    for atom, power in monomial:
        least, most = _atom_bounds(atom)
        if least is None or least < 0:
            return (least, most) if len(monomial) == power == 1 else (None, None)
        low *= least**power
        high = None if high is None or most is None else high * most**power
    return low, high


def _atom_bounds(atom: Atom) -> Bounds:
    if not atom.operands:
        return 0, None
    (low, high), (least, most) = map(_bounds, atom.operands)
    known_lows = [end for end in (low, least) if end is not None]
    known_highs = [end for end in (high, most) if end is not None]
    match atom.name:
        case "min":
            return _every(min, (low, least)), min(known_highs, default=None)
        case "max":
            return max(known_lows, default=None), _every(max, (high, most))
    if least is None or least < 0:
        return None, None
    least = max(least, 1)  # a division by zero has no value to bound
    if atom.name == "%":
        return 0, None if most is None else most - 1
    return (
        None if low is None else min(low // least, 0),
        None if high is None else max(high // least, -1),
    )
