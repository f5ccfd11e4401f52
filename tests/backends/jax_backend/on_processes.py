"""One of several processes: `python -m tests.backends.jax_backend.on_processes PORT COUNT NUMBER`.

It trains a small model on its own rows and prints the loss and the weights. The process whose
number is a fourth argument kills itself after the first step.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import pytest

import graphcore as gc

HEARTBEAT = 10


def train(count: int, number: int, dying: int | None) -> None:
    """Steps of a descent on rows of all processes."""
    x, y = gc.tensor("x", {"batch": None, "in": 8}), gc.tensor("y", {"batch": None})
    w = gc.tensor("w", {"in": 8})
    loss = ((gc.tanh(gc.dot(x, w, dim="in")) - y) ** 2).mean()
    outputs = [loss, w - 0.1 * gc.grad(loss, w)]
    mesh, shard = gc.Mesh({"data": 4}), {"batch": "data"}
    step = gc.compile([x, y, w], outputs, target="jax", mesh=mesh, shard=shard)

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(16, 8))
    own = rows[number * 16 // count : (number + 1) * 16 // count]
    placed = step.place(own, np.sin(own.sum(1)), np.zeros(8))
    for _ in range(50):
        value, placed[2] = step(*placed)
        if dying is not None:
            if number == dying:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.2)
    numbers = " ".join(map(str, [float(value), *map(float, placed[2])]))
    sys.stdout.write(f"result {numbers}\n")
    whole = step(rows, np.sin(rows.sum(1)), placed[2])[0]  # the same rows given to all
    np.testing.assert_allclose(whole, step(*placed)[0], rtol=1e-13)
    assert step.messages(*placed).bytes == 9 * 8
    if count > 1:
        with pytest.raises(gc.GraphError, match='returns="jax"'):
            gc.compile([x], 2 * x, target="jax", mesh=mesh, shard=shard)


if __name__ == "__main__":
    port, count, number = map(int, sys.argv[1:4])
    if count > 1:
        gc.join_processes(f"127.0.0.1:{port}", count, number, heartbeat=HEARTBEAT)
    train(count, number, int(sys.argv[4]) if len(sys.argv) > 4 else None)
