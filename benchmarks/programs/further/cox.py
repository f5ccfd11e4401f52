"""The log likelihood of times of survival under proportional hazards, and its gradient.

Cox, "Regression models and life-tables" (1972), Breslow's form; patients come in order of time,
the latest first, so that those still at risk are all before.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"patient": 7, "factor": 2}, "small": {"patient": 3000, "factor": 20}}


def inputs(size: str) -> dict[str, np.ndarray]:
    patients, factors = SIZES[size].values()
    rng = np.random.default_rng(57)
    return {
        "X": rng.standard_normal((patients, factors)),
        "died": rng.uniform(size=patients) < 0.6,
        "beta": rng.standard_normal(factors) / np.sqrt(factors),
    }


def program() -> gc.Compiled:
    X = gc.tensor("X", {"patient": None, "factor": None})
    died = gc.tensor("died", {"patient": None}, dtype="bool")
    beta = gc.tensor("beta", {"factor": None})

    risk = gc.dot(X, beta, dim="factor")
    top = risk.max()
    at_risk = gc.log(gc.cumsum(gc.exp(risk - top), "patient")) + top
    value = (risk - at_risk).sum(where=died)
    return gc.compile([X, died, beta], {"value": value, "grad_beta": gc.grad(value, beta)})


def reference(X: np.ndarray, died: np.ndarray, beta: np.ndarray) -> dict[str, np.ndarray]:
    risk = X @ beta
    top = risk.max()
    hazard = np.exp(risk - top)
    at_risk = np.cumsum(hazard)
    value = (risk - np.log(at_risk) - top)[died].sum()
    shares = np.cumsum((died / at_risk)[::-1])[::-1]
    return {"value": value, "grad_beta": X.T @ (died - hazard * shares)}
