"""Contracts: the ops and names that a stage may contain, checked between passes."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import ContractError
from .graph import Graph
from .node import OPS
from .op import Op
from .types import TensorType, TupleType, Type


class Contract:
    """Ops of the dialects in `allowed`, and single ops there, `but` not some; names if `named`."""

    __slots__ = ("_known", "allowed", "but", "named")

    def __init__(self, *allowed: str | Op, but: Iterable[Op] = (), named: bool = False) -> None:
        self.allowed, self.but, self.named = frozenset(allowed), frozenset(but), named
        self._known: set[Op] = set()  # ops that were found to be allowed

    def allows(self, op: Op) -> bool:
        """Whether nodes of an op may stand in the stage."""
        return (op.dialect in self.allowed or op in self.allowed) and op not in self.but

    def ops(self) -> set[Op]:
        """Every op that may stand in the stage."""
        return set(filter(self.allows, OPS.values()))

    def breach(self, graph: Graph) -> str | None:
        """The first node of `graph` that does not obey, in words; None if all do."""
        new = graph.ops() - self._known
        if forbidden := {op for op in new if not self.allows(op)}:
            node = next(node for node in graph.every_node() if node.op in forbidden)
            return f"{node!r} at {node.origin} may not stand"
        self._known |= new
        if not self.named and (named := set(filter(has_names, graph.types()))):
            node = next(node for node in graph.every_node() if node.type in named)
            return f"{node!r} at {node.origin} has dims"
        return None

    def check(self, graph: Graph, stage: str) -> None:
        """Raise ContractError unless every node of `graph` obeys."""
        if found := self.breach(graph):
            raise ContractError(f"{found} in stage {stage!r}")

    def __repr__(self) -> str:
        words = [", ".join(sorted(map(str, some))) for some in (self.allowed, self.but)]
        return " but not ".join(filter(None, words)) + "; axes have names" * self.named


def has_names(type: Type) -> bool:
    """Whether any part of a type has dims."""
    if isinstance(type, TensorType):
        return type.dims is not None
    assert isinstance(type, TupleType)
    return any(map(has_names, type.items))
