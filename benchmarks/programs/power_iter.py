"""The power method until it has converged, and the gradient of the eigenvalues found.

The pattern of autograd's fixed_points example: for each matrix A of a batch the dominant eigenvalue
of A Aᵀ. How many steps that takes is known only from the data; each matrix stops at its own.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"batch": 3, "row": 5}, "small": {"batch": 16, "row": 30}}

# Steps end when an eigenvalue moves by 1e-13; its eigenvector, and so the gradient, is then known
# to the square root of that.
TOLERANCE = 1e-6
SETTLED, STEPS = 1e-13, 300


def inputs(size: str) -> dict[str, np.ndarray]:
    batch, n = SIZES[size].values()
    rng = np.random.default_rng(20)
    basis = np.linalg.qr(rng.standard_normal((batch, n, n)))[0]
    scale = np.linspace(1.0, 2.0, n) ** 2
    scale[-1] = 6.0  # a gap in the spectrum: some dozens of steps
    noise = 0.01 * rng.standard_normal((batch, n, n))
    return {
        "A": (basis * scale) @ basis.transpose(0, 2, 1) + noise,
        "v0": rng.standard_normal((batch, n)),
    }


def program() -> gc.Compiled:
    A = gc.tensor("A", {"batch": None, "row": None, "col": None})
    v0 = gc.tensor("v0", {"batch": None, "row": None})

    def product(v: gc.Tensor) -> gc.Tensor:
        return gc.dot(M, v, dim="row").rename({"row'": "row"})

    def moves(state: tuple[gc.Tensor, gc.Tensor, gc.Tensor]) -> gc.Tensor:
        _, now, before = state
        return abs(now - before) > SETTLED * abs(now)

    def step(state: tuple[gc.Tensor, ...]) -> tuple[gc.Tensor, ...]:
        v, now, _ = state
        u = product(v)
        return u / gc.norm(u, "row"), gc.dot(v, u, dim="row"), now

    M = gc.dot(A, A.rename({"row": "row'"}), dim="col")
    start = v0 / gc.norm(v0, "row"), 0.0, np.inf
    v, _, _ = gc.while_loop(moves, step, start, max_steps=STEPS)
    value = gc.dot(v, product(v), dim="row").sum()
    return gc.compile([A, v0], {"value": value, "grad_A": gc.grad(value, A)})


def reference(A: np.ndarray, v0: np.ndarray) -> dict[str, np.ndarray]:
    """All eigenvalues at once; that of v is v Aᵀ A v, and v stands still to first order."""
    values, vectors = np.linalg.eigh(A @ A.transpose(0, 2, 1))
    v = vectors[:, :, -1]
    outer = v[:, :, None] * np.einsum("bi,bij->bj", v, A)[:, None, :]
    return {"value": values[:, -1].sum(), "grad_A": 2 * outer}
