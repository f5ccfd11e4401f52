"""A mode in which all programs run as machine code, wherever there is some.

`pytest --native` runs any test so: what holds for NumPy calls must hold for machine code as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from graphcore.backends import llvm_kernels, targets
from graphcore.backends.llvm_kernels.machine import Stages
from graphcore.backends.target import Target
from graphcore.compile import compiled
from graphcore.compile.compiled import Compiled
from graphcore.ir.graph import Graph
from graphcore.rewrites import pipeline


class Rule:
    """The rule that chooses targets: NumPy calls for all programs, unless it `is_on`."""

    is_on = True

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """A block in which this rule chooses."""
        usual = targets.target_by_rule

        def choose(graph: Graph) -> tuple[Target, str]:
            return usual(graph) if self.is_on else (targets.NUMPY, ", as tests say nothing else")

        with mock.patch.object(compiled, "target_by_rule", choose):
            yield


rule = Rule()


def kernels(compiled: Compiled) -> Graph:
    """The last graph of a program, with kernels wherever there is machine code."""
    return pipeline.run(compiled.stages["optimized"], targets.NATIVE.own)[-1].graph


def build(compiled: Compiled) -> Callable[..., list[Any]]:
    """A program with machine code, as a function of its arguments by position.

    The code is made with care from the start: that of `gc.compile` is quick code in most tests.
    """
    boundary = compiled._boundary
    with mock.patch.object(Stages, "at_once", Stages.with_care):
        return llvm_kernels.build(kernels(compiled), boundary.unknowns, boundary.bind)


@contextmanager
def native() -> Iterator[None]:
    """What is compiled in this block runs as machine code, but for ops that have none."""
    made = Compiled.__init__

    def as_machine_code(self: Compiled, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        if self.native:
            return
        self._values = build(self)

    with mock.patch.object(Compiled, "__init__", as_machine_code):
        yield
