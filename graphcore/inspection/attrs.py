"""Which values the attrs of ops take, as their type rules are annotated.

Type rules need not look at every attr, and some attrs become parts of generated code. So where a
graph comes from a file, its attrs are compared with the annotations: text in the place of a number
would run.
"""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from typing import Literal as AnyOf

from graphcore.ir import Op

OF_MATRICES: dict[str, Any] = {
    **dict.fromkeys(("dims", "new"), tuple[str, ...]),
    **dict.fromkeys(("lower", "unit", "transposed", "check"), bool),
    "rtol": float | None,
}
"""The attrs of ops on matrices, whose type rules take any and read none."""


@cache
def hints_of(op: Op) -> dict[str, Any]:
    """The kinds of an op's attrs, as its type rule is annotated."""
    return get_type_hints(op.rule)


def suits(op: Op, name: str, value: Any) -> bool:
    """Whether the value of an attr is of the kind that an op takes."""
    hints = hints_of(op) if name in hints_of(op) else OF_MATRICES
    return name in hints and fits(value, hints[name])


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that an annotation names."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if kind is tuple:
        if not isinstance(value, tuple):
            return False
        same = parts[:1] * len(value) if parts[1:] == (...,) else parts
        return len(value) == len(same) and all(map(fits, value, same))
    if kind is AnyOf:
        return any(value == part and type(value) is type(part) for part in parts)
    if hint in (bool, int, float, complex, NoneType):
        return type(value) is hint
    wanted = kind or hint
    return isinstance(wanted, type) and isinstance(value, wanted)
