"""Programs of ours beside the same functions in plain JAX, and what JAX makes of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import graphcore as gc

Function = Callable[..., Any]


class Pair(NamedTuple):
    """A program of ours, the same function in plain JAX, and arguments."""

    ours: Function
    plain: Function
    args: tuple[Any, ...]


def same(ours: Any, plain: Any, digits: float = 1e4) -> None:
    """Trees of the same structure, shapes and dtypes, whose values differ by rounding."""
    a, b = jax.tree.flatten(ours), jax.tree.flatten(plain)
    assert a[1] == b[1]
    for x, y in zip(a[0], b[0], strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype != jax.dtypes.float0:
            eps = digits * float(np.finfo(x.dtype).eps) if x.dtype.kind in "fc" else 0.0
            scale = float(np.max(np.abs(y), initial=1.0))
            np.testing.assert_allclose(x, y, rtol=eps, atol=eps * scale)


def squares(f: Function) -> Function:
    """The sum of the squares of all results."""
    return lambda *args: sum((jnp.sum(y**2) for y in jax.tree.leaves(f(*args))), jnp.zeros(()))


def batches(args: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    """The first argument along a new axis, three times; the others as they are."""
    first = jax.tree.map(lambda x: jnp.stack([x, 1.5 * x, 0.5 * x], axis % (x.ndim + 1)), args[0])
    return (first, *args[1:])


def made(f: Function, args: tuple[Any, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What JAX makes of a function, by name."""
    wrt, g = tuple(range(len(args))), squares(f)
    axes = (0, *(None for _ in args[1:]))
    last = (-1, *axes[1:])
    first, behind = batches(args, 0), batches(args, -1)
    nested = batches(first, -1)
    yield "value", lambda: f(*args)
    yield "jvp", lambda: jax.jvp(f, args, args)
    yield "jacfwd", lambda: jax.jacfwd(f, wrt)(*args)
    yield "jacrev", lambda: jax.jacrev(f, wrt)(*args)
    yield "hessian", lambda: jax.hessian(g, wrt)(*args)
    yield "reverse over forward", lambda: jax.jacrev(jax.jacfwd(g, wrt), wrt)(*args)
    yield "reverse over reverse", lambda: jax.jacrev(jax.grad(g, wrt), wrt)(*args)
    yield "third", lambda: jax.jvp(jax.grad(lambda *a: jax.jvp(g, a, a)[1]), args, args)
    yield "vmap", lambda: jax.vmap(f, axes)(*first)
    yield "vmap along the last axis", lambda: jax.vmap(f, last, -1)(*behind)
    yield "vmap of vmap", lambda: jax.vmap(jax.vmap(f, axes), last)(*nested)
    yield "vmap of grad", lambda: jax.vmap(jax.grad(g, wrt), axes)(*first)
    yield "grad of vmap", lambda: jax.grad(squares(jax.vmap(f, axes)), wrt)(*first)
    yield "vmap of hessian", lambda: jax.vmap(jax.hessian(g), axes)(*first)
    yield "value and grad", lambda: jax.value_and_grad(g, wrt)(*args)
    yield "scan", lambda: jax.grad(in_a_scan(g))(args)
    yield "checkpoint", lambda: jax.grad(jax.checkpoint(g), wrt)(*args)


def in_a_scan(g: Function) -> Function:
    """A function that is called in each step of a loop of JAX."""

    def total(args: tuple[Any, ...]) -> Any:
        def step(carry: Any, scale: Any) -> Any:
            return carry + g(*jax.tree.map(lambda x: scale * x, args)), None

        return jax.lax.scan(step, jnp.zeros(()), jnp.asarray([1.0, 0.5]))[0]

    return total


def agree(pair: Pair, *names: str, digits: float = 1e4) -> None:
    """Ours and plain JAX agree in all that JAX makes of both, compiled as one program each."""
    values = []
    for f in (pair.ours, pair.plain):
        chosen = {name: run for name, run in made(f, pair.args) if not names or name in names}
        values.append(jax.jit(lambda chosen=chosen: {k: run() for k, run in chosen.items()})())
    same(*values, digits)


# ---- programs


def root() -> Pair:
    """A `while_loop` of ours, which JAX could not differentiate in reverse: cube roots."""
    a = gc.tensor("a", {"row": None})
    step = lambda z: z - (z**3 - a) / (3 * z**2)
    z = gc.while_loop(lambda z: abs(step(z) - z).max() > 1e-13, step, a * 0 + 1.3, max_steps=50)
    return Pair(
        gc.compile([a], z, target="jax"), lambda a: a ** (1 / 3), (jnp.asarray([2.0, 3.0]),)
    )


def system() -> Pair:
    """A linear solve of ours."""
    m, b = gc.tensor("m", {"row": None, "col": None}), gc.tensor("b", {"row": None})
    x = gc.linalg.solve(m, b, dims=("row", "col"))
    args = jnp.asarray([[2.0, 0.5], [0.25, 1.5]]), jnp.asarray([1.0, -2.0])
    return Pair(gc.compile([m, b], x, target="jax"), jnp.linalg.solve, args)


def recurrence() -> Pair:
    """A `scan` of ours."""
    x, w = gc.tensor("x", {"time": None, "k": 2}), gc.tensor("w", {"k": 2})
    last, ys = gc.scan(lambda c, x: (gc.sin(c * w + x), c * x), w * 0 + 0.1, x)
    ours = gc.compile([x, w], (last, ys.transpose("time", "k")), target="jax")

    def plain(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda c, x: (jnp.sin(c * w + x), c * x), w * 0 + 0.1, x)

    return Pair(
        ours, plain, (jnp.asarray([[0.5, 1.0], [2.0, -1.0], [0.1, 0.2]]), jnp.asarray([0.3, 0.7]))
    )


def trees() -> Pair:
    """Inputs and outputs in trees."""
    x, w = gc.tensor("x", {"row": None, "col": 2}), gc.tensor("w", {"col": 2})
    y = gc.tanh(gc.dot(x, w, dim="col"))
    ours = gc.compile([{"x": x, "more": [w]}], {"y": y, "pair": (y.sum(), gc.exp(x))}, target="jax")

    def plain(given: Any) -> Any:
        x, (w,) = given["x"], given["more"]
        y = jnp.tanh(x @ w)
        return {"y": y, "pair": (y.sum(), jnp.exp(x))}

    args = {"x": jnp.asarray([[0.5, 1.0], [2.0, -1.0]]), "more": [jnp.asarray([0.3, 0.7])]}
    return Pair(ours, plain, (args,))
