"""The buffers of results that routines write; each change of the values is a version."""

from __future__ import annotations

from graphcore.ir.node import Node

from .rooms import Room
from .writer import Homes, Writer


def changed(w: Writer, room: Room) -> Room:
    """A room after something has been written into it."""
    w.b.names += 1
    return room._replace(level=w.b.level, version=w.b.names)


def finished(w: Writer, node: Node, homes: Homes, room: Room) -> None:
    """Make the room of a node known, and copy it to where else the result goes."""
    w.places.rooms[node] = changed(w, room)
    w.copy(node, homes.get(node, ())[1:])
