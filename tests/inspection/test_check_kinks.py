"""`check` names second derivatives that are wrong at a kink, and no healthy ones."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import graphcore as gc
from graphcore.inspection.check import Fault
from graphcore.inspection.kinks import KINKS, Kink

T = gc.Tensor
ZEROS, SOME, TIED = [0.0, 0.0], [0.0, 1.5], [1.0, 1.0]
TURNED = gc.constant([[0.0, 1.0], [-1.0, 0.0]], ("row", "col"))
SCALES = gc.constant([[1.0, 0.0], [0.0, 2.0]], ("t", "col"))


def norm(x: T) -> T:
    return gc.norm(x, "t")


def in_two_steps(f: Callable[[T], T]) -> Callable[[T], T]:
    """The square of a value, by a loop."""
    return lambda x: gc.scan(lambda c, _: (c * f(x), None), gc.ones_like(f(x)), length=2)[0]


def turned(x: T) -> T:
    """Twice the cosine of a norm."""
    found = gc.linalg.expm(norm(x) * TURNED, dims=("row", "col"))
    return gc.linalg.trace(found, dims=("row", "col"))


WRONG: dict[str, tuple[str, Callable[[T], T], Callable[[T], T], list[float]]] = {
    "a loop": ("absolute", in_two_steps(abs), lambda x: x**2, SOME),
    "a loop of norms": ("norm", in_two_steps(norm), lambda x: (x**2).sum("t"), ZEROS),
    "a loop of deviations": ("std", in_two_steps(lambda x: x.std("t")), lambda x: x.var("t"), TIED),
    "a loop of sizes": (
        "hypot",
        in_two_steps(lambda x: gc.hypot(x, 2 * x)),
        lambda x: 5 * x**2,
        SOME,
    ),
    "a product of matrices": (
        "absolute",
        lambda x: gc.cos(gc.dot(abs(x), SCALES, dim="t")),
        lambda x: gc.cos(gc.dot(x, SCALES, dim="t")),
        SOME,
    ),
    "a function of a matrix": ("norm", turned, lambda x: -(x**2).sum("t"), ZEROS),
    "a logsumexp": (
        "absolute",
        lambda x: gc.special.logsumexp(gc.concat([abs(x), -abs(x)], "u"), "u"),
        lambda x: gc.log(gc.cosh(x)),
        SOME,
    ),
    "a maximum": ("maximum", lambda x: gc.maximum(x, -x) ** 2, lambda x: x**2, SOME),
    "a minimum": ("minimum", lambda x: gc.minimum(x, -x) ** 2, lambda x: x**2, SOME),
    "fmax and fmin": ("fmax", lambda x: gc.fmax(x, 0.0) * gc.fmin(x, 0.0), lambda x: 0 * x, SOME),
    "fmin alone": ("fmin", lambda x: gc.fmin(x, -x) ** 2, lambda x: x**2, SOME),
    "both extremes": (
        "max",
        lambda x: x.max("t") * x.min("t"),
        lambda x: gc.prod(x, "t"),
        TIED,
    ),
    "squares of the extremes": (
        "min",
        lambda x: x.min("t") ** 2 + x.max("t") ** 2,
        lambda x: (x**2).sum("t"),
        TIED,
    ),
    "a sign": ("sign", lambda x: gc.sign(x) ** 2 * x**2, lambda x: x**2, SOME),
}
HEALTHY: dict[str, tuple[Callable[[T], T], list[float]]] = {
    "followed": (lambda x: abs(x) ** 2 + gc.cos(norm(x)), ZEROS),
    "a kink": (lambda x: abs(x) + 3 * gc.sin(abs(x)), SOME),
    "a kink in a loop": (in_two_steps(lambda x: abs(x) + 1), SOME),
    "a norm": (norm, ZEROS),
    "a second derivative that jumps": (lambda x: x * abs(x) + gc.maximum(x, 0.0) ** 2, SOME),
    "products of those": (lambda x: gc.maximum(x[0], 0.0) * gc.maximum(-x[1], 0.0), ZEROS),
    "mixed ones that jump": (lambda x: abs(x).sum("t") ** 2, ZEROS),
    "ties": (lambda x: gc.sin(x.max("t")) + gc.sort(x, "t")[0] ** 2, TIED),
    "clip at its bounds": (lambda x: gc.clip(x, 0.0, 1.0) ** 2, [0.0, 1.0]),
    "no kink is met": (in_two_steps(abs), [0.5, -2.0]),
    "steep but smooth": (lambda x: gc.sqrt(x**2 + 1e-30) + abs(x), ZEROS),
    "sines of whole numbers": (lambda x: gc.cos(2 * np.pi * (x % 1.0)) * abs(x) ** 2, SOME),
    "third powers": (lambda x: norm(x) ** 3, ZEROS),
    "a loop that ends at a tolerance": (
        lambda x: gc.while_loop(lambda z: abs(z) > 1e-3, lambda z: z * x[0], 1.0), [0.0, 1.0],
    ),
    "nothing": (in_two_steps(abs), []),
}  # fmt: skip
DEFAULT = {"a loop of norms", "both extremes", "a kink", "products of those", "ties", "followed"}


def some(table: dict[str, tuple[object, ...]]) -> list[object]:
    """The names of a table; all but a few are slow."""
    marks = [[], [pytest.mark.slow]]
    return [pytest.param(name, marks=marks[name not in DEFAULT]) for name in table]


def hessian(function: Callable[[T], T], x: T) -> T:
    return gc.hessian(function(x).sum(), x)


def test_every_op_with_a_kink_is_in_a_test() -> None:
    assert {op.said for op in KINKS} == {op for op, *_ in WRONG.values()}


@pytest.mark.parametrize(
    ("dtype", "native"),
    [("float64", False), pytest.param("float32", True, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("name", some(WRONG))
def test_a_wrong_second_derivative_is_named(name: str, dtype: str, native: bool) -> None:
    op, function, same, at = WRONG[name]
    x = gc.tensor("x", {"t": len(at)}, dtype=dtype)
    outputs = {"y": function(x), "hessian": hessian(function, x)}
    f = gc.compile([x], outputs, native=native)
    given = np.array(at, dtype)
    right = gc.compile([x], hessian(same, x), native=False)(given)
    kink = f.check(given)
    if (name, dtype) == ("a loop of deviations", "float32"):
        assert kink is None, "it is no longer lost in rounding"
        return
    assert isinstance(kink, Kink)
    place = tuple(kink.place.values())
    assert tuple(kink.place) == ("t", "t'")
    assert kink.value == f(given)["hessian"][place]
    assert kink.beside == pytest.approx(right[place], abs=1e-3 if dtype == "float32" else 1e-5)
    assert kink.count == (~np.isclose(f(given)["hessian"], right, atol=1e-5)).sum()
    assert kink.name == "result['hessian']"
    assert op in {said for said, _ in kink.met}
    assert kink in f.check(given, any=True)
    assert gc.compile([x], function(x), native=native).check(given) is None


@pytest.mark.parametrize("name", some(HEALTHY))
def test_a_healthy_call_is_let_be(name: str) -> None:
    function, at = HEALTHY[name]
    x = gc.tensor("x", {"t": len(at)})
    y = function(x).sum()
    f = gc.compile([x], [gc.hessian(y, x), gc.grad(y, x)], native=name not in DEFAULT)
    assert f.check(at) is None
    assert not [found for found in f.check(at, any=True) if isinstance(found, Kink)]


def test_operands_of_other_dims_and_the_line_are_named() -> None:
    x, w = gc.tensor("x", {"batch": None, "t": 2}), gc.tensor("w", {"k": None, "t": 2})
    r = gc.hypot(gc.dot(w, x, dim="t"), 0.0 * x[{"t": 0}])  # here
    y = gc.scan(lambda c, _: (c * r, None), gc.ones_like(r), length=2)[0].sum()
    v = gc.ones_like(x)
    f = gc.compile([x, w], gc.grad((gc.grad(y, x) * v).sum(), w), native=False)
    assert f.check([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0]]) is None
    kink = f.check([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0]], [[1.0, 2.0]])
    assert kink is None  # both derivatives are 0 there
    f = gc.compile([x, w], gc.hvp(y, x, v), native=False)
    kink = f.check([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0]], [[1.0, 2.0]])
    assert isinstance(kink, Kink)
    assert (dict(kink.place), kink.value, kink.count) == ({"batch": 1, "t": 0}, 0.0, 2)
    assert kink.beside == pytest.approx(6.0)
    ((op, line),) = kink.met
    assert op == "hypot"
    assert "# here" in linecache.getline(line.file, line.line)
    assert str(kink).startswith("result is 0 at [batch=1, t=0], and at 1 more, but 6 close")
    assert str(replace(kink, count=1)).startswith("result is 0 at [batch=1, t=0] but 6 close")


def test_a_fault_comes_first_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    x = gc.tensor("x", {"t": 1})
    y = in_two_steps(abs)(gc.print(x, "x")).sum()
    f = gc.compile([x], [y, gc.hessian(y, x), 1 / x], native=False)
    f([0.0])
    once = capfd.readouterr()
    assert once.out
    assert isinstance(f.check([0.0]), Fault)
    assert capfd.readouterr() == once
    assert [type(found) for found in f.check([0.0], any=True)] == [Fault, Kink]
    assert capfd.readouterr() == once
