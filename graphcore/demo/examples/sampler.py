"""Does this sea get warmer? A posterior by Hamiltonian Monte Carlo, four chains at once."""

import numpy as np

import graphcore as gc
from graphcore.demo import datasets

# The data: the difference of each month from the mean of that month in all years.
values = datasets.sea_temperature().values.reshape(61, 12)
anomaly = gc.constant((values - values.mean(axis=0)).ravel(), "month")
decades = gc.constant(np.arange(-366, 366) / 120, "month")

# The parameters: one tensor holds the values of all in all chains.
names = "level", "trend", "persistence", "noise"
vector, unravel = gc.ravel({name: gc.tensor(name, {}) for name in names})
theta = gc.tensor("theta", {"chain": None} | vector.sizes)
momentum = gc.tensor("momentum", theta.sizes)
step = gc.tensor("step", vector.sizes)


def log_density(theta):
    """The model: a line, and deviations from it that persist from month to month."""
    p = unravel(theta)
    deviation = anomaly - p["level"] - p["trend"] * decades
    before, after = deviation.isel(month=slice(-1)), deviation.isel(month=slice(1, None))
    shock = (after - gc.tanh(p["persistence"]) * before) / gc.exp(p["noise"])
    prior = -(theta**2).sum("parameter") / 2  # standard normal for each
    return prior - (shock**2 / 2 + p["noise"]).sum("month")


def leapfrog(_, state):
    """One step of all chains, along the gradient of the density."""
    theta, momentum = state
    half = momentum + step / 2 * gc.grad(log_density(theta), theta, per="chain")
    theta = theta + step * half
    return theta, half + step / 2 * gc.grad(log_density(theta), theta, per="chain")


# A move of ten steps, and by how much the joint log density grows on the way.
end, last = gc.fori_loop(0, 10, leapfrog, (theta, momentum))
kinetic = ((last**2 - momentum**2) / 2).sum("parameter")
gain = log_density(end) - log_density(theta) - kinetic
f = gc.compile([theta, momentum, step], [end, gain])

# The sampler: each chain accepts a move or stays where it is.
rng = np.random.default_rng(0)
widths = np.array([0.2, 0.1, 0.1, 0.03])  # about those of the posterior
here = widths * rng.normal(size=(4, 4))
draws = []
for _ in range(1500):
    there, growth = f(here, rng.normal(size=here.shape), widths * rng.uniform(0.1, 0.3))
    here = np.where((np.log(rng.uniform(size=4)) < growth)[:, None], there, here)
    draws.append(here)

# The posterior, without the first third of the draws.
found = dict(zip(names, np.array(draws[500:]).T))  # each parameter by chain and draw
found["persistence"], found["noise"] = np.tanh(found["persistence"]), np.exp(found["noise"])
print("              mean     sd     5%    95%   R-hat")
for name, x in found.items():
    low, high = np.quantile(x, [0.05, 0.95])
    rhat = np.sqrt(1 + x.mean(axis=1).var(ddof=1) / x.var(axis=1).mean())
    print(f"{name:12} {x.mean():6.3f} {x.std():6.3f} {low:6.3f} {high:6.3f} {rhat:7.3f}")
print(f"probability that the trend is positive: {(found['trend'] > 0).mean():.2f}")
