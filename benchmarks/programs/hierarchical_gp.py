"""Shares of votes by state and year: a hierarchical Gaussian process, log density and gradient.

posteriordb's hierarchical_gp (Trangucci's model for Stan): effects of years, states and regions,
and for every region and state a process over the years with a long and a short length scale; a
simplex divides one total variance among seventeen parts. On the unconstrained scale and up to a
constant; the shares are simulated.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

import graphcore as gc

SIZES = {
    "tiny": {"year": 4, "seen": 3, "state": 11, "region": 10},
    "small": {"year": 14, "seen": 11, "state": 50, "region": 10},
}
PARTS = 17  # of variance: of years, regions, states in each of 10 regions, 4 processes, errors
LENGTHS = {"region_long": 8.0, "state_long": 8.0, "region_short": 3.0, "state_short": 3.0}
JITTER = 1e-6


def inputs(size: str) -> dict[str, np.ndarray]:
    years, seen, states, regions = SIZES[size].values()
    rng = np.random.default_rng(33)
    year, state = (index.ravel() for index in np.indices((seen, states)))
    return {
        "gp_region": rng.standard_normal((years, regions)),
        "gp_state": rng.standard_normal((years, states)),
        "year_effect": rng.standard_normal(seen),
        "state_effect": rng.standard_normal(states),
        "region_effect": rng.standard_normal(regions),
        "log_total": np.array(-1.0),
        "parts": 0.3 * rng.standard_normal(PARTS),
        "mu": np.array(0.5),
        "log_length": np.log([7.0, 8.5, 3.2, 2.7]),
        "year": year,
        "state": state,
        "region_of": np.arange(states) % regions,
        "y": 0.5 + 0.1 * rng.standard_normal(len(year)),
    }


def program() -> gc.Compiled:
    def normal(name: str, *dims: str) -> gc.Tensor:
        return gc.tensor(name, dict.fromkeys(dims))

    gp_region, gp_state = normal("gp_region", "year", "region"), normal("gp_state", "year", "state")
    year_effect, state_effect = normal("year_effect", "seen"), normal("state_effect", "state")
    region_effect = gc.tensor("region_effect", {"region": 10})
    log_total, mu = gc.tensor("log_total", {}), gc.tensor("mu", {})
    parts, log_length = gc.tensor("parts", {"part": PARTS}), gc.tensor("log_length", {"scale": 4})
    year, state = (gc.tensor(name, {"vote": None}, dtype="int64") for name in ("year", "state"))
    region_of = gc.tensor("region_of", {"state": None}, dtype="int64")
    y = gc.tensor("y", {"vote": None})
    standard = [gp_region, gp_state, year_effect, state_effect, region_effect]

    log_share = gc.special.log_softmax(parts, "part")
    total = gc.exp(log_total)
    sigma = gc.sqrt(PARTS * total * gc.exp(log_share))
    of_year, of_region, error = (sigma[{"part": i}] for i in (0, 1, 16))
    of_state = sigma[{"part": slice(2, 12)}].rename(part="region")
    of_process = sigma[{"part": slice(12, 16)}].rename(part="scale")
    length = gc.exp(log_length)

    n = gp_region.sizes["year"]
    apart = gc.arange(n, dim="year") - gc.arange(n, dim="other")
    processes = of_process**2 * gc.exp(-0.5 * (apart / length) ** 2)  # region, state; long, short
    long, short = gc.split(processes, [2, 2], "scale")
    jitter = JITTER * gc.eye({"year": n, "other": n})
    L = gc.linalg.cholesky(long + short + jitter, ("year", "other"))
    L_region, L_state = gc.unbind(L, "scale")
    region_course = gc.dot(L_region, gp_region.rename(year="other"), dim="other")
    state_course = gc.dot(L_state, gp_state.rename(year="other"), dim="other")

    region_level = of_region * region_effect
    state_level = of_state[{"region": region_of}] * state_effect
    course = region_course[{"region": region_of}] + state_course
    level = region_level[{"region": region_of}] + state_level
    mean = mu + of_year * year_effect[{"seen": year}] + level[{"state": state}]
    mean = mean + course[{"year": year, "state": state}]

    likelihood = -0.5 * (((y - mean) / error) ** 2).sum() - y.sizes["vote"] * gc.log(error)
    normals = -0.5 * sum((x**2).sum() for x in standard) - 0.5 * ((mu - 0.5) / 0.5) ** 2
    variances = 3 * log_total - 3 * total + 2 * log_share.sum()  # gamma(3, 3), Dirichlet(2)
    scale = gc.constant(list(LENGTHS.values()), "scale")
    lengths = (30 * log_length - (length / scale) ** 30).sum()  # Weibull(30, scale)
    value = likelihood + normals + variances + lengths

    wrt = [*standard, log_total, parts, mu, log_length]
    grads = gc.grad(value, {f"grad_{x.name}": x for x in wrt})
    return gc.compile([*wrt, year, state, region_of, y], {"value": value, **grads})


def covariance_factor(
    years: int, sigmas: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """The factor of the sum of kernels, these, and the squared distances."""
    square = np.subtract.outer(np.arange(years), np.arange(years)) ** 2.0
    kernels = [s**2 * np.exp(-0.5 * square / h**2) for s, h in zip(sigmas, lengths)]
    return np.linalg.cholesky(sum(kernels) + JITTER * np.eye(years)), kernels, square


def through_factor(L: np.ndarray, by_L: np.ndarray) -> np.ndarray:
    """The derivative by a symmetric matrix, given that by its Cholesky factor."""
    inner = np.tril(L.T @ by_L)
    inner[np.diag_indices_from(inner)] *= 0.5
    half = scipy.linalg.solve_triangular(L, inner, lower=True, trans="T")
    whole = scipy.linalg.solve_triangular(L, half.T, lower=True, trans="T").T
    return 0.5 * (whole + whole.T)


def reference(
    gp_region: np.ndarray,
    gp_state: np.ndarray,
    year_effect: np.ndarray,
    state_effect: np.ndarray,
    region_effect: np.ndarray,
    log_total: np.ndarray,
    parts: np.ndarray,
    mu: np.ndarray,
    log_length: np.ndarray,
    year: np.ndarray,
    state: np.ndarray,
    region_of: np.ndarray,
    y: np.ndarray,
) -> dict[str, np.ndarray]:
    shares = np.exp(parts - parts.max())
    shares /= shares.sum()
    total, length = np.exp(log_total), np.exp(log_length)
    sigma = np.sqrt(PARTS * total * shares)
    years, region = len(gp_region), region_of[state]
    factors = [covariance_factor(years, sigma[12 + k : 16 : 2], length[k::2]) for k in (0, 1)]
    courses = [L @ each for (L, _, _), each in zip(factors, (gp_region, gp_state))]
    mean = mu + sigma[0] * year_effect[year] + sigma[1] * region_effect[region]
    mean = mean + sigma[2 + region] * state_effect[state]
    mean = mean + courses[0][year, region] + courses[1][year, state]
    z = (y - mean) / sigma[16]
    standard = (gp_region, gp_state, year_effect, state_effect, region_effect)
    scale = np.array(list(LENGTHS.values()))
    value = -0.5 * z @ z - len(y) * np.log(sigma[16]) - 0.5 * ((mu - 0.5) / 0.5) ** 2
    value += -0.5 * sum((x**2).sum() for x in standard)
    value += 3 * log_total - 3 * total + 2 * np.log(shares).sum()
    value += (30 * log_length - (length / scale) ** 30).sum()

    by = z / sigma[16]
    by_sigma = np.zeros(PARTS)
    by_sigma[0], by_sigma[1] = by @ year_effect[year], by @ region_effect[region]
    by_sigma[2:12] = np.bincount(region, by * state_effect[state], 10)
    by_sigma[16] = (z @ z - len(y)) / sigma[16]
    by_log_length = 30 - 30 * (length / scale) ** 30
    by_standard = []
    for k, (of, given) in enumerate(((region, gp_region), (state, gp_state))):
        L, kernels, square = factors[k]
        by_course = np.zeros_like(given)
        np.add.at(by_course, (year, of), by)
        by_standard.append(L.T @ by_course - given)
        by_K = through_factor(L, np.tril(by_course @ given.T))
        for i, kernel in zip((k, k + 2), kernels):
            by_sigma[12 + i] = 2 / sigma[12 + i] * (by_K * kernel).sum()
            by_log_length[i] += (by_K * kernel * square).sum() / length[i] ** 2
    by_log_variance = 0.5 * by_sigma * sigma
    return {
        "value": value,
        "grad_gp_region": by_standard[0],
        "grad_gp_state": by_standard[1],
        "grad_year_effect": sigma[0] * np.bincount(year, by, len(year_effect)) - year_effect,
        "grad_state_effect": sigma[2 + region_of] * np.bincount(state, by) - state_effect,
        "grad_region_effect": sigma[1] * np.bincount(region, by, 10) - region_effect,
        "grad_log_total": by_log_variance.sum() + 3 - 3 * total,
        "grad_parts": by_log_variance + 2 - shares * (by_log_variance.sum() + 2 * PARTS),
        "grad_mu": by.sum() - (mu - 0.5) / 0.25,
        "grad_log_length": by_log_length,
    }
