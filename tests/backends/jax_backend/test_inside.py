"""Programs of ours inside of functions that JAX transforms."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphcore as gc
from tests.shares import shared

from .inside import Pair, agree, made, recurrence, root, same, system, trees

exactly = np.testing.assert_array_equal
TWO = jnp.asarray([1.0, 2.0])


@pytest.fixture
def double() -> Any:
    with jax.enable_x64(True):
        yield


def product() -> Pair:
    x, w = gc.tensor("x", {"row": None}), gc.tensor("w", {"row": None})
    args = jnp.asarray([0.5, 2.0, -1.0]), jnp.asarray([1.5, 0.25, 3.0])
    plain = lambda x, w: jnp.sum(jnp.sin(x * w) * w)
    return Pair(gc.compile([x, w], (gc.sin(x * w) * w).sum(), target="jax"), plain, args)


def test_derivatives_and_batches_nest_as_those_of_jax() -> None:
    agree(product(), "hessian", "vmap of grad", "grad of vmap")


@pytest.mark.parametrize("bits", shared([64, 32], 2))
@pytest.mark.parametrize("pair", [product, root, system, recurrence, trees])
def test_all_that_jax_makes_of_programs(pair: Callable[[], Pair], bits: int) -> None:
    digits = 1e7 if pair is root and bits == 64 else 1e5  # Newton's derivatives come after values
    with jax.enable_x64(bits == 64):
        agree(pair(), digits=digits)


@pytest.mark.slow
def test_without_jit_around_it_all_is_the_same() -> None:
    """A call without any transformation around it is another: it gives arrays of NumPy."""
    pair = product()
    names = {name for name, _ in made(pair.plain, pair.args)} - {"value"}
    found = [
        {name: run() for name, run in made(f, pair.args) if name in names}
        for f in (pair.ours, pair.plain)
    ]
    same(*found)


# ---- dtypes


def test_results_are_of_32_bits_unless_the_user_asks_for_64() -> None:
    """The program computes in its own dtypes: the difference of neighbours is not lost."""
    x = gc.tensor("x", {})
    f = gc.compile(
        [x], {"small": (x + 1e-12) - x, "n": gc.argmax(x.expand_dims("row"))}, target="jax"
    )
    found = jax.jit(f)(jnp.float32(1.0))
    assert found["small"].dtype == "float32"
    assert found["n"].dtype == "int32"
    np.testing.assert_allclose(found["small"], 1e-12, rtol=1e-3)
    with jax.enable_x64(True):
        found = jax.jit(f)(1.0)
        assert found["small"].dtype == "float64"
        assert found["n"].dtype == "int64"
    assert not jax.config.read("jax_enable_x64")


def test_a_program_of_float32_stays_one(double: None) -> None:
    x = gc.tensor("x", {"row": None}, dtype="float32")
    f = gc.compile([x], x.sum() ** 2, target="jax")
    y, slope = jax.jit(jax.value_and_grad(f))(jnp.asarray(TWO, "float32"))
    assert (y.dtype, slope.dtype) == ("float32", "float32")
    with pytest.raises(gc.GraphError, match="input 'x' is float32, but got float64"):
        jax.jit(f)(jnp.asarray(TWO, "float64"))


@pytest.mark.slow
def test_integers_have_no_derivatives() -> None:
    t, k = gc.tensor("t", {"row": None}), gc.tensor("k", {"pick": None}, dtype="int64")
    y = t.isel(row=k)
    f = gc.compile([t, k], {"y": y, "n": k.sum(), "same": k > 0}, target="jax")
    table, picks = jnp.asarray([0.5, 2.0, 3.0]), jnp.asarray([2, 0, 2])

    @jax.jit
    def all_of_them(table: Any, picks: Any) -> Any:
        zero = np.zeros(picks.shape, jax.dtypes.float0)
        return (
            jax.jvp(f, (table, picks), (table, zero)),
            jax.grad(lambda t, k: (f(t, k)["y"] ** 2).sum(), (0, 1), allow_int=True)(table, picks),
            jax.vmap(f, (None, 0))(table, jnp.stack([picks, 0 * picks])),
        )

    (ys, moved), (slope, none), wide = all_of_them(table, picks)
    exactly(moved["y"], table[picks])
    assert moved["n"].dtype == moved["same"].dtype == none.dtype == jax.dtypes.float0
    exactly(slope, [1.0, 0.0, 12.0])
    exactly(wide["n"], [4, 0])
    assert ys["n"] == 4


@pytest.mark.slow
def test_complex_values_have_the_derivatives_of_jax(double: None) -> None:
    z = gc.tensor("z", {"row": None}, dtype="complex128")
    ours = gc.compile([z], abs(gc.exp(z) * z.conj()).sum(), target="jax")
    plain = lambda z: jnp.abs(jnp.exp(z) * jnp.conj(z)).sum()
    args = (jnp.asarray([0.5 + 1j, -1.0 + 0.25j]),)
    agree(Pair(ours, plain, args), "value", "jvp", "vmap", "vmap of grad", "value and grad")


# ---- calls


def test_arrays_that_jax_does_not_trace_go_the_usual_way() -> None:
    x, k = gc.tensor("x", {"row": None}), gc.tensor("k", {}, dtype="int64")
    f = gc.compile([x, k], x.isel(row=k), target="jax")
    with pytest.raises(gc.GraphError, match=r"index 7|position 7"):
        f(TWO, jnp.asarray(7))


def test_arguments_that_are_not_traced_may_be_anything() -> None:
    x, w = gc.tensor("x", {"row": None}), gc.tensor("w", {"row": None})
    f = gc.compile([x, w], (x * w).sum(), target="jax")
    exactly(jax.jit(lambda x: f(x, [1.0, 2.0]))(TWO), 5.0)
    exactly(jax.grad(lambda x: f(w=np.asarray([3.0, 4.0]), x=x))(TWO), [3.0, 4.0])


def test_a_function_takes_what_jax_traces() -> None:
    @gc.function(x=("row",), target="jax")
    def powers(x: Any, power: int = 2) -> Any:
        return {"total": (x**power).sum(), "list": [x]}

    exactly(jax.jit(powers)(TWO)["list"][0], TWO)
    exactly(jax.grad(lambda x: powers(x, power=3)["total"])(TWO), [3.0, 12.0])


@pytest.mark.slow
def test_a_value_that_is_a_size_is_known_when_jax_traces() -> None:
    n, x = gc.tensor("n", {}, dtype="int64"), gc.tensor("x", {"row": None})
    f = gc.compile([n, x], (gc.arange(n, dim="i") * x.sum()).sum(), target="jax")
    exactly(jax.grad(lambda x: f(4, x) + f(np.int64(3), x))(TWO), [9.0, 9.0])
    with pytest.raises(gc.GraphError, match="the value of input 'n' is a size") as found:
        jax.jit(f)(4, TWO)
    assert "static_argnums" in str(found.value)


def test_what_does_not_fit_is_refused_in_our_words() -> None:
    x = gc.tensor("x", {"row": 2})
    f = gc.compile([x], x * 2, target="jax")
    with pytest.raises(
        gc.GraphError, match="dim 'row' of input 'x' has size 3, but must have 2"
    ) as e:
        jax.vmap(f)(jnp.ones((2, 3)))
    assert re.search(r"called at test_inside\.py:\d+", str(e.value))
    distinct = gc.compile(
        [gc.tensor("y", {"row": None})], gc.unique(gc.tensor("y", {"row": None})), target="jax"
    )
    with pytest.raises(gc.GraphError, match="only arrays of known sizes"):
        jax.jit(distinct)(TWO)


def test_a_program_is_shown_by_its_types() -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], x.sum(), target="jax")
    shown = str(jax.make_jaxpr(jax.grad(f))(TWO))
    assert "graphcore[" in shown
    assert "x: f64[row]" in shown


def test_large_constants_are_in_a_program_once_and_in_their_own_dtype() -> None:
    """The value and the pullback have the same one; 1e-12 above 1 is nothing in float32."""
    x, table = gc.tensor("x", {"row": None}), 1 + 1e-12 * np.arange(4e5).reshape(2, 200_000)
    y = gc.dot(gc.constant(table, ("k", "row")) - 1.0, x * 1e12, dim="row")
    f = gc.compile([x], gc.sqrt(y).sum(), target="jax")
    with_slopes = jax.jit(jax.vmap(jax.value_and_grad(f)))
    given = jnp.ones((2, 200_000)) * jnp.asarray([[1.0], [4.0]])
    assert table.nbytes < len(with_slopes.lower(given).as_text()) / 2 < 1.2 * table.nbytes
    rows = (table - 1.0) * 1e12
    roots = np.sqrt(rows.sum(1))
    value, slopes = with_slopes(given)
    np.testing.assert_allclose(value, roots.sum() * np.array([1.0, 2.0]), 1e-6)
    wanted = (rows / roots[:, None] / 2).sum(0)
    np.testing.assert_allclose(slopes, wanted * np.array([[1.0], [0.5]]), 1e-5)
    np.testing.assert_allclose(jax.grad(f)(given[0]), wanted, 1e-5)


@pytest.mark.slow
def test_functions_of_the_host() -> None:
    x = gc.tensor("x", {"row": None})
    flipped = gc.callback(lambda x: x[::-1], x, pullback=lambda operands, y, ct: (ct[::-1],))
    f = gc.compile([x], (flipped(x) * x).sum(), target="jax")
    exactly(jax.vmap(f)(jnp.stack([TWO, 2 * TWO])), [4.0, 16.0])
    exactly(jax.jit(jax.grad(f))(TWO), [4.0, 2.0])


@pytest.mark.slow
def test_prints_come_in_order_among_those_of_jax(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where nobody needs a value; the value prints, and no derivative; a batch prints once."""
    x = gc.tensor("x", {"row": None})
    last, _ = gc.scan(lambda c, e: (gc.print(c + e, "carry"), c), 0.0, gc.print(x, "x"), dim="row")
    f = gc.compile([x], gc.print(last, "last"), target="jax")

    def twice(x: Any) -> Any:
        f(3 * x)
        jax.debug.print("between", ordered=True)
        return jnp.sin(f(x))

    def printed(run: Callable[[Any], Any], given: Any) -> list[str]:
        run(given)
        jax.effects_barrier()
        return capsys.readouterr().out.splitlines()

    show = lambda x, *carries: [f"x: f64[row=2] = {x}", *[f"carry: f64[] = {c}" for c in carries]]
    wanted = [*show("[3. 6.]", "3.", "9."), "last: f64[] = 9.", "between"]
    wanted += [*show("[1. 2.]", "1.", "3."), "last: f64[] = 3."]
    for change in (lambda f: f, jax.grad, jax.hessian, jax.value_and_grad):
        assert printed(jax.jit(change(twice)), TWO) == wanted
    assert printed(jax.grad(twice), TWO) == wanted
    in_steps = lambda x: jax.lax.scan(lambda c, _: (c + f(c * x), None), 1.0, length=2)[0]
    wanted = [*show("[1. 2.]", "1.", "3."), "last: f64[] = 3."]
    wanted += [*show("[4. 8.]", "4.", "12."), "last: f64[] = 12."]
    assert printed(jax.jit(jax.grad(in_steps)), TWO) == wanted
    found = printed(jax.jit(jax.vmap(f)), jnp.stack([TWO, 3 * TWO]))
    assert found[-2:] == ["carry: f64[member=2] = [3. 9.]", "last: f64[member=2] = [3. 9.]"]


# ---- failures


def test_failures_give_nan_and_integers_0() -> None:
    t, k = gc.tensor("t", {"row": None}), gc.tensor("k", {}, dtype="int64")

    def refused(x: Any) -> Any:
        raise ValueError

    y = t.isel(row=k)
    f = gc.compile([t, k], {"y": y, "n": k + 1, "same": k > 0}, target="jax")
    found = jax.jit(f)(TWO, 7)
    assert np.isnan(found["y"])
    assert (int(found["n"]), bool(found["same"])) == (0, False)
    assert np.isnan(jax.grad(lambda t: f(t, 7)["y"])(TWO)).all()
    exactly(jax.jit(f)(TWO, 1)["y"], 2.0)
    h = gc.compile([t], gc.callback(refused, t)(t), target="jax")
    assert np.isnan(jax.jit(h)(TWO)).all()


def test_the_pullback_of_a_while_loop_needs_a_limit() -> None:
    x = gc.tensor("x", {})
    double = lambda most: gc.while_loop(lambda y: y < 100, lambda y: y * x, x, max_steps=most)
    free = gc.compile([x], double(None), target="jax")
    exactly(jax.jvp(free, (3.0,), (1.0,))[1], 5 * 3.0**4)
    with pytest.raises(gc.GraphError, match="the derivative of the while_loop at") as found:
        jax.grad(free)(3.0)
    assert "max_steps=100" in str(found.value)
    exactly(jax.jit(jax.grad(gc.compile([x], double(50), target="jax")))(3.0), 5 * 3.0**4)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_as_many_steps_as_the_limit(steps: int) -> None:
    x = gc.tensor("x", {})
    y = gc.while_loop(lambda y: y < 100, lambda y: y * x, x, max_steps=steps)
    f = gc.compile([x], y, target="jax")
    exactly(jax.grad(f)(3.0), (steps + 1) * 3.0**steps)
    hessian = (steps + 1) * steps * 3.0 ** (steps - 1)
    exactly(jax.hessian(f)(3.0), hessian)
    exactly(jax.vmap(jax.grad(f))(jnp.asarray([3.0, 200.0])), [(steps + 1) * 3.0**steps, 1.0])
