"""The names of the language of the cases: none is left out, and each means what NumPy means."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import graphcore as gc
from tests.cases.language import NAMED, POSITIONAL, Positional, total

Array = np.ndarray[Any, Any]

ELEMENTWISE = """
    neg abs sign exp expm1 log log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh
    acosh atanh sigmoid erf erfc erf_inv real imag conj floor atan2 maximum minimum pow rem where
    clip cast stop_grad
"""
REDUCTIONS = "sum mean prod reduce_max reduce_min var std logsumexp all any argmax argmin"
RUNNING = "cumsum cumprod cummax cummin"
LINALG = """
    cholesky qr svd svdvals eigh lu solve tri_solve inv det slogdet pinv norm matrix_power lstsq
    expm
"""
CONTROL = "cond while_loop fori scan grad np"
BY_POSITION = """
    reshape transpose squeeze expand broadcast reverse concat stack pad slice put_slice take
    take_along gather indexed_put indexed_add sort dot matmul outer einsum dot_general kron cross
    conv window_sum window_max window_min window_scatter_max window_scatter_min fft ifft mT diag
    trace make_diag tril triu pi eye iota
"""
BY_NAME = """
    max min softmax transpose rename concat stack_dims unstack_dim stack_new expand_dims squeeze
    broadcast_dims dot isel set_at flip slice const window_sum conv1d
"""


@pytest.mark.parametrize(("bound", "own"), [(POSITIONAL, BY_POSITION), (NAMED, BY_NAME)])
def test_every_name_is_bound(bound: dict[str, Any], own: str) -> None:
    language = f"{ELEMENTWISE} {REDUCTIONS} {RUNNING} {CONTROL} {own} {LINALG}"
    assert set(bound) == {*language.split()}


def test_no_name_of_the_prose_is_left_out() -> None:
    """What the file with the first cases explains, as in `pad(x, value, ...)`, is bound."""
    file = json.loads((Path(__file__).parent / "seed_cases.json").read_text("utf-8"))
    explained = set(re.findall(r"\b([a-z_0-9]+)\(", " ".join(file["language"].values())))
    assert explained - {*POSITIONAL, *NAMED} == {"eval", "vector", "body", "rank"}


# ---- references


def correlated(
    x: Array, k: Array, step: int, ends: tuple[int, int], gap: int, **more: int
) -> Array:
    """y[n, o, p] = sum over c, j of x[n, c, step p + gap j - before] k[o, c, j], in groups."""
    inner, groups, parts = more.get("inner", 1), more.get("groups", 1), more.get("parts", 1)
    whole = np.zeros((*x.shape[:2], sum(ends) + (x.shape[2] - 1) * inner + 1))
    whole[:, :, ends[0] : ends[0] + (x.shape[2] - 1) * inner + 1 : inner] = x
    count = (whole.shape[2] - (k.shape[2] - 1) * gap - 1) // step + 1
    batch, outs = x.shape[0] // parts, k.shape[0]
    y = np.zeros((batch, outs, count))
    for n, o, p, c, j in itertools.product(*map(range, (*y.shape, *k.shape[1:]))):
        part, group = o // (outs // parts), o % (outs // parts) // (outs // parts // groups)
        y[n, o, p] += (
            whole[part * batch + n, group * k.shape[1] + c, step * p + gap * j] * k[o, c, j]
        )
    return y


def moved(x: Array, window: tuple[int, int]) -> Array:
    """The windows of a matrix, flat."""
    seen = np.lib.stride_tricks.sliding_window_view(x, window)
    return seen.reshape(*seen.shape[:2], -1)


def put(x: Array, at: Any, u: Any, add: bool = False) -> Array:
    """A copy with other values at some places."""
    y = np.array(x)
    np.add.at(y, at, u) if add else y.__setitem__(at, u)
    return y


def spread(x: Array, source: Array, window: int, best: Callable[..., Array]) -> Array:
    """Values of `source` added where windows of the rows of `x` have their extremes."""
    y = np.zeros(x.shape)
    for row, i in np.ndindex(*source.shape):
        y[row, i * window + best(x[row, i * window : (i + 1) * window])] += source[row, i]
    return y


REFERENCES = {
    "np": np,
    "erfinv": scipy.special.erfinv,
    "logsumexp": scipy.special.logsumexp,
    "expm": scipy.linalg.expm,
    "lu": scipy.linalg.lu,
    "correlated": correlated,
    "moved": moved,
    "put": put,
    "spread": spread,
}

LINALG_ROWS = [
    ("cholesky(A + mT(A))", "np.linalg.cholesky(A + A.T)"),
    ("qr(x)[1]", "np.linalg.qr(x)[1]"),
    ("qr(mT(x), 'complete')[1]", "np.linalg.qr(x.T, 'complete')[1]"),
    ("svd(x)[1]", "np.linalg.svd(x)[1]"),
    ("svd(x, True)[1]", "np.linalg.svd(x)[1]"),
    ("svdvals(x)", "np.linalg.svd(x)[1]"),
    ("eigh(A)[0]", "np.linalg.eigvalsh(A)"),
    ("eigh(A, 'U')[0]", "np.linalg.eigvalsh(A, 'U')"),
    ("lu(A)[0]", "lu(A)[0]"),
    ("matmul(lu(mT(x))[0], lu(mT(x))[1])", "lu(x.T)[0] @ lu(x.T)[1]"),
    ("lu(x)[2]", "lu(x)[2]"),
    ("solve(A, v)", "np.linalg.solve(A, v)"),
    ("solve(A, mT(x))", "np.linalg.solve(A, x.T)"),
    ("tri_solve(A, v)", "np.linalg.solve(np.tril(A), v)"),
    ("tri_solve(A, mT(x), False)", "np.linalg.solve(np.triu(A), x.T)"),
    ("tri_solve(A, v, True, True)", "np.linalg.solve(np.tril(A).T, v)"),
    ("tri_solve(A, x, True, False, False)", "x @ np.linalg.inv(np.tril(A))"),
    (
        "tri_solve(A, x, True, True, False, True)",
        "x @ np.linalg.inv(np.tril(A, -1).T + np.eye(3))",
    ),
    ("inv(A)", "np.linalg.inv(A)"),
    ("det(A)", "np.linalg.det(A)"),
    ("slogdet(A)[1]", "np.linalg.slogdet(A)[1]"),
    ("pinv(x)", "np.linalg.pinv(x)"),
    ("norm(x)", "np.linalg.norm(x)"),
    ("norm(x, 1, 1)", "np.linalg.norm(x, 1, 1)"),
    ("norm(x, 'nuc', (0, 1), True)", "np.linalg.norm(x, 'nuc', keepdims=True)"),
    ("matrix_power(A, 3)", "A @ A @ A"),
    ("lstsq(x, v[:2])", "np.linalg.pinv(x) @ v[:2]"),
    ("expm(A / 9)", "expm(A / 9)"),
]
"""Of A = vᵀ v + 3, which has another value in each place of its triangles."""
SAID = "(v[:, None] * v + 3 * eye(3) + tril(v[:, None] * np.ones((3, 3)), -1))"
MEANT = "(v[:, None] * v + 3 * np.eye(3) + np.tril(v[:, None] * np.ones((3, 3)), -1))"

POSITIONAL_ROWS = [
    ("x + v", "x + v"),
    ("2 - x", "2 - x"),
    ("np.ones((3, 1)) * v", "np.ones((3, 1)) * v"),
    ("x[..., None, :] * x[:, None]", "x[..., None, :] * x[:, None]"),
    ("x[1, ::-1]", "x[1, ::-1]"),
    ("x[:, [2, 0, 2]]", "x[:, [2, 0, 2]]"),
    ("x[[1, 0, 1], [2, 1, 2]]", "x[[1, 0, 1], [2, 1, 2]]"),
    ("fori(3, lambda i, s: s + x[0, i] * v[i], 0.0)", "x[0] @ v"),
    ("scan(lambda c, r: (c + r, c * r), v, x)[1]", "np.stack([v * x[0], (v + x[0]) * x[1]])"),
    ("where(x > 1, x, v)", "np.where(x > 1, x, v)"),
    ("erf_inv(v / 3)", "erfinv(v / 3)"),
    ("rem(-x, 0.7)", "np.fmod(-x, 0.7)"),
    ("-abs(x - 1) @ transpose(x)", "-abs(x - 1) @ x.T"),
    ("eye(2) @ x + iota(3)", "x + np.arange(3.0)"),
    ("sum(x, 0, keep=True)", "x.sum(0, keepdims=True)"),
    ("var(x, (0, 1), ddof=1)", "x.var(ddof=1)"),
    ("logsumexp(x, 1)", "logsumexp(x, 1)"),
    ("argmax(x)", "x.argmax()"),
    ("cumsum(x, 1)", "x.cumsum(1)"),
    ("cumsum(x * v, 1, reverse=True)", "(x * v)[:, ::-1].cumsum(1)[:, ::-1]"),
    ("cummax(x * v)", "np.maximum.accumulate(x * v, 1)"),
    ("cummin(x * v, 0)", "np.minimum.accumulate(x * v, 0)"),
    ("reshape(x, (3, 2))", "x.reshape(3, 2)"),
    ("transpose(reshape(x, (1, 2, 3)), (2, 0, 1))", "x.reshape(1, 2, 3).transpose(2, 0, 1)"),
    ("squeeze(expand(x, -1))", "x"),
    ("expand(x, 1)", "x[:, None]"),
    ("expand(x, (0, -1))", "x[None, ..., None]"),
    ("broadcast(v, (2, 3))", "np.broadcast_to(v, (2, 3))"),
    ("reverse(x, (0,))", "x[::-1]"),
    ("concat([x, x + 1], 1)", "np.concatenate([x, x + 1], 1)"),
    ("stack([x, x + 1], -1)", "np.stack([x, x + 1], -1)"),
    ("slice(x, (0, 1), (2, 2), (2, 1))", "x[0:2:2, 1:3]"),
    ("pad(x, v[1], [(1, 0, 0), (0, 2, 0)])", "np.pad(x, ((1, 0), (0, 2)), constant_values=v[1])"),
    ("pad(v, 7.0, [(-1, 1, 2)])", "np.array([7, 7, v[1], 7, 7, v[2], 7])"),
    ("pad(x, 0, [(0, 0, 0), (2, -1, 1)])", "put(np.zeros((2, 6)), np.s_[:, 2::2], x[:, :2])"),
    ("put_slice(x, (1, 1), v[None, :2])", "put(x, np.s_[1:, 1:], v[:2])"),
    ("put_slice(x, (-3, 9), x[:, 1:] ** 2)", "put(x, np.s_[:, 1:], x[:, 1:] ** 2)"),
    ("sort(x * v)", "np.sort(x * v)"),
    ("sort(x * v, 1, True)", "np.sort(x * v)[:, ::-1]"),
    ("take(x, [[0, 2], [1, 1]], 1)", "x[:, [[0, 2], [1, 1]]]"),
    ("take_along(x, [[2], [0]], 1)", "np.take_along_axis(x, np.array([[2], [0]]), 1)"),
    ("gather(x, [[1, 2], [0, 0], [1, 2]])", "x[[1, 0, 1], [2, 0, 2]]"),
    ("gather(x, [[[1], [1]]], [1])", "x.T[[[1, 1]]]"),
    ("gather(x, [[2, 1]], [1, 0])", "x[[1], [2]]"),
    ("indexed_put(x, [[1, 2], [0, 0]], v[:2])", "put(x, ([1, 0], [2, 0]), v[:2])"),
    ("indexed_put(x, [[2]], v[None, :2], [1])", "put(x, np.s_[:, 2], v[:2])"),
    ("indexed_add(x, [[1], [1]], x, [0])", "put(x, 1, x[1] + x[0] + x[1])"),
    ("indexed_add(x, [[0, 1], [0, 1]], v[1:])", "put(x, ([0, 0], [1, 1]), v[1:], add=True)"),
    ("dot(x, v)", "x @ v"),
    ("dot(x, mT(x))", "x @ x.T"),
    ("matmul(reshape(x, (2, 1, 3)), mT(x))", "x.reshape(2, 1, 3) @ x.T"),
    ("outer(v, x)", "np.outer(v, x)"),
    ("einsum('ij,kj->ki', x, x)", "np.einsum('ij,kj->ki', x, x)"),
    ("einsum('ij,j', x, v)", "x @ v"),
    ("einsum('ii->i', x[:, :2])", "np.diag(x[:, :2])"),
    ("dot_general(x, [1], [], v, [0], [])", "x @ v"),
    ("dot_general(x, [], [1], x, [], [1])", "np.einsum('ij,kj->jik', x, x)"),
    ("dot_general(x, [0], [1], x, [0], [1])", "np.einsum('ij,ij->j', x, x)"),
    ("kron(x, v)", "np.kron(x, v)"),
    ("kron(x, mT(x))", "np.kron(x, x.T)"),
    ("cross(x, v)", "np.cross(x, v)"),
    ("diag(x[:, :, None] * v)", "x * v"),
    ("trace(x[:, :, None] * v)", "x @ v"),
    ("make_diag(x)", "x[..., None] * np.eye(3)"),
    ("tril(x[:, :, None] * v, -1)", "np.tril(x[:, :, None] * v, -1)"),
    ("triu(x[:, :, None] * v)", "np.triu(x[:, :, None] * v)"),
    ("real(fft(x) * fft(v))", "np.real(np.fft.fft(x) * np.fft.fft(v))"),
    ("abs(fft(x, 5, 0))", "abs(np.fft.fft(x, 5, 0))"),
    ("imag(ifft(x * v, n=2))", "np.imag(np.fft.ifft(x * v, n=2))"),
    ("window_sum(x, (2, 2), (1, 1))", "moved(x, (2, 2)).sum(-1)"),
    (
        "window_max(x * v, (1, 2), (1, 2), [(0, 0), (1, 0)])",
        "np.maximum.reduceat(x * v, [0, 1], 1)",
    ),
    ("window_min(x * v, (2, 2), None, None, (1, 2))", "np.min((x * v)[:, ::2], keepdims=True)"),
    (
        "window_scatter_max(reshape(x * v, (1, 6)), v[None, :2], 0.5, (1, 3), (1, 3))",
        "spread((x * v).reshape(1, 6), v[None, :2], 3, np.argmax) + 0.5",
    ),
    (
        "window_scatter_min(reshape(x * v, (1, 6)), v[None], x[0, 0], (1, 2), (1, 2))",
        "spread((x * v).reshape(1, 6), v[None], 2, np.argmin) + x[0, 0]",
    ),
    (
        "conv(reshape(x, (1, 2, 3)), reshape(x, (3, 2, 1)))",
        "correlated(x.reshape(1, 2, 3), x.reshape(3, 2, 1), 1, (0, 0), 1)",
    ),
    (
        "conv(reshape(x, (1, 1, 6)), reshape(v, (1, 1, 3)), [2], [(2, 1)], None, [2])",
        "correlated(x.reshape(1, 1, 6), v.reshape(1, 1, 3), 2, (2, 1), 2)",
    ),
    (
        "conv(reshape(x, (1, 2, 3)), x[:, None], None, [(1, 1)], [2], None, feature_groups=2)",
        "correlated(x.reshape(1, 2, 3), x[:, None], 1, (1, 1), 1, inner=2, groups=2)",
    ),
    (
        "conv(x[:, None], reshape(x, (2, 1, 3))[..., :2], batch_groups=2)",
        "correlated(x[:, None], x.reshape(2, 1, 3)[..., :2], 1, (0, 0), 1, parts=2)",
    ),
    (
        "conv(x[None, None], reshape(x, (1, 1, 3, 2))[:, :, :2], None, [(0, 0), (1, 0)])[0, 0]",
        "moved(np.pad(x, ((0, 0), (1, 0))), (2, 2)) @ x.reshape(3, 2)[:2].ravel()",
    ),
    ("grad(lambda u: u * u * v)(x)", "2 * x * v"),
    ("cast(x, 'int64')", "x.astype(int)"),
    *[(said.replace("A", SAID), meant.replace("A", MEANT)) for said, meant in LINALG_ROWS],
]

NAMED_ROWS = [
    ("svdvals(x, ('r', 'c'))", "np.linalg.svd(x)[1]"),
    ("pinv(x, ('r', 'c'))", "np.linalg.pinv(x)"),
    ("lstsq(x, isel(v, c=slice(0, 2)).rename(c='r'), ('r', 'c'))", "np.linalg.pinv(x) @ v[:2]"),
    ("norm(x, 2, 'r', True)", "np.linalg.norm(x, 2, 0, True)"),
    ("cummax(x * v, 'c')", "np.maximum.accumulate(x * v, 1)"),
    ("cummin(x * v, 'r')", "np.minimum.accumulate(x * v, 0)"),
    ("erf_inv(v / 3)", "erfinv(v / 3)"),
    ("window_sum(x, 'c', 2)", "x[:, 1:] + x[:, :-1]"),
    ("conv1d(x, isel(v, c=slice(0, 2)), 'c')", "x[:, :-1] * v[0] + x[:, 1:] * v[1]"),
]

X = np.arange(1.0, 7.0).reshape(2, 3) ** 1.5 / 4
V = np.array([0.5, -1.0, 2.0])


def slope(function: Callable[[Array], Array], x: Array, ct: Array) -> Array:
    """The gradient of the sum of `ct` times a function, by central differences."""
    found, h = np.empty_like(x), 1e-6
    for at in np.ndindex(*x.shape):
        ahead, behind = function(put(x, at, h, add=True)), function(put(x, at, -h, add=True))
        found[at] = np.sum(ct * (ahead - behind)) / (2 * h)
    return found


def check(made: gc.Tensor, params: tuple[gc.Tensor, gc.Tensor], meant: str) -> None:
    """Compare the value and its gradients with those of NumPy."""

    def reference(x: Array, v: Array) -> Array:
        return np.asarray(eval(meant, {**REFERENCES, "x": x, "v": v}))

    wanted = reference(X, V)
    np.testing.assert_allclose(gc.compile(params, made)(X, V), wanted, rtol=1e-13, strict=True)
    if made.dtype.kind != "f":
        return
    ct = np.cos(np.arange(wanted.size)).reshape(wanted.shape)
    y = total(made * gc.constant(ct, made.dims))
    by_x, by_v = gc.compile(params, gc.grad(y, [*params], disconnected="zero"))(X, V)
    np.testing.assert_allclose(by_x, slope(lambda x: reference(x, V), X, ct), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(by_v, slope(lambda v: reference(X, v), V, ct), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("said", "meant"), POSITIONAL_ROWS)
def test_positional_names(said: str, meant: str) -> None:
    x, v = gc.tensor("x", {"d0": 2, "d1": 3}), gc.tensor("v", {"d0": 3})
    made = eval(said, {**POSITIONAL, "x": Positional(x), "v": Positional(v)})
    check(made.tensor, (x, v), meant)


@pytest.mark.parametrize(("said", "meant"), NAMED_ROWS)
def test_named_names(said: str, meant: str) -> None:
    x, v = gc.tensor("x", {"r": 2, "c": 3}), gc.tensor("v", {"c": 3})
    check(eval(said, {**NAMED, "x": x, "v": v}), (x, v), meant)
