"""A mixture of Gaussians with a Wishart prior: its log posterior and gradient.

ADBench's and GradBench's gmm. The precision of a component is Q Qᵀ for a lower triangle Q, whose
diagonal is exp(q), and off, column by column, below.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import multigammaln

import graphcore as gc

SIZES = {
    "tiny": {"dim": 3, "component": 4, "point": 15},
    "small": {"dim": 10, "component": 10, "point": 1000},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    dims, components, points = SIZES[size].values()
    rng = np.random.default_rng(31337)
    return {
        "x": rng.normal(size=(points, dims)),
        "alpha": rng.normal(size=components),
        "mu": rng.uniform(size=(components, dims)),
        "q": 0.3 * rng.normal(size=(components, dims)),
        "off": 0.3 * rng.normal(size=(components, dims * (dims - 1) // 2)),
        "gamma": np.array(1.0),
        "m": np.array(0.0),
    }


def program() -> gc.Compiled:
    x = gc.tensor("x", {"point": None, "dim": None})
    alpha = gc.tensor("alpha", {"component": None})
    mu, q = (gc.tensor(name, {"component": None, "dim": None}) for name in ("mu", "q"))
    off = gc.tensor("off", {"component": None, "below": None})
    gamma, m = gc.tensor("gamma", {}), gc.tensor("m", {})
    dims, points, components = q.sizes["dim"], x.sizes["point"], q.sizes["component"]

    after = gc.tri(("row", "dim"), dims, k=-1)
    places = gc.nonzero(after.transpose("dim", "row"), off.sizes["below"], name="below")
    lower = gc.zeros({"component": components, "dim": dims, "row": dims}).at[places].set(off)
    centred = x - mu
    y = gc.exp(q) * centred + gc.dot(lower, centred, dim="dim").rename(row="dim")
    likelihoods = alpha + q.sum("dim") - 0.5 * (y**2).sum("dim")

    freedom = dims + m + 1
    gammas = gc.special.gammaln((freedom - gc.arange(dims, dim="dim")) / 2).sum()
    gammas = gammas + dims * (dims - 1) * gc.log(np.pi) / 4
    value = (
        gc.special.logsumexp(likelihoods, "component").sum()
        - points * (gc.special.logsumexp(alpha) + dims * gc.log(2 * np.pi) / 2)
        - gamma**2 * (gc.exp(2 * q).sum() + (off**2).sum()) / 2
        + m * q.sum()
        + components * (freedom * dims * gc.log(gamma / math.sqrt(2)) - gammas)
    )
    grads = gc.grad(value, {f"grad_{w.name}": w for w in (alpha, mu, q, off)})
    return gc.compile([x, alpha, mu, q, off, gamma, m], {"value": value, **grads})


def below(dims: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns below the diagonal, column by column."""
    cols, rows = np.triu_indices(dims, 1)
    return rows, cols


def reference(
    x: np.ndarray,
    alpha: np.ndarray,
    mu: np.ndarray,
    q: np.ndarray,
    off: np.ndarray,
    gamma: np.ndarray,
    m: np.ndarray,
) -> dict[str, np.ndarray]:
    (n, d), k = x.shape, len(alpha)
    rows, cols = below(d)
    diagonal = np.arange(d)
    exp_q = np.exp(q)
    Q = np.zeros((k, d, d))
    Q[:, rows, cols], Q[:, diagonal, diagonal] = off, exp_q
    centred = x - mu[:, None]
    y = centred @ Q.transpose(0, 2, 1)
    likelihoods = alpha[:, None] + q.sum(1)[:, None] - 0.5 * (y * y).sum(2)
    top, top_alpha = likelihoods.max(0), alpha.max()
    shares, weights = np.exp(likelihoods - top), np.exp(alpha - top_alpha)
    total, total_weight = shares.sum(0), weights.sum()
    freedom = d + m + 1
    normal = freedom * d * (np.log(gamma) - 0.5 * math.log(2)) - multigammaln(0.5 * freedom, d)
    value = (
        np.sum(np.log(total) + top)
        - n * (np.log(total_weight) + top_alpha)
        - 0.5 * n * d * math.log(2 * math.pi)
        - 0.5 * gamma**2 * (np.sum(exp_q**2) + np.sum(off**2))
        + m * q.sum()
        + k * normal
    )
    shares /= total
    of_component = shares.sum(1)
    y *= shares[:, :, None]
    by_Q = -y.transpose(0, 2, 1) @ centred
    by_q = by_Q[:, diagonal, diagonal] * exp_q - gamma**2 * exp_q**2
    return {
        "value": value,
        "grad_alpha": of_component - n * weights / total_weight,
        "grad_mu": (y.sum(1)[:, None, :] @ Q)[:, 0],
        "grad_q": by_q + of_component[:, None] + m,
        "grad_off": by_Q[:, rows, cols] - gamma**2 * off,
    }
