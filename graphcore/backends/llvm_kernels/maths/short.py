"""Functions of float32 that are computed in float64: of squares, and of large angles."""

from __future__ import annotations

from graphcore.backends.llvm_kernels.builder import Builder, Value, real

from . import floats as fp
from .angles import is_odd, reduced, signed

SINE = (
    *(-0.16666666641450512, 0.008333329364569727),
    *(-0.00019839327684547598, 2.7182411169712865e-06),
)
COSINE = (0.04166664677352112, -0.0013887362172207798, 2.44377760491228e-05)


def hypot(b: Builder, x: Value, y: Value) -> Value:
    """Squares of float32 are floats throughout."""
    found = b.call("sqrt", fp.fma(b, x, x, fp.mul(b, y, y)))
    endless = b.op("or", fp.equal(b, fp.fabs(b, x), fp.INF), fp.equal(b, fp.fabs(b, y), fp.INF))
    return b.select(endless, fp.INF, found)


def parts(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """The quarter turns in `x`, and the sine and cosine of the remainder."""
    n, rest = reduced(b, x)
    z = fp.mul(b, rest.high, rest.high)
    top = fp.fma(b, fp.mul(b, rest.high, z), fp.polynomial(b, z, *SINE), rest.high)
    half = fp.fma(b, z, real(-0.5), real(1.0))
    return n, top, fp.fma(b, fp.mul(b, z, z), fp.polynomial(b, z, *COSINE), half)


def sin(b: Builder, x: Value) -> Value:
    n, s, c = parts(b, x)
    return finite(b, x, signed(b, b.select(is_odd(b, n), c, s), n, 0))


def cos(b: Builder, x: Value) -> Value:
    n, s, c = parts(b, x)
    return finite(b, x, signed(b, b.select(is_odd(b, n), s, c), n, 1))


def tan(b: Builder, x: Value) -> Value:
    n, s, c = parts(b, x)
    odd = is_odd(b, n)
    return finite(b, x, fp.div(b, b.select(odd, b.negative(c), s), b.select(odd, s, c)))


def finite(b: Builder, x: Value, y: Value) -> Value:
    """`y`, but nan where `x` is infinite or nan."""
    return b.select(fp.less(b, fp.fabs(b, x), fp.INF), y, fp.NAN)
