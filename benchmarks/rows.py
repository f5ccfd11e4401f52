"""The rows of the speed table: their sizes, their data, and who computes them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks import graphcore_rows, numpy_rows

Sizes = dict[str, int]


class Row(NamedTuple):
    """A computation, named as the functions that do it are, at a small and a large size."""

    name: str
    sizes: tuple[Sizes, Sizes]
    inputs: tuple[str, ...]
    """The dims of each argument; `< dim` after them stands for integers below the size of dim."""

    def data(self, sizes: Sizes) -> list[Any]:
        """Random arguments, the same ones for everybody."""
        rng = np.random.default_rng(0)
        made: list[Any] = []
        for spelled in self.inputs:
            dims, _, below = spelled.partition("<")
            shape = [sizes[dim] for dim in dims.split()]
            made.append(
                rng.integers(0, sizes[below.strip()], shape) if below else rng.normal(size=shape)
            )
        return made


ROWS = {
    row.name: row
    for row in [
        Row("elementwise", ({"batch": 1000}, {"batch": 1_000_000}), ("batch", "batch")),
        Row(
            "softmax",
            ({"batch": 32, "class": 64}, {"batch": 4096, "class": 512}),
            ("batch class",),
        ),
        Row(
            "layer_norm",
            ({"batch": 32, "feature": 64}, {"batch": 4096, "feature": 512}),
            ("batch feature", "feature", "feature", "batch feature"),
        ),
        Row(
            "logistic",
            ({"batch": 256, "feature": 32}, {"batch": 20_000, "feature": 100}),
            ("batch feature", "feature", "", "batch"),
        ),
        Row(
            "mlp",
            (
                {"batch": 32, "feature": 64, "hidden": 64, "class": 10},
                {"batch": 512, "feature": 784, "hidden": 512, "class": 10},
            ),
            ("batch feature", "feature hidden", "hidden", "hidden class", "class", "batch < class"),
        ),
        Row(
            "attention",
            (
                {"batch": 2, "head": 4, "query": 32, "key": 32, "depth": 16},
                {"batch": 4, "head": 8, "query": 256, "key": 256, "depth": 64},
            ),
            ("batch head query depth", *["batch head key depth"] * 2, "batch head query depth"),
        ),
    ]
}


def show(sizes: Sizes) -> str:
    """Sizes in the order of the dims' declaration: 32 x 64."""
    return " x ".join(f"{size:,}" for size in sizes.values())


def in_graphcore(row: Row, sizes: Sizes) -> Callable[..., Any]:
    """The compiled function."""
    made: Callable[..., Any] = getattr(graphcore_rows, row.name)(sizes)
    return made


def in_numpy(row: Row) -> Callable[..., Any]:
    """The hand-written function."""
    written: Callable[..., Any] = getattr(numpy_rows, row.name)
    return written


def jax_rows() -> ModuleType | None:
    """The rows in JAX, where it is installed."""
    if importlib.util.find_spec("jax") is None:
        return None
    return importlib.import_module("benchmarks.jax_rows")


def in_jax(row: Row, rows: ModuleType) -> Callable[..., Any]:
    """The jitted function, which returns when its results are there."""
    import jax

    jitted = getattr(rows, row.name)
    return lambda *arguments: jax.block_until_ready(jitted(*arguments))


def require_same(row: Row, who: str, found: Sequence[Any], expected: Sequence[Any]) -> None:
    """Refuse results that differ from the reference beyond rounding."""
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(
            np.asarray(a),
            b,
            rtol=1e-7,
            atol=1e-9 * max(1.0, float(np.abs(b).max())),
            err_msg=f"{row.name}: result {number} of {who} against NumPy",
        )
