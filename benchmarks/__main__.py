"""The programs of benchmarks/programs: checked against their references, timed against peers.

python -m benchmarks --check [NAME ...] [--further]
python -m benchmarks [NAME ...] [--further] [--size SIZE] [--json FILE] [--csv FILE]

A line is printed for each program once it is measured: our time, the best peer's, and their ratio.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from unittest import mock

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import benchmarks.programs
from benchmarks import race, report
from benchmarks.measure import (
    AVX2_ALONE,
    hardware,
    hold_machine_code,
    settle_allocator,
    start_anew,
    use_one_thread,
)
from benchmarks.programs import FURTHER, NAMES, PEERS, Program


def bar(out: Console) -> Progress:
    """A bar that says what is being done, and goes away."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=out, transient=True)


def check(programs: Sequence[Program], out: Console) -> int:
    """Compare all with their references; how many differ."""
    tasks = [(p, size, dtype) for p in programs for size in p.module.SIZES for dtype in p.dtypes]
    failed = 0
    with bar(out) as progress:
        task = progress.add_task("", total=len(tasks))
        for program, size, dtype in tasks:
            progress.update(task, description=f"{program.name} {size} {dtype}")
            passed, said = verdict(program, size, dtype)
            failed += not passed
            out.print(f"{'ok  ' if passed else 'FAIL'} {program.name:18}{size:6} {dtype}  {said}")
            progress.advance(task)
    out.print(f"{len(tasks) - failed} passed, {failed} failed")
    return failed


def verdict(program: Program, size: str, dtype: str) -> tuple[bool, str]:
    """Whether a program agrees with its reference, and its worst result."""
    try:
        agreement = program.check(size, dtype)
    except Exception as reason:
        return False, f"{type(reason).__name__}: {reason}"
    name, off = agreement.worst
    return agreement.passed, f"{off:.1e}  {name}"


def measure(
    programs: Sequence[Program],
    size: str,
    rounds: int,
    out: Console,
    clock: race.Clock = time.perf_counter,
    first: bool = True,
) -> list[race.Result]:
    """Race all that a peer has, and print a line for each as it is done."""
    results = []
    with bar(out) as progress:
        task = progress.add_task("", total=len(programs))
        for program in programs:
            progress.update(task, description=program.name)
            result = race.run(program, size, rounds, clock, first)
            row = report.row_of(report.measured(result))
            if report.ratios(row):
                results.append(result)
                out.print(report.line(row), soft_wrap=True)
            else:
                out.print(f"{program.name:18}none of the peers has it")
            progress.advance(task)
    return results


def options(arguments: Iterable[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--further", action="store_true", help="programs of programs/further")
    parser.add_argument("--check", action="store_true", help="compare with the references only")
    parser.add_argument("--size", choices=["tiny", "small"], default="small")
    parser.add_argument("--rounds", type=int, default=9, help="samples of each (default 9)")
    parser.add_argument("--all-threads", action="store_true", help="not only one thread each")
    parser.add_argument("--peers", nargs="+", choices=PEERS, metavar="PEER", default=PEERS,
                        help=f"only some of {', '.join(PEERS)}")  # fmt: skip
    parser.add_argument("--calls", action="store_true", help="no first calls and no memory")
    parser.add_argument("--avx2", action="store_true", help="hold all libraries to AVX2")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a row for each program")
    chosen = parser.parse_args(arguments)
    there = FURTHER if chosen.further else NAMES
    unknown = [name for name in chosen.names if name not in there]
    if unknown:
        parser.error(f"no program {', '.join(unknown)}; there are {', '.join(there)}")
    chosen.names = chosen.names or there
    return chosen


def main(arguments: Iterable[str] | None = None) -> int:
    chosen = options(arguments)
    out = Console(highlight=False, width=None if sys.stdout.isatty() else 150)
    programs = [Program(name) for name in chosen.names]
    if chosen.check:
        return min(check(programs, out), 1)
    settings = AVX2_ALONE if chosen.avx2 else {}
    if chosen.all_threads:
        start_anew(settings)
    else:
        use_one_thread(settings)
    hold_machine_code()
    settle_allocator()
    for name, value in hardware().items():
        out.print(f"{name}: {value}", soft_wrap=True)
    clock = time.perf_counter if chosen.all_threads else time.process_time
    with mock.patch.object(benchmarks.programs, "PEERS", chosen.peers):
        results = measure(programs, chosen.size, chosen.rounds, out, clock, not chosen.calls)
    if not results:
        return 1
    found = report.as_json(results, "all" if chosen.all_threads else "one")
    out.print(*report.findings(found), sep="\n", soft_wrap=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if chosen.csv:
        report.write(report.rows(found), chosen.csv, found["about"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
