"""Softmax along the last of four dims, and its pullback (npbench's softmax)."""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"batch": 2, "head": 3, "query": 4, "key": 5},
    "small": {"batch": 16, "head": 16, "query": 128, "key": 128},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(23)
    shape = tuple(SIZES[size].values())
    return {"x": rng.standard_normal(shape), "ct": rng.standard_normal(shape)}


def program(dtype: str = "float64") -> gc.Compiled:
    dims = {"batch": None, "head": None, "query": None, "key": None}
    x, ct = (gc.tensor(name, dims, dtype=dtype) for name in ("x", "ct"))
    y = gc.special.softmax(x, "key")
    return gc.compile([x, ct], {"y": y, "grad_x": gc.pullback(y, x, ct)})


def reference(x: np.ndarray, ct: np.ndarray) -> dict[str, np.ndarray]:
    e = np.exp(x - x.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    return {"y": y, "grad_x": y * (ct - (ct * y).sum(-1, keepdims=True))}
