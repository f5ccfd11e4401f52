"""A campaign: `python -m tests.targets KIND FIRST COUNT`, where KIND is programs, graphs or loops.

It says what came of the programs, and shows those in which the targets differ.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter

from tests.random_programs.running import TooLong, limited
from tests.targets.comparing import Verdict
from tests.targets.drawing import KINDS, whole

SECONDS = 60
"""After how much time of the processor a program is given up."""


def verdicts(kind: str, seed: int) -> list[Verdict]:
    """What comes of a program, whatever happens."""
    try:
        with limited(SECONDS):
            return whole(KINDS[kind](seed))
    except TooLong:
        return [Verdict("too long")]
    except Exception:
        return [Verdict("differs", traceback.format_exc())]


kind, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
kinds, start = Counter[str](), time.time()
for seed in range(first, first + count):
    for verdict in verdicts(kind, seed):
        kinds[verdict.kind] += 1
        if verdict.kind in ("differs", "too long"):
            print(f"{verdict.kind}: {kind} {seed}: {verdict.reason}", flush=True)
print(f"{kind} {first} {count}: {time.time() - start:.0f} s: {dict(kinds)}")
