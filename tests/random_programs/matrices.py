"""Linear algebra of a few small matrices, element by element."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from .arranging import concat, expand_dims, isel, rename, transpose
from .values import (
    Array,
    Refused,
    Unclear,
    Value,
    add,
    lifted,
    multiply,
    where,
)


def toeplitz(column: Value, *, dim: str = "row", new: str = "col") -> Value:
    if new in column.dims:
        raise Refused("clash")
    n = column.sizes[dim]
    at = Array((dim, new), np.abs(np.arange(n)[:, None] - np.arange(n)))
    rest = [d for d in column.dims if d != dim]
    return transpose(isel(column, {dim: at}), *rest, dim, new)


def outer(x: Value, y: Value, dims: Sequence[str]) -> Value:
    row, col = dims
    if col not in y.dims:
        y = rename(y, {row: col})
    return multiply(x, y)


def solve(a: Value, b: Value, dims: Sequence[str]) -> Value:
    """By Cramer's rule."""
    row, col = dims
    n = a.sizes[row]
    if n != a.sizes[col] or b.sizes[row] != n or col in b.dims:
        raise Refused("solve")
    if not n:
        raise Unclear
    whole = det(a, dims)
    parts = []
    for i in range(n):
        chosen = Array((col,), np.arange(n) == i)
        parts.append(det(where(chosen, b, a), dims) / whole)
    return concat(parts, col)


def lu(x: Value, dims: Sequence[str], *, new: str) -> Any:
    """Factors of one matrix, with the largest value of each column as the pivot."""
    row, col = dims
    if set(x.dims) != set(dims) or new in dims:
        raise Refused("lu")
    n, m = x.sizes[row], x.sizes[col]
    if not n or not m:
        raise Unclear
    a = [[isel(x, {row: i, col: j}) for j in range(m)] for i in range(n)]
    one, nothing = Array((), 1.0), Array((), 0.0)
    low: list[list[Value]] = [[] for _ in range(n)]
    k = 0
    for k in range(min(n, m)):
        sizes = [abs(float(a[i][k].base.data)) for i in range(k, n)]
        best = int(np.argmax(sizes))
        if len(sizes) > 1 and np.sort(sizes)[-1] - np.sort(sizes)[-2] < 1e-7:
            raise Unclear
        a[k], a[k + best] = a[k + best], a[k]
        low[k], low[k + best] = low[k + best], low[k]
        for i in range(k + 1, n):
            factor = a[i][k] / a[k][k]
            low[i].append(factor)
            a[i] = [u - factor * v if j > k else u for j, (u, v) in enumerate(zip(a[i], a[k]))]
    size = k + 1
    lower = [[*low[i][:size], *([one] if i < size else []), *[nothing] * size][:size]
             for i in range(n)]  # fmt: skip
    upper = [[a[i][j] if j >= i else nothing for j in range(m)] for i in range(size)]
    return SimpleNamespace(lower=matrix(lower, row, new), upper=matrix(upper, new, col))


def matrix(rows: Sequence[Sequence[Value]], row: str, col: str) -> Value:
    return concat([expand_dims(concat(r, col), {row: 1}) for r in rows], row)


def det(x: Value, dims: Sequence[str]) -> Value:
    row, col = dims
    n = x.sizes[row]
    if n != x.sizes[col]:
        raise Refused("square")
    if not 0 < n <= 4:  # there are n! products
        raise Unclear
    total: Value = multiply(isel(x, dict.fromkeys(dims, 0)), 0)
    for perm in itertools.permutations(range(n)):
        sign = np.linalg.det(np.eye(n)[list(perm)]) if n else 1.0
        term: Value = lifted(round(sign))
        for i, j in enumerate(perm):
            term = term * isel(x, {row: i, col: j})
        total = add(total, term)
    return total
