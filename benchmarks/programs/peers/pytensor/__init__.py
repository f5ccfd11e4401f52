"""Programs in PyTensor: the value of a scalar function, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytensor
import pytensor.tensor as pt

Symbols = dict[str, Any]


def symbols(**ranks: int | str) -> Symbols:
    """Inputs by name: float64 of so many axes, or of "int64" with one."""
    return {
        name: pt.vector(name, dtype=rank) if isinstance(rank, str) else pt.tensor(
            name, dtype="float64", shape=(None,) * rank
        )
        for name, rank in ranks.items()
    }  # fmt: skip


def compiled(given: Symbols, results: Symbols) -> Callable[..., dict[str, Any]]:
    """The function of arrays by name."""
    function = pytensor.function(list(given.values()), list(results.values()))
    return lambda **arrays: dict(
        zip(results, function(*[arrays[name] for name in given]), strict=True)
    )


def value_and_gradients(
    objective: Callable[..., Any], given: Symbols, by: Sequence[str]
) -> Callable[..., dict[str, Any]]:
    value = objective(**given)
    slopes = pytensor.grad(value, [given[name] for name in by])
    named = {f"grad_{name}": slope for name, slope in zip(by, slopes, strict=True)}
    return compiled(given, {"value": value, **named})
