"""The threads that share long loops: the code of threads.ll, compiled for this process."""

from __future__ import annotations

import atexit
import ctypes
import os
import re
from importlib import resources

from graphcore.ir import threads

from . import entrance, machine

PAUSES = 300
"""How often a thread looks for the next loop before it sleeps: about 15 microseconds."""
PIECES = 4
"""How many pieces of a loop there are for each thread at least, so that none waits for long."""
PARTS = 16
"""Into how many pieces a loop is cut that is just long enough to be shared."""
MOST = 2**27
"""About how many values a piece has at most: signals are looked for between two."""
STACK = 2**20
"""The stack of a thread, in bytes."""

HOOKS = ("before_fork", "after_in_parent", "after_in_child", "close")
EXPORTS = ("share", "shared", "workers", *HOOKS)


@machine.cached
def code() -> machine.Code:
    """The machine code that shares loops, with the addresses of `EXPORTS`."""
    text = (resources.files(__package__) / "threads.ll").read_text()
    values = {
        "POLL": entrance.code()["poll"],
        "THREADS": ctypes.addressof(threads.number()),
        **{"STOPPED": entrance.STOPPED, "TANK": entrance.TANK},
        **{"PAUSES": PAUSES, "PIECES": PIECES, "PARTS": PARTS, "MOST": MOST, "STACK": STACK},
    }
    for name, value in values.items():
        text = re.sub(rf"\b{name}\b", str(value), text)
    made = machine.compiled(f"{text}\n{machine.ATTRIBUTES}\n", *EXPORTS)
    before, after_in_parent, after_in_child, close = [
        ctypes.CFUNCTYPE(None)(made[name]) for name in HOOKS
    ]
    os.register_at_fork(
        before=before, after_in_parent=after_in_parent, after_in_child=after_in_child
    )
    atexit.register(close)
    return made


def shared() -> int:
    """How many loops threads have shared so far."""
    return ctypes.c_int64.from_address(code()["shared"]).value
