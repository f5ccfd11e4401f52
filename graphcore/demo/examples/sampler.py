"""Does this sea get warmer? A posterior by Hamiltonian Monte Carlo, four chains at once."""

import numpy as np

import graphcore as gc
from graphcore.demo import datasets

# The data: the difference of each month from the mean of its calendar month.
values = datasets.sea_temperature().values.reshape(61, 12)
anomaly = gc.constant((values - values.mean(axis=0)).ravel(), "month")
decades = gc.constant(np.arange(-366, 366) / 120, "month")

# The model: a line, and deviations from it that persist from one month to the next.
names = ["level", "trend", "persistence", "noise"]
vector, unravel = gc.ravel({name: gc.tensor(name, {}) for name in names})
theta = gc.tensor("theta", {"chain": None} | vector.sizes)
p = unravel(theta)  # each parameter has a value in each chain
deviation = anomaly - p["level"] - p["trend"] * decades
before, after = deviation.isel(month=slice(-1)), deviation.isel(month=slice(1, None))
shock = (after - gc.tanh(p["persistence"]) * before) / gc.exp(p["noise"])
density = -(shock**2 / 2 + p["noise"]).sum("month")  # all are logarithms
density = density - (theta**2).sum("parameter") / 2  # priors: standard normal
f = gc.compile([theta], gc.value_and_grad(density, theta, per="chain"))

# The sampler: a move follows the gradient for ten steps and is accepted or not.
rng = np.random.default_rng(0)
widths = np.array([0.2, 0.1, 0.1, 0.03])  # guessed scales of the posterior
here = widths * rng.normal(size=(4, 4))
value, slope = f(here)
draws, accepted = [], []
for _ in range(1500):
    step = widths * rng.uniform(0.1, 0.3)
    start = rng.normal(size=here.shape)
    there, momentum = here, start + step * slope / 2
    for _ in range(10):
        there = there + step * momentum
        new_value, new_slope = f(there)
        momentum = momentum + step * new_slope
    momentum = momentum - step * new_slope / 2
    gain = new_value - value - ((momentum**2 - start**2) / 2).sum(axis=1)
    accept = np.log(rng.uniform(size=4)) < gain
    value = np.where(accept, new_value, value)
    here, slope = np.where(accept[:, None], [there, new_slope], [here, slope])
    draws.append(here)
    accepted.append(accept)

# The posterior, without the first third of the draws.
kept = np.array(draws[500:])
kept[..., 2], kept[..., 3] = np.tanh(kept[..., 2]), np.exp(kept[..., 3])
within, between = kept.var(axis=0).mean(axis=0), kept.mean(axis=0).var(axis=0, ddof=1)
rhat = np.sqrt(1 + between / within)
print(f"accepted: {np.mean(accepted):.0%} of the moves")
print("              mean     sd     5%    95%   R-hat")
for i, name in enumerate(names):
    x = kept[..., i]
    low, high = np.quantile(x, [0.05, 0.95])
    print(f"{name:12} {x.mean():6.3f} {x.std():6.3f} {low:6.3f} {high:6.3f} {rhat[i]:7.3f}")
print(f"probability that the trend is positive: {(kept[..., 1] > 0).mean():.2f}")
