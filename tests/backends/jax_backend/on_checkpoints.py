"""One of several processes: `python -m ...on_checkpoints PORT COUNT NUMBER FOLDER HOW`.

Together they train a model whose weights lie in parts on all of them, save these by Orbax and
restore them (HOW is `save`), or they restore what others have saved. The lines about Orbax are
those of the page about meshes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np

import graphcore as gc


def main(count: int, number: int, folder: Path, saves: bool) -> None:
    """Train, save and restore; print where the weights lie and their sum."""
    import orbax.checkpoint as ocp  # not installed where this file is only collected

    x, y = gc.tensor("x", {"batch": None, "in": None}), gc.tensor("y", {"batch": None})
    w, v = gc.tensor("w", {"in": None, "hidden": None}), gc.tensor("v", {"hidden": None})
    loss = ((gc.dot(gc.tanh(gc.dot(x, w, dim="in")), v, dim="hidden") - y) ** 2).mean()
    dw, dv = gc.grad(loss, [w, v])
    inputs, outputs = [x, y, w, v], [loss, w - 0.1 * dw, v - 0.1 * dv]
    mesh, shard = gc.Mesh({"model": 2, "data": 2}), {"batch": "data", "hidden": "model"}
    step = gc.compile(inputs, outputs, target="jax", mesh=mesh, shard=shard, returns="jax")

    random = np.random.default_rng(0)
    rows = random.normal(size=(32, 8))
    whole = random.normal(size=(8, 16)), random.normal(size=16)
    own = slice(number * 16 // count, (number + 1) * 16 // count)
    given = rows, rows.sum(1), *[weights[..., own] for weights in whole]
    if saves:
        placed, targets, *weights = step.place(*given)
        for _ in range(5):
            _, *weights = step(placed, targets, *weights)
        with ocp.StandardCheckpointer() as checkpoints:
            checkpoints.save(folder, {"weights": weights})

    places = step.place(*given)[2:]
    with ocp.StandardCheckpointer() as checkpoints:
        restored = checkpoints.restore(folder, {"weights": places})["weights"]
    assert [a.sharding for a in restored] == [b.sharding for b in places]
    assert restored[0].dtype == "float64"
    if saves:
        for a, b in zip(restored, weights, strict=True):
            for mine, saved in zip(a.addressable_shards, b.addressable_shards, strict=True):
                np.testing.assert_array_equal(mine.data, saved.data)
    sums = jax.jit(lambda w, v: (w.sum(), v.sum()))(*restored)
    sys.stdout.write(f"result {' '.join(str(float(total)) for total in sums)}\n")


if __name__ == "__main__":
    port, count, number = map(int, sys.argv[1:4])
    if count > 1:
        gc.join_processes(f"127.0.0.1:{port}", count, number, heartbeat=10)
    jax.config.update("jax_enable_x64", True)
    main(count, number, Path(sys.argv[4]).absolute(), sys.argv[5] == "save")
