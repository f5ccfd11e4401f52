"""Programs in PyTorch, each operation as it comes: torch.compile needs a C++ compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

Results = dict[str, torch.Tensor]


def value_and_gradients(
    objective: Callable[..., torch.Tensor], by: Sequence[str]
) -> Callable[..., Results]:
    def f(**arrays):
        given = {name: torch.from_numpy(x) for name, x in arrays.items()}
        wrt = [given[name].requires_grad_() for name in by]
        value = objective(**given)
        grads = torch.autograd.grad(value, wrt)
        return {"value": value.detach(), **{f"grad_{n}": g for n, g in zip(by, grads)}}

    return f
