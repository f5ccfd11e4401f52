from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt

from . import symbols, value_and_gradients

WEIGHTS = "w1", "b1", "w2", "b2", "w3", "b3"


def loss(x, target, w1, b1, w2, b2, w3, b3):
    hidden = pt.maximum(x @ w1 + b1, 0)
    logits = pt.maximum(hidden @ w2 + b2, 0) @ w3 + b3
    return -pt.sum(target * pt.special.log_softmax(logits, axis=1)) / x.shape[0]


def program() -> Callable[..., dict[str, Any]]:
    ranks = {name: 2 if name.startswith("w") else 1 for name in WEIGHTS}
    return value_and_gradients(loss, symbols(x=2, target=2, **ranks), WEIGHTS)
