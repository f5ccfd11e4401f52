"""One program against its peers: calls in turn in this process, first calls each in one of its own.

python -m benchmarks.race NAME SIZE WHO
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from benchmarks.measure import (
    Call,
    Spread,
    forget_peak,
    hold_machine_code,
    interleaved,
    peak_resident,
    resident,
    summary,
)
from benchmarks.programs import OURS, Function, Inputs, Program, compared
from benchmarks.where import Where, where

Clock = Callable[[], float]
AGAIN = "again"
WARM = 0.25
"""The seconds for which each function is called before it is measured."""
PEERS_TOLERANCE = 1e-4
OTHERS = {"torch": ("ba", "dpsgd")}
"""Which program came before a first call: in PyTorch one of torch.func, whose import takes long."""


class Alone(NamedTuple):
    """The costs of a first call, in a process of its own that compiled another program before."""

    seconds: float
    """Processor time from the written program to its first results, other processes excluded."""
    bytes: int
    """Memory at the peak, above that before."""


class Result(NamedTuple):
    """The times of one program at one size, by who computed it.

    "again" is our best target a second time in the same turns: its ratio says how far two equal
    functions are apart in this measurement.
    """

    name: str
    size: str
    medians: dict[str, float]
    least: dict[str, float]
    over_ours: dict[str, Spread]
    """The times of all others over those of our best target, pair by pair."""
    alone: dict[str, Alone]
    where: Where

    @property
    def ours(self) -> str:
        """Our best target: machine code if the program has it."""
        return "native" if "native" in self.medians else "graphcore"


def run(
    program: Program,
    size: str,
    rounds: int,
    clock: Clock = time.perf_counter,
    first: bool = True,
) -> Result:
    """Compare all with the reference, then measure them in turn, then each `first` call alone."""
    given = program.module.inputs(size)
    expected = program.module.reference(**given)
    calls, functions = {}, dict(program.functions())
    for who, function in functions.items():
        calls[who] = Call(partial(waiting(who, function), **given), ())
        require_same(program, who, calls[who].function(), expected)
    ours = "native" if "native" in calls else "graphcore"
    samples = interleaved({**calls, AGAIN: calls[ours]}, rounds, clock=clock, before=WARM)
    medians, over = summary(samples, ours)
    return Result(
        program.name,
        size,
        medians,
        {who: min(times) for who, times in samples.items()},
        over,
        {who: in_its_own_process(program, size, who) for who in calls if first},
        where(functions["graphcore"], given),
    )


def waiting(who: str, function: Function) -> Function:
    """A function that returns when its results are there: all but JAX's do."""
    if who != "jax":
        return function
    import jax

    return lambda **given: jax.block_until_ready(function(**given))


def require_same(program: Program, who: str, found: dict, expected: Inputs) -> None:
    """Peers need not be as exact as we are: XLA's tanh, for one, is not near its ends."""
    tolerance = program.tolerance if who in OURS else PEERS_TOLERANCE
    for name, off in compared(found, expected).items():
        if not off <= tolerance:
            raise AssertionError(f"{program.name}: {name} of {who} is {off:.1e} off the reference")


def in_its_own_process(program: Program, size: str, who: str) -> Alone:
    """Without what PyTensor keeps on disk: a first call is that of a program never run before."""
    command = [sys.executable, "-m", "benchmarks.race", program.name, size, who]
    with tempfile.TemporaryDirectory() as empty:
        own = os.environ | {"PYTENSOR_FLAGS": f"base_compiledir={empty}"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
    if done.returncode:
        raise RuntimeError(f"{program.name} by {who}:\n{done.stderr}")
    return Alone(*json.loads(done.stdout))


def alone(name: str, size: str, who: str) -> Alone:
    """The first call, after one of another program, so that what a library does once is done."""
    first, second = OTHERS.get(who, ("eight_schools", "logreg"))
    first_call(second if name == first else first, "tiny", who)
    return first_call(name, size, who)


def first_call(name: str, size: str, who: str) -> Alone:
    program = Program(name)
    given = program.module.inputs(size)
    before = resident()
    forget_peak()
    start = time.process_time()
    function = program.make(who)
    assert function is not None
    waiting(who, function)(**given)
    return Alone(time.process_time() - start, peak_resident() - before)


if __name__ == "__main__":
    hold_machine_code()
    print(json.dumps(alone(*sys.argv[1:])))
