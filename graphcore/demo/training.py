"""The training loop and the race against NumPy: plain loops around compiled functions."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from .by_hand import Weights
from .datasets import Digits

Step = Callable[..., Any]


def random_weights(hidden: int, rng: np.random.Generator) -> Weights:
    """Weights to start from, scaled so that every layer's values have about the same size."""
    return {
        "w1": rng.normal(scale=np.sqrt(2 / 64), size=(8, 8, hidden)),
        "b1": np.zeros(hidden),
        "w2": rng.normal(scale=np.sqrt(1 / hidden), size=(hidden, 10)),
        "b2": np.zeros(10),
    }


def at_rest(weights: Weights) -> Weights:
    """No velocity."""
    return {name: np.zeros_like(w) for name, w in weights.items()}


def train(
    step: Step,
    weights: Weights,
    digits: Digits,
    epochs: int,
    batch: int,
    rate: float,
    rng: np.random.Generator,
    report: Callable[[int, float], None],
) -> Weights:
    """The weights after a step for each batch of each epoch, in a new order each time.

    The last batch of an epoch may be smaller. `report` is called with epoch and loss after each
    step.
    """
    velocity = at_rest(weights)
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(digits.label))
        for start in range(0, len(order), batch):
            at = order[start : start + batch]
            image, label = digits.image[at], digits.label[at]
            loss, weights, velocity = step(image, label, weights, velocity, rate)
            report(epoch, float(loss))
    return weights


class Race(NamedTuple):
    """Two functions on the same arguments: median seconds a call, and how far results differ."""

    ours: float
    theirs: float
    difference: float


def race(ours: Step, theirs: Step, arguments: tuple[Any, ...], seconds: float = 0.5) -> Race:
    """Both in turn, each as often first as second, for so many seconds or at least four rounds."""
    difference = largest_difference(ours(*arguments), theirs(*arguments))
    times: dict[Step, list[float]] = {ours: [], theirs: []}
    end = time.perf_counter() + seconds
    for number in count():
        if number >= 4 and time.perf_counter() > end:
            break
        for function in (ours, theirs) if number % 2 else (theirs, ours):
            start = time.perf_counter()
            function(*arguments)
            times[function].append(time.perf_counter() - start)
    return Race(median(times[ours]), median(times[theirs]), difference)


def largest_difference(a: Any, b: Any) -> float:
    """Between arrays in the same nested form, relative to the largest value of each array."""
    if isinstance(a, dict):
        return max(largest_difference(a[name], b[name]) for name in b)
    if isinstance(a, list | tuple):
        return max(map(largest_difference, a, b))
    return float(np.max(np.abs(a - b)) / (np.max(np.abs(b)) or 1))
