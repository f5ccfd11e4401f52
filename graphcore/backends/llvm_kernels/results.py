"""The buffers of results that routines write; each change of the values is a version."""

from __future__ import annotations

from graphcore.ir import Node

from .addressing import Buffer
from .writer import Homes, Writer


def changed(w: Writer, buffer: Buffer) -> Buffer:
    """A buffer after something has been written into it."""
    w.b.names += 1
    return buffer._replace(level=w.b.level, version=w.b.names)


def finished(w: Writer, node: Node, homes: Homes, buffer: Buffer) -> None:
    """Make the buffer of a node known, and copy it to where else the result goes."""
    w.places.buffers[node] = changed(w, buffer)
    w.copy(node, homes.get(node, ())[1:])
