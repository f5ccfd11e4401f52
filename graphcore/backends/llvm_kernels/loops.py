"""CONTROL: how loops and branches are written. The reverse of a loop is a loop like any other.

A carry is in registers, or in a pair of buffers: a step reads one and writes the other, then they
are exchanged. A step's results are written where those of all steps lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from graphcore.ir import Graph, Node, Op, Size, TensorType, Trait
from graphcore.ir.sizes import minimum, unknowns
from graphcore.ops import control
from graphcore.ops.control import Loop
from graphcore.ops.leaf import values
from graphcore.ops.schedule import kernel
from graphcore.schedule.order import order_of_body, updates

from . import entrance, sharing
from .addressing import Buffer
from .arithmetic import cast
from .builder import Value, integer
from .failures import work
from .kernel_calls import call
from .nests import reads_what_it_overwrites
from .passes.parts import writes_much
from .places import is_register
from .pointwise_loops import PointwiseLoop, is_pointwise
from .writer import Homes, Order, Shared, Writer


class Carries:
    """The values that a loop carries: registers, pairs of buffers, buffers that steps update."""

    def __init__(self, w: Writer, node: Node) -> None:
        body, n = node.attrs["body"], node.attrs["carries"]
        self.w, self.params, self.new = w, body.params[:n], body.outputs[:n]
        self.order, self.chains = carried(body, n)
        self.buffers: dict[Node, Buffer] = {}
        self.start: list[Value] = []
        for i, (param, x) in enumerate(zip(self.params, node.inputs[:n], strict=True)):
            if is_register(param.type):
                self.start.append(w.number(x, param.type))
                continue
            now = w.home(node[i]) if param in self.chains else w.new(node[i], param.type)
            w.copy(x, [now])
            if param in self.chains:
                self.buffers[param] = now
            else:
                self.start += [now.pointer, w.new(node[i], param.type).pointer]

    def open(self, w: Writer, now: Sequence[Value]) -> Homes:
        """Make the params known in a step; the buffers of its new values."""
        homes: Homes = {}
        rest = iter(now)
        for param, y in zip(self.params, self.new, strict=True):
            if buffer := self.buffers.get(param):
                w.know([param], [w.buffer(param.type, buffer.pointer)])
                for update in self.chains[param]:
                    homes.setdefault(update, []).append(w.buffer(param.type, buffer.pointer))
            elif is_register(param.type):
                w.know([param], [next(rest)])
            else:
                w.know([param], [w.buffer(param.type, next(rest))])
                homes.setdefault(y, []).append(w.buffer(param.type, next(rest)))
        return homes

    def close(self, w: Writer, now: Sequence[Value]) -> list[Value]:
        """The new values in registers, and the pairs exchanged."""
        new: list[Value] = []
        rest = iter(now)
        for param, y in zip(self.params, self.new, strict=True):
            if param in self.buffers:
                continue
            value = next(rest)
            new += [w.number(y, param.type)] if is_register(param.type) else [next(rest), value]
        return new

    def last(self, node: Node, now: Sequence[Value]) -> None:
        """Make the last values known after the loop."""
        rest = iter(now)
        for i, param in enumerate(self.params):
            if buffer := self.buffers.get(param):
                self.w.know([node[i]], [self.w.buffer(param.type, buffer.pointer)])
            elif is_register(param.type):
                self.w.know([node[i]], [next(rest)])
            else:
                self.w.know([node[i]], [self.w.buffer(param.type, next(rest))])
                next(rest)


def carried(body: Graph, n: int) -> tuple[Order, dict[Node, Sequence[Node]]]:
    """The order of a body, and the updates of each of its n carries that steps write over."""
    nodes, in_place = order_of_body(body, n)
    chains: dict[Node, Sequence[Node]] = {}
    for param, y in zip(body.params[:n], body.outputs, strict=False):
        chain = updates(y, param)
        if param in in_place and not is_register(param.type):
            chains[param] = chain
    written = {x for chain in chains.values() for x in chain}
    chains = {
        param: chain
        for param, chain in chains.items()
        if not any(writes_much(x) and reads_what_it_overwrites(x, written) for x in chain)
    }
    return Order(nodes, frozenset([x for chain in chains.values() for x in chain])), chains


def work_of_step(w: Writer, body: Graph) -> Value:
    """About how much a step computes, sizes that it finds itself left out."""
    types = [x.type for x in body.nodes() if isinstance(x.type, TensorType)]
    names = frozenset().union(*[unknowns(n) for type in types for n in type.shape])
    return w.size(work(body, names - w.program.sizes.keys()))


@contextmanager
def body_of(program: Shared, length: Size) -> Iterator[None]:
    """Write the body of a loop, whose buffers take memory only in calls where it has a step.

    The chunks of a loop that saves some of its carries may be longer than all its steps.
    """
    around = program.times_run
    if not unknowns(length) & program.found:
        program.times_run = around * minimum(length, 1)
    yield
    program.times_run = around


def loop(write: Callable[[Writer, Node], None]) -> Callable[[Writer, Node], None]:
    """How a loop is written: element by element where steps mix none, else step by step."""

    def rule(w: Writer, node: Node) -> None:
        if is_pointwise(Loop.of(node)):
            PointwiseLoop(w, node, work_of_step(w, node.attrs["body"])).written()
        else:
            write(w, node)

    return rule


def scan(w: Writer, node: Node) -> None:
    b, attrs, body = w.b, node.attrs, node.attrs["body"]
    n, m = attrs["carries"], attrs["sequences"]
    sequences = [None if control.is_counter(x) else w.lying(x) for x in node.inputs[n : n + m]]
    captured = [w.given(x) for x in node.inputs[n + m :]]
    carries, length = Carries(w, node), w.size(attrs["length"])
    results = values(node)[n:]
    stacked = [w.home(y) for y in results]
    spent = work_of_step(w, body)

    def step(i: Value, *now: Value) -> Sequence[Value]:
        made = i
        if attrs["reverse"]:
            i = b.sub(b.sub(length, integer(1)), i)
        inner = w.inside()
        inner.know(body.params[n + m :], captured)
        homes = carries.open(inner, now)
        for x, param in zip(sequences, body.params[n : n + m], strict=True):
            if x is None:
                inner.know([param], [i])
                continue
            buffer = w.buffer(param.type, w.row(x.pointer, param.type, i))._replace(level=x.level)
            inner.know([param], [w.load(buffer) if is_register(param.type) else buffer])
        for buffer, y in zip(stacked, body.outputs[n:], strict=True):
            homes.setdefault(y, []).append(w.buffer(y.type, w.row(buffer.pointer, y.type, i)))

        with w.program.failures.within(node, i, made), body_of(w.program, attrs["length"]):
            inner.graph(body, homes, order=carries.order)
            new = carries.close(inner, now)
        b.spend(spent)
        return new

    def steps(begin: Value, end: Value) -> None:
        w.places.looped(begin, end, 1, (), step, looks=True)

    if are_apart(w, node):
        some = partial(w.sharing.each_step, length, steps)
        w.sharing.over(lambda: b.mul(length, spent), some, once=True)
    else:
        last = w.places.looped(integer(0), length, 1, carries.start, step, looks=True)
        carries.last(node, last)
    w.know(results, [buffer._replace(level=b.level) for buffer in stacked])


def are_apart(w: Writer, node: Node) -> bool:
    """Whether threads may share the steps of a loop: many, from which nothing is carried on.

    Meters are there once, and so is memory that grows.
    """
    length, every = node.attrs["length"], [*node.attrs["body"].every_node()]
    few = isinstance(length, int) and length < sharing.FEW
    types = [x.type for x in every if isinstance(x.type, TensorType)]
    grow = any(unknowns(n) & w.program.found for type in types for n in type.shape)
    alone = few or grow or w.program.meters is not None or node.attrs["carries"]
    return not (alone or any(map(is_single, every)))


def is_single(node: Node) -> bool:
    """Whether a node needs memory that grows, calls a kernel, or is seen outside."""
    grows = node.attrs.get("trips") is not None
    return grows or node.op is kernel or Trait.EFFECT in node.op.traits


class Records:
    """The results of the steps of a loop whose number only the loop finds.

    Their memory doubles where it is full. It is kept for later calls, with the number of steps it
    has buffer for.
    """

    def __init__(self, w: Writer, types: Sequence[TensorType]) -> None:
        self.w, self.types = w, types
        self.start: list[Value] = []
        if types:
            self.kept = w.program.address(entrance.Cell())
            found = w.program.found
            vary = any(unknowns(n) & found for type in types for n in type.shape)
            full = w.b.now("i64", f"load i64, {self.kept.typed}")
            memory = [w.program.growing() for _ in types]
            self.start = [integer(0) if vary else full, *[pointer for pointer, _ in memory]]
            self.places = [at for _, at in memory]

    def buffer_for(self, i: Value, now: Sequence[Value]) -> list[Value]:
        """The state of the records with memory for step i."""
        if not self.types:
            return []
        b, p = self.w.b, self.w.program
        full, *pointers = now

        def grow() -> Sequence[Value]:
            twice = b.now("i64", f"shl i64 {full.text}, 1")
            more = b.now("i64", f"add i64 {twice.text}, 64")
            several = zip(pointers, self.places, self.types, strict=True)
            new = [p.enlarge(x, at, b.mul(more, p.bytes(type))) for x, at, type in several]
            b.do(f"store {more.typed}, {self.kept.typed}")
            return [more, *new]

        return b.branch(b.op("icmp sge", i, full), grow, lambda: now)


def while_loop(w: Writer, node: Node) -> None:
    b, attrs, body, predicate = w.b, node.attrs, node.attrs["body"], node.attrs["predicate"]
    n, trips = attrs["carries"], attrs["trips"]
    captured = [w.given(x) for x in node.inputs[n:]]
    carries = Carries(w, node)
    results: Sequence[Node] = body.outputs[n:] if trips is not None else ()
    records = Records(w, [y.type for y in results])
    several = len(records.start)
    spent = work_of_step(w, body)
    inner: Writer

    def test(i: Value, *now: Value) -> Value:
        nonlocal inner
        inner = w.inside()
        inner.know(body.params[n:], captured)
        carries.open(inner, now[several:])

        with w.program.failures.within(node, i, i):
            inner.graph(predicate, {}, keep=True)
            return inner.number(predicate.outputs[0])

    def step(i: Value, *now: Value) -> Sequence[Value]:
        grown = records.buffer_for(i, now[:several])
        homes = carries.open(w.inside(), now[several:])
        for p, y in zip(grown[1:], results, strict=True):
            homes.setdefault(y, []).append(w.buffer(y.type, w.row(p, y.type, i)))

        with w.program.failures.within(node, i, i):
            inner.graph(body, homes, order=carries.order)
            new = carries.close(inner, now[several:])
        b.spend(spent)
        return [b.add(i, integer(1)), *grown, *new]

    start = [integer(0), *records.start, *carries.start]
    with b.signals.step(looks=True):
        made, *last = b.repeat(start, test, step)
    if results:
        (name,) = trips.unknowns
        w.program.sizes[name] = made
        w.program.found.add(name)
        buffers = zip(values(node)[n:], last[1:several], strict=True)
        for y, pointer in buffers:
            w.know([y], [w.buffer(y.type, pointer)])
    carries.last(node, last[several:])


def switch(w: Writer, node: Node) -> None:
    b, branches = w.b, node.attrs["branches"]
    operands = [w.given(x) for x in node.inputs[1:]]
    buffers = [None if is_register(y.type) else w.home(y) for y in values(node)]
    index, many = w.number(node.inputs[0]), integer(len(branches))
    index = cast(b, index, "i64")
    w.program.failures.outside(b, b.op("icmp uge", index, many), node, 0, index, many)

    def way(branch: Graph) -> Callable[[], Sequence[Value]]:
        return lambda: inline(w, branch, operands, buffers, node)

    numbers = iter(b.choose(index, *map(way, branches)))
    after(w, node, buffers, numbers)


def block(w: Writer, node: Node) -> None:
    """A body that is computed once."""
    buffers = [None if is_register(y.type) else w.home(y) for y in values(node)]
    operands = [w.given(x) for x in node.inputs]
    after(w, node, buffers, iter(inline(w, node.attrs["body"], operands, buffers, node)))


def inline(
    w: Writer,
    body: Graph,
    operands: Sequence[Value | Buffer],
    buffers: Sequence[Buffer | None],
    node: Node,
) -> list[Value]:
    """The steps of a body of a node: results go to buffers, or are returned where there is None."""
    inner = w.inside()
    inner.know(body.params, operands)
    homes: Homes = {}
    for y, buffer in zip(body.outputs, buffers, strict=True):
        if buffer is not None:
            homes.setdefault(y, []).append(buffer)
    inner.graph(body, homes)
    results = zip(body.outputs, buffers, node.type.items, strict=True)
    return [inner.number(y, type) for y, buffer, type in results if buffer is None]


def after(
    w: Writer, node: Node, buffers: Sequence[Buffer | None], numbers: Iterator[Value]
) -> None:
    """Make the results of a branch known."""
    for y, buffer in zip(values(node), buffers, strict=True):
        if buffer is None:
            w.know([y], [next(numbers)])
        else:
            w.b.names += 1
            w.know([y], [buffer._replace(level=w.b.level, version=w.b.names)])


CONTROL: dict[Op, Callable[[Writer, Node], None]] = {
    control.scan: loop(scan),
    control.while_loop: loop(while_loop),
    control.switch: switch,
    control.call: block,
    control.custom: block,
    control.linear: block,
    kernel: call,
}
