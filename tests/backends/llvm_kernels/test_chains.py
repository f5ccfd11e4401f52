"""Which products and nests are computed for some rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphcore.backends.llvm_kernels.planning import best_plan
from graphcore.backends.llvm_kernels.rows import Chain

from .native import needs_machine_code
from .programs import HEADS, Program, attention, causal, other_rows

pytestmark = needs_machine_code


def planned(make: Callable[..., Any], **known: int) -> list[Chain]:
    """The chains of a program whose dims have these sizes."""
    axes = [axes.split() for axes in HEADS]
    named = [" ".join(f"{x}={known[x]}" if x in known else x for x in one) for one in axes]
    graph = Program(make, tuple(named), ()).compiled("float64").passes[-1].graph
    return [step for step in best_plan(graph, set(graph.params)).steps if isinstance(step, Chain)]


def test_scores_of_attention_are_never_stored_whole() -> None:
    """Scores, and exponentials over their sums; rows alone have those of one row as well."""
    for sizes in ({"head": 4, "query": 1024, "key": 1024, "d": 32, "e": 32}, {}):
        (chain,) = planned(attention, **sizes)
        assert len(chain.steps) == 3
        assert len(chain.own) == 2
        assert len(planned(causal, **sizes)) == 1


def test_where_a_chain_does_not_pay() -> None:
    few, wide = {"d": 32, "e": 32}, {"head": 1, "d": 32, "e": 32}
    assert not planned(attention, head=4, query=64, key=64, **few)  # all lies in the cache
    assert not planned(attention, query=10**6, key=20, **wide)  # as wide as the operands
    found = planned(other_rows, query=2000, key=2000, **wide)
    assert not any(len(chain.steps) > 2 for chain in found)
