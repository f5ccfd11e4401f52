"""Partials of quotients of gamma functions: where digammas cancel, and at poles of gammas.

Of z = c gamma(y) / gamma(x), where x and y move together and m = y - x stays, the derivative is

    z (digamma(y) - digamma(x))                                        in general
    z (digamma(y) - digamma(1 - x)) + c gamma(y) gamma(1 - x) cos(pi x)      for x near a pole

as 1 / gamma(x) = gamma(1 - x) sin(pi x) / pi (DLMF 5.5.3). Where x is a pole z is 0. Nearer to one
than y is, the first formula loses digits that the second keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from graphcore.ir import Node, full_like
from graphcore.ops import elementwise as e
from graphcore.ops import special as s
from graphcore.rewrites.plain import equals
from graphcore.rewrites.plain import where as choose

PI = math.pi


def sin_pi(x: Node) -> Node:
    """sin(pi x), 0 where x is whole"""
    near = e.rint(x)
    return (1 - 2 * e.remainder(near, full_like(x, 2))) * e.sin(PI * (x - near))


def cos_pi(x: Node) -> Node:
    """cos(pi x)"""
    near = e.rint(x)
    return (1 - 2 * e.remainder(near, full_like(x, 2))) * e.cos(PI * (x - near))


def is_positive(x: Node) -> Node:
    return e.greater(x, full_like(x, 0))


def is_below_half(x: Node) -> Node:
    return e.less(x, full_like(x, 0.5))


def trigamma(x: Node) -> Node:
    """zeta(2, x); below 0, where its recurrence takes long, by reflection (DLMF 5.15.6)"""
    below = e.logical_not(is_positive(x))
    value = s.zeta(full_like(x, 2), choose(below, 1 - x, x))
    sine = sin_pi(choose(below, x, 0.5))
    return choose(below, e.square(PI / sine) - value, value)


def digamma_difference(x: Node, m: Node) -> Node:
    """digamma(x + m) - digamma(x); by reflection where both are below 1/2 and nearly equal.

    digamma(x) = digamma(1 - x) - pi / tan(pi x) (DLMF 5.5.4)
    """
    y = x + m
    above = e.logical_and(is_positive(x), is_positive(y))
    turn, sine, sines = sin_pi(m), sin_pi(x), sin_pi(x) * sin_pi(y)
    near = e.logical_or(e.less_equal(e.absolute(turn), e.absolute(sine)), equals(sines, 0))
    below = e.logical_and(e.logical_and(is_below_half(x), is_below_half(y)), near)
    alike = e.logical_or(above, below)
    low = choose(above, x, choose(alike, 1 - y, 1))
    step = s.digamma_step(full_like(x, 0), low, choose(alike, m, 0))
    both = e.logical_and(equals(turn, 0), equals(sines, 0))
    turned = PI * turn / choose(both, 1, sines)
    apart = s.digamma(choose(alike, 1, y)) - s.digamma(choose(alike, 1, x))
    return choose(alike, choose(above, step, turned - step), apart)


def pole_distance(x: Node) -> Node:
    """How far x is from the nearest pole of gamma, and 1 above 1/2"""
    return choose(is_below_half(x), e.absolute(x - e.rint(x)), 1)


def is_at_pole(x: Node, y: Node) -> Node:
    """Whether x is near a pole of gamma, and nearer than y."""
    gap = pole_distance(x)
    return e.logical_and(e.less(gap, full_like(x, 0.01)), e.greater(pole_distance(y), 2 * gap))


def is_lower(x: Node, y: Node) -> Node:
    """Whether y alone is positive."""
    return e.logical_and(e.logical_not(is_positive(x)), is_positive(y))


def quotient_slope(
    z: Node, gammas: Callable[..., Node], x: Node, y: Node, difference: Node
) -> Node:
    """The derivative of z = c gamma(y) / gamma(x); `gammas(x, y)` is c gamma(y) gamma(1 - x)."""
    across = e.logical_or(is_at_pole(x, y), is_lower(x, y))
    low, high = choose(across, x, 0), choose(across, y, 0.5)
    reflected = gammas(low, high) * cos_pi(low) + z * (s.digamma(high) - s.digamma(1 - low))
    return choose(across, reflected, z * choose(across, 0, difference))


def poch_partials(z: Node, x: Node, m: Node) -> tuple[Node, Node]:
    """Of gamma(x + m) / gamma(x)"""

    def gammas(low: Node, high: Node) -> Node:
        above = is_positive(high)
        right, left = choose(above, high, 0.5), choose(above, 0.5, high)
        reflected = PI / sin_pi(left) * s.poch(1 - left, choose(above, 0, left - low))
        return choose(above, s.gamma(right) * s.gamma(choose(above, 1 - low, 1)), reflected)

    y = x + m
    return quotient_slope(z, gammas, x, y, digamma_difference(x, m)), z * s.digamma(y)


def beta_partials(z: Node, a: Node, b: Node) -> tuple[Node, Node]:
    """Of gamma(a) gamma(b) / gamma(a + b)"""

    def partial(a: Node, b: Node) -> Node:
        def gammas(low: Node, high: Node) -> Node:
            other, above = low - high, is_positive(high)
            right, left = choose(above, high, other), choose(above, other, high)
            return PI / sin_pi(left) * s.beta(right, 1 - low)

        return quotient_slope(z, gammas, a + b, a, -digamma_difference(a, b))

    return partial(a, b), partial(b, a)


def binom_partials(z: Node, n: Node, k: Node) -> tuple[Node, Node]:
    """Of gamma(n + 1) / (gamma(p) gamma(q)) with p = k + 1 and q = n - k + 1

    By k it is z (digamma(q) - digamma(p)). Where one of these, t, is near a pole or alone negative,
    beside u, it is beta(n + 1, 1 - t) cos(pi t) + z (digamma(u) - digamma(1 - t)), with the other
    sign for t = q.
    """
    p, q = k + 1, n - k + 1

    def gammas(low: Node, high: Node) -> Node:
        return s.beta(high, 1 - low)

    straight, turned = is_at_pole(p, q), is_at_pole(q, p)
    turned = e.logical_or(turned, e.logical_and(is_lower(q, p), e.logical_not(straight)))
    across = e.logical_or(e.logical_or(straight, turned), is_lower(p, q))
    t, u = choose(turned, q, choose(across, p, 1)), choose(turned, p, choose(across, q, 1))
    total = choose(across, n + 1, 1)
    reflected = s.beta(total, choose(across, 1 - t, 1)) * cos_pi(t)
    reflected = reflected + z * (s.digamma(u) - s.digamma(choose(across, 1 - t, 1)))
    difference = digamma_difference(choose(across, 1, p), choose(across, 0, n - 2 * k))
    return (
        quotient_slope(z, gammas, q, n + 1, digamma_difference(q, k)),
        choose(across, choose(turned, -reflected, reflected), z * difference),
    )
