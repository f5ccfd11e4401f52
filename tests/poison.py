"""A mode in which compiled functions check what the plan says of memory, as they run.

What each line computes must lie where the plan says: in the place it was told to write to, in the
memory of its first operand if its op is among `VIEWS`, else in memory of its own. A buffer is
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
from graphcore.ir.node import Node
from graphcore.ops import leaf
from graphcore.schedule.buffers import VIEWS, roots


def poison(*arrays: np.ndarray) -> None:
    """Make the values of arrays ones that no result can hold unseen."""
    for array in arrays:
        array.fill(np.nan if array.dtype.kind in "fc" else array.dtype.type(101))


def parts(value: Any) -> list[np.ndarray]:
    """The arrays in a value: itself, or those of a list."""
    if isinstance(value, tuple | list):
        return [array for part in value for array in parts(part)]
    return [value] if isinstance(value, np.ndarray) else []


def lies_in(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the values of `x`, if there are any, lie where those of `y` do."""
    return x.size == 0 or np.may_share_memory(x, y)


def check(name: str, made: Any, known: Mapping[str, Any], told: Any) -> None:
    """Refuse the result `made` of a line if it shares memory with any but `told`, where it goes."""
    if told is not None:
        assert all(any(lies_in(x, y) for y in parts(told)) for x in parts(made)), (
            f"{name} was not written where it was told"
        )
        return
    for other, value in known.items():
        for array in parts(value) if other != name else ():
            assert not any(np.shares_memory(made, array) for made in parts(made)), (
                f"{name} shares memory with {other}, against what the plan says"
            )


class Checked(codegen.Writer):
    """Writes a check behind each line, and poison behind the last that reads a buffer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        root = roots(self.schedule)
        last = {root[x]: node for node in self.schedule for x in (node, *node.inputs)}
        kept = {root[y] for y in self.graph.outputs}
        self.dying: dict[Node, list[Node]] = {}
        for value, reader in last.items():
            if value in self.planned and value not in kept:
                self.dying.setdefault(reader, []).append(value)

    def emit(self, node: Node) -> None:
        super().emit(node)
        name = self.thins.get(node, "")
        if node.op not in VIEWS and node.op not in loops.CONTROL and name not in self.fixed_names():
            self.check(node, name)
        now = self.planned.get(node)
        for value in self.dying.pop(node, ()):
            if now is None or self.planned[value].slot != now.slot:
                self.write(f"{self.bind('poison', poison)}({self.buffer(self.planned[value])})")

    def check(self, node: Node, name: str) -> None:
        """The check of one result, unless it is a number or a leaf."""
        if name == "" or name in self.numbers.values() or node.op in (leaf.full, leaf.constant):
            return
        home = self.made.get(self.homes.get(node, node), "")
        told = self.buffer(self.planned[node]) if node in self.planned else home
        if told != name:
            how = f"'{name}', {name}, locals(), {told or None}"
            self.write(f"{self.bind('check', check)}({how})")

    def fixed_names(self) -> set[str]:
        """What is worked out before everything."""
        return set(self.sheet.fixed.values())


class Carried(loops.Carried):
    """Poisons the old value of a carry as soon as the new one has taken its place."""

    def turn(self, made: Sequence[str], w: codegen.Writer) -> None:
        super().turn(made, w)
        pairs = zip(self.params, self.now, self.then, strict=True)
        if old := [then for _, now, then in pairs if now != then]:
            w.write(f"{w.bind('poison', poison)}({', '.join(old)})")


class Function(function.Function):
    """A compiled graph that runs with checks; its source is shown without."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        source = self.source
        with (
            mock.patch.object(codegen, "Writer", Checked),
            mock.patch.object(loops, "Carried", Carried),
        ):
            super().__init__(*args, **kwargs)
        self.source = source

    def workspace(self, sizes: tuple[int, ...]) -> function.Workspace:
        made = super().workspace(sizes)
        poison(*made.buffers)
        return made


@contextmanager
def poisoned() -> Iterator[None]:
    """What is compiled in this block checks what it says of memory."""
    from graphcore.backends import numpy_backend

    with mock.patch.object(numpy_backend, "Function", Function):
        yield
