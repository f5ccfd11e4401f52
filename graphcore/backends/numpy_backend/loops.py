"""CONTROL: loops and branches are written as blocks of the one function.

A carry is a Python number or a pair of arrays: a step reads one array and writes the other, then
the two are swapped. If a step updates only some elements of a carry, one array is enough for it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from graphcore.ir import BOOL, Graph, Node, Op
from graphcore.ir.graph import bodies_of
from graphcore.ops import control, elementwise, leaf
from graphcore.ops.control import Loop, LoopOperand
from graphcore.ops.leaf import values
from graphcore.schedule.buffers import is_result
from graphcore.schedule.order import in_order, order_of_body

from . import routines
from .call_text import call
from .emit import INTO
from .scalars import is_spelled
from .value_names import Value, is_number, repeats_number
from .writer import Writer

Block: TypeAlias = Callable[[Node, Writer], None]


Values: TypeAlias = "dict[Node, Value]"


def param_value(param: Node, name: str) -> Value:
    """The value of a param that is only a number, or only an array."""
    return Value(scalar=name) if is_number(param.type) else Value(array=name)


def capture(captured: Iterable[LoopOperand], w: Writer, arrays: Container[Node] = ()) -> Values:
    """The captured values of a body: numbers as Python's, the rest as arrays of full shape.

    A number has an array as well if one exists already, or if its param is among `arrays`.
    """
    found = {}
    for param, x in captured:
        if is_number(param.type):
            array = w.array(x) if param in arrays else w.values[x].array
            found[param] = Value(w.scalar(x), array)
        else:
            found[param] = Value(array=w.full(x))
    return found


def read_as_arrays(graph: Graph) -> set[Node]:
    """The values in a body that NumPy reads, so that numbers among them must be arrays as well."""
    found = set(graph.outputs)
    for node in graph.nodes():
        if node.op in CONTROL:
            for body in bodies_of(node):
                read = read_as_arrays(body)
                pairs = zip(body.params[::-1], node.inputs[::-1], strict=False)
                found |= {x for param, x in pairs if param in read}
        elif not is_spelled(node) and not repeats_number(node):
            found.update(node.inputs[1:] if node.op is elementwise.where else node.inputs)
    return found | {x.inputs[0] for x in found if repeats_number(x)}


def compute_into(destinations: Sequence[str], outputs: Sequence[Node], w: Writer) -> list[str]:
    """Compute the outputs of a body in the arrays given; the names of all, numbers included."""
    copied = []
    for array, y in zip(destinations, outputs, strict=True):
        if is_number(y.type):
            continue
        if receives([y]) and y not in w.destinations and y not in w.values:
            w.destinations[y] = array
        elif y not in w.values or w.values[y].array != array:
            copied.append((array, y))
    w.emit_all()
    for array, y in copied:
        w.do(call(w.bind("copyto", np.copyto), array, w.array(y)), y, False)
    pairs = zip(destinations, outputs, strict=True)
    return [w.scalar(y) if is_number(y.type) else array for array, y in pairs]


def receives(outputs: Sequence[Node]) -> list[Node]:
    """The outputs that a line, a kernel or a branch can write directly into a given array."""
    return [
        y
        for y in outputs
        if not is_number(y.type)
        and (y.op in INTO or is_result(y) or (y.op is leaf.project and is_branch(y.inputs[0])))
    ]


def is_branch(node: Node) -> bool:
    """Whether a node computes the outputs of a body once, and can do so in arrays given."""
    return node.op in CONTROL and "carries" not in node.attrs


class Carried:
    """The carries of a loop: each a number, an array, or a pair of arrays that hold it in turn.

    A step reads each carry by its name in `old`, and computes the next one in its name in `new`.
    """

    def __init__(self, node: Node, w: Writer) -> None:
        carries = Loop.of(node).carries
        self.params = [carry.param for carry in carries]
        self.schedule, single = order_of_body(node.attrs["body"], len(carries))
        self.old = [w.sheet.name("s") for _ in self.params]
        self.new = [
            old if is_number(param.type) or param in single else w.sheet.name("s")
            for param, old in zip(self.params, self.old, strict=True)
        ]
        for carry, old, new in zip(carries, self.old, self.new, strict=True):
            if is_number(carry.param.type):
                w.write(f"{old} = {w.scalar(carry.start)}")
                continue
            for name in dict.fromkeys((old, new)):
                w.write(f"{name} = {w.temporary(carry.param.type, node)}")
            w.write(f"{w.bind('copyto', np.copyto)}({old}, {w.array(carry.start)})")

    def values(self) -> Values:
        """The params of the carries."""
        return {
            param: param_value(param, old) for param, old in zip(self.params, self.old, strict=True)
        }

    def swap(self, updates: Sequence[str], w: Writer) -> None:
        """The next step reads the updates, and may write over what this one has read."""
        given = dict(zip(self.old, updates, strict=True))
        given |= {new: old for old, new in zip(self.old, self.new, strict=True) if new != old}
        if swapped := {name: value for name, value in given.items() if name != value}:
            w.write(f"{', '.join(swapped)} = {', '.join(swapped.values())}")


def counted(nodes: Sequence[Node], outputs: Iterable[Node]) -> set[Node]:
    """The counters of steps that nothing else reads, so that they need no array."""
    loops = [Loop.of(node) for node in nodes if node.op is control.scan]
    found = {x for loop in loops for x in loop.operands.sequences if control.is_counter(x)}
    if found:
        found.difference_update(outputs)
        for loop in loops:
            found.difference_update(loop.operands.carries, loop.operands.captured)
        for node in nodes:
            if node.op is not control.scan:
                found.difference_update(node.inputs)
    return found


def scan(node: Node, w: Writer) -> None:
    loop, body, n = Loop.of(node), node.attrs["body"], node.attrs["carries"]
    length = w.size(loop.settings["length"])
    sequences = ["" if control.is_counter(x) else w.full(x) for x in loop.operands.sequences]
    captured = capture(loop.captured, w, read_as_arrays(body))
    carried = Carried(node, w)
    inner = w.inside(body, receives(body.outputs), carried.schedule)
    steps = values(node)[n:]
    stacked = [w.sheet.name("y") for _ in steps]
    for name, y in zip(stacked, steps, strict=True):
        w.write(f"{name} = {w.empty(y.type)}", node)
    step, backwards = w.sheet.name("i"), "[::-1]" if loop.settings["reverse"] else ""
    turns, runs = [step], [f"range({length}){backwards}"]

    def along(prefix: str, sequence: str) -> str:
        """The name of each element of a sequence in turn."""
        turns.append(w.sheet.name(prefix))
        runs.append(f"{sequence}{backwards}")
        return turns[-1]

    known = carried.values() | captured
    for x, param in zip(sequences, loop.params.sequences, strict=True):
        number = is_number(param.type)
        name = along("p", f"{x}.tolist()" if number else x) if x else step
        known[param] = param_value(param, name)
    elements = [
        along("o", name) if y.type.shape else f"{name}[{step}]"
        for name, y in zip(stacked, loop.results, strict=True)
    ]
    together = f"zip({', '.join(runs)})" if len(runs) > 1 else runs[0]
    w.write(f"for {', '.join(turns)} in {together}:")
    lines = len(w.sheet.code.rows)
    with w.stepping(step, node):
        inner.values |= known
        for at, y in enumerate(loop.results):
            if not y.type.shape and not is_number(y.type):
                elements[at] = element(stacked[at], step, w)
        made = compute_into([*carried.new, *elements], body.outputs, inner)
        for destination, y, value in zip(elements, loop.results, made[n:], strict=True):
            if is_number(y.type):
                w.write(f"{destination} = {value}")
        carried.swap(made[:n], w)
        if len(w.sheet.code.rows) == lines:
            w.write("pass")
    define_results(node, [*carried.old, *stacked], w)
    w.destinations.update(zip(steps, stacked, strict=True))


def element(name: str, step: str, w: Writer) -> str:
    """The element of an array that a step's result goes to, as an array without axes."""
    found = w.sheet.name("o")
    w.write(f"{found} = {name}[{step}, ...]")
    return found


def while_loop(node: Node, w: Writer) -> None:
    loop, trips = Loop.of(node), node.attrs["trips"]
    assert loop.condition is not None
    params, tests = loop.params.all, (loop.condition,)
    step = Graph(params, (*tests, *loop.outputs))
    captured = capture(loop.captured, w, read_as_arrays(step))
    carried = Carried(node, w)
    first = in_order(Graph(params, tests).nodes())
    rest = [x for x in carried.schedule if x not in set(first)]
    inner = w.inside(step, receives(loop.updates), [*first, *rest])
    results = loop.results if trips is not None else ()
    records = [w.sheet.name("y") for _ in results]
    for name, y in zip(records, results, strict=True):
        recorder = w.bind("Recorder", routines.Recorder)
        w.write(f"{name} = {'[]' if is_number(y.type) else f'{recorder}({w.empty(y.type)})'}")
    count = w.sheet.name("i")
    w.write(f"{count} = 0")
    w.write("while True:")
    with w.stepping(count, node):
        inner.values |= carried.values() | captured
        inner.emit_all(first)
        w.write(f"if not {inner.scalar(tests[0])}:")
        with w.indent():
            w.write("break")
        made = compute_into(carried.new, loop.updates, inner)
        for name, y in zip(records, results, strict=True):
            number = is_number(y.type)
            w.write(f"{name}.append({inner.scalar(y) if number else inner.array(y)})")
        carried.swap(made, w)
        w.write(f"{count} += 1")
    code = w.sheet.code
    code.loops.append(node)
    code.steps.append(0)
    w.write(f"{w.bind('steps', code.steps)}[{len(code.steps) - 1}] += {count}")
    if trips is not None:
        (name,) = trips.unknowns
        w.sizes[name] = w.sheet.sizes[name] = count
    for name, y in zip(records, results, strict=True):
        array = f"{w.bind('array', np.array)}({name}, {w.dtype(y.type.dtype)})"
        w.write(f"{name} = {array if is_number(y.type) else f'{name}.all()'}")
    define_results(node, [*carried.old, *records], w)


def switch(node: Node, w: Writer) -> None:
    branches = node.attrs["branches"]
    captured = capture(map(LoopOperand, branches[0].params, node.inputs[1:]), w)
    destinations = destinations_for(node, w)
    for condition, branch in zip(conditions(node, w), branches, strict=True):
        w.write(condition)
        with w.indent():
            # A name that one branch gives is not defined in the other.
            own = (Value(x.scalar, x.array, x.full) for x in captured.values())
            given = dict(zip(branch.params, own, strict=True))
            for name, y, value in inside(branch, given, destinations, w):
                if is_number(y.type):
                    w.write(f"{name} = {value}")
            if not branch.outputs:
                w.write("pass")
    define_results(node, destinations, w)


def conditions(node: Node, w: Writer) -> list[str]:
    """The line that begins each branch; one of two needs no number if a bool decides."""
    index, count = node.inputs[0], len(node.attrs["branches"])
    if count == 2 and index.op is elementwise.cast and index.inputs[0].type.dtype == BOOL:
        return [f"if not {w.scalar(index.inputs[0])}:", "else:"]
    choose = call(w.bind("choose", routines.choose), w.values[index].operand, str(count))
    chosen = w.assign("i", choose, node)
    return [f"{'elif' if at else 'if'} {chosen} == {at}:" for at in range(count)]


def inline(node: Node, w: Writer) -> None:
    """A body that is computed once: its lines are those of the graph around it."""
    body = node.attrs["body"]
    captured = capture(map(LoopOperand, body.params, node.inputs), w)
    made = inside(body, captured, destinations_for(node, w), w)
    define_results(node, [value for _, _, value in made], w)


def destinations_for(node: Node, w: Writer) -> list[str]:
    """Where the results of a branch go: a name for a number, else an array."""
    return [
        w.sheet.name("r") if is_number(y) else w.destinations.get(node[i]) or w.temporary(y, node)
        for i, y in enumerate(node.type.items)
    ]


def inside(
    body: Graph, given: Values, destinations: Sequence[str], w: Writer
) -> list[tuple[str, Node, str]]:
    """The lines of a body; the destination, the node and the name of each output."""
    inner = w.inside(body, receives(body.outputs))
    inner.values |= given
    made = compute_into(destinations, body.outputs, inner)
    return list(zip(destinations, body.outputs, made, strict=True))


def define_results(node: Node, names: Sequence[str], w: Writer) -> None:
    """The values of the results of a loop or branch."""
    for i, name in enumerate(names):
        w.values[node[i]] = param_value(node[i], name)


def in_block(rule: Block) -> Block:
    """A rule whose lines belong together."""

    def write(node: Node, w: Writer) -> None:
        with w.blocks(node):
            rule(node, w)

    return write


CONTROL: dict[Op, Block] = {
    control.scan: in_block(scan),
    control.while_loop: in_block(while_loop),
    control.switch: in_block(switch),
    control.call: inline,
    control.custom: inline,
    control.linear: inline,
}
