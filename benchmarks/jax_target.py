"""The programs on our target JAX beside hand-written JAX, in one process, called in turn.

python -m benchmarks.jax_target [NAME ...] [--size SIZE] [--rounds N] [--csv FILE]
python -m benchmarks.jax_target --sizes [NAME ...] [--csv FILE]

Both take arrays of JAX and give arrays of JAX, on JAX's default device, and must agree. On a CPU
they have one thread, and times are processor time; elsewhere they are wall-clock time until the
results are there. `first` is what the program took from its text to its first results.

With --sizes: how many programs XLA compiles for inputs of ten sizes, from one to four times the
tiny ones, when sizes are exact and when they are rounded up (buckets).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax

from benchmarks import report
from benchmarks.large import LARGE
from benchmarks.measure import Call, hardware, interleaved, ratios, use_one_thread
from benchmarks.programs import FURTHER, NAMES, Function, Inputs, Program, compared
from benchmarks.race import PEERS_TOLERANCE, waiting
from graphcore import GraphError

WARM = 0.25
"""The seconds for which each function is called before it is measured."""
CALLS = 10
"""How many sizes the inputs are given with --sizes."""
SLOW = 1.3
"""Ratios above this are listed."""

Row = dict[str, Any]


def run(name: str, size: str, rounds: int) -> Row:
    """The times of one program: first calls, later calls, and ours over the hand-written one's."""
    program = Program(name)
    if size == "large":
        program.module.SIZES["large"] = LARGE[name]
    given = program.module.inputs(size)
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    makers = {"jax": partial(program.make, "jax"), "ours": partial(on_jax, program)}
    first, calls, found = {}, {}, {}
    for who, make in makers.items():
        start = clock()
        function = waiting("jax", make())
        arrays = {key: jax.device_put(x) for key, x in given.items()}
        found[who] = function(**arrays)
        first[who] = clock() - start
        calls[who] = Call(partial(function, **arrays), ())
    for key, off in compared(found["ours"], found["jax"]).items():
        if not off <= PEERS_TOLERANCE:
            raise AssertionError(f"{name}: {key} is {off:.1e} off hand-written JAX")
    samples = interleaved(calls, rounds, clock=clock, before=WARM)
    return {
        "program": name.removeprefix("further."),
        "size": size,
        **{f"{who}_us": statistics.median(samples[who]) * 1e6 for who in ("ours", "jax")},
        "ratio": ratios(samples["ours"], samples["jax"]).median,
        **{f"{who}_first_ms": first[who] * 1e3 for who in ("ours", "jax")},
    }


def on_jax(program: Program, **options: Any) -> Function:
    """A program of ours, which returns arrays of JAX."""
    made: Function = program.compiled(target="jax", returns="jax", **options)
    return made


def compilations(name: str) -> Row:
    """How many programs XLA has compiled after calls of all sizes; None where it takes none."""
    program = Program(name)
    calls = [*of_sizes(program)]
    counts = {sizes: compiled_for(program, calls, sizes) for sizes in ("exact", "buckets")}
    return {"program": name.removeprefix("further."), "sizes": len(calls), **counts}


def compiled_for(program: Program, calls: Sequence[Inputs], sizes: str) -> int | None:
    """The compilations of one program; padded sizes are refused for some ops."""
    try:
        function: Any = on_jax(program, sizes=sizes)
    except GraphError:
        return None
    for given in calls:
        function(**given)
    return len(function.compilations) if calls else None


def of_sizes(program: Program) -> Iterator[Inputs]:
    """Inputs of several sizes: all that may be other ones together with those before grow."""
    takes = program.compiled(native=False)
    tiny, growing = program.module.SIZES["tiny"], []
    for key in [key for key, size in tiny.items() if isinstance(size, int)]:
        if all(fits(program, takes, [*growing, key], step) for step in (1, CALLS - 1)):
            growing.append(key)
    for step in range(CALLS if growing else 0):
        yield grown(program, growing, step)


def grown(program: Program, keys: Sequence[str], step: int) -> Inputs:
    """Inputs, some of whose sizes are multiples of the tiny ones, or nearly."""
    known: dict[str, Any] = program.module.SIZES
    known["grown"] = {
        key: round(x * (1 + step / 3)) if key in keys else x for key, x in known["tiny"].items()
    }
    try:
        made: Inputs = program.module.inputs("grown")
        return made
    finally:
        del known["grown"]


def fits(program: Program, takes: Function, keys: Sequence[str], step: int) -> bool:
    """Whether a program takes inputs of these sizes, and the last size changes a shape."""
    try:
        given, before = (grown(program, some, step) for some in (keys, keys[:-1]))
        takes(**given)
    except (ValueError, IndexError, TypeError):
        return False
    return any(x.shape != before[key].shape for key, x in given.items())


def findings(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The mean and the median of the ratios, and which are high; or sums of compilations."""
    if "exact" in rows[0]:
        some = [row for row in rows if None not in row.values()]
        exact, buckets = (sum(row[key] for row in some) for key in ("exact", "buckets"))
        yield f"compilations of {len(some)} programs: {exact} exact, {buckets} with buckets"
        return
    found = sorted(rows, key=lambda row: -row["ratio"])
    every = [row["ratio"] for row in found]
    yield (
        f"ours over hand-written JAX, {len(found)} programs: geometric mean "
        f"{statistics.geometric_mean(every):.2f}, median {statistics.median(every):.2f}"
    )
    slow = [f"{row['program']} {row['ratio']:.2f}" for row in found if row["ratio"] > SLOW]
    yield f"above {SLOW}: {', '.join(slow) or 'none'}"


def line(cells: Mapping[str, Any]) -> str:
    """A row as it is printed."""
    first, *others = [
        "-" if x is None else f"{x:.3g}" if isinstance(x, float) else str(x) for x in cells.values()
    ]
    return f"{first:18}{''.join(f'{x:>14}' for x in others)}"


def table(names: Sequence[str], measure: Callable[[str], Row]) -> list[Row]:
    """The rows of some programs, each printed as soon as it is there."""
    rows: list[Row] = []
    for name in names:
        rows.append(measure(name))
        if len(rows) == 1:
            print(line({key: key for key in rows[0]}))
        print(line(rows[-1]), flush=True)
    print(*findings(rows), sep="\n")
    return rows


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.jax_target",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    every = [*NAMES, *FURTHER]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(every)}")
    parser.add_argument("--size", choices=["tiny", "small", "large"], default="small",
                        help="large: the arrays of benchmarks.large")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=9, help="samples of each (default 9)")
    parser.add_argument("--sizes", action="store_true", help="count compilations instead")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a row for each")
    chosen = parser.parse_args(arguments)
    known = [*LARGE] if chosen.size == "large" else every
    if unknown := [name for name in chosen.names if name not in known]:
        parser.error(f"no {', '.join(unknown)}; there are {', '.join(known)}")
    if jax.default_backend() == "cpu":
        use_one_thread()
    for name, value in {**hardware(), "device": jax.devices()[0].device_kind}.items():
        print(f"{name}: {value}")
    measure = compilations if chosen.sizes else partial(run, size=chosen.size, rounds=chosen.rounds)
    rows = table(chosen.names or known, measure)
    if chosen.csv:
        report.save(rows, chosen.csv)


if __name__ == "__main__":
    main()
