"""A mode in which compiled functions check what the plan says of memory, as they run.

What each line computes must lie where the plan says: in the place it was told to write to, in the
memory of its first operand if its op is a view, else in memory of its own. A buffer is
filled with nan as soon as nothing shall read it any more, so that whoever does gives nan.
`pytest --poison` runs any test so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from graphcore.backends.numpy_backend import codegen, function, loops
from graphcore.backends.numpy_backend.call_text import call
from graphcore.backends.numpy_backend.running_code import Running
from graphcore.ir.node import Node
from graphcore.ir.op import Trait
from graphcore.ops import leaf
from graphcore.schedule.buffers import roots


def poison(*arrays: np.ndarray) -> None:
    """Make the values of arrays ones that no result can hold unseen."""
    for array in arrays:
        array.fill(np.nan if array.dtype.kind in "fc" else array.dtype.type(101))


def parts(value: Any) -> list[np.ndarray]:
    """The arrays in a value: itself, or those of a list."""
    if isinstance(value, tuple | list):
        return [array for part in value for array in parts(part)]
    return [value] if isinstance(value, np.ndarray) else []


def check(name: str, made: Any, known: Mapping[str, Any], told: Any) -> None:
    """Refuse the result `made` of a line if it shares memory with any but `told`, where it goes."""
    if told is not None:
        one = isinstance(made, np.generic) and told.shape == ()  # as np.dot returns one value
        assert made is told or one, f"{name} is not the array that it should have been written into"
        return
    for other, value in known.items():
        for array in parts(value) if other != name else ():
            assert not any(np.shares_memory(made, array) for made in parts(made)), (
                f"{name} shares memory with {other}, against what the plan says"
            )


class Checked(codegen.GraphWriter):
    """Writes a check behind each line, and poison behind the last that reads a buffer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        root = roots(self.schedule)
        last = {root[x]: node for node in self.schedule for x in (node, *node.inputs)}
        kept = {root[y] for y in self.graph.outputs}
        self.dying: dict[Node, list[Node]] = {}
        for value, reader in last.items():
            if value in self.plan.buffers and value not in kept:
                self.dying.setdefault(reader, []).append(value)

    def emit(self, node: Node) -> None:
        super().emit(node)
        name = self.operand_name(node)
        own = Trait.VIEW not in node.op.traits and node.op not in loops.CONTROL
        if own and name not in self.fixed_names():
            self.check(node, name)
        now = self.plan.buffers.get(node)
        for value in self.dying.pop(node, ()):
            buffer = self.plan.buffers[value]
            if now is None or buffer.slot != now.slot:
                self.do(call(self.bind("poison", poison), self.buffer(buffer)), node, False)

    def check(self, node: Node, name: str) -> None:
        """The check of one result, unless it is a number or a leaf."""
        numbers = {value.scalar for value in self.values.values()}
        if name == "" or name in numbers or node.op in (leaf.full, leaf.constant):
            return
        told = self.destinations.get(self.plan.outputs.get(node, node), "")
        if node in self.plan.buffers:
            told = self.buffer(self.plan.buffers[node])
        if told != name:
            given = f"'{name}'", name, "locals()", told or "None"
            self.do(call(self.bind("check", check), *given), node, False)

    def fixed_names(self) -> set[str]:
        """What is computed before all else."""
        return set(self.sheet.code.first.values())


class Carried(loops.Carried):
    """Poisons the old value of a carry as soon as the new one has taken its place."""

    def swap(self, updates: Sequence[str], w: codegen.Writer) -> None:
        super().swap(updates, w)
        pairs = zip(self.params, self.old, self.new, strict=True)
        if stale := [new for _, old, new in pairs if old != new]:
            w.write(f"{w.bind('poison', poison)}({', '.join(stale)})")


class Function(function.Function):
    """A compiled graph that runs with checks; its source is shown without."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        with (
            mock.patch.object(codegen, "GraphWriter", Checked),
            mock.patch.object(loops, "Carried", Carried),
        ):
            self._start(Running(codegen.generate(*args, **kwargs)))

    def buffers(self, sizes: tuple[int, ...]) -> list[np.ndarray]:
        made = super().buffers(sizes)
        poison(*made)
        return made


@contextmanager
def poisoned() -> Iterator[None]:
    """What is compiled in this block checks what it says of memory."""
    from graphcore.backends import numpy_backend

    with mock.patch.object(numpy_backend, "Function", Function):
        yield
