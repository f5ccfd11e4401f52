"""A campaign: `python -m tests.random_programs FIRST COUNT [SHOWN]`.

It runs programs with NumPy calls and as machine code, says what came of them, and shows some of
each kind that fails, made small.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter

from .running import Outcome, kind_of, outcome, standalone
from .shrinking import smallest
from .statements import drawn

first, count = int(sys.argv[1]), int(sys.argv[2])
show = int(sys.argv[3]) if len(sys.argv) > 3 else 1
start, kinds = time.time(), Counter[str]()
reasons: dict[str, list[int]] = {}
for seed in range(first, first + count):
    try:
        result = outcome(drawn(seed), seconds=20, targets=(False, True))
    except Exception:  # of the generator itself
        result = Outcome(
            "generator",
            traceback.format_exc().splitlines()[-1] + traceback.format_exc().splitlines()[-3],
        )
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
        program, result = smallest(drawn(seed), targets=(False, True))
        print(standalone(program, result))
