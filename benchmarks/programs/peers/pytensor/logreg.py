from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor
import pytensor.tensor as pt

from . import compiled, symbols


def program() -> Callable[..., dict[str, Any]]:
    given = symbols(x=2, y=1, w=1, b=0, v=1, penalty=0)
    x, y, w, b, v, penalty = given.values()
    z = x @ w + b
    value = pt.sum(pt.softplus(z) - y * z) + 0.5 * penalty * w @ w
    grad_w, grad_b = pytensor.grad(value, [w, b])
    hvp = pytensor.grad((grad_w * v).sum(), w)
    return compiled(given, {"value": value, "grad_w": grad_w, "grad_b": grad_b, "hvp": hvp})
