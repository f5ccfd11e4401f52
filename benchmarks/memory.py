"""Resident memory over many calls of one function, and over many graphs built and dropped.

python -m benchmarks.memory [--calls N] [--graphs N]

Memory is what the system says this process holds. A tenth of the work runs before the first
checkpoint, so that what is kept on purpose (buffers, caches of a fixed size) is there by then;
drift is what is added from there to the end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import graphcore as gc
from benchmarks.measure import resident, seconds

CHECKPOINTS = 10


def calls(count: int) -> None:
    """Calls of a small compiled loss and gradient, at sizes that change now and then."""
    x, w = gc.tensor("x", {"row": None}), gc.tensor("w", {"row": None})
    loss = (gc.tanh(x * w) ** 2).sum("row")
    f = gc.compile([x, w], [loss, gc.grad(loss, w)])
    data = [np.linspace(0, 1, n) for n in range(3, 9)]
    for number in range(count):
        values = data[number // 1000 % len(data)]
        f(values, values)


def graphs(count: int, first: int, every: int = 100) -> None:
    """Graphs that differ, with gradients, built and dropped; one of `every` is compiled and run."""
    for number in range(first, first + count):
        x, w = gc.tensor("x", {"row": None}), gc.tensor(f"w{number}", {"row": None})
        loss = (gc.tanh(x * w + number) ** 2).mean("row")
        dw = gc.grad(loss, w)
        if number % every == 0:
            gc.compile([x, w], [loss, dw])(np.ones(3), np.ones(3))


def watch(title: str, count: int, work: Callable[[int, int], None]) -> float:
    """Do `work(how many, after how many)` in tenths; the drift in bytes, printed as it is done."""
    part = max(1, count // CHECKPOINTS)
    print(f"{title}: {part * CHECKPOINTS:,}")
    held = []
    start = time.perf_counter()
    for tenth in range(CHECKPOINTS):
        work(part, tenth * part)
        held.append(resident())
        print(f"  {(tenth + 1) * part:>12,}  {held[-1] / 2**20:8.2f} MB", flush=True)
    each = (time.perf_counter() - start) / (part * CHECKPOINTS)
    drift = held[-1] - held[0]
    later = part * (CHECKPOINTS - 1)
    print(f"  drift {drift / 2**20:+.2f} MB, {drift / later:+.3f} bytes each; {seconds(each)} each")
    return drift


def main() -> None:
    """Watch calls, then graphs."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--calls", type=int, default=10_000_000)
    parser.add_argument("--graphs", type=int, default=100_000)
    options = parser.parse_args()
    watch("calls of one compiled loss and gradient", options.calls, lambda n, _: calls(n))
    watch("graphs built, one in 100 compiled and run, and dropped", options.graphs, graphs)


if __name__ == "__main__":
    main()
