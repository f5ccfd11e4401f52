"""A saddle point, by gradient descent inside gradient descent.

GradBench's saddle, after Pearlmutter and Siskind: the least, over a, of the greatest, over b, of
|a|² - |b|². Both are sought in a while loop with the same rule for its steps, and the outer
gradient goes through the inner loop. The steps start larger than there, so that they are fewer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"rate": 0.4}, "small": {"rate": 1e-2}}
SMALL, PATIENCE = 1e-5, 10


def inputs(size: str) -> dict[str, np.ndarray]:
    return {"a0": np.ones(2), "b0": np.ones(2), "rate": np.array(SIZES[size]["rate"])}


def least(f: Callable[[gc.Tensor], gc.Tensor], start: gc.Tensor, rate: gc.Tensor) -> gc.Tensor:
    """Where `f` is least: steps that grow after ten good ones, and are halved after a bad one."""

    def known(x: gc.Tensor) -> dict[str, gc.Tensor]:
        value = f(x)
        return {"x": x, "f": value, "slope": gc.grad(value, x)}

    def descend(state: dict) -> dict:
        here, rate, good, _ = state.values()
        new = known(here["x"] - rate * here["slope"])
        arrived = gc.norm(here["x"] - new["x"]) <= SMALL
        better = new["f"] < here["f"]
        taken = better & ~arrived
        return {
            "here": {name: gc.where(taken, new[name], here[name]) for name in here},
            "rate": gc.where(better, rate, rate / 2),
            "good": gc.where(better, good + 1, 0),
            "arrived": arrived,
        }

    def step(state: dict) -> dict:
        faster = state | {"rate": 2 * state["rate"], "good": 0}
        return gc.cond(state["good"] == PATIENCE, lambda: faster, lambda: descend(state))

    def goes_on(state: dict) -> gc.Tensor:
        return (gc.norm(state["here"]["slope"]) > SMALL) & ~state["arrived"]

    first = {"here": known(start), "rate": rate, "good": 0, "arrived": False}
    return gc.while_loop(goes_on, step, first)["here"]["x"]


def program() -> gc.Compiled:
    a0, b0 = (gc.tensor(name, {"xy": 2}) for name in ("a0", "b0"))
    rate = gc.tensor("rate", {})

    def f(a: gc.Tensor, b: gc.Tensor) -> gc.Tensor:
        return (a**2).sum() - (b**2).sum()

    def greatest(a: gc.Tensor) -> gc.Tensor:
        return least(lambda b: -f(a, b), b0, rate)

    a = least(lambda a: f(a, greatest(a)), a0, rate)
    return gc.compile([a0, b0, rate], {"a": a, "b": greatest(gc.stop_gradient(a))})


def reference(a0: np.ndarray, b0: np.ndarray, rate: np.ndarray) -> dict[str, np.ndarray]:
    """The inner path does not depend on a, so that the outer slope is 2 a."""

    def least(f: Callable, slope: Callable, start: np.ndarray) -> np.ndarray:
        x, step, good = start, rate, 0
        value = f(x)
        while np.sqrt(slope(x) @ slope(x)) > SMALL:
            if good == PATIENCE:
                step, good = 2 * step, 0
                continue
            new = x - step * slope(x)
            if np.sqrt((x - new) @ (x - new)) <= SMALL:
                break
            if f(new) < value:
                x, value, good = new, f(new), good + 1
            else:
                step, good = step / 2, 0
        return x

    def f(a: np.ndarray, b: np.ndarray) -> float:
        return a @ a - b @ b

    def greatest(a: np.ndarray) -> np.ndarray:
        return least(lambda b: -f(a, b), lambda b: 2 * b, b0)

    a = least(lambda a: f(a, greatest(a)), lambda a: 2 * a, a0)
    return {"a": a, "b": greatest(a)}
