"""Random programs on JAX: `python -m tests.backends.jax_backend.random_programs KIND FIRST COUNT`.

They are judged as machine code is: by the results of NumPy calls, and how far rounding may carry a
program. XLA compiles each for one set of sizes.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter

import graphcore as gc
from graphcore.backends.targets import JAX
from tests.random_programs.drawing import Program
from tests.random_programs.running import TooLong, built, limited
from tests.targets.comparing import Both, Verdict
from tests.targets.drawing import KINDS

SECONDS = 120
"""After how much time of the processor a program is given up."""


class OnJax(Both):
    """A compiled program as NumPy calls and on JAX."""

    def __init__(self, compiled: gc.Compiled) -> None:
        boundary = compiled._boundary
        self.graph, self.bind = compiled.stages["optimized"], boundary.bind
        self.unknowns = boundary.unknowns
        self.calls = compiled._program.prepare()
        self.native = compiled._for(JAX)._program.prepare()
        self.whole = False


def verdict(program: Program) -> Verdict:
    """What comes of a program for the sizes that it was drawn for."""
    try:
        with limited(SECONDS):
            (compiled, *_), _ = built(program, [False])
            return OnJax(compiled).compare(program.arguments(0))
    except TooLong:
        return Verdict("too long")
    except gc.GraphError as error:
        lacks = "target 'jax' does not compute" in str(error)
        return Verdict("lacks" if lacks else "refused", str(error))
    except Exception:
        return Verdict("differs", traceback.format_exc())


def verdicts(kind: str, first: int, count: int) -> dict[int, Verdict]:
    """What comes of some programs of a kind, by their seeds."""
    return {seed: verdict(KINDS[kind](seed)) for seed in range(first, first + count)}


if __name__ == "__main__":
    kind, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    found = verdicts(kind, first, count)
    for seed, one in found.items():
        if one.kind in ("differs", "too long", "lacks"):
            print(f"{one.kind}: {kind} {seed}: {one.reason}", flush=True)
    print(f"{kind} {first} {count}: {dict(Counter(one.kind for one in found.values()))}")
