"""Slopes in many digits: differences of functions in a precision in which they lose nothing."""

from __future__ import annotations

import signal
from itertools import combinations_with_replacement, product
from math import comb
from typing import Any

import mpmath as mp
import numpy as np

from .meaning import MEANING, Function, Number

MOST = {1: 3, 2: 3, 3: 2}
"""The highest order that is looked at, by the number of operands."""
ORDERS = {
    count: [
        tuple(map(chosen.count, range(count)))
        for total in range(1, most + 1)
        for chosen in combinations_with_replacement(range(count), total)
    ]
    for count, most in MOST.items()
}
LIMIT = 1.0
"""Seconds for the slopes of one point."""


def stencil(n: int) -> dict[int, int]:
    """The weights of the n-th central difference, at steps of h / 2."""
    return {n - 2 * k: (-1) ** k * comb(n, k) for k in range(n + 1)}


def differences(f: Function, at: list[float], orders: list[tuple[int, ...]], digits: int) -> Any:
    """Slopes by differences over steps that are so many digits below the scales of the operands."""
    sizes = [mp.mpf(abs(x)) for x in at]
    some = [x for x in sizes if x] or [mp.mpf(1)]
    lowest = min([*some, mp.mpf(1)])
    steps = [mp.mpf(10) ** -digits * (min(x, 1) if x else lowest) for x in sizes]
    spread = max([mp.log10(x) for x in (*some, 1)]) - min([mp.log10(h) for h in steps])
    mp.mp.dps = int(spread) * max(map(sum, orders)) + 4 * digits + 60
    seen: dict[tuple[int, ...], Number] = {}
    found = []
    for order in orders:
        total = mp.mpf(0)
        for moves in product(*[stencil(n).items() for n in order]):
            places = tuple(k for k, _ in moves)
            if places not in seen:
                xs = [mp.mpf(x) + k * h / 2 for x, k, h in zip(at, places, steps, strict=True)]
                value = f(*xs)
                if isinstance(value, mp.mpc) and value.imag != 0:
                    raise ValueError("complex")
                seen[places] = mp.re(value)
            weight = 1
            for _, w in moves:
                weight *= w
            total += weight * seen[places]
        for n, h in zip(order, steps, strict=True):
            total /= h**n
        found.append(total)
    return found


def bessel(name: str, at: list[float]) -> list[Number]:
    """Slopes by the last operand, by the recurrences of Bessel functions (DLMF 10.6, 10.29)."""
    kind, scale = name[0], {"e": {"i": -1, "k": 1}.get(name[0], 0)}.get(name[-1], 0)
    order = mp.mpf(at[0]) if len(at) > 1 else int(name[1])
    x = mp.mpf(at[-1])
    if (kind in "ky" and x <= 0) or (x < 0 and order != int(order)):
        raise ValueError("outside")
    mp.mp.dps = 60 + (4 * int(mp.log10(abs(x))) if scale and abs(x) > 1 else 0)
    f = {"j": mp.besselj, "y": mp.bessely, "i": mp.besseli, "k": mp.besselk}[kind]
    sign = {"j": -1, "y": -1, "i": 1, "k": 1}[kind]
    around = {k: f(order + k, x) for k in range(-3, 4)}
    plain = [around[0]]
    for _ in range(3):
        around = {
            k: (around[k - 1] + sign * around[k + 1]) / (-2 if kind == "k" else 2)
            for k in list(around)[1:-1]
        }
        plain.append(around[0])
    rate = scale * (mp.sign(x) if kind == "i" else 1)
    if not rate:
        return plain
    growth = mp.exp(rate * x)
    return [
        growth * sum(comb(n, k) * rate ** (n - k) * plain[k] for k in range(n + 1))
        for n in range(4)
    ]


BESSEL = {
    *("j0", "j1", "jv", "y0", "y1", "yv", "i0", "i1", "iv", "i0e", "i1e", "ive"),
    *("k0", "k1", "kv", "k0e", "k1e", "kve"),
}
BY_THE_LAST = {*BESSEL, "zeta", "expn"}
"""Functions whose slopes by the first of two operands are unknown."""


class Late(Exception):
    pass


def late(*_: Any) -> None:
    raise Late


def slopes(name: str, at: list[float]) -> tuple[float, list[float]]:
    """The value and the slopes of a function, nan where it has none or they take too long."""
    every = ORDERS[len(at)]
    orders = [n for n in every if name not in BY_THE_LAST or not any(n[:-1])]
    value, found = some_slopes(name, at, orders)
    known = dict(zip(orders, found, strict=True))
    return value, [known.get(n, float("nan")) for n in every]


COMPLEMENT = {"gammaincc": "gammainc", "betaincc": "betainc"}
"""Functions that are 1 less another: its slopes take less time."""


def some_slopes(name: str, at: list[float], orders: list[tuple[int, ...]]) -> Any:
    unknown = float("nan")
    signal.signal(signal.SIGVTALRM, late)
    f = MEANING[name]
    value = unknown
    found = [unknown] * len(orders)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        mp.mp.dps = 60
        exact = f(*[mp.mpf(x) for x in at])
        if not (isinstance(exact, mp.mpc) and exact.imag != 0):
            value = float(mp.re(exact))
    except Late:
        return value, found
    except Exception:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if name in COMPLEMENT:
        return value, [-x for x in some_slopes(COMPLEMENT[name], at, orders)[1]]
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        if name in BESSEL:
            exact_slopes = bessel(name, at)
            return value, [
                float(exact_slopes[n[-1]]) if not any(n[:-1]) else unknown for n in orders
            ]
        before: list[Number] | None = None
        for digits in (20, 30, 110, 380):
            now = differences(f, at, orders, digits)
            if before is not None:
                for i, (a, b) in enumerate(zip(before, now, strict=True)):
                    if a and found[i] != found[i] and abs(a - b) <= abs(a) * mp.mpf(10) ** -14:
                        found[i] = float(b)
            if all(x == x for x in found):
                break
            before = now
    except Exception:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return value, found


def all_slopes(task: tuple[str, np.ndarray]) -> tuple[str, np.ndarray]:
    name, points = task
    rows = [slopes(name, [float(x) for x in row]) for row in points]
    return name, np.array([[value, *found] for value, found in rows])
