from __future__ import annotations

from collections.abc import Callable

import torch


def cost(centers, points):
    norms = (points**2).sum(1)[:, None] + (centers**2).sum(1)
    return torch.min(norms - 2 * points @ centers.T, 1).values.sum()


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(points, centers):
        centers = torch.from_numpy(centers).requires_grad_()
        value = cost(centers, torch.from_numpy(points))
        (g,) = torch.autograd.grad(value, centers, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), centers)
        g = g.detach()
        results = {"value": value.detach(), "grad_centers": g, "hessian_diagonal": h}
        return {**results, "direction": g / h}

    return f
