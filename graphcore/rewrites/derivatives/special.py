"""PARTIALS of the special functions, all in terms of one another, so that any order follows.

Where a formula cancels or overflows, another takes over that does not. Formulas are those of the
Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphcore.ir import Node, Op, full_like
from graphcore.ops import elementwise as e
from graphcore.ops import special as s
from graphcore.rewrites.plain import equals
from graphcore.rewrites.plain import where as choose

from .gammas import beta_partials, binom_partials, digamma_difference, poch_partials, trigamma
from .partials import Partials, is_complex, one_from
from .series import dawsn_slope, far_log_ndtr_slope, is_far, scaled_bessel_slope

PI = math.pi
ROOT_PI, ROOT_2, ROOT_2PI = math.sqrt(PI), math.sqrt(2), math.sqrt(2 * PI)


def at(function: Op, numbers: Sequence[float], *xs: Node) -> Node:
    """`function` of numbers and then of operands."""
    return function(*[full_like(xs[0], number) for number in numbers], *xs)


def nonzero_pair(x: Node, y: Node) -> Node:
    """`y`, and 1 where `x` and `y` are both 0."""
    return choose(e.logical_and(equals(x, 0), equals(y, 0)), 1, y)


def ratio(x: Node, y: Node) -> Node:
    """x / y, and 0 for 0 / 0"""
    return x / nonzero_pair(x, y)


def log_ratio(x: Node, y: Node) -> Node:
    """log(x) - log(y), and -inf for 0 / 0"""
    return e.log(x) - e.log(nonzero_pair(x, y))


def kl_div_partials(z: Node, x: Node, y: Node) -> tuple[Node, Node]:
    """log(x / y) and 1 - x / y, by the difference of x and y where these are near"""
    y = nonzero_pair(x, y)
    rest = x - y
    near = e.less(e.absolute(rest), 0.5 * e.absolute(y))
    part = choose(near, rest, 0) / choose(near, y, 1)
    return choose(near, e.log1p(part), log_ratio(x, y)), choose(near, -part, 1 - x / y)


def erfcx_slope(z: Node, x: Node) -> Node:
    """2 x z - 2 / sqrt(pi); where the two cancel their asymptotic series in u = 1 / (2 x^2)"""
    far = is_far(x, 10, 4)
    u = 0.5 * e.square(1 / choose(far, x, 10))
    series = full_like(x, 1)
    for odd in range(27, 1, -2):
        series = 1 - odd * u * series
    return 2 / ROOT_PI * choose(far, -u * series, ROOT_PI * x * z - 1)


def log_ndtr_slope(z: Node, x: Node) -> Node:
    """density / ndtr(x), where both underflow sqrt(2 / pi) / erfcx(-x / sqrt(2))"""
    below = e.less(x, full_like(x, 0))
    left = ROOT_2 / ROOT_PI / s.erfcx(choose(below, e.maximum(x, full_like(x, -40)), 0) / -ROOT_2)
    right = e.exp(-0.5 * e.square(choose(below, 0, x)) - choose(below, 0, z)) / ROOT_2PI
    return far_log_ndtr_slope(x, choose(below, left, right))


def rgamma_slope(z: Node, x: Node) -> Node:
    """-digamma(x) / gamma(x); by reflection below 1/2, where gamma has its poles"""
    y = 1 - x
    reflected = s.gamma(y) * e.cos(PI * x) - s.digamma(y) * z
    return choose(e.less(x, full_like(x, 0.5)), reflected, -s.digamma(x) * z)


def spence_slope(x: Node) -> Node:
    """log(x) / (1 - x), near 1 the hypergeometric function it is"""
    near = e.less(e.absolute(x - 1), full_like(x, 0.5))
    y = choose(near, 1 - x, 0)
    return choose(near, -at(s.hyp2f1, [1, 1, 2], y), e.log(x) / (1 - choose(near, 0, x)))


def expn_slope(n: Node, x: Node) -> Node:
    """-E[n-1](x), where E[-1] is elementary"""
    least = e.exp(-x) * (1 + 1 / x) / x
    lower = s.expn(e.maximum(n - 1, full_like(n, 0)), x)
    return -one_from(x, 0) * choose(e.greater_equal(n, full_like(n, 1)), lower, least)


def cube(x: Node) -> Node:
    """x^3"""
    return x * e.square(x)


def pseudo_huber_curves(d: Node, r: Node) -> tuple[Node, Node]:
    """-(2 + c) (1 - c)^2 and s^3, for the cosine c and the sine s of the angle of (d, r)"""
    c, s_ = s.cosine(d, r), s.cosine(r, d)
    return -(2 + c) * e.square(e.square(s_) / (1 + c)), cube(s_)


def order_slope(function: Op, n: Node, x: Node, sign: int) -> Node:
    """(f[n-1](x) + sign f[n+1](x)) / 2, as the Bessel functions have it (DLMF 10.6, 10.29)"""
    return 0.5 * (function(n - 1, x) + sign * function(n + 1, x))


def inverse(density: Node, *by: Node) -> tuple[Node, ...]:
    """Of z with f(a, z) = p, given df/dz and df/da: -(df/da) / (df/dz) and 1 / (df/dz)"""
    return *[-ratio(slope, density) for slope in by], 1 / density


def complement(*partials: Node) -> tuple[Node, ...]:
    """The same as a function of 1 - p."""
    *by, last = partials
    return *by, -last


def digamma_step_partials(z: Node, n: Node, x: Node, m: Node) -> tuple[Node | None, ...]:
    """The same of the next order, and the derivative at x + m: (-1)^n (n+1)! zeta(n+2, x+m)"""
    order = int(n.attrs["value"].item())
    factor = (-1) ** order * math.factorial(order + 1)
    slope = factor * at(s.zeta, [order + 2], x + m)
    return None, s.digamma_step(full_like(n, order + 1), x, m), slope


def gamma_partials(a: Node, x: Node) -> tuple[Node, Node]:
    """The derivatives of gammainc by both operands."""
    return at(s.gammainc_by, [1], a, x), one_from(a, 0) * at(s.gamma_density, [0], a, x)


def betainc_partials(a: Node, b: Node, x: Node) -> tuple[Node, Node, Node]:
    """The derivatives of betainc by its three operands."""
    density = at(s.beta_density, [0, 0, 0, 0], a, b, x)
    return at(s.betainc_by, [1, 0], a, b, x), at(s.betainc_by, [0, 1], a, b, x), density


def gammaincinv_partials(z: Node, a: Node) -> tuple[Node, ...]:
    by, density = gamma_partials(a, z)
    return inverse(density, by)


def betaincinv_partials(z: Node, rest: Node, a: Node, b: Node) -> tuple[Node, ...]:
    """Those of z, and above 1/2 by its `rest` 1 - z, which has digits that z has not

    rest = betaincinv(b, a, 1 - p), so that its partials by b, a and 1 - p are those of -z by b, a
    and of z by p.
    """
    high = e.greater(z, full_like(z, 0.5))
    first, second = choose(high, b, a), choose(high, a, b)
    *by, density = betainc_partials(first, second, choose(high, rest, z))
    by_first, by_second, by_p = inverse(density, *by)
    return choose(high, -by_second, by_first), choose(high, -by_first, by_second), by_p


def negate_all(partials: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(-partial for partial in partials)


SPECIAL: dict[Op, Partials] = {
    s.sigmoid: lambda z, x: (z * (1 - z) if is_complex(x) else s.sigmoid_slope(x, z),),
    s.softplus: lambda z, x: (s.sigmoid(x),),
    s.log1mexp: lambda z, x: (-e.exp(x - z),),
    s.logit: lambda z, x: (one_from(x * (1 - x), 0) / (x * (1 - x)),),
    s.xlogy: lambda z, x, y: (e.log(y), ratio(x, y) * one_from(y, 0)),
    s.xlog1py: lambda z, x, y: (e.log1p(y), ratio(x, 1 + y) * one_from(y, -1)),
    s.entr: lambda z, x: (-e.log(x) - 1,),
    s.rel_entr: lambda z, x, y: (log_ratio(x, y) + 1, -ratio(x, y)),
    s.kl_div: kl_div_partials,
    s.exprel: lambda z, x: (0.5 * at(s.hyp1f1, [2, 3], x),),
    s.cosm1: lambda z, x: (-e.sin(x),),
    # The error function and the normal distribution (DLMF 7)
    s.erf: lambda z, x: (2 / ROOT_PI * e.exp(-e.square(x)),),
    s.erfc: lambda z, x: (-2 / ROOT_PI * e.exp(-e.square(x)),),
    s.erfcx: lambda z, x: (erfcx_slope(z, x),),
    s.erfinv: lambda z, x: (ROOT_PI / 2 * e.exp(e.square(z)),),
    s.erfcinv: lambda z, x: (-ROOT_PI / 2 * e.exp(e.square(z)),),
    s.dawsn: lambda z, x: (dawsn_slope(x, at(s.hyp1f1, [1, 0.5], -e.square(x))),),
    s.ndtr: lambda z, x: (e.exp(-0.5 * e.square(x)) / ROOT_2PI,),
    s.log_ndtr: lambda z, x: (log_ndtr_slope(z, x),),
    s.ndtri: lambda z, x: (ROOT_2PI * e.exp(0.5 * e.square(z)),),
    s.ndtri_exp: lambda z, x: (ROOT_PI / ROOT_2 * s.erfcx(z / -ROOT_2),),
    s.owens_t: lambda z, h, a: (
        s.erf(a * h / ROOT_2) * e.exp(-0.5 * e.square(h)) / (-2 * ROOT_2PI),
        e.exp(-0.5 * e.square(h) * (1 + e.square(a))) / (2 * PI * (1 + e.square(a))),
    ),
    # The gamma function (DLMF 5, 8)
    s.gamma: lambda z, x: (z * s.digamma(x),),
    s.rgamma: lambda z, x: (rgamma_slope(z, x),),
    s.gammaln: lambda z, x: (s.digamma(x),),
    s.loggamma: lambda z, x: (one_from(x, 0) * s.digamma(x),),
    s.gammasgn: lambda z, x: (None,),
    s.digamma: lambda z, x: (trigamma(x),),
    s.zeta: lambda z, n, x: (None, -n * s.zeta(n + 1, x)),
    s.digamma_step: digamma_step_partials,
    s.poch: poch_partials,
    s.binom: binom_partials,
    s.beta: beta_partials,
    s.betaln: lambda z, a, b: (
        -digamma_difference(a, b),
        -digamma_difference(b, a),
    ),
    s.gammainc: lambda z, a, x: gamma_partials(a, x),
    s.gammaincc: lambda z, a, x: negate_all(gamma_partials(a, x)),
    s.gammaincinv: lambda z, a, p: gammaincinv_partials(z, a),
    s.gammainccinv: lambda z, a, p: complement(*gammaincinv_partials(z, a)),
    s.gammainc_by: lambda z, n, a, x: (None, s.gammainc_by(n + 1, a, x), s.gamma_density(n, a, x)),
    s.gamma_density: lambda z, n, a, x: (
        *(None, s.gamma_density(n + 1, a, x)),
        s.gamma_density(n, a - 1, x) - z,
    ),
    s.betainc: lambda z, a, b, x: betainc_partials(a, b, x),
    s.betaincc: lambda z, a, b, x: negate_all(betainc_partials(a, b, x)),
    s.betaincinv: lambda z, a, b, p: betaincinv_partials(z, s.betainccinv(b, a, p), a, b),
    s.betainccinv: lambda z, a, b, p: complement(
        *betaincinv_partials(z, s.betaincinv(b, a, p), a, b)
    ),
    s.betainc_by: lambda z, m, n, a, b, x: (
        *(None, None, s.betainc_by(m + 1, n, a, b, x), s.betainc_by(m, n + 1, a, b, x)),
        s.beta_density(m, n, full_like(m, 0), full_like(n, 0), a, b, x),
    ),
    s.beta_density: lambda z, m, n, i, j, a, b, x: (
        *(None, None, None, None),
        *(s.beta_density(m + 1, n, i, j, a, b, x), s.beta_density(m, n + 1, i, j, a, b, x)),
        s.beta_density(m, n, i + 1, j, a, b, x) - s.beta_density(m, n, i, j + 1, a, b, x),
    ),
    # Bessel functions (DLMF 10)
    s.j0: lambda z, x: (-s.j1(x),),
    s.j1: lambda z, x: (0.5 * (s.j0(x) - at(s.jv, [2], x)),),
    s.jv: lambda z, n, x: (None, order_slope(s.jv, n, x, -1)),
    s.y0: lambda z, x: (-s.y1(x),),
    s.y1: lambda z, x: (0.5 * (s.y0(x) - at(s.yv, [2], x)),),
    s.yv: lambda z, n, x: (None, order_slope(s.yv, n, x, -1)),
    s.i0: lambda z, x: (s.i1(x),),
    s.i1: lambda z, x: (0.5 * (s.i0(x) + at(s.iv, [2], x)),),
    s.iv: lambda z, n, x: (None, order_slope(s.iv, n, x, 1)),
    s.i0e: lambda z, x: (scaled_bessel_slope(z, x, 0, -1, s.i1e(x) - e.sign(x) * z),),
    s.i1e: lambda z, x: (
        scaled_bessel_slope(z, x, 1, -1, 0.5 * (s.i0e(x) + at(s.ive, [2], x)) - e.sign(x) * z),
    ),
    s.ive: lambda z, n, x: (None, order_slope(s.ive, n, x, 1) - e.sign(x) * z),
    s.k0: lambda z, x: (-s.k1(x),),
    s.k1: lambda z, x: (-0.5 * (s.k0(x) + at(s.kv, [2], x)),),
    s.kv: lambda z, n, x: (None, -order_slope(s.kv, n, x, 1)),
    s.k0e: lambda z, x: (scaled_bessel_slope(z, x, 0, 1, z - s.k1e(x)),),
    s.k1e: lambda z, x: (
        scaled_bessel_slope(z, x, 1, 1, z - 0.5 * (s.k0e(x) + at(s.kve, [2], x))),
    ),
    s.kve: lambda z, n, x: (None, z - order_slope(s.kve, n, x, 1)),
    # Integrals and hypergeometric functions (DLMF 6, 13, 15, 19)
    s.exp1: lambda z, x: (-one_from(x, 0) * e.exp(-x) / x,),
    s.expi: lambda z, x: (e.exp(x) / x,),
    s.expn: lambda z, n, x: (None, expn_slope(n, x)),
    s.spence: lambda z, x: (spence_slope(x),),
    s.ellipk: lambda z, x: (PI / 8 * at(s.hyp2f1, [1.5, 1.5, 2], x),),
    s.ellipe: lambda z, x: (-PI / 8 * at(s.hyp2f1, [0.5, 1.5, 2], x),),
    s.pseudo_huber: lambda z, d, r: (s.pseudo_huber_by_delta(d, r), s.pseudo_huber_by_r(d, r)),
    s.pseudo_huber_by_delta: lambda z, d, r: pseudo_huber_curves(d, r),
    s.pseudo_huber_by_r: lambda z, d, r: (cube(s.cosine(r, d)), cube(s.cosine(d, r))),
    s.hyp1f1: lambda z, a, b, x: (None, None, a / b * s.hyp1f1(a + 1, b + 1, x)),
    s.hyp2f1: lambda z, a, b, c, x: (
        *(None, None, None),
        a * b / c * s.hyp2f1(a + 1, b + 1, c + 1, x),
    ),
}
