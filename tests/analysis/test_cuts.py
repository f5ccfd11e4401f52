"""Minimum cuts against networkx, and the choice of values to keep against all others."""

from itertools import chain, combinations
from math import inf
from random import Random

import networkx
import pytest

from graphcore.analysis.cuts import kept, minimum_cut


def drawn(random: Random) -> tuple[dict[tuple[int, int], float], int]:
    """The capacities of a random graph, and how many vertices it has."""
    n = random.randint(2, 12)
    capacities: dict[tuple[int, int], float] = {}
    for _ in range(random.randint(0, 4 * n)):
        a, b = random.randrange(n), random.randrange(n)
        if a != b:
            capacities[a, b] = inf if random.random() < 0.1 else random.choice([0, 1, 1, 2, 9])
    return capacities, n


def test_a_cut_is_as_cheap_as_that_of_networkx() -> None:
    finite = 0
    for seed in range(300):
        capacities, n = drawn(Random(seed))
        graph = networkx.DiGraph()
        graph.add_nodes_from(range(n))
        for (a, b), capacity in capacities.items():
            graph.add_edge(a, b, **({} if capacity == inf else {"capacity": capacity}))
        try:
            cheapest, _ = networkx.minimum_cut(graph, 0, n - 1)
        except networkx.NetworkXUnbounded:
            with pytest.raises(ValueError, match="no cut is finite"):
                minimum_cut(capacities, 0, n - 1)
            continue
        side = minimum_cut(capacities, 0, n - 1)
        assert 0 in side
        assert n - 1 not in side
        cost = sum(c for (a, b), c in capacities.items() if a in side and b not in side)
        assert cost == cheapest
        finite += 1
    assert finite > 100


def cost_of(
    stay: set[int],
    needed: list[int],
    operands: dict[int, list[int]],
    keep: dict[int, int],
    again: dict[int, int],
) -> float:
    """The cost of all needed values if these ones are kept."""
    total, waiting, seen = 0.0, [*needed], {*needed}
    while waiting:
        x = waiting.pop()
        if x in stay or x not in again:
            total += keep[x]
            continue
        total += again[x]
        for y in operands[x]:
            if y not in seen:
                seen.add(y)
                waiting.append(y)
    return total


def test_no_other_choice_of_values_to_keep_costs_less() -> None:
    computed = 0
    for seed in range(60):
        random, n = Random(seed), 7
        operands = {x: random.sample(range(x), min(x, random.randint(0, 2))) for x in range(n)}
        keep = {x: random.randint(1, 9) for x in range(n)}
        again = {x: random.randint(0, 6) for x in range(n) if operands[x]}
        needed = random.sample(range(n), 3)
        given = needed, operands, keep, again
        stay = kept(*given)
        every = chain.from_iterable(combinations(range(n), k) for k in range(n + 1))
        assert cost_of(stay, *given) == min(cost_of({*some}, *given) for some in every)
        computed += not stay.issuperset(needed)
    assert computed > 10


def test_values_that_cost_the_same_are_kept() -> None:
    assert kept(["y"], {"y": ["x"]}, {"x": 2, "y": 5}, {"y": 3}) == {"y"}
    assert kept(["y"], {"y": ["x"]}, {"x": 2, "y": 6}, {"y": 3}) == {"x"}
    assert kept(["y"], {"y": ["x"]}, {"y": 4}, {"y": 3}) == set()
