"""Generated text that Python has compiled: equal texts share one code object."""

from __future__ import annotations

import linecache
import weakref
from functools import lru_cache
from itertools import count

_file_numbers = count(1)
TEXTS_KEPT = 64
"""The number of texts whose code is kept for programs that are compiled again, the last ones.

Python takes 10 to 20 microseconds to compile a line, a tenth to a fifth of a compilation. Texts
have no names of inputs in them, so that programs that differ in these alone share one as well.
"""


class PythonCode:
    """The code of a text under a file name of its own, whose lines tracebacks show."""

    def __init__(self, text: str) -> None:
        self.file = f"<graphcore {next(_file_numbers)}>"
        self.code = compile(text, self.file, "exec")
        lines = text.splitlines(keepends=True)
        linecache.cache[self.file] = (len(text), None, lines, self.file)
        weakref.finalize(self, linecache.cache.pop, self.file, None)


@lru_cache(TEXTS_KEPT)
def python_code(text: str) -> PythonCode:
    """The code of a text; programs with equal texts run it with objects of their own.

    >>> python_code("x = 1") is python_code("x = 1")
    True
    """
    return PythonCode(text)
