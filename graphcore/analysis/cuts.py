"""Minimum cuts, and the choice that they decide: which values are kept, which computed again.

>>> minimum_cut({("s", "a"): 3, ("a", "b"): 1, ("b", "t"): 2}, "s", "t") == {"s", "a"}
True
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import TypeVar

Vertex = TypeVar("Vertex", bound=Hashable)


def minimum_cut(
    capacities: Mapping[tuple[Vertex, Vertex], float], source: Vertex, sink: Vertex
) -> set[Vertex]:
    """The vertices on the side of the source, in the cheapest cut that parts it from the sink.

    The cut are the edges that lead out of this side. Of several cheapest cuts this is the one that
    leaves the fewest vertices on the side of the source. Capacities are integers, or infinite.

    A maximal flow is found by Dinic's algorithm: of the shortest paths with residual capacity, as
    many are filled as there are, before those that are longer.

    Raises
    ------
    ValueError
        If a path has only infinite edges, so that no cut is finite.
    """
    residual: dict[Vertex, dict[Vertex, float]] = {source: {}, sink: {}}
    for (a, b), capacity in capacities.items():
        residual.setdefault(a, {})[b] = residual.get(a, {}).get(b, 0) + capacity
        residual.setdefault(b, {}).setdefault(a, 0)
    while sink in (distance := distances(residual, source)):
        left = {
            a: [b for b in residual[a] if distance.get(b) == n + 1] for a, n in distance.items()
        }
        path = [source]
        while path:
            a = path[-1]
            if a == sink:
                edges = list(pairwise(path))
                flow = min(residual[a][b] for a, b in edges)
                if flow == inf:
                    raise ValueError("no cut is finite: a path has only infinite edges")
                for a, b in edges:
                    residual[a][b] -= flow
                    residual[b][a] += flow
                path = [source]
            elif ahead := left[a]:
                if residual[a][ahead[-1]] > 0:
                    path.append(ahead[-1])
                else:
                    ahead.pop()
            else:
                path.pop()
                if path:
                    left[path[-1]].pop()
    return set(distance)


def distances(
    residual: Mapping[Vertex, Mapping[Vertex, float]], source: Vertex
) -> dict[Vertex, int]:
    """How many edges with residual capacity lead from the source to each vertex that it reaches."""
    found, reached = {source: 0}, [source]
    for a in reached:
        for b, left in residual[a].items():
            if left > 0 and b not in found:
                found[b] = found[a] + 1
                reached.append(b)
    return found


def kept(
    needed: Iterable[Vertex],
    operands: Mapping[Vertex, Sequence[Vertex]],
    keep: Mapping[Vertex, int],
    again: Mapping[Vertex, int],
) -> set[Vertex]:
    """The values to keep, so that all that are needed cost least.

    A value that is needed is either kept, which costs `keep`, or computed again, which costs
    `again` and makes its operands needed. A value that has no entry in `again` can only be kept. A
    value that has no entry in `keep` is there anyway and costs nothing. Of two equally cheap
    choices, the one that keeps more values is taken.

    >>> kept(["y"], {"y": ["x"]}, {"x": 5, "y": 8}, {"y": 2})  # 5 + 2 < 8
    {'x'}
    """
    capacities: dict[tuple[object, object], float] = {}
    for x in needed:
        if x in keep:
            capacities["source", (x, "needed")] = inf
    for x, cost in keep.items():
        other: object = "sink"
        if x in again:
            other = (x, "again")
            capacities[other, "sink"] = again[x]
            for y in operands[x]:
                if y in keep:
                    capacities[other, (y, "needed")] = inf
        capacities[(x, "needed"), other] = cost
    side = minimum_cut(capacities, "source", "sink")
    return {x for x in keep if (x, "needed") in side and (x, "again") not in side}
