from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import conv2d


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(x, w, b, ct):
        x, w, b = (torch.from_numpy(a).requires_grad_() for a in (x, w, b))
        y = conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), b).permute(0, 2, 3, 1)
        grads = torch.autograd.grad(y, (x, w, b), torch.from_numpy(ct))
        return {"y": y.detach(), **dict(zip(("grad_x", "grad_w", "grad_b"), grads))}

    return f
