"""The dynamic enthalpy of sea water, and its derivative by temperature, on a grid.

The equation of state of TEOS-10 in 48 terms (Intergovernmental Oceanographic Commission, 2010), as
pyhpc-benchmarks' equation_of_state has it, which expands the derivative by hand. Here the
enthalpy is written down: the integral over pressure of a quotient of polynomials.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"places": 200}, "small": {"places": 2**14}}

# Where enthalpies nearly cancel, derivatives in double precision are off by this.
TOLERANCE = 1e-8

V = (
    0.0, 9.998420897506056e2, 2.839940833161907e0, -3.147759265588511e-2, 1.181805545074306e-3,
    -6.698001071123802e0, -2.986498947203215e-2, 2.327859407479162e-4, -3.988822378968490e-2,
    5.095422573880500e-4, -1.426984671633621e-5, 1.645039373682922e-7, -2.233269627352527e-2,
    -3.436090079851880e-4, 3.726050720345733e-6, -1.806789763745328e-4, 6.876837219536232e-7,
    -3.087032500374211e-7, -1.988366587925593e-8, -1.061519070296458e-11, 1.550932729220080e-10,
    1.0, 2.775927747785646e-3, -2.349607444135925e-5, 1.119513357486743e-6, 6.743689325042773e-10,
    -7.521448093615448e-3, -2.764306979894411e-5, 1.262937315098546e-7, 9.527875081696435e-10,
    -1.811147201949891e-11, -3.303308871386421e-5, 3.801564588876298e-7, -7.672876869259043e-9,
    -4.634182341116144e-11, 2.681097235569143e-12, 5.419326551148740e-6, -2.742185394906099e-5,
    -3.212746477974189e-7, 3.191413910561627e-9, -1.931012931541776e-12, -1.105097577149576e-7,
    6.211426728363857e-10, -1.119011592875110e-10, -1.941660213148725e-11, -1.864826425365600e-14,
    1.119522344879478e-14, -1.200507748551599e-15, 6.057902487546866e-17,
)  # fmt: skip


def inputs(size: str) -> dict[str, np.ndarray]:
    side = SIZES[size]["places"] ** (1 / 3)
    across, deep = math.ceil(2 * side), math.ceil(0.25 * side)
    rng = np.random.default_rng(17)
    return {
        "salinity": rng.uniform(1e-2, 10, (across, across, deep)),
        "temperature": rng.uniform(-12, 20, (across, across, deep)),
        "pressure": rng.uniform(0, 1000, deep),
    }


def enthalpy(S: Any, T: Any, p: Any, sqrt: Any, log: Any) -> Any:
    """By salinity, temperature and pressure, in arithmetic of any kind."""
    root = sqrt(S)
    a0 = (
        V[21] + T * (V[22] + T * (V[23] + T * (V[24] + T * V[25])))
        + S * (V[26] + T * (V[27] + T * (V[28] + T * (V[29] + T * V[30]))) + S * V[36])
        + S * root * (V[31] + T * (V[32] + T * (V[33] + T * (V[34] + T * V[35]))))
    )  # fmt: skip
    a1 = V[37] + T * (V[38] + T * (V[39] + T * V[40])) + S * (V[41] + T * V[42])
    a2 = V[43] + T * (V[44] + T * V[45] + S * V[46])
    a3 = V[47] + T * V[48]
    b0 = (
        V[1] + T * (V[2] + T * (V[3] + T * V[4])) + S * (V[5] + T * (V[6] + T * V[7]))
        + S * root * (V[8] + T * (V[9] + T * (V[10] + T * V[11])))
    )  # fmt: skip
    b1 = 0.5 * (V[12] + T * (V[13] + T * V[14]) + S * (V[15] + T * V[16]))
    b2 = V[17] + T * (V[18] + T * V[19]) + S * V[20]

    spread = sqrt(b1 * b1 - b0 * b2)
    low, high = b1 - spread, b1 + spread
    n = a0 + (2 * a3 * b0 * b1 / b2 - a2 * b0) / b2
    m = a1 + (4 * a3 * b1 * b1 / b2 - a3 * b0 - 2 * a2 * b1) / b2
    part = (n * b2 - m * b1) / (b2 * (high - low))
    straight = p * (a2 - 2 * a3 * b1 / b2 + 0.5 * a3 * p) / b2
    bent = m / (2 * b2) * log(1 + p * (2 * b1 + b2 * p) / b0)
    rest = part * log(1 + b2 * p * (high - low) / (low * (high + b2 * p)))
    return 1e4 * (straight + bent + rest)


def program() -> gc.Compiled:
    grid = {"x": None, "y": None, "z": None}
    S, T = (gc.tensor(name, grid) for name in ("salinity", "temperature"))
    p = gc.tensor("pressure", {"z": None})
    h = enthalpy(S, T, p, gc.sqrt, gc.log).transpose(*grid)
    return gc.compile([S, T, p], {"enthalpy": h, "by_temperature": gc.grad(h.sum(), T)})


def reference(
    salinity: np.ndarray, temperature: np.ndarray, pressure: np.ndarray
) -> dict[str, np.ndarray]:
    """The derivative by a complex step, which is exact to rounding."""
    step = 1e-20
    shifted = enthalpy(salinity, temperature + 1j * step, pressure, np.sqrt, np.log)
    value = enthalpy(salinity, temperature, pressure, np.sqrt, np.log)
    return {"enthalpy": value, "by_temperature": shifted.imag / step}
