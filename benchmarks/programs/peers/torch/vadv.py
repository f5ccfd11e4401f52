from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import pad

IMPLICIT = 0.5


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(**arrays):
        given = {name: torch.from_numpy(x) for name, x in arrays.items()}
        u_stage, wind, u, rate = (given[name] for name in ("u_stage", "wind", "u", "rate"))
        between = IMPLICIT * 0.25 * (wind[1:, :, 1:] + wind[:-1, :, 1:])
        flow = (1 - IMPLICIT) / IMPLICIT * between * torch.diff(u_stage, dim=2)
        lower, upper = -pad(between, (1, 0)), pad(between, (0, 1))
        diagonal = rate - lower - upper
        right = rate * u + given["tendency"] + given["tendency_stage"]
        right = right - pad(flow, (0, 1)) - pad(flow, (1, 0))
        uppers, rights, levels = [], [], u.shape[2]
        for k in range(levels):
            pivot, here = diagonal[:, :, k], right[:, :, k]
            if k > 0:
                pivot = pivot - uppers[-1] * lower[:, :, k]
                here = here - rights[-1] * lower[:, :, k]
            uppers.append(upper[:, :, k] / pivot)
            rights.append(here / pivot)
        new = [rights[-1]]
        for k in reversed(range(levels - 1)):
            new.append(rights[k] - uppers[k] * new[-1])
        return {"tendency_stage": rate * (torch.stack(new[::-1], 2) - u)}

    return f
