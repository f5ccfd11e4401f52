"""CONTROL: how loops and branches are written: as blocks of the one function.

A carry is one of Python's numbers, or lives in a pair of arrays: a step reads one and writes the
other, then they change places. A carry that a step updates in some places lives in one array.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from graphcore.ir.dtypes import BOOL
from graphcore.ir.graph import Graph, graphs
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ops import control, elementwise, leaf
from graphcore.ops.control import Loop, Operand
from graphcore.ops.leaf import values
from graphcore.schedule.order import in_order, order_of_body

from . import routines
from .emit import BUFFERED
from .scalars import is_number, is_spelled, repeats_number

if TYPE_CHECKING:
    from .codegen import Writer

Block: TypeAlias = "Callable[[Node, Writer], None]"


class Name(NamedTuple):
    """What a value is called in the source: as one of Python's numbers, as an array, or both."""

    number: str = ""
    array: str = ""


Names: TypeAlias = dict[Node, Name]


def named(param: Node, name: str) -> Name:
    """The name of a param that is only a number, or only an array."""
    return Name(number=name) if is_number(param.type) else Name(array=name)


def capture(captured: Iterable[Operand], w: Writer, arrays: Container[Node] = ()) -> Names:
    """What a body calls its captured values: numbers as Python's, the rest as whole arrays.

    Numbers are arrays as well if they are already, or stand among `arrays`.
    """
    names = {}
    for param, x in captured:
        if not is_number(param.type):
            names[param] = Name(array=w.whole(x))
            continue
        array = w.thin(x) if param in arrays else w.thins[x]
        number = w.number(x)
        names[param] = Name(number, "" if array == number else array)
    return names


def read_as_arrays(graph: Graph) -> set[Node]:
    """What other than Python's own arithmetic reads in a body: numbers are made arrays for it."""
    found = set(graph.outputs)
    for node in graph.nodes():
        if node.op in CONTROL:
            for held in graphs(node):
                read = read_as_arrays(held)
                pairs = zip(held.params[::-1], node.inputs[::-1], strict=False)
                found |= {x for param, x in pairs if param in read}
        elif not is_spelled(node) and not repeats_number(node):
            found.update(node.inputs[1:] if node.op is elementwise.where else node.inputs)
    return found | {x.inputs[0] for x in found if repeats_number(x)}


def know(names: Names, w: Writer) -> None:
    """Name the params of a body."""
    for param, name in names.items():
        w.thins[param] = name.array or name.number
        if name.number:
            w.numbers[param] = name.number


def settle(homes: Sequence[str], outputs: Sequence[Node], w: Writer) -> list[str]:
    """Have outputs of a body worked out in arrays given, or copied there; numbers are told."""
    copied = []
    for home, node in zip(homes, outputs, strict=True):
        if is_number(node.type):
            continue
        if written([node]) and node not in w.made and node not in w.thins:
            w.made[node] = home
        elif w.thins.get(node) != home:
            copied.append((home, node))
    w.emit_all()
    for home, node in copied:
        w.write(f"{w.bind('copyto', np.copyto)}({home}, {w.thin(node)})")
    pairs = zip(homes, outputs, strict=True)
    return [w.number(node) if is_number(node.type) else home for home, node in pairs]


def written(outputs: Sequence[Node]) -> list[Node]:
    """The outputs that are arrays which ops, or branches, write where they are told."""
    return [
        node
        for node in outputs
        if not is_number(node.type)
        and (node.op in BUFFERED or (node.op is leaf.project and node.inputs[0].op in BRANCHES))
    ]


BRANCHES = frozenset({control.switch, control.call, control.custom, control.linear})


class Carried:
    """What a loop carries: a number, an array, or the pair of arrays that hold it in turn."""

    def __init__(self, node: Node, w: Writer) -> None:
        carries = Loop.of(node).carries
        self.params = [carry.param for carry in carries]
        self.schedule, single = order_of_body(node.attrs["body"], len(carries))
        self.now = [w.sheet.name("s") for _ in self.params]
        self.then = [
            now if is_number(param.type) or param in single else w.sheet.name("s")
            for param, now in zip(self.params, self.now, strict=True)
        ]
        for carry, now, then in zip(carries, self.now, self.then, strict=True):
            if is_number(carry.param.type):
                w.write(f"{now} = {w.number(carry.start)}")
                continue
            for name in dict.fromkeys((now, then)):
                w.write(f"{name} = {w.room(carry.param.type)}")
            w.write(f"{w.bind('copyto', np.copyto)}({now}, {w.thin(carry.start)})")

    def names(self) -> Names:
        """What the params are called."""
        return {param: named(param, now) for param, now in zip(self.params, self.now, strict=True)}

    def turn(self, made: Sequence[str], w: Writer) -> None:
        """What was made is read from now on, and what was read can be written over."""
        new = dict(zip(self.now, made, strict=True))
        new |= {then: now for now, then in zip(self.now, self.then, strict=True) if then != now}
        if turned := {name: value for name, value in new.items() if name != value}:
            w.write(f"{', '.join(turned)} = {', '.join(turned.values())}")


def scan(node: Node, w: Writer) -> None:
    loop, body, n = Loop.of(node), node.attrs["body"], node.attrs["carries"]
    length = w.size(loop.settings["length"])
    sequences = [w.whole(x) for x in loop.operands.sequences]
    captured = capture(loop.captured, w, read_as_arrays(body))
    carried = Carried(node, w)
    inner = w.inside(body, written(body.outputs), carried.schedule)
    steps = values(node)[n:]
    stacked = [w.sheet.name("y") for _ in steps]
    for name, y in zip(stacked, steps, strict=True):
        w.write(f"{name} = {w.empty(y.type)}", node)
    step, backwards = w.sheet.name("i"), "[::-1]" if loop.settings["reverse"] else ""
    turns, runs = [step], [f"range({length}){backwards}"]

    def along(prefix: str, sequence: str) -> str:
        """The name of each place of a sequence in turn."""
        turns.append(w.sheet.name(prefix))
        runs.append(f"{sequence}{backwards}")
        return turns[-1]

    known = carried.names() | captured
    for x, param in zip(sequences, loop.params.sequences, strict=True):
        number = is_number(param.type)
        known[param] = named(param, along("p", f"{x}.tolist()" if number else x))
    homes = [
        along("o", name) if y.type.shape else f"{name}[{step}]"
        for name, y in zip(stacked, loop.results, strict=True)
    ]
    together = f"zip({', '.join(runs)})" if len(runs) > 1 else runs[0]
    w.write(f"for {', '.join(turns)} in {together}:")
    lines = len(w.sheet.text)
    with w.stepping(step, node):
        know(known, inner)
        for at, y in enumerate(loop.results):
            if not y.type.shape and not is_number(y.type):
                homes[at] = place_of(stacked[at], step, w)
        made = settle([*carried.then, *homes], body.outputs, inner)
        for home, y, value in zip(homes, loop.results, made[n:], strict=True):
            if is_number(y.type):
                w.write(f"{home} = {value}")
        carried.turn(made[:n], w)
        if len(w.sheet.text) == lines:
            w.write("pass")
    give(node, [*carried.now, *stacked], w)
    w.made.update(zip(steps, stacked, strict=True))


def place_of(name: str, step: str, w: Writer) -> str:
    """Where a step's result goes, as an array also where it is one value."""
    place = w.sheet.name("o")
    w.write(f"{place} = {name}[{step}, ...]")
    return place


def while_loop(node: Node, w: Writer) -> None:
    loop, trips = Loop.of(node), node.attrs["trips"]
    assert loop.condition is not None
    params, tests = loop.params.all, (loop.condition,)
    step = Graph(params, (*tests, *loop.outputs))
    captured = capture(loop.captured, w, read_as_arrays(step))
    carried = Carried(node, w)
    first = in_order(Graph(params, tests).nodes())
    then = [x for x in carried.schedule if x not in set(first)]
    inner = w.inside(step, written(loop.updates), [*first, *then])
    results = loop.results if trips is not None else ()
    records = [w.sheet.name("y") for _ in results]
    for name, y in zip(records, results, strict=True):
        recorder = w.bind("Recorder", routines.Recorder)
        w.write(f"{name} = {'[]' if is_number(y.type) else f'{recorder}({w.empty(y.type)})'}")
    count = w.sheet.name("i")
    w.write(f"{count} = 0")
    w.write("while True:")
    with w.stepping(count, node):
        know(carried.names() | captured, inner)
        inner.emit_all(first)
        w.write(f"if not {inner.number(tests[0])}:")
        with w.indented():
            w.write("break")
        made = settle(carried.then, loop.updates, inner)
        for name, y in zip(records, results, strict=True):
            number = is_number(y.type)
            w.write(f"{name}.append({inner.number(y) if number else inner.thin(y)})")
        carried.turn(made, w)
        w.write(f"{count} += 1")
    if trips is not None:
        (name,) = trips.unknowns
        w.sizes[name] = w.sheet.sizes[name] = count
    for name, y in zip(records, results, strict=True):
        array = f"{w.bind('array', np.array)}({name}, {w.dtype(y.type.dtype)})"
        w.write(f"{name} = {array if is_number(y.type) else f'{name}.all()'}")
    give(node, [*carried.now, *records], w)


def switch(node: Node, w: Writer) -> None:
    branches = node.attrs["branches"]
    captured = capture(map(Operand, branches[0].params, node.inputs[1:]), w)
    rooms = rooms_for(node, w)
    for condition, branch in zip(conditions(node, w), branches, strict=True):
        w.write(condition)
        with w.indented():
            given = dict(zip(branch.params, captured.values(), strict=True))
            inside(branch, given, rooms, w)
    give(node, rooms, w)


def conditions(node: Node, w: Writer) -> list[str]:
    """What begins each branch; one of two needs no number if it goes by a bool."""
    index, count = node.inputs[0], len(node.attrs["branches"])
    if count == 2 and index.op is elementwise.cast and index.inputs[0].type.dtype == BOOL:
        return [f"if not {w.number(index.inputs[0])}:", "else:"]
    chosen, choose = w.sheet.name("i"), w.bind("choose", routines.choose)
    w.line(f"{chosen} = {choose}({w.thins[index]}, {count})", node)
    return [f"{'elif' if at else 'if'} {chosen} == {at}:" for at in range(count)]


def call(node: Node, w: Writer) -> None:
    body = node.attrs["body"]
    captured = capture(map(Operand, body.params, node.inputs), w)
    rooms = rooms_for(node, w)
    inside(body, captured, rooms, w)
    give(node, rooms, w)


def rooms_for(node: Node, w: Writer) -> list[str]:
    """Where the results of a branch go: a name for a number, else an array."""
    return [
        w.sheet.name("r") if is_number(y) else w.made.get(node[i]) or w.room(y)
        for i, y in enumerate(node.type.items)
    ]


def inside(body: Graph, given: Names, rooms: Sequence[str], w: Writer) -> None:
    """The lines of a body whose results go to rooms."""
    inner = w.inside(body, written(body.outputs))
    know(given, inner)
    made = settle(rooms, body.outputs, inner)
    for room, y, value in zip(rooms, body.outputs, made, strict=True):
        if is_number(y.type):
            w.write(f"{room} = {value}")
    if not body.outputs:
        w.write("pass")


def give(node: Node, names: Sequence[str], w: Writer) -> None:
    """Name the values of a node of several."""
    for i, name in enumerate(names):
        if is_number(node.type.items[i]):
            w.take(node[i], name)
        else:
            w.thins[node[i]] = name


CONTROL: dict[Op, Block] = {
    control.scan: scan,
    control.while_loop: while_loop,
    control.switch: switch,
    control.call: call,
    control.custom: call,
    control.linear: call,
}
