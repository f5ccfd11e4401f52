"""Every op of linear algebra and every variant, by what it means for one matrix.

Matrices have the dims p and q. What is unique but for the sign or phase of vectors is shown through
something that does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

import graphcore as gc
from graphcore import linalg as L

PQ = ("p", "q")
INF = np.inf
SQUARE, TALL, WIDE = (3, 3), (4, 3), (3, 4)
SHAPES = {"square": SQUARE, "tall": TALL, "wide": WIDE}


class Variant(NamedTuple):
    """`ours` of a tensor with dims p and q and others is `theirs` of each matrix, with `dims`."""

    ours: Callable[[gc.Tensor], gc.Tensor]
    theirs: Callable[[np.ndarray], Any]
    dims: tuple[str, ...]
    kind: str = "regular"
    shape: tuple[int, int] = SQUARE
    of_complex: bool = True

    def draw(self, random: np.random.Generator, batch: tuple[int, ...], dtype: str) -> np.ndarray:
        """Matrices near one of the kind, where the op is smooth."""
        near = np.eye(*self.shape) * KINDS[self.kind][: self.shape[1]]
        if self.kind == "turning":
            near[0, 1], near[1, 0] = -2, 2
        if self.kind == "dense":  # no element is near 0
            near = near + 2
        a = random.normal(size=(*batch, *self.shape))
        if np.dtype(dtype).kind == "c":
            a = a + 1j * random.normal(size=a.shape)
        a = near + a / 4
        return (a @ np.swapaxes(a, -1, -2).conj() if self.kind == "positive" else a).astype(dtype)


KINDS = {
    "regular": [1.5, 2.5, 3.5, 4.5],
    "positive": [1.0, 1.5, 2.0, 2.5],
    "turning": [1, 1, 3, 3],
    "dense": [0.0, 1.0, 2.0, 3.0],
    "any": [3.2, -2.1, 1.1, 0.3],
}


def swapped(x: gc.Tensor) -> gc.Tensor:
    return x.rename(p="q", q="p")


def right(x: gc.Tensor, columns: bool) -> gc.Tensor:
    """A right-hand side that depends on the matrix: a vector, or columns k."""
    return gc.sin(x).rename(q="k") if columns else gc.sin(x).sum("q")


def right_of(a: np.ndarray, columns: bool) -> np.ndarray:
    return np.sin(a) if columns else np.sin(a).sum(1)


def without_phase(v: gc.Tensor, along: str) -> gc.Tensor:
    """Vectors times the conjugate of their first element: unique."""
    return v * gc.conj(v.isel({along: 0}))


def without_phase_of(v: np.ndarray) -> np.ndarray:
    return v * v[0].conj()


def rest(v: gc.Tensor, dim: str, first: int) -> gc.Tensor:
    """The projector onto the columns after the first few, which may be turned among themselves."""
    after = v.isel({dim: slice(first, None)})
    return gc.dot(after, gc.conj(after).rename(p="q"), dim=dim)


def rest_of(v: np.ndarray, first: int) -> np.ndarray:
    return v[:, first:] @ v[:, first:].conj().T


def h(a: np.ndarray) -> np.ndarray:
    return a.conj().T


def triangle(a: np.ndarray, lower: bool, unit: bool) -> np.ndarray:
    t = np.tril(a) if lower else np.triu(a)
    return t - np.diag(np.diag(t)) + np.eye(len(t)) if unit else t


def bands(x: gc.Tensor) -> list[gc.Tensor]:
    low, on, up = (x.isel(q=i) for i in range(3))
    return [low, on + 5, up]


def bands_of(a: np.ndarray) -> np.ndarray:
    return np.diag(a[1:, 0], -1) + np.diag(a[:, 1] + 5) + np.diag(a[:-1, 2], 1)


def low_rank(x: gc.Tensor) -> gc.Tensor:
    """Rank 2 whatever x (4, 2) is."""
    factor = gc.constant(FACTOR, ("q", "q'")).astype(x.dtype)
    return gc.dot(x, factor, dim="q").rename({"q'": "q"})


FACTOR = np.array([[1.0, 2.0, 0.5], [-1.0, 0.5, 1.0]])


def toeplitz(a: np.ndarray, row: bool) -> np.ndarray:
    return scipy.linalg.toeplitz(a[:, 0], a[0] if row else None)


TABLE: dict[str, Variant] = {
    "cholesky lower": Variant(
        lambda x: L.cholesky(x, PQ), np.linalg.cholesky, PQ, "positive"
    ),
    "cholesky upper": Variant(
        lambda x: L.cholesky(x, PQ, upper=True), lambda a: h(np.linalg.cholesky(h(np.triu(a)))),
        PQ, "positive",
    ),
    **{
        f"qr {mode} {name} {part}": Variant(
            lambda x, mode=mode, part=part: getattr(L.qr(x, PQ, mode=mode, new="k"), part),
            lambda a, mode=mode, part=part: np.linalg.qr(a, mode)["qr".index(part)],
            ("p", "k") if part == "q" else ("k", "q"), "any", shape,
        )
        for mode, (name, shape), part in product(("reduced", "complete"), SHAPES.items(), "qr")
        if (mode, name, part) != ("complete", "tall", "q")
    },
    "qr complete tall q": Variant(
        lambda x: rest(L.qr(x, PQ, mode="complete", new="k").q, "k", 3),
        lambda a: rest_of(np.linalg.qr(a, "complete")[0], 3), PQ, "any", TALL,
    ),
    **{
        f"lu {name} {part}": Variant(
            lambda x, part=part: getattr(L.lu(x, PQ, new="k"), part),
            lambda a, part=part: scipy.linalg.lu(a)[1 if part == "lower" else 2],
            ("p", "k") if part == "lower" else ("k", "q"), "any", shape,
        )
        for (name, shape), part in product(SHAPES.items(), ("lower", "upper"))
    },
    **{
        f"lu {name} permutation": Variant(
            lambda x: L.lu(x, PQ).permutation,
            lambda a: scipy.linalg.lu(a)[0].argmax(0), ("p",), "any", shape,
        )
        for name, shape in SHAPES.items()
    },
    **{
        f"svd thin {name} {part}": Variant(ours, theirs, dims, "any", shape)
        for (name, shape), (part, ours, theirs, dims) in product(SHAPES.items(), (
            ("u", lambda x: without_phase(L.svd(x, PQ, new="k").u, "p"),
             lambda a: without_phase_of(np.linalg.svd(a, full_matrices=False)[0]), ("p", "k")),
            ("s", lambda x: L.svd(x, PQ, new="k").s,
             lambda a: np.linalg.svd(a, compute_uv=False), ("k",)),
            ("vh", lambda x: without_phase(L.svd(x, PQ, new="k").vh, "q"),
             lambda a: without_phase_of(np.linalg.svd(a, full_matrices=False)[2].T).T, ("k", "q")),
            ("product", lambda x: gc.dot(*L.svd(x, PQ, new="k")[::2], dim="k"),
             lambda a: np.matmul(*np.linalg.svd(a, full_matrices=False)[::2]), PQ),
        ))
    },
    **{
        f"svd full {name} {part}": Variant(ours, theirs, dims, "any", shape)
        for (name, shape), (part, ours, theirs, dims) in product(SHAPES.items(), (
            ("u", lambda x: without_phase(
                L.svd(x, PQ, full_matrices=True).u.isel(left=slice(0, 3)), "p"),
             lambda a: without_phase_of(np.linalg.svd(a)[0][:, :3]), ("p", "left")),
            ("s", lambda x: L.svd(x, PQ, full_matrices=True).s,
             lambda a: np.linalg.svd(a, compute_uv=False), ("rank",)),
            ("vh", lambda x: without_phase(
                L.svd(x, PQ, full_matrices=True).vh.isel(right=slice(0, 3)), "q"),
             lambda a: without_phase_of(np.linalg.svd(a)[2][:3].T).T, ("right", "q")),
        ))
    },
    "svd full tall rest of u": Variant(
        lambda x: rest(L.svd(x, PQ, full_matrices=True).u, "left", 3),
        lambda a: rest_of(np.linalg.svd(a)[0], 3), PQ, "any", TALL,
    ),
    "svd full wide rest of vh": Variant(
        lambda x: rest(L.svd(x, PQ, full_matrices=True).vh.rename(q="p"), "right", 3),
        lambda a: rest_of(np.linalg.svd(a)[2].T, 3), PQ, "any", WIDE,
    ),
    **{
        f"svdvals {name}": Variant(
            lambda x: L.svdvals(x, PQ), lambda a: np.linalg.svd(a, compute_uv=False), ("rank",),
            "any", shape,
        )
        for name, shape in SHAPES.items()
    },
    **{
        f"{name} {'lower' if lower else 'upper'}": Variant(
            lambda x, ours=ours, lower=lower: ours(x, lower),
            lambda a, theirs=theirs, lower=lower: theirs(a, "L" if lower else "U"), dims, "any",
        )
        for lower in (True, False)
        for name, ours, theirs, dims in (
            ("eigh values", lambda x, lower: L.eigh(x, PQ, lower=lower).values,
             np.linalg.eigvalsh, ("eigen",)),
            ("eigh vectors",
             lambda x, lower: without_phase(L.eigh(x, PQ, lower=lower).vectors, "p"),
             lambda a, uplo: without_phase_of(np.linalg.eigh(a, uplo)[1]), ("p", "eigen")),
            ("eigvalsh", lambda x, lower: L.eigvalsh(x, PQ, lower=lower),
             np.linalg.eigvalsh, ("eigen",)),
        )
    },
    **{
        f"{name} {kind}": Variant(ours, theirs, dims, kind)
        for kind in ("regular", "turning")
        for name, ours, theirs, dims in (
            ("eig values", lambda x: L.eig(x, PQ).values,
             lambda a: np.linalg.eig(a)[0].astype(complex), ("eigen",)),
            ("eig vectors", lambda x: L.eig(x, PQ).vectors,
             lambda a: np.linalg.eig(a)[1].astype(complex), ("p", "eigen")),
            ("eigvals", lambda x: L.eigvals(x, PQ),
             lambda a: np.linalg.eigvals(a).astype(complex), ("eigen",)),
        )
    },
    **{
        f"solve {'matrix' if columns else 'vector'}{' transposed' if turned else ''}": Variant(
            lambda x, columns=columns, turned=turned: L.solve(
                swapped(x) if turned else x, right(x, columns), PQ
            ),
            lambda a, columns=columns, turned=turned: np.linalg.solve(
                a.T if turned else a, right_of(a, columns)
            ),
            ("q", "k") if columns else ("q",),
        )
        for columns, turned in product((False, True), repeat=2)
    },
    **{
        f"solve_triangular {'lower' if lower else 'upper'}{' transposed' if turned else ''}"
        f"{' unit' if unit else ''} {'matrix' if columns else 'vector'}": Variant(
            lambda x, lower=lower, turned=turned, unit=unit, columns=columns: L.solve_triangular(
                swapped(x) if turned else x, right(x, columns), PQ,
                lower=lower, unit_diagonal=unit,
            ),
            lambda a, lower=lower, turned=turned, unit=unit, columns=columns: np.linalg.solve(
                triangle(a.T if turned else a, lower, unit), right_of(a, columns)
            ),
            ("q", "k") if columns else ("q",),
        )
        for lower, turned, unit, columns in product((False, True), repeat=4)
    },
    "polyfit": Variant(
        lambda x: L.polyfit(
            gc.arange(x.sizes["p"], dim="p").astype(gc.real(x).dtype), x, 1, "p"
        ),
        lambda a: np.polyfit(np.arange(len(a)), a, 1).T, ("q", "degree"), "any", TALL,
    ),
    "fill_triangular": Variant(
        lambda x: L.fill_triangular(x, "q", ("row", "col")),
        lambda a: np.stack([[[x, 0 * x], [y, z]] for x, y, z in a]), ("p", "row", "col"), "any",
    ),
    **{
        f"cho_solve {'matrix' if columns else 'vector'}": Variant(
            lambda x, columns=columns: L.cho_solve(x, right(x, columns), PQ),
            lambda a, columns=columns: np.linalg.solve(
                np.tril(a) @ h(np.tril(a)), right_of(a, columns)
            ),
            ("p", "k") if columns else ("p",),
        )
        for columns in (False, True)
    },
    **{
        f"solve_tridiagonal {'matrix' if columns else 'vector'}": Variant(
            lambda x, columns=columns: L.solve_tridiagonal(*bands(x), right(x, columns), "p"),
            lambda a, columns=columns: np.linalg.solve(bands_of(a), right_of(a, columns)),
            ("p", "k") if columns else ("p",), "any", TALL,
        )
        for columns in (False, True)
    },
    "inv": Variant(lambda x: L.inv(x, PQ), np.linalg.inv, ("q", "p")),
    **{
        f"pinv {name}": Variant(
            lambda x: L.pinv(x, PQ), np.linalg.pinv, ("q", "p"), "any", shape
        )
        for name, shape in SHAPES.items()
    },
    "pinv of rank 2": Variant(
        lambda x: L.pinv(low_rank(x), PQ, rtol=1e-6),
        lambda a: np.linalg.pinv(a @ FACTOR, rcond=1e-6), ("q", "p"), "any", (4, 2),
    ),
    **{
        f"lstsq {name} {'matrix' if columns else 'vector'}": Variant(
            lambda x, columns=columns: L.lstsq(x, right(x, columns), PQ),
            lambda a, columns=columns: np.linalg.lstsq(a, right_of(a, columns))[0],
            ("q", "k") if columns else ("q",), "any", shape,
        )
        for (name, shape), columns in product(SHAPES.items(), (False, True))
    },
    "lstsq of rank 2": Variant(
        lambda x: L.lstsq(low_rank(x), right(x, False), PQ, rtol=1e-6),
        lambda a: np.linalg.lstsq(a @ FACTOR, right_of(a, False), 1e-6)[0], ("q",), "any", (4, 2),
    ),
    "det": Variant(lambda x: L.det(x, PQ), np.linalg.det, (), "any"),
    **{
        f"slogdet {part}": Variant(
            lambda x, part=part: getattr(L.slogdet(x, PQ), part),
            lambda a, part=part: getattr(np.linalg.slogdet(a), part), (), "any",
        )
        for part in ("sign", "logabsdet")
    },
    "matrix_rank": Variant(lambda x: L.matrix_rank(x, PQ), np.linalg.matrix_rank, (), "any", TALL),
    **{
        f"matrix_power {n}": Variant(
            lambda x, n=n: L.matrix_power(x, n, PQ), lambda a, n=n: np.linalg.matrix_power(a, n),
            PQ,
        )
        for n in (0, 1, 3, -1, -2)
    },
    "expm": Variant(lambda x: L.expm(x, PQ), scipy.linalg.expm, PQ),
    "sqrtm": Variant(lambda x: L.sqrtm(x, PQ), scipy.linalg.sqrtm, PQ),
    "logm": Variant(lambda x: L.logm(x, PQ), scipy.linalg.logm, PQ),
    **{
        f"polar {part}": Variant(
            lambda x, part=part: getattr(L.polar(x, PQ), part),
            lambda a, part=part: scipy.linalg.polar(a)[part == "positive"],
            PQ if part == "unitary" else ("q", "q'"), "any", TALL,
        )
        for part in ("unitary", "positive")
    },
    **{
        f"norm of vectors {order}": Variant(
            lambda x, order=order: L.norm(x, "p", order),
            lambda a, order=order: np.linalg.norm(a, order, axis=0), ("q",), "dense", TALL,
        )
        for order in (1, 2, 3, INF, -INF)
    },
    **{
        f"norm {order}": Variant(
            lambda x, order=order: L.norm(x, PQ, order),
            lambda a, order=order: np.linalg.norm(a, order), (), "dense", TALL,
        )
        for order in ("fro", "nuc", 2, -2, 1, -1, INF, -INF)
    },
    "trace": Variant(lambda x: L.trace(x, PQ), np.trace, (), "any", WIDE),
    "cross": Variant(
        lambda x: L.cross(x, gc.sin(x), "p"), lambda a: np.cross(a, np.sin(a), axis=0), PQ,
        "any", WIDE,
    ),
    "kron": Variant(
        lambda x: L.kron(x, gc.sin(x), PQ), lambda a: np.kron(a, np.sin(a)), PQ, "any", WIDE
    ),
    "kron of vectors": Variant(
        lambda x: L.kron(x, gc.sin(x), "p"),
        lambda a: np.stack([np.kron(c, np.sin(c)) for c in a.T], 1), PQ, "any", WIDE,
    ),
    "apply": Variant(
        lambda x: L.apply(x, gc.sin(x), PQ, along="p"), lambda a: a @ np.sin(a), PQ, "any"
    ),
    "apply along columns": Variant(
        lambda x: L.apply(x, gc.sin(x), PQ), lambda a: np.sin(a) @ a.T, PQ, "any"
    ),
    "congruence": Variant(
        lambda x: L.congruence(x, gc.sin(x), PQ, PQ),
        lambda a: a @ np.sin(a) @ a.conj().T, PQ, "any",
    ),
    "congruence new": Variant(
        lambda x: L.congruence(
            x, L.outer(x.sum("p"), gc.cos(x).sum("p"), ("q", "r")), PQ, ("q", "r"), new=("p", "r")
        ),
        lambda a: a @ np.outer(a.sum(0), np.cos(a).sum(0)) @ a.conj().T, ("p", "r"), "any", WIDE,
    ),
    "outer": Variant(
        lambda x: L.outer(x.sum("q"), gc.sin(x).sum("p"), PQ),
        lambda a: np.outer(a.sum(1), np.sin(a).sum(0)), PQ, "any", WIDE,
    ),
    "matrix_transpose": Variant(lambda x: L.matrix_transpose(x, PQ), np.transpose, PQ),
    "block_diag": Variant(
        lambda x: L.block_diag(x, gc.sin(x).isel(p=slice(0, 2)), dims=PQ),
        lambda a: scipy.linalg.block_diag(a, np.sin(a[:2])), PQ, "any", WIDE,
    ),
    "toeplitz": Variant(
        lambda x: L.toeplitz(x.isel(q=0), dim="p", new="q"), lambda a: toeplitz(a, False), PQ,
        "any",
    ),
    "toeplitz of two": Variant(
        lambda x: L.toeplitz(x.isel(q=0), x.isel(p=0).rename(q="p"), dim="p", new="q"),
        lambda a: toeplitz(a, True), PQ, "any", WIDE,
    ),
}  # fmt: skip
