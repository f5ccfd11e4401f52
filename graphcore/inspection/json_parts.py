"""Parts of graphs as JSON: names, sizes, dtypes and values, and what is refused in them."""

from __future__ import annotations

import operator
from base64 import b64decode
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from graphcore.ir import Expression, Hidden, Literal, Size
from graphcore.ir.names import Computed, ValueOf
from graphcore.ir.sizes import MOST_TERMS, maximum, minimum, unknown

KINDS = "biufc"
"""The kinds of dtypes: bool, integers, floats and complex numbers."""
OPERATIONS: dict[str, Callable[[Any, Any], Size]] = {
    "//": operator.floordiv,
    "%": operator.mod,
    "min": minimum,
    "max": maximum,
}


def text(name: str) -> Any:
    """A name, by which a hidden one differs from a user's."""
    if isinstance(name, Computed):
        return {"computed": str(name), "key": name.key}
    if isinstance(name, ValueOf):
        return {"value": str(name)}
    return {"hidden": str(name)} if isinstance(name, Hidden) else str(name)


def size_form(size: Size) -> Any:
    """A size."""
    if isinstance(size, int):
        return size
    terms = [
        [
            coefficient,
            [
                [{name: list(map(size_form, of))} if of else text(name), power]
                for (_, name, of), power in monomial
            ],
        ]
        for monomial, coefficient in size.terms
    ]
    return {"size": terms}


class Damaged(Exception):
    """A part that is not as the form says."""


def refuse_constant(constant: str) -> Any:
    """The form has no NaN and no Infinity."""
    raise Damaged(f"{constant} is not a number of JSON")


def check(condition: object, reason: str) -> None:
    """Refuse what is not as the form says."""
    if not condition:
        raise Damaged(reason)


def fields(value: Any, where: str, *names: str) -> list[Any]:
    """The values of an object with just these names."""
    check(isinstance(value, dict), f"{where} is not an object")
    missing, more = [x for x in names if x not in value], [x for x in value if x not in names]
    check(not missing, f"{where} lacks the fields {', '.join(missing)}")
    check(not more, f"{where} has unknown fields, {', '.join(map(str, more))}")
    return [value[name] for name in names]


def document_of(value: Any, format: str, version: int, *names: str) -> list[Any]:
    """The values of a whole document of a format and version, but for these two."""
    check(isinstance(value, dict) and value.get("format") == format, f"it is not a {format!r}")
    given = value.get("version")
    check(given == version, f"it has version {given!r:.20}, this library reads {version}")
    return fields(value, "the text", "format", "version", *names)[2:]


def items(value: Any, where: str, count: int | None = None) -> list[Any]:
    """A list, of so many parts if a number is given."""
    check(isinstance(value, list), f"{where} is not a list")
    found: list[Any] = value
    check(count in (None, len(found)), f"{where} does not have {count} parts")
    return found


def number(value: Any, where: str) -> int:
    """An integer."""
    check(type(value) is int, f"{where} is not an integer")
    found: int = value
    return found


def item_at(some: list[Any], value: Any, where: str) -> Any:
    """The item of this number, which must come before what uses it."""
    check(0 <= number(value, where) < len(some), f"{where} refers to nothing that comes before it")
    return some[value]


def string(value: Any, where: str) -> str:
    """A name that a user may have given."""
    check(isinstance(value, str), f"{where} is not text")
    return str(value)


def name_of(value: Any, where: str) -> str:
    """A name, a hidden one, that of an input whose value is meant, or of a computed size."""
    if isinstance(value, dict) and "computed" in value:
        return Computed(*[string(x, where) for x in fields(value, where, "computed", "key")])
    if isinstance(value, dict) and "value" in value:
        (of,) = fields(value, where, "value")
        return ValueOf(string(of, where))
    if isinstance(value, dict):
        (hidden,) = fields(value, where, "hidden")
        return Hidden(string(hidden, where))
    return string(value, where)


def dtype_of(value: Any, where: str) -> np.dtype[Any]:
    """A dtype of numbers."""
    try:
        found = np.dtype(string(value, where))
    except TypeError:
        raise Damaged(f"{where} is not a dtype") from None
    check(found.kind in KINDS and found.str == value, f"{where} is not a dtype of numbers")
    return found


def size_of(value: Any, where: str) -> Size:
    """A size, which must be in the canonical form."""
    if not isinstance(value, dict):
        return number(value, where)
    (terms,) = fields(value, where, "size")
    check(len(items(terms, where)) <= MOST_TERMS, f"{where} has more than {MOST_TERMS} terms")
    total = in_pairs(operator.add, 0, [term_of(term, where) for term in terms])
    check(size_form(total) == value, f"{where} is not a size in canonical form")
    return total


def term_of(term: Any, where: str) -> Size:
    """A product of powers of atoms."""
    coefficient, powers = items(term, where, 2)
    factors: list[Size] = []
    for factor in items(powers, where):
        atom, power = items(factor, where, 2)
        check(0 < number(power, where) <= MOST_TERMS, f"{where} has a bad power, {power}")
        factors += [atom_of(atom, where)] * power
    check(len(factors) <= MOST_TERMS, f"{where} has a term of more than {MOST_TERMS} factors")
    return in_pairs(operator.mul, number(coefficient, where), factors)


def in_pairs(combine: Callable[[Any, Any], Size], one: Size, rest: list[Size]) -> Size:
    """Sizes combined in pairs and pairs of pairs, as one after the other takes quadratic time."""
    some = [one, *rest]
    while len(some) > 1:
        some = [
            combine(*some[at : at + 2]) if some[at + 1 :] else some[at]
            for at in range(0, len(some), 2)
        ]
    return some[0]


def atom_of(value: Any, where: str) -> Size:
    """An unknown size, or an operation on two sizes."""
    keys = value if isinstance(value, dict) else ()
    if isinstance(value, str) or {"hidden", "value", "computed"}.intersection(keys):
        return unknown(name_of(value, where))
    check(isinstance(value, dict) and len(value) == 1, f"{where} is not an operation")
    ((name, operands),) = value.items()
    check(name in OPERATIONS, f"{where} has the unknown operation {name!r:.20}")
    left, right = (size_of(x, where) for x in items(operands, where, 2))
    try:
        found = OPERATIONS[name](left, right)
    except ZeroDivisionError:
        raise Damaged(f"{where} divides by zero") from None
    alone = isinstance(found, Expression) and len(found.terms) == len(found.terms[0][0]) == 1
    check(alone, f"{where} has an operation that is none in canonical form")
    return found


def literal_of(value: Any, where: str) -> Literal:
    """Values by their bytes."""
    dtype, shape, data = fields(value, where, "dtype", "shape", "bytes")
    dtype = dtype_of(dtype, where)
    shape = tuple(number(size, where) for size in items(shape, where))
    check(all(size >= 0 for size in shape) and len(shape) <= 64, f"{where} has a wrong shape")
    try:
        raw = b64decode(string(data, where), validate=True)
    except ValueError:
        raise Damaged(f"{where} has bytes that are not base64") from None
    return literal_from(raw, dtype, shape, where)


def literal_from(raw: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], where: str) -> Literal:
    """Values by their bytes, as many as the shape asks for."""
    check(len(raw) == prod(shape) * dtype.itemsize, f"{where} has too few or too many bytes")
    check(dtype.kind != "b" or not raw.strip(b"\0\1"), f"{where} has a bool that is not 0 or 1")
    return Literal(np.frombuffer(raw, dtype).reshape(shape))
