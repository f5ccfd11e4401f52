"""Minima and maxima in vector lanes, by integers that compare as the values do.

The larger of two floats takes some 20 cycles with its nans and signs of zero, and each waits for
the one before. Words are compared in one; that of nan lies behind all others.
"""

from __future__ import annotations

import numpy as np

from .builder import Builder, Value, integer, real

INFINITY = {"f64": 0x7FF << 52, "f32": 0xFF << 23}
"""The bits of infinity, for each kind of floats that has words."""


def compared(dtype: np.dtype, largest: bool) -> tuple[str, Value]:
    """The intrinsic that finds the extreme of words, and a word that changes none."""
    name, bits = "max" if largest else "min", 8 * dtype.itemsize
    if dtype.kind == "f":
        word = INFINITY[f"f{bits}"]
        return f"s{name}", integer(-word - 1 if largest else word, f"i{bits}")
    sign = "s" if dtype.kind == "i" else "u"
    limits = np.iinfo(dtype if dtype.kind in "iu" else np.uint8)
    start = int(limits.min if largest else limits.max)
    return f"{sign}{name}", integer(start, f"{'i' if sign == 's' else 'u'}{bits}")


def word_of(b: Builder, x: Value, largest: bool, zeros_alike: bool = False) -> Value:
    """The word of a value; one for both signs of zero where these are alike."""
    if x.kind == "i1":
        return b.convert("zext", x, "u8")
    if x.kind[0] != "f":
        return x
    if zeros_alike:
        x = b.op("fadd", x, real(0.0, x.kind))
    word = b.convert("bitcast", x, f"i{x.kind[1:]}")
    return b.select(b.op("fcmp uno", x, x), last(word, largest), flipped(b, word))


def value_of(b: Builder, word: Value) -> Value:
    """The float of a word; words of nan are nan."""
    return b.convert("bitcast", flipped(b, word), f"f{word.kind[1:]}")


def flipped(b: Builder, word: Value) -> Value:
    """All bits but the sign are flipped where that is set: the larger these are, the less is x."""
    negative = b.op("ashr", word, integer(int(word.kind[1:]) - 1, word.kind))
    return b.op("xor", word, b.op("and", negative, last(word, True)))


def last(word: Value, largest: bool) -> Value:
    """The word of nan."""
    most = (1 << int(word.kind[1:]) - 1) - 1
    return integer(most if largest else -most - 1, word.kind)
