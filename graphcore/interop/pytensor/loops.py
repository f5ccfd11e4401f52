"""Rules of ops that hold graphs: loops, branches, graphs as ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import graphcore as gc
from graphcore.frontend.core.base import Tensor
from graphcore.ir.sizes import Size, same

from .rules import Apply, rule, translate
from .scalars import truth
from .values import (
    Type,
    Value,
    axis,
    fit,
    full,
    have_size,
    is_known,
    is_natural,
    lift,
    new_names,
    number,
    renamed,
)


@rule("OpFromGraph")
def inlined(node: Apply, *operands: Value) -> Sequence[Value]:
    """A graph in place of the op that holds it."""
    return translate(node.op.fgraph, operands)


@rule("IfElse", "LazyIfElse")
def branches(node: Apply, condition: Value, *operands: Value) -> Sequence[Value]:
    """The values of one of two branches; those of the other are not computed."""
    n = len(node.outputs)
    if is_known(condition):
        return operands[:n] if np.asarray(condition).item() else operands[n:]
    tensors = [lift(x, v.type) for x, v in zip(operands, node.inputs[1:])]
    types = [v.type for v in node.outputs]
    then, otherwise = (
        [fit(x, type) for x, type in zip(some, types)] for some in (tensors[:n], tensors[n:])
    )
    chosen: list[Value] = gc.cond(
        truth(lift(condition, node.inputs[0].type)), lambda: then, lambda: otherwise
    )
    return chosen


class Loop:
    """A `Scan`: its operands by kind, as tensors whose axis 0 is the dim of time."""

    def __init__(self, node: Apply, operands: Sequence[Value]) -> None:
        self.op, self.info, self.node = node.op, node.op.info, node
        (self.time, self.place) = new_names(["time", "place"], *operands)
        pairs = list(zip(operands, node.inputs))
        self.steps = number(operands[0], "the number of steps")
        self.sequences = [self.first(self.timed(x, v.type)) for x, v in self.op.outer_seqs(pairs)]
        self.mit_mots = [self.timed(x, v.type) for x, v in self.op.outer_mitmot(pairs)]
        self.mit_sots = [self.timed(x, v.type) for x, v in self.op.outer_mitsot(pairs)]
        self.sit_sots = [self.timed(x, v.type) for x, v in self.op.outer_sitsot(pairs)]
        self.untraced = [lift(x, v.type) for x, v in self.op.outer_untraced_sit_sot(pairs)]
        self.lengths = [number(x, "a length") for x, v in self.op.outer_nitsot(pairs)]
        self.others = [x for x, v in self.op.outer_non_seqs(pairs)]
        self.pasts = [-min(taps) for taps in self.info.mit_sot_in_slices]

    def timed(self, x: Value, type: Type) -> Tensor:
        """A tensor whose axis 0 is time, and the others those of its elements."""
        inner = {axis(i + 1): axis(i) for i in range(type.ndim - 1)}
        return renamed(full(x, type, [0]), {axis(0): self.time} | inner)

    def first(self, x: Tensor) -> Tensor:
        """As many elements of a sequence as there are steps."""
        if same(x.sizes[self.time], self.steps) is True:
            return x
        return x.isel({self.time: slice(0, self.steps)})

    def start(self) -> dict[str, Any]:
        """The first carry: values of earlier steps, and the buffers that steps read and write."""
        return {
            "buffers": [x.rename({self.time: self.place}) for x in self.mit_mots],
            "pasts": [
                [x.isel({self.time: k}) for k in range(n)]
                for x, n in zip(self.mit_sots, self.pasts)
            ],
            "last": [x.isel({self.time: 0}) for x in self.sit_sots],
            "untraced": self.untraced,
        }

    def step(
        self, i: Tensor, carry: Any, elements: Sequence[Tensor]
    ) -> tuple[Any, list[Tensor], Any]:
        """The new carry of a step, what it records, and whether it is the last one."""
        info, op, inner = self.info, self.op, self.op.fgraph
        args: list[Value] = [*elements]
        for buffer, taps in zip(carry["buffers"], info.normalized_mit_mot_in_slices):
            args += [buffer.isel({self.place: i + tap}) for tap in taps]
        for past, taps in zip(carry["pasts"], info.mit_sot_in_slices):
            args += [past[len(past) + tap] for tap in taps]
        args += [*carry["last"], *carry["untraced"], *self.others]
        fitted = [
            fit(x, v.type) if isinstance(x, Tensor) else x for x, v in zip(args, inner.inputs)
        ]
        made = translate(inner, fitted)
        ys = [fit(lift(y, v.type), v.type) for y, v in zip(made, inner.outputs)]
        pasts, last = op.inner_mitsot_outs(ys), op.inner_sitsot_outs(ys)
        written, buffers = iter(op.inner_mitmot_outs(ys)), list(carry["buffers"])
        for k, taps in enumerate(info.normalized_mit_mot_out_slices):
            for tap in taps:
                buffers[k] = buffers[k].at[{self.place: i + tap}].set(next(written))
        new = {
            "buffers": buffers,
            "pasts": [[*past[1:], y] for past, y in zip(carry["pasts"], pasts)],
            "last": list(last),
            "untraced": list(op.inner_untraced_sit_sot_outs(ys)),
        }
        return (
            new,
            [*pasts, *last, *op.inner_nitsot_outs(ys)],
            truth(ys[-1]) if info.as_while else None,
        )

    def run(self) -> tuple[Any, list[Tensor], Size]:
        """The last carry, the records of all steps, and how many steps were made."""
        each = (gc.arange(self.steps, dim=self.time), self.sequences)
        if not self.info.as_while:
            last, ys = gc.scan(
                lambda carry, x: self.step(x[0], carry, x[1])[:2],
                self.start(),
                each,
                self.time,
                self.steps,
            )
            return last, ys, self.steps
        return self.until_done(each)

    def until_done(self, each: Any) -> tuple[Any, list[Tensor], Size]:
        """Steps until one says that it is the last; the rest of the steps compute nothing."""

        def step(carry: Any, x: Any) -> Any:
            state, ended = carry
            like = self.step(x[0], state, x[1])

            def skip() -> Any:
                return state, [gc.zeros_like(y) for y in like[1]], gc.constant(True)

            new, ys, done = gc.cond(ended, skip, lambda: self.step(x[0], state, x[1]))
            return (new, done), (ys, gc.logical_not(ended))

        start = (self.start(), gc.constant(False))
        (last, _), (ys, made) = gc.scan(step, start, each, self.time, self.steps)
        return last, ys, number(gc.sum(made, self.time), "the number of steps")

    def untimed(self, x: Tensor, type: Type, time: str) -> Tensor:
        """A record with axis 0 for time."""
        inner = {axis(i): axis(i + 1) for i in range(type.ndim - 1)}
        return renamed(x, {time: axis(0)} | inner)

    def stored(self, y: Tensor, before: Tensor | None, size: Size, made: Size) -> Tensor:
        """A record as PyTensor stores it: after what lies back, the last of it where it is shorter.

        What no step reaches is 0, and is left out if the loop ended early.
        """
        early = made is not self.steps
        if early:
            y = y.isel({self.time: slice(0, made)})
        if before is not None:
            y = gc.concat([before, y], self.time)
        full_size: Size = (before.sizes[self.time] if before is not None else 0) + self.steps
        gap = full_size - size
        if same(full_size, size) is True:
            return y
        if is_natural(gap) and not early:
            return y.isel({self.time: slice(gap, full_size)})
        if is_natural(-gap) and not early:
            return gc.pad(y, {self.time: (0, -gap)}, constant_values=0)
        return y if early else have_size(y, self.time, size)


@rule("Scan")
def scan(node: Apply, *operands: Value) -> Sequence[Value]:
    """A loop, with what its steps record."""
    loop = Loop(node, operands)
    last, ys, made = loop.run()
    found = [loop.untimed(x, v.type, loop.place) for x, v in zip(last["buffers"], node.outputs)]
    befores = [
        *[(x, n) for x, n in zip(loop.mit_sots, loop.pasts)],
        *[(x, 1) for x in loop.sit_sots],
    ]
    for k, y in enumerate(ys):
        type = node.outputs[len(loop.mit_mots) + k].type
        if k < len(befores):
            buffer, n = befores[k]
            size = buffer.sizes[loop.time]
            before = buffer.isel({loop.time: slice(0, n)})
            kept = loop.stored(y, before, size, made)
        else:
            kept = loop.stored(y, None, loop.lengths[k - len(befores)], made)
        found.append(loop.untimed(kept, type, loop.time))
    return [*found, *last["untraced"]]
