"""Products and nests of which some rows at a time are computed: the same bits as of all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import chains
from graphcore.backends.llvm_kernels.planning import best_plan
from graphcore.backends.llvm_kernels.rows import Chain
from graphcore.ir.graph import Graph

from .native import Both, needs_machine_code

pytestmark = needs_machine_code

Tensor = gc.Tensor
Make = Callable[[Tensor, Tensor, Tensor], Sequence[Tensor]]
SIZES = [(1, 1, 1, 1, 1), (2, 127, 40, 3, 4), (2, 129, 64, 5, 33), (1, 300, 70, 17, 9)]
EMPTY = [(0, 3, 4, 5, 2), (2, 0, 4, 5, 2), (2, 300, 40, 0, 3), (2, 300, 40, 3, 0)]


def inputs(*sizes: int | None, dtype: str = "float64") -> list[Tensor]:
    """Queries, keys and values of several heads: so many heads, queries, keys, d and e."""
    head, query, key, d, e = sizes or (None, None, "n", "m", None)
    dims = {"head": head, "query": query, "d": d}, {"head": head, "key": key, "d": d}
    each = zip("qkv", (*dims, {"head": head, "key": key, "e": e}), strict=True)
    return [gc.tensor(name, sizes, dtype=dtype) for name, sizes in each]


def arrays(tensors: Sequence[Tensor], sizes: Sequence[int]) -> list[np.ndarray]:
    head, query, key, d, e = sizes
    shapes = (head, query, d), (head, key, d), (head, key, e)
    rng = np.random.default_rng(3)
    pairs = zip(tensors, shapes, strict=True)
    return [rng.standard_normal(shape).astype(x.dtype) for x, shape in pairs]


def attention(q: Tensor, k: Tensor, v: Tensor) -> Sequence[Tensor]:
    scores = gc.special.softmax(0.5 * gc.dot(q, k, dim="d"), "key")
    return [gc.dot(scores, v, dim="key")]


def causal(q: Tensor, k: Tensor, v: Tensor) -> Sequence[Tensor]:
    """The largest value of a row is read where rows of the result have no places, too."""
    scores = gc.dot(q, k, dim="d")
    later = gc.arange(q.sizes["query"], dim="query") < gc.arange(k.sizes["key"], dim="key")
    scores = scores.where(~later, -np.inf)
    return [gc.dot(gc.special.softmax(scores, "key"), v, dim="key"), gc.max(scores, "key")]


def scores_too(q: Tensor, k: Tensor, v: Tensor) -> Sequence[Tensor]:
    """The probabilities are a result as well, so that only the scores are not stored whole."""
    scores = gc.special.softmax(gc.dot(q, k, dim="d"), "key")
    return [gc.dot(scores, v, dim="key"), scores]


def other_rows(q: Tensor, k: Tensor, v: Tensor) -> Sequence[Tensor]:
    """A row of the result needs all rows of the scores."""
    scores = gc.dot(q, k, dim="d")
    scores = gc.exp(scores - gc.max(scores, "key"))
    return [gc.dot(scores / gc.sum(scores, "query"), v, dim="key")]


def beside_each_row(q: Tensor, k: Tensor, v: Tensor) -> Sequence[Tensor]:
    """One number of each row is read by the second of two nests, after a product."""
    scores = gc.special.softmax(gc.dot(q, k, dim="d"), "key")
    total = gc.sum(gc.dot(scores, v, dim="key"), "e")
    return [gc.dot(gc.special.softmax(scores * total, "key"), v, dim="key")]


def numbers_of_rows(q: Tensor, k: Tensor, v: Tensor) -> Sequence[Tensor]:
    """The sum of a row is read after a product, in loops over d that may have no steps."""
    scores = gc.exp(-(gc.dot(q, k, dim="d") ** 2))
    total = gc.sum(scores, "key")
    most = gc.max(abs(gc.dot(scores, v, dim="key")), "e", initial=0.0)
    near = gc.sum(gc.exp(-((q * total + most) ** 2)), "d")
    return [near]


def turned_over(q: Tensor, k: Tensor, v: Tensor) -> Sequence[Tensor]:
    """The first row of the result needs the last of the scores."""
    scores = gc.special.softmax(gc.dot(q, k, dim="d"), "key")
    return [gc.dot(gc.tanh(scores + gc.flip(scores, "query")), v, dim="key")]


def slopes(q: Tensor, k: Tensor, v: Tensor) -> Sequence[Tensor]:
    return gc.grad(gc.sum(attention(q, k, v)[0] ** 2), [q, k, v])


def two_layers(q: Tensor, k: Tensor, v: Tensor) -> Sequence[Tensor]:
    """Elementwise ops between products, of which no row is reduced."""
    return [gc.dot(gc.maximum(gc.dot(q, k, dim="d"), 0.0) ** 2, v, dim="key")]


def chains_of(graph: Graph) -> list[Chain]:
    return [step for step in best_plan(graph, set(graph.params)).steps if isinstance(step, Chain)]


EVERY = [
    *(attention, causal, scores_too, other_rows, beside_each_row, numbers_of_rows, turned_over),
    *(slopes, two_layers),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("make", EVERY)
def test_both_tiers_agree(make: Make, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "LARGE", 0)
    for known in (False, True):
        both = None
        for sizes in [*SIZES, *EMPTY]:
            tensors = inputs(*sizes if known else (), dtype=dtype)
            if both is None or known:
                both = Both.of(gc.compile(tensors, make(*tensors)))
            both.agree_when_called(arrays(tensors, sizes), 1e5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("make", EVERY)
def test_the_bits_are_those_of_all_rows_at_once(
    make: Make, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sizes in SIZES:
        tensors, found = inputs(*sizes, dtype=dtype), list[list[np.ndarray]]()
        for least in (0, 2**60):
            monkeypatch.setattr(chains, "LARGE", least)
            monkeypatch.setattr(llvm_kernels, "MADE", WeakValueDictionary())
            compiled = gc.compile(tensors, make(*tensors), native=True)
            found.append(compiled(*arrays(tensors, sizes)))
        for x, y in zip(*found, strict=True):
            np.testing.assert_array_equal(x, y)


def planned(make: Make, *sizes: int | None) -> list[Chain]:
    tensors = inputs(*sizes)
    return chains_of(gc.compile(tensors, make(*tensors)).passes[-1].graph)


def test_scores_of_attention_are_never_stored_whole() -> None:
    """Scores, and exponentials over their sums; rows alone have those of one row as well."""
    for sizes in [(4, 1024, 1024, 32, 32), ()]:
        (chain,) = planned(attention, *sizes)
        assert len(chain.steps) == 3
        assert len(chain.own) == 2
        assert len(planned(causal, *sizes)) == 1


def test_where_a_chain_does_not_pay() -> None:
    assert not planned(attention, 4, 64, 64, 32, 32)  # all lies in the cache
    assert not planned(attention, 1, 10**6, 20, 32, 32)  # as wide as the operands
    assert not any(len(chain.steps) > 2 for chain in planned(other_rows, 1, 2000, 2000, 32, 32))
