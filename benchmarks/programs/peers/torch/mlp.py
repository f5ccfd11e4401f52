from __future__ import annotations

from collections.abc import Callable

import torch


def loss(weights, x, target):
    hidden = torch.relu(x @ weights["w1"] + weights["b1"])
    inner = torch.relu(hidden @ weights["w2"] + weights["b2"])
    log_p = torch.log_softmax(inner @ weights["w3"] + weights["b3"], 1)
    return -torch.sum(target * log_p) / x.shape[0]


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(x, target, **arrays):
        weights = {name: torch.from_numpy(w).requires_grad_() for name, w in arrays.items()}
        value = loss(weights, torch.from_numpy(x), torch.from_numpy(target))
        grads = torch.autograd.grad(value, list(weights.values()))
        return {"value": value.detach(), **{f"grad_{n}": g for n, g in zip(weights, grads)}}

    return f
