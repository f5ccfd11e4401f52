"""What passes keep, by passes that do not: each is refused, with the invariant that it breaks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graphcore.backends.invariants import INVARIANTS, verify
from graphcore.ir.errors import ContractError
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import unknown
from graphcore.ir.types import TensorType
from graphcore.ops import control, elementwise, leaf, tensor
from graphcore.rewrites import pipeline
from graphcore.rewrites.pipeline import EXPANDED, Pass

F8 = np.dtype("f8")
X = leaf.input_(name="x", dtype=F8, shape=(3,), dims=None)
ONE = leaf.input_(name="one", dtype=F8, shape=(), dims=None)


def printed(x: Node) -> Node:
    return tensor.print_(x, label="x", number=1, dims=())


def looped(update: Callable[[Node], Node], start: Node = ONE) -> Node:
    """The last value of a loop of two steps."""
    carry = leaf.param("carry", TensorType(F8))
    attrs = {"carries": 1, "sequences": 0, "length": 2, "reverse": False, "dim": None}
    return control.scan(start, body=Graph((carry,), (update(carry),)), checkpoint=(), **attrs)[0]


def called(*operands: Node, make: Callable[..., Node]) -> Node:
    params = [leaf.param(f"operand {i}", x.type) for i, x in enumerate(operands)]
    return control.call(*operands, body=Graph(tuple(params), (make(*params),)))[0]


BREAKS: dict[str, tuple[Node, Callable[[Node], tuple[Node, ...]]]] = {
    "ends: .*exp: f64": (X, lambda y: (y, elementwise.exp(y))),
    "ends: .*cast: f32": (X, lambda y: (elementwise.cast(y, dtype=np.dtype("f4")),)),
    "closed: .*named 'one' is free in <Graph: 1 params, 2 nodes": (
        looped(elementwise.exp), lambda y: (looped(lambda carry: ONE),)
    ),
    "closed: .*named 'one' is free in <Graph: 1 params": (
        X, lambda y: (tensor.expand(ONE, axes=(0,), sizes=(3,)),)
    ),
    "sizes: no node finds the sizes .'lost'": (
        ONE, lambda y: (leaf.extent(size=unknown("lost"), dtype=F8, dims=None),)
    ),
    r"calls: calls of \[1\] operands become calls of \[2\]": (
        called(ONE, make=lambda x: elementwise.exp(elementwise.sin(x))),
        lambda y: (called(ONE, elementwise.sin(ONE), make=lambda x, sine: elementwise.exp(sine)),),
    ),
    r"calls: calls of \[\] operands become calls of \[1\]": (
        ONE, lambda y: (called(y, make=elementwise.exp),)
    ),
    r"effects: .*\(1, \(\)\)": (looped(printed), lambda y: (printed(looped(lambda c: c)),)),
    "effects: the program has another number": (
        called(printed(ONE), make=elementwise.exp), lambda y: (called(printed(ONE), make=printed),)
    ),
}  # fmt: skip
"""A value, and what takes its place, by the words of the refusal."""


def stages(y: Node, change: Callable[[Node], tuple[Node, ...]]) -> list[pipeline.Stage]:
    def wrong(graph: Graph) -> Graph:
        return Graph(graph.params, change(*graph.outputs))

    params = (ONE,) if ONE in Graph((), (y,)).nodes() else (X,)
    passes = Pass("given", lambda graph: graph, EXPANDED), Pass("made", wrong, EXPANDED)
    return pipeline.run(Graph(params, (y,)), list(passes))


@pytest.mark.parametrize("words", BREAKS)
def test_a_pass_that_breaks_an_invariant_is_refused(words: str) -> None:
    with pytest.raises(ContractError, match=rf"stage 'made', made by wrong \(.*\n.*{words}"):
        verify(stages(*BREAKS[words]))


def test_types_are_held_to_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    found = stages(ONE, lambda y: (elementwise.sin(y),))
    verify(found)
    monkeypatch.setattr(elementwise.sin, "rule", lambda x: TensorType(F8, (2,)))
    with pytest.raises(ContractError, match=r"types: .*its rule says"):
        verify(found)


def test_an_effect_that_is_left_twice_is_found_though_the_last_pass_changes_nothing() -> None:
    twice, once = called(printed(ONE), make=printed), called(printed(ONE), make=elementwise.exp)
    made, same = stages(once, lambda y: (twice,))[1:], stages(twice, lambda y: (y,))[1:]
    with pytest.raises(ContractError, match="effects: the program has another number"):
        verify([*stages(once, lambda y: (y,)), *made, same[0]._replace(graph=made[0].graph)])


def test_every_invariant_is_broken_by_a_test() -> None:
    assert {"types", *(words.split(":")[0] for words in BREAKS)} == {
        law.__name__ for law in INVARIANTS
    }
