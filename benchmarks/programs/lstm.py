"""Stacked long short-term memory cells with diagonal weights: loss of a sequence, and gradient.

ADBench's and GradBench's lstm: every gate sees one number of the layer below or of its own past,
and the output of the last layer predicts the next place of the sequence.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"layer": 2, "time": 7, "hidden": 5},
    "small": {"layer": 2, "time": 128, "hidden": 14},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    layers, times, hidden = SIZES[size].values()
    rng = np.random.default_rng(2)
    return {
        "w": rng.normal(size=(layers, 4, hidden)),
        "b": rng.normal(size=(layers, 4, hidden)),
        "w_in": rng.normal(size=hidden),
        "w_out": rng.normal(size=hidden),
        "b_out": rng.normal(size=hidden),
        "h0": rng.normal(size=(layers, hidden)),
        "c0": rng.normal(size=(layers, hidden)),
        "sequence": (rng.uniform(size=(times, hidden)) < 0.5).astype(float),
    }


def program() -> gc.Compiled:
    w, b = (gc.tensor(name, {"layer": 2, "gate": 4, "hidden": None}) for name in ("w", "b"))
    w_in, w_out, b_out = (gc.tensor(name, {"hidden": None}) for name in ("w_in", "w_out", "b_out"))
    h0, c0 = (gc.tensor(name, {"layer": 2, "hidden": None}) for name in ("h0", "c0"))
    sequence = gc.tensor("sequence", {"time": None, "hidden": None})
    layers = list(zip(gc.unbind(w, "layer"), gc.unbind(b, "layer")))

    def step(state: list, given: tuple[gc.Tensor, gc.Tensor]) -> tuple[list, gc.Tensor]:
        x, target = given
        x = x * w_in
        new = []
        for (h, c), (weight, bias) in zip(state, layers):
            gates = gc.concat([x, h, x, h], "gate") * weight + bias
            sigmoids = gc.special.sigmoid(gates[{"gate": slice(3)}])
            forget, ingate, outgate = gc.unbind(sigmoids, "gate")
            c = c * forget + ingate * gc.tanh(gates[{"gate": 3}])
            x = outgate * gc.tanh(c)
            new.append((x, c))
        y = x * w_out + b_out
        return new, (target * (y - gc.log(2 + gc.exp(y).sum()))).sum()

    start = list(zip(gc.unbind(h0, "layer"), gc.unbind(c0, "layer")))
    before, after = (sequence[{"time": places}] for places in (slice(-1), slice(1, None)))
    _, likelihood = gc.scan(step, start, (before, after), dim="time")
    value = -likelihood.mean() / sequence.sizes["hidden"]

    parameters = [w, b, w_in, w_out, b_out]
    grads = gc.grad(value, {f"grad_{x.name}": x for x in parameters})
    return gc.compile([*parameters, h0, c0, sequence], {"value": value, **grads})


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def reference(
    w: np.ndarray,
    b: np.ndarray,
    w_in: np.ndarray,
    w_out: np.ndarray,
    b_out: np.ndarray,
    h0: np.ndarray,
    c0: np.ndarray,
    sequence: np.ndarray,
) -> dict[str, np.ndarray]:
    layers, _, hidden = w.shape
    times = len(sequence) - 1
    h, c = h0.copy(), c0.copy()
    tape, total = [], 0.0
    for t in range(times):
        x = sequence[t] * w_in
        saved = []
        for k in range(layers):
            forget, outgate = sigmoid(x * w[k, 0] + b[k, 0]), sigmoid(x * w[k, 2] + b[k, 2])
            ingate, change = sigmoid(h[k] * w[k, 1] + b[k, 1]), np.tanh(h[k] * w[k, 3] + b[k, 3])
            before = x, h[k].copy(), c[k].copy()
            c[k] = c[k] * forget + ingate * change
            bent = np.tanh(c[k])
            h[k] = outgate * bent
            saved.append((*before, forget, ingate, outgate, change, bent))
            x = h[k].copy()
        exps = np.exp(x * w_out + b_out)
        norm = 2 + exps.sum()
        total += sequence[t + 1] @ (x * w_out + b_out - np.log(norm))
        tape.append((saved, x, exps / norm))
    count = times * hidden
    by_w, by_b = np.zeros_like(w), np.zeros_like(b)
    by_w_in, by_w_out, by_b_out = np.zeros((3, hidden))
    dh, dc = np.zeros((2, layers, hidden))
    for t in reversed(range(times)):
        saved, x, p = tape[t]
        target = sequence[t + 1]
        dy = -(target - target.sum() * p) / count
        by_w_out += dy * x
        by_b_out += dy
        dx = dy * w_out
        for k in reversed(range(layers)):
            x, h_old, c_old, forget, ingate, outgate, change, bent = saved[k]
            dhk = dh[k] + dx
            dck = dc[k] + dhk * outgate * (1 - bent * bent)
            gates = np.stack(
                [
                    dck * c_old * forget * (1 - forget),
                    dck * change * ingate * (1 - ingate),
                    dhk * bent * outgate * (1 - outgate),
                    dck * ingate * (1 - change * change),
                ]
            )
            by_b[k] += gates
            by_w[k] += gates * np.stack([x, h_old, x, h_old])
            dx = gates[0] * w[k, 0] + gates[2] * w[k, 2]
            dh[k] = gates[1] * w[k, 1] + gates[3] * w[k, 3]
            dc[k] = dck * forget
        by_w_in += dx * sequence[t]
    grads = {"w": by_w, "b": by_b, "w_in": by_w_in, "w_out": by_w_out, "b_out": by_b_out}
    return {"value": -total / count, **{f"grad_{name}": g for name, g in grads.items()}}
