"""Digests of nodes: the same in every stage and process, different for different nodes."""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .graph import Graph
from .literal import Literal
from .names import spell_name
from .node import Node
from .size_text import text as size_text
from .sizes import Expression

_known: WeakKeyDictionary[Node, str] = WeakKeyDictionary()


def digest(node: Node) -> str:
    """The digest of one node, which is remembered as long as the node is there.

    >>> from graphcore.ops import leaf
    >>> one = leaf.iota(size=1, dtype=np.dtype(int), dims=None)
    >>> digest(one) == digest(one), len(digest(one))
    (True, 16)
    """
    if node not in _known:
        digests(Graph((), (node,)), _known)
    return _known[node]


def digests(graph: Graph, ids: MutableMapping[Node, str]) -> MutableMapping[Node, str]:
    """`ids` with the digest of each node of a graph, those of bodies as well."""
    for node in graph.nodes():
        if node not in ids:
            attrs = sorted((name, text(value, ids)) for name, value in node.attrs.items())
            said = repr((repr(node.op), [ids[x] for x in node.inputs], attrs))
            found = hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8)
            ids[node] = found.hexdigest()
    return ids


def text(value: Any, ids: MutableMapping[Node, str]) -> str:
    """An attr as text."""
    match value:
        case Graph():
            digests(value, ids)
            return f"graph({[[ids[x] for x in side] for side in (value.params, value.outputs)]})"
        case tuple():
            return f"({','.join(text(part, ids) for part in value)})"
        case str():
            return spell_name(value)
        case Expression():
            return size_text(value, spell_name)
        case Literal(array=array):
            return f"{array.dtype.str}{array.shape}{array.tobytes()!r}"
        case np.dtype():
            return value.str
    return repr(value)
