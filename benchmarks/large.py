"""The programs with arrays beyond the caches, beside peers with as many threads.

python -m benchmarks.large [NAME ...] [--threads 1 2] [--rounds N] [--python jax=PATH torch=PATH]

Each library runs in a process of its own, held to as many CPUs as it has threads, and they are
called in turn. Its arguments are as its users hold them: NumPy's arrays, of JAX its own. Results
must agree by their sums of squares. The table says for each program and number of threads

- our time and the best peer's, and the times of all peers over ours;
- `moved`: the bytes of arguments and results, which a call moves at least, in our time, as a part
  of those that a triad x = y + 2 z moves; and `products`: the same of the operations in products of
  matrices, which are those of `f.profile`, and of a product of 2000 rows by NumPy. Both are
  measured with as many threads;
- the part of several cores that our time reaches: the time of one over theirs, by their number; and
  by Amdahl's law the time that 16 cores would take, from the part that is serial here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import report
from benchmarks.measure import ONE_THREAD, environment, hardware
from benchmarks.programs import Program

LARGE: dict[str, dict[str, float]] = {
    "azimint": {"pixel": 4_000_000},
    "ba": {"camera": 500, "point": 100_000, "observation": 400_000},
    "bbsvi_bnn": {"sample": 200, "data": 4000, "in": 1, "hidden1": 20, "hidden2": 20, "out": 1},
    "contour_integral": {"point": 32, "slab": 3, "row": 400, "rhs": 400},
    "conv2d": {"batch": 16, "row": 128, "col": 128, "in": 16, "out": 32, "kernel": 3},
    "correlation": {"sample": 4000, "variable": 2000},
    "dpsgd": {"example": 512, "in": 784, "hidden": 128, "class": 10},
    "eos": {"places": 2**22},
    "gmm": {"dim": 16, "component": 32, "point": 100_000},
    "gp": {"point": 2000, "feature": 8},
    "gpt": {
        **{"batch": 4, "time": 256, "embed": 256, "head": 8},
        **{"layer": 4, "vocab": 4096, "spread": 0.02},
    },
    "heat1d": {"cell": 200_000, "time": 100},
    "hmm": {"time": 2000, "state": 128},
    "isoneutral": {"places": 2**20},
    "jacobi2d": {"steps": 10, "side": 3000},
    "kalman": {"time": 20, "series": 20_000, "state": 4, "sensor": 2},
    "kmeans": {"point": 200_000, "cluster": 10, "dim": 8},
    "logreg": {"row": 500_000, "feature": 50},
    "lstm": {"layer": 2, "time": 32, "hidden": 1024},
    "mlp": {"batch": 512, "in": 3000, "hidden": 2000, "inner": 1000, "class": 100},
    "mvn": {"group": 100, "draw": 2000, "axis": 64},
    "power_iter": {"batch": 32, "row": 500},
    "ridge_implicit": {"row": 100_000, "held": 50_000, "feature": 100},
    "softmax": {"batch": 16, "head": 16, "query": 256, "key": 256},
    "spmv": {"row": 2**20, "col": 2**20, "entry": 2**22},
    "stockham_fft": {"radix": 20},
    "vadv": {"i": 256, "j": 256, "level": 80},
    "further.american_option": {"option": 20_000, "steps": 25},
    "further.black_scholes": {"option": 5_000_000},
    "further.cox": {"patient": 200_000, "factor": 50},
    "further.gcn": {"node": 100_000, "edge": 1_000_000, "feature": 64, "hidden": 32, "kind": 7},
    "further.gray_scott": {"row": 2000, "col": 2000, "steps": 5},
    "further.harris": {"row": 3000, "col": 4000},
    "further.info_nce": {"pair": 1024, "pixel": 2048, "word": 1024, "feature": 512},
    "further.irls": {"row": 500_000, "col": 20},
    "further.knn": {"query": 2000, "point": 8000, "feature": 32},
    "further.kuramoto": {"node": 2000},
    "further.lattice_boltzmann": {"row": 1000, "col": 1000, "steps": 5},
    "further.mandelbrot": {"row": 2000, "col": 2000, "steps": 30},
    "further.nbody": {"body": 2000, "steps": 3},
    "further.pagerank": {"page": 500_000, "link": 4_000_000},
    "further.richardson_lucy": {"row": 1500, "col": 1500, "blur": 7},
    "further.sinkhorn": {"row": 2500, "col": 2500, "axis": 3},
    "further.value_iteration": {"action": 6, "state": 1500},
    "further.viterbi": {"time": 1000, "state": 500},
    "further.word2vec": {"word": 100_000, "vector": 128, "pair": 65_536, "drawn": 5},
}
"""The sizes; programs whose arrays stay in caches, such as those of few parameters, have none."""
WHO = "native", "numpy", "jax", "torch"
THREADS_OF = {
    **dict.fromkeys((name for name in ONE_THREAD if name.endswith("THREADS")), "{threads}"),
    "GRAPHCORE_THREADS": "{threads}",
    "JAX_PLATFORMS": "cpu",
}
SAMPLE = 0.2
"""The seconds that a sample takes at least."""
WARM = 4.0
"""The seconds of calls before the first sample: better code is made meanwhile, by another thread,
which takes half of the time where there is one CPU."""
ABSENT = {"absent": True}
"""What a library says that lacks a program."""
PATIENCE = 120
"""The seconds that a library may take for its first call; it is left out where it takes longer."""
AGREE = 1e-4
"""How far the sums of squares of a peer's results may be from ours."""
CORES = 16
PRODUCT = re.compile(r"\b(dot|matmul|matvec)\(")


# ---- in a process of its own


def serve(name: str, who: str) -> None:
    """Call a program as often as the process that started this one asks for."""
    if who == "limits":
        return print(json.dumps(limits(len(os.sched_getaffinity(0)))), flush=True)
    program = Program(name)
    program.module.SIZES["large"] = LARGE[name]
    given = program.module.inputs("large")
    function = program.make(who)
    if function is None:
        return print(json.dumps(ABSENT), flush=True)
    bytes_in = sum(x.nbytes for x in given.values())
    call = calls_of(who, function, given)
    found = {key: np.asarray(value) for key, value in call().items()}
    warm = time.perf_counter() + WARM
    while time.perf_counter() < warm:
        call()
    squares = {key: float(np.vdot(x, x).real) for key, x in as_floats(found).items()}
    print(
        json.dumps({"bytes": bytes_in + sum(x.nbytes for x in found.values()), "squares": squares})
    )
    del found
    sys.stdout.flush()
    for line in sys.stdin:
        answer = profiled(function, given) if line.strip() == "profile" else timed(call)
        print(json.dumps(answer), flush=True)
    return None


def calls_of(who: str, function: Any, given: Mapping[str, Any]) -> Callable[[], Mapping[str, Any]]:
    """A call with arguments of the library's own, which returns once its results are there."""
    if who == "torch":
        import torch

        torch.set_num_threads(len(os.sched_getaffinity(0)))
    if who != "jax":
        return lambda: function(**given)
    import jax

    own = {key: jax.device_put(x) for key, x in given.items()}
    return lambda: jax.block_until_ready(function(**own))


def as_floats(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Results as flat arrays of numbers, whose squares are added up to compare them."""
    wide = {key: x if x.dtype.kind == "c" else x.astype(float) for key, x in arrays.items()}
    return {key: np.where(np.isfinite(x), x, 0).ravel() for key, x in wide.items()}


def timed(call: Callable[[], object]) -> float:
    """The seconds of one call, of as many as take `SAMPLE`."""
    begin, calls = time.perf_counter(), 0
    while (spent := time.perf_counter() - begin) < SAMPLE or not calls:
        call()
        calls += 1
    return spent / calls


def profiled(function: Any, given: Mapping[str, Any]) -> float:
    """The floating-point operations of products of matrices in a call."""
    steps = function.profile(**given).steps
    return float(sum([step.flops for step in steps if PRODUCT.search(step.says)]))


def limits(threads: int) -> dict[str, float]:
    """Operations of a product of matrices, and bytes of a triad, in a second."""
    a = np.random.default_rng(0).normal(size=(2000, 2000))
    out = np.empty_like(a)
    product = min(timed(lambda: np.dot(a, a, out)) for _ in range(5))
    parts = [[np.ones(10**7 // threads) for _ in range(3)] for _ in range(threads)]

    def triad(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
        for at in range(0, len(x), 2**14):
            np.multiply(z[at : at + 2**14], 2.0, x[at : at + 2**14])
            np.add(x[at : at + 2**14], y[at : at + 2**14], x[at : at + 2**14])

    def together() -> None:
        running = [threading.Thread(target=triad, args=part) for part in parts]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    moved = sum(x.nbytes for part in parts for x in part)
    return {"flops": 2 * 2000**3 / product, "bytes": moved / min(timed(together) for _ in range(5))}


# ---- in the process that measures


class Server:
    """A library in a process of its own, held to some CPUs."""

    def __init__(self, name: str, who: str, threads: int, python: str) -> None:
        own = {key: value.format(threads=threads) for key, value in THREADS_OF.items()}
        if threads == 1:
            own["XLA_FLAGS"] = ONE_THREAD["XLA_FLAGS"]
        own["PYTHONPATH"] = str(Path(__file__).parents[1])
        here = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(here)[-threads:])  # which the process inherits
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.large", "--serve", name, who],
            env={**environment(), **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        os.sched_setaffinity(0, here)
        watch = threading.Timer(PATIENCE, self.process.kill)
        watch.start()
        self.begun = self.answer()
        watch.cancel()

    def answer(self) -> Any:
        """What it says next; None where it has failed or is killed."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, what: str = "") -> Any:
        """What it answers to a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


class Row(NamedTuple):
    """A program with a number of threads: the median seconds of each library, and our shares."""

    program: str
    threads: int
    megabytes: float
    medians: dict[str, float]
    moved: float
    products: float

    @property
    def ratios(self) -> dict[str, float]:
        """The times of peers over ours."""
        ours = self.medians["native"]
        return {who: t / ours for who, t in self.medians.items() if who != "native"}


def run(name: str, threads: int, rounds: int, pythons: Mapping[str, str], most: Any) -> Row | None:
    """Start all libraries, compare their results with ours, and call them in turn."""
    servers: dict[str, Server] = {}
    try:
        for who in WHO:
            servers[who] = Server(name, who, threads, pythons.get(who, sys.executable))
            if servers[who].begun in (None, ABSENT):
                if servers[who].begun is None:
                    print(f"{name}: {who} has failed, or takes over {PATIENCE} s", flush=True)
                servers.pop(who).close()
        if "native" not in servers:
            return None
        ours = servers["native"].begun
        for who, server in servers.items():
            require_same(f"{name} of {who}", server.begun["squares"], ours["squares"])
        samples: dict[str, list[float]] = {who: [] for who in servers}
        for _ in range(rounds):
            for who, taken in samples.items():
                taken.append(servers[who].ask())
        flops = servers["native"].ask("profile")
    finally:
        for server in servers.values():
            server.close()
    medians = {who: statistics.median(taken) for who, taken in samples.items()}
    shares = ours["bytes"] / most["bytes"], flops / most["flops"]
    return Row(
        name, threads, ours["bytes"] / 1e6, medians, *[x / medians["native"] for x in shares]
    )


def require_same(what: str, found: Mapping[str, float], expected: Mapping[str, float]) -> None:
    """Say which results are others than ours."""
    for key, square in expected.items():
        if not abs(found[key] - square) <= AGREE * abs(square):
            print(
                f"{what}: {key} differs from ours: {found[key]:.6g}, not {square:.6g}", flush=True
            )


def cells(row: Row, one: Row | None) -> dict[str, Any]:
    """A line of the table and of CSV; `one` is the same program with one thread."""
    ratios, ours = row.ratios, row.medians["native"]
    best = min(ratios, key=lambda who: ratios[who]) if ratios else ""
    scaling = None if one is None or one is row else one.medians["native"] / ours
    serial = None
    if scaling is not None:  # t(n) = t(1) (s + (1 - s) / n)
        serial = min(max((row.threads / scaling - 1) / (row.threads - 1), 0.0), 1.0)
    return {
        "program": row.program.removeprefix("further."),
        "threads": row.threads,
        "MB": row.megabytes,
        "ours_ms": ours * 1e3,
        "best": best,
        "ratio": ratios.get(best),
        **{who: ratios.get(who) for who in WHO[1:]},
        "moved": row.moved,
        "products": row.products,
        "of_cores": None if scaling is None else scaling / row.threads,
        f"amdahl_{CORES}_ms": None
        if serial is None or one is None
        else one.medians["native"] * (serial + (1 - serial) / CORES) * 1e3,
    }


def line(cells: Mapping[str, Any]) -> str:
    """A row as it is printed."""
    shown = [
        f"{'-' if x is None else x if isinstance(x, str) else f'{x:.3g}':>9}"
        for x in cells.values()
    ]
    return f"{shown[0].strip():18}{' '.join(shown[1:])}"


def findings(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The geometric mean of the best peer over ours for each number of threads, and losses."""
    for threads in sorted({row["threads"] for row in rows}):
        some = [row for row in rows if row["threads"] == threads and row["ratio"] is not None]
        if some:
            mean = statistics.geometric_mean([row["ratio"] for row in some])
            lost = [f"{row['program']} {row['ratio']:.2f}" for row in some if row["ratio"] < 0.9]
            yield (
                f"{threads} threads: best peer over ours, geometric mean of {len(some)}: "
                f"{mean:.2f}; below 0.9: {', '.join(lost) or 'none'}"
            )


def options(arguments: Iterable[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.large",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(LARGE)}")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each (default 7)")
    parser.add_argument("--python", nargs="+", default=[], metavar="WHO=PATH",
                        help="the Python that has a peer (default: this one)")  # fmt: skip
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a row for each")
    parser.add_argument("--serve", nargs=2, metavar=("NAME", "WHO"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.names if name not in LARGE]:
        parser.error(f"no large sizes of {', '.join(unknown)}; there are {', '.join(LARGE)}")
    chosen.names = chosen.names or [*LARGE]
    return chosen


def main(arguments: Iterable[str] | None = None) -> None:
    chosen = options(arguments)
    if chosen.serve:
        return serve(*chosen.serve)
    for name, value in hardware().items():
        print(f"{name}: {value}")
    most = {n: Server("", "limits", n, sys.executable).begun for n in chosen.threads}
    for n, found in most.items():
        print(f"{n} threads: {found['flops'] / 1e9:.3g} GFLOP/s, {found['bytes'] / 1e9:.3g} GB/s")
    pythons = dict(pair.split("=", 1) for pair in chosen.python)
    rows: list[dict[str, Any]] = []
    for name in chosen.names:
        one = None
        for threads in sorted(chosen.threads):
            row = run(name, threads, chosen.rounds, pythons, most[threads])
            if row is None:
                continue
            one = row if threads == 1 else one
            rows.append(cells(row, one))
            if len(rows) == 1:
                print(line({key: key for key in rows[0]}))
            print(line(rows[-1]), flush=True)
    print(*findings(rows), sep="\n")
    if chosen.csv:
        report.save(rows, chosen.csv)
    return None


if __name__ == "__main__":
    main()
