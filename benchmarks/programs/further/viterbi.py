"""The likeliest path through a hidden Markov model: a loop forwards and one back.

Viterbi (1967), on the log scale, as in Rabiner's tutorial (1989), section III.B.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"time": 5, "state": 3}, "small": {"time": 400, "state": 24}}


def inputs(size: str) -> dict[str, np.ndarray]:
    times, states = SIZES[size].values()
    rng = np.random.default_rng(46)
    return {
        "start": np.log(rng.dirichlet(np.ones(states))),
        "moves": np.log(rng.dirichlet(np.ones(states), states)),
        "seen": rng.standard_normal((times, states)),
    }


def program() -> gc.Compiled:
    start = gc.tensor("start", {"state": None})
    moves = gc.tensor("moves", {"state": None, "next": "state"})
    seen = gc.tensor("seen", {"time": None, "state": None})

    def forwards(best: gc.Tensor, seen: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        reached = best + moves
        arrived = reached.max("state").rename(next="state") + seen
        return arrived, reached.argmax("state").rename(next="state")

    def backwards(state: gc.Tensor, before: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        state = before[{"state": state}]
        return state, state

    later = seen.isel(time=slice(1, None))
    best, before = gc.scan(forwards, start + seen.isel(time=0), later, dim="time")
    last = best.argmax("state")
    _, path = gc.scan(backwards, last, before, dim="time", reverse=True)
    path = gc.concat([path, last.expand_dims("time")], "time")
    return gc.compile([start, moves, seen], {"path": path, "score": best.max("state")})


def reference(start: np.ndarray, moves: np.ndarray, seen: np.ndarray) -> dict[str, np.ndarray]:
    best, before = start + seen[0], []
    for each in seen[1:]:
        reached = best[:, None] + moves
        before.append(reached.argmax(0))
        best = reached.max(0) + each
    path = [best.argmax()]
    for states in reversed(before):
        path.append(states[path[-1]])
    return {"path": np.array(path[::-1]), "score": best.max()}
