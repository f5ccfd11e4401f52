"""Smooth functions of values that have a kink: exact derivatives, second ones at the kink too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc

T = gc.Tensor
X, S = gc.tensor("x", {"t": None}), gc.tensor("s", {})
Q = 5**0.5


def matern(r: T) -> T:
    """The kernel of order 5/2."""
    return (1 + Q * r + 5 * r**2 / 3) * gc.exp(-Q * r)


def near_0(x: T) -> T:
    """Matérn's kernel to second order at 0, by its argument squared."""
    return 1 - 5 * x / 6


SQUARES: dict[str, tuple[Callable[[T], T], Callable[[T], T]]] = {
    "abs(x)**2": (lambda x: (abs(x) ** 2).sum(), lambda x: (x**2).sum()),
    "square(abs(x))": (lambda x: gc.square(abs(x)).sum(), lambda x: (x**2).sum()),
    "abs(x) * abs(x)": (lambda x: (abs(x) * abs(x)).sum(), lambda x: (x**2).sum()),
    "y * abs(x) * abs(x)": (lambda x: (S * abs(x) * abs(x)).sum(), lambda x: S * (x**2).sum()),
    "abs(x)**6": (lambda x: (abs(x) ** 6).sum(), lambda x: (x**6).sum()),
    "norm(x)**2": (lambda x: gc.norm(x, "t") ** 2, lambda x: (x**2).sum()),
    "norm * norm": (lambda x: gc.norm(x, "t") * gc.norm(x, "t"), lambda x: (x**2).sum()),
    "(norm / s)**2": (lambda x: (gc.norm(x, "t") / S) ** 2, lambda x: (x**2).sum() / S**2),
    "norm(x)**4": (lambda x: gc.norm(x, "t") ** 4, lambda x: (x**2).sum() ** 2),
    "exp(-norm**2 / 2)": (
        lambda x: gc.exp(-(gc.norm(x, "t") ** 2) / 2),
        lambda x: gc.exp(-(x**2).sum() / 2),
    ),
    "hypot(x, 2 x)**2": (lambda x: (gc.hypot(x, 2 * x) ** 2).sum(), lambda x: 5 * (x**2).sum()),
    "std(x)**2": (lambda x: x.std() ** 2, lambda x: x.var()),
    "std(x) * std(x)": (lambda x: x.std() * x.std(), lambda x: x.var()),
    "dot of norms": (
        lambda x: gc.dot(*2 * [gc.norm(gc.concat([x, 2 * x], "k"), "k")], dim="t"),
        lambda x: 5 * (x**2).sum(),
    ),
    "a complex abs": (
        lambda x: (abs(x + 2j * x) ** 2).sum(),
        lambda x: 5 * (x**2).sum(),
    ),
}
FUNCTIONS: dict[str, tuple[Callable[[T], T], Callable[[T], T]]] = {
    "cos(norm)": (lambda x: gc.cos(gc.norm(x, "t")), lambda x: 1 - (x**2).sum() / 2),
    "cosh(s abs)": (lambda x: gc.cosh(S * abs(x)).sum(), lambda x: S**2 * (x**2).sum() / 2),
    "exp(-norm * norm)": (
        lambda x: gc.exp(gc.negative(gc.norm(x, "t")) * gc.norm(x, "t")),
        lambda x: -(x**2).sum(),
    ),
    "Matérn": (lambda x: matern(gc.norm(x, "t")), lambda x: near_0((x**2).sum())),
    "Matérn, scaled": (
        lambda x: matern(gc.norm(x, "t") / S),
        lambda x: near_0((x**2).sum() / S**2),
    ),
    "Matérn of each": (
        lambda x: matern(abs(gc.concat([x, 2 * x], "k")) * gc.constant([1.0, 3.0], "k")).sum(),
        lambda x: near_0(x**2).sum() + near_0(36 * x**2).sum(),
    ),
    "Matérn of hypot": (
        lambda x: matern(gc.hypot(x, 2 * x)).sum(),
        lambda x: near_0(5 * x**2).sum(),
    ),
    "Matérn of complex values": (
        lambda x: matern(abs(x + 2j * x)).sum(),
        lambda x: near_0(5 * x**2).sum(),
    ),
    "Matérn squared": (lambda x: matern(gc.norm(x, "t")) ** 2, lambda x: -5 / 3 * (x**2).sum()),
    "log cosh by abs": (
        lambda x: (abs(x) + gc.log1p(gc.exp(-2 * abs(x)))).sum(),
        lambda x: (x**2).sum() / 2,
    ),
    "softplus by abs": (
        lambda x: (gc.maximum(x, 0.0) + gc.log1p(gc.exp(-abs(x)))).sum(),
        lambda x: (x / 2 + x**2 / 8).sum(),
    ),
    "in a scan": (
        lambda x: gc.scan(lambda c, _: (c * gc.cos(gc.norm(x, "t")), None), S, length=3)[0],
        lambda x: -3 * S * (x**2).sum() / 2,
    ),
    "norm cubed": (lambda x: gc.norm(x, "t") ** 3, lambda x: 0 * (x**2).sum()),
    "a kink": (lambda x: abs(x).sum() + gc.norm(x, "t"), lambda x: 0 * (x**2).sum()),
}


def derivatives(y: T) -> list[T]:
    """The gradient, and second derivatives in both modes, by all of `x` and with `s`."""
    g, v = gc.grad(y, X), gc.arange(X.sizes["t"], dim="t") + 1.0
    along = gc.pushforward(y, X, v)
    again = (gc.hvp(y, X, v), gc.grad((g * v).sum(), X), gc.hessian(y, X))
    again += (gc.grad(along, X), gc.pushforward(along, X, v + 1))
    return [g, *again, gc.grad(gc.hvp(y, X, v).sum(), S, disconnected="zero")]


def check(
    function: Callable[[T], T], same: Callable[[T], T], native: bool, *points: list[float]
) -> None:
    asked = [derivatives(function(X)), derivatives(same(X))]
    f = gc.compile([X, S], asked, native=native)
    for at in points:
        for x, y in zip(*f(at, 1.7), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


TARGETS = pytest.mark.parametrize("native", [False, pytest.param(True, marks=pytest.mark.slow)])


@TARGETS
@pytest.mark.parametrize("name", SQUARES)
def test_even_powers_have_no_kink(name: str, native: bool) -> None:
    nothing = [] if "std" in name else [[]]  # that of nothing is nan
    check(*SQUARES[name], native, [0.0, 0.0], [0.5, -1.5, 0.0], [2.0], *nothing)


@TARGETS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_smooth_functions_of_a_kink_have_second_derivatives_there(name: str, native: bool) -> None:
    check(*FUNCTIONS[name], native, [0.0, 0.0])


@pytest.mark.slow
def test_second_derivatives_that_are_a_choice_are_as_the_table_says() -> None:
    r = gc.norm(X, "t")
    given: dict[str, tuple[T, list[list[float]]]] = {
        "by a loop": (gc.scan(lambda c, _: (c * r, None), 1.0, length=2)[0], [[0, 0], [0, 0]]),
        "by a sign": ((gc.sign(X) ** 2 * X**2).sum(), [[0, 0], [0, 0]]),
        "by shares": ((gc.maximum(X, -X) ** 2).sum(), [[0, 0], [0, 0]]),
        "of shares": ((gc.maximum(X, 0) * gc.minimum(X, 0)).sum(), [[0.5, 0], [0, 0.5]]),
        "that jumps": ((X * abs(X)).sum(), [[0, 0], [0, 0]]),
        "that jumps by shares": ((gc.maximum(X, 0) ** 2).sum(), [[0.5, 0], [0, 0.5]]),
        "mixed ones jump": (abs(X).sum() ** 2, [[4, 0], [0, 4]]),
        "a number": (gc.where(r == 0, 1, gc.sin(r) / gc.where(r == 0, 1, r)), [[0, 0], [0, 0]]),
    }
    found = gc.compile([X], {name: gc.hessian(y, X) for name, (y, _) in given.items()})([0.0, 0.0])
    for name, (_, wanted) in given.items():
        np.testing.assert_array_equal(found[name], wanted, name)
