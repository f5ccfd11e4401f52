from __future__ import annotations

from collections.abc import Callable

import torch
from benchmarks.programs.peers.radon import PARAMETERS, log_density_with

from . import value_and_gradients


def program() -> Callable[..., dict[str, torch.Tensor]]:
    return value_and_gradients(log_density_with(torch.exp), PARAMETERS)
