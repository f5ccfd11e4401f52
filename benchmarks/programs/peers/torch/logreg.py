from __future__ import annotations

from collections.abc import Callable

import torch


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(**arrays):
        names = "x", "y", "w", "b", "v", "penalty"
        x, y, w, b, v, penalty = (torch.from_numpy(arrays[name]) for name in names)
        w.requires_grad_(), b.requires_grad_()
        z = x @ w + b
        value = torch.sum(torch.nn.functional.softplus(z) - y * z) + 0.5 * penalty * w @ w
        grad_w, grad_b = torch.autograd.grad(value, (w, b), create_graph=True)
        (hvp,) = torch.autograd.grad(grad_w @ v, w)
        results = {"value": value, "grad_w": grad_w, "grad_b": grad_b, "hvp": hvp}
        return {name: result.detach() for name, result in results.items()}

    return f
