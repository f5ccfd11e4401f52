"""k-means: its cost, gradient, diagonal of the Hessian, and Newton's direction.

GradBench's kmeans: the Hessian is diagonal, so that its product with ones is its diagonal.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"point": 20, "cluster": 3, "dim": 2},
    "small": {"point": 1000, "cluster": 10, "dim": 8},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    points, clusters, dims = SIZES[size].values()
    drawn = np.random.default_rng(3).uniform(size=(points, dims))
    return {"points": drawn, "centers": drawn[-clusters:].copy()}


def program() -> gc.Compiled:
    points = gc.tensor("points", {"point": None, "dim": None})
    centers = gc.tensor("centers", {"cluster": None, "dim": None})

    products = gc.dot(points, centers, dim="dim")
    distances = (points**2).sum("dim") + (centers**2).sum("dim") - 2 * products
    value = distances.min("cluster").sum()
    slope = gc.grad(value, centers)
    curvature = gc.hvp(value, centers, gc.ones_like(centers))
    results = {"value": value, "grad_centers": slope, "hessian_diagonal": curvature}
    return gc.compile([points, centers], {**results, "direction": slope / curvature})


def reference(points: np.ndarray, centers: np.ndarray) -> dict[str, np.ndarray]:
    norms = (points**2).sum(1)[:, None] + (centers**2).sum(1)
    distances = norms - 2 * points @ centers.T
    nearest = distances.argmin(1)
    clusters, dims = centers.shape
    counts = np.bincount(nearest, minlength=clusters).astype(float)[:, None]
    sums = [np.bincount(nearest, points[:, dim], clusters) for dim in range(dims)]
    slope = 2 * (counts * centers - np.stack(sums, 1))
    curvature = np.repeat(2 * counts, dims, 1)
    return {
        "value": distances.min(1).sum(),
        "grad_centers": slope,
        "hessian_diagonal": curvature,
        "direction": slope / curvature,
    }
