"""Derivatives as values: their own derivatives are higher orders."""

from __future__ import annotations

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, V, X

W = Input("col")


CASES: dict[str, Case] = {
    "grad": Case(
        lambda x, w: gc.grad((gc.sin(x) * w).sum(), w),
        lambda x, w: np.sin(x).sum("row") + 0 * w,
        (X, W),
        batch=False,
    ),
    "grad per": Case(
        lambda x, w: gc.grad((gc.sin(x) * w**2).sum("row"), w, per="col"),
        lambda x, w: 2 * np.sin(x).sum("row") * w,
        (X, W),
        batch=False,
    ),
    "grad per of a parameter": Case(
        lambda x, w: gc.grad((gc.sin(x) * w**2).sum("col"), w, per="row"),
        lambda x, w: 2 * np.sin(x) * w,
        (X, W),
        batch=False,
    ),
    "value_and_grad": Case(
        lambda x, w: gc.value_and_grad((gc.sin(x) * w).sum(), w)[1] * w.sum(),
        lambda x, w: (np.sin(x).sum("row") + 0 * w) * w.sum(),
        (X, W),
        batch=False,
    ),
    "pullback": Case(
        lambda x, w: gc.pullback(gc.sin(x * w), x, x * w),
        lambda x, w: np.cos(x * w) * w * x * w,
        (X, W),
        batch=False,
    ),
    "pushforward": Case(
        lambda x, w: gc.pushforward(gc.sin(x * w), w, w),
        lambda x, w: np.cos(x * w) * x * w,
        (X, W),
        batch=False,
    ),
    "hvp": Case(
        lambda x, w: gc.hvp((gc.sin(x) * w).sum(), x, x * w),
        lambda x, w: -np.sin(x) * w * x * w,
        (X, W),
        batch=False,
    ),
    "jacobian by rows": Case(
        lambda x, w: gc.jacobian((gc.sin(x) * w).sum("row"), x),
        lambda x, w: xarray.DataArray(
            np.eye(w.sizes["col"], dtype=x.dtype)[:, None, :] * (np.cos(x) * w).values,
            dims=("col", "row", "col'"),
        ),
        (X, W),
        batch=False,
    ),
    "jacobian by columns": Case(
        lambda x, v: gc.jacobian(gc.sin(x * v), v),
        lambda x, v: (np.cos(x * v) * x)
        * xarray.DataArray(np.eye(v.sizes["row"], dtype=x.dtype), dims=("row", "row'")),
        (X, V),
        batch=False,
    ),
    "hessian": Case(
        lambda v: gc.hessian((v**3).sum() + v.prod(), v),
        lambda v: xarray.DataArray(
            np.diag(6 * v.values)
            + np.array(
                [
                    [0 if i == j else np.prod(np.delete(v.values, [i, j])) for j in range(len(v))]
                    for i in range(len(v))
                ]
            ).reshape(len(v), len(v)),
            dims=("row", "row'"),
        ).astype(v.dtype),
        (V,),
        batch=False,
    ),
    "vectorize": Case(
        lambda x, v: gc.vectorize(gc.tensor("u", {"row": x.sizes["row"]}, dtype=x.dtype) * v,
                                  {gc.tensor("u", {"row": x.sizes["row"]}, dtype=x.dtype): x}),
        lambda x, v: (x * v).transpose("col", "row"),
        (X, V),
        batch=False,
    ),
}  # fmt: skip
