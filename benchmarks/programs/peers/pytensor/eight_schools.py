from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt
from benchmarks.programs.peers.eight_schools import PARAMETERS, log_density_with

from . import symbols, value_and_gradients


def program() -> Callable[..., dict[str, Any]]:
    given = symbols(theta_trans=1, mu=0, log_tau=0, y=1, sigma=1)
    return value_and_gradients(log_density_with(pt.exp, pt.log), given, PARAMETERS)
