"""Peak memory of programs of benchmarks/programs, beside JAX, and with checkpoints.

python -m benchmarks.peaks [NAME ...] [--size SIZE] [--csv FILE]

Without names: the ten programs that take the most as machine code, then the gradients of lstm and
gpt, on longer inputs, with checkpoints in their loops. Each is measured in a process of its own,
which has compiled and run another program before:

- calls: the most memory of the process in calls after the first, above that before the program was
  made. So it holds what is kept between calls: the program, its code, what its compiler and the
  BLAS keep, and the memory of the last call.
- first: the same of the first call, which compiles.
- planned: what the compiler has planned, exactly: the memory of all kernels and the results, or
  `memory_analysis` of JAX, temporary memory and results.
- time: the least processor time of a call.

"all stored" is machine code without rematerialisation: every value is stored that is read twice.
"""

from __future__ import annotations

import argparse
import ctypes
import gc as garbage
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import graphcore as gc
from benchmarks import report
from benchmarks.measure import (
    Call,
    forget_peak,
    interleaved,
    peak_resident,
    resident,
    seconds,
    use_one_thread,
)
from benchmarks.programs import NAMES, Function, Program
from benchmarks.race import WARM, first_call, waiting
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import entrance, planning
from graphcore.backends.llvm_kernels.arena import Need, packed

STORED = "all stored"
WHO = {"machine code": "native", STORED: "native", "JAX": "jax"}
MANY = 10
LONGER = {
    "lstm": {"layer": 2, "time": 4096, "hidden": 14},
    "gpt": {
        "batch": 4, "time": 64, "embed": 64, "head": 4, "layer": 12, "vocab": 256, "spread": 0.02
    },
}  # fmt: skip
"""The sizes at which checkpoints are measured: many steps of the loop."""
EACH = "each step"
CHECKPOINTS: dict[str, Any] = {
    "none": None,
    EACH: 1,
    "every 4th": 4,
    "every 64th": 64,
    "log": "log",
}
"""What `gc.scan` is told to save; JAX has `jax.checkpoint` of each step."""


class Case(NamedTuple):
    """A program at a size, in which way it is compiled, and what its loops save."""

    name: str
    size: str
    way: str
    checkpoint: str = "none"


class Peak(NamedTuple):
    """Bytes, and the seconds of a call."""

    calls: int
    first: int
    planned: int
    seconds: float

    def __str__(self) -> str:
        memory = [f"{bytes / 1e6:9.2f}" for bytes in self[:3]]
        return f"{' '.join(memory)}  {seconds(self.seconds):>8}"


def trim() -> None:
    """Give memory that is free back to the system."""
    garbage.collect()
    ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def counting() -> Iterator[list[int]]:
    """A list to which each workspace of machine code adds the bytes of its buffers."""
    found: list[int] = []

    def counted(needs: Sequence[Need]) -> tuple[list[int], int]:
        starts, bytes = packed(needs)
        found.append(bytes)
        return starts, bytes

    with mock.patch.object(entrance, "packed", counted):
        yield found


@contextmanager
def compiling(case: Case) -> Iterator[None]:
    """A context in which programs are compiled in the way of a case."""
    with ExitStack() as changes:

        def change(where: Any, name: str, new: Any) -> None:
            changes.enter_context(mock.patch.object(where, name, new))

        if case.way == STORED:
            stay = llvm_kernels.scheduled._replace(change=lambda graph: graph)
            passes = [stay if x is llvm_kernels.scheduled else x for x in llvm_kernels.OWN]
            change(llvm_kernels, "OWN", passes)
            change(planning, "computed_again", lambda places, stored: [])
        if case.checkpoint != "none" and case.way == "JAX":
            import jax

            scan = jax.lax.scan
            change(jax.lax, "scan", lambda step, *rest: scan(jax.checkpoint(step), *rest))
        elif case.checkpoint != "none":
            change(gc, "scan", partial(gc.scan, checkpoint=CHECKPOINTS[case.checkpoint]))
        yield


def alone(case: Case) -> Peak:
    """The peaks of a case in this process."""
    who, program = WHO[case.way], Program(case.name)
    program.module.SIZES["longer"] = LONGER.get(case.name)
    first_call("mlp" if case.name == "correlation" else "correlation", "tiny", who)
    given = program.module.inputs(case.size)
    with compiling(case), counting() as buffers:
        trim()
        before = resident()
        forget_peak()
        made = program.make(who)
        assert made is not None
        results = waiting(who, made)(**given)
        planned = sum(buffers) + sum(x.nbytes for x in results.values())
        del results
        first = peak_resident() - before
        call = Call(partial(waiting(who, made), **given), ())
        least = min(interleaved({"": call}, 5, clock=time.process_time, before=WARM)[""])
        trim()
        forget_peak()
        for _ in range(3):
            call.function()
        calls = peak_resident() - before
        if who == "jax":
            planned = planned_by_jax(made, given)
    return Peak(calls, first, planned, least)


def planned_by_jax(made: Any, given: dict[str, Any]) -> int:
    """Temporary memory and results, as XLA has planned them."""
    known = made.lower(**given).compile().memory_analysis()
    found: int = known.temp_size_in_bytes + known.output_size_in_bytes
    return found


def measured(case: Case) -> Peak | None:
    """The peaks of a case in a process of its own; None where it cannot be had."""
    command = [sys.executable, "-m", "benchmarks.peaks", "--alone", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode else Peak(*json.loads(done.stdout))


def planned(name: str, size: str) -> int:
    """What machine code plans to take for a program."""
    with counting() as buffers:
        program = Program(name)
        made: Function | None = program.make("native")
        assert made is not None
        results = made(**program.module.inputs(size))
        return sum([*buffers, *[int(x.nbytes) for x in results.values()]])


def show(title: str, cases: Sequence[Case]) -> Iterator[dict[str, Any]]:
    """A table, row by row as they are measured; and its rows for CSV."""
    print(f"\n{title}\n{'MB':44}{'calls':>9} {'first':>9} {'planned':>9}  {'time':>8}")
    for case in cases:
        found = measured(case)
        print(f"{case.name:18}{f'{case.way}, {case.checkpoint}':26}{found or '-'}", flush=True)
        if found:
            *memory, taken = found
            columns = zip(("calls_mb", "first_mb", "planned_mb"), memory)
            yield {**case._asdict(), **{n: x / 1e6 for n, x in columns}, "us": taken * 1e6}


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peaks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--size", choices=["tiny", "small"], default="small")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a row for each case")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    use_one_thread()
    if chosen.alone:
        print(json.dumps(alone(Case(*json.loads(chosen.alone)))))
        return
    names = chosen.names
    if not names:
        names = sorted(NAMES, key=lambda name: -planned(name, chosen.size))[:MANY]
    cases = [Case(name, chosen.size, way) for name in names for way in WHO]
    rows = list(show(f"peaks at size {chosen.size}", cases))
    if not chosen.names:
        ours = [Case(name, "longer", "machine code", k) for name in LONGER for k in CHECKPOINTS]
        jax = [Case("lstm", "longer", "JAX", k) for k in ("none", EACH)]
        gpt = Case("gpt", "longer", "JAX")
        rows += show("checkpoints, on longer inputs", [*ours, *jax, gpt])
    if chosen.csv:
        report.write(rows, chosen.csv, report.about())


if __name__ == "__main__":
    main()
