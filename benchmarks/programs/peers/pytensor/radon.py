from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt
from benchmarks.programs.peers.radon import PARAMETERS, log_density_with

from . import symbols, value_and_gradients


def program() -> Callable[..., dict[str, Any]]:
    ranks = {"alpha_raw": 1, "beta": 1, "mu_alpha": 0, "log_sigma_alpha": 0, "log_sigma_y": 0}
    given = symbols(**ranks, county="int64", u=1, floor=1, y=1)
    return value_and_gradients(log_density_with(pt.exp), given, PARAMETERS)
