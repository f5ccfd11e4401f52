from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp


def layer_norm(x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


def loss(tokens, targets, p):
    batch, time = tokens.shape
    layers, embed, _, heads, size = p["w_qkv"].shape
    x = p["wte"][tokens] + p["wpe"]
    causal = jnp.tril(jnp.ones((time, time), bool))
    for k in range(layers):
        normed = layer_norm(x, p["ln1_g"][k], p["ln1_b"][k])
        qkv = normed @ p["w_qkv"][k].reshape(embed, -1) + p["b_qkv"][k].reshape(-1)
        query, key, value = (z.reshape(batch, time, heads, size) for z in jnp.split(qkv, 3, -1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(size)
        weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), -1)
        heard = jnp.einsum("bhqk,bkhd->bqhd", weights, value).reshape(batch, time, embed)
        x = x + heard @ p["w_o"][k].reshape(embed, embed) + p["b_o"][k]
        u = layer_norm(x, p["ln2_g"][k], p["ln2_b"][k]) @ p["w_fc"][k] + p["b_fc"][k]
        x = x + jax.nn.gelu(u, approximate=False) @ p["w_pr"][k] + p["b_pr"][k]
    logits = layer_norm(x, p["lnf_g"], p["lnf_b"]) @ p["wte"].T
    log_p = jax.nn.log_softmax(logits, -1)
    return -jnp.mean(jnp.take_along_axis(log_p, targets[..., None], -1))


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(tokens, targets, **weights):
        value, grads = jax.value_and_grad(loss, 2)(tokens, targets, weights)
        return {"value": value, **{f"grad_{name}": g for name, g in grads.items()}}

    return f
