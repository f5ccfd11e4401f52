"""A campaign: `python -m tests.tiers KIND FIRST COUNT`, where KIND is programs, graphs or loops.

Programs, whose names are few, are numbered; of graphs and loops FIRST seeds the drawing. It says
what came of them, and shows those in which the tiers differ.
"""

from __future__ import annotations

import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis

from tests.tiers.comparing import Verdict
from tests.tiers.drawing import KINDS

SECONDS = 60
"""After how much time of the processor a program is given up."""


class TooLong(BaseException):
    """A program that takes too long; no error of a call, which the library would word."""


@contextmanager
def limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def verdicts(run: Callable[[], list[Verdict]]) -> list[Verdict]:
    """What comes of a program, whatever happens."""
    try:
        with limited():
            return run()
    except TooLong:
        return [Verdict("too long")]
    except hypothesis.errors.HypothesisException:
        raise
    except Exception:
        return [Verdict("differs", traceback.format_exc())]


def campaign(kind: str, first: int, count: int) -> None:
    kinds, start = Counter[str](), time.time()
    worst = Counter[str]()

    def one(name: Any, run: Callable[[], list[Verdict]]) -> None:
        came = verdicts(run)
        kinds.update(v.kind for v in came)
        order = ("differs", "too long", "rounding", "close", "equal", "refused")
        worst[min([v.kind for v in came] or ["none"], key=[*order, "none"].index)] += 1
        for v in came:
            if v.kind in ("differs", "too long"):
                print(f"{v.kind}: {kind} {name}: {v.reason}", flush=True)
        if sum(worst.values()) % 250 == 0:
            print(f"{time.time() - start:.0f} s: {dict(worst)}; calls {dict(kinds)}", flush=True)

    KINDS[kind](first, count, one)
    print(f"{kind} {first} {count}: {time.time() - start:.0f} s: {dict(worst)}; {dict(kinds)}")


campaign(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
