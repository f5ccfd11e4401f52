"""Carbon dioxide in the air: growth and seasons, fitted by SciPy with exact gradients."""

import numpy as np
from scipy.optimize import minimize

import graphcore as gc
from graphcore.demo import datasets

# The parameters by name, and the vector of all of them, which SciPy works on.
dims = {"base": {}, "rise": {}, "growth": {}, "sin": {"wave": 3}, "cos": {"wave": 3}}
vector, unravel = gc.ravel({name: gc.tensor(name, sizes) for name, sizes in dims.items()})
theta = gc.tensor("theta", vector.sizes)
p = unravel(theta)

# The model: exponential growth, and waves of 1, 2 and 3 cycles a year.
year = gc.tensor("year", {"time": None})
ppm = gc.tensor("ppm", {"time": None})
trend = p["base"] + p["rise"] * gc.exp(p["growth"] * (year - 1980))
angle = 2 * np.pi * year * gc.constant([1.0, 2.0, 3.0], "wave")
seasons = (p["sin"] * gc.sin(angle) + p["cos"] * gc.cos(angle)).sum("wave")
loss = ((trend + seasons - ppm) ** 2).mean("time")
f = gc.compile([theta, year, ppm], gc.value_and_grad(loss, theta))


def decimal(days):
    """Dates as years with a fraction."""
    return 1970 + days.astype(float) / 365.25


# The fit, to the weeks that were measured.
times, values = datasets.co2()
known = ~np.isnan(values)
guess = {"base": 280.0, "rise": 60.0, "growth": 0.02, "sin": np.zeros(3), "cos": np.zeros(3)}
start, _ = gc.ravel(guess)
fit = minimize(f, start, args=(decimal(times[known]), values[known]), jac=True)
print(f"root mean square error after {fit.nfev} calls: {fit.fun**0.5:.2f} ppm")

# What was found: the same formulas, for other times.
curve = gc.compile([theta, year], [trend, gc.grad(trend, year, per="time"), seasons])
decades = np.arange("1960", "2030", 20, dtype="datetime64[Y]").astype("datetime64[D]")
level, slope, _ = curve(fit.x, decimal(decades))
for i, day in enumerate(decades):
    print(f"{day}: {level[i]:.1f} ppm, growing by {slope[i]:.2f} ppm a year")
days = np.arange("2001-01-01", "2002-01-01", dtype="datetime64[D]")
_, _, wave = curve(fit.x, decimal(days))
print(f"seasons: from {wave.min():.1f} ppm on {days[wave.argmin()]}", end=" ")
print(f"to {wave.max():+.1f} ppm on {days[wave.argmax()]}")
