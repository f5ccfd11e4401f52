"""A campaign: `python -m tests.random_programs FIRST COUNT [KIND [SHOWN]]`.

It runs programs (of KIND programs, graphs or loops) with NumPy calls and as machine code, says what
came of them, and shows some of each kind that fails, made small.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter

from tests.targets.drawing import KINDS

from .drawing import Program
from .running import Outcome, TooLong, kind_of, limited, outcome, standalone
from .shrinking import smallest

first, count = int(sys.argv[1]), int(sys.argv[2])
kind = sys.argv[3] if len(sys.argv) > 3 else "programs"
show = int(sys.argv[4]) if len(sys.argv) > 4 else 1
start, kinds = time.time(), Counter[str]()
reasons: dict[str, list[int]] = {}


def drawn(seed: int) -> Program:
    return KINDS[kind](seed).in_double()


def run(program: Program) -> Outcome:
    try:
        with limited(20):
            return outcome(program, (False, True))
    except TooLong:
        return Outcome("error", "does not end")


for seed in range(first, first + count):
    try:
        result = run(drawn(seed))
    except Exception:  # of the generator itself
        result = Outcome("generator", " ".join(traceback.format_exc().splitlines()[:-4:-1]))
    kinds[result.kind] += 1
    if result.bad:
        key = (
            result.kind if result.kind == "differs" else f"{result.kind}: {kind_of(result.reason)}"
        )
        reasons.setdefault(key, []).append(seed)
print(f"{count} programs in {time.time() - start:.1f} s: {dict(kinds)}")
for key, seeds in sorted(reasons.items(), key=lambda item: -len(item[1])):
    print(f"\n===== {len(seeds)} x {key}: {seeds[:12]}")
    for seed in seeds[:show] if not key.startswith("generator") else ():
        print(standalone(*smallest(drawn(seed), run)))
