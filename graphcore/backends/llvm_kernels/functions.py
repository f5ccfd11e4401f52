"""FUNCTIONS: elementary functions of vectors as IR, `(builder, *operands) -> value`.

A kernel calls them: written out where they are used they would gain nothing. Each is written for
float64; that of float32 computes in float64 and rounds, which is exact to half a unit and as fast
as float32 side by side in as many lanes; `SHORT` holds those that need fewer terms then.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from .builder import Builder, Value, type_of
from .machine import ATTRIBUTES
from .maths import angles, division, exponential, logarithm, powers

Function: TypeAlias = Callable[..., Value]

FUNCTIONS: dict[str, Function] = {
    f.__name__: f
    for f in (
        *(exponential.exp, exponential.exp2, exponential.expm1, exponential.sigmoid),
        *(exponential.sinh, exponential.cosh, exponential.tanh),
        *(logarithm.log, logarithm.log2, logarithm.log10, logarithm.log1p),
        *(logarithm.softplus, logarithm.logaddexp, logarithm.logaddexp2),
        *(logarithm.arcsinh, logarithm.arccosh, logarithm.arctanh),
        *(angles.sin, angles.cos, angles.tan, angles.arcsin, angles.arccos),
        *(angles.arctan, angles.arctan2),
        *(powers.power, powers.cbrt, division.hypot, division.fmod),
    )
}
SHORT: dict[str, Function] = {
    f.__name__.removeprefix("short_"): f
    for f in (
        *(exponential.short_exp, exponential.short_expm1, exponential.short_tanh),
        *(angles.short_sin, angles.short_cos),
        *(exponential.short_sigmoid, logarithm.short_log, logarithm.short_log1p),
    )
}


@cache
def define(full: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The IR of a function, such as `exp.f64`, and the intrinsics that it declares, by name."""
    name, kind = full.split(".")
    b = Builder()
    function = (SHORT if kind == "f32" else {}).get(name, FUNCTIONS[name])
    count = len(inspect.signature(function).parameters) - 1
    params = [Value(f"%x{i}", kind, True) for i in range(count)]
    y = function(b, *[b.convert("fpext", x, "f64") for x in params])
    y = b.convert("fptrunc", y, kind)
    given = ", ".join([x.typed for x in params])
    head = f"define internal {type_of(kind, True)} @{full}({given}) #0 {{"
    text = "\n".join([head, "entry:", *b.lines[0], f"  ret {y.typed}", "}"])
    return text, tuple(b.declared.items())


def module(head: str, b: Builder) -> str:
    """The text of a module with one function, which ends with what the builder wrote last.

    `head` declares it: `define i64 @kernel(ptr %table)`.
    """
    texts, declared = [], dict(b.declared)
    for name in b.used_functions:
        text, more = define(name)
        texts.append(text)
        declared |= dict(more)
    lines = [f"{head} #0 {{", "entry:", *b.lines[0], "}"]
    return "\n".join([*lines, *texts, *declared.values(), ATTRIBUTES, ""])
