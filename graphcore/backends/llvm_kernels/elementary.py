"""FUNCTIONS: elementary functions of vectors as IR, `(builder, *operands) -> value`.

Kernels call them, as inlining them would gain nothing. Each is compiled once in a process, when the
first kernel needs it, and so are the routines of `storing`. All are written for float64. `SINGLE`
holds functions written for float32, with errors of up to two units in the last place; for the
others float32 is computed in float64 and rounded, with errors of half a unit. `SHORT` holds shorter
forms for that case.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

from . import storing
from .builder import Builder, Value, type_of
from .loop_text import WEIGHTS
from .machine import ATTRIBUTES, NONE, WITH_CARE, Code, cached, levels, to_object
from .maths import (
    angles,
    division,
    entropy,
    exponential,
    logarithm,
    normal,
    powers,
    short,
    single,
    special,
)

Function: TypeAlias = Callable[..., Value]

FUNCTIONS: dict[str, Function] = special.FUNCTIONS | {
    f.__name__: f
    for f in (
        *(exponential.exp, exponential.exp2, exponential.expm1, exponential.sigmoid),
        *(exponential.sinh, exponential.cosh, exponential.tanh),
        *(exponential.sigmoid_slope, exponential.tanh_slope),
        *(logarithm.log, logarithm.log2, logarithm.log10, logarithm.log1p),
        *(logarithm.log1p_of_part, logarithm.log_hypot),
        *(logarithm.softplus, logarithm.logaddexp, logarithm.logaddexp2),
        *(logarithm.arcsinh, logarithm.arccosh, logarithm.arctanh),
        *(angles.sin, angles.cos, angles.tan, angles.arcsin, angles.arccos),
        *(angles.arctan, angles.arctan2),
        *(normal.erf, normal.erfc, normal.ndtr),
        *(entropy.xlogy, entropy.xlog1py, entropy.entr, entropy.rel_entr, entropy.kl_div),
        *(entropy.logit, entropy.log1mexp, entropy.exprel, entropy.cosm1),
        *(powers.power, powers.log_high, powers.log_low, powers.power_by_log),
        *(powers.cbrt, division.hypot, division.fmod),
    )
}
SHORT: dict[str, Function] = {"hypot": short.hypot}
"""Functions that take fewer operations in float64 where the result is a float32."""
SINGLE = single.FUNCTIONS
"""Functions that are computed in float32."""


@cache
def define(full: str) -> str:
    """The module of a function, such as `exp.f64x8`."""
    name, kind, width = parts(full)
    if name == storing.ROUTINE:
        x = type_of(kind, width)
        return module(f"define void @{full}({x} %x, ptr %p, i64 %n)", storing.routine(kind, width))
    if name == storing.LOADING:
        x = type_of(kind, width)
        return module(f"define {x} @{full}(ptr %p, i64 %n)", storing.loading(kind, width))
    b = Builder(width)
    params = [Value(f"%x{i}", kind, width) for i in range(arity(name))]
    if kind == "f32" and name in SINGLE:
        y = SINGLE[name](b, *params)
    else:
        function = (SHORT if kind == "f32" else {}).get(name, FUNCTIONS[name])
        y = function(b, *[b.convert("fpext", x, "f64") for x in params])
        y = b.convert("fptrunc", y, kind)
    given = ", ".join([x.typed for x in params])
    head = f"define {y.type} @{full}({given})"
    b.do(f"ret {y.typed}")
    return module(head, b)


def parts(full: str) -> tuple[str, str, int]:
    """The name of a function, the kind of its values, and how many there are side by side."""
    name, rest = full.split(".")
    kind, width = rest.split("x")
    return name, kind, int(width)


def arity(name: str) -> int:
    """How many operands a function has."""
    return len(inspect.signature(FUNCTIONS[name]).parameters) - 1


@cached
def function(full: str, level: str, effort: int) -> Code:
    """The machine code of a function."""
    text = define(full)
    return Code(to_object(text, level, effort), full, needed=special.needed(text))


def is_missing(name: str) -> bool:
    """Whether a function is one of SciPy's that it does not offer."""
    theirs = FUNCTIONS.get(name) is special.FUNCTIONS.get(name)
    return name in special.FUNCTIONS and theirs and special.address(name) is None


def module(head: str, b: Builder) -> str:
    """The text of a module with one function, which ends with what the builder wrote last.

    `head` declares it: `define i64 @kernel(ptr %table)`.
    """
    lines = [f"{head} #0 {{", "entry:", *b.lines[0], *b.signals.end, "}", *b.outlined]
    for full in b.used_functions:
        name, kind, width = parts(full)
        vector = type_of(kind, width)
        lines.append(f"declare {vector} @{full}({', '.join([vector] * arity(name))}) #0")
    return "\n".join([*lines, *b.declared.values(), WEIGHTS, ATTRIBUTES, ""])


CALLED = re.compile(r"^declare [^@]* @([a-z0-9_]+\.[fi]\d+x\d+)\(", re.MULTILINE)
"""Our own functions in a module; those of LLVM have names of their own."""


def compiled(
    text: str,
    *names: str,
    level: str | None = None,
    needed: Mapping[str, int] = NONE,
    effort: int = WITH_CARE,
) -> Code:
    """A module of IR as machine code; `names` are the functions to be called from outside.

    It may call our own functions, and those `needed`, by their addresses.
    """
    level = level or levels()[0]
    own = {full: function(full, level, effort)[full] for full in CALLED.findall(text)}
    return Code(to_object(text, level, effort), *names, needed=own | {**needed})
