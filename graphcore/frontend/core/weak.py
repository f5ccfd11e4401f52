"""Weak tensors: values in the body of a loop that starts from Python numbers.

They promote as Python numbers do, and so do the results of elementwise functions of them alone. So
one trace shows which dtype a body computes from a number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from graphcore.ir import BOOL, DType, Node
from graphcore.ir.provenance import inheriting
from graphcore.ops import elementwise

from .base import Base, wrap

NumberKind = DType | type[int] | type[float] | type[complex]
KINDS: dict[str, NumberKind] = {"b": BOOL, "i": int, "f": float, "c": complex}
"""The Python numbers that are weak like tensors of a kind."""


class Call(NamedTuple):
    """The function and the operands that computed a weak tensor, to compute it again."""

    function: Callable[..., Any]
    operands: tuple[Any, ...]

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the operands that are tensors."""
        return [x.node for x in self.operands if isinstance(x, Base)]


class _Traced(threading.local):
    def __init__(self) -> None:
        self.weak: dict[Node, Call | None] = {}
        self.casts: set[Node] = set()


_traced = _Traced()


@contextmanager
def tracing() -> Iterator[None]:
    """Tensors that become weak in this block are no longer weak after it."""
    weak = dict(_traced.weak)
    try:
        yield
    finally:
        _traced.weak = weak
        if not weak:
            _traced.casts = set()


def kind_of(node: Node) -> NumberKind | None:
    """The kind of number that a weak tensor promotes as, or None for one that is not weak."""
    return KINDS[node.type.dtype.kind] if node in _traced.weak else None


def any_weak() -> bool:
    """Whether the body of a loop that starts from numbers is being traced."""
    return bool(_traced.weak)


def mark(node: Node, call: Call | None = None) -> Node:
    """`node`, which is weak from now on; `call` computes it again from other operands."""
    _traced.weak.setdefault(node, call)
    return node


def mark_cast(node: Node) -> Node:
    """`node`, the cast of a weak tensor to the dtype of the operands that it met."""
    _traced.casts.add(node)
    return node


def on_other_params(roots: Sequence[Node], new: Mapping[Node, Node]) -> list[Node] | None:
    """`roots` computed from params of other types, or None where a new trace may differ.

    Weak tensors are computed anew. Other elementwise results must keep their dtype, and operands of
    all other ops their type. A change of the kind of number needs a new trace, as functions may
    depend on it.
    """
    if any(old.type.dtype.kind != param.type.dtype.kind for old, param in new.items()):
        return None
    done = dict(new)
    stack = list(roots)
    while stack:
        node = stack[-1]
        call = _traced.weak.get(node)
        needed = node.inputs if call is None else call.nodes
        if node in done:
            stack.pop()
        elif waiting := [x for x in needed if x not in done]:
            stack.extend(waiting)
        else:
            with inheriting(node.origin):
                changed = on_others(node, call, done)
            if changed is None:
                return None
            done[node] = changed
    return [done[root] for root in roots]


def on_others(node: Node, call: Call | None, done: Mapping[Node, Node]) -> Node | None:
    """One node computed from the new nodes of its operands, or None."""
    if call is not None:
        xs = [wrap(done[x.node]) if isinstance(x, Base) else x for x in call.operands]
        made: Node = call.function(*xs).node
        return made
    inputs = tuple([done[x] for x in node.inputs])
    if inputs == node.inputs:
        return node
    if node in _traced.casts:
        return inputs[0] if inputs[0].type.dtype == node.type.dtype else None
    if node.op.dialect == "control" and _traced.casts:
        return None
    if node.op.dialect == "elementwise" and node.op is not elementwise.cast:
        new = Node(node.op, inputs, node.attrs)
        return new if node.type.dtype == new.type.dtype else None
    same = all(x.type == y.type for x, y in zip(node.inputs, inputs, strict=True))
    return Node(node.op, inputs, node.attrs) if same else None
