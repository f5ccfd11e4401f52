"""The best action in each state of a process with chances, by value iteration.

Sutton and Barto, "Reinforcement learning" (2018), section 4.4.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"action": 2, "state": 4}, "small": {"action": 6, "state": 150}}
DISCOUNT, ENOUGH = 0.9, 1e-8


def inputs(size: str) -> dict[str, np.ndarray]:
    actions, states = SIZES[size].values()
    rng = np.random.default_rng(62)
    return {
        "moves": rng.dirichlet(np.full(states, 0.1), (actions, states)),
        "reward": rng.standard_normal((actions, states)),
    }


def program() -> gc.Compiled:
    moves = gc.tensor("moves", {"action": None, "state": None, "next": "state"})
    reward = gc.tensor("reward", {"action": "action", "state": "state"})

    def gain(value: gc.Tensor) -> gc.Tensor:
        return reward + DISCOUNT * gc.dot(moves, value.rename(state="next"), dim="next")

    def step(state: tuple) -> tuple:
        value, _ = state
        better = gain(value).max("action")
        return better, gc.abs(better - value).max()

    def goes_on(state: tuple) -> gc.Tensor:
        return state[1] > ENOUGH

    start = gc.zeros({"state": moves.sizes["state"]}), gc.constant(np.inf)
    value, _ = gc.while_loop(goes_on, step, start)
    return gc.compile([moves, reward], {"value": value, "action": gain(value).argmax("action")})


def reference(moves: np.ndarray, reward: np.ndarray) -> dict[str, np.ndarray]:
    value, off = np.zeros(reward.shape[1]), np.inf
    while off > ENOUGH:
        better = (reward + DISCOUNT * moves @ value).max(0)
        off = np.abs(better - value).max()
        value = better
    return {"value": value, "action": (reward + DISCOUNT * moves @ value).argmax(0)}
