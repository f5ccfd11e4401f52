"""Functions with a pullback of their own: what they may use, and each mode of derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

C = gc.constant([1.0, 2.0], "i") * 2


def close(found: Any, wanted: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-14)


# ---- what a function and its rule may use

COMPUTED: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "constant": lambda a: a * gc.constant([2.0, 4.0], "i"),
    "made inside": lambda a: a * (gc.constant([1.0, 2.0], "i") * 2),
    "made outside": lambda a: a * C,
    "arange": lambda a: a * (gc.arange(2, dim="i") + 1) ** 1 * 2,
    "in a loop": lambda a: gc.scan(lambda s, _: (s + a * C, None), 0.0, length=4)[0] / 4,
    "carried": lambda a: gc.fori_loop(0, 2, lambda i, s: s, C) * a,
    "counted": lambda a: gc.while_loop(lambda s: s < 1e9, lambda s: s + a * C, 0.0, max_steps=1),
    "jacobian": lambda a: gc.jacobian(a * a * C / 2, a).sum("i'"),
    "hessian": lambda a: gc.hessian((a * a * a * C / 6).sum(), a).sum("i'"),
}


@pytest.mark.parametrize("case", COMPUTED)
def test_what_depends_on_no_input_is_no_capture(case: str) -> None:
    """In the function and in its rule."""
    inside = COMPUTED[case]
    a = gc.tensor("a", {"i": 2})
    y = gc.custom_pullback(inside, lambda xs, y, ct: (inside(ct),))(a)
    f = gc.compile([a], [y, gc.grad(y.sum(), a), gc.pushforward(y, a, a)])
    at = np.array([3.0, 5.0])
    for found, wanted in zip(f(at), (at * [2, 4], [2, 4], at * [2, 4]), strict=True):
        close(found, wanted)


def test_a_rule_of_known_sizes_for_an_operand_of_an_unknown_one() -> None:
    a = gc.tensor("a", {"cell": None})
    weight = gc.constant([3.0, 7.0], "cell")
    y = gc.custom_pullback(lambda a: a * 1.0, lambda xs, y, ct: (ct.sum() * weight,))(a)
    f = gc.compile([a], gc.grad(y.sum(), a))
    close(f(np.ones(2)), [6.0, 14.0])
    with pytest.raises(gc.GraphValueError, match=r"custom_pullback.*'cell'.*3 and 2"):
        f(np.ones(3))


# ---- rules with loops: every mode, against the closed form


def geometric(a: gc.Tensor) -> gc.Tensor:
    """z = a z + 1, so z = 1 / (1 - a)."""
    return gc.while_loop(lambda z: abs(a * z + 1 - z) > 1e-13, lambda z: a * z + 1, gc.ones_like(a))


def series(operands: Any, z: gc.Tensor, ct: gc.Tensor) -> Any:
    """v = ct + a v, then v z."""
    (a,) = operands
    v = gc.while_loop(lambda v: abs(ct + a * v - v) > 1e-13, lambda v: ct + a * v, ct)
    return (v * z,)


def test_modes_of_a_rule_with_a_loop() -> None:
    a, t = gc.tensor("a", {}), gc.tensor("t", {})
    z = gc.custom_pullback(geometric, series)(a)
    first, second = gc.grad(z, a), gc.grad(gc.grad(z, a), a)
    once = [first, gc.pushforward(z, a, t), gc.jacobian(z, a)]
    twice = [second, gc.hvp(z, a, t), gc.grad(gc.pushforward(z, a, t), a), gc.hessian(z, a),
             gc.pushforward(gc.pushforward(z, a, t), a, t)]  # fmt: skip
    thrice = [gc.grad(second, a), gc.pushforward(second, a, t), gc.grad(gc.hvp(z, a, t), a)]
    f = gc.compile([a, t], [z, *once, *twice, *thrice])
    for at in (0.5, -0.3):
        z_ = 1 / (1 - at)
        wanted = [z_, *[z_**2] * 3, *[2 * z_**3] * 5, *[6 * z_**4] * 3]
        for found, value in zip(f(at, 1.0), wanted, strict=True):
            close(found, value, 1e-9)


def test_second_derivatives_where_the_cotangent_is_zero() -> None:
    """At a least square the loop of the rule makes no step, and yet its derivative counts."""
    a, t = gc.tensor("a", {}), gc.tensor("t", {})
    z = gc.custom_pullback(geometric, series)(a)
    loss = (z - 2) ** 2
    curves = [gc.hvp(loss, a, t), gc.grad(gc.grad(loss, a), a), gc.hessian(loss, a)]
    flat = (z - 2) ** 3
    thirds = [gc.grad(gc.grad(gc.grad(flat, a), a), a), gc.pushforward(gc.hvp(flat, a, t), a, t)]
    found = gc.compile([a, t], [gc.grad(loss, a), *curves, *thirds])(0.5, 1.0)
    for got, wanted in zip(found, [0, 32, 32, 32, 384, 384], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_modes_of_a_complex_rule_with_a_loop() -> None:
    a, t = (gc.tensor(name, {"i": 2}, dtype="complex128") for name in "at")
    z = gc.custom_pullback(geometric, series)(a)
    size = gc.pushforward(abs(z), a, t)
    slope = gc.grad((z * z).real.sum(), a)
    f = gc.compile([a, t], [z, gc.pushforward(z, a, t), size, gc.pushforward(slope, a, t)])
    at, move = np.array([0.3 + 0.4j, -0.2j]), np.array([1 - 2j, 0.5 + 1j])
    z_ = 1 / (1 - at)
    dz = z_**2 * move
    wanted = [z_, dz, (z_.conj() * dz).real / abs(z_), 6 * z_**4 * move]
    for found, value in zip(f(at, move), wanted, strict=True):
        close(found, value, 1e-9)


def matvec(a: gc.Tensor, v: gc.Tensor) -> gc.Tensor:
    return gc.dot(a, v.rename(i="j"), dim="j")


def conjugate_gradients(a: gc.Tensor, b: gc.Tensor) -> gc.Tensor:
    """The solution of a x = b, for a symmetric positive matrix over i and j."""

    def step(state: Any) -> Any:
        x, r, p, square = state
        q = matvec(a, p)
        alpha = square / (p * q).sum("i")
        new = r - alpha * q
        fresh = (new * new).sum("i")
        return x + alpha * p, new, new + fresh / square * p, fresh

    least = 1e-28 * (b * b).sum("i")
    start = (gc.zeros_like(b), b, b, (b * b).sum("i"))
    return gc.while_loop(lambda state: state[3] > least, step, start)[0]


def adjoint(operands: Any, x: gc.Tensor, ct: gc.Tensor) -> Any:
    v = conjugate_gradients(operands[0], ct)
    return -v * x.rename(i="j"), v


N = 5
SYSTEM = np.random.default_rng(3).normal(size=(2, N, N))
SYSTEM = SYSTEM @ SYSTEM.transpose(0, 2, 1) + N * np.eye(N)
LOADS, MOVED, WEIGHTS = np.random.default_rng(4).normal(size=(3, 2, N))
TILT = np.random.default_rng(5).normal(size=(2, N, N))
TILT = TILT + TILT.transpose(0, 2, 1)


def expected(a: Any, b: Any, da: Any, db: Any) -> list[Any]:
    """Of x = a^-1 b and the sum of x^3: x, dx, the gradients, and how these move."""
    x = np.linalg.solve(a, b)
    dx = np.linalg.solve(a, db - da @ x)
    v = np.linalg.solve(a, 3 * x * x)
    dv = np.linalg.solve(a, 6 * x * dx - da @ v)
    slopes = [-np.outer(v, x), v]
    return [x, dx, *slopes, -np.outer(dv, x) - np.outer(v, dx), dv]


def test_modes_of_conjugate_gradients() -> None:
    a, da = (gc.tensor(name, {"i": N, "j": N}) for name in ("a", "da"))
    b, db = (gc.tensor(name, {"i": None}) for name in ("b", "db"))
    x = gc.custom_pullback(conjugate_gradients, adjoint)(a, b)
    loss = (x**3).sum()
    slopes = gc.grad(loss, [a, b])
    outputs = [x, gc.pushforward(x, [a, b], [da, db]), *slopes]
    outputs += gc.hvp(loss, [a, b], [da, db])
    f = gc.compile([a, b, da, db], [*outputs, gc.jacobian(x, b), gc.jacobian(x, a)])
    values = SYSTEM[0], LOADS[0], TILT[0], MOVED[0]
    inverse = np.linalg.inv(SYSTEM[0])
    wanted = [*expected(*values), inverse, -np.multiply.outer(inverse, LOADS[0] @ inverse)]
    for found, value in zip(f(*values), wanted, strict=True):
        close(found, value, 1e-10)


def test_tangents_along_one_eigenvector() -> None:
    """One step of conjugate gradients solves for it: too few for any other direction."""
    a, b, db = gc.tensor("a", {"i": N, "j": N}), gc.tensor("b", "i"), gc.tensor("db", "i")
    x = gc.custom_pullback(conjugate_gradients, adjoint)(a, b)
    goal = gc.tensor("goal", "i")
    loss = ((x - goal) ** 2).sum()
    f = gc.compile([a, b, db, goal], [gc.pushforward(x, b, db), gc.hvp(loss, b, db)])
    vector = np.linalg.eigh(SYSTEM[0])[1][:, 0]
    solved = np.linalg.solve(SYSTEM[0], LOADS[0])
    for move in (vector, LOADS[0], np.ones(N)):
        for target in (solved, solved + vector, 0 * vector):
            dx = np.linalg.solve(SYSTEM[0], move)
            found = f(SYSTEM[0], LOADS[0], move, target)
            close(found[0], dx, 1e-10)
            close(found[1], np.linalg.solve(SYSTEM[0], 2 * dx), 1e-10)


def test_a_rule_that_solves_by_a_function_with_a_rule() -> None:
    """Then its second derivatives do not go through the steps of the solver either."""
    solve = gc.custom_pullback(conjugate_gradients, adjoint)

    def rule(operands: Any, x: gc.Tensor, ct: gc.Tensor) -> Any:
        v = solve(operands[0], ct)
        return -v * x.rename(i="j"), v

    a, da = (gc.tensor(name, {"i": N, "j": N}) for name in ("a", "da"))
    b, c = gc.tensor("b", "i"), gc.tensor("c", "i")
    loss = (gc.custom_pullback(conjugate_gradients, rule)(a, b) * c).sum()
    f = gc.compile([a, b, c, da], [gc.grad(loss, b), *gc.hvp(loss, [a, b], [da, gc.zeros_like(b)])])
    c_ = np.linalg.eigh(SYSTEM[0])[1][:, 0]
    x, v = np.linalg.solve(SYSTEM[0], LOADS[0]), np.linalg.solve(SYSTEM[0], c_)
    dx, dv = -np.linalg.solve(SYSTEM[0], TILT[0] @ x), -np.linalg.solve(SYSTEM[0], TILT[0] @ v)
    wanted = [v, -np.outer(dv, x) - np.outer(v, dx), dv]
    for found, value in zip(f(SYSTEM[0], LOADS[0], c_, TILT[0]), wanted, strict=True):
        close(found, value, 1e-10)


# ---- batches


def ops(compiled: gc.Compiled) -> set[str]:
    return {node.op.name for node in compiled.stages["expanded"].every_node()}


def runs(compiled: gc.Compiled) -> set[int]:
    """The lengths of the loops over the places of results: those that are known."""
    nodes = compiled.stages["expanded"].every_node()
    lengths = [node.attrs["length"] for node in nodes if node.op.name == "scan"]
    return {length for length in lengths if isinstance(length, int)}


@pytest.mark.parametrize("how", ["declared", "vectorised"])
def test_members_of_a_batch_share_a_run_of_the_rule(how: str) -> None:
    """Each is answered for at once; of a system each of its places in turn."""
    many = {"member": None}
    a, da, b, db = [gc.tensor(n, many | {"i": N, "j": N}) for n in ("a", "da")] + [
        gc.tensor(n, many | {"i": N}) for n in ("b", "db")
    ]
    one = [gc.tensor(x.name or "", {d: N for d in x.dims if d != "member"}) for x in (a, b, da, db)]
    solve = gc.custom_pullback(conjugate_gradients, adjoint)

    def asked(a: gc.Tensor, b: gc.Tensor, da: gc.Tensor, db: gc.Tensor) -> list[gc.Tensor]:
        x = solve(a, b)
        loss = (x**3).sum()
        return [x, gc.pushforward(x, [a, b], [da, db]), *gc.grad(loss, [a, b]),
                *gc.hvp(loss, [a, b], [da, db])]  # fmt: skip

    outputs = asked(a, b, da, db)
    if how == "vectorised":
        outputs = gc.vectorize(asked(*one), dict(zip(one, (a, b, da, db), strict=True)))
    f = gc.compile([a, b, da, db], outputs)
    values = SYSTEM, LOADS, TILT, MOVED
    wanted = zip(*[expected(*each) for each in zip(*values, strict=True)], strict=True)
    for found, value in zip(f(*(values[i] for i in (0, 1, 2, 3))), wanted, strict=True):
        close(found, np.stack(value), 1e-9)
    assert runs(f) == {N}


def test_places_that_a_rule_does_not_mix_need_one_run() -> None:
    a, t = gc.tensor("a", {"row": None, "col": 2}), gc.tensor("t", {"row": None, "col": 2})
    z = gc.custom_pullback(geometric, series)(a)
    f = gc.compile([a, t], [gc.pushforward(z, a, t), gc.hvp((z**2).sum(), a, t)])
    assert "scan" not in ops(f)
    at, move = np.array([[0.5, 0.2], [-0.4, 0.6], [0.1, 0.3]]), np.arange(6.0).reshape(3, 2)
    z_ = 1 / (1 - at)
    for found, value in zip(f(at, move), (z_**2 * move, 6 * z_**4 * move), strict=True):
        close(found, value, 1e-9)


def test_a_rule_whose_graph_is_linear_is_transposed() -> None:
    """A counted loop, a matrix product, a selection by what is known: no run for each place."""
    a, t = gc.tensor("a", {"i": N}), gc.tensor("t", {"i": N})

    def rule(operands: Any, y: gc.Tensor, ct: gc.Tensor) -> Any:
        (a,) = operands
        v = gc.where(a > 0, ct, 2 * ct) / (1 + a * a) + gc.cumsum(ct, "i")
        v, _ = gc.scan(lambda v, _: (matvec(gc.constant(SYSTEM[0], ("i", "j")), v) * a + ct, None),
                       v, length=3)  # fmt: skip
        return (v,)

    y = gc.custom_pullback(lambda a: a * a, rule)(a)
    f = gc.compile([a, t], [gc.pushforward(y, a, t), gc.pullback(y, a, t)])
    assert "linear" not in ops(f)
    assert runs(f) == {3}
    at = LOADS[0]
    unit = np.eye(N)
    rows = np.array([f(at, e)[1] for e in unit])
    close(f(at, MOVED[0])[0], rows @ MOVED[0], 1e-12)


# ---- rules that are not linear

A = gc.tensor("a", {"i": None})


def by_hand(operands: Any, y: gc.Tensor, ct: gc.Tensor) -> Any:
    """Conjugate gradients written out, whose steps divide one square by another."""
    matrix = gc.constant(SYSTEM[0][:3, :3], ("i", "j"))
    v, r, p = 0 * ct, ct, ct
    for _ in range(3):
        q = matvec(matrix, p)
        alpha = (r * r).sum() / (p * q).sum()
        new = r - alpha * q
        v, p, r = v + alpha * p, new + (new * new).sum() / (r * r).sum() * p, new
    return (v,)


LINEAR: dict[str, Any] = {
    "product": lambda xs, y, ct: (ct * xs[0] * 2,),
    "quotient": lambda xs, y, ct: (ct * (xs[0] * xs[0] * 2) / xs[0],),
    "zeros": lambda xs, y, ct: (gc.zeros_like(xs[0]),),
    "nothing": lambda xs, y, ct: (0 * xs[0],),
    "guard": lambda xs, y, ct: (ct * ct / gc.maximum(abs(ct), 1e-300) * gc.sign(ct),),
    "selection": lambda xs, y, ct: (gc.where(xs[0] > 0, ct, 2 * ct),),
    "scale": lambda xs, y, ct: (abs(ct).max() * (ct / abs(ct).max()),),
    "root": lambda xs, y, ct: (gc.sqrt((ct * ct).sum()) * ct / gc.norm(ct, dim="i"),),
    "power": lambda xs, y, ct: (ct**3 * (ct * ct).sum() ** -1.5 * (ct * ct).sum() ** 0.5,),
    "pulled back": lambda xs, y, ct: (gc.pullback(gc.sin(xs[0]), xs[0], ct),),
    "written out": by_hand,
    "by place": lambda xs, y, ct: (gc.cond(ct > 0, lambda: ct, lambda: 1.0 * ct),),
    "counted": lambda xs, y, ct: (gc.fori_loop(0, 3, lambda i, s: s / 2 + ct, 0.0),),
    "from a start": lambda xs, y, ct: (gc.fori_loop(0, 60, lambda i, s: s / 2 + ct, xs[0]),),
}
"""Rules that are linear, or may be: the power by which they grow does not say that they are not."""


@pytest.mark.parametrize("case", LINEAR)
def test_linear_rules_are_taken(case: str) -> None:
    t = gc.tensor("t", {"i": None})
    y = gc.custom_pullback(lambda a: a * a, LINEAR[case])(A)
    f = gc.compile([A, t], [gc.pullback(y, A, t), gc.pushforward(y, A, t)])
    assert all(
        np.isfinite(v).all() for v in f(np.array([1.0, -2.0, 3.0]), np.array([1.0, 2.0, 4.0]))
    )


# ---- a pushforward of one's own


def layer(w: gc.Tensor, x: gc.Tensor, z: gc.Tensor) -> gc.Tensor:
    return gc.tanh(matvec(w, z) + x)


def settled(step: Callable[[gc.Tensor], gc.Tensor], start: gc.Tensor) -> gc.Tensor:
    """The fixed point of a step."""
    return gc.while_loop(lambda z: (abs(step(z) - z) > 1e-14).any(), step, start)


def equilibrium(w: gc.Tensor, x: gc.Tensor) -> gc.Tensor:
    return settled(lambda z: layer(w, x, z), gc.zeros_like(x))


def backward(operands: Any, z: gc.Tensor, ct: gc.Tensor) -> Any:
    (w, _), slope = operands, 1 - z * z
    v = settled(lambda v: ct + gc.dot(w, v * slope, dim="i").rename(j="i"), ct)
    return (v * slope) * z.rename(i="j"), v * slope


def forward(operands: Any, z: gc.Tensor, tangents: Any) -> gc.Tensor:
    (w, _), (dw, dx), slope = operands, tangents, 1 - z * z
    moved = slope * (matvec(dw, z) + dx)
    return settled(lambda dz: slope * matvec(w, dz) + moved, moved)


@pytest.mark.parametrize("batch", [False, True])
def test_a_pushforward_of_ones_own_serves_every_mode(batch: bool) -> None:
    """It gives what one run of the pullback for each place gives, in one run."""
    many = {"member": None} if batch else {}
    w, dw = (gc.tensor(name, {"i": N, "j": N}) for name in ("w", "dw"))
    x, dx = (gc.tensor(name, many | {"i": N}) for name in ("x", "dx"))
    one, done = gc.tensor("x", {"i": N}), gc.tensor("dx", {"i": N})

    def asked(own: Any) -> list[gc.Tensor]:
        z = own(w, one)
        loss = (z**3).sum()
        back, forth = gc.grad(loss, [w, one]), gc.pushforward(z, [w, one], [dw, done])
        twice = gc.pushforward(back, [w, one], [dw, done])
        again = gc.grad((back[1] * done).sum(), one)
        found = [
            z,
            forth,
            back[1],
            twice[1],
            again,
            gc.grad((forth**2).sum(), one),
            gc.pushforward(twice[1], one, done),
            gc.grad((twice[1] * forth).sum(), done),
        ]
        return gc.vectorize(found, {one: x, done: dx}) if batch else found  # fmt: skip

    inputs = [w, dw, x, dx]
    by_places = gc.compile(inputs, asked(gc.custom_pullback(equilibrium, backward)))
    in_one = gc.compile(inputs, asked(gc.custom_pullback(equilibrium, backward, forward)))
    assert runs(by_places) == {N}
    assert runs(in_one) == set()
    random = np.random.default_rng(8)
    shape = (2, N) if batch else (N,)
    values = [0.15 * random.normal(size=s) for s in ((N, N), (N, N), shape, shape)]
    for found, wanted in zip(in_one(*values), by_places(*values), strict=True):
        close(found, wanted, 1e-9)
    bumped = [[v + sign * 1e-6 * t for v, t in zip(values[::2], values[1::2], strict=True)]
              for sign in (1, -1)]  # fmt: skip
    ends = [in_one(w_, values[1], x_, values[3])[0] for w_, x_ in bumped]
    np.testing.assert_allclose(in_one(*values)[1], (ends[0] - ends[1]) / 2e-6, atol=1e-9)


def test_structures_and_integers_in_a_pushforward() -> None:
    a, n = gc.tensor("a", {"i": 2}), gc.tensor("n", {}, dtype="int64")
    t = gc.tensor("t", {"i": 2})

    def function(given: Any) -> Any:
        return {"y": given["a"] ** given["n"], "n": given["n"] + 1}

    def pullback(operands: Any, result: Any, ct: Any) -> Any:
        given = operands[0]
        return ({"a": ct["y"] * given["n"] * result["y"] / given["a"], "n": 0 * given["n"]},)

    def pushforward(operands: Any, result: Any, tangents: Any) -> Any:
        given = operands[0]
        moved = tangents[0]["a"] * given["n"] * result["y"] / given["a"]
        return {"y": moved, "n": 0 * given["n"]}

    y = gc.custom_pullback(function, pullback, pushforward)({"a": a, "n": n})["y"]
    f = gc.compile(
        [a, n, t], [y, gc.grad(y.sum(), a), gc.pushforward(y, a, t), gc.hvp(y.sum(), a, t)]
    )
    at, move = np.array([2.0, 3.0]), np.array([1.0, -1.0])
    for found, wanted in zip(f(at, 3, move), (at**3, 3 * at**2, 3 * at**2 * move, 6 * at * move)):
        close(found, wanted)


def test_a_cotangent_with_the_value_of_the_operand_does_not_move_with_it() -> None:
    """The rule of an identity is given ones, which is what the operand is as well."""
    x = gc.tensor("x", {"row": None})
    identity = gc.custom_pullback(
        lambda p: p, lambda xs, y, ct: (gc.pullback(xs[0] + 0, xs[0], ct),)
    )
    ones = gc.grad(x.sum(), x)
    y = identity(ones).sum()
    slope = gc.grad(y, ones)
    f = gc.compile([x], [gc.hvp(y, ones, ones), gc.pushforward(slope, ones, ones), slope])
    for found, wanted in zip(f(np.arange(3.0)), (0, 0, 1)):
        close(found, np.full(3, float(wanted)))
