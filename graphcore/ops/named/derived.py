"""Ops over dims that are derived from the plain op over axes: a reduction, a running sum, a sort.

The type rule, kind of axes, traits and words are those of the plain op. `rewrites/lower` casts the
operand, and applies the plain op to its axes.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, get_type_hints

from graphcore.ir import Op, TensorType
from graphcore.ir.axes import Along, ByAttr, Reduces
from graphcore.ir.dtypes import DtypeRule
from graphcore.ir.op import declare

from .dims import Dims, drop, has, not_empty


class Form(NamedTuple):
    """The plain op of a named one, and the attr of each that says the axes or dims."""

    plain: Op
    axes: str
    dims: str
    operand: DtypeRule | None
    """The dtype to which the operand is cast; without it that of the result."""


FORMS: dict[Op, Form] = {}
"""The plain form of each op that is derived from one."""


def by_name(plain: Op, operand: DtypeRule | None = None, *, some: bool = False) -> Op:
    """Declare the named form of an op with one operand, its attrs `axes` or `axis` now `dims`.

    Ops that move elements work along one `dim`. With `some` dims without places are refused.
    """
    kind = copy(plain.axes)
    assert isinstance(kind, ByAttr)
    attr, reduces = kind.attr, isinstance(kind, Reduces)
    kind.attr = name = "dim" if isinstance(kind, Along) and kind.moves else "dims"

    def rule(x: TensorType, **attrs: Any) -> TensorType:
        given = attrs.pop(name)
        dims = (given,) if name == "dim" else given
        if some and attrs.get("initial") is None:
            not_empty(x, dims)
        at: tuple[int, ...] = ()
        if not reduces:  # of a reduction only the dtype is asked
            has(x, dims)
            at = tuple((x.dims or ()).index(dim) for dim in dims)
        taken = x if operand is None else TensorType(operand(x.dtype), x.shape, x.dims)
        made = plain.rule(taken, **{attr: at if attr == "axes" else (*at, 0)[0]}, **attrs)
        assert isinstance(made, TensorType)
        if reduces:
            return drop(made.dtype, x, dims)
        return TensorType(made.dtype, made.shape, x.dims)

    hints = get_type_hints(plain.rule)
    del hints[attr]
    rule.__annotations__ = hints | {name: str if name == "dim" else Dims}  # attrs of files fit them
    new = Op(plain.name, "named", rule, plain.doc, axes=kind, traits=plain.traits,
             said=plain.said, module=plain.module)  # fmt: skip
    FORMS[new] = Form(plain, attr, name, operand)
    return declare(new)
