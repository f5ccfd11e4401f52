"""Updates at positions that repeat: sorted ones, and any others."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import receiving
from graphcore.backends.llvm_kernels.flops import COSTS
from graphcore.backends.llvm_kernels.planning import best_plan
from graphcore.backends.llvm_kernels.receiving import COMBINED, SAMPLE
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.sizes import Size, unknown
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t
from graphcore.schedule.regions import as_one

from .native import Both, M, N, given, needs_machine_code, some

pytestmark = needs_machine_code

KINDS = {
    "sorted": lambda rng, n, m: np.sort(rng.integers(0, m, n)),
    "the same": lambda rng, n, m: np.full(n, m - 1),
    "in turn": lambda rng, n, m: np.arange(n) % m,
    "sorted, then in any order": lambda rng, n, m: np.concatenate(
        [np.repeat(np.arange(m), SAMPLE)[: SAMPLE + 1], rng.integers(0, m, n)]
    )[:n],
    "from the end": lambda rng, n, m: np.sort(rng.integers(-m, 0, n)),
    "places in two ways": lambda rng, n, m: np.where(np.arange(n) % 2, -m, 0) + np.zeros(n, int),
}


def updated(op: Op, positions: Node, dtype: str) -> Node:
    """The values y at positions, in a tensor of M places."""
    y = given("y", N, dtype=dtype)
    if op in (t.scatter, t.scatter_prod):
        return op(y, positions, shape=(M,), axes=(0,))
    return op(given("x", M, dtype=dtype), y, positions, axes=(0,))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", COMBINED, ids=str)
def test_updates_are_combined_in_order(op: Op, kind: str, dtype: str) -> None:
    both = Both([updated(op, given("i", N, dtype="int64"), dtype)])
    rng = np.random.default_rng(3)
    for n, m in ((0, 0), (0, 3), (1, 1), (2, 1), (9, 2), (40, 3), (700, 9), (2000, 3)):
        values = {"i": KINDS[kind](rng, n, m) if n else np.zeros(0, int)}
        values |= {"x": some(rng, (m,), dtype), "y": some(rng, (n,), dtype)}
        if op is t.scatter_prod and dtype != "int64":
            values["y"] = np.sign(values["y"]) + (values["y"] == 0)
        both.agree([values[str(x.attrs["name"])] for x in both.params], (n, m), 400)


@pytest.mark.parametrize("axes", [(0,), (0, 1)], ids=str)
def test_many_updates_that_gather_are_stored_first(
    axes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer are computed where they are made, and those of a product of more places."""
    monkeypatch.setattr(receiving, "COSTS", replace(COSTS, updates_stored=30))
    i, j = [given(name, N, dtype="int64") for name in "ij"]
    z, of_two = (
        given("z", unknown("k")),
        e.multiply(given("z", unknown("k")), given("w", unknown("k"))),
    )
    there = given("x", *[M for _ in axes])
    update = e.multiply(t.gather(of_two, j, axes=(0,)), given("y", N))
    combined = t.scatter_add(there, update, *[i for _ in axes], axes=axes)
    both = Both(
        [combined, t.scatter(e.negative(update), j, shape=z.type.shape, axes=(0,))], ("n", "m", "k")
    )
    rng = np.random.default_rng(8)
    for n, m, k in ((0, 1, 1), (29, 3, 5), (30, 3, 5), (50, 3, 60), (400, 7, 90)):
        values = {"i": rng.integers(-m, m, n), "j": rng.integers(0, k, n)}
        values |= {"x": some(rng, (m,) * len(axes), "float64"), "y": some(rng, (n,), "float64")}
        values |= {name: some(rng, (k,), "float64") for name in "zw"}
        both.agree([values[str(x.attrs["name"])] for x in both.params], (n, m, k), 400)


def test_values_that_are_not_finite_stay_where_they_are() -> None:
    both = Both([updated(t.scatter_add, given("i", N, dtype="int64"), "float64")])
    positions, y = np.repeat(np.arange(5), 40), np.ones(200)
    y[[3, 45, 130]] = np.nan, np.inf, -np.inf
    (found,) = both.native([positions, np.zeros(5), y], (200, 5))
    np.testing.assert_array_equal(found, [np.nan, np.inf, 40, -np.inf, 40])


@pytest.mark.parametrize("places", [N, 6, 40])
def test_which_updates_look_at_the_next_position(places: Size) -> None:
    """Those of floats at positions of one axis, if these are not very few."""

    def written(dtype: str) -> str:
        i, y = given("i", places, dtype="int64"), given("y", places, dtype=dtype)
        made = t.scatter(y, i, shape=(M,), axes=(0,))
        return llvm_kernels.text(as_one(Graph((i, y), (made,))), ("n", "m"))

    compared = re.compile(r"icmp eq <\d+ x i64>")
    assert bool(compared.search(written("float64"))) == (places != 6)
    assert not compared.search(written("int64"))


@pytest.mark.parametrize("op", [t.scatter_add, t.scatter_max], ids=str)
def test_a_row_at_one_position(op: Op) -> None:
    """The position has no axis, and the update one, as positions of single values have."""
    x, y = given("x", M, N), given("y", N)
    both = Both([op(x, y, given("i", dtype="int64"), axes=(0,))])
    rng = np.random.default_rng(4)
    for n, m in ((1, 1), (9, 2), (40, 3)):
        values = {"x": some(rng, (m, n), "float64"), "y": some(rng, (n,), "float64")}
        values["i"] = np.array(m - 1)
        both.agree([values[str(x.attrs["name"])] for x in both.params], (n, m), 400)


def test_costly_updates_are_computed_by_lanes_before() -> None:
    """Positions are visited one by one: what is read there is stored first if that costs less."""
    x, y, i = given("x", M), given("y", N), given("i", N, dtype="int64")
    costly, cheap = e.tanh(y), e.add(y, y)
    constant = t.expand(e.tanh(given("c")), axes=(0,), sizes=(N,))
    for update, expected in ((costly, {costly}), (cheap, set()), (constant, set())):
        node = t.scatter_add(x, update, i, axes=(0,))
        graph = Graph((x, y, i, *constant.inputs[0].inputs), (node,))
        computed = best_plan(graph, set(graph.params)).computed
        assert {value for value in computed if value is update} == expected


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int32"])
@pytest.mark.parametrize("updates", [(0,), (1,), (5,), (3, 400)])
def test_rows_of_a_large_tensor_are_asked_for_before(updates: tuple[int, ...], dtype: str) -> None:
    """Those that later updates read and change; the last ones have none after them."""
    rng, (rows, columns) = np.random.default_rng(5), (COSTS.bytes_in_cache // 32, 9)
    dims = ["a", "b"][-len(updates) :]
    read, changed = (gc.tensor(name, dict.fromkeys(dims), dtype="int64") for name in "rc")
    x = gc.tensor("x", {"row": None, "column": None}, dtype=dtype)
    given = (rng.standard_normal((rows, columns)) * 50).astype(dtype)
    places = [rng.integers(-rows, rows, updates) for _ in range(2)]
    f = gc.compile(
        [x, read, changed], x.at[{"row": changed}].add(2 * x[{"row": read}]), native=True
    )
    wanted = given.copy()
    np.add.at(wanted, places[1], 2 * given[places[0]])
    for threads in (1, 3):
        with gc.threads(threads):
            found = f(given, *places)
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize(("reads", "places"), [(False, 2), (True, 3)])
def test_what_is_asked_for(reads: bool, places: int) -> None:
    """The rows that change, those of what rounding adds, and those that are gathered."""
    i = given("i", N, dtype="int64")
    x = given("x", M, 9)
    rows = t.gather(given("y", M, 9), i, axes=(0,)) if reads else given("y", N, 9)
    made = t.scatter_add(x, rows * rows, i, axes=(0,))
    inputs = [node for node in made.inputs if not node.inputs]
    params = dict.fromkeys([*inputs, *(y for y in rows.inputs or (rows,))])
    text = llvm_kernels.text(as_one(Graph(tuple(params), (made,))), ("n", "m"))
    assert text.count("call void @llvm.prefetch") == places
