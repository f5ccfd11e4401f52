from __future__ import annotations

from collections.abc import Callable

import torch


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(a, b, steps):
        a, b = torch.from_numpy(a).clone(), torch.from_numpy(b).clone()
        for _ in range(1, steps):
            for x, into in ((a, b), (b, a)):
                beside = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
                into[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + beside)
        return {"a": a, "b": b}

    return f
