"""Radon: a hierarchical regression on house measurements, its log density and gradient.

posteriordb's radon_hierarchical_intercept_noncentered: log radon in 919 houses of Minnesota, with
an intercept for each of the 85 counties, on the unconstrained scale and up to a constant.

data/radon_mn.csv holds the measurements (Gelman and Hill, Data Analysis Using Regression and
Multilevel/Hierarchical Models, from the state radon survey of the U.S. Environmental Protection
Agency): radon in pCi/l, the floor it was measured on (0 the basement), and uranium in the county's
soil.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"county": 5}, "small": {"county": 85}}
DATA = Path(__file__).parent / "data" / "radon_mn.csv"


def inputs(size: str) -> dict[str, np.ndarray]:
    counties = SIZES[size]["county"]
    county, uranium, floor, radon = np.loadtxt(DATA, delimiter=",", skiprows=1, unpack=True)
    chosen = county <= counties
    return {
        "alpha_raw": np.random.default_rng(13).standard_normal(counties),
        "beta": np.array([0.7, -0.6]),
        "mu_alpha": np.array(1.4),
        "log_sigma_alpha": np.array(-1.0),
        "log_sigma_y": np.array(-0.3),
        "county": county[chosen].astype(np.int64) - 1,
        "u": np.log(uranium[chosen]),
        "floor": floor[chosen],
        "y": np.log(radon[chosen]),
    }


def program() -> gc.Compiled:
    alpha_raw = gc.tensor("alpha_raw", {"county": None})
    beta = gc.tensor("beta", {"coef": 2})
    mu_alpha, log_sigma_alpha, log_sigma_y = (
        gc.tensor(name, {}) for name in ("mu_alpha", "log_sigma_alpha", "log_sigma_y")
    )
    county = gc.tensor("county", {"house": None}, dtype="int64")
    u, floor, y = (gc.tensor(name, {"house": None}) for name in ("u", "floor", "y"))

    sigma_alpha, sigma_y = gc.exp(log_sigma_alpha), gc.exp(log_sigma_y)
    alpha = mu_alpha + sigma_alpha * alpha_raw
    slope_u, slope_floor = gc.unbind(beta, "coef")
    error = (y - (alpha[{"county": county}] + u * slope_u + floor * slope_floor)) / sigma_y

    scales = -0.5 * sigma_alpha**2 - 0.5 * sigma_y**2 + log_sigma_alpha + log_sigma_y
    means = -(mu_alpha**2) / 200 - (beta**2).sum() / 200 - 0.5 * (alpha_raw**2).sum()
    value = scales + means - 0.5 * (error**2).sum() - y.sizes["house"] * log_sigma_y

    parameters = [alpha_raw, beta, mu_alpha, log_sigma_alpha, log_sigma_y]
    grads = gc.grad(value, {f"grad_{x.name}": x for x in parameters})
    return gc.compile([*parameters, county, u, floor, y], {"value": value, **grads})


def reference(
    alpha_raw: np.ndarray,
    beta: np.ndarray,
    mu_alpha: np.ndarray,
    log_sigma_alpha: np.ndarray,
    log_sigma_y: np.ndarray,
    county: np.ndarray,
    u: np.ndarray,
    floor: np.ndarray,
    y: np.ndarray,
) -> dict[str, np.ndarray]:
    sigma_alpha, sigma_y = np.exp(log_sigma_alpha), np.exp(log_sigma_y)
    alpha = mu_alpha + sigma_alpha * alpha_raw
    error = (y - (alpha[county] + u * beta[0] + floor * beta[1])) / sigma_y
    n = len(y)
    scales = -0.5 * sigma_alpha**2 - 0.5 * sigma_y**2 + log_sigma_alpha + log_sigma_y
    means = -(mu_alpha**2) / 200 - beta @ beta / 200 - 0.5 * alpha_raw @ alpha_raw
    share = error / sigma_y
    of_county = np.bincount(county, share, len(alpha_raw))
    return {
        "value": scales + means - 0.5 * error @ error - n * log_sigma_y,
        "grad_alpha_raw": sigma_alpha * of_county - alpha_raw,
        "grad_beta": np.array([share @ u, share @ floor]) - beta / 100,
        "grad_mu_alpha": share.sum() - mu_alpha / 100,
        "grad_log_sigma_alpha": sigma_alpha * (of_county @ alpha_raw) - sigma_alpha**2 + 1,
        "grad_log_sigma_y": error @ error - n - sigma_y**2 + 1,
    }
