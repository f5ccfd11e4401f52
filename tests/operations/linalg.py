"""Linear algebra. Matrices are made of a rectangular input, so that all sizes serve; of vectors
that may have either sign, something is shown that does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, V, X

L = gc.linalg
SAME = ("row", "col")


def square(x: gc.Tensor) -> gc.Tensor:
    """Regular matrices, x sin(x)^T + 2, of the dims row and col."""
    product = gc.dot(x, gc.sin(x).rename(row="other"), dim="col").rename(other="col")
    n = x.sizes["row"]
    return product + gc.astype(2 * gc.eye({"row": n, "col": n}), x.dtype)


def positive(x: gc.Tensor) -> gc.Tensor:
    """x x^T + 1, of the dims row and col."""
    product = gc.dot(x, x.rename(row="other"), dim="col").rename(other="col")
    n = x.sizes["row"]
    return product + gc.astype(gc.eye({"row": n, "col": n}), x.dtype)


def square_of(x: np.ndarray) -> np.ndarray:
    return x @ np.sin(x).T + 2 * np.eye(len(x), dtype=x.dtype)


def positive_of(x: np.ndarray) -> np.ndarray:
    return x @ x.T + np.eye(len(x), dtype=x.dtype)


MAKE: dict[str, tuple[Any, Any]] = {
    "square": (square, square_of),
    "positive": (positive, positive_of),
    "wide": (lambda x: x, lambda x: x),
    "tall": (lambda x: x.rename(row="col", col="row"), lambda x: x.T),
}


def of(kind: str, ours: Any, theirs: Callable[..., Any], dims: Any = SAME) -> Case:
    """A function of one matrix; `theirs` is of an array, and its results have `dims`."""
    make, made_of = MAKE[kind]

    def wanted(x: Any) -> Any:
        values = made_of(x.values)
        return xarray.DataArray(np.asarray(theirs(values), x.dtype), dims=dims)

    return Case(lambda x: ours(make(x)), wanted)


def system(kind: str, ours: Any, theirs: Callable[..., Any], dims: Any, right: str = "row") -> Case:
    """A function of a matrix and of what is on the right, whose other dim is batch."""
    make, made_of = MAKE[kind]

    def wanted(x: Any, b: Any) -> Any:
        found = theirs(made_of(x.values), b.values)
        return xarray.DataArray(np.asarray(found, x.dtype).T, dims=dims)

    return Case(lambda x, b: ours(make(x), b), wanted, (X, Input(right)))


def nonempty(function: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy refuses empty matrices."""
    return lambda a: function(a) if a.size else a


def function_of(values: Any, vectors: Any, f: Any) -> gc.Tensor:
    """v f(w) v^H: the same whatever the signs of the vectors."""
    back = vectors.rename(row="col")
    return gc.dot(vectors, f(values), back, dim="eigen")


def through_svd(x: gc.Tensor) -> gc.Tensor:
    u, s, vh = L.svd(x)
    return gc.dot(u, gc.sin(s), vh, dim="rank")


def svd_reference(a: np.ndarray) -> np.ndarray:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return (u * np.sin(s)) @ vh


def onto_rest(v: gc.Tensor, dim: str, known: Any) -> gc.Tensor:
    """The projector onto the columns of `v` after the first `known`, any of which may turn."""
    rest = gc.where(gc.arange(v.sizes[dim], dim=dim) >= known, v, 0)
    return gc.dot(rest, rest.rename(row="col"), dim=dim)


def projector(x: gc.Tensor) -> gc.Tensor:
    u, s, _ = L.svd(x, full_matrices=True)
    return onto_rest(u, "left", s.sizes["rank"])


def projector_reference(a: np.ndarray) -> np.ndarray:
    u = np.linalg.svd(a)[0][:, min(a.shape) :]
    return u @ u.T


def qr_reference(part: int, mode: Any = "reduced") -> Callable[[Any], Any]:
    return lambda a: np.linalg.qr(a, mode)[part]


def lu_reference(part: int) -> Callable[[Any], Any]:
    def run(a: np.ndarray) -> np.ndarray:
        if not a.size:
            k = 0
            return np.eye(len(a), k) if part == 1 else np.zeros((k, a.shape[1]))
        return scipy.linalg.lu(a)[part]

    return run


def order_reference(a: np.ndarray) -> np.ndarray:
    return scipy.linalg.lu(a)[0].argmax(0) if a.size else np.arange(len(a))


def permuted(x: gc.Tensor) -> gc.Tensor:
    """p applied: the product of the factors."""
    p, lower, upper = L.lu(x)
    return x.isel(row=p) + 0 * gc.dot(lower, upper, dim="pivot")


def triangle(lower: bool, unit: bool) -> Callable[..., Any]:
    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        t = np.tril(a) if lower else np.triu(a)
        if unit:
            np.fill_diagonal(t, 1)
        return np.linalg.solve(t, b)

    return run


def tridiagonal(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
    """By the whole matrix; all run along the rows."""
    low, on, up, right = (x.values for x in (lower, diagonal + 4, upper, b))
    if not len(on):
        return b
    a = np.diag(on) + np.diag(low[1:], -1) + np.diag(up[:-1], 1)
    return b.copy(data=np.linalg.solve(a, right))


def toeplitz(c: Any, r: Any = None) -> Any:
    column, row = c.values, c.values if r is None else r.values
    n, m = len(column), len(row)
    values = np.concatenate([row[:0:-1], column])
    at = np.arange(n)[:, None] - np.arange(m) + max(m - 1, 0)
    found = values[at] if n and m else np.zeros((n, m), column.dtype)
    return xarray.DataArray(found, dims=("row", "col"))


def minimum_norm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.pinv(a) @ b if a.size else np.zeros((a.shape[1], *b.shape[1:]))


def pinv(a: np.ndarray) -> np.ndarray:
    return np.linalg.pinv(a) if a.size else a.T


def norm_of(order: Any) -> Case:
    def theirs(x: Any) -> Any:
        a = x.values
        found = np.linalg.norm(a, order) if a.size else edge(a, order)
        return xarray.DataArray(np.asarray(found, x.dtype))

    return Case(lambda x: L.norm(x, SAME, order), theirs)


def edge(a: np.ndarray, order: Any) -> Any:
    """Norms of nothing: sums are 0, and an extreme of nothing is refused but over sums of none."""
    if order in ("fro", "nuc", None):
        return 0
    over = {1: 1, -1: 1, np.inf: 0, -np.inf: 0}.get(order)
    left = min(a.shape) if over is None else a.shape[over]
    if not left:
        raise ValueError("an extreme of nothing")
    return 0


STATE = ("state", "other")


def state(p: gc.Tensor) -> gc.Tensor:
    return p.rename(row="state", col="other")


def triangular(x: Any) -> Any:
    """Rows of packed elements as lower triangles."""
    made = np.zeros((x.sizes["row"], 3, 3), x.dtype)
    made[:, *np.tril_indices(3)] = x.values
    return xarray.DataArray(made, dims=("row", "i", "j"))


CASES: dict[str, Case] = {
    "apply": Case(
        lambda x, b: L.apply(square(x), b, along="row"),
        lambda x, b: b.copy(data=np.einsum("ij,kjl->kil", square_of(x.values), b.values)),
        (X, Input("six row i")),
    ),
    "congruence": Case(
        lambda x, y: L.congruence(square(x), state(square(y)), of=STATE),
        lambda x, y: xarray.DataArray(
            square_of(x.values) @ square_of(y.values) @ square_of(x.values).T, dims=STATE
        ),
        (X, X),
    ),
    "congruence new": Case(
        lambda x: L.congruence(
            x, state(positive(MAKE["tall"][0](x))), of=STATE, new=("row", "col")
        ),
        lambda x: xarray.DataArray(
            x.values @ positive_of(x.values.T) @ x.values.T, dims=("row", "col")
        ),
    ),
    "cholesky": of("positive", L.cholesky, np.linalg.cholesky),
    "cholesky upper": of(
        "positive", lambda a: L.cholesky(a, upper=True), lambda a: np.linalg.cholesky(a).T
    ),
    "cholesky of a triangle": of(
        "positive", lambda a: L.cholesky(gc.tril(a)), np.linalg.cholesky
    ),
    **{
        f"qr {kind} {part} {mode}": of(
            kind, lambda a, part=part, mode=mode: getattr(L.qr(a, mode=mode), part),
            qr_reference("qr".index(part), mode),
            ("row", "rank") if part == "q" else ("rank", "col"),
        )
        for kind in ("wide", "tall", "square") for part in "qr" for mode in ("reduced", "complete")
        if not (kind == "tall" and part == "q" and mode == "complete")
    },
    "qr complete": of(
        "tall", lambda a: onto_rest(L.qr(a, mode="complete").q, "rank", a.sizes["col"]),
        projector_reference,
    ),
    **{
        f"lu {kind} {part}": of(
            kind, lambda a, part=part: getattr(L.lu(a), part),
            lu_reference(1 if part == "lower" else 2),
            ("row", "pivot") if part == "lower" else ("pivot", "col"),
        )
        for kind in ("wide", "tall", "square") for part in ("lower", "upper")
    },
    **{
        f"lu {kind} order": Case(
            lambda x, make=make: L.lu(make(x)).permutation,
            lambda x, made_of=made_of: xarray.DataArray(
                order_reference(made_of(x.values)), dims="row"
            ),
        )
        for kind, (make, made_of) in MAKE.items()
    },
    "lu permuted": of("square", permuted, lambda a: a[order_reference(a)]),
    **{f"svd {kind}": of(kind, through_svd, svd_reference) for kind in ("wide", "tall", "square")},
    **{
        f"svd full {kind}": of(kind, projector, projector_reference)
        for kind in ("wide", "tall", "square")
    },
    "svd values": of(
        "wide", lambda a: L.svd(a).s, lambda a: np.linalg.svd(a, compute_uv=False), "rank"
    ),
    **{
        f"svdvals {kind}": of(
            kind, L.svdvals, lambda a: np.linalg.svd(a, compute_uv=False), "rank"
        )
        for kind in ("wide", "tall", "square")
    },
    "eigh values": of(
        "positive", lambda a: L.eigh(a).values, np.linalg.eigvalsh, "eigen"
    ),
    "eigh": of(
        "positive", lambda a: function_of(*L.eigh(a), gc.log),
        lambda a: scipy.linalg.logm(a.astype("float64")) if a.size else a,
    ),
    "eigh upper": of(
        "positive", lambda a: function_of(*L.eigh(gc.triu(a), lower=False), gc.sqrt),
        lambda a: scipy.linalg.sqrtm(a.astype("float64")) if a.size else a,
    ),
    "eigvalsh": of("positive", L.eigvalsh, np.linalg.eigvalsh, "eigen"),
    "eigvalsh upper": of(
        "square", lambda a: L.eigvalsh(a, lower=False),
        lambda a: np.linalg.eigvalsh(a, UPLO="U"), "eigen",
    ),
    "eig": of(
        "square",
        lambda a: gc.real(gc.dot(gc.abs(L.eig(a).vectors) ** 2, L.eig(a).values, dim="eigen")),
        lambda a: (lambda w, v: (np.abs(v) ** 2 @ w).real)(*np.linalg.eig(a)), "row",
    ),
    "eigvals": of("square", lambda a: gc.real(L.eigvals(a) ** 3).sum("eigen"),
                  lambda a: np.trace(a @ a @ a), ()),
    "solve": system("square", L.solve, np.linalg.solve, "col"),
    "solve transposed": system(
        "square", lambda a, b: L.solve(a, b.rename(row="col"), dims=("col", "row")),
        lambda a, b: np.linalg.solve(a.T, b), "row",
    ),
    "solve columns": system(
        "square", L.solve, np.linalg.solve, ("batch", "col"), "row batch"
    ),
    **{
        f"solve_triangular {lower} {unit}": system(
            "square",
            lambda a, b, lower=lower, unit=unit: L.solve_triangular(
                a, b, lower=lower, unit_diagonal=unit
            ),
            triangle(lower, unit), ("batch", "col"), "row batch",
        )
        for lower in (True, False) for unit in (True, False)
    },
    "cho_solve": system(
        "positive", lambda a, b: L.cho_solve(L.cholesky(a), b), np.linalg.solve, "row"
    ),
    "solve_tridiagonal": Case(
        lambda low, on, up, b: L.solve_tridiagonal(low, on + 4, up, b, "row"), tridiagonal,
        (V, V, V, V),
    ),
    "inv": of("square", L.inv, np.linalg.inv, ("col", "row")),
    "pinv": of("wide", L.pinv, pinv, ("col", "row")),
    "pinv tall": of("tall", L.pinv, pinv, ("col", "row")),
    "lstsq": system("wide", L.lstsq, minimum_norm, "col"),
    "lstsq square": system("square", L.lstsq, minimum_norm, "col"),
    "det": of("square", L.det, np.linalg.det, ()),
    **{
        f"slogdet {part}": of(
            "square", lambda a, i=i: L.slogdet(a)[i], lambda a, i=i: np.linalg.slogdet(a)[i], ()
        )
        for i, part in enumerate(("sign", "logabsdet"))
    },
    "matrix_rank": Case(
        L.matrix_rank, lambda x: xarray.DataArray(np.int64(min(x.shape)))
    ),
    **{f"matrix_power {n}": of(
        "square", lambda a, n=n: L.matrix_power(a, n), lambda a, n=n: np.linalg.matrix_power(a, n)
    ) for n in (0, 1, 3, -2)},
    "expm": of("square", lambda a: L.expm(0.2 * a), nonempty(lambda a: scipy.linalg.expm(0.2 * a))),
    "logm": of("square", L.logm, nonempty(lambda a: scipy.linalg.logm(a.astype("f8")))),
    "sqrtm": of("square", L.sqrtm, nonempty(lambda a: scipy.linalg.sqrtm(a.astype("f8")))),
    "polar": of("square", lambda a: L.polar(a).unitary,
                nonempty(lambda a: scipy.linalg.polar(a)[0])),
    "polar positive": of(
        "square", lambda a: L.polar(a).positive.rename({"col": "row", "col'": "col"}),
        nonempty(lambda a: scipy.linalg.polar(a)[1]),
    ),
    **{f"norm of matrices {order}": norm_of(order)
       for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)},
    "matrix_transpose": Case(
        L.matrix_transpose,
        lambda x: x.rename(row="col", col="row").transpose("row", "col"),
    ),
    "outer": Case(
        L.outer, lambda x, y: (x * y), (V, Input("col"))
    ),
    "outer of one dim": Case(
        lambda x: L.outer(x, gc.sin(x)), lambda x: x * np.sin(x).rename(row="col"), (V,)
    ),
    "kron": Case(
        L.kron,
        lambda x, y: xarray.DataArray(
            np.kron(x.values, y.transpose("row", "col").values), dims=("row", "col")
        ),
        (X, Input("col row")),
    ),
    "kron of vectors": Case(
        lambda x: L.kron(x, x, "row"),
        lambda x: xarray.DataArray(np.kron(x.values, x.values), dims="row"), (V,),
    ),
    "block_diag": Case(
        lambda x, y: L.block_diag(x, y, x),
        lambda x, y: xarray.DataArray(
            scipy.linalg.block_diag(x.values, y.transpose("row", "col").values, x.values)
            .astype(x.dtype), dims=("row", "col"),
        ),
        (X, Input("col row")),
    ),
    "toeplitz": Case(L.toeplitz, toeplitz, (V,)),
    "toeplitz row": Case(
        lambda c, r: L.toeplitz(c, r.rename(col="row")), toeplitz, (V, Input("col"))
    ),
    "fill_triangular": Case(
        lambda x: L.fill_triangular(x, "six", ("i", "j")), triangular, (Input("row six"),),
        fixed=("six",),
    ),
    "polyfit": Case(
        lambda x, y: L.polyfit(x, y, 1, "col"),
        lambda x, y: xarray.DataArray(
            np.polyfit(x.values, y.transpose("col", "row").values, 1), dims=("degree", "row")
        ).astype(x.dtype).transpose("row", "degree"),
        (Input("col", -2, 2), X), fixed=("row", "col"),
    ),
}  # fmt: skip
