"""Dims kept by an index without a name, where a product of all pairs is nearly surely a mistake.

`alpha[county_idx]` has the dim `county` again, so `y - alpha[county_idx]` pairs each observation
with each index. This is the meaning; a warning says so where the two are of one length.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from graphcore.ir import Node
from graphcore.ir.errors import GraphWarning
from graphcore.ir.provenance import Origin, public_call, user_line

_indexed: WeakKeyDictionary[Node, dict[str, Origin]] = WeakKeyDictionary()
"""For elements at positions without a name: the line of the index, by the dim that they keep.

A table beside the nodes, as positions that are named on purpose may make the same node.
"""
_said: dict[Any, Any] = {}
"""The warnings that have been given, as Python keeps them for each module."""


def keep_dims(made: Node, dims: Iterable[str]) -> None:
    """Note that `made` has kept these dims, and no others, at positions without names."""
    if kept := dict.fromkeys(dims, user_line()):
        _indexed[made] = kept
    else:
        _indexed.pop(made, None)


def warn_of_pairs(nodes: Sequence[Node | None]) -> None:
    """Warn where a kept dim meets another dim of its length, which its own operand lacks."""
    if not _indexed or len(nodes) < 2:
        return
    xs = [node for node in nodes if node is not None]
    for x in xs:
        for y in xs:
            for dim, size in zip(x.type.dims, x.type.shape, strict=True):
                if not isinstance(size, int) or size < 2 or dim in y.type.dims:
                    continue
                for other, length in zip(y.type.dims, y.type.shape, strict=True):
                    if length == size and other not in x.type.dims:
                        warn_if_kept(x, dim, other)


def warn_if_kept(x: Node, dim: str, other: str) -> None:
    """Warn if all that `dim` of `x` comes from are indices without a name."""
    if (line := unnamed_index_of(x, dim)) is None:
        return
    size = x.type.size(dim)
    said = (
        f"{public_call()}: pairs each element along '{other}' with each along '{dim}', "
        f"which the index without a name at {line} has kept; both have size {size}\n"
        f'  cure: name the index, {{"{dim}": ("{other}", index)}}, to take one element for each '
        f"along '{other}'; if you mean all pairs, name it '{dim}'"
    )
    at = user_line()
    warnings.warn_explicit(said, GraphWarning, at.file, at.line, registry=_said)


def unnamed_index_of(x: Node, dim: str) -> Origin | None:
    """The line of an index without a name that `dim` comes from, None if it has another source."""
    size, found = x.type.size(dim), None
    seen, todo = {x}, [x]
    while todo:
        node = todo.pop()
        if dim in (kept := _indexed.get(node, {})):
            found = kept[dim]
            continue
        named = [y for y in node.inputs if dim in (y.type.dims or ())]  # several values have none
        inner = [y for y in named if y.type.size(dim) == size]
        if not inner:
            return None
        todo += [y for y in inner if y not in seen]
        seen.update(inner)
    return found
