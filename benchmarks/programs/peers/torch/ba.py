from __future__ import annotations

from collections.abc import Callable

import torch
from torch.func import jacrev, vmap
from torch.linalg import cross

CAMERA = "rotation", "centre", "focal", "principal", "radial"


def rotated(x, by):
    square = by @ by
    turns = square > 0
    angle = torch.sqrt(torch.where(turns, square, 1.0))
    axis = by / angle
    along = axis * (axis @ x) * (1 - torch.cos(angle))
    turned = x * torch.cos(angle) + cross(axis, x) * torch.sin(angle) + along
    return torch.where(turns, turned, x + cross(by, x))


def error(p, seen):
    x = rotated(p["point"] - p["centre"], p["rotation"])
    flat = x[:2] / x[2]
    square = flat @ flat
    bent = flat * (1 + p["radial"][0] * square + p["radial"][1] * square**2)
    return p["weight"] * (bent * p["focal"] + p["principal"] - seen)


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
