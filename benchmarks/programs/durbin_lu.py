"""Three recursions of linear algebra as loops: Durbin's, LU and Cholesky's.

durbin, lu and cholesky of npbench and PolyBench, whose windows grow by a place at each step. Here
each step works on whole rows, and what does not take part is zero.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"n": 6}, "small": {"n": 100}}


def inputs(size: str) -> dict[str, np.ndarray]:
    n = SIZES[size]["n"]
    rng = np.random.default_rng(42)
    A = rng.standard_normal((n, n))
    return {"r": 0.5 ** np.arange(1.0, n + 1) * rng.random(n), "A": A @ A.T / n + np.eye(n)}


def durbin(r: gc.Tensor) -> gc.Tensor:
    """The y for which toeplitz(1, r₀, r₁, ...) y = -r."""
    n = r.sizes["place"]
    places = gc.arange(n, dim="place")

    def step(k: gc.Tensor, state: tuple[gc.Tensor, ...]) -> tuple[gc.Tensor, ...]:
        y, alpha, beta = state  # y is zero from place k on
        turned = (k - 1 - places) % n
        beta = beta * (1 - alpha * alpha)
        alpha = -(r[{"place": k}] + gc.dot(gc.take(r, turned, "place"), y)) / beta
        y = y + alpha * gc.take(y, turned, "place")
        return y.at[{"place": k}].set(alpha), alpha, beta

    first = r[{"place": 0}]
    start = gc.zeros_like(r).at[{"place": 0}].set(-first), -first, 1.0
    return gc.fori_loop(1, n, step, start)[0]


def lu(A: gc.Tensor) -> gc.Tensor:
    """The factors L, without its ones, and U, in one matrix."""
    n = A.sizes["row"]
    rows, cols = gc.arange(n, dim="row"), gc.arange(n, dim="col")

    def step(k: gc.Tensor, A: gc.Tensor) -> gc.Tensor:
        pivots, below = A[{"row": k}], rows > k
        factors = (A[{"col": k}] / pivots[{"col": k}]).where(below, 0)
        A = A - factors * pivots.where(cols > k, 0)
        return gc.where(below & (cols == k), factors, A)

    return gc.fori_loop(0, n, step, A)


def cholesky(A: gc.Tensor) -> gc.Tensor:
    """The lower factor L, with L Lᵀ = A."""
    n = A.sizes["row"]
    rows = gc.arange(n, dim="row")

    def step(k: gc.Tensor, state: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        A, L = state
        column = (A[{"col": k}] / gc.sqrt(A[{"row": k, "col": k}])).where(rows >= k, 0)
        return A - column * column.rename(row="col"), L.at[{"col": k}].set(column)

    return gc.fori_loop(0, n, step, (A, gc.zeros_like(A)))[1]


def program() -> gc.Compiled:
    r, A = gc.tensor("r", {"place": None}), gc.tensor("A", {"row": None, "col": "row"})
    return gc.compile([r, A], {"durbin": durbin(r), "lu": lu(A), "cholesky": cholesky(A)})


def reference(r: np.ndarray, A: np.ndarray) -> dict[str, np.ndarray]:
    n = len(r)
    y = np.zeros(n)
    y[0] = alpha = -r[0]
    beta = 1.0
    for k in range(1, n):
        beta *= 1 - alpha * alpha
        alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    lu = A.copy()
    for k in range(n):
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    L = np.zeros_like(A)
    for k in range(n):
        L[k:, k] = A[k:, k] - L[k:, :k] @ L[k, :k]
        L[k:, k] /= np.sqrt(L[k, k])
    return {"durbin": y, "lu": lu, "cholesky": L}
