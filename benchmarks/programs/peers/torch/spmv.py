from __future__ import annotations

from collections.abc import Callable

import torch


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(rows, cols, values, x, ct):
        rows, cols, ct = map(torch.from_numpy, (rows, cols, ct))
        values, x = (torch.from_numpy(a).requires_grad_() for a in (values, x))
        y = torch.zeros_like(ct).index_add(0, rows, values * x[cols])
        grads = torch.autograd.grad(y, (values, x), ct)
        return {"y": y.detach(), **dict(zip(("grad_values", "grad_x"), grads))}

    return f
