"""What may raise is computed only where a step computes it: for members that go on, if any do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.graph import may_raise_inside
from graphcore.ir.node import OPS
from graphcore.ir.op import Trait

X = gc.tensor("x", {"t": 3})
K = gc.tensor("k", "b", dtype="int64")
N = gc.tensor("n", (), dtype="int64")
exactly = np.testing.assert_array_equal
ROWS = ("row", "col")


def square(function: Callable[[gc.Tensor], gc.Tensor]) -> Callable[[gc.Tensor], gc.Tensor]:
    """A number made of a matrix."""
    return lambda a: function(a).sum([d for d in ("row", "col") if d in function(a).dims])


ONE = gc.constant([1.0, 2.0], "row")
MATRICES = {
    "inv": square(lambda a: gc.linalg.inv(a, ROWS)),
    "cholesky": square(lambda a: gc.linalg.cholesky(a, ROWS)),
    "solve": square(lambda a: gc.linalg.solve(a, ONE, ROWS)),
    "solve_triangular": square(lambda a: gc.linalg.solve_triangular(a, ONE, ROWS, lower=True)),
    "solve_tridiagonal": lambda a: gc.linalg.solve_tridiagonal(
        a[{"row": 1}] * 0, a[{"row": 1}], a[{"row": 1}] * 0, ONE.rename(row="col"), "col"
    ).sum("col"),
    "in a branch": lambda a: gc.cond(N < 9, lambda: MATRICES["inv"](a), lambda: 0.0),
    "in a loop": lambda a: gc.fori_loop(0, 2, lambda i, s: s + MATRICES["inv"](a + i * 0), 0.0),
    "in a call": lambda a: gc.checkpoint(MATRICES["inv"])(a),
}
POSITIONS = {
    "isel": lambda i: X.isel(t=i),
    "set": lambda i: ((X + 0.0 * i).at[{"t": i}].set(5.0) * X).sum("t"),
    "add": lambda i: ((X + 0.0 * i).at[{"t": i}].add(5.0) * X).sum("t"),
    "max": lambda i: ((X + 0.0 * i).at[{"t": i}].max(5.0) * X).sum("t"),
    "multiply": lambda i: ((X + 0.0 * i).at[{"t": i}].multiply(5.0) * X).sum("t"),
    "switch": lambda i: gc.switch(i, [lambda: X[{"t": 0}], lambda: X[{"t": 1}] * 2]),
    "two": lambda i: X.isel(t=i) * X.isel(t=i - 1),
}
ALL = [*MATRICES, *POSITIONS]


class Case:
    """A function that may raise, a tensor that it takes of each member, good and bad values."""

    def __init__(self, name: str) -> None:
        self.function: Any
        if name in MATRICES:
            self.function = MATRICES[name]
            self.one = gc.tensor("a", {"row": 2, "col": 2})
            self.many = gc.tensor("a", {"b": None, "row": 2, "col": 2})
            self.good, self.bad = np.array([[2.0, 0.0], [0.5, 1.0]]), np.zeros((2, 2))
        else:
            self.function = POSITIONS[name]
            self.one = gc.tensor("i", (), dtype="int64")
            self.many = gc.tensor("i", {"b": None}, dtype="int64")
            self.good, self.bad = np.array(1), np.array(7)
        self.inputs = [K, N, X]

    def compiled(self, y: gc.Tensor, operand: gc.Tensor, steps: gc.Tensor) -> Any:
        """A function of operand and steps that returns y and its derivative by a float input."""
        by = X if operand.dtype.kind == "i" else operand
        grad = gc.grad(y.sum(), by, disconnected="zero")
        others = [N] if steps is K else []
        f = gc.compile([operand, steps, X, *others], [y, grad])
        rest = [1] * len(others)
        return lambda value, k: f(value, k, np.array([1.0, 2.0, 4.0]), *rest)


def adding(steps: gc.Tensor, operand: gc.Tensor, function: Any) -> gc.Tensor:
    """A loop that uses what it captures."""
    return gc.fori_loop(0, steps, lambda i, s: s + function(operand), 0.0)


def carrying(steps: gc.Tensor, operand: gc.Tensor, function: Any) -> gc.Tensor:
    """A loop that uses what it carries."""

    def step(i: gc.Tensor, state: Any) -> Any:
        s, x = state
        return s + function(x), x * 1

    return gc.fori_loop(0, steps, step, (0.0, operand))[0]


@pytest.mark.parametrize("build", [adding, carrying])
@pytest.mark.parametrize("name", ALL)
def test_members_that_have_stopped_are_refused_nothing(name: str, build: Any) -> None:
    """Each is what it is alone; one that goes on is refused."""
    case = Case(name)
    alone = case.compiled(build(N, case.one, case.function), case.one, N)
    some = case.compiled(build(K, case.many, case.function), case.many, K)
    vectorized = gc.vectorize(build(N, case.one, case.function), {N: K, case.one: case.many})
    if name == "in a branch":  # it goes by n itself
        vectorized = build(K, case.many, case.function)
    wide = case.compiled(vectorized, case.many, K)
    values = np.stack([case.good, case.bad, case.good])
    steps = np.array([1, 0, 2])
    y, grad = zip(*[alone(value, n) for value, n in zip(values, steps, strict=True)], strict=True)
    for f in (some, wide):
        found, slope = f(values, steps)
        np.testing.assert_allclose(found, y, rtol=1e-14)
        expected = np.stack(grad) if slope.shape[:1] == (3,) and slope.ndim > 1 else sum(grad)
        np.testing.assert_allclose(slope, expected, rtol=1e-13)
        with pytest.raises(gc.GraphError):
            f(values, np.array([1, 1, 2]))


@pytest.mark.parametrize("build", [adding, carrying])
@pytest.mark.parametrize("name", ALL)
def test_loops_of_no_steps_compute_nothing_that_may_raise(name: str, build: Any) -> None:
    case = Case(name)
    f = case.compiled(build(N, case.one, case.function), case.one, N)
    y, grad = f(case.bad, 0)
    assert y == 0
    exactly(grad, np.zeros_like(grad))
    with pytest.raises(gc.GraphError):
        f(case.bad, 1)


@pytest.mark.parametrize("name", ALL)
def test_scans_of_no_steps(name: str) -> None:
    """Where the length may be 0; where it cannot, all is as it was."""
    case = Case(name)
    z = gc.tensor("z", {"time": None})
    y, _ = gc.scan(lambda s, z: (s + z * case.function(case.one), None), 0.0, z)
    f = gc.compile([case.one, z, X, N], y)
    xs = np.array([1.0, 2.0, 4.0])
    assert f(case.bad, np.zeros(0), xs, 1) == 0
    with pytest.raises(gc.GraphError):
        f(case.bad, np.ones(2), xs, 1)
    known = gc.tensor("z", {"time": 2})
    y, _ = gc.scan(lambda s, z: (s + z * case.function(case.one), None), 0.0, known)
    assert f(case.good, np.ones(2), xs, 1) == gc.compile([case.one, known, X, N], y)(
        case.good, np.ones(2), xs, 1
    )


@pytest.mark.parametrize("name", ALL)
def test_inner_loops_of_no_steps(name: str) -> None:
    """What is the same at all steps of an inner loop leaves it only if it makes a step."""
    case = Case(name)

    def outer(state: Any, n: gc.Tensor) -> Any:
        s, x = state
        inner = gc.fori_loop(0, n, lambda j, t: t + case.function(x), 0.0)
        return (s + inner, x * 1), inner

    steps = gc.tensor("steps", {"time": None}, dtype="int64")
    (y, _), _ = gc.scan(outer, (0.0, case.one), steps)
    f = gc.compile([case.one, steps, X, N], y)
    xs = np.array([1.0, 2.0, 4.0])
    assert f(case.bad, np.zeros(3, int), xs, 1) == 0
    assert f(case.good, np.array([0, 1]), xs, 1) == f(case.good, np.array([1]), xs, 1)
    with pytest.raises(gc.GraphError):
        f(case.bad, np.array([0, 1]), xs, 1)


@pytest.mark.parametrize("name", ALL)
def test_branches_refuse_nothing_where_they_are_not_chosen(name: str) -> None:
    case = Case(name)
    y = gc.cond(K > 0, lambda a: case.function(a), lambda a: 0.0, case.many)
    f = case.compiled(y, case.many, K)
    g = case.compiled(case.function(case.one), case.one, N)
    values = np.stack([case.good, case.bad])
    found, slope = f(values, np.array([1, 0]))
    expected, alone = g(case.good, 1)
    np.testing.assert_allclose(found, [expected, 0.0], rtol=1e-14)
    np.testing.assert_allclose(slope[0] if slope.ndim > 1 else slope, alone, rtol=1e-14)
    with pytest.raises(gc.GraphError):
        f(values, np.array([1, 1]))


def test_a_member_that_turned_nan_spoils_no_other() -> None:
    """Nor do its derivatives, where it has stopped."""
    v = gc.tensor("v", "b")
    y = gc.while_loop(lambda s: s > 1.0, lambda s: gc.log(s - 1) / v, v * 2)
    f = gc.compile([v], [y, gc.grad(y.sum(), v)])
    found, grad = f(np.array([0.0, -4.0, 4.0, 0.5]))
    alone = [f(np.array([value])) for value in (0.0, -4.0, 4.0, 0.5)]
    exactly(found, np.concatenate([y for y, _ in alone]))
    exactly(grad, np.concatenate([slope for _, slope in alone]))
    assert np.isfinite(grad).all()


def test_a_singular_matrix_outside_a_loop_is_refused_as_ever() -> None:
    """It is the user who computes it before the loop."""
    a = gc.tensor("a", {"row": 2, "col": 2})
    inverse = gc.linalg.inv(a, ROWS)
    y = gc.fori_loop(0, N, lambda i, s: s + inverse.sum(), 0.0)
    with pytest.raises(gc.GraphError, match="singular"):
        gc.compile([a, N], y)(np.zeros((2, 2)), 0)


def test_every_op_that_may_raise_is_known() -> None:
    """One that is added with the trait needs operands that it never refuses: see `harmless`."""
    named = {op.name for op in OPS.values() if Trait.MAY_RAISE in op.traits}
    assert {op.name for op in OPS.values() if op.dialect == "named"} & named == {
        *("gather", "scatter", "scatter_prod", "scatter_max", "scatter_min", "put"),
        *("inv", "cholesky", "solve", "solve_triangular", "solve_tridiagonal"),
        "callback",
    }
    y = MATRICES["in a loop"](gc.tensor("a", {"row": 2, "col": 2}))
    assert may_raise_inside(y.node.inputs[0])


A = gc.constant([[-0.5, 1.8], [1.2, 0.9]], ("b", "row"))
OTHER_AXES: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "solved along": lambda x: abs(
        gc.linalg.solve(A * x, ONE.rename(row="b"), ("b", "row")).rename(row="b")
    ),
    "reversed": lambda x: X.isel(t=(x > 0.9).astype("int64")).isel(b=slice(None, None, -1)),
    "gone and come again": lambda x: (
        gc.linalg.inv((x * gc.constant(np.eye(2), ROWS)).sum("b"), ROWS).sum(["row", "col"])
        + X.isel(t=(x > 0.9).astype("int64")).sum("b").expand_dims(b=2)
    ),
    "in a loop": lambda x: gc.fori_loop(0, 2, lambda i, y: OTHER_AXES["reversed"](y + i), x),
    "in a branch": lambda x: gc.cond(N < 9, lambda y: OTHER_AXES["reversed"](y), lambda y: y, x),
    "in a call": lambda x: gc.checkpoint(OTHER_AXES["reversed"])(x),
}


@pytest.mark.parametrize("name", OTHER_AXES)
def test_elements_along_a_dim_of_the_members_name_may_serve_them_all(name: str) -> None:
    """Found by random programs: elements that a member which goes on needs were made harmless."""
    x = gc.tensor("z", {"b": 2})

    def new(x: gc.Tensor) -> gc.Tensor:
        return x + 0.1 * OTHER_AXES[name](x)

    step = gc.compile([x, X, N], new(x))
    y = gc.while_loop(lambda x: x < 1.0, new, x)
    f = gc.compile([x, X, N], [y, gc.grad(y.sum(), x)])
    xs, value = np.array([1.0, 2.0, 4.0]), np.array([0.31, 0.83])
    found, slope = f(value, xs, 1)

    def by_hand(value: np.ndarray) -> np.ndarray:
        while (value < 1.0).any():
            value = np.where(value < 1.0, step(value, xs, 1), value)
        return value

    np.testing.assert_allclose(found, by_hand(value), rtol=1e-14)
    ahead, behind = (
        np.stack([by_hand(value + h * unit) for unit in np.eye(2)]) for h in (1e-6, -1e-6)
    )
    np.testing.assert_allclose(slope, (ahead - behind).sum(1) / 2e-6, rtol=1e-7)


def test_a_carry_that_only_feeds_itself_has_axes_of_its_own() -> None:
    """Found by a random program: it was masked along a dim of equal name and another size."""
    z, k = gc.tensor("z", {"b": 2}), gc.tensor("k", {"b": 3}, dtype="int64")

    def chosen() -> gc.Tensor:
        def step(i: gc.Tensor, carry: Any) -> Any:
            number, positions = carry
            return number + 1.0, X.isel(t=positions).astype("int64")

        return gc.fori_loop(0, N, step, (0.0, k))[0] + z

    f = gc.compile([z, k, X, N], gc.cond(z > 0.5, chosen, lambda: z))
    exactly(f([0.25, 0.75], [0, 1, 2], [2.0, 0.0, 1.0], 2), [0.25, 2.75])
