from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def loss(w, b, w_in, w_out, b_out, h0, c0, sequence):
    def step(carry, given):
        h, c = carry
        x, target = given
        x = x * w_in
        hs, cs = [], []
        for k in range(w.shape[0]):
            gates = jnp.stack([x, h[k], x, h[k]]) * w[k] + b[k]
            forget, ingate, outgate = jax.nn.sigmoid(gates[:3])
            cell = c[k] * forget + ingate * jnp.tanh(gates[3])
            x = outgate * jnp.tanh(cell)
            hs.append(x)
            cs.append(cell)
        y = x * w_out + b_out
        return (jnp.stack(hs), jnp.stack(cs)), target @ (y - jnp.log(2 + jnp.exp(y).sum()))

    _, likelihood = jax.lax.scan(step, (h0, c0), (sequence[:-1], sequence[1:]))
    return -likelihood.mean() / sequence.shape[1]


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(h0, c0, sequence, **parameters):
        def objective(p):
            return loss(**p, h0=h0, c0=c0, sequence=sequence)

        value, grads = jax.value_and_grad(objective)(parameters)
        return {"value": value, **{f"grad_{name}": g for name, g in grads.items()}}

    return f
