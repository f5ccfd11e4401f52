"""`check` says where results hang on a derivative that is a choice, and only there."""

from __future__ import annotations

import linecache
from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.inspection.check import Fault
from graphcore.inspection.edges import EDGES, Edge

T = gc.Tensor
X = gc.tensor("x", {"t": None})
ZEROS, TIED = [0.0, 0.0, 0.0], [-1.0, 2.0, 2.0, -1.0]
MET: dict[str, tuple[Callable[[T], T], list[float], int]] = {
    "absolute": (lambda x: abs(x).sum(), [0.0, 1.0, 0.0], 2),
    "norm": (lambda x: gc.norm(x, "t"), ZEROS, 1),
    "std": (lambda x: x.std(), [3.0, 3.0, 3.0], 1),
    "hypot": (lambda x: gc.hypot(x, 2 * x).sum(), ZEROS, 3),
    "maximum": (lambda x: gc.maximum(x, 0.0).sum(), [0.0, 1.0], 1),
    "minimum": (lambda x: gc.clip(x, 0.0, 1.0).sum(), [0.5, 1.0], 1),
    "fmax": (lambda x: gc.fmax(x, 2.0).sum(), [2.0, 1.0], 1),
    "fmin": (lambda x: gc.fmin(x, 2.0).sum(), [2.0, 1.0], 1),
    "max": (lambda x: x.max(), TIED, 1),
    "min": (lambda x: x.min(), TIED, 1),
    "cummax": (lambda x: gc.cummax(x, "t").sum(), TIED, 1),
    "cummin": (lambda x: gc.cummin(x, "t").sum(), TIED, 1),
    "sort": (lambda x: gc.sort(x, "t")[0], TIED, 2),
}
EXACT: dict[str, tuple[Callable[[T], T], list[float]]] = {
    "norm squared": (lambda x: gc.norm(x, "t") ** 2, ZEROS),
    "cos(norm)": (lambda x: gc.cos(gc.norm(x, "t")), ZEROS),
    "abs squared": (lambda x: (abs(x) ** 2).sum(), ZEROS),
    "sum of sorted": (lambda x: gc.sort(x, "t").sum(), TIED),
    "max of equals": (lambda x: gc.maximum(x, x).sum(), ZEROS),
    "a norm in a guard": (lambda x: gc.where(gc.norm(x, "t") > 0, 1.0, x).sum(), ZEROS),
    "no tie": (lambda x: x.max() + gc.sort(x, "t")[0], [1.0, 3.0, 2.0]),
    "one makes up for another": (
        lambda x: (gc.maximum(x, 0.0) + gc.log1p(gc.exp(-abs(x)))).sum(), ZEROS,
    ),
    "nothing": (lambda x: gc.sort(x, "t").sum() + gc.norm(x, "t") ** 2, []),
}  # fmt: skip


def test_every_edge_is_met_in_a_test() -> None:
    assert {op.said for op in EDGES} == MET.keys()


@pytest.mark.parametrize("name", MET)
def test_a_choice_is_named(name: str) -> None:
    function, at, count = MET[name]
    y = function(X)
    f = gc.compile([X], {"y": y, "slope": gc.grad(y, X)}, native=False)
    edge = f.check(at)
    assert isinstance(edge, Edge)
    assert (edge.op, edge.count, edge.results) == (name, count, ("result['slope']",)), str(edge)
    assert name in str(edge)
    assert edge in f.check(at, any=True)
    assert gc.compile([X], y, native=False).check(at) is None  # without a derivative


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_derivative_is_no_choice(name: str) -> None:
    function, at = EXACT[name]
    y = function(X)
    again = [gc.hvp(y, X, gc.ones_like(X))] if "norm" in name and "guard" not in name else []
    f = gc.compile([X], [y, gc.grad(y, X), *again], native=False)
    assert f.check(at) is None
    assert not [x for x in f.check(at, any=True) if isinstance(x, Edge)]


def test_second_derivatives_that_are_not_followed_are_named() -> None:
    y = gc.scan(lambda c, _: (c * abs(X).sum(), None), 1.0, length=2)[0]  # here
    f = gc.compile([X], [gc.grad(y, X), gc.hvp(y, X, gc.ones_like(X))], native=False)
    edge = f.check([0.0, 0.0])
    assert isinstance(edge, Edge)
    assert edge.results == ("result[1]",)
    assert "# here" in linecache.getline(edge.line.file, edge.line.line)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes_are_moved_as_well(dtype: str) -> None:
    x = gc.tensor("x", {"t": None}, dtype=dtype)
    y = abs(x).sum()
    at = np.zeros(2, dtype)
    assert isinstance(gc.compile([x], gc.grad(y, x), native=False).check(at), Edge)
    assert gc.compile([x], gc.grad((abs(x) ** 2).sum(), x), native=False).check(at) is None


def test_a_fault_comes_before_an_edge() -> None:
    y = (abs(X) + gc.sqrt(X)).sum()
    f = gc.compile([X], gc.grad(y, X), native=False)
    assert isinstance(f.check([0.0]), Fault)
    assert [type(x) for x in f.check([0.0], any=True)] == [Fault]


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    y = gc.print(abs(X), "size").sum()
    f = gc.compile([X], gc.grad(y, X), native=False)
    f([0.0])
    once = capfd.readouterr()
    assert isinstance(f.check([0.0]), Edge)
    assert capfd.readouterr() == once
