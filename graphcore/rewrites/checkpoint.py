"""Loops that save only some of their carries: the same steps, in chunks of chunks."""

from __future__ import annotations

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import Size
from graphcore.ir.types import TensorType
from graphcore.ops import control, leaf, tensor
from graphcore.ops.control import Loop, all_steps
from graphcore.ops.leaf import values

from .plain import reshape, take_range


def in_chunks(scan: Node) -> Node:
    """A call of a loop over chunks of the first checkpoint's length, and of the rest one by one.

    A pullback of the outer loop saves the carry that each chunk starts from, and runs the chunk
    again where it needs the other carries.
    """
    chunk, *inner = scan.attrs["checkpoint"]
    length = scan.attrs["length"]
    whole = length // chunk
    params = tuple(leaf.param(f"operand {i}", x.type) for i, x in enumerate(scan.inputs))
    loop = Loop.of(scan)
    given = loop.params.split(params)
    n, covered, left = len(given.carries), whole * chunk, length - whole * chunk
    attrs = scan.attrs | {"checkpoint": tuple(inner)}

    def over_chunks(start: tuple[Node, ...]) -> list[Node]:
        """The steps that fill whole chunks."""
        sequences = [
            reshape(
                x if left == 0 else take_range(x, 0, 0, covered), (whole, chunk, *x.type.shape[1:])
            )
            for x in given.sequences
        ]
        chunks = attrs | {"body": chunk_of(loop, chunk, attrs), "length": whole, "checkpoint": ()}
        return values(control.scan(*start, *sequences, *given.captured, **chunks))

    def one_by_one(start: tuple[Node, ...]) -> list[Node]:
        """The steps after the last whole chunk."""
        sequences = [take_range(x, 0, covered, left) for x in given.sequences]
        return values(control.scan(*start, *sequences, *given.captured, **attrs | {"length": left}))

    parts = [over_chunks] if left == 0 else [over_chunks, one_by_one]
    made: list[list[Node]] = []
    for part in reversed(parts) if scan.attrs["reverse"] else parts:
        made.append(part(tuple(made[-1][:n]) if made else given.carries))
    last = made[-1][:n]
    in_order = reversed(made) if scan.attrs["reverse"] else made
    columns = zip(*[part[n:] for part in in_order], strict=True)
    steps = [join_steps(column, y) for column, y in zip(columns, scan.type.items[n:], strict=True)]
    return control.call(*scan.inputs, body=Graph(params, (*last, *steps)))


def chunk_of(loop: Loop, chunk: Size, attrs: dict[str, object]) -> Graph:
    """The body of the loop over chunks: the loop over one of them."""
    params = tuple(
        leaf.param(x.attrs["name"], all_steps(x.type, None, chunk))
        if x in loop.params.sequences
        else x
        for x in loop.params.all
    )
    inner = control.scan(*params, **attrs | {"length": chunk})
    return Graph(params, tuple(values(inner)))


def join_steps(parts: tuple[Node, ...], type: TensorType) -> Node:
    """The results of all steps, those of chunks in one axis again."""
    chunks, *rest = parts
    flat = reshape(chunks, (chunks.type.shape[0] * chunks.type.shape[1], *chunks.type.shape[2:]))
    return reshape(tensor.concat(flat, *rest, axis=0) if rest else flat, type.shape)
