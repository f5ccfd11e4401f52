from __future__ import annotations

from collections.abc import Callable

import torch
from benchmarks.programs.peers.ba import CAMERA, error_with
from torch.func import jacrev, vmap

error = error_with(torch, torch.linalg.cross)


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(seen, cameras, points, **arrays):
        seen, cameras, points = map(torch.from_numpy, (seen, cameras, points))
        parameters = {name: torch.from_numpy(x).requires_grad_() for name, x in arrays.items()}
        gathered = {name: parameters[name][cameras] for name in CAMERA}
        gathered |= {"point": parameters["point"][points], "weight": parameters["weight"]}
        errors = vmap(error)(gathered, seen)
        regular = 0.5 * torch.sum((1 - parameters["weight"] ** 2) ** 2)
        value = 0.5 * torch.sum(errors**2) + regular
        grads = torch.autograd.grad(value, list(parameters.values()))
        fixed = {name: x.detach() for name, x in gathered.items()}
        jacobians = vmap(jacrev(error))(fixed, seen)
        return {
            "value": value.detach(),
            "errors": errors.detach(),
            **{f"by_{name}": jacobian for name, jacobian in jacobians.items()},
            **{f"grad_{name}": grad for name, grad in zip(parameters, grads)},
        }

    return f
