"""The time from a program to a compiled function, per node and after import.

python -m benchmarks.compile_time [--nodes N ...] [--deep N] [--processes N]

The chain is ten nodes over and over: sin, times x, plus k, tanh, y / (2 + y * y) in three, minus
its mean in two, exp. Its gradient is taken of the sum, by x and by k. Every chain has a process of
its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import argparse
import io
import json
import pickle
import statistics
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

import graphcore as gc
from benchmarks.measure import environment, peak_resident, resident, seconds

Times = dict[str, float]


class Clock:
    """Seconds of one step after the other, by name."""

    def __init__(self) -> None:
        self.times: Times = {}

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        """The result of `work`, whose time is entered under `name`."""
        start = time.perf_counter()
        result = work()
        self.times[name] = time.perf_counter() - start
        return result


def chain(nodes: int) -> tuple[list[Any], Any]:
    """The inputs and the sum of a chain of so many nodes, in tens."""
    x, k = gc.tensor("x", {"row": None}), gc.tensor("k", {"row": None})
    y = x
    for _ in range(nodes // 10):
        y = gc.tanh(gc.sin(y) * x + k)
        y = y / (2 + y * y)
        y = gc.exp(y - y.mean("row"))
    return [x, k], y.sum()


def compiled(nodes: int, clock: Clock) -> tuple[list[Any], gc.Compiled]:
    """A chain and its gradients, and the function that computes them; each step is timed."""
    inputs, y = clock.step("build", lambda: chain(nodes))
    grads = clock.step("differentiate", lambda: gc.grad(y, inputs))
    results = [y, *grads]
    return results, clock.step("compile", lambda: gc.compile(inputs, results))


def per_node(nodes: int) -> Times:
    """Seconds of one chain, the nodes it became and the memory it took."""
    compiled(100, Clock())
    before, clocks = resident(), []
    for _ in range(max(1, 10_000 // nodes)):
        clocks.append(Clock())
        made = len(compiled(nodes, clocks[-1])[1].stages["scheduled"].nodes())
    found = {
        step: statistics.median(clock.times[step] for clock in clocks) for step in clocks[0].times
    }
    return found | {"made": made, "memory": peak_resident() - before}


def deep(nodes: int) -> Times:
    """Seconds of everything that is done with one very deep chain."""
    clock = Clock()
    alive: dict[str, Any] = {}
    alive["results"], alive["function"] = compiled(nodes, clock)
    text = io.StringIO()
    clock.step("print", lambda: gc.debug_print(alive["results"], file=text))
    data = clock.step("pickle", lambda: pickle.dumps(alive["results"]))
    alive["again"] = clock.step("unpickle", lambda: pickle.loads(data))
    if alive["again"][0] is not alive["results"][0]:
        raise SystemExit("the unpickled chain is not the chain")
    node = weakref.ref(alive["results"][0].node)
    clock.step("free", alive.clear)
    if node() is not None:
        raise SystemExit("the chain is not freed")
    lines = len(text.getvalue().splitlines())
    return clock.times | {"lines": lines, "bytes": len(data), "memory": peak_resident()}


def logistic(repeats: int = 20) -> Times:
    """Seconds to build, differentiate and compile the logistic loss: at first, and later."""

    def build() -> gc.Compiled:
        x = gc.tensor("x", {"batch": None, "feature": 20})
        w, b = gc.tensor("w", {"feature": 20}), gc.tensor("b", {})
        y = gc.tensor("y", {"batch": None})
        z = gc.dot(x, w, dim="feature") + b
        loss = (gc.log(1 + gc.exp(z)) - y * z).mean("batch")
        return gc.compile([x, w, b, y], [loss, *gc.grad(loss, [w, b])])

    clock = Clock()
    clock.step("first", build)
    later = []
    for _ in range(repeats):
        clock.step("later", build)
        later.append(clock.times["later"])
    return clock.times | {"later": statistics.median(later)}


TASKS: dict[str, Callable[[Any], Times]] = {
    "per_node": lambda nodes: per_node(int(nodes)),
    "deep": lambda nodes: deep(int(nodes)),
    "logistic": lambda _: logistic(),
}


def fresh(task: str, argument: object = "") -> Times:
    """What a task measures in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.compile_time", "--task", task, str(argument)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment())
    times: Times = json.loads(done.stdout)
    return times


def import_seconds(module: str) -> float:
    """Seconds of one import in a fresh interpreter."""
    code = f"from time import perf_counter as t; a = t(); import {module}; print(t() - a)"
    command = [sys.executable, "-c", code]
    return float(
        subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment()
        ).stdout
    )


def report_imports(processes: int) -> None:
    """`import graphcore` beside `import numpy`, in turn."""
    rounds = [(import_seconds("graphcore"), import_seconds("numpy")) for _ in range(processes + 1)][
        1:
    ]  # the first warms the disk
    ours, theirs = zip(*rounds, strict=True)
    print(
        f"import graphcore: {seconds(statistics.median(ours))} "
        f"({seconds(min(ours))}..{seconds(max(ours))}), of which numpy: "
        f"{seconds(statistics.median(theirs))}; median of {processes} fresh interpreters"
    )


def report_logistic(processes: int) -> None:
    """The logistic loss and its gradient."""
    runs = [fresh("logistic") for _ in range(processes)]
    first, later = ([times[name] for times in runs] for name in ("first", "later"))
    print(
        f"logistic loss and gradient, build to compiled: {seconds(statistics.median(first))} "
        f"({seconds(min(first))}..{seconds(max(first))}) at first after import, "
        f"{seconds(statistics.median(later))} later; median of {processes} fresh processes"
    )


def report_chains(lengths: list[int]) -> None:
    """The time per node of chains, and how much it grows with their length."""
    print(
        f"{'chain, value and gradient':26}{'build':>10}{'grad':>10}{'compile':>10}"
        f"{'per node':>11}{'nodes made':>12}{'per made':>10}{'peak memory':>13}"
    )
    costs = []
    for nodes in lengths:
        found = fresh("per_node", nodes)
        total = sum(found[step] for step in ("build", "differentiate", "compile"))
        costs.append(total / nodes)
        print(
            f"{nodes:>19,} nodes {seconds(found['build']):>10}{seconds(found['differentiate']):>10}"
            f"{seconds(found['compile']):>10}{total / nodes * 1e6:>8.1f} us"
            f"{found['made']:>12,.0f}{total / found['made'] * 1e6:>7.1f} us"
            f"{found['memory'] / 2**20:>10.0f} MB",
            flush=True,
        )
    print(f"flatness, dearest node over cheapest: {max(costs) / min(costs):.2f}")


def report_deep(nodes: int) -> None:
    """One very deep chain."""
    found = fresh("deep", nodes)
    steps = ("build", "differentiate", "compile", "print", "pickle", "unpickle", "free")
    print(
        f"a chain {nodes:,} nodes deep: "
        + ", ".join(f"{step} {seconds(found[step])}" for step in steps)
        + f"; {found['lines']:.0f} lines printed, {found['bytes'] / 2**20:.1f} MB "
        f"pickled, peak {found['memory'] / 2**20:.0f} MB"
    )


def main() -> None:
    """Print all reports, or do one task for another process."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compile_time",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--deep", type=int, default=200_000, help="0 leaves it out")
    parser.add_argument("--processes", type=int, default=9, help="fresh processes for a median")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        name, argument = options.task
        print(json.dumps(TASKS[name](argument)))
        return
    report_imports(options.processes)
    report_logistic(options.processes)
    if options.nodes:
        report_chains(options.nodes)
    if options.deep:
        report_deep(options.deep)


if __name__ == "__main__":
    main()
