"""Calls of compiled functions against hand-written NumPy and JAX, in one interleaved run.

python -m benchmarks.speed [--rows NAME ...] [--rounds N] [--json PATH]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks import rows as table
from benchmarks.measure import (
    Call,
    Spread,
    interleaved,
    seconds,
    settle_allocator,
    summary,
    use_one_thread,
)
from benchmarks.rows import ROWS, Row, Sizes

HEAD = (
    f"{'row':12}{'size':>22}{'graphcore':>11}{'NumPy':>10}{'JAX':>10}  "
    f"{'NumPy / graphcore':21}{'JAX / graphcore':21}{'first call, graphcore':>22}{'JAX':>9}"
)


class Result(NamedTuple):
    """What was measured of one row at one size; times in seconds, and the times of first calls."""

    row: str
    sizes: Sizes
    medians: dict[str, float]
    over_graphcore: dict[str, Spread]
    first_call: dict[str, float]

    def __str__(self) -> str:
        def time_of(times: dict[str, float], who: str) -> str:
            return seconds(times[who]) if who in times else "-"

        numpy, jax = (str(self.over_graphcore.get(who, "-")) for who in ("numpy", "jax"))
        return (
            f"{self.row:12}{table.show(self.sizes):>22}{time_of(self.medians, 'graphcore'):>11}"
            f"{time_of(self.medians, 'numpy'):>10}{time_of(self.medians, 'jax'):>10}  "
            f"{numpy:21}{jax:21}{time_of(self.first_call, 'graphcore'):>22}"
            f"{time_of(self.first_call, 'jax'):>9}"
        )


def run(row: Row, sizes: Sizes, jax: ModuleType | None, rounds: int) -> Result:
    """One row at one size: build, compare, then measure in turn."""
    data = row.data(sizes)
    makers: dict[str, Callable[[], Callable[..., Any]]] = {
        "graphcore": lambda: table.in_graphcore(row, sizes),
        "numpy": lambda: table.in_numpy(row),
    }
    if jax is not None:
        makers["jax"] = lambda: table.in_jax(row, jax)
    expected = table.in_numpy(row)(*data)
    functions, first = {}, {}
    for who, make in makers.items():
        start = time.perf_counter()
        functions[who] = make()
        found = functions[who](*data)
        first[who] = time.perf_counter() - start
        table.require_same(row, who, found, expected)
    samples = interleaved({who: Call(f, data) for who, f in functions.items()}, rounds)
    return Result(
        row.name,
        sizes,
        *summary(samples),
        first,
    )


class Limits(NamedTuple):
    """What this machine reaches on one thread: bytes moved and operations done in a second."""

    bandwidth: float
    flops: float

    @classmethod
    def measure(cls, n: int = 10_000_000, m: int = 1024) -> Limits:
        """The quickest of a few sums of large arrays, and of products of square matrices."""
        x, y, z = np.ones((3, n))
        a, b, c = np.ones((3, m, m))
        calls = {"add": Call(np.add, (x, y, z)), "dot": Call(np.dot, (a, b, c))}
        samples = interleaved(calls, 7)
        return cls(24 * n / min(samples["add"]), 2 * m**3 / min(samples["dot"]))

    def least(self, row: str, sizes: Sizes) -> tuple[float, str] | None:
        """The least time a row can take for its memory or its matrix products, and what that is."""
        if row == "elementwise":
            return 24 * sizes["batch"] / self.bandwidth, "two inputs and a result through memory"
        if row == "mlp":
            wide = sizes["batch"] * sizes["feature"] * sizes["hidden"]
            narrow = sizes["batch"] * sizes["hidden"] * sizes["class"]
            return (4 * wide + 6 * narrow) / self.flops, "its five matrix products"
        return None


def report(results: list[Result], limits: Limits) -> dict[str, Any]:
    """Everything that was measured, times in seconds."""
    rows = [
        {"row": r.row, "sizes": r.sizes, "medians": r.medians, "first call": r.first_call}
        | {f"{who} over graphcore": ratio._asdict() for who, ratio in r.over_graphcore.items()}
        for r in results
    ]
    return {"limits": limits._asdict(), "numpy": np.__version__, "rows": rows}


def main() -> None:
    """Measure the rows that were asked for, and print each as it is done."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME",
                        help=f"some of {', '.join(ROWS)}")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=15, help="samples of each (default 15)")
    parser.add_argument("--json", type=Path, help="also write the results here")
    options = parser.parse_args()
    use_one_thread()
    settle_allocator()
    jax = table.jax_rows()
    print("float64, one thread; medians of interleaved samples, ratios pair by pair (quartiles)")
    print(HEAD)
    results = []
    for name in options.rows:
        for sizes in ROWS[name].sizes:
            results.append(run(ROWS[name], sizes, jax, options.rounds))
            print(results[-1], flush=True)
    limits = Limits.measure()
    said = [f"limits here: {limits.bandwidth / 1e9:.1f} GB/s, {limits.flops / 1e9:.1f} Gflop/s"]
    for result in results:
        least = limits.least(result.row, result.sizes)
        if least is not None and result.sizes is ROWS[result.row].sizes[1]:
            part = least[0] / result.medians["graphcore"]
            said.append(f"large {result.row}: {part:.0%} of the limit ({least[1]})")
    print("; ".join(said))
    if options.json:
        options.json.write_text(json.dumps(report(results, limits), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
