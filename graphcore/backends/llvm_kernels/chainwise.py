"""Writes the chains that chains.py plans: loops over some rows at a time, around all steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from operator import or_

from graphcore.ir import Node, TensorType
from graphcore.ir.sizes import count, minimum

from .addressing import BYTES, Buffer
from .builder import Value, integer
from .chains import ROWS
from .places import At
from .products import operand, some_rows_of_product, work_of_product
from .results import changed
from .rows import Chain, Rows
from .rowwise import buffers_of, each_of, one_row_of, own_buffers, some_rows, work_of
from .writer import Homes, Writer


def some_rows_at_a_time(w: Writer, step: Chain, homes: Homes) -> None:
    """The steps of a chain for some rows, then for the next ones: as many, or one less."""
    p, b = w.places, w.b
    *outer, last = map(w.size, step.axes)
    buffers = buffers_of_chain(w, step, homes)
    for node in step.steps:
        if isinstance(node, Node):
            for base in [operand(x).base for x in node.inputs]:
                if base not in step.made:
                    w.lying(base)
    blocks = b.op("udiv", b.add(last, integer(ROWS - 1)), integer(ROWS))

    def begin(number: Value) -> Value:
        """Where a block begins: they are as long as each other, but for one row."""
        return b.op("udiv", b.mul(number, last), blocks)

    own = buffers

    def in_turn(at: At) -> None:
        def block(number: Value) -> Sequence[Value]:
            first, end = begin(number), begin(b.add(number, integer(1)))
            here = {x: [seen_from(w, step, x, each, first) for each in own[x]] for x in own}
            for part in step.steps:
                if isinstance(part, Rows):
                    some_rows(w, part, at, first, end, here)
                else:
                    index, (buffer, *_) = [i.base for i in at], here[part]
                    some_rows_of_product(w, part, buffer, index, first, b.sub(end, first))
                    p.buffers[part] = changed(w, buffer)
            return ()

        p.looped(integer(0), blocks, 1, (), block)

    def chain() -> None:
        nonlocal own
        parts = [one_row_of(part) for part in step.steps if isinstance(part, Rows)]
        own = own_buffers(w, buffers, reduce(or_, parts, some_rows_of(step)))
        each_of(w, outer, in_turn)

    w.sharing.over(partial(work_of_chain, w, step), chain, once=True)
    for x, (buffer, *others) in buffers.items():
        p.buffers[x] = buffer._replace(level=b.level)
        if others and x in step.steps:
            w.copy(x, others)


def buffers_of_chain(w: Writer, step: Chain, homes: Homes) -> Homes:
    """Buffers for the values of a chain: of one row, of some rows, or of all."""
    given = homes | {x: [w.new(x, type)] for x, type in some_rows_of(step).items()}
    buffers: dict[Node, list[Buffer]] = {}
    for part in step.steps:
        if isinstance(part, Rows):
            buffers |= buffers_of(w, part, given)
        else:
            buffers[part] = given.get(part) or [w.new(part)]
    return buffers


def some_rows_of(step: Chain) -> dict[Node, TensorType]:
    """The values that only steps of a chain read, and the type of some rows of each."""
    k, rows = len(step.axes), minimum(ROWS, step.axes[-1])
    own = [x for x in step.made if x in step.own]
    return {x: TensorType(x.type.dtype, (rows, *x.type.shape[k:])) for x in own}


def work_of_chain(w: Writer, step: Chain) -> Value:
    """About how much a chain computes."""
    nests = [roots for part in step.steps if isinstance(part, Rows) for roots in part.nests]
    products = [work_of_product(w, part) for part in step.steps if isinstance(part, Node)]
    return reduce(w.b.add, [*products, *([work_of(w, nests)] if nests else [])])


def seen_from(w: Writer, step: Chain, x: Node, buffer: Buffer, first: Value) -> Buffer:
    """A buffer of some rows as part of one for all rows of a matrix, of which they are the next."""
    if x not in step.own:
        return buffer
    b, k = w.b, len(step.axes)
    before = b.mul(first, w.size(count(x.type.shape[k:])))
    bytes = b.sub(integer(0), b.mul(before, integer(BYTES[buffer.kind])))
    text = f"getelementptr i8, {buffer.pointer.typed}, {bytes.typed}"
    pointer = b.emit("ptr", 0, text, buffer.pointer, bytes)
    shape = tuple(map(w.size, x.type.shape[k - 1 :]))
    return buffer._replace(pointer=pointer, shape=shape, skipped=k - 1, readable=before)
