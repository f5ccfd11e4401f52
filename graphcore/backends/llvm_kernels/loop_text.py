"""Loops as lines of IR, around the lines of their bodies.

A loop is named by a number `k`, which ends the names of its blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

RARELY, USUALLY = "!prof !0", "!prof !1"
"""The ends of branches that take the first label rarely, or usually; the usual way is fast."""
WEIGHTS = """!0 = !{!"branch_weights", i32 1, i32 100000}
!1 = !{!"branch_weights", i32 100000, i32 1}"""


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
