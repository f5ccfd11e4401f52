"""PARTIALS of the special functions, all in terms of one another, so that any order follows.

Where a formula cancels or overflows, another takes over that does not. Formulas are those of the
Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphcore.ir.node import Node, full_like
from graphcore.ir.op import Op
from graphcore.ops.elementwise import (
    absolute,
    cos,
    exp,
    greater,
    greater_equal,
    less,
    log,
    log1p,
    logical_and,
    maximum,
    sign,
    sin,
    square,
)
from graphcore.ops.special import (
    beta,
    beta_density,
    betainc,
    betainc_by,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    binom,
    cosm1,
    dawsn,
    digamma,
    ellipe,
    ellipk,
    entr,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    exp1,
    expi,
    expn,
    exprel,
    gamma,
    gamma_density,
    gammainc,
    gammainc_by,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    gammasgn,
    hyp1f1,
    hyp2f1,
    i0,
    i0e,
    i1,
    i1e,
    iv,
    ive,
    j0,
    j1,
    jv,
    k0,
    k0e,
    k1,
    k1e,
    kl_div,
    kv,
    kve,
    log1mexp,
    log_ndtr,
    loggamma,
    logit,
    ndtr,
    ndtri,
    ndtri_exp,
    owens_t,
    poch,
    rel_entr,
    rgamma,
    sigmoid,
    softplus,
    spence,
    xlog1py,
    xlogy,
    y0,
    y1,
    yv,
    zeta,
)
from graphcore.rewrites.plain import equals
from graphcore.rewrites.plain import where as choose

from .partials import Partials

PI = math.pi
ROOT_PI, ROOT_2, ROOT_2PI = math.sqrt(PI), math.sqrt(2), math.sqrt(2 * PI)


def at(function: Op, numbers: Sequence[float], *xs: Node) -> Node:
    """`function` of numbers and then of operands."""
    return function(*[full_like(xs[0], number) for number in numbers], *xs)


def nonzero_pair(x: Node, y: Node) -> Node:
    """`y`, and 1 where `x` and `y` are both 0."""
    return choose(logical_and(equals(x, 0), equals(y, 0)), 1, y)


def ratio(x: Node, y: Node) -> Node:
    """x / y, and 0 for 0 / 0"""
    return x / nonzero_pair(x, y)


def log_ratio(x: Node, y: Node) -> Node:
    """log(x) - log(y), and -inf for 0 / 0"""
    return log(x) - log(nonzero_pair(x, y))


def erfcx_slope(z: Node, x: Node) -> Node:
    """2 x z - 2 / sqrt(pi); where the two cancel their asymptotic series in u = 1 / (2 x^2)"""
    far = greater(x, full_like(x, 10))
    u = 0.5 * square(1 / choose(far, x, 10))
    series = full_like(x, 1)
    for odd in range(27, 1, -2):
        series = 1 - odd * u * series
    return 2 / ROOT_PI * choose(far, -u * series, ROOT_PI * x * z - 1)


def log_ndtr_slope(z: Node, x: Node) -> Node:
    """density / ndtr(x), where both underflow sqrt(2 / pi) / erfcx(-x / sqrt(2))"""
    below = less(x, full_like(x, 0))
    left = ROOT_2 / ROOT_PI / erfcx(choose(below, x, 0) / -ROOT_2)
    return choose(below, left, exp(-0.5 * square(x) - z) / ROOT_2PI)


def rgamma_slope(z: Node, x: Node) -> Node:
    """-digamma(x) / gamma(x); by reflection below 1/2, where gamma has its poles"""
    y = 1 - x
    reflected = gamma(y) * cos(PI * x) - digamma(y) * z
    return choose(less(x, full_like(x, 0.5)), reflected, -digamma(x) * z)


def spence_slope(x: Node) -> Node:
    """log(x) / (1 - x), near 1 the hypergeometric function it is"""
    near = less(absolute(x - 1), full_like(x, 0.5))
    y = choose(near, 1 - x, 0)
    return choose(near, -at(hyp2f1, [1, 1, 2], y), log(x) / (1 - choose(near, 0, x)))


def expn_slope(n: Node, x: Node) -> Node:
    """-E[n-1](x), where E[-1] is elementary"""
    least = exp(-x) * (1 + 1 / x) / x
    lower = expn(maximum(n - 1, full_like(n, 0)), x)
    return -choose(greater_equal(n, full_like(n, 1)), lower, least)


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


def gamma_partials(a: Node, x: Node) -> tuple[Node, Node]:
    """The derivatives of gammainc by both operands."""
    return at(gammainc_by, [1], a, x), at(gamma_density, [0], a, x)


def beta_partials(a: Node, b: Node, x: Node) -> tuple[Node, Node, Node]:
    """The derivatives of betainc by its three operands."""
    density = at(beta_density, [0, 0, 0, 0], a, b, x)
    return at(betainc_by, [1, 0], a, b, x), at(betainc_by, [0, 1], a, b, x), density


def gammaincinv_partials(z: Node, a: Node) -> tuple[Node, ...]:
    by, density = gamma_partials(a, z)
    return inverse(density, by)


def betaincinv_partials(z: Node, a: Node, b: Node) -> tuple[Node, ...]:
    *by, density = beta_partials(a, b, z)
    return inverse(density, *by)


def negated(partials: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(-partial for partial in partials)


SPECIAL: dict[Op, Partials] = {
    sigmoid: lambda z, x: (z * (1 - z),),
    softplus: lambda z, x: (sigmoid(x),),
    log1mexp: lambda z, x: (-exp(x - z),),
    logit: lambda z, x: (1 / (x * (1 - x)),),
    xlogy: lambda z, x, y: (log(y), ratio(x, y)),
    xlog1py: lambda z, x, y: (log1p(y), ratio(x, 1 + y)),
    entr: lambda z, x: (-log(x) - 1,),
    rel_entr: lambda z, x, y: (log_ratio(x, y) + 1, -ratio(x, y)),
    kl_div: lambda z, x, y: (log_ratio(x, y), 1 - ratio(x, y)),
    exprel: lambda z, x: (0.5 * at(hyp1f1, [2, 3], x),),
    cosm1: lambda z, x: (-sin(x),),
    # The error function and the normal distribution (DLMF 7)
    erf: lambda z, x: (2 / ROOT_PI * exp(-square(x)),),
    erfc: lambda z, x: (-2 / ROOT_PI * exp(-square(x)),),
    erfcx: lambda z, x: (erfcx_slope(z, x),),
    erfinv: lambda z, x: (ROOT_PI / 2 * exp(square(z)),),
    erfcinv: lambda z, x: (-ROOT_PI / 2 * exp(square(z)),),
    dawsn: lambda z, x: (at(hyp1f1, [1, 0.5], -square(x)),),
    ndtr: lambda z, x: (exp(-0.5 * square(x)) / ROOT_2PI,),
    log_ndtr: lambda z, x: (log_ndtr_slope(z, x),),
    ndtri: lambda z, x: (ROOT_2PI * exp(0.5 * square(z)),),
    ndtri_exp: lambda z, x: (ROOT_PI / ROOT_2 * erfcx(z / -ROOT_2),),
    owens_t: lambda z, h, a: (
        erf(a * h / ROOT_2) * exp(-0.5 * square(h)) / (-2 * ROOT_2PI),
        exp(-0.5 * square(h) * (1 + square(a))) / (2 * PI * (1 + square(a))),
    ),
    # The gamma function (DLMF 5, 8)
    gamma: lambda z, x: (z * digamma(x),),
    rgamma: lambda z, x: (rgamma_slope(z, x),),
    gammaln: lambda z, x: (digamma(x),),
    loggamma: lambda z, x: (digamma(x),),
    gammasgn: lambda z, x: (None,),
    digamma: lambda z, x: (at(zeta, [2], x),),
    zeta: lambda z, s, x: (None, -s * zeta(s + 1, x)),
    poch: lambda z, x, m: (z * (digamma(x + m) - digamma(x)), z * digamma(x + m)),
    binom: lambda z, n, k: (
        z * (digamma(n + 1) - digamma(n - k + 1)),
        z * (digamma(n - k + 1) - digamma(k + 1)),
    ),
    beta: lambda z, a, b: (
        z * (digamma(a) - digamma(a + b)),
        z * (digamma(b) - digamma(a + b)),
    ),
    betaln: lambda z, a, b: (digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)),
    gammainc: lambda z, a, x: gamma_partials(a, x),
    gammaincc: lambda z, a, x: negated(gamma_partials(a, x)),
    gammaincinv: lambda z, a, p: gammaincinv_partials(z, a),
    gammainccinv: lambda z, a, p: complement(*gammaincinv_partials(z, a)),
    gammainc_by: lambda z, n, a, x: (None, gammainc_by(n + 1, a, x), gamma_density(n, a, x)),
    gamma_density: lambda z, n, a, x: (
        *(None, gamma_density(n + 1, a, x)),
        gamma_density(n, a - 1, x) - z,
    ),
    betainc: lambda z, a, b, x: beta_partials(a, b, x),
    betaincc: lambda z, a, b, x: negated(beta_partials(a, b, x)),
    betaincinv: lambda z, a, b, p: betaincinv_partials(z, a, b),
    betainccinv: lambda z, a, b, p: complement(*betaincinv_partials(z, a, b)),
    betainc_by: lambda z, m, n, a, b, x: (
        *(None, None, betainc_by(m + 1, n, a, b, x), betainc_by(m, n + 1, a, b, x)),
        beta_density(m, n, full_like(m, 0), full_like(n, 0), a, b, x),
    ),
    beta_density: lambda z, m, n, i, j, a, b, x: (
        *(None, None, None, None),
        *(beta_density(m + 1, n, i, j, a, b, x), beta_density(m, n + 1, i, j, a, b, x)),
        beta_density(m, n, i + 1, j, a, b, x) - beta_density(m, n, i, j + 1, a, b, x),
    ),
    # Bessel functions (DLMF 10)
    j0: lambda z, x: (-j1(x),),
    j1: lambda z, x: (0.5 * (j0(x) - at(jv, [2], x)),),
    jv: lambda z, n, x: (None, order_slope(jv, n, x, -1)),
    y0: lambda z, x: (-y1(x),),
    y1: lambda z, x: (0.5 * (y0(x) - at(yv, [2], x)),),
    yv: lambda z, n, x: (None, order_slope(yv, n, x, -1)),
    i0: lambda z, x: (i1(x),),
    i1: lambda z, x: (0.5 * (i0(x) + at(iv, [2], x)),),
    iv: lambda z, n, x: (None, order_slope(iv, n, x, 1)),
    i0e: lambda z, x: (i1e(x) - sign(x) * z,),
    i1e: lambda z, x: (0.5 * (i0e(x) + at(ive, [2], x)) - sign(x) * z,),
    ive: lambda z, n, x: (None, order_slope(ive, n, x, 1) - sign(x) * z),
    k0: lambda z, x: (-k1(x),),
    k1: lambda z, x: (-0.5 * (k0(x) + at(kv, [2], x)),),
    kv: lambda z, n, x: (None, -order_slope(kv, n, x, 1)),
    k0e: lambda z, x: (z - k1e(x),),
    k1e: lambda z, x: (z - 0.5 * (k0e(x) + at(kve, [2], x)),),
    kve: lambda z, n, x: (None, z - order_slope(kve, n, x, 1)),
    # Integrals and hypergeometric functions (DLMF 6, 13, 15, 19)
    exp1: lambda z, x: (-exp(-x) / x,),
    expi: lambda z, x: (exp(x) / x,),
    expn: lambda z, n, x: (None, expn_slope(n, x)),
    spence: lambda z, x: (spence_slope(x),),
    ellipk: lambda z, x: (PI / 8 * at(hyp2f1, [1.5, 1.5, 2], x),),
    ellipe: lambda z, x: (-PI / 8 * at(hyp2f1, [0.5, 1.5, 2], x),),
    hyp1f1: lambda z, a, b, x: (None, None, a / b * hyp1f1(a + 1, b + 1, x)),
    hyp2f1: lambda z, a, b, c, x: (
        *(None, None, None),
        a * b / c * hyp2f1(a + 1, b + 1, c + 1, x),
    ),
}
