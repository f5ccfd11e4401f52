"""A Bayesian neural network fitted by black-box variational inference: the bound and its gradient.

autograd's bayesian_neural_net and black_box_svi examples: a network of two hidden layers and radial
basis functions on a toy curve; every weight is normal with a mean and a log deviation of its own.
The bound is the entropy of these plus the mean log density over drawn sets of weights; the draws
are given.
"""

from __future__ import annotations

import math

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"sample": 3, "data": 6, "in": 1, "hidden1": 4, "hidden2": 5, "out": 1},
    "small": {"sample": 20, "data": 40, "in": 1, "hidden1": 20, "hidden2": 20, "out": 1},
}
LAYERS = ("in", "hidden1", "hidden2", "out")
WEIGHTS = {
    **{f"w{i}": (LAYERS[i - 1], LAYERS[i]) for i in (1, 2, 3)},
    **{f"b{i}": (LAYERS[i],) for i in (1, 2, 3)},
}
PRIOR, VARIANCE = 0.1, 0.01


def inputs(size: str) -> dict[str, np.ndarray]:
    sizes = SIZES[size]
    rng = np.random.default_rng(0)
    n = sizes["data"] // 2
    x = np.concatenate([np.linspace(0, 2, n), np.linspace(6, 8, n)])
    found = {
        "x": ((x - 4) / 4)[:, None],
        "y": (np.cos(x) + 0.1 * rng.standard_normal(len(x)))[:, None],
    }
    for name, dims in WEIGHTS.items():
        shape = [sizes[dim] for dim in dims]
        found[f"mean_{name}"] = rng.standard_normal(shape)
        found[f"log_std_{name}"] = 0.1 * rng.standard_normal(shape) - 3
        found[f"noise_{name}"] = rng.standard_normal([sizes["sample"], *shape])
    return found


def program() -> gc.Compiled:
    sizes = {"sample": None, "in": 1, "hidden1": None, "hidden2": None, "out": 1}

    def weights(of: str, *more: str) -> dict[str, gc.Tensor]:
        return {
            name: gc.tensor(f"{of}_{name}", {dim: sizes[dim] for dim in (*more, *dims)})
            for name, dims in WEIGHTS.items()
        }

    x, y = gc.tensor("x", {"data": None, "in": 1}), gc.tensor("y", {"data": None, "out": 1})
    mean, log_std, noise = weights("mean"), weights("log_std"), weights("noise", "sample")

    w = {name: mean[name] + noise[name] * gc.exp(log_std[name]) for name in WEIGHTS}
    value = x
    for i, dim in enumerate(LAYERS[:-1], 1):
        value = gc.dot(value, w[f"w{i}"], dim=dim) + w[f"b{i}"]
        if i < 3:
            value = gc.exp(-(value**2))
    log_prior = sum(-PRIOR * (each**2).sum(WEIGHTS[name]) for name, each in w.items())
    log_likelihood = -((value - y) ** 2).sum(["data", "out"]) / VARIANCE
    entropy = sum((each + 0.5 * (1 + math.log(2 * math.pi))).sum() for each in log_std.values())
    bound = entropy + (log_prior + log_likelihood).mean("sample")

    wrt = [*mean.values(), *log_std.values()]
    grads = gc.grad(bound, {f"grad_{v.name}": v for v in wrt})
    return gc.compile([x, y, *wrt, *noise.values()], {"bound": bound, **grads})


def reference(x: np.ndarray, y: np.ndarray, **given: np.ndarray) -> dict[str, np.ndarray]:
    std = {name: np.exp(given[f"log_std_{name}"]) for name in WEIGHTS}
    noise = {name: given[f"noise_{name}"] for name in WEIGHTS}
    w = {name: given[f"mean_{name}"] + noise[name] * std[name] for name in WEIGHTS}
    samples = len(noise["w1"])

    z1 = x @ w["w1"] + w["b1"][:, None]
    h1 = np.exp(-z1 * z1)
    z2 = h1 @ w["w2"] + w["b2"][:, None]
    h2 = np.exp(-z2 * z2)
    error = h2 @ w["w3"] + w["b3"][:, None] - y
    prior = sum((each**2).sum(tuple(range(1, each.ndim))) for each in w.values())
    log_density = -PRIOR * prior - (error**2).sum((1, 2)) / VARIANCE
    log_stds = [given[f"log_std_{name}"] for name in WEIGHTS]
    entropy = sum(each.sum() + 0.5 * (1 + math.log(2 * math.pi)) * each.size for each in log_stds)

    d3 = -2 / VARIANCE / samples * error
    d2 = d3 @ w["w3"].transpose(0, 2, 1) * h2 * -2 * z2
    d1 = d2 @ w["w2"].transpose(0, 2, 1) * h1 * -2 * z1
    by = {"w1": x.T @ d1, "w2": h1.transpose(0, 2, 1) @ d2, "w3": h2.transpose(0, 2, 1) @ d3}
    by |= {"b1": d1.sum(1), "b2": d2.sum(1), "b3": d3.sum(1)}
    found = {"bound": entropy + log_density.mean()}
    for name in WEIGHTS:
        share = by[name] - 2 * PRIOR / samples * w[name]
        found[f"grad_mean_{name}"] = share.sum(0)
        found[f"grad_log_std_{name}"] = (share * noise[name]).sum(0) * std[name] + 1
    return found
