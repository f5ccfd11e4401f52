"""The largest error of a function of float32 over all its bit patterns, in machine code itself.

The exact value is that of the function of float64, which test_functions.py holds to two units in
its own last place: a 2^28th of one of float32.
"""

from __future__ import annotations

import ctypes

import numpy as np

from graphcore.backends.llvm_kernels import elementary
from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, lanes, real

WIDTH = 16
PATTERNS = 2**32
UP_TO_1 = {"log1p_of_part": 0x3F80_0000}
"""The functions that take numbers from 0 to 1 alone, whose patterns are the first ones."""


def rated(b: Builder, found: Value, exact: Value) -> Value:
    """How many units in the last place of float32 apart; infinite where nan or a sign differs.

    What overflows counts as 2^128, the float that would be next.
    """
    largest, minus = real(2.0**128), real(-(2.0**128))
    near = lambda x: b.select(
        b.op("fcmp olt", x, minus), minus, b.select(b.op("fcmp ogt", x, largest), largest, x)
    )
    bits = b.convert("bitcast", exact, "i64")
    exponent = b.op("and", bits, integer(0x7FF << 52))
    exponent = b.call("smax", exponent, integer((1023 - 126) << 52))
    exponent = b.call("smin", exponent, integer((1023 + 127) << 52))
    unit = b.convert("bitcast", b.op("sub", exponent, integer(23 << 52)), "f64")
    wide = b.convert("fpext", found, "f64")
    apart = b.call("fabs", b.op("fsub", near(wide), near(exact)))
    apart = b.op("fdiv", apart, unit)
    unknown = [b.op("fcmp uno", x, x) for x in (wide, exact)]
    sign = b.op("xor", b.convert("bitcast", wide, "i64"), bits)
    turned = b.op("icmp slt", sign, integer(0))
    wrong = b.select(b.op("and", *unknown), real(0.0), real(np.inf))
    apart = b.select(turned, real(np.inf), apart)
    return b.select(b.op("or", *unknown), wrong, apart)


def scan(name: str, level: str | None = None) -> elementary.Code:
    """A function of the first and last pattern: the largest error in each lane, and where."""
    b = Builder(WIDTH)
    assert elementary.arity(name) == 1, f"{name} has several operands"

    def body(i: Value, most: Value, at: Value) -> list[Value]:
        numbers = lanes(*range(WIDTH), kind="i32")
        bits = b.op("add", b.convert("trunc", i, "i32"), numbers)
        x = b.convert("bitcast", bits, "f32")
        found = b.function(name, x)
        apart = rated(b, found, b.function(name, b.convert("fpext", x, "f64")))
        more = b.op("fcmp ogt", apart, most)
        return [b.select(more, apart, most), b.select(more, bits, at)]

    begun = [b.widen(real(0.0)), b.widen(integer(0, "i32"))]
    most, at = b.loop(Value("%start", "i64"), Value("%stop", "i64"), WIDTH, begun, body)
    b.do(f"store {most.typed}, ptr %most, align 1")
    b.do(f"store {at.typed}, ptr %at, align 1")
    b.do("ret void")
    head = "define void @kernel(i64 %start, i64 %stop, ptr %most, ptr %at)"
    return elementary.compiled(elementary.module(head, b), "kernel", level=level)


def worst(name: str, step: int = 1, near: float | None = None) -> tuple[float, float]:
    """The largest error over every `step`-th block of 2^16 patterns, or in that of a number.

    With it comes where it is.
    """
    code, block = scan(name), 2**16
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 2)(code["kernel"])
    starts = range(0, UP_TO_1.get(name, PATTERNS), block * step)
    if near is not None:
        starts = range(int(np.float32(near).view(np.uint32)) & -block, PATTERNS, PATTERNS)
    found = 0.0, 0.0
    for start in starts:
        most, at = np.empty(WIDTH), np.empty(WIDTH, np.uint32)
        call(start, start + block, most.ctypes.data, at.ctypes.data)
        lane = int(most.argmax())
        if most[lane] > found[0]:
            found = float(most[lane]), float(at.view(np.float32)[lane])
    return found
