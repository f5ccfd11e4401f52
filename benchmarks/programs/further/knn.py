"""Regression by the nearest neighbours, weighted by their distances.

Hastie, Tibshirani and Friedman, "The elements of statistical learning" (2009), section 13.3.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"query": 3, "point": 8, "feature": 2},
    "small": {"query": 400, "point": 1000, "feature": 16},
}
NEAREST = 5


def inputs(size: str) -> dict[str, np.ndarray]:
    queries, points, features = SIZES[size].values()
    rng = np.random.default_rng(59)
    return {
        "query": rng.standard_normal((queries, features)),
        "point": rng.standard_normal((points, features)),
        "label": rng.standard_normal(points),
    }


def program() -> gc.Compiled:
    query = gc.tensor("query", {"query": None, "feature": None})
    point = gc.tensor("point", {"point": None, "feature": "feature"})
    label = gc.tensor("label", {"point": "point"})

    crossed = gc.dot(query, point, dim="feature")
    distances = (query**2).sum("feature") + (point**2).sum("feature") - 2 * crossed
    nearest = gc.top_k(-distances, NEAREST, "point")
    weights = gc.special.softmax(nearest.values, "point")
    found = (weights * label[{"point": nearest.indices}]).sum("point")
    return gc.compile([query, point, label], {"found": found, "distance": -nearest.values})


def reference(query: np.ndarray, point: np.ndarray, label: np.ndarray) -> dict[str, np.ndarray]:
    distances = (query**2).sum(1)[:, None] + (point**2).sum(1) - 2 * query @ point.T
    places = np.argpartition(distances, NEAREST, 1)[:, :NEAREST]
    near = np.take_along_axis(distances, places, 1)
    order = near.argsort(1)
    places, near = np.take_along_axis(places, order, 1), np.take_along_axis(near, order, 1)
    weights = np.exp(near[:, :1] - near)
    found = (weights * label[places]).sum(1) / weights.sum(1)
    return {"found": found, "distance": near}
