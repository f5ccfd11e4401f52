from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

STEPS, DT = 40, 0.05


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(phase, speed, pull):
        def change(phase):
            return speed + (pull * jnp.sin(phase - phase[:, None])).sum(1)

        def step(phase, _):
            k1 = change(phase)
            k2 = change(phase + DT / 2 * k1)
            k3 = change(phase + DT / 2 * k2)
            phase = phase + DT / 6 * (k1 + 2 * k2 + 2 * k3 + change(phase + DT * k3))
            return phase, jnp.hypot(jnp.cos(phase).mean(), jnp.sin(phase).mean())

        last, order = jax.lax.scan(step, phase, length=STEPS)
        return {"phase": last, "order": order}

    return f
