"""A mode in which all programs run as machine code that can.

`pytest --native` runs any test so: what holds for NumPy calls must hold for machine code as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from graphcore.backends import llvm_kernels
from graphcore.compile import Compiled

ran: Counter[str] = Counter()
"""How many programs ran as machine code, and the reasons why the others did not."""


@contextmanager
def native() -> Iterator[None]:
    """What is compiled in this block runs as machine code, unless an op has none."""
    made = Compiled.__init__

    def as_machine_code(self: Compiled, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        if self.native:
            return
        boundary = self._boundary
        try:
            graph = self.passes[-1].graph
            self._values = llvm_kernels.build(graph, boundary.unknowns, boundary.bind)
            ran["machine code"] += 1
        except llvm_kernels.NotEmitted as refused:
            ran.update(refused.ops)

    with mock.patch.object(Compiled, "__init__", as_machine_code):
        yield
