"""Single nodes on JAX: many of them in one program, as XLA's compilation takes most of the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from graphcore.backends.jax_backend.failures import first_outside
from graphcore.backends.jax_backend.table import TABLE
from graphcore.ir import Node, Size, TensorType
from graphcore.ir.axes import values
from graphcore.ir.sizes import evaluate


class Emission:
    """What entries ask of a program: its sizes, and whom they tell of failures."""

    def __init__(self, sizes: Mapping[str, int], meshed: bool = False) -> None:
        self.known, self.meshed = dict(sizes), meshed
        self.failures: list[tuple[str, Any]] = []

    def size(self, size: Size) -> int:
        return size if isinstance(size, int) else evaluate(size, self.known)

    def sizes(self, shape: Sequence[Size]) -> tuple[int, ...]:
        return tuple(map(self.size, shape))

    def shape(self, type: TensorType) -> tuple[int, ...]:
        return self.sizes(type.shape)

    def fail_where(self, node: Node, flag: Any, reason: str, number: Any = 0) -> None:
        self.failures.append((reason, flag))

    def fail_outside(self, node: Node, axis: int, positions: Any, size: Any) -> None:
        if positions.size:
            self.failures.append(
                (f"outside {axis}", first_outside(positions, size, self.meshed)[0])
            )

    def fail_in_batch(self, node: Node, failed: Any, reason: str) -> None:
        self.failures.append((reason, failed))


class Found(tuple[np.ndarray, ...]):
    """The results of a node; the reasons for which it fails, each with its flags."""

    failures: dict[str, np.ndarray]


def compute(
    cases: Sequence[tuple[Node, Sequence[np.ndarray]]],
    sizes: Mapping[str, int] | None = None,
    meshed: bool = False,
) -> list[Found]:
    """The results of nodes for values of their operands."""
    reasons: list[list[str]] = []

    def run(several: Any) -> Any:
        made = []
        for (node, _), xs in zip(cases, several, strict=True):
            cx = Emission(sizes or {}, meshed)
            found = TABLE[node.op](cx, node, *xs)
            parts = found if isinstance(found, tuple) else (found,)
            cast = []
            for y, of in zip(parts, values(node.type), strict=True):
                assert y.shape == cx.shape(of), f"{node}: {y.shape}, not {cx.shape(of)}"
                cast.append(y.astype(of.dtype))
            reasons.append([reason for reason, _ in cx.failures])
            made.append((cast, [flag for _, flag in cx.failures]))
        return made

    with jax.enable_x64(True):
        made = jax.jit(run)([xs for _, xs in cases])
    results = []
    for own, (parts, flags) in zip(reasons, made, strict=True):
        found = Found(map(np.asarray, parts))
        found.failures = dict(zip(own, map(np.asarray, flags), strict=True))
        results.append(found)
    return results
