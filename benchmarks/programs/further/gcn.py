"""Two layers of a graph network, its loss on labelled nodes, and its gradient.

Kipf and Welling, "Semi-supervised classification with graph convolutional networks" (2017).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

import graphcore as gc

SIZES = {
    "tiny": {"node": 6, "edge": 10, "feature": 4, "hidden": 3, "kind": 2},
    "small": {"node": 1000, "edge": 5000, "feature": 32, "hidden": 16, "kind": 7},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    nodes, edges, features, hidden, kinds = SIZES[size].values()
    rng = np.random.default_rng(45)
    ends = rng.integers(0, nodes, (2, edges))
    loops = np.arange(nodes)
    sender = np.concatenate([ends[0], ends[1], loops])
    receiver = np.concatenate([ends[1], ends[0], loops])
    order = np.argsort(receiver, kind="stable")
    degree = np.bincount(receiver, minlength=nodes)
    return {
        "sender": sender[order],
        "receiver": receiver[order],
        "strength": (degree[sender] * degree[receiver])[order] ** -0.5,
        "x": rng.standard_normal((nodes, features)),
        "label": rng.integers(0, kinds, nodes),
        "labelled": rng.uniform(size=nodes) < 0.3,
        "w1": rng.standard_normal((features, hidden)) / np.sqrt(features),
        "w2": rng.standard_normal((hidden, kinds)) / np.sqrt(hidden),
    }


def program() -> gc.Compiled:
    sender, receiver = (
        gc.tensor(name, {"edge": None}, dtype="int64") for name in ("sender", "receiver")
    )
    strength = gc.tensor("strength", {"edge": None})
    x = gc.tensor("x", {"node": None, "feature": None})
    label = gc.tensor("label", {"node": None}, dtype="int64")
    labelled = gc.tensor("labelled", {"node": None}, dtype="bool")
    w1 = gc.tensor("w1", {"feature": None, "hidden": None})
    w2 = gc.tensor("w2", {"hidden": None, "kind": None})

    def spread(h: gc.Tensor) -> gc.Tensor:
        messages = strength * h[{"node": sender}]
        return gc.segment_sum(messages, receiver, x.sizes["node"], dim="edge", name="node")

    h = gc.maximum(spread(gc.dot(x, w1, dim="feature")), 0.0)
    chances = gc.special.log_softmax(spread(gc.dot(h, w2, dim="hidden")), "kind")
    right = chances[{"kind": label}]
    value = -right.mean(where=labelled)
    results = {"value": value, **gc.grad(value, {"grad_w1": w1, "grad_w2": w2})}
    return gc.compile([sender, receiver, strength, x, label, labelled, w1, w2], results)


def reference(
    sender: np.ndarray,
    receiver: np.ndarray,
    strength: np.ndarray,
    x: np.ndarray,
    label: np.ndarray,
    labelled: np.ndarray,
    w1: np.ndarray,
    w2: np.ndarray,
) -> dict[str, np.ndarray]:
    nodes = np.arange(len(x))
    spread = csr_array((strength, (receiver, sender)), shape=(len(x), len(x)))
    mixed = spread @ (x @ w1)
    h = np.maximum(mixed, 0)
    z = spread @ (h @ w2)
    z -= z.max(1, keepdims=True)
    e = np.exp(z)
    total = e.sum(1)
    weight = labelled / labelled.sum()
    value = (weight * (np.log(total) - z[nodes, label])).sum()
    by_z = e / total[:, None]
    by_z[nodes, label] -= 1
    by_hw = spread.T @ (by_z * weight[:, None])
    by_mixed = (by_hw @ w2.T) * (mixed > 0)
    return {"value": value, "grad_w1": x.T @ (spread.T @ by_mixed), "grad_w2": h.T @ by_hw}
