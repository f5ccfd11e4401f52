"""CONTROL: how loops and branches are written: as blocks of the one function.

Carries live in pairs of arrays: a step reads one and writes the other, then they change places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ops import control

from . import routines
from .plan import BUFFERED

if TYPE_CHECKING:
    from .codegen import Writer

Block: TypeAlias = "Callable[[Node, Writer], None]"


def arguments(graph: Graph, names: Sequence[str], w: Writer) -> None:
    """Name the params of a body."""
    w.thins.update(zip(graph.params, names, strict=True))


def settle(homes: Sequence[str], outputs: Sequence[Node], w: Writer) -> None:
    """Have outputs of a body worked out in arrays given, or copied there."""
    copied = []
    for home, node in zip(homes, outputs, strict=True):
        if node.op in BUFFERED and node not in w.made and node not in w.thins:
            w.made[node] = home
        else:
            copied.append((home, node))
    w.emit_all()
    for home, node in copied:
        w.write(f"{w.bind('copyto', np.copyto)}({home}, {w.thin(node)})")


class Carried:
    """The pairs of arrays that hold what a loop carries."""

    def __init__(self, node: Node, w: Writer) -> None:
        self.count = node.attrs["carries"]
        body = node.attrs["body"]
        self.now = [w.sheet.name("s") for _ in range(self.count)]
        self.then = [w.sheet.name("s") for _ in range(self.count)]
        for now, then, x, param in zip(self.now, self.then, node.inputs, body.params, strict=False):
            w.write(f"{now}, {then} = {w.room(param.type)}, {w.room(param.type)}")
            w.write(f"{w.bind('copyto', np.copyto)}({now}, {w.thin(x)})")

    def turn(self, w: Writer) -> None:
        """What was written is read from now on."""
        if self.count:
            left, right = [*self.now, *self.then], [*self.then, *self.now]
            w.write(f"{', '.join(left)} = {', '.join(right)}")


def scan(node: Node, w: Writer) -> None:
    attrs, body = node.attrs, node.attrs["body"]
    n, m = attrs["carries"], attrs["sequences"]
    length = w.size(attrs["length"])
    walked = [w.whole(x) for x in node.inputs[n : n + m]]
    captured = [w.whole(x) for x in node.inputs[n + m :]]
    carried = Carried(node, w)
    step, inner = w.sheet.name("i"), w.inside(body)
    steps = [node[i] for i in range(n, len(body.outputs))]
    stacked = [w.sheet.name("y") for _ in steps]
    for name, y in zip(stacked, steps, strict=True):
        w.write(f"{name} = {w.empty(y.type)}")
    count = f"range({length})"
    w.write(f"for {step} in {f'reversed({count})' if attrs['reverse'] else count}:")
    with w.indented():
        places = [w.sheet.name("p") for _ in walked]
        for place, x in zip(places, walked, strict=True):
            w.write(f"{place} = {x}[{step}]")
        arguments(body, [*carried.now, *places, *captured], inner)
        homes = [place_of(name, step, w) for name in stacked]
        settle([*carried.then, *homes], body.outputs, inner)
        carried.turn(w)
        if not body.outputs:
            w.write("pass")
    give(node, [*carried.now, *stacked], w)
    w.made.update(zip(steps, stacked, strict=True))


def place_of(name: str, step: str, w: Writer) -> str:
    """Where a step's result goes, as an array also where it is one number."""
    place = w.sheet.name("o")
    w.write(f"{place} = {name}[{step}, ...]")
    return place


def while_loop(node: Node, w: Writer) -> None:
    attrs, body, predicate = node.attrs, node.attrs["body"], node.attrs["predicate"]
    n, trips = attrs["carries"], attrs["trips"]
    captured = [w.whole(x) for x in node.inputs[n:]]
    carried = Carried(node, w)
    test, inner = w.inside(predicate), w.inside(body)
    results = body.outputs[n:] if trips is not None else ()
    records = [w.sheet.name("y") for _ in results]
    for name, y in zip(records, results, strict=True):
        recorder = w.bind("Recorder", routines.Recorder)
        w.write(f"{name} = {recorder}({w.empty(y.type)})")
    count, going = w.sheet.name("i"), w.room(predicate.outputs[0].type)
    w.write(f"{count} = 0")
    w.write("while True:")
    with w.indented():
        arguments(predicate, [*carried.now, *captured], test)
        settle([going], predicate.outputs, test)
        w.write(f"if not {going}:")
        with w.indented():
            w.write("break")
        arguments(body, [*carried.now, *captured], inner)
        settle(carried.then, body.outputs[:n], inner)
        for name, y in zip(records, results, strict=True):
            w.write(f"{name}.add({inner.thin(y)})")
        carried.turn(w)
        w.write(f"{count} += 1")
    if trips is not None:
        (name,) = trips.unknowns
        w.sheet.sizes[name] = count
    for name in records:
        w.write(f"{name} = {name}.all()")
    give(node, [*carried.now, *records], w)


def switch(node: Node, w: Writer) -> None:
    index, *operands = node.inputs
    branches = node.attrs["branches"]
    given = [w.whole(x) for x in operands]
    rooms = [w.room(type) for type in node.type.items]
    chosen = w.sheet.name("i")
    choose = w.bind("choose", routines.choose)
    w.line(f"{chosen} = {choose}({w.thin(index)}, {len(branches)})", node)
    for number, branch in enumerate(branches):
        w.write(f"{'elif' if number else 'if'} {chosen} == {number}:")
        with w.indented():
            inside(branch, given, rooms, w)
    give(node, rooms, w)


def call(node: Node, w: Writer) -> None:
    given = [w.whole(x) for x in node.inputs]
    rooms = [w.room(type) for type in node.type.items]
    inside(node.attrs["body"], given, rooms, w)
    give(node, rooms, w)


def inside(body: Graph, given: Sequence[str], rooms: Sequence[str], w: Writer) -> None:
    """The lines of a body whose results go to rooms."""
    inner = w.inside(body)
    arguments(body, given, inner)
    settle(rooms, body.outputs, inner)
    if not body.outputs:
        w.write("pass")


def give(node: Node, names: Sequence[str], w: Writer) -> None:
    """Name the values of a node of several."""
    w.thins.update({node[i]: name for i, name in enumerate(names)})


CONTROL: dict[Op, Block] = {
    control.scan: scan,
    control.while_loop: while_loop,
    control.switch: switch,
    control.call: call,
    control.custom: call,
}
