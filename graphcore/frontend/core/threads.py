"""How many threads run programs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from graphcore.ir.help_text import parameters
from graphcore.ir.threads import MOST, number

from .arguments import whole
from .base import refusal

__all__ = ["threads"]


class Before(AbstractContextManager[None]):
    """The number of threads before it was set, which is set again after a block of `with`."""

    def __init__(self, many: int) -> None:
        self.many = many

    def __exit__(self, *error: Any) -> None:
        """Set the number from before."""
        number().value = self.many


@parameters(n="How many threads, the calling one among them: from 1 to 1024.")
def threads(n: int) -> AbstractContextManager[None]:
    """From now on, or in the block of `with` alone, n threads run the long loops of machine code.

    At first there are as many as this process may use CPUs, by its affinity and its cgroup, or as
    the environment variable `GRAPHCORE_THREADS` says. The setting belongs to the whole process. It
    changes no bit of any result: loops of fewer than about 250,000 values run in one thread anyway.

    GraphError if n is not such an integer.

    >>> x = gc.tensor("x", {"row": None})
    >>> with gc.threads(1):
    ...     print(gc.sum(x).eval(x=[1.0, 2.0]))
    3.0
    """
    before, many = Before(number().value), whole(n, "n", least=1)
    if many > MOST:
        raise refusal(f"n={many} is too large", cure=f"use {MOST} or fewer")
    number().value = many
    return before
