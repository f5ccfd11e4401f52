from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor
import pytensor.tensor as pt
from benchmarks.programs.eos import enthalpy

from . import compiled, symbols


def program() -> Callable[..., dict[str, Any]]:
    given = symbols(salinity=3, temperature=3, pressure=1)
    salinity, temperature, pressure = given.values()
    h = enthalpy(salinity, temperature, pressure, pt.sqrt, pt.log)
    return compiled(given, {"enthalpy": h, "by_temperature": pytensor.grad(h.sum(), temperature)})
