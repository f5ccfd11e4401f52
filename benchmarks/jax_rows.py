"""The rows in JAX, which differentiates them itself: jitted, float64, one thread."""

from __future__ import annotations

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_enable_async_dispatch", False)  # no other thread to wake and wait for


@jax.jit
def elementwise(x, y):
    u = x * y + x
    v = jnp.tanh(u) - 0.5 * y
    w = jnp.sqrt(v * v + 1)
    return (w * jnp.exp(-u * u) + v,)


@jax.jit
def softmax(x):
    return (jax.nn.softmax(x, axis=-1),)


@jax.jit
def layer_norm(x, scale, shift, ct):
    def value(x, scale, shift):
        centered = x - x.mean(axis=-1, keepdims=True)
        return centered / jnp.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * scale + shift

    y, back = jax.vjp(value, x, scale, shift)
    return y, *back(ct)


@jax.jit
def logistic(x, w, b, y):
    def value(w, b):
        z = x @ w + b
        return (jax.nn.softplus(z) - y * z).mean()

    loss, grads = jax.value_and_grad(value, (0, 1))(w, b)
    return loss, *grads


@jax.jit
def mlp(x, w1, b1, w2, b2, y):
    def value(w1, b1, w2, b2):
        logp = jax.nn.log_softmax(jnp.tanh(x @ w1 + b1) @ w2 + b2)
        return -jnp.take_along_axis(logp, y[:, None], axis=1).mean()

    loss, grads = jax.value_and_grad(value, (0, 1, 2, 3))(w1, b1, w2, b2)
    return loss, *grads


@jax.jit
def attention(q, k, v, ct):
    def value(q, k, v):
        return jax.nn.softmax(q * q.shape[-1] ** -0.5 @ k.mT) @ v

    y, back = jax.vjp(value, q, k, v)
    return y, *back(ct)
