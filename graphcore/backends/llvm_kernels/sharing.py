"""Loops whose steps threads share: each becomes a function of its own, a part of the kernel.

    for i in range(start, stop, step): body(i)

is written as a part that runs some of the steps, and as a call of `share` (threads.ll), which has
the parts of the steps run by several threads, or one after the other. What a part reads of the code
around it is put into a frame before the call: the builder notes every value that an instruction
reads, so these are known. Values that the loop does not change are computed before it, as in any
other loop, and the steps are those of the loop: it computes the same bits, whoever runs them.

The loops of a step of a kernel are shared where they carry no values from one step to the next.
Those inside them are not. A part may end early, as the kernel does: then the least step that has
ended so is the one whose failure is reported.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from graphcore.ir import threads
from graphcore.ir.provenance import setting

from .arena import LINE
from .builder import Builder, Value, integer
from .entrance import STOPPED
from .loop_text import USUALLY, Part, counted

LEAST = 2**18
"""How many simple values the steps of a shared loop compute at least: about 0.2 ms."""
FEW = 8
"""Loops that are known to have fewer steps are what others leave."""
HEAD = "ptr noalias %table, ptr noalias %sizes, ptr noalias %record, ptr noalias %frame, ptr %own"


class Sharing:
    """The parts of one kernel. `routine` is the address of `share`; without it nothing is shared.

    `waiting` is the loop that comes next, whose steps are shared. They compute about `total` simple
    values, and each thread has so many `bytes` of its own.

    `found` are the values whose steps are shared, and whether they are so in every call of this
    code; `step` has those of the step that is written.
    """

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.routine: str | None = None
        self.waiting: Part | None = None
        self.total = self.bytes = integer(0)
        self.step: Sequence[Hashable] = ()
        self.found: dict[Any, bool] = {}
        b.shared_loop = self.loop

    def over(
        self, work: Callable[[], Value], write: Callable[[], object], once: bool = False
    ) -> None:
        """Let `write` write loops that compute about so many simple values; long ones are shared.

        Within loops of the program, where a call of a part would take as long as a short loop, they
        are written twice, but for those that are written `once`.
        """

        def written() -> Sequence[Value]:
            write()
            return ()

        self.where_long(work, written, written, once)

    def where_long(
        self,
        work: Callable[[], Value],
        shared: Callable[[], Sequence[Value]],
        alone: Callable[[], Sequence[Value]],
        once: bool = False,
    ) -> Sequence[Value]:
        """What `shared` writes, whose loops are shared, or `alone` where they are short."""
        b = self.b
        if self.routine is None or b.part is not None or self.waiting is not None:
            return alone()
        total = work()
        if total.number is not None and total.number < LEAST:
            return alone()

        def in_parts() -> Sequence[Value]:
            waiting = Part(b.level + 1)
            with setting(self, waiting=waiting, total=total, bytes=integer(0)):
                return shared()

        if once or b.level == 0 or total.number is not None:
            return in_parts()
        return b.branch(b.op("icmp sge", total, integer(LEAST)), in_parts, alone)

    def in_order(self) -> AbstractContextManager[None]:
        """A context in which loops are written for one thread."""
        return setting(self, waiting=None)

    def aside(self) -> AbstractContextManager[None]:
        """A context in which loops are written that prepare a step, or copy its values."""
        return setting(self, step=())

    def threads(self) -> Value:
        """How many threads there are now: no result may depend on it."""
        address = ctypes.addressof(threads.number())
        return self.b.now("i64", f"load i64, ptr inttoptr (i64 {address} to ptr)")

    def before(self) -> AbstractContextManager[None]:
        """A context in which code is written before the part that is written, or comes next."""
        b, part = self.b, self.b.part or self.waiting
        if part is None:
            return nullcontext()
        lines, known, floors = [x[: part.level] for x in (b.lines, b.known, b.floors)]
        return setting(b, lines=lines, known=known, floors=floors)

    def own(self, pointer: Value, bytes: Callable[[], Value]) -> Value:
        """Where each thread has so much memory of its own in the part; the pointer, if none is."""
        part, b = self.b.part or self.waiting, self.b
        if part is None:
            return pointer
        with self.before():
            whole = b.op("and", b.add(bytes(), integer(LINE - 1)), integer(-LINE))
            name = f"%{b.name('own')}"
            part.own[name] = pointer, self.bytes
            self.bytes = b.add(self.bytes, whole)
        return pointer._replace(text=name, level=part.level)

    def loop(
        self,
        start: Value,
        stop: Value,
        step: int,
        body: Callable[..., Sequence[Value]],
        most: int | None,
    ) -> bool:
        """for i in range(start, stop, step): body(i), as a part, if its steps are to be shared.

        There are `most` of them, if that is known.
        """
        b, waiting = self.b, self.waiting
        if waiting is None or (most is not None and most < FEW and not waiting.own):
            return False
        distance, size = b.add(b.sub(stop, start), integer(step - 1)), integer(step)
        steps = distance if step == 1 else b.op("sdiv", distance, size)

        def part(first: Value, last: Value) -> None:
            k = b.name("")
            begin, end = [b.add(start, b.mul(x, size)) for x in (first, last)]
            end = b.call("smin", end, stop)
            with b.deeper() as lines:
                body(Value(f"%i{k}", start.kind, 0, b.level))
            b.lines[-1] += counted(k, begin.text, end.text, step, (), lines)

        self.steps(steps, part)
        return True

    def each_step(self, steps: Value, write: Callable[[Value, Value], None]) -> None:
        """write(first, end) for all steps of a loop, or for some in a part if they are shared."""
        if self.waiting is None:
            write(integer(0), steps)
        else:
            self.steps(steps, write)

    def steps(self, steps: Value, write: Callable[[Value, Value], None]) -> None:
        """The part whose steps from a first one to a last one are what `write` writes."""
        b, part = self.b, self.waiting
        assert part is not None
        assert part.level == b.level + 1 or not part.own
        part.level, part.free = b.level + 1, {}
        self.found |= dict.fromkeys(self.step, self.total.number is not None)
        k = b.name("")
        alone, inside = setting(self, waiting=None), setting(b, part=part)
        with alone, inside, b.signals.step(False), b.deeper() as lines:
            write(*[Value(name, "i64", 0, b.level) for name in ("%from", "%to")])
        b.outlined.append(self.text(k, part, lines))
        self.call(k, part, steps)

    def text(self, k: str, part: Part, lines: Sequence[str]) -> str:
        """The function of a part."""
        own = list[str]()
        for name, (pointer, offset) in part.own.items():
            own += [
                f"  {name}.theirs = getelementptr i8, ptr %own, i64 {offset.text}",
                f"  {name} = select i1 %is.caller, ptr {pointer.text}, ptr {name}.theirs",
            ]
            part.read(part.level, (pointer, offset))
        frame, reads = frame_of(part), list[str]()
        for n, x in enumerate(part.free.values()):
            at = f"  %frame.{n} = getelementptr {frame}, ptr %frame, i64 0, i32 {n}"
            reads += [at, f"  {x.text} = load {x.type}, ptr %frame.{n}"]
        return "\n".join(
            [
                f"define internal i64 @part{k}({HEAD}, i64 %from, i64 %to) #0 {{",
                "entry:",
                "  %is.caller = icmp eq ptr %own, null",
                *(*reads, *own, *lines),
                *("  ret i64 0", "stop:", f"  ret i64 {STOPPED}", "}"),
            ]
        )

    def call(self, k: str, part: Part, steps: Value) -> None:
        """The call of `share` with a part; the kernel ends where its steps do."""
        b, frame = self.b, frame_of(part)
        b.lines[0].insert(0, f"  %frame{k} = alloca {frame}, align 64")
        for n, x in enumerate(part.free.values()):
            b.do(f"%frame{k}.{n} = getelementptr {frame}, ptr %frame{k}, i64 0, i32 {n}")
            b.do(f"store {x.type} {x.text}, ptr %frame{k}.{n}")
        given = f"ptr @part{k}, ptr %table, ptr %sizes, ptr %record, ptr %frame{k}, ptr @words"
        sizes = f"{steps.typed}, {self.total.typed}, i64 {LEAST}, {self.bytes.typed}"
        call = f"%status{k} = call i64 {self.routine}({given}, {sizes})"
        b.do(call)
        b.do(f"%sound{k} = icmp eq i64 %status{k}, 0")
        b.do(f"br i1 %sound{k}, label %on{k}, label %off{k}, {USUALLY}")
        b.label(f"off{k}")
        b.do(f"ret i64 %status{k}")
        b.label(f"on{k}")

    def end(self, words: int) -> None:
        """All parts are written: the record of a failure has so many words."""
        if self.b.outlined:
            self.b.outlined.append(f"@words = internal constant i64 {words}")


def frame_of(part: Part) -> str:
    """The type of the frame of a part."""
    return f"{{ {', '.join([x.type for x in part.free.values()]) or 'i64'} }}"
