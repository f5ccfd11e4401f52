"""Relaxation on a square: each inner place becomes the mean of itself and the four beside it.

npbench's jacobi_2d: two fields in turn, the edges fixed.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"steps": 6, "side": 5}, "small": {"steps": 50, "side": 150}}
INNER = slice(1, -1)


def inputs(size: str) -> dict[str, np.ndarray]:
    steps, side = SIZES[size].values()
    i, j = np.mgrid[:side, :side]
    return {
        "a": i * (j + 2.0) / side,
        "b": i * (j + 3.0) / side,
        "steps": np.array(steps, dtype=np.int64),
    }


def relax(x: gc.Tensor, into: gc.Tensor) -> gc.Tensor:
    rows, cols = x[{"col": INNER}], x[{"row": INNER}]
    inner = rows[{"row": INNER}]
    beside = rows[{"row": slice(-2)}] + rows[{"row": slice(2, None)}]
    above = cols[{"col": slice(-2)}] + cols[{"col": slice(2, None)}]
    return into.at[{"row": INNER, "col": INNER}].set(0.2 * (inner + beside + above))


def program() -> gc.Compiled:
    a, b = (gc.tensor(name, {"row": None, "col": None}) for name in ("a", "b"))
    steps = gc.tensor("steps", {}, dtype="int64")

    def step(_: gc.Tensor, fields: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        a, b = fields
        b = relax(a, b)
        return relax(b, a), b

    new_a, new_b = gc.fori_loop(1, steps, step, (a, b))
    return gc.compile([a, b, steps], {"a": new_a, "b": new_b})


def reference(a: np.ndarray, b: np.ndarray, steps: np.ndarray) -> dict[str, np.ndarray]:
    a, b = a.copy(), b.copy()
    for _ in range(1, steps):
        for x, into in ((a, b), (b, a)):
            beside = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
            into[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + beside)
    return {"a": a, "b": b}
