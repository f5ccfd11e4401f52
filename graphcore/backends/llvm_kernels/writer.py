"""What the rules of nodes write machine code with: sizes, buffers for values, and their names.

Rules see `Writer` alone; `codegen.py` completes it with the rules themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial, reduce
from typing import Any, NamedTuple

from graphcore.ir import Graph, Node, Shape, Size, TensorType
from graphcore.ir.sizes import count, unknowns

from . import entrance
from .addressing import BYTES, Buffer, Index
from .arena import DISTINCT
from .arithmetic import kind_of_dtype
from .builder import TRUE, WIDTH, Builder, Value, integer
from .entrance import Address, Constant, Growing, Slot
from .failures import Failures, Machine
from .machine import Stages, making
from .places import At, Places, counted, is_register, position
from .sharing import Sharing
from .size_code import size_code
from .widths import width_of

Place = Callable[[At, Value], None]
Homes = dict[Node, list[Buffer]]
"""Where results are written: buffers that are given."""


class Order(NamedTuple):
    """The nodes of a loop's body in order, and the updates that are made in place.

    Nodes that read a value which is updated in place come before the update, and are stored before.
    """

    nodes: Sequence[Node]
    updates: frozenset[Node]


class Taken(NamedTuple):
    """Memory of so many bytes, and its number."""

    bytes: Size
    number: int


class Calls:
    """The kernels that one kernel calls: their machine code, which `machine` makes, and tables.

    `lent` are the slots of buffers by size, which the kernels share as they are called in turn.
    """

    def __init__(self, machine: Callable[[Graph], Machine]) -> None:
        self._machine = machine
        self.made: dict[Graph, Machine] = {}
        self.patient: list[Stages] = []
        self.first: dict[Graph, int] = {}
        self.lent: dict[Size, list[int]] = {}

    def machine(self, body: Graph) -> Machine:
        """The machine code of the body of a kernel."""
        if body not in self.made:
            self.made[body] = self._machine(body)
        return self.made[body]


class Shared:
    """The state that all writers of one function share.

    `slots` are the table after params and results; `found` are the unknown sizes that loops find.
    `begun` has the buffers in use now, and the time since when; so buffers may share memory later.
    `times_run` is multiplied with their bytes: it is 0 in a loop that makes no step.
    `calls` are the kernels that this one calls, and `fixed` the slots of pointers by their text.
    """

    def __init__(
        self,
        graph: Graph,
        names: tuple[str, ...],
        machine: Callable[[Graph], Machine],
        patient: bool,
    ) -> None:
        self.b, self.names = Builder(), names
        self.sharing = Sharing(self.b)
        self.calls, self.fixed = Calls(machine), dict[str, int]()
        self.slots: list[Slot] = []
        self.failures = Failures()
        self.meters: Any = None
        self.found: set[str] = set()
        self.first = len(graph.params) + len(graph.outputs)
        self.free, self.begun = dict[Size, list[int]](), dict[int, int]()
        self.time = 0
        self.times_run: Size = 1
        self.places, self.sizes = dict[object, int](), dict[str, Value]()
        self.reserve("poll", Address(entrance.code()["poll"]))
        self.b.signals.routine, self.b.signals.in_nests = self.poll, patient
        for i, name in enumerate(names):
            at = self.b.emit("ptr", 0, f"getelementptr i64, ptr %sizes, i64 {i}")
            self.sizes[name] = self.b.emit("i64", 0, f"load i64, {at.typed}", at)

    # ---- sizes

    def size(self, size: Size) -> Value:
        """A size as a value."""
        if isinstance(size, int):
            return integer(size)
        key = size, *[self.sizes[name] for name in size.unknowns]  # loops find some anew
        if (found := self.b.find(key)) is None:
            found = size_code(self.b, size, self.sizes)
            self.b.known[max(found.level, 0)][key] = found
        return found

    def count(self, shape: Shape) -> Value:
        """How many places a shape has."""
        return self.size(count(shape))

    def bytes(self, type: TensorType) -> Value:
        """How much memory values of a type take."""
        return self.b.mul(self.count(type.shape), integer(BYTES[kind_of_dtype(type.dtype)]))

    def poll(self) -> str:
        """The address of the routine that looks for signals."""
        routine = self.pointer(self.entry(self.places["poll"]))
        self.b.read(routine)
        return routine.text

    # ---- the table

    def reserve(self, key: object, slot: Slot) -> None:
        """A new slot of the table for a key."""
        self.places[key] = len(self.slots) + self.first
        self.slots.append(slot)

    def address(self, slot: Slot) -> Value:
        """The address of a new slot of the table."""
        self.slots.append(slot)
        return self.entry(len(self.slots) - 1 + self.first)

    def entry(self, at: int) -> Value:
        """The address of a place of the table."""
        return self.b.emit("ptr", 0, f"getelementptr ptr, ptr %table, i64 {at}")

    def pointer(self, at: Value) -> Value:
        """The pointer in a place of the table that does not change during a call."""
        return self.b.emit("ptr", 0, f"load ptr, {at.typed}", at)

    def shared(self, key: object, slot: Slot) -> Value:
        """The pointer in the slot of a key, which is made once."""
        if key not in self.places:
            self.reserve(key, slot)
        pointer = self.pointer(self.entry(self.places[key]))
        self.fixed[pointer.text] = self.places[key] - self.first
        return pointer

    def routine(
        self, name: str, kind: str, make: Callable[[], int], size: Size, most: int
    ) -> Value:
        """The address of a routine for values of a kind, which is made for sizes above `most`."""

        def made() -> int:
            with making():
                return make()

        if unknowns(size) & self.found:
            return self.shared((name, kind), Address(made()))
        return self.shared((name, kind, size, most), entrance.Routine(made, size, most))

    def take(self, type: TensorType) -> tuple[Taken, Value]:
        """Memory for values of a type, until it is given back."""
        bytes = count(type.shape) * BYTES[kind_of_dtype(type.dtype)] * self.times_run
        free = self.free.setdefault(bytes, [])
        at = free.pop() if free and len(self.slots) > DISTINCT else len(self.slots)
        with self.sharing.before():
            pointer = self.shared(("buffer", at), entrance.Scratch(bytes, 0))
        if self.b.part is not None:
            pointer = self.sharing.own(pointer, lambda: self.bytes(type))
        self.begun[at] = self.time
        return Taken(bytes, at), pointer

    def give_back(self, taken: Taken) -> None:
        """Let others take memory."""
        self.free[taken.bytes].append(taken.number)
        self.used(taken.number)

    def used(self, at: int) -> None:
        """Note that a buffer was in use until now."""
        buffer, self.time = self.slots[at], self.time + 1
        assert isinstance(buffer, entrance.Scratch)
        times = (1 << self.time) - (1 << self.begun.pop(at))
        self.slots[at] = buffer._replace(times=buffer.times | times)

    def table(self) -> tuple[Slot, ...]:
        """The slots, once all has been written."""
        for at in [*self.begun]:
            self.used(at)
        return tuple(self.slots)

    def constant(self, node: Node) -> Value:
        """Where the values of a constant are."""
        value = node.attrs["value"]
        return self.shared(value, Constant(value.array))

    def growing(self) -> tuple[Value, Value]:
        """Memory that a loop lets grow, null at first, and where its address is kept."""
        at = self.address(Growing())
        return self.b.now("ptr", f"load ptr, {at.typed}"), at

    def kept(self, bytes: Value) -> Value:
        """Memory of at least a size that only a loop finds: the most that was needed so far."""
        b, (pointer, at), cell = self.b, self.growing(), self.address(entrance.Cell())
        held = b.now("i64", f"load i64, {cell.typed}")

        def grow() -> Sequence[Value]:
            new = self.enlarge(pointer, at, bytes)
            more = b.now("i64", f"add i64 {bytes.text}, 1")  # more than 0, the cell's first number
            b.do(f"store {more.typed}, {cell.typed}")
            return [new]

        return b.branch(b.op("icmp sge", bytes, held), grow, lambda: [pointer])[0]

    def enlarge(self, pointer: Value, at: Value, bytes: Value) -> Value:
        """Memory of a size that only a loop finds, kept for later calls."""
        b = self.b
        b.declared["@realloc"] = "declare ptr @realloc(ptr, i64)"
        enough = b.call("smax", bytes, integer(64))
        new = b.now("ptr", f"call ptr @realloc({pointer.typed}, {enough.typed})")
        k = b.name("")
        b.do(f"%full{k} = icmp eq {new.typed}, null")
        b.do(f"br i1 %full{k}, label %fail{k}, label %fine{k}")
        b.label(f"fail{k}")
        b.do(f"store i64 {entrance.FULL}, ptr %record")
        b.do("ret i64 1")
        b.label(f"fine{k}")
        b.do(f"store {new.typed}, {at.typed}")
        return new


class Writer(ABC):
    """Writes a graph; those of loops and branches in it have writers of their own."""

    def __init__(self, program: Shared) -> None:
        self.program, self.b, self.size = program, program.b, program.size
        self.sharing = program.sharing
        self.places = Places(program.b, program.size)
        self.homes: Homes = {}
        self.taken: dict[Node, list[Taken]] = {}
        self.over: dict[Node, Node] = {}
        self.around = dict(program.sizes)

    def inside(self) -> Writer:
        """The writer of a body, which knows no values yet."""
        inner = type(self)(self.program)
        inner.places.open = self.places.open
        return inner

    @abstractmethod
    def graph(
        self, graph: Graph, homes: Homes, keep: bool = False, order: Order | None = None
    ) -> None:
        """All steps of a graph whose params are known; results go to their homes too.

        Values that are known already are not computed again: `keep` lets the next graph find them.
        """

    @abstractmethod
    def nest(self, roots: Sequence[Node], homes: Homes) -> None:
        """Values of equal long axes, at each place in turn: in registers, or in buffers."""

    # ---- buffers

    def buffer(self, type: TensorType, pointer: Value) -> Buffer:
        """Memory for values of a type whose content is new."""
        shape = tuple(map(self.size, type.shape))
        self.b.names += 1
        return Buffer(pointer, shape, kind_of_dtype(type.dtype), self.b.level, self.b.names)

    def new(self, node: Node, type: TensorType | None = None) -> Buffer:
        """A buffer for a node, taken until no step reads the node any more."""
        own: TensorType = type or node.type
        if any(unknowns(n) & self.program.found for n in own.shape):
            return self.buffer(own, self.program.kept(self.program.bytes(own)))
        taken, pointer = self.program.take(own)
        self.taken.setdefault(node, []).append(taken)
        return self.buffer(own, pointer)

    def own(self, buffer: Buffer, type: TensorType | None = None) -> Buffer:
        """The buffer; where the loop that comes next is shared, each thread has one of its own."""

        def bytes() -> Value:
            if type is not None:
                return self.program.bytes(type)
            return reduce(self.b.mul, buffer.shape, integer(BYTES[buffer.kind]))

        pointer = self.sharing.own(buffer.pointer, bytes)
        return buffer._replace(pointer=pointer, level=max(buffer.level, pointer.level))

    def call(self, routine: Value, *given: Value) -> None:
        """Call a routine that returns nothing."""
        text = f"call void {routine.text}({', '.join([x.typed for x in given])})"
        self.b.do(text, routine, *given)

    def home(self, node: Node) -> Buffer:
        """The buffer in which a node is computed: given, or new."""
        return self.homes[node][0] if node in self.homes else self.new(node)

    def home_of_root(self, root: Node) -> Buffer:
        """The buffer for a result of a nest: one whose last reader is this nest, or a new one."""
        if root in self.over:
            x = self.over[root]
            buffer = self.places.buffers.get(x)
            for taken in self.taken.get(x, ()):
                if buffer and self.program.fixed.get(buffer.pointer.text) == taken.number:
                    self.taken[x].remove(taken)
                    self.taken[root] = [taken]
                    return self.buffer(root.type, buffer.pointer)
        return self.new(root)

    def row(self, pointer: Value, type: TensorType, i: Value) -> Value:
        """Where the values of step i are among those of all steps."""
        p = self.program
        offset = self.b.mul(p.bytes(type), i)
        text = f"getelementptr i8, {pointer.typed}, {offset.typed}"
        return self.b.emit("ptr", 0, text, pointer, offset)

    def release(self, nodes: Sequence[Node]) -> None:
        """Give back the memory of nodes."""
        for node in nodes:
            for taken in self.taken.pop(node, ()):
                self.program.give_back(taken)

    def number(self, node: Node, type: TensorType | None = None) -> Value:
        """A value in a register; `type` may know sizes that its own does not."""
        own: TensorType = type or node.type
        if not own.shape:
            return self.places.at(node, ())
        return self._side_by_side(own.shape[0], lambda i, mask: self.places.at(node, (i,), mask))

    def load(self, buffer: Buffer) -> Value:
        """The value in a buffer, in a register."""
        if not buffer.shape:
            return self.places.load(buffer, (), TRUE)
        return self._side_by_side(
            buffer.shape[0].number or 0, lambda i, mask: self.places.load(buffer, (i,), mask)
        )

    def _side_by_side(self, size: Size, value: Any) -> Value:
        found: list[Value] = []

        def take(i: Index, mask: Value) -> Sequence[Value]:
            found.append(value(i, mask))
            return ()

        with self.b.side_by_side(WIDTH):
            self.places.lanes(self.size(size), (), take)
            return self.b.widen(found[0])

    def vectorised(self, *nodes: Node) -> AbstractContextManager[None]:
        """A context in which as many places of nodes stand side by side as their dtypes allow."""
        return self.b.side_by_side(width_of(nodes, self.places.buffers, self.places.numbers))

    def given(self, node: Node) -> Value | Buffer:
        """An operand of a loop, branch or routine: its buffer, or the register."""
        return self.number(node) if is_register(node.type) else self.lying(node)

    def lying(self, node: Node) -> Buffer:
        """An operand in memory."""
        if node not in self.places.buffers:
            if node in self.places.numbers or not node.inputs:
                self.places.buffers[node] = buffer = self.new(node)
                self.copy(node, [buffer], stored=False)
            else:
                self.nest([node], {})
        return self.places.buffers[node]

    def know(self, params: Sequence[Node], values: Sequence[Value | Buffer]) -> None:
        """Params, or results of loops, with their values."""
        for param, value in zip(params, values, strict=True):
            if isinstance(value, Buffer):
                self.places.buffers[param] = value
            else:
                self.places.numbers[param] = value

    def copy(self, node: Node, buffers: Sequence[Buffer], stored: bool = True) -> None:
        """A value put into buffers, for a step or after it."""
        with self.sharing.aside():
            self.store(node, buffers, stored)

    def store(self, node: Node, buffers: Sequence[Buffer], stored: bool = True) -> None:
        """A value put into buffers, place by place."""

        def place(index: At, mask: Value) -> None:
            value = self.places.at(node, index, mask, stored)
            for buffer in buffers:
                self.places.store(buffer, index, mask, value)

        if buffers:
            with self.vectorised(node):
                self.everywhere(node.type.shape, place)

    def everywhere(self, shape: Shape, place: Callable[[At, Value], None]) -> None:
        """place(index, mask) at all places of a shape, which threads share."""
        everywhere = partial(self.places.everywhere, shape, place)
        self.sharing.over(partial(self.program.count, shape), everywhere)

    def check(self, node: Node, indexed: Node) -> None:
        """Leave if a position of a node is outside of the axis it indexes.

        Those that loops do not change are looked at in their first steps.
        """
        b, axes = self.b, node.attrs["axes"]
        for axis, positions in zip(axes, node.inputs[-len(axes) :], strict=True):
            size, there = indexed.type.shape[axis], self.places.buffers.get(positions)

            def refuse(
                index: At, mask: Value, axis: int = axis, size: Size = size, x: Node = positions
            ) -> None:
                at = position(self.places, x, index, mask)
                _, wrong = counted(self.places, at, size)
                wrong, n = b.both(wrong, mask), self.size(size)
                self.program.failures.outside(b, wrong, node, axis, at, n)

            def look(
                shape: Shape = positions.type.shape, refuse: Place = refuse
            ) -> Sequence[Value]:
                self.everywhere(shape, refuse)
                return ()

            if there is None:
                look()
            else:
                level = max(there.level, there.pointer.level, self.size(size).level)
                b.branch(self.program.failures.is_first(b, level), look)
