"""Random programs on JAX: `python -m tests.backends.jax_backend.random_programs KIND FIRST COUNT`.

With a fourth argument, `buckets`, their sizes are rounded up.

They are judged as machine code is: by the results of NumPy calls, and how far rounding may carry a
program. XLA compiles each for one set of sizes.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from collections.abc import Sequence

import graphcore as gc
from graphcore.backends.targets import JAX, XLA
from tests.random_programs.drawing import Program
from tests.random_programs.running import TooLong, built, limited
from tests.targets.comparing import Both, Verdict
from tests.targets.drawing import KINDS

SECONDS = 120
"""After how much time of the processor a program is given up."""


class OnJax(Both):
    """A compiled program as NumPy calls and on JAX."""

    def __init__(self, compiled: gc.Compiled, target: XLA = JAX) -> None:
        boundary = compiled._boundary
        self.graph, self.bind = compiled.stages["optimized"], boundary.bind
        self.unknowns = boundary.unknowns
        self.calls = compiled._program.prepare()
        self.native = compiled._for(target)._program.prepare()
        self.whole = False


def verdict(program: Program) -> Verdict:
    """What comes of a program for the sizes that it was drawn for."""
    return judged([program], JAX)


def verdict_of_buckets(program: Program) -> Verdict:
    """What comes of a program of unknown sizes that are rounded up, two of them to the same."""
    rng = random.Random(program.seed)
    first = {name: rng.choice((3, 5, 6, 7)) for name in program.sizes[0]}
    second = {name: rng.choice((3, 4) if n == 3 else (5, 6, 7, 8)) for name, n in first.items()}
    unknown = program.unknown()
    calls = [unknown._replace(sizes=[sizes]) for sizes in (program.sizes[0], first, second)]
    return judged(calls, XLA(buckets=True))


def judged(programs: Sequence[Program], target: XLA) -> Verdict:
    """What comes of one program in several calls: the first that differs, else the last."""
    found = Verdict("refused")
    try:
        with limited(SECONDS):
            (compiled, *_), _ = built(programs[0], [False])
            both = OnJax(compiled, target)
            for program in programs:
                found = both.compare(program.arguments(0))
                if found.kind == "differs":
                    break
        return found
    except TooLong:
        return Verdict("too long")
    except gc.GraphError as error:
        lacks = "target 'jax' does not compute" in str(error)
        return Verdict("lacks" if lacks else "refused", str(error))
    except Exception:
        return Verdict("differs", traceback.format_exc())


def verdicts(kind: str, first: int, count: int, buckets: bool = False) -> dict[int, Verdict]:
    """What comes of some programs of a kind, by their seeds."""
    judge = verdict_of_buckets if buckets else verdict
    return {seed: judge(KINDS[kind](seed)) for seed in range(first, first + count)}


if __name__ == "__main__":
    kind, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    found = verdicts(kind, first, count, sys.argv[4:] == ["buckets"])
    for seed, one in found.items():
        if one.kind in ("differs", "too long", "lacks"):
            print(f"{one.kind}: {kind} {seed}: {one.reason}", flush=True)
    print(f"{kind} {first} {count}: {dict(Counter(one.kind for one in found.values()))}")
