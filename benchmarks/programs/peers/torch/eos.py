from __future__ import annotations

from collections.abc import Callable

import torch
from benchmarks.programs.eos import enthalpy


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(salinity, temperature, pressure):
        S, T, p = map(torch.from_numpy, (salinity, temperature, pressure))
        h = enthalpy(S, T.requires_grad_(), p, torch.sqrt, torch.log)
        (by_temperature,) = torch.autograd.grad(h.sum(), T)
        return {"enthalpy": h.detach(), "by_temperature": by_temperature}

    return f
