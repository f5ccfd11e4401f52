"""The rules that make machine code faster: how to switch each off, and what it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import (
    chains,
    codegen,
    columns,
    dense,
    machine,
    planning,
    rowwise,
    seams,
    storing,
    thin,
)
from graphcore.backends.llvm_kernels.builder import FALSE
from graphcore.backends.llvm_kernels.flops import COSTS
from graphcore.ir.node import Node

from . import programs as p
from .programs import BOTH, SQUARES, Program, of_each

Patches = Sequence[tuple[Any, str, Any]]


class Rule(NamedTuple):
    """A rule: what makes it take effect in small programs, and what leaves it out.

    `programs` are those it changes. It leaves those of `others` alone, which look alike. Results
    without it are `units` of rounding apart at most, of the largest one; 0 means the same bits.
    """

    off: Patches
    programs: Mapping[str, Program]
    on: Patches = ()
    others: Mapping[str, Program] = {}
    units: float = 0.0


@contextmanager
def patched(patches: Patches) -> Iterator[None]:
    """Programs that are compiled in this block are made with these parts, and anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llvm_kernels, "MADE", {})
        patch.setattr(llvm_kernels, "RECENT", machine.Recent(2**40))
        for where, name, value in patches:
            patch.setattr(where, name, value)
        yield


def without(name: str) -> Patches:
    """Leave out a pass that serves the costs of machine code."""
    return [(llvm_kernels, "OWN", [one for one in llvm_kernels.OWN if one.name != name])]


def same(graph: Any, *_: Any) -> Any:
    return graph


def none(*_: Any) -> None:
    return None


def everything(places: dict[Node, int], stored: set[Node]) -> list[Node]:
    """All values that can be computed again."""
    return [x for x in places if planning.computing(x, stored) is not None]


RULES: dict[str, Rule] = {
    "nests of the same rows are one walk": Rule(
        [(planning, "in_rows", same)],
        of_each(
            {
                one.__name__: p.with_slopes(one)
                for one in (p.masked_softmax, p.normalised, p.beside_rows)
            },
            p.CUBES,
            p.ROWS,
        )
        | {
            "softmax": Program(lambda x: gc.special.softmax(x, "c"), ("a c",), p.FLAT),
            "two totals": Program(lambda x: gc.special.logsumexp(x * x, "c"), ("a c",), p.FLAT),
            "spread": Program(lambda x: [gc.mean(x, "c"), gc.var(x, "c")], ("a c",), p.FLAT),
        },
        units=8.0,
    ),
    "some rows at a time go through a chain": Rule(
        [(planning, "in_chains", same)],
        of_each({one.__name__: one for one in p.CHAINS}, p.HEADS, p.ATTENTION, dtypes=BOTH)
        | {"slopes": Program(p.with_slopes(p.attention), p.HEADS, p.ATTENTION)}
        | of_each(
            {f"{one.__name__}, known": one for one in (*p.CHAINS, p.other_rows, p.two_layers)},
            p.KNOWN_HEADS,
            [()],
        ),
        on=[(chains, "LARGE_BYTES", 0)],
        others=of_each(
            {one.__name__: one for one in (p.other_rows, p.two_layers)}, p.HEADS, p.ATTENTION
        ),
    ),
    "values are computed again": Rule(
        [(planning, "computed_again", lambda *_: [])],
        of_each(
            {"masked": p.masked, "shifted": p.shifted},
            ("row col",),
            [(0, 3), (1, 1), (3, 17), (20, 40)],
        ),
        on=[(planning, "computed_again", everything)],
        others={"values of rows": Program(p.normalised_slope, ("row col",), [(3, 17)])},
    ),
    "scheduled": Rule(  # what steps of loops compute again
        without("scheduled"),
        of_each(
            {one.__name__: p.sloping(one) for one in (p.carried, p.inner, p.searching)},
            ("time row", "row"),
            [(0, 3), (1, 9), (5, 17)],
        )
        | {
            "views": Program(p.views_of_a_step, ("time gate=3 row", "row"), [(6, 9)]),
            "joined": Program(p.joined_at_each_step, ("time row=12", "row=24"), [(6,)]),
        },
        others={"branch": Program(p.sloping(p.branch), ("time row", "row"), [(0, 3), (5, 17)])},
    ),
    "members in blocks": Rule(
        without("members in blocks"),
        {"alone": Program(p.each_by_itself, ("m c",), [(0, 3), (1, 1), (9, 2), (67, 5)], BOTH)},
        others={"mixed": Program(p.mixing_members, ("m c",), [(9, 2), (67, 5)])},
    ),
    "exponentials shared": Rule(
        without("exponentials shared"),
        {
            "softplus": Program(
                lambda x: [gc.special.softplus(x), gc.special.expit(-x)], ("i",), [(0,), (50,)]
            )
        },
        units=8.0,
    ),
    "laid out": Rule(  # short axes come before long ones
        without("laid out"),
        {"short": Program(p.along_short_axes, ("row column",), [(2, 1), (5, 0), (12, 19)], BOTH)},
        units=64.0,
    ),
    "sums of columns tile by tile": Rule(
        [(columns, "COSTS", replace(COSTS, bytes_in_cache=2**40))],
        {"reduced": Program(p.reduced, ("a b c",), p.TABLES, ("float64", "float32", "int64"))},
        on=[(columns, "COSTS", replace(COSTS, bytes_in_cache=0)), (columns, "FEW", 0)],
    ),
    "loops of known sizes are cut at seams": Rule(
        [(seams, "pieces", none)],
        {"parameters": Program(p.in_pieces, ("row col",), [(1, 1), (2, 3)], BOTH)},
    ),
    "the middle of a loop reads one part": Rule(
        [(seams, "middle", none)],
        of_each(p.SEAMS, ("row col",), p.AROUND)
        | {"slopes": Program(p.with_slopes(p.all_around), ("row col",), p.AROUND)},
        others=of_each(p.SEAMLESS, ("row col",), p.AROUND),
    ),
    "transposes by a routine": Rule(
        [(codegen, "transposed_by_routine", lambda w, roots, buffers: [*roots])],
        {
            "turned": Program(
                lambda x: x.transpose("b", "a"), ("a b",), p.FLAT, ("float64", "int64")
            )
        },
    ),
    "results written over their operands": Rule(
        [(codegen, "overwriting", lambda *_: {})],
        {
            name: Program(p.of_sorted(one), ("i j",), [(0, 3), (1, 1), (3, 8), (13, 67)])
            for name, one in p.OVER.items()
        },
        others={
            name: Program(p.of_sorted(one), ("i=9 j=9",), [()], BOTH)
            for name, one in p.NOT_OVER.items()
        },
    ),
    "windows are summed where they lie": Rule(
        [(llvm_kernels, "summed_in_place", same)],
        of_each(
            {mode: p.blurred(mode) for mode in ("same", "full", "valid")},
            ("y x", "down across"),
            p.IMAGES,
        )
        | {
            "in a loop": Program(
                p.blurred_again_and_again, ("y x", "down across"), [(17, 40, 3, 4)]
            )
        },
        units=400.0,
    ),
    "windows are copied in longer runs": Rule(
        [(llvm_kernels, "in_longer_runs", same)],
        {
            "convolved": Program(
                p.convolved, ("b y=9 x c=3", "ky=3 kx=5 c=3 o=4"), [(0, 13), (2, 14), (1, 1)], BOTH
            ),
            "in a loop": Program(
                p.convolved_in_a_loop, ("t=4 y=9 x=13 c=3", "ky=2 kx=5 c=3 o=3"), [()]
            ),
        },
    ),
    "parts are read in results": Rule(
        [(llvm_kernels, "read_parts_in_results", same)],
        {"written": Program(p.written_into, ("place", "place"), [(2,), (3,), (9,), (40,)])},
    ),
    "loops turn matrices themselves": Rule(
        [(llvm_kernels, "transpose_inside_loops", same)],
        {"powers": Program(p.powers_of_a_matrix, ("row col", "col"), [(1, 1), (40, 7)])},
        units=8.0,
    ),
    "a product and that of the transpose are one walk": Rule(
        [(planning, "pair_of", none)],
        {
            "two": Program(
                p.with_its_transpose, ("row col", "col"), SQUARES + p.IN_REGISTERS, BOTH
            ),
            "the last alone": Program(
                lambda x, v: p.with_its_transpose(x, v)[1], ("row col", "col"), SQUARES, BOTH
            ),
            "batch": Program(
                lambda x, v: p.with_its_transpose(x, v)[1], ("b=3 row col", "b=3 col"), SQUARES
            ),
        },
    ),
    "products with vectors by routines": Rule(
        [(codegen, "product_by_routine", lambda *_: False), (planning, "pair_of", none)],
        {
            "two": Program(p.with_its_transpose, ("row col", "col"), SQUARES, BOTH),
        },
        others={"small": Program(lambda x, v: gc.dot(x, v, dim="b"), ("a=3 b=2", "b=2"), [()])},
        units=100.0,
    ),
    "several rows are added up at once": Rule(
        [(codegen, "at_once", lambda *_: 1), (rowwise, "at_once", lambda *_: 1)],
        {"sums": Program(lambda x: x.sum("b"), ("a b",), SQUARES, BOTH)},
    ),
    "thin products by a routine of their own": Rule(
        [(thin, "is_quicker", lambda *_: FALSE)], {"square": p.PRODUCT}, units=8.0
    ),
    "products by our own routine": Rule([(dense, "KINDS", ())], {"square": p.PRODUCT}, units=8.0),
    "masks are quick": Rule(
        [(storing, "masks_are_quick", lambda: False)],
        {
            "stored": Program(
                lambda x: [
                    x + x,
                    (x + x).transpose("b", "a"),
                    (x + x) * gc.ones({"of": 3}),
                    gc.pad(x + x, {"a": (1, 1), "b": (2, 1)}),
                    gc.concat([x + x, x], "b"),
                    x.sum("a"),
                ],
                ("a b",),
                [(0, 3), (1, 1), (3, 7), (9, 8), (17, 10), (3, 20), (40, 29)],
                ("float64", "complex128", "float32", "int64"),
            )
        },
        on=[(storing, "masks_are_quick", lambda: True)],
    ),
}
