"""JAX has no reverse mode through while_loop: the outer gradient is taken forwards."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

SMALL, PATIENCE = 1e-5, 10


def least(f, gradient, start, rate):
    def known(x):
        return x, f(x), gradient(f)(x)

    def descend(state):
        here, rate, good, _ = state
        new = known(here[0] - rate * here[2])
        arrived = jnp.linalg.norm(here[0] - new[0]) <= SMALL
        better = new[1] < here[1]
        taken = jax.tree.map(lambda a, b: jnp.where(better & ~arrived, a, b), new, here)
        rate = jnp.where(better, rate, rate / 2)
        return taken, rate, jnp.where(better, good + 1, 0), arrived

    def faster(state):
        here, rate, _, arrived = state
        return here, 2 * rate, 0, arrived

    def step(state):
        return jax.lax.cond(state[2] == PATIENCE, faster, descend, state)

    def goes_on(state):
        return (jnp.linalg.norm(state[0][2]) > SMALL) & ~state[3]

    return jax.lax.while_loop(goes_on, step, (known(start), rate, 0, False))[0][0]


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def run(a0, b0, rate):
        def f(a, b):
            return (a**2).sum() - (b**2).sum()

        def greatest(a):
            return least(lambda b: -f(a, b), jax.grad, b0, rate)

        a = least(lambda a: f(a, greatest(a)), jax.jacfwd, a0, rate)
        return {"a": a, "b": greatest(a)}

    return run
