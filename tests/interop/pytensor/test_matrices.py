"""Products, linear algebra, and core ops on batches."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytensor", minversion="3.0")

import pytensor
import pytensor.tensor as pt
from pytensor.tensor import linalg

from graphcore.interop.pytensor import UntranslatedError

from .compared import MODES, REFERENCE, same_differences, same_slopes, same_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

R = np.random.default_rng(3)
V, M, W = R.normal(size=4), R.normal(size=(4, 4)), R.normal(size=(4, 3))
T, S = R.normal(size=(2, 3, 4)), R.normal(size=(2, 4, 5))
P = M @ M.T + 4 * np.eye(4)
L = np.linalg.cholesky(P)
B = np.stack([P, 2 * P, P + np.eye(4)])
MORE = R.normal(size=(3, 4, 2))

PRODUCTS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "dot": (
        lambda x, y, v: [pt.dot(x, y), pt.dot(x, v), pt.dot(v, y), pt.dot(v, v), x @ y],
        [M, W, V],
    ),
    "matmul": (lambda x, y: [x @ y, pt.matmul(x, y[0]), pt.matmul(x[0], y)], [T, S]),
    "batched": (
        lambda x, y: [pt.batched_dot(x, y)] if hasattr(pt, "batched_dot") else x @ y,
        [T, S],
    ),
    "tensordot": (
        lambda x, y: [pt.tensordot(x, y, axes=[[2, 0], [1, 0]]), pt.outer(x[0, 0], y[0, 0])],
        [T, S],
    ),
    "einsum": (lambda x, y: [pt.einsum("bij,bjk->bik", x, y), pt.einsum("bij->ji", x)], [T, S]),
    "vecdot": (lambda x, y: [pt.vecdot(x, y), pt.matvec(x[:2, :2], y[0, :2])], [M, M.T]),
}
MATRICES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "cholesky": (lambda x: [linalg.cholesky(x), linalg.cholesky(x, lower=False)], [P]),
    "inverse": (lambda x: [linalg.inv(x), linalg.pinv(x)], [P]),
    "determinant": (lambda x: [linalg.det(x), *linalg.slogdet(x)], [P]),
    "solve": (lambda x, b, v: [linalg.solve(x, b), linalg.solve(x, v, b_ndim=1)], [M, W, V]),
    "solve symmetric": (
        lambda x, b: [linalg.solve(x, b, assume_a="sym"), linalg.solve(x, b, assume_a="pos")],
        [P, W],
    ),
    "solve triangular": (
        lambda x, b, v: [
            linalg.solve_triangular(x, b, lower=True),
            linalg.solve_triangular(x.T, b, lower=False),
            linalg.solve_triangular(x, b, lower=True, unit_diagonal=True),
            linalg.solve_triangular(x, v, lower=True, b_ndim=1),
            linalg.solve_triangular(x, b, lower=True, trans=1),
        ],
        [L, W, V],
    ),
    "solve by a factor": (
        lambda x, b, v: [
            linalg.cho_solve((x, True), b),
            linalg.cho_solve((x.T, False), v, b_ndim=1),
        ],
        [L, W, V],
    ),
    "exponential": (lambda x: linalg.expm(x / 4), [M]),
    "eigenvalues": (lambda x: [linalg.eigh(x)[0], linalg.eigvalsh(x)], [P]),
    "a symmetric function": (
        lambda x: [(lambda w, v: v @ pt.diag(pt.exp(w / 9)) @ v.T)(*linalg.eigh(x))],
        [P],
    ),
    "singular values": (
        lambda x: [
            linalg.svd(x, compute_uv=False),
            (lambda u, s, v: (u * s) @ v)(*linalg.svd(x, full_matrices=False)),
        ],
        [W],
    ),
    "full singular vectors": (
        lambda x: [(lambda u, s, v: (u[:, :3] * s) @ v)(*linalg.svd(x))],
        [W],
    ),
    "qr": (
        lambda x: [
            abs(linalg.qr(x)[1]),
            (lambda q, r: q @ r)(*linalg.qr(x, mode="economic")),
            abs(linalg.qr(x, mode="r")),
        ],
        [W],
    ),
    "lu": (
        lambda x: [*linalg.lu(x), *linalg.lu(x, permute_l=True), *linalg.lu(x, p_indices=True)],
        [M],
    ),
    "lu factor": (lambda x: [*linalg.lu_factor(x)], [M]),
    "solve by lu": (
        lambda x, b, v: [
            linalg.lu_solve(linalg.lu_factor(x), b),
            linalg.lu_solve(linalg.lu_factor(x), v, b_ndim=1),
        ],
        [M, W, V],
    ),
    "block diagonal": (lambda x, y: linalg.block_diag(x, y, x[:1]), [M, W]),
    "trace and norm": (lambda x: [pt.trace(x), linalg.norm(x), linalg.matrix_power(x, 3)], [M]),
    "a log density": (
        lambda x, v: (
            -0.5 * (linalg.solve_triangular(linalg.cholesky(x), v, lower=True, b_ndim=1) ** 2).sum()
            - pt.log(pt.diag(linalg.cholesky(x))).sum()
        ),
        [P, V],
    ),
    "lyapunov": (lambda x, q: linalg.solve_discrete_lyapunov(x / 9, q, method="direct"), [M, P]),
    "toeplitz": (lambda v: linalg.toeplitz(v) if hasattr(linalg, "toeplitz") else v, [V]),
}
BATCHES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "cholesky": (lambda x: [linalg.cholesky(x), linalg.cholesky(x[:, None])], [B]),
    "solve": (
        lambda x, b: [linalg.solve(x, b), linalg.solve(x[0], b), linalg.solve(x, b[0])],
        [B, MORE],
    ),
    "triangular": (
        lambda x, b: [
            linalg.solve_triangular(linalg.cholesky(x), b, lower=True),
            linalg.cho_solve((linalg.cholesky(x), True), b),
        ],
        [B, MORE],
    ),
    "inverse": (
        lambda x: [
            linalg.inv(x),
            linalg.det(x),
            *linalg.slogdet(x),
            linalg.expm(x / 30),
            linalg.pinv(x),
        ],
        [B],
    ),
    "eigenvalues": (lambda x: [linalg.eigh(x)[0], linalg.svd(x, compute_uv=False)], [B]),
    "blocks": (lambda x, y: linalg.block_diag(x, y), [B, MORE]),
    "lu": (lambda x: [*linalg.lu(x), linalg.lu_factor(x)[0]], [B]),
}
CASES = PRODUCTS | MATRICES | {f"{name} of a batch": case for name, case in BATCHES.items()}
NO_SLOPE = {"lu", "solve symmetric", "qr", "full singular vectors"}
"""Slopes that PyTensor lacks, or has wrong (`permute_l=True`), or that hold on a triangle."""
ON_A_TRIANGLE = {"eigenvalues", "a symmetric function"}
"""Slopes that PyTensor gives to one triangle, and we give to the other as well, or the reverse."""


@pytest.mark.parametrize("static", [False, True], ids=["open", "static"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, static: bool) -> None:
    same_values(*CASES[name], static, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if name not in NO_SLOPE | ON_A_TRIANGLE])
def test_slopes(name: str) -> None:
    same_slopes(*CASES[name], rtol=1e-7)


@pytest.mark.parametrize("name", NO_SLOPE | ON_A_TRIANGLE)
def test_slopes_are_those_of_differences(name: str) -> None:
    same_differences(*CASES[name])


@pytest.mark.parametrize("name", ["dot", "cholesky", "solve", "solve of a batch"])
def test_float32(name: str) -> None:
    build, arrays = CASES[name]
    same_values(build, [a.astype("float32") for a in arrays], rtol=1e-3)


@pytest.mark.parametrize("mode", ["numpy", "native"])
def test_a_permutation_of_a_complex_matrix_is_real(mode: str) -> None:
    x = pt.zmatrix("x")
    f, g = (pytensor.function([x], linalg.lu(x), mode=m) for m in (MODES[mode], REFERENCE))
    for y, z in zip(f(M + 1j * M[::-1]), g(M + 1j * M[::-1]), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", ["numpy", "native"])
def test_a_matrix_that_is_not_definite_gives_nan(mode: str) -> None:
    x = pt.matrix("x")
    outputs = [linalg.cholesky(x), linalg.inv(x * 0), linalg.solve(x * 0, x)]
    f = pytensor.function([x], outputs, mode=MODES[mode])
    for y in f(-P):
        assert not np.isfinite(y).all()


@pytest.mark.parametrize("kind", ["gen", "sym", "her", "pos"])
@pytest.mark.parametrize("lower", [True, False])
def test_systems_of_complex_matrices(kind: str, lower: bool) -> None:
    a = M + 1j * M[::-1]
    matrix = {"gen": a, "sym": a + a.T, "her": a + a.conj().T, "pos": a @ a.conj().T + np.eye(4)}
    part = np.tril if lower else np.triu
    x = matrix[kind] if kind == "gen" else part(matrix[kind])
    build = lambda x, b: linalg.solve(x, b, assume_a=kind, lower=lower)
    same_values(build, [x, W + 1j], rtol=1e-9)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("n", [3, 6])
def test_tridiagonal_factors(n: int, transposed: bool) -> None:
    ops = pytest.importorskip("pytensor.tensor.linalg.solvers.tridiagonal")
    low, main, above = R.normal(size=n - 1), R.normal(size=n), R.normal(size=n - 1)

    def build(low: Any, main: Any, above: Any, b: Any) -> Any:
        factors = ops.LUFactorTridiagonal()(low, main, above)
        solve = ops.SolveLUFactorTridiagonal(b_ndim=2, transposed=transposed)
        one = ops.SolveLUFactorTridiagonal(b_ndim=1, transposed=transposed)
        return [*factors, solve(*factors, b), one(*factors, b[:, 0])]

    for static in (False, True):
        same_values(build, [low, main, above, R.normal(size=(n, 2))], static, rtol=1e-9)


@pytest.mark.parametrize("lower", [True, False])
def test_generalized_eigenvalues(lower: bool) -> None:
    part = np.tril if lower else np.triu
    a, b = part(M + M.T), part(9 * P)
    same_values(lambda a, b: linalg.eigvalsh(a, b, lower=lower), [a, b], rtol=1e-9)
    kind = type(linalg.eigh(pt.matrix())[0].owner.op.core_op)
    try:
        eigh = kind(lower=lower)
        eigh(pt.matrix(), pt.matrix())
    except (TypeError, ValueError):
        return  # this version of PyTensor has values alone
    same_values(lambda a, b: [eigh(a, b)[0], abs(eigh(a, b)[1])], [a, b], rtol=1e-9)


def test_empty_and_size_1() -> None:
    x, y = R.normal(size=(0, 3)), R.normal(size=(3, 0))
    same_values(lambda x, y: [x @ y, y @ x, pt.dot(x, pt.ones(3))], [x, y])
    same_values(lambda x: [*linalg.lu_factor(x)], [np.ones((0, 0))])
    one = np.array([[2.0]])
    build = lambda x: [x @ x, linalg.cholesky(x), linalg.det(x), linalg.inv(x), linalg.solve(x, x)]
    same_values(build, [one], static=True)


def test_vectors_of_complex_eigenvalues() -> None:
    x = pt.matrix("x")
    w, v = linalg.eig(x)
    f, g = (
        pytensor.function([x], [w, (v * w) @ linalg.inv(v)], mode=mode)
        for mode in (MODES["numpy"], REFERENCE)
    )
    for y, z in zip(f(M), g(M), strict=True):
        np.testing.assert_allclose(
            np.sort_complex(y.ravel()), np.sort_complex(z.ravel()), atol=1e-10
        )


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
def test_convolution(mode: str) -> None:
    convolve = pytest.importorskip("pytensor.tensor.signal").convolve1d
    for x, y in ((V, V[:3]), (V[:2], V), (V, V[:1])):
        same_values(lambda x, y: convolve(x, y, mode=mode), [x, y])
    same_slopes(lambda x, y: convolve(x, y, mode="valid"), [V, V[:3]])


def test_fourier_transforms() -> None:
    from pytensor.tensor.fft import irfft, rfft

    same_values(lambda x: [rfft(x), irfft(rfft(x))], [R.normal(size=(3, 6))])
    same_values(lambda x: rfft(x), [R.normal(size=(2, 3, 4))])


@pytest.mark.parametrize(
    "build",
    [
        lambda x: linalg.schur(x),
        lambda x: linalg.qr(x, mode="raw"),
        lambda x: linalg.qr(x, pivoting=True),
    ],
)
def test_refusals(build: Callable[..., Any]) -> None:
    x = pt.matrix("x")
    with pytest.raises(UntranslatedError, match=r"(?s)PyTensor.*made at test_matrices.*cure"):
        pytensor.function([x], build(x), mode="GRAPHCORE")
