"""Processor times of a step of training, compiled and by hand, each with one thread.

They are measured in a process of their own, because a library for products of matrices reads how
many threads it may use when it is loaded. Its threads keep processors busy while they wait for each
other, which on a busy machine takes many times as long as the products.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from timeit import Timer
from typing import Any, NamedTuple

import numpy as np

from . import by_hand, datasets

ONE_THREAD = dict.fromkeys(
    (
        "BLIS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)
WARM = 0.15
"""Seconds of calls of the first function before its first sample: it becomes faster with use."""
SAMPLE, ROUNDS = (0.2, 3) if sys.platform == "win32" else (0.008, 9)
"""Seconds of a sample and the number of samples. The processor's clock of Windows is coarse."""


class Race(NamedTuple):
    """Seconds of a step for so many digits, of both, and how far their results differ."""

    digits: int
    ours: float
    theirs: float
    difference: float


def races(counts: Sequence[int], hidden: int) -> list[Race]:
    """A race for each number of digits, in a process that has one thread."""
    command = [sys.executable, "-m", __name__, *map(str, [hidden, *counts])]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, check=True)
    return [Race(*row) for row in json.loads(done.stdout)]


def race(count: int, hidden: int) -> Race:
    """The median times of samples taken in turn, on the first digits and random weights."""
    from .examples import digits

    image, label = datasets.digits()
    weights = digits.random_weights(hidden, np.random.default_rng(0))
    velocity = {name: np.zeros_like(w) for name, w in weights.items()}
    arguments = image[:count], label[:count], weights, velocity, 0.1
    ours, theirs = partial(digits.step, *arguments), partial(by_hand.step, *arguments)
    times = median_seconds(ours, theirs)
    return Race(count, times[0], times[1], largest_difference(ours(), theirs()))


def median_seconds(*functions: Callable[[], Any]) -> list[float]:
    """The median seconds of a call of each, by the processor's clock."""
    timers = [Timer(function, timer=time.process_time) for function in functions]
    calls_for(timers[0], WARM)
    calls = [calls_for(timer, SAMPLE) for timer in timers]
    rounds = [
        [timer.timeit(number) / number for timer, number in zip(timers, calls)]
        for _ in range(ROUNDS)
    ]
    return [median(times) for times in zip(*rounds)]


def calls_for(timer: Timer, seconds: float) -> int:
    """How many calls take so many seconds."""
    number = 1
    while (spent := timer.timeit(number)) < seconds:
        number = max(2 * number, math.ceil(number * seconds / max(spent, 1e-9)))
    return number


def largest_difference(a: Any, b: Any) -> float:
    """Between arrays in the same nested form, relative to the largest value of each array."""
    if isinstance(a, dict):
        return max(largest_difference(a[name], b[name]) for name in b)
    if isinstance(a, list | tuple):
        return max(map(largest_difference, a, b))
    return float(np.max(np.abs(a - b)) / (np.max(np.abs(b)) or 1))


if __name__ == "__main__":
    try:
        hidden, *counts = map(int, sys.argv[1:])
        json.dump([race(count, hidden) for count in counts], sys.stdout)
    except KeyboardInterrupt:
        sys.exit(130)
