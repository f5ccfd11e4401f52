"""Loops as lines of IR, around the lines of their bodies.

A loop is named by a number `k`, which ends the names of its blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

RARELY, USUALLY = "!prof !0", "!prof !1"
"""The ends of branches that take the first label rarely, or usually; the usual way is fast."""
WEIGHTS = """!0 = !{!"branch_weights", i32 1, i32 100000}
!1 = !{!"branch_weights", i32 100000, i32 1}"""


class Named(Protocol):
    """A value: its text, its LLVM type, and the level that knows it."""

    @property
    def text(self) -> str:
        """Its name, or the constant."""

    @property
    def type(self) -> str:
        """Its LLVM type."""

    @property
    def level(self) -> int:
        """The level that knows it."""


class Carried(NamedTuple):
    """A value that a loop carries: its type, and its names before, in and after a step."""

    type: str
    before: str
    now: str
    new: str


def phi(name: str, type: str, *ways: tuple[str, str]) -> str:
    """A line that chooses a value by the block where it comes from."""
    pairs = ", ".join([f"[{text}, %{block}]" for text, block in ways])
    return f"  {name} = phi {type} {pairs}"


def counted(
    k: str, start: str, stop: str, step: int, carried: Sequence[Carried], lines: Sequence[str]
) -> list[str]:
    """A loop over 64-bit numbers `%ik` from `start` to `stop`.

    LLVM's strength reduction of loops would take half the time of code generation and gain
    nothing, as values that do not change have left the loop already. It skips loops whose counter
    is hidden from it, as here. No option of the whole process is needed for that.
    """
    return [
        f"  br label %pre{k}",
        f"pre{k}:",
        f"  br label %head{k}",
        f"head{k}:",
        f"  %i{k} = phi i64 [{start}, %pre{k}], [%n{k}, %latch{k}]",
        *[phi(x.now, x.type, (x.before, f"pre{k}"), (x.new, f"latch{k}")) for x in carried],
        f"  %c{k} = icmp slt i64 %i{k}, {stop}",
        f"  br i1 %c{k}, label %body{k}, label %exit{k}",
        f"body{k}:",
        *lines,
        f"  br label %latch{k}",
        f"latch{k}:",
        f"  %f{k} = freeze i64 %i{k}",  # no pass sees how the loop counts
        f"  %n{k} = add nsw i64 %f{k}, {step}",
        f"  br label %head{k}",
        f"exit{k}:",
    ]


def in_blocks(
    k: str,
    start: str,
    stop: str,
    step: int,
    block: int,
    carried: Sequence[Carried],
    lines: Sequence[str],
    between: Sequence[str],
) -> list[str]:
    """A loop with the lines `between` after each block of so many steps, unless it is the last."""
    first, last, again = f"%first{k}", f"%last{k}", f"again{k}"
    begun = [x._replace(before=f"%b{k}.{n}") for n, x in enumerate(carried)]
    pairs = zip(begun, carried, strict=True)
    return [
        f"  br label %begin{k}",
        f"begin{k}:",
        f"  br label %block{k}",
        f"block{k}:",
        phi(first, "i64", (start, f"begin{k}"), (f"%i{k}", again)),
        *[phi(x.before, x.type, (y.before, f"begin{k}"), (y.now, again)) for x, y in pairs],
        f"  %end{k} = add nsw i64 {first}, {block * step}",
        f"  %whole{k} = icmp slt i64 %end{k}, {stop}",
        f"  {last} = select i1 %whole{k}, i64 %end{k}, i64 {stop}",
        *counted(k, first, last, step, begun, lines),
        f"  %more{k} = icmp slt i64 %i{k}, {stop}",
        f"  br i1 %more{k}, label %between{k}, label %done{k}, {RARELY}",
        f"between{k}:",
        *between,
        f"  br label %again{k}",
        f"again{k}:",
        f"  br label %block{k}",
        f"done{k}:",
    ]


def repeated(k: str, carried: Sequence[Carried], lines: Sequence[str]) -> list[str]:
    """A loop whose lines leave it for the block `exitk`."""
    return [
        f"  br label %pre{k}",
        f"pre{k}:",
        f"  br label %head{k}",
        f"head{k}:",
        *[phi(x.now, x.type, (x.before, f"pre{k}"), (x.new, f"latch{k}")) for x in carried],
        *lines,
        f"  br label %latch{k}",
        f"latch{k}:",
        f"  br label %head{k}",
        f"exit{k}:",
    ]


def phis(out: Sequence[Named], *ways: tuple[Sequence[Named], str]) -> list[str]:
    """Lines that choose values by the block where they come from."""
    for values, _ in ways:
        assert [x.type for x in values] == [a.type for a in out], "the types of a value differ"
    several = [[(values[n].text, block) for values, block in ways] for n in range(len(out))]
    return [phi(a.text, a.type, *pairs) for a, pairs in zip(out, several, strict=True)]


def carries(before: Sequence[Named], now: Sequence[Named], new: Sequence[Named]) -> list[Carried]:
    """The values that a loop carries, by their names before, in and after a step."""
    found = []
    for x, a, y in zip(before, now, new, strict=True):
        assert x.type == a.type == y.type, "the types of a value differ"
        found.append(Carried(a.type, x.text, a.text, y.text))
    return found


class Part:
    """A loop that is written as a function of its own, at a level, and what this reads.

    `free` are the values that it reads of the code around it. `own` are pointers to memory of each
    thread: in the one that calls the kernel, that of a buffer; in others at an offset of theirs.
    """

    def __init__(self, level: int) -> None:
        self.level = level
        self.free: dict[str, Named] = {}
        self.own: dict[str, tuple[Named, Named]] = {}

    def read(self, level: int, operands: Sequence[Named]) -> None:
        """Note that an instruction at a level reads these values."""
        if level >= self.level:
            for x in operands:
                if x.level < self.level and x.text[0] == "%":
                    self.free[x.text] = x
