"""Programs on their way to other processes."""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from typing import Any, ClassVar

import cloudpickle

from graphcore.ir.locks import new_lock

MOST_PROGRAMS = 64
"""How many programs a process keeps."""


class Shipped:
    """A program on its way to other processes: one that is known there is not compiled again."""

    known: ClassVar[OrderedDict[str, Any]] = OrderedDict()
    lock = new_lock()

    def __init__(self, program: Any) -> None:
        self.data = cloudpickle.dumps(program)  # what users give may have no name in a module
        self.digest = hashlib.sha256(self.data).hexdigest()
        self.keep(program)

    def keep(self, program: Any) -> None:
        """Have this process know the program."""
        with self.lock:
            self.known[self.digest] = program
            while len(self.known) > MOST_PROGRAMS:
                self.known.popitem(last=False)

    def program(self) -> Any:
        """The program, which this process compiles once."""
        with self.lock:
            if (found := self.known.get(self.digest)) is None:
                found = pickle.loads(self.data)
                self.keep(found)
        return found

    def __dask_tokenize__(self) -> str:
        return self.digest
