"""Products of a matrix in memory with a vector, by routines that are compiled once in a process.

Eight rows are read at once. Of a product with each row, lanes run along the rows, and the totals of
all eight are added up as one vector; to add up rows, eight of them go to the lanes of the result in
one pass. Sums are compensated after each block, as those of `folds` are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from graphcore.ir.node import Node
from graphcore.ir.sizes import Shape, Size, count, unknowns
from graphcore.ir.types import TensorType
from graphcore.ops import tensor as t

from .arithmetic import kind_of, literal
from .builder import TRUE, Builder, Value, integer
from .entrance import Address
from .folds import BLOCK, rounding
from .functions import compiled, module
from .machine import Code, once
from .matrices import each
from .places import Places, is_register
from .products import Operand, operand, start
from .results import finished
from .rooms import BYTES, Index, Room

if TYPE_CHECKING:
    from .writer import Homes, Writer

LANES = {"f64": 8, "f32": 16}
ROWS = 8
"""How many rows are read at once."""
STRIP = 24 * ROWS
"""How many rows are added up before their sum joins the total."""
SMALL = 1024
"""The most values of a matrix of known sizes for which loops of the kernel's own are faster."""


class Product(NamedTuple):
    """A matrix in memory, the room that it lies in, and the vector that it is multiplied with."""

    matrix: Operand
    room: Room
    vector: Node


def product_by_routine(w: Writer, roots: Sequence[Node], homes: Homes) -> bool:
    """Whether a nest is one product of a matrix and a vector by a routine; it is stored then."""
    given = in_memory(w, roots[0]) if len(roots) == 1 else None
    if given is not None:
        (root,) = roots
        room = w.home(root)
        store_product(w, root, given, room)
        finished(w, root, homes, room)
        if is_register(root.type):
            w.places.numbers[root] = w.load(w.places.rooms.pop(root))
    return given is not None


def in_memory(w: Writer, root: Node) -> Product | None:
    """The product of a matrix and a vector that a root is, if a routine computes it."""
    if root.op is not t.matvec or kind_of(root) not in LANES:
        return None
    x, vector = root.inputs
    matrix = operand(x, w.places.rooms)
    room, places = w.places.rooms.get(matrix.base), count(x.type.shape[-2:])
    if room is None or room.skipped or {room.kind, kind_of(vector)} != {kind_of(root)}:
        return None
    if isinstance(places, int) and places <= SMALL:
        return None
    if any(unknowns(n) & w.program.found for n in x.type.shape):
        return None
    return Product(matrix, room, vector)


def store_product(w: Writer, root: Node, given: Product, into: Room) -> None:
    """Store a product of a matrix and a vector, one of a batch after the other."""
    b, kind, matrix, taken = w.b, into.kind, given.matrix, list[Any]()

    def memory(type: TensorType) -> Value:
        new, pointer = w.program.take(type)
        taken.append(new)
        return pointer

    vector = w.places.rooms.get(given.vector)
    if vector is None or vector.skipped:
        vector = w.room(given.vector.type, memory(given.vector.type))
        w.copy(given.vector, [vector])
    x, length = root.inputs[0].type.shape, root.type.shape[-1]
    rows, columns = [w.size(n) for n in (reversed(x[-2:]) if matrix.turned else x[-2:])]
    apart = w.size(matrix.apart)
    of_vector, of_result = rows_apart(given.vector.type.shape), rows_apart(root.type.shape)
    if matrix.turned:
        scratch = memory(TensorType(root.type.dtype, (2 * (length + LANES[kind]),)))

    def one(_: Value, index: tuple[Value, ...]) -> None:
        a = start(w, given.room, matrix.strides, index)
        v, y = start(w, vector, of_vector, index), start(w, into, of_result, index)

        def strip(first: Value) -> Sequence[Value]:
            many = b.op("sub nsw", b.call("smin", b.add(first, integer(STRIP)), rows), first)
            part = moved(b, a, b.mul(first, apart), kind)
            if matrix.turned:
                begun = b.op("icmp ne", first, integer(0))
                call("down", part, moved(b, v, first, kind), scratch, many, columns, apart)
                call("join", scratch, y, columns, begun)
            else:
                call("across", part, v, moved(b, y, first, kind), many, columns, apart)
            if b.signals.in_nests:
                b.spend(b.mul(many, columns))
            return ()

        # Without rows there is a strip of none, whose sum is 0.
        w.places.looped(integer(0), b.call("smax", rows, integer(1)), STRIP, (), strip,
                        looks=b.signals.in_nests)  # fmt: skip

    def call(name: str, *values: Value) -> None:
        routine = w.program.shared((name, kind), Address(code(name, kind)[name]))
        b.do(f"call void {routine.text}({', '.join([x.typed for x in values])})")

    each(w, x[:-2], one)
    for each_taken in taken:
        w.program.give_back(each_taken)


def rows_apart(shape: Shape) -> tuple[Size, ...]:
    """How many values there are from one place to the next, for each axis but the last."""
    return tuple([count(shape[axis + 1 :]) for axis in range(len(shape) - 1)])


def moved(b: Builder, pointer: Value, places: Value, kind: str) -> Value:
    """The address so many places on."""
    bytes = b.mul(places, integer(BYTES[kind]))
    text = f"getelementptr i8, {pointer.typed}, {bytes.typed}"
    return b.emit("ptr", 0, text, pointer, bytes)


# ---- the routines


@once
def code(name: str, kind: str) -> Code:
    """The machine code of a routine for values of a kind."""
    return compiled(WRITTEN[name](kind), name)


def size(name: str) -> Value:
    """A size that is given to a routine."""
    return Value(f"%{name}", "i64")


def across(kind: str) -> str:
    """The IR of `across`: y = x v. A row has the same sum, however many rows there are."""
    b = Builder(LANES[kind])
    p, rows, columns, apart = Places(b, integer), size("rows"), size("columns"), size("apart")
    x = Room(Value("%x", "ptr"), (rows, apart), kind)
    v, y = Room(Value("%v", "ptr"), (columns,), kind), Room(Value("%y", "ptr"), (rows,), kind)
    several, zero = BLOCK * b.width, literal(0.0, kind)

    def group(many: int, first: Value) -> Sequence[Value]:
        places = [Index(b.add(first, integer(k))) for k in range(many)]

        def block(j: Value, total: Value, lost: Value) -> Sequence[Value]:
            def term(at: Index, mask: Value, *sums: Value) -> Sequence[Value]:
                right = p.load(v, (at,), mask)
                pairs = zip(places, sums, strict=True)
                return [b.call("fma", p.load(x, (i, at), mask), right, sum) for i, sum in pairs]

            end = b.call("smin", b.add(j, integer(several)), columns)
            sums = p.run(j, end, [b.widen(zero)] * many, term, several)
            return joined(b, total, lost, in_lanes(b, sums))

        none = b.widen(zero, many) if many > 1 else zero
        total, _ = p.looped(integer(0), columns, several, (none, none), block)
        with b.side_by_side(many):
            p.store(y, (Index(first, integer(many > 1)),), TRUE, total)
        return ()

    def together() -> Sequence[Value]:
        """Those of the last group that come before it are computed again."""
        last = b.sub(rows, integer(ROWS))
        p.looped(integer(0), rows, ROWS, (), lambda i: group(ROWS, b.call("smin", i, last)))
        return ()

    def alone() -> Sequence[Value]:
        p.looped(integer(0), rows, 1, (), partial(group, 1))
        return ()

    b.branch(b.op("icmp sge", rows, integer(ROWS)), together, alone)
    b.do("ret void")
    return module(f"define void @across({READ} %x, {READ} %v, {WRITTEN_TO} %y, {SIZES})", b)


def down(kind: str) -> str:
    """The IR of `down`: part = xᵀ u, where `part` has a whole number of vectors."""
    b = Builder(LANES[kind])
    p, rows, columns, apart = Places(b, integer), size("rows"), size("columns"), size("apart")
    x = Room(Value("%x", "ptr"), (rows, apart), kind)
    u, part = Room(Value("%u", "ptr"), (rows,), kind), sums_of(b, "part", kind)
    zero = b.widen(literal(0.0, kind))

    def add(many: int, first: Value) -> Sequence[Value]:
        places = [Index(b.add(first, integer(k))) for k in range(many)]
        factors = [b.widen(p.load(u, (i,), TRUE)) for i in places]
        half = -(-many // 2)

        def columns_of(j: Index, mask: Value) -> Sequence[Value]:
            sums = [zero] * min(many, 2)
            for k, (i, factor) in enumerate(zip(places, factors, strict=True)):
                sums[k // half] = b.call("fma", p.load(x, (i, j), mask), factor, sums[k // half])
            total = sums[0] if many == 1 else b.op("fadd", *sums)
            p.store(part, (j,), TRUE, b.op("fadd", p.load(part, (j,), TRUE), total))
            return ()

        p.lanes(columns, (), columns_of)
        return ()

    p.lanes(columns, (), lambda j, mask: stored(p, part, j, zero))
    whole = b.op("and", rows, integer(-ROWS))
    p.looped(integer(0), whole, ROWS, (), partial(add, ROWS))
    p.looped(whole, rows, 1, (), partial(add, 1))
    b.do("ret void")
    return module(f"define void @down({READ} %x, {READ} %u, {WRITTEN_TO} %part, {SIZES})", b)


def join(kind: str) -> str:
    """The IR of `join`: y becomes `part`, or their sum where it has `begun`.

    Behind `part` lies what rounding has added to y.
    """
    b = Builder(LANES[kind])
    p, columns = Places(b, integer), size("columns")
    part = sums_of(b, "part", kind)
    lost = part._replace(pointer=moved(b, part.pointer, part.shape[0], kind))
    y, zero = Room(Value("%y", "ptr"), (columns,), kind), b.widen(literal(0.0, kind))

    def first(j: Index, mask: Value) -> Sequence[Value]:
        stored(p, lost, j, zero)
        p.store(y, (j,), mask, p.load(part, (j,), TRUE))
        return ()

    def later(j: Index, mask: Value) -> Sequence[Value]:
        before, sum = p.load(y, (j,), mask), p.load(part, (j,), TRUE)
        total, left = joined(b, before, p.load(lost, (j,), TRUE), sum)
        stored(p, lost, j, left)
        p.store(y, (j,), mask, total)
        return ()

    b.branch(
        Value("%begun", "i1"),
        lambda: p.lanes(columns, (), later),
        lambda: p.lanes(columns, (), first),
    )
    b.do("ret void")
    given = f"{WRITTEN_TO} %part, {WRITTEN_TO} %y, i64 %columns, i1 %begun"
    return module(f"define void @join({given})", b)


WRITTEN = {"across": across, "down": down, "join": join}
READ, WRITTEN_TO = "ptr noalias readonly", "ptr noalias"
SIZES = "i64 %rows, i64 %columns, i64 %apart"


def sums_of(b: Builder, name: str, kind: str) -> Room:
    """A vector of sums of columns, in a whole number of vectors."""
    most = b.op("add", size("columns"), integer(b.width - 1))
    return Room(Value(f"%{name}", "ptr"), (b.op("and", most, integer(-b.width)),), kind)


def stored(p: Places, room: Room, i: Index, x: Value) -> Sequence[Value]:
    """Put lanes into a whole number of vectors."""
    p.store(room, (i,), TRUE, x)
    return ()


def joined(b: Builder, total: Value, lost: Value, sum: Value) -> Sequence[Value]:
    """A total with another sum, and what rounding has added to it."""
    right = b.op("fsub", sum, lost)
    new = b.op("fadd", total, right)
    return [new, rounding(b, total, right, new)]


def in_lanes(b: Builder, sums: Sequence[Value]) -> Value:
    """The totals of some vectors, each in a lane; of a single one a number.

    The halves of the lanes of a vector are added again and again, as `across` of folds does.
    """
    found, lanes = [*sums], sums[0].wide
    while lanes > 1:
        lanes //= 2
        pairs = zip(found[::2], found[1::2], strict=True) if len(found) > 1 else [(found[0], None)]
        found = [halves_added(b, lanes, *pair) for pair in pairs]
    return found[0] if len(sums) > 1 else b.lane(found[0], 0)


def halves_added(b: Builder, lanes: int, x: Value, y: Value | None) -> Value:
    """Vectors in which so many lanes have been added to those before them, and lie together."""
    places = range(x.wide if y is None else 2 * x.wide)
    low, high = [[k for k in places if k // lanes % 2 == side] for side in (0, 1)]
    return b.op("fadd", b.shuffle(x, low, y), b.shuffle(x, high, y))
