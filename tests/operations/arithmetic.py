"""Elementwise functions and operators."""

from __future__ import annotations

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, V, X, Y, alike, real, two, ufunc

UNARY: dict[str, tuple[Input, ...]] = {
    **dict.fromkeys(["negative", "absolute", "sign", "square", "cbrt", "exp", "exp2"], real()),
    **dict.fromkeys(["expm1", "sin", "cos", "arctan", "sinh", "cosh", "tanh"], real()),
    **dict.fromkeys(["arcsinh", "floor", "ceil", "trunc", "rint"], real()),
    **dict.fromkeys(["isnan", "isinf", "isfinite", "signbit", "logical_not"], real()),
    **dict.fromkeys(["positive", "fabs", "deg2rad", "rad2deg", "radians"], real()),
    **dict.fromkeys(["degrees", "sinc", "conjugate", "real", "imag", "angle"], real()),
    **dict.fromkeys(["sqrt", "log", "log2", "log10", "reciprocal"], real(0.3, 3)),
    **dict.fromkeys(["arcsin", "arccos", "arctanh"], real(-0.9, 0.9)),
    "tan": real(-1.2, 1.2),
    "log1p": real(-0.5, 2),
    "arccosh": real(1.2, 3),
    **dict.fromkeys(["nan_to_num", "spacing", "isposinf", "isneginf"], real()),
    **dict.fromkeys(["isreal", "iscomplex"], real()),
    **dict.fromkeys(["invert", "bitwise_count"], (Input("row col", -9, 9, "int64"),)),
}
BINARY: dict[str, tuple[Input, ...]] = {
    **dict.fromkeys(["add", "subtract", "multiply", "logaddexp", "logaddexp2", "hypot"], two()),
    **dict.fromkeys(["arctan2", "copysign", "heaviside", "maximum", "minimum"], two()),
    **dict.fromkeys(["fmax", "fmin", "equal", "not_equal", "less", "less_equal"], two()),
    **dict.fromkeys(["greater", "greater_equal", "isclose", "nextafter"], two()),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], two()),
    **dict.fromkeys(["divide", "floor_divide", "remainder", "fmod"], two((-2, 2), (0.4, 2))),
    **dict.fromkeys(["power", "float_power"], two((0.3, 2), (-2, 2))),
    **dict.fromkeys(
        ["bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"],
        (Input("row batch", -99, 99, "int64"), Input("col row", -99, 99, "int64")),
    ),
    **dict.fromkeys(
        ["left_shift", "right_shift"],
        (Input("row batch", -99, 99, "int64"), Input("col row", 0, 9, "int64")),
    ),
}

CASES: dict[str, Case] = {
    **{n: Case(getattr(gc, n), ufunc(getattr(np, n)), given) for n, given in UNARY.items()},
    **{n: Case(getattr(gc, n), ufunc(getattr(np, n)), given) for n, given in BINARY.items()},
    "fix": Case(gc.fix, ufunc(np.trunc)),  # NumPy 2.5 deprecates its own fix
    "divmod": Case(
        lambda x, y: gc.divmod(x, y)[0] + gc.divmod(x, y)[1],
        lambda x, y: x // y + x % y,
        two((-2, 2), (0.4, 2)),
    ),
    "modf": Case(lambda x: gc.modf(x)[0], ufunc(lambda x: np.modf(x)[0])),
    "modf whole": Case(lambda x: gc.modf(x)[1], ufunc(lambda x: np.modf(x)[1])),
    "frexp": Case(lambda x: gc.frexp(x)[0], ufunc(lambda x: np.frexp(x)[0])),
    "frexp exponent": Case(lambda x: gc.frexp(x)[1], ufunc(lambda x: np.frexp(x)[1])),
    "ldexp": Case(gc.ldexp, ufunc(np.ldexp), (X, Input("col batch", -5, 5, "int64"))),
    "round": alike(lambda x: x.round(1)),
    "operators": alike(
        lambda x, y: -abs(x) ** 2 / (1 + y * y) + (x - 0.5) * 2 - 1 / (3 + y) + 2**y - x % 0.7, X, Y
    ),
    "comparisons": alike(lambda x, y: (x > y) & (x <= 1) | ~(y >= 0) ^ (x != 0.5), X, Y),
    "astype": alike(lambda x: x.astype("float32").astype("float64") * 0 + x),
    "astype int": alike(lambda x: x.astype("int32")),
    "clip": alike(lambda x: x.clip(-0.5, 0.7)),
    "clip by tensors": Case(
        lambda x, y: gc.clip(x, y, y + 1), lambda x, y: np.minimum(np.maximum(x, y), y + 1), (X, Y)
    ),
    "where": Case(
        lambda c, x, y: gc.where(c > 0, x, y),
        lambda c, x, y: xarray.apply_ufunc(np.where, c > 0, x, y),
        (V, Y, Input("row batch")),
    ),
    "keep where": alike(lambda x, y: x.where(y > 0, y), X, Y),
    "where number": alike(lambda x: x.where(x > 0, -1)),
    "select": Case(
        lambda x, y: gc.select([x > 1, y > 0], [x * x, y], -x),
        ufunc(lambda x, y: np.select([x + 0 * y > 1, y + 0 * x > 0], [x * x + 0 * y, y + 0 * x],
                                     -x + 0 * y)),
        (X, Input("row col")),
    ),
    "select number": Case(
        lambda x, y: gc.select([x > 1, y > 0], [x, y]),
        lambda x, y: xarray.where(x > 1, x, xarray.where(y > 0, y, x.dtype.type(0))),
        (X, Y),
    ),
    "piecewise": Case(
        lambda x: gc.piecewise(x, [x < 0, x < -1], [lambda x: x * x, 1, gc.sin]),
        ufunc(lambda x: np.piecewise(x, [x < 0, x < -1], [lambda x: x * x, 1, np.sin])),
    ),
    "print": Case(lambda x: gc.print(x, "x"), lambda x: x),
    "stop_gradient": Case(gc.stop_gradient, lambda x: x),
    "callback": Case(
        lambda x: gc.callback(np.isfinite, gc.isfinite(x), dims="row")(x), ufunc(np.isfinite)
    ),
    "callback with a rule": Case(
        lambda x: gc.callback(np.sin, x, pullback=lambda xs, y, ct: (ct * gc.cos(xs[0]),))(x),
        ufunc(np.sin),
    ),
}  # fmt: skip
