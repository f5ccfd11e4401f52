"""GPT: the loss of a transformer on a text, and the gradient of every weight.

The model of nanoGPT (Karpathy), with random weights: embeddings of tokens and positions, blocks of
causal attention and a GELU network with layer norms before each, output weights tied to the
embedding of the tokens, mean cross-entropy.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf

import graphcore as gc

SIZES = {
    "tiny": {
        "batch": 2, "time": 5, "embed": 8, "head": 2, "layer": 2, "vocab": 11, "spread": 0.5
    },
    "small": {
        "batch": 4, "time": 64, "embed": 64, "head": 4, "layer": 2, "vocab": 256, "spread": 0.02
    },
}  # fmt: skip
WEIGHTS = {
    "wte": ("vocab", "embed"),
    "wpe": ("time", "embed"),
    "ln1_g": ("layer", "embed"),
    "ln1_b": ("layer", "embed"),
    "w_qkv": ("layer", "embed", "qkv", "head", "value"),
    "b_qkv": ("layer", "qkv", "head", "value"),
    "w_o": ("layer", "head", "value", "embed"),
    "b_o": ("layer", "embed"),
    "ln2_g": ("layer", "embed"),
    "ln2_b": ("layer", "embed"),
    "w_fc": ("layer", "embed", "hidden"),
    "b_fc": ("layer", "hidden"),
    "w_pr": ("layer", "hidden", "embed"),
    "b_pr": ("layer", "embed"),
    "lnf_g": ("embed",),
    "lnf_b": ("embed",),
}


def inputs(size: str) -> dict[str, np.ndarray]:
    given = SIZES[size]
    embed, heads = given["embed"], given["head"]
    sizes = given | {"qkv": 3, "value": embed // heads, "hidden": 4 * embed}
    rng = np.random.default_rng(16)

    def drawn(name: str, dims: tuple[str, ...]) -> np.ndarray:
        spread = 0.02 if name[:2] in ("ln", "b_") else given["spread"]
        values = spread * rng.standard_normal([sizes[dim] for dim in dims])
        return 1 + values if name.endswith("_g") else values

    weights = {name: drawn(name, dims) for name, dims in WEIGHTS.items()}
    tokens, targets = rng.integers(0, given["vocab"], (2, given["batch"], given["time"]))
    return {**weights, "tokens": tokens, "targets": targets}


def layer_norm(x: gc.Tensor, scale: gc.Tensor, shift: gc.Tensor) -> gc.Tensor:
    centred = x - x.mean("embed")
    return centred / gc.sqrt((centred**2).mean("embed") + 1e-5) * scale + shift


def gelu(x: gc.Tensor) -> gc.Tensor:
    return 0.5 * x * (1 + gc.special.erf(x / math.sqrt(2)))


def attention(x: gc.Tensor, w: dict[str, gc.Tensor]) -> gc.Tensor:
    query, key, value = gc.unbind(gc.dot(x, w["w_qkv"], dim="embed") + w["b_qkv"], "qkv")
    key, value = key.rename(time="past"), value.rename(time="past")
    scores = gc.dot(query, key, dim="value") / value.sizes["value"] ** 0.5
    time = x.sizes["time"]
    seen = gc.arange(time, dim="time") >= gc.arange(time, dim="past")
    weights = gc.special.softmax(scores.where(seen, -np.inf), "past")
    heard = gc.dot(weights, value, dim="past")
    return gc.dot(heard, w["w_o"], dim=["head", "value"]) + w["b_o"]


def block(x: gc.Tensor, w: dict[str, gc.Tensor]) -> tuple[gc.Tensor, None]:
    x = x + attention(layer_norm(x, w["ln1_g"], w["ln1_b"]), w)
    hidden = gelu(gc.dot(layer_norm(x, w["ln2_g"], w["ln2_b"]), w["w_fc"], dim="embed") + w["b_fc"])
    return x + gc.dot(hidden, w["w_pr"], dim="hidden") + w["b_pr"], None


def program(dtype: str = "float64") -> gc.Compiled:
    text = {"batch": None, "time": None}
    tokens, targets = (gc.tensor(name, text, dtype="int64") for name in ("tokens", "targets"))
    weights = {
        name: gc.tensor(name, {dim: 3 if dim == "qkv" else None for dim in dims}, dtype=dtype)
        for name, dims in WEIGHTS.items()
    }
    embedding = weights["wte"]
    blocks = {name: w for name, w in weights.items() if "layer" in w.dims}

    x = gc.take(embedding, tokens, dim="vocab") + weights["wpe"]
    x, _ = gc.scan(block, x, blocks, dim="layer")
    logits = gc.dot(layer_norm(x, weights["lnf_g"], weights["lnf_b"]), embedding, dim="embed")
    log_p = gc.special.log_softmax(logits, "vocab")
    value = -gc.take_along(log_p, targets, "vocab").mean()

    grads = gc.grad(value, {f"grad_{name}": w for name, w in weights.items()})
    return gc.compile([tokens, targets, *weights.values()], {"value": value, **grads})


def reference(
    tokens: np.ndarray, targets: np.ndarray, **weights: np.ndarray
) -> dict[str, np.ndarray]:
    batch, time = tokens.shape
    layers, embed, _, heads, size = weights["w_qkv"].shape
    shapes = {name: w.shape for name, w in weights.items()}
    p = weights | {
        "w_qkv": weights["w_qkv"].reshape(layers, embed, 3 * embed),
        "b_qkv": weights["b_qkv"].reshape(layers, 3 * embed),
        "w_o": weights["w_o"].reshape(layers, embed, embed),
    }
    g = {name: np.zeros_like(w) for name, w in p.items()}

    def norm(x, scale, shift):
        centred = x - x.mean(-1, keepdims=True)
        rate = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        normed = centred * rate
        return normed * scale + shift, (normed, rate, scale)

    def norm_back(dy, saved):
        normed, rate, scale = saved
        d = dy * scale
        of_means = d.mean(-1, keepdims=True) + normed * (d * normed).mean(-1, keepdims=True)
        axes = tuple(range(dy.ndim - 1))
        return rate * (d - of_means), (dy * normed).sum(axes), dy.sum(axes)

    def linear_back(dy, x, w):
        flat_dy, flat_x = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
        return (flat_dy @ w.T).reshape(x.shape), flat_x.T @ flat_dy, flat_dy.sum(0)

    def split(x):
        return x.reshape(batch, time, heads, size).transpose(0, 2, 1, 3)

    def merge(x):
        return x.transpose(0, 2, 1, 3).reshape(batch, time, embed)

    mask = np.triu(np.full((time, time), -np.inf), 1)
    x = p["wte"][tokens] + p["wpe"]
    tape = []
    for k in range(layers):
        a, norm_1 = norm(x, p["ln1_g"][k], p["ln1_b"][k])
        query, key, value = map(split, np.split(a @ p["w_qkv"][k] + p["b_qkv"][k], 3, -1))
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(size) + mask
        seen = np.exp(scores - scores.max(-1, keepdims=True))
        seen /= seen.sum(-1, keepdims=True)
        heard = merge(seen @ value)
        x = x + (heard @ p["w_o"][k] + p["b_o"][k])
        c, norm_2 = norm(x, p["ln2_g"][k], p["ln2_b"][k])
        u = c @ p["w_fc"][k] + p["b_fc"][k]
        cdf = 0.5 * (1 + erf(u / math.sqrt(2)))
        hidden = u * cdf
        x = x + (hidden @ p["w_pr"][k] + p["b_pr"][k])
        tape.append((a, norm_1, query, key, value, seen, heard, c, norm_2, u, cdf, hidden))
    z, norm_f = norm(x, p["lnf_g"], p["lnf_b"])
    logits = z @ p["wte"].T
    highest = logits.max(-1, keepdims=True)
    exps = np.exp(logits - highest)
    total = exps.sum(-1, keepdims=True)
    loss = np.mean(np.log(total) + highest - np.take_along_axis(logits, targets[..., None], -1))

    d = exps / total
    hit = np.take_along_axis(d, targets[..., None], -1)
    np.put_along_axis(d, targets[..., None], hit - 1, -1)
    d = d.reshape(batch * time, -1) / (batch * time)
    g["wte"] += d.T @ z.reshape(-1, embed)
    dx, g["lnf_g"], g["lnf_b"] = norm_back((d @ p["wte"]).reshape(batch, time, embed), norm_f)
    for k in reversed(range(layers)):
        a, norm_1, query, key, value, seen, heard, c, norm_2, u, cdf, hidden = tape[k]
        d, g["w_pr"][k], g["b_pr"][k] = linear_back(dx, hidden, p["w_pr"][k])
        d = d * (cdf + u * np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi))
        d, g["w_fc"][k], g["b_fc"][k] = linear_back(d, c, p["w_fc"][k])
        d, g["ln2_g"][k], g["ln2_b"][k] = norm_back(d, norm_2)
        dx = dx + d
        d, g["w_o"][k], g["b_o"][k] = linear_back(dx, heard, p["w_o"][k])
        d = split(d)
        by_value = seen.transpose(0, 1, 3, 2) @ d
        by_seen = d @ value.transpose(0, 1, 3, 2)
        ds = seen * (by_seen - (by_seen * seen).sum(-1, keepdims=True)) / math.sqrt(size)
        by_query, by_key = ds @ key, ds.transpose(0, 1, 3, 2) @ query
        d = np.concatenate([merge(by_query), merge(by_key), merge(by_value)], -1)
        d, g["w_qkv"][k], g["b_qkv"][k] = linear_back(d, a, p["w_qkv"][k])
        d, g["ln1_g"][k], g["ln1_b"][k] = norm_back(d, norm_1)
        dx = dx + d
    g["wpe"] += dx.sum(0)
    np.add.at(g["wte"], tokens, dx)
    return {"value": loss, **{f"grad_{name}": w.reshape(shapes[name]) for name, w in g.items()}}
