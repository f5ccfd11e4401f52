"""Matrices that are stored transposed, by a routine that is compiled once in a process.

Written out in each kernel, tiles of eight rows would be a third of the text of some.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from graphcore.ir import Node
from graphcore.ops import tensor as t

from .addressing import BYTES, Buffer, Index
from .builder import PARTS, TRUE, WIDTH, Builder, Value, integer
from .elementary import compiled, module
from .entrance import Address
from .machine import Code, cached
from .places import Places
from .squares import transposed
from .walks import transposed_along
from .writer import Homes, Writer


def transposed_by_routine(w: Writer, roots: Sequence[Node], buffers: Homes) -> list[Node]:
    """Store the transposes of what lies in memory; the roots of a nest that are left to it."""
    rest = []
    for root in roots:
        given = buffer_to_transpose(w, root)
        if given is not None:  # code for long nests does not call it, but has the same table
            routine = w.program.shared("transpose", Address(code()["transpose"]))
        if given is None or w.b.signals.in_nests:
            rest.append(root)
        else:
            transpose(w, root, given, buffers[root], routine)
            w.places.buffers[root] = buffers[root][0]._replace(level=w.b.level)
    return rest


def buffer_to_transpose(w: Writer, root: Node) -> Buffer | None:
    """Where the operand of a stored transpose lies, if the routine can transpose it."""
    if root.op is not t.transpose or transposed_along(w.places, [root]) is None:
        return None
    (x,) = root.inputs
    of = x.inputs[0] if x.op in (t.reshape, t.pack) and x not in w.places.buffers else x
    buffer = w.places.buffers.get(of)
    if buffer is None or buffer.skipped or buffer.kind in PARTS or BYTES[buffer.kind] != WIDTH:
        return None
    return buffer._replace(shape=tuple(map(w.size, x.type.shape)))


def transpose(w: Writer, root: Node, given: Buffer, into: Sequence[Buffer], routine: Value) -> None:
    """Store a transpose, matrix by matrix; `given` is where its operand lies."""
    p, b, perm = w.places, w.b, root.attrs["perm"]
    last = len(perm) - 1
    rows, where = perm[-1], perm.index(last)

    def matrices(at: tuple[Index, ...]) -> Sequence[Value]:
        axis = len(at)
        if axis == last:
            whole = (*at, Index(integer(0)))
            for buffer in into:
                ends = [
                    start(p, given, whole),
                    start(p, buffer, tuple([whole[k] for k in perm])),
                    given.shape[rows],
                    given.shape[last],
                    stride(b, given, rows),
                    stride(b, buffer, where),
                ]
                w.call(routine, *ends)
            return ()
        if axis == rows:
            return matrices((*at, Index(integer(0))))
        return p.each(given.shape[axis], (), lambda i: matrices((*at, i)), 0)

    matrices(())


def start(p: Places, buffer: Buffer, at: Sequence[Index]) -> Value:
    """The address of a place."""
    offset = p.place(at, buffer.shape).base
    text = f"getelementptr i64, {buffer.pointer.typed}, {offset.typed}"
    return p.b.emit("ptr", 0, text, buffer.pointer, offset)


def stride(b: Builder, buffer: Buffer, axis: int) -> Value:
    """How many values there are from a place to the next one of an axis."""
    found = integer(1)
    for size in buffer.shape[axis + 1 :]:
        found = b.mul(found, size)
    return found


@cached
def code() -> Code:
    """The machine code of the routine."""
    return compiled(transpose_text(), "transpose")


def transpose_text() -> str:
    """The IR of `transpose`: y[j, i] = x[i, j], for values of eight bytes.

    The rows of x, and those of y, are so many values apart.
    """
    b = Builder()
    p = Places(b, integer)
    rows, columns, of_x, of_y = [
        Value(f"%{name}", "i64") for name in ("rows", "columns", "of_x", "of_y")
    ]
    x = Buffer(Value("%x", "ptr"), (rows, of_x), "i64")
    y = Buffer(Value("%y", "ptr"), (columns, of_y), "i64")
    last = b.sub(rows, integer(1))

    def down(i: Value) -> Sequence[Value]:
        """The last row is read again where there are not so many."""
        several = [Index(b.call("smin", b.add(i, integer(k)), last)) for k in range(WIDTH)]
        inside = p.left(rows, i)

        def across(j: Value) -> Sequence[Value]:
            mask, run = p.left(columns, j), Index(j, integer(1))
            tile = [p.load(x, (row, run), mask) for row in several]
            found = [*enumerate(transposed(b, tile))]

            def stored(k: int, column: Value, mask: Value) -> Sequence[Value]:
                p.store(y, (Index(b.add(j, integer(k))), Index(i, integer(1))), mask, column)
                return ()

            def whole() -> Sequence[Value]:
                return [x for k, column in found for x in stored(k, column, TRUE)]

            def part() -> Sequence[Value]:
                for k, column in found:
                    there = b.op("icmp slt", b.add(j, integer(k)), columns)
                    b.branch(there, partial(stored, k, column, inside))
                return ()

            least = b.call("smin", b.sub(rows, i), b.sub(columns, j))
            b.branch(b.op("icmp sge", least, integer(WIDTH)), whole, part)
            return ()

        p.looped(integer(0), columns, WIDTH, (), across)
        return ()

    p.looped(integer(0), rows, WIDTH, (), down)
    b.do("ret void")
    given = "ptr noalias readonly %x, ptr noalias %y"
    sizes = "i64 %rows, i64 %columns, i64 %of_x, i64 %of_y"
    return module(f"define void @transpose({given}, {sizes})", b)
