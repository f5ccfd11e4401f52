"""Integers as NumPy computes them, where the processor's instructions trap or are undefined.

Division by zero gives 0, the lowest integer over -1 is itself, and shifts by all bits or more leave
nothing but the sign.
"""

from __future__ import annotations

from collections.abc import Callable

from .builder import FALSE, TRUE, Builder, Value, integer
from .conversions import cast, is_unsigned


def constant_of(x: Value) -> int | None:
    """The value of an integer constant, or of each lane of one."""
    if x.text.startswith("splat"):
        x = Value(x.text.split()[-1].rstrip(")"), x.kind)
    return x.number


def divisor(b: Builder, y: Value) -> tuple[Value, Value, Value | None]:
    """A divisor that cannot trap, whether it was 0, and whether it was -1 (then 1 replaces it)."""
    known, signed = constant_of(y), not is_unsigned(y)
    if known is not None and known not in (0, -1):
        return y, FALSE, FALSE if signed else None
    none = b.op("icmp eq", y, integer(0, y.kind))
    minus = b.op("icmp eq", y, integer(-1, y.kind)) if signed else None
    wrong = none if minus is None else b.op("or", none, minus)
    return b.select(wrong, integer(1, y.kind), y), none, minus


def divided(b: Builder, x: Value, y: Value) -> Value:
    """x / y without its fraction; y is a divisor that cannot trap.

    No instruction divides lanes of integers. Floats with more digits than these do it exactly:
    where x / y is no integer, it is further from the next one than one part in x.
    """
    sign, bits = ("u" if is_unsigned(x) else "s"), int(x.kind[1:])
    if bits == 64 or not (x.wide or y.wide) or constant_of(y) is not None:
        return b.op(f"{sign}div", x, y)
    kind, whole = ("f64" if bits == 32 else "f32"), x.kind[0] + "32"
    ratio = b.op("fdiv", *[b.convert(f"{sign}itofp", v, kind) for v in b.alike(x, y)])
    return cast(b, b.convert(f"fpto{sign}i", ratio, whole), x.kind)


def rest_of(b: Builder, x: Value, y: Value) -> Value:
    """x - y * (x / y), of a divisor that cannot trap."""
    if constant_of(y) is not None:
        return b.op("urem" if is_unsigned(x) else "srem", x, y)
    return b.op("sub", x, b.op("mul", divided(b, x, y), y))


def unsigned(quotient: Callable[[Builder, Value, Value], Value]) -> Callable[..., Value]:
    """`divided` or `rest_of` of unsigned integers, 0 where the divisor is."""

    def rule(b: Builder, x: Value, y: Value) -> Value:
        safe, none, _ = divisor(b, y)
        return b.select(none, integer(0, x.kind), quotient(b, x, safe))

    return rule


def floor_divide(b: Builder, x: Value, y: Value) -> Value:
    safe, none, minus = divisor(b, y)
    assert minus is not None
    quotient = divided(b, x, safe)
    rest = b.op("sub", x, b.op("mul", quotient, safe))
    zero = integer(0, x.kind)
    other = b.op("xor", b.op("icmp slt", rest, zero), b.op("icmp slt", safe, zero))
    below = b.op("and", b.op("icmp ne", rest, zero), other)
    down = b.op("sub", quotient, cast(b, below, x.kind))
    found = b.select(minus, b.op("sub", zero, x), down)
    return b.select(none, zero, found)


def fmod(b: Builder, x: Value, y: Value) -> Value:
    safe, none, _ = divisor(b, y)
    return b.select(none, integer(0, x.kind), rest_of(b, x, safe))


def remainder(b: Builder, x: Value, y: Value) -> Value:
    rest, zero = fmod(b, x, y), integer(0, x.kind)
    other = b.op("xor", b.op("icmp slt", rest, zero), b.op("icmp slt", y, zero))
    moved = b.op("and", b.op("icmp ne", rest, zero), other)
    return b.select(moved, b.op("add", rest, y), rest)


def power(b: Builder, x: Value, n: Value) -> Value:
    """By squares; the exponent is unsigned, as a negative one is an error."""
    one = b.widen(integer(1, x.kind)) if x.wide or n.wide else integer(1, x.kind)
    x, n = b.alike(x, n)

    def test(n: Value, x: Value, y: Value) -> Value:
        return b.any_lane(b.op("icmp ne", n, integer(0, n.kind)))

    def body(n: Value, x: Value, y: Value) -> tuple[Value, ...]:
        odd = b.convert("trunc", n, "i1")
        y = b.select(odd, b.op("mul", y, x), y)
        return b.op("lshr", n, integer(1, n.kind)), b.op("mul", x, x), y

    return b.repeat([n, x, one], test, body)[2]


def known_power(b: Builder, x: Value, n: int) -> Value:
    """By squares, for an exponent known now, from 0 on."""
    found = integer(1, x.kind)
    while n:
        if n & 1:
            found = x if found.number == 1 else b.op("mul", found, x)
        n >>= 1
        if n:
            x = b.op("mul", x, x)
    return b.widen(found) if x.wide else found


def compare(signed: str, unsigned: str) -> Callable[[Builder, Value, Value], Value]:
    """A comparison, also of a signed integer with an unsigned one."""

    def rule(b: Builder, x: Value, y: Value) -> Value:
        if is_unsigned(x) == is_unsigned(y):
            return b.op(f"icmp {unsigned if is_unsigned(x) else signed}", x, y)
        minus = y if is_unsigned(x) else x
        negative = b.op("icmp slt", minus, integer(0, minus.kind))
        found = b.op(f"icmp {unsigned}", x, y._replace(kind=x.kind))
        below = signed in ("slt", "sle", "ne"), signed in ("sgt", "sge", "ne")
        return b.select(negative, TRUE if below[minus is y] else FALSE, found)

    return rule


def sign(b: Builder, x: Value) -> Value:
    zero = integer(0, x.kind)
    above, below = b.op("icmp sgt", x, zero), b.op("icmp slt", x, zero)
    return b.op("sub", cast(b, above, x.kind), cast(b, below, x.kind))


def left_shift(b: Builder, x: Value, n: Value) -> Value:
    bits = int(x.kind[1:])
    fits = b.op("icmp ult", n, integer(bits, n.kind))
    safe = b.select(fits, n, integer(0, n.kind))
    return b.select(fits, b.op("shl", x, safe), integer(0, x.kind))


def right_shift(b: Builder, x: Value, n: Value) -> Value:
    bits = int(x.kind[1:])
    fits = b.op("icmp ult", n, integer(bits, n.kind))
    if is_unsigned(x):
        shifted = b.op("lshr", x, b.select(fits, n, integer(0, n.kind)))
        return b.select(fits, shifted, integer(0, x.kind))
    return b.op("ashr", x, b.select(fits, n, integer(bits - 1, n.kind)))


def magnitude(b: Builder, x: Value) -> Value:
    if is_unsigned(x):
        return x
    return b.call("abs", x, flags="i1 false")._replace(kind=f"u{x.kind[1:]}")


def gcd(b: Builder, x: Value, y: Value) -> Value:
    """By Euclid's algorithm."""
    start = [magnitude(b, v) for v in b.alike(x, y)]

    def test(x: Value, y: Value) -> Value:
        return b.any_lane(b.op("icmp ne", y, integer(0, y.kind)))

    def body(x: Value, y: Value) -> tuple[Value, ...]:
        done = b.op("icmp eq", y, integer(0, y.kind))
        rest = rest_of(b, x, b.select(done, integer(1, y.kind), y))
        return b.select(done, x, y), b.select(done, y, rest)

    return b.repeat(start, test, body)[0]._replace(kind=x.kind)


def lcm(b: Builder, x: Value, y: Value) -> Value:
    common = gcd(b, x, y)
    whole = unsigned(divided)(b, magnitude(b, x), common._replace(kind=magnitude(b, x).kind))
    return b.op("mul", whole, magnitude(b, y))._replace(kind=x.kind)
