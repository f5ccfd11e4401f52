"""Graphs for networkx, and networkx as the oracle of our own walks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache

import networkx as nx
import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import NAMES, Program
from graphcore.analysis.paths import between, of_floats
from graphcore.ir.digests import digests
from graphcore.ir.graph import Graph, unknowns_of
from graphcore.ir.node import Node
from graphcore.ops import autodiff, control
from graphcore.schedule.order import in_order, order_of_body
from graphcore.schedule.regions import groups, is_repeated
from tests.inspection.test_golden import logistic_regression
from tests.random_programs.running import built
from tests.random_programs.statements import drawn


@cache
def last_stages() -> list[Graph]:
    """Of random programs; some are refused."""
    found = []
    for seed in range(20):
        with suppress(gc.GraphError):
            found.append(built(drawn(seed), [None])[0][0].stages["scheduled"])
    return found


def stage(name: str) -> Graph:
    f = Program(name).make("graphcore")
    assert isinstance(f, gc.Compiled)
    return f.stages["scheduled"]


def test_every_fact_is_there() -> None:
    x = gc.tensor("x", {"time": None, "k": 3})
    last, _ = gc.scan(lambda c, row: (gc.tanh(c * c + row), None), x.sum("time"), x, dim="time")
    f = gc.compile([x], last)
    graph = f.stages["scheduled"]
    made = graph.to_networkx()
    assert isinstance(made, nx.MultiDiGraph)
    assert nx.is_directed_acyclic_graph(made)
    by_node = {made.nodes[id]["node"]: id for id in made}
    assert by_node.keys() == set(graph.nodes())
    for node, id in by_node.items():
        fact = made.nodes[id]
        assert (fact["op"], fact["type"]) == (repr(node.op), str(node.type))
        assert fact["attrs"].keys() == node.attrs.keys()
        assert fact["origin"].file == __file__
        assert fact["flops"] >= 0 <= fact["bytes"]
        operands = {at: a for a, _, at in made.in_edges(id, keys=True)}
        assert [operands[at] for at in range(len(node.inputs))] == [by_node[y] for y in node.inputs]
        assert all(d["operand"] == at for _, _, at, d in made.in_edges(id, keys=True, data=True))
    assert [made.nodes[id]["node"] for id in made.graph["outputs"]] == [*graph.outputs]
    (scan,) = [id for node, id in by_node.items() if node.op is control.scan]
    body = made.nodes[scan]["attrs"]["body"]
    assert isinstance(body, nx.MultiDiGraph)
    product = next(id for id in body if body.nodes[id]["op"] == "elementwise.multiply")
    if len({a for a, _ in body.in_edges(product)}) == 1:
        assert sorted(key for *_, key in body.in_edges(product, keys=True)) == [0, 1]
    assert made.nodes[scan]["name"] in str(f.why(made.nodes[scan]["name"]))


def test_names_are_the_same_in_every_stage_and_build() -> None:
    f, again = logistic_regression(), logistic_regression()
    stages = [graph.to_networkx() for graph in f.stages.values()]
    for made in stages:
        for other in stages:
            for id in set(made) & set(other):
                assert made.nodes[id]["node"] is other.nodes[id]["node"]
    ids = [list(g.to_networkx()) for g in (f.stages["lowered"], again.stages["lowered"])]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == len(f.stages["lowered"])


def test_names_tell_all_apart() -> None:
    x = gc.tensor("x", {"k": 2})
    odd = [0.0, -0.0, np.nan, 1, True, 1j, np.float32(0)]
    nodes = [gc.constant(np.array([value, value]), ("k",)).node for value in odd]
    nodes += [(x * 1.5).node, (x * -1.5).node, x.rename(k="(k)").node, x.rename(k="k,").node]
    assert len(set(digests(Graph((), tuple(nodes)), {}).values())) == len(Graph((), tuple(nodes)))


# ---- networkx as the oracle


def plain(graph: Graph) -> nx.DiGraph:
    """The nodes themselves, an edge from each to those that use it."""
    network = nx.DiGraph()
    network.add_nodes_from(graph.nodes())
    network.add_edges_from((x, node) for node in graph.nodes() for x in node.inputs)
    return network


def check_order(graph: Graph) -> None:
    """Nodes come after what they need, trip counts included; bodies as well."""
    nodes = in_order(graph.nodes())
    step = {node: at for at, node in enumerate(nodes)}
    needs = plain(graph)
    finds = {
        name: node
        for node in graph.nodes()
        if node.op is control.while_loop
        for name in unknowns_of(node)
        if name not in {n for x in node.inputs for n in unknowns_of(x)}
    }
    needs.add_edges_from(
        (finds[name], node)
        for node in graph.nodes()
        for name in unknowns_of(node)
        if name in finds and finds[name] is not node
    )
    assert set(nodes) == set(needs)
    assert nx.is_directed_acyclic_graph(needs)
    assert all(step[a] < step[b] for a, b in needs.edges)
    for node in graph.nodes():
        if node.op in (control.scan, control.while_loop):
            body = node.attrs["body"]
            ordered = order_of_body(body, node.attrs["carries"]).nodes
            at = {x: i for i, x in enumerate(ordered)}
            assert set(ordered) == set(body.nodes())
            assert all(at[a] < at[b] for a, b in plain(body).edges)


def check_partition(graph: Graph) -> None:
    """Groups are disjoint, and none waits for itself: the graph of groups has no cycle."""
    for hosted in (2, 3, 7):  # as if there were no machine code for every so many nodes
        native = {node: at % hosted != 0 for at, node in enumerate(graph.nodes())}
        found = groups(graph, native)
        group = {node: at for at, nodes in enumerate(found) for node in nodes}
        assert len(group) == sum(map(len, found))
        whole = nx.DiGraph()
        for node in graph.nodes():
            if not is_repeated(node):
                whole.add_node(node)
                whole.add_edges_from((x, node) for x in read_by(node))
        parts: dict[object, set[Node]] = {}
        for node in whole:
            parts.setdefault(group.get(node, node), set()).add(node)
        assert nx.is_directed_acyclic_graph(nx.quotient_graph(whole, [*parts.values()]))


def read_by(node: Node) -> set[Node]:
    """The values in memory that a node reads: views and ranges are made anew by each reader."""
    near = set(node.inputs)
    while repeated := {x for x in near if is_repeated(x)}:
        near = (near - repeated) | {y for x in repeated for y in x.inputs}
    return near


def check_paths(graph: Graph) -> None:
    """What carries a derivative lies on a path of floats from the inputs to the outputs."""
    whole = plain(graph)
    floats = {x for x in whole if of_floats(x.type) and x.op is not autodiff.stop_gradient}
    for x in graph.params:
        found = set(between(graph.outputs, [x]))
        wanted = {x} | nx.descendants(whole.subgraph(floats | {x}), x)
        above = {y for out in graph.outputs for y in {out} | nx.ancestors(whole, out)}
        assert found == (wanted & above)


CHECKS = [check_order, check_partition, check_paths]


@pytest.mark.parametrize("check", CHECKS)
def test_our_walks_agree_with_networkx(check: Callable[[Graph], None]) -> None:
    assert len(last_stages()) > 10
    for graph in last_stages():
        check(graph)
    for name in ("lstm", "saddle", "gp", "power_iter"):
        check(stage(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_our_walks_agree_with_networkx_on_programs(name: str) -> None:
    for check in CHECKS:
        check(stage(name))


def test_deep_graphs() -> None:
    x = y = gc.tensor("x", {"k": 3})
    for _ in range(5_000):
        y = gc.sin(y)
    assert len(Graph((x.node,), (y.node,)).to_networkx()) == 5_001
