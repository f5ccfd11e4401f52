"""What each elementwise function of one or two operands is, in numbers of any precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import scipy.special

Number = Any
Function = Callable[..., Number]


def power(x: Number, y: Number) -> Number:
    return mp.power(x, y)


def logaddexp(x: Number, y: Number) -> Number:
    """log(e^x + e^y)"""
    return max(x, y) + mp.log1p(mp.exp(-abs(x - y)))


def logaddexp2(x: Number, y: Number) -> Number:
    """log2(2^x + 2^y)"""
    return max(x, y) + mp.log1p(mp.power(2, -abs(x - y))) / mp.log(2)


def softplus(x: Number) -> Number:
    return logaddexp(x, mp.mpf(0))


def sigmoid(x: Number) -> Number:
    e = mp.exp(-abs(x))
    return (e if x < 0 else 1) / (1 + e)


def arctan2(y: Number, x: Number) -> Number:
    return mp.atan2(y, x)


def remainder(x: Number, y: Number) -> Number:
    return x - y * mp.floor(x / y)


def fmod(x: Number, y: Number) -> Number:
    q = x / y
    return x - y * (mp.floor(q) if q > 0 else mp.ceil(q))


def xlogy(x: Number, y: Number) -> Number:
    return x * mp.log(y) if x or y else mp.mpf(0)


def xlog1py(x: Number, y: Number) -> Number:
    return x * mp.log1p(y)


def exprel(x: Number) -> Number:
    return mp.expm1(x) / x if x else mp.mpf(1)


def cosm1(x: Number) -> Number:
    return -2 * mp.sin(x / 2) ** 2


def rel_entr(x: Number, y: Number) -> Number:
    if x < 0 or y < 0:
        raise ValueError("outside")
    return x * mp.log(x / y)


def kl_div(x: Number, y: Number) -> Number:
    if x < 0 or y < 0:
        raise ValueError("outside")
    return x * mp.log(x / y) - x + y


def erfcx(x: Number) -> Number:
    return mp.exp(x * x) * mp.erfc(x)


def dawsn(x: Number) -> Number:
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def ndtr(x: Number) -> Number:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def log_ndtr(x: Number) -> Number:
    return mp.log(ndtr(x)) if x < 1 else mp.log1p(-ndtr(-x))


def root(f: Function, slope: Function, start: Number) -> Number:
    """Where f is 0, by Newton's method."""
    z = mp.mpf(start)
    for _ in range(60):
        step = f(z) / slope(z)
        z -= step
        if abs(step) <= abs(z) * mp.mpf(2) ** (-mp.mp.prec // 2 - 8):
            return z
    raise ValueError("no root")


def density(z: Number) -> Number:
    return mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)


def near(f: Function, slope: Function, guess: Function, *at: Number) -> Number:
    start = guess(*[float(x) for x in at])
    if not abs(start) < 1e300 or start == 0:
        raise ValueError("no start")
    return root(f, slope, start)


def erfinv(x: Number) -> Number:
    if x == 0:
        return x
    return near(
        lambda z: mp.erfc(z) - (1 - x) if x > 0 else mp.erfc(-z) - (1 + x),
        lambda z: (-1 if x > 0 else 1) * 2 / mp.sqrt(mp.pi) * mp.exp(-z * z),
        scipy.special.erfinv,
        x,
    )


def erfcinv(x: Number) -> Number:
    if x == 1:
        return mp.mpf(0)
    return near(
        lambda z: mp.erfc(z) - x if x < 1 else mp.erfc(-z) - (2 - x),
        lambda z: (-1 if x < 1 else 1) * 2 / mp.sqrt(mp.pi) * mp.exp(-z * z),
        scipy.special.erfcinv,
        x,
    )


def ndtri(p: Number) -> Number:
    return -mp.sqrt(2) * erfcinv(2 * p)


def ndtri_exp(y: Number) -> Number:
    return near(
        lambda z: log_ndtr(z) - y,
        lambda z: density(z) / ndtr(z),
        scipy.special.ndtri_exp,
        y,
    )


def gammaln(x: Number) -> Number:
    return mp.log(abs(mp.gamma(x))) if x < 20 else mp.loggamma(x).real


def loggamma(x: Number) -> Number:
    if x <= 0:
        raise ValueError("complex")
    return gammaln(x)


def poch(x: Number, m: Number) -> Number:
    return mp.gammaprod([x + m], [x])


def binom(n: Number, k: Number) -> Number:
    return mp.gammaprod([n + 1], [k + 1, n - k + 1])


def beta(a: Number, b: Number) -> Number:
    return mp.gammaprod([a, b], [a + b])


def betaln(a: Number, b: Number) -> Number:
    if a > 0 and b > 0:
        return gammaln(a) + gammaln(b) - gammaln(a + b)
    return mp.log(abs(beta(a, b)))


def gammainc(a: Number, x: Number) -> Number:
    if a <= 0 or x < 0:
        raise ValueError("outside")
    return mp.gammainc(a, 0, x, regularized=True)


def gammaincc(a: Number, x: Number) -> Number:
    if a <= 0 or x < 0:
        raise ValueError("outside")
    return mp.gammainc(a, x, regularized=True)


def gamma_density(a: Number, x: Number) -> Number:
    return mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a).real)


def gammaincinv(a: Number, p: Number) -> Number:
    return near(
        lambda z: gammainc(a, z) - p,
        lambda z: gamma_density(a, z),
        scipy.special.gammaincinv,
        a,
        p,
    )


def gammainccinv(a: Number, p: Number) -> Number:
    return near(
        lambda z: gammainc(a, z) - (1 - p),
        lambda z: gamma_density(a, z),
        scipy.special.gammainccinv,
        a,
        p,
    )


def betainc(a: Number, b: Number, x: Number) -> Number:
    return mp.betainc(a, b, 0, x, regularized=True)


def betaincc(a: Number, b: Number, x: Number) -> Number:
    return mp.betainc(a, b, x, 1, regularized=True)


def betaincinv(a: Number, b: Number, p: Number) -> Number:
    return near(
        lambda z: betainc(a, b, z) - p,
        lambda z: z ** (a - 1) * (1 - z) ** (b - 1) / mp.beta(a, b),
        scipy.special.betaincinv,
        a,
        b,
        p,
    )


def betainccinv(a: Number, b: Number, p: Number) -> Number:
    return 1 - betaincinv(b, a, p)


def owens_t(h: Number, a: Number) -> Number:
    """(1/2 pi) times the integral over t from 0 to a of e^(-h^2 (1 + t^2) / 2) / (1 + t^2)"""
    return mp.quad(
        lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a], maxdegree=8
    ) / (2 * mp.pi)


def zeta(n: Number, x: Number) -> Number:
    if n <= 1 or x <= 0:
        raise ValueError("outside")
    return mp.zeta(n, x)


def digamma(x: Number) -> Number:
    return mp.digamma(x)


def scaled(f: Function, sign: int) -> Function:
    return lambda *xs: f(*xs) * mp.exp(sign * (abs(xs[-1]) if sign < 0 else xs[-1]))


def bessel_k(n: Number, x: Number) -> Number:
    if x <= 0:
        raise ValueError("outside")
    return mp.besselk(n, x)


def bessel_y(n: Number, x: Number) -> Number:
    if x <= 0:
        raise ValueError("outside")
    return mp.bessely(n, x)


def order(f: Function, n: int) -> Function:
    return lambda x: f(mp.mpf(n), x)


def expn(n: Number, x: Number) -> Number:
    if x < 0 or n != int(n) or n < 0:
        raise ValueError("outside")
    return mp.expint(n, x)


def spence(x: Number) -> Number:
    return mp.polylog(2, 1 - x)


def log1mexp(x: Number) -> Number:
    if x >= 0:
        raise ValueError("outside")
    return mp.log(-mp.expm1(x))


def logit(x: Number) -> Number:
    return mp.log(x) - mp.log1p(-x)


def pseudo_huber(d: Number, r: Number) -> Number:
    if d < 0:
        raise ValueError("infinite")
    return d * d * (mp.sqrt(1 + (r / d) ** 2) - 1)


def entr(x: Number) -> Number:
    return -x * mp.log(x)


MEANING: dict[str, Function] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "remainder": remainder,
    "fmod": fmod,
    "power": power,
    "negative": lambda x: -x,
    "absolute": abs,
    "square": lambda x: x * x,
    "sqrt": mp.sqrt,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "reciprocal": lambda x: 1 / x,
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "expm1": mp.expm1,
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": lambda x: mp.log(x) / mp.log(10),
    "log1p": mp.log1p,
    "logaddexp": logaddexp,
    "logaddexp2": logaddexp2,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "arctan2": arctan2,
    "hypot": lambda x, y: mp.sqrt(x * x + y * y),
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "copysign": lambda x, y: abs(x) if y >= 0 else -abs(x),
    "maximum": max,
    "minimum": min,
    "fmax": max,
    "fmin": min,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "log1mexp": log1mexp,
    "logit": logit,
    "xlogy": xlogy,
    "xlog1py": xlog1py,
    "entr": entr,
    "rel_entr": rel_entr,
    "kl_div": kl_div,
    "exprel": exprel,
    "cosm1": cosm1,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "erfcx": erfcx,
    "erfinv": erfinv,
    "erfcinv": erfcinv,
    "dawsn": dawsn,
    "ndtr": ndtr,
    "log_ndtr": log_ndtr,
    "ndtri": ndtri,
    "ndtri_exp": ndtri_exp,
    "owens_t": owens_t,
    "gamma": mp.gamma,
    "rgamma": mp.rgamma,
    "gammaln": gammaln,
    "loggamma": loggamma,
    "digamma": digamma,
    "zeta": zeta,
    "poch": poch,
    "binom": binom,
    "beta": beta,
    "betaln": betaln,
    "gammainc": gammainc,
    "gammaincc": gammaincc,
    "gammaincinv": gammaincinv,
    "gammainccinv": gammainccinv,
    "betainc": betainc,
    "betaincc": betaincc,
    "betaincinv": betaincinv,
    "betainccinv": betainccinv,
    "j0": order(mp.besselj, 0),
    "j1": order(mp.besselj, 1),
    "jv": mp.besselj,
    "y0": order(bessel_y, 0),
    "y1": order(bessel_y, 1),
    "yv": bessel_y,
    "i0": order(mp.besseli, 0),
    "i1": order(mp.besseli, 1),
    "iv": mp.besseli,
    "i0e": scaled(order(mp.besseli, 0), -1),
    "i1e": scaled(order(mp.besseli, 1), -1),
    "ive": scaled(mp.besseli, -1),
    "k0": order(bessel_k, 0),
    "k1": order(bessel_k, 1),
    "kv": bessel_k,
    "k0e": scaled(order(bessel_k, 0), 1),
    "k1e": scaled(order(bessel_k, 1), 1),
    "kve": scaled(bessel_k, 1),
    "exp1": lambda x: mp.e1(x),
    "expi": lambda x: mp.ei(x),
    "expn": expn,
    "spence": spence,
    "ellipk": mp.ellipk,
    "ellipe": mp.ellipe,
    "log_expit": lambda x: -softplus(-x),
    "pseudo_huber": pseudo_huber,
}
"""By the names of ops, or of functions composed of them."""
