"""Vectors of words from their neighbours: the loss of pairs and of drawn words, and its gradient.

Mikolov et al., "Distributed representations of words and phrases" (2013), equation 4.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

import graphcore as gc

SIZES = {
    "tiny": {"word": 7, "vector": 3, "pair": 4, "drawn": 2},
    "small": {"word": 2000, "vector": 64, "pair": 512, "drawn": 5},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    words, vectors, pairs, drawn = SIZES[size].values()
    rng = np.random.default_rng(49)
    return {
        "centers": rng.standard_normal((words, vectors)) / np.sqrt(vectors),
        "contexts": rng.standard_normal((words, vectors)) / np.sqrt(vectors),
        "center": rng.integers(0, words, pairs),
        "context": rng.integers(0, words, pairs),
        "negative": rng.integers(0, words, (pairs, drawn)),
    }


def program() -> gc.Compiled:
    centers, contexts = (
        gc.tensor(name, {"word": None, "vector": None}) for name in ("centers", "contexts")
    )
    center, context = (
        gc.tensor(name, {"pair": None}, dtype="int64") for name in ("center", "context")
    )
    negative = gc.tensor("negative", {"pair": None, "drawn": None}, dtype="int64")

    u = centers[{"word": center}]
    near = gc.dot(u, contexts[{"word": context}], dim="vector")
    far = gc.dot(u, contexts[{"word": negative}], dim="vector")
    value = -gc.special.log_expit(near).sum() - gc.special.log_expit(-far).sum()
    results = {"value": value}
    results |= gc.grad(value, {"grad_centers": centers, "grad_contexts": contexts})
    return gc.compile([centers, contexts, center, context, negative], results)


def reference(
    centers: np.ndarray,
    contexts: np.ndarray,
    center: np.ndarray,
    context: np.ndarray,
    negative: np.ndarray,
) -> dict[str, np.ndarray]:
    u, v, drawn = centers[center], contexts[context], contexts[negative]
    near, far = (u * v).sum(1), np.einsum("pv,pdv->pd", u, drawn)
    value = np.logaddexp(0, -near).sum() + np.logaddexp(0, far).sum()
    by_near, by_far = -expit(-near)[:, None], expit(far)
    grad_centers, grad_contexts = np.zeros_like(centers), np.zeros_like(contexts)
    np.add.at(grad_centers, center, by_near * v + np.einsum("pd,pdv->pv", by_far, drawn))
    np.add.at(grad_contexts, context, by_near * u)
    np.add.at(grad_contexts, negative, by_far[:, :, None] * u[:, None])
    return {"value": value, "grad_centers": grad_centers, "grad_contexts": grad_contexts}
