"""The gradient of long loops under each policy of checkpoints, and how long an LSTM compiles.

python -m benchmarks.loops [--steps N ...] [--size N]

A step is y = tanh(a y + b x[t]) of a vector; the gradient is that of the last |y|² by a, b and all
x. Every row has a process of its own, so that its peak of memory is its own; what the arguments and
results take is in it, and is the same for all policies.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

import graphcore as gc
from benchmarks.measure import environment, peak_resident, resident, seconds

POLICIES: dict[str, int | str | None] = {"none": None, "every 1,000": 1000, "log": "log"}
Measured = dict[str, float]


def recurrence(size: int, policy: str) -> gc.Compiled:
    """The gradient of a loop of any length by all that it uses."""
    x = gc.tensor("x", {"time": None})
    a, b = gc.tensor("a", {"place": size}), gc.tensor("b", {"place": size})
    start = gc.zeros({"place": size})
    last, _ = gc.scan(
        lambda y, xt: (gc.tanh(a * y + b * xt), None), start, x, checkpoint=POLICIES[policy]
    )
    return gc.compile([x, a, b], gc.grad((last * last).sum(), [x, a, b]))


def gradient(steps: int, size: int, policy: str) -> Measured:
    """Seconds and bytes of one gradient of a loop of so many steps."""
    random = np.random.default_rng(0)
    f = recurrence(size, policy)
    data = random.normal(size=steps), random.uniform(0.5, 1, size), random.normal(size=size)
    f(data[0][:3], *data[1:])
    before, start = resident(), time.perf_counter()
    f(*data)
    return {"seconds": time.perf_counter() - start, "bytes": peak_resident() - before}


def lstm(features: int, hidden: int) -> gc.Compiled:
    """Loss and gradient of an LSTM over sequences of any length, by its weights."""
    x = gc.tensor("x", {"time": None, "batch": None, "feature": features})
    w = gc.tensor("w", {"feature": features, "gate": 4, "hidden": hidden})
    u = gc.tensor("u", {"before": hidden, "gate": 4, "hidden": hidden})
    b = gc.tensor("b", {"gate": 4, "hidden": hidden})

    def step(carry: tuple[gc.Tensor, gc.Tensor], xt: gc.Tensor) -> tuple:
        h, c = carry
        z = gc.dot(xt, w, dim="feature") + gc.dot(h.rename(hidden="before"), u, dim="before") + b
        i, f, o = (gc.special.sigmoid(z.isel(gate=k)) for k in range(3))
        c = f * c + i * gc.tanh(z.isel(gate=3))
        h = o * gc.tanh(c)
        return (h, c), h

    zeros = gc.zeros({"batch": x.sizes["batch"], "hidden": hidden})
    _, hs = gc.scan(step, (zeros, zeros), x)
    loss = (hs * hs).mean()
    return gc.compile([x, w, u, b], [loss, *gc.grad(loss, [w, u, b])])


def compile_seconds(repeats: int = 5) -> Measured:
    """From a program to a compiled function: the first time, and later."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        lstm(16, 32)
        times.append(time.perf_counter() - start)
    return {"first": times[0], "later": statistics.median(times[1:])}


def fresh(*task: Any) -> Measured:
    """What a task measures in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.loops", "--task", *map(str, task)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment())
    measured: Measured = json.loads(done.stdout)
    return measured


def run_task(name: str, *arguments: Any) -> Measured:
    """A task by its name."""
    if name == "compile":
        return compile_seconds()
    steps, size, policy = arguments
    return gradient(int(steps), int(size), policy)


def report_gradients(lengths: list[int], size: int) -> None:
    """Time per step and peak of memory, for each length and policy."""
    print(f"gradient of a scan, {size} numbers carried: time per step, and peak of memory")
    print(f"{'steps':>12}" + "".join(f"{policy:>28}" for policy in POLICIES))
    for steps in lengths:
        row = f"{steps:>12,}"
        for policy in POLICIES:
            found = fresh("gradient", steps, size, policy)
            each = seconds(found["seconds"] / steps)
            row += f"{each + ', ' + format(found['bytes'] / 2**20, ',.1f') + ' MB':>28}"
        print(row, flush=True)


def main() -> None:
    """Print all reports, or do one task for another process."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.loops",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--steps", type=int, nargs="*", default=[10**3, 10**4, 10**5, 10**6])
    parser.add_argument("--size", type=int, default=16, help="how many numbers a step carries")
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(run_task(*options.task)))
        return
    found = fresh("compile")
    print(
        f"LSTM loss and gradient, program to compiled: {seconds(found['first'])} at first, "
        f"{seconds(found['later'])} later"
    )
    report_gradients(options.steps, options.size)


if __name__ == "__main__":
    main()
