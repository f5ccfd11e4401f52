"""Contracts: the ops and names that a stage may contain, checked between passes."""

from __future__ import annotations

from .errors import ContractError
from .graph import Graph
from .types import TensorType, TupleType, Type


class Contract:
    """Only ops of `dialects`, and named axes only where `named`."""

    __slots__ = ("dialects", "named")

    def __init__(self, *dialects: str, named: bool = False) -> None:
        self.dialects, self.named = frozenset(dialects), named

    def check(self, graph: Graph, stage: str) -> None:
        """Raise ContractError unless every node of `graph` obeys."""
        forbidden = {op for op in graph.ops() if op.dialect not in self.dialects}
        if forbidden:
            node = next(node for node in graph.every_node() if node.op in forbidden)
            raise ContractError(f"{node!r} may not stand in stage {stage!r} ({node.origin})")
        if not self.named and (named := set(filter(has_names, graph.types()))):
            node = next(node for node in graph.every_node() if node.type in named)
            raise ContractError(f"{node!r} still has dims in stage {stage!r}")


def has_names(type: Type) -> bool:
    """Whether any part of a type has dims."""
    if isinstance(type, TensorType):
        return type.dims is not None
    assert isinstance(type, TupleType)
    return any(map(has_names, type.items))
