"""Eight schools: a hierarchical model of ten parameters, its log density and gradient.

The non-centred form of posteriordb's eight_schools_noncentered (Rubin 1981; Gelman et al., Bayesian
Data Analysis), on the unconstrained scale and up to a constant. So small that the call itself is
what is measured: a sampler makes it a million times.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"school": 8}, "small": {"school": 8}}


def inputs(size: str) -> dict[str, np.ndarray]:
    schools = SIZES[size]["school"]
    return {
        "theta_trans": np.random.default_rng(12).standard_normal(schools),
        "mu": np.array(4.0),
        "log_tau": np.array(1.0),
        "y": np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
        "sigma": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
    }


def program() -> gc.Compiled:
    y = gc.tensor("y", {"school": None})
    sigma = gc.tensor("sigma", {"school": None})
    theta_trans = gc.tensor("theta_trans", {"school": None})
    mu = gc.tensor("mu", {})
    log_tau = gc.tensor("log_tau", {})

    tau = gc.exp(log_tau)
    z = (y - (mu + tau * theta_trans)) / sigma
    prior = -0.5 * (theta_trans**2).sum() - mu**2 / 50 - gc.log(1 + tau**2 / 25)
    value = prior - 0.5 * (z**2).sum() + log_tau  # the last is the Jacobian of tau = exp(log_tau)

    grads = gc.grad(
        value, {"grad_theta_trans": theta_trans, "grad_mu": mu, "grad_log_tau": log_tau}
    )
    return gc.compile([theta_trans, mu, log_tau, y, sigma], {"value": value, **grads})


def reference(
    theta_trans: np.ndarray, mu: np.ndarray, log_tau: np.ndarray, y: np.ndarray, sigma: np.ndarray
) -> dict[str, np.ndarray]:
    tau = np.exp(log_tau)
    z = (y - (mu + tau * theta_trans)) / sigma
    q = z / sigma
    prior = -0.5 * theta_trans @ theta_trans - mu**2 / 50 - np.log(1 + tau**2 / 25)
    return {
        "value": prior - 0.5 * z @ z + log_tau,
        "grad_theta_trans": tau * q - theta_trans,
        "grad_mu": q.sum() - mu / 25,
        "grad_log_tau": tau * (q @ theta_trans) - 2 * tau**2 / (25 + tau**2) + 1,
    }
