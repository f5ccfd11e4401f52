from __future__ import annotations

from collections.abc import Callable

import torch

from . import value_and_gradients

NAMES = ("w", "b", "w_in", "w_out", "b_out")


def loss(w, b, w_in, w_out, b_out, h0, c0, sequence):
    h, c = list(h0), list(c0)
    total = 0.0
    for t in range(len(sequence) - 1):
        x = sequence[t] * w_in
        for k in range(len(w)):
            gates = torch.stack([x, h[k], x, h[k]]) * w[k] + b[k]
            forget, ingate, outgate = torch.sigmoid(gates[:3])
            c[k] = c[k] * forget + ingate * torch.tanh(gates[3])
            x = h[k] = outgate * torch.tanh(c[k])
        y = x * w_out + b_out
        total = total + sequence[t + 1] @ (y - torch.log(2 + torch.exp(y).sum()))
    return -total / (sequence.shape[1] * (sequence.shape[0] - 1))


def program() -> Callable[..., dict[str, torch.Tensor]]:
    return value_and_gradients(loss, NAMES)
