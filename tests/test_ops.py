"""Every public function: its value, dims and dtype as NumPy, SciPy and xarray have them, and its
derivatives in both modes against differences. One table; the tests run over it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special
import xarray

import graphcore as gc
from graphcore.ir.sizes import evaluate
from tests import interpreter, reference
from tests.reference import close

DEFAULT = {"row": 3, "col": 4, "batch": 2, "one": 1, "six": 6, "i": 2}
PAIRED = (-2.0, 2.0)


class Input(NamedTuple):
    """An input: its dims, and the range its values are drawn from."""

    dims: str = "row col"
    low: float = -2.0
    high: float = 2.0
    dtype: str = "float64"

    def draw(self, random: np.random.Generator, sizes: dict[str, int], dtype: str = "") -> Any:
        shape = [sizes[dim] for dim in self.dims.split()]
        dtype = self.dtype if self.dtype != "float64" else dtype or self.dtype
        if np.dtype(dtype).kind == "i":
            return random.integers(int(self.low), int(self.high), size=shape).astype(dtype)
        values = random.uniform(self.low, self.high, size=shape)
        return np.asarray(values, dtype)


class Case(NamedTuple):
    """`ours` on tensors means what `theirs` means on DataArrays."""

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    inputs: tuple[Input, ...] = (Input(),)
    fixed: tuple[str, ...] = ()  # dims that keep their size
    batch: bool = True  # an input may have more dims


def alike(function: Callable[..., Any], *inputs: Input, **options: Any) -> Case:
    """The same notation does for tensors and DataArrays."""
    return Case(function, function, inputs or (Input(),), **options)


def ufunc(function: Any) -> Callable[..., Any]:
    return lambda *xs: xarray.apply_ufunc(function, *xs)


def real(low: float = -2.0, high: float = 2.0) -> tuple[Input, ...]:
    return (Input("row col", low, high),)


def two(
    first: tuple[float, float] = PAIRED, second: tuple[float, float] = PAIRED
) -> tuple[Input, ...]:
    return Input("row batch", *first), Input("col row", *second)


UNARY: dict[str, tuple[Input, ...]] = {
    **dict.fromkeys(["negative", "absolute", "sign", "square", "cbrt", "exp", "exp2"], real()),
    **dict.fromkeys(["expm1", "sin", "cos", "arctan", "sinh", "cosh", "tanh"], real()),
    **dict.fromkeys(["arcsinh", "floor", "ceil", "trunc", "rint"], real()),
    **dict.fromkeys(["isnan", "isinf", "isfinite", "signbit", "logical_not"], real()),
    **dict.fromkeys(["positive", "fabs", "fix", "deg2rad", "rad2deg", "radians"], real()),
    **dict.fromkeys(["degrees", "sinc", "conjugate", "real", "imag", "angle"], real()),
    **dict.fromkeys(["sqrt", "log", "log2", "log10", "reciprocal"], real(0.3, 3)),
    **dict.fromkeys(["arcsin", "arccos", "arctanh"], real(-0.9, 0.9)),
    "tan": real(-1.2, 1.2),
    "log1p": real(-0.5, 2),
    "arccosh": real(1.2, 3),
    "nan_to_num": real(),
    "invert": (Input("row col", -9, 9, "int64"),),
}
BINARY: dict[str, tuple[Input, ...]] = {
    **dict.fromkeys(["add", "subtract", "multiply", "logaddexp", "logaddexp2", "hypot"], two()),
    **dict.fromkeys(["arctan2", "copysign", "heaviside", "maximum", "minimum"], two()),
    **dict.fromkeys(["fmax", "fmin", "equal", "not_equal", "less", "less_equal"], two()),
    **dict.fromkeys(["greater", "greater_equal", "isclose"], two()),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], two()),
    **dict.fromkeys(["divide", "floor_divide", "remainder", "fmod"], two((-2, 2), (0.4, 2))),
    **dict.fromkeys(["power", "float_power"], two((0.3, 2), (-2, 2))),
    **dict.fromkeys(
        ["bitwise_and", "bitwise_or", "bitwise_xor"],
        (Input("row batch", -99, 99, "int64"), Input("col row", -99, 99, "int64")),
    ),
    **dict.fromkeys(
        ["left_shift", "right_shift"],
        (Input("row batch", -99, 99, "int64"), Input("col row", 0, 9, "int64")),
    ),
}
SPECIAL: dict[str, tuple[Any, tuple[Input, ...]]] = {
    "sigmoid": (scipy.special.expit, real()),
    "expit": (scipy.special.expit, real()),
    "softplus": (lambda x: np.logaddexp(0, x).astype(np.result_type(x, np.float32)), real()),
    "erf": (scipy.special.erf, real()),
    "erfc": (scipy.special.erfc, real()),
    "gammaln": (scipy.special.gammaln, real(0.3, 4)),
    "digamma": (scipy.special.digamma, real(0.3, 4)),
    "psi": (scipy.special.psi, real(0.3, 4)),
    "xlogy": (scipy.special.xlogy, two((-2, 2), (0.3, 2))),
    "xlog1py": (scipy.special.xlog1py, two((-2, 2), (-0.5, 2))),
}


def softmaxes(name: str, dims: Any) -> Case:
    """A function of the softmax family; SciPy's of an array and its axes."""

    def theirs(x: Any) -> Any:
        over = x.dims if dims is None else tuple(np.atleast_1d(dims))
        axis = tuple(x.dims.index(dim) for dim in over)
        function = getattr(scipy.special, name)
        if name == "logsumexp":
            if not x.size:
                return x.sum(over) - x.dtype.type(np.inf)
            return x.reduce(lambda values, axis: function(values, axis=axis), over)
        return x.copy(data=function(x.values, axis=axis)) if x.size else x

    return Case(lambda x: getattr(gc.special, name)(x, dims), theirs, batch=dims is not None)


def bare(x: Any) -> Any:
    """Without coordinates, which we do not have."""
    return x.drop_vars(list(x.coords)) if isinstance(x, xarray.DataArray) else x


X, Y, V = Input("row col"), Input("col batch"), Input("row")
INDEX = Input("batch", 0, 3, "int64")
TABLE = Input("batch i", 0, 3, "int64")
rows = {"fixed": ("row",)}

CASES: dict[str, Case] = {
    **{n: Case(getattr(gc, n), ufunc(getattr(np, n)), given) for n, given in UNARY.items()},
    **{n: Case(getattr(gc, n), ufunc(getattr(np, n)), given) for n, given in BINARY.items()},
    **{n: Case(getattr(gc.special, n), ufunc(f), given) for n, (f, given) in SPECIAL.items()},
    "divmod": Case(
        lambda x, y: gc.divmod(x, y)[0] + gc.divmod(x, y)[1],
        lambda x, y: x // y + x % y,
        two((-2, 2), (0.4, 2)),
    ),
    "modf": Case(lambda x: gc.modf(x)[0], ufunc(lambda x: np.modf(x)[0])),
    "modf whole": Case(lambda x: gc.modf(x)[1], ufunc(lambda x: np.modf(x)[1])),
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
    **{
        f"{name} {dims}": alike(lambda x, name=name, dims=dims: getattr(x, name)(dims))
        for name in ("sum", "prod", "mean", "var", "std", "max", "min")
        for dims in ("row", "col", ["col", "row"])
    },
    **{
        f"{name} all": alike(lambda x, name=name: getattr(x, name)(), batch=False)
        for name in ("sum", "prod", "mean", "var", "std", "max", "min", "cumsum", "cumprod")
    },
    "var ddof": alike(lambda x: x.var("row", ddof=1), **rows),
    "std ddof": alike(lambda x: x.std(["row", "col"], ddof=2), fixed=("row", "col")),
    "any": alike(lambda x: (x > 1).any("row")),
    "all": alike(lambda x: (x > -1).all(["row", "col"])),
    "argmax": alike(lambda x: x.argmax("row")),
    "argmin": alike(lambda x: x.argmin("col")),
    "argmax all": Case(lambda x: x.argmax(), lambda x: xarray.DataArray(x.values.argmax()),
                       batch=False),
    "argmin all": Case(lambda x: x.argmin(), lambda x: xarray.DataArray(x.values.argmin()),
                       batch=False),
    "cumsum": alike(lambda x: x.cumsum("col")),
    "cumprod": alike(lambda x: x.cumprod("row")),
    "cumprod several": alike(lambda x: x.cumprod(["row", "col"])),
    "dot": alike(lambda x, y: x.dot(y, dim="col"), X, Y),
    "dot shared": Case(gc.dot, lambda x, y: x.dot(y), (X, Input("col row batch"))),
    "dot kept": Case(
        lambda x, y: gc.dot(x, y, dim=()), lambda x, y: xarray.dot(x, y, dim=()), (X, Y)
    ),
    "dot batch": Case(
        lambda x, y: gc.dot(x, y, dim="col"),
        lambda x, y: xarray.dot(x, y, dim="col"),
        (Input("batch row col"), Input("col i batch")),
    ),
    "dot of three": Case(
        lambda x, y, z: gc.dot(x, y, z, dim=["col", "batch"]),
        lambda x, y, z: xarray.dot(x, y, z, dim=["col", "batch"]),
        (X, Y, Input("batch row i")),
    ),
    "dot of one": Case(
        lambda x: gc.dot(x, dim="row"), lambda x: x.sum("row"), (X,)
    ),
    "dot alone": Case(
        lambda x, y: gc.dot(x, y, dim=["row", "batch"]), lambda x, y: x.sum("row") * y.sum("batch"),
        (X, Y),
    ),
    "dot all": Case(
        lambda x, y: gc.dot(x, y, dim=...), lambda x, y: (x * y).sum(), (X, Y), batch=False
    ),
    "dot with itself": Case(
        lambda x: gc.dot(x, x, x, dim="col"), lambda x: (x * x * x).sum("col"), (X,)
    ),
    "matmul": alike(operator.matmul, X, Y),
    "einsum": Case(
        lambda x, y, z: gc.einsum("row col, col batch, row -> batch row", x, y, z),
        lambda x, y, z: (x * y * z).sum("col").transpose("batch", "row"),
        (X, Y, V),
        batch=False,
    ),
    "transpose": alike(lambda x: x.transpose("col", ...)),
    "transpose all": alike(lambda x: x.transpose(), batch=False),
    "rename": alike(lambda x: x.rename(row="r")),
    "rename swap": alike(lambda x: x.rename({"row": "col", "col": "row"}) * 2 + x[0, 0],
                         fixed=("row", "col"), batch=False),
    "expand_dims": alike(lambda x: x.expand_dims("new")),
    "expand_dims sized": alike(lambda x: x.expand_dims({"new": 3, "other": 2})),
    "squeeze": alike(lambda x: x.squeeze("one"), Input("row one col")),
    "squeeze all": alike(lambda x: x.squeeze(), Input("one col"), fixed=("one", "col")),
    "broadcast_like": alike(lambda x, y: x.broadcast_like(y), X, Y),
    "broadcast": Case(
        lambda x, y: gc.broadcast(x, y)[1], lambda x, y: xarray.broadcast(x, y)[1], (X, Y)
    ),
    "concat": Case(
        lambda x, y: gc.concat([x, y, x], "col"),
        lambda x, y: xarray.concat([x, y.transpose("row", "col"), x], "col"),
        (X, Input("col row")),
    ),
    "concat broadcast": Case(
        lambda x, y: gc.concat([x, y], "row"),
        lambda x, y: xarray.concat([x, y.expand_dims("row")], "row").transpose("row", "col"),
        (X, Input("col")),
    ),
    "concat new": Case(
        lambda x: gc.concat([x, x * x], "new"), lambda x: xarray.concat([x, x * x], "new")
    ),
    "stack": Case(
        lambda x: x.stack(z=("col", "row")),
        lambda x: xarray.DataArray(
            x.values.transpose(1, 2, 0).reshape(x.sizes["batch"], x.sizes["col"] * x.sizes["row"]),
            dims=("batch", "z"),
        ),
        (Input("row batch col"),),
    ),
    "unstack": Case(
        lambda x: x.unstack(six={"p": 2, "q": 3}),
        lambda x: xarray.DataArray(
            x.transpose("row", "six").values.reshape(-1, 2, 3), dims=("row", "p", "q")
        ),
        (Input("six row"),),
        fixed=("six",),
        batch=False,
    ),
    "restack": Case(
        lambda x: gc.square(x.stack(z=("col", "row"))).unstack(z={"col": None, "row": 3}),
        lambda x: (x * x).transpose("col", "row"),
        fixed=("row",),
        batch=False,
    ),
    "isel": alike(lambda x: x.isel(row=1), **rows),
    "isel negative": alike(lambda x: x.isel(row=-1, col=-2), fixed=("row", "col")),
    "getitem": alike(lambda x: x[1, ::-1], fixed=("row",), batch=False),
    "getitem ellipsis": alike(lambda x: x[..., 1:3], batch=False),
    "getitem dict": alike(lambda x: x[{"col": slice(None, -1)}]),
    **{
        f"slice {s.start}:{s.stop}:{s.step}": alike(lambda x, s=s: x.isel(col=s, row=slice(1, 9)))
        for s in (
            slice(None), slice(1, 3), slice(-3, -1), slice(None, None, 2), slice(1, None, 3),
            slice(None, None, -1), slice(-1, 0, -2), slice(2, None, -1), slice(3, 1), slice(9),
            slice(None, 1, -1), slice(-9, 9, 3),
        )
    },
    "isel list": alike(lambda x: x.isel(row=[2, 0, 2, -1]), **rows),
    "isel orthogonal": alike(
        lambda x: x.isel(row=[2, 0, 2], col=[1, 0]), fixed=("row", "col")
    ),
    "isel pointwise": alike(
        lambda x: x.isel(row=("p", [2, 0]), col=("p", [1, 1])), fixed=("row", "col")
    ),
    "isel pointwise tensors": alike(
        lambda x, i, j: x.isel(row=i, col=j), X, INDEX, TABLE, fixed=("row", "col", "batch", "i")
    ),
    "isel shared": alike(
        lambda x, i: x.isel(row=i), Input("batch row col"), INDEX, fixed=("row", "batch")
    ),
    "isel mixed": alike(
        lambda x, i: x.isel(row=i, col=slice(None, None, -2)), X, TABLE, fixed=("row",)
    ),
    "take": Case(lambda x, i: gc.take(x, i, "row"), lambda x, i: x.isel(row=i), (X, TABLE), **rows),
    "take list": Case(
        lambda x: gc.take(x, [0, 0, 1], "row"), lambda x: x.isel(row=[0, 0, 1]), **rows
    ),
    "take_along": Case(
        lambda x, i: gc.take_along(x, i, "row"),
        lambda x, i: x.isel(row=i),
        (Input("batch row col"), INDEX),
        fixed=("row", "batch"),
    ),
    **{
        f"{name} {dims}": softmaxes(name, dims)
        for name in ("softmax", "log_softmax", "logsumexp")
        for dims in ("row", ["row", "col"], None)
    },
    "arange": Case(
        lambda x: x * gc.arange(x.sizes["row"], dim="row"), lambda x: x * bare(xarray.DataArray(
            np.arange(x.sizes["row"]), dims="row"))
    ),
    "linspace": Case(
        lambda x, y: gc.linspace(x, y, 5, dim="t"),
        lambda x, y: xarray.DataArray(
            np.linspace(x.values, y.values, 5), dims=("t", "row")), (V, V), batch=False
    ),
    "eye": Case(
        lambda x: gc.eye(x.sizes, k=1) + x,
        lambda x: x * 0 + np.eye(*x.shape, k=1) + x,
        batch=False,
    ),
    "full": Case(
        lambda x: gc.full({"new": 2}, x), lambda x: x.expand_dims(new=2)
    ),
    "likes": Case(
        lambda x: gc.ones_like(x) + gc.zeros_like(x) + gc.full_like(x, 2.5) * x,
        lambda x: 1 + 2.5 * x,
    ),
    "constant": Case(
        lambda x: x * gc.constant([1.0, 2.0, 3.0], "t") + gc.ones({"t": 3}) + gc.zeros({"u": 2}),
        lambda x: x * xarray.DataArray([1.0, 2.0, 3.0], dims="t")
        + xarray.DataArray(np.ones(3), dims="t") + xarray.DataArray(np.zeros(2), dims="u"),
    ),
    "stop_gradient": Case(gc.stop_gradient, lambda x: x),
}  # fmt: skip

ONES, EMPTY = dict.fromkeys(DEFAULT, 1), dict.fromkeys(DEFAULT, 0)
NO_ROWS, NO_COLS = DEFAULT | {"row": 0}, DEFAULT | {"col": 0, "batch": 0}
DTYPE_TOLERANCE = {4: 1e-5, 8: 1e-12, 16: 1e-12, 1: 0}


def declare(case: Case, known: bool = False, dtype: str = "float64") -> list[gc.Tensor]:
    """The inputs of a case, of unknown sizes but for the dims that must keep theirs."""
    return [
        gc.tensor(
            f"x{i}",
            {d: DEFAULT[d] if known or d in (*case.fixed, "one") else None for d in x.dims.split()},
            dtype=x.dtype if x.dtype != "float64" else dtype,
        )
        for i, x in enumerate(case.inputs)
    ]


def draw(case: Case, sizes: dict[str, int], dtype: str = "", seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    kept = sizes | {dim: DEFAULT[dim] for dim in (*case.fixed, "one")}
    return [xarray.DataArray(x.draw(random, kept, dtype), dims=x.dims.split()) for x in case.inputs]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_value(name: str, dtype: str) -> None:
    """One compilation serves all sizes, 1 and 0 included."""
    case = CASES[name]
    for known, tried in ((True, [DEFAULT]), (False, [DEFAULT, ONES, EMPTY, NO_ROWS, NO_COLS])):
        xs = declare(case, known, dtype)
        y = case.ours(*xs)
        f = gc.compile(xs, y)
        for sizes in tried:
            given = draw(case, sizes, dtype)
            values = [x.values for x in given]
            try:
                wanted = bare(case.theirs(*given))
            except (ValueError, IndexError):  # an extreme value of nothing
                assert 0 in sizes.values()
                with pytest.raises(gc.GraphError):
                    f(*values)
                continue
            assert (y.dims, y.dtype) == (wanted.dims, wanted.dtype)
            by_name = {f"x{i}": value for i, value in enumerate(values)}
            results = [f(*values)] + [
                interpreter.run(f.stages[stage], by_name, sizes)[0]
                for stage in ("lowered", "optimized")
            ]
            for found in results:
                assert found.dtype == wanted.dtype
                close(found, wanted.values, rtol=DTYPE_TOLERANCE[min(8, wanted.dtype.itemsize)])


def reliable(settled: bool) -> None:
    assert settled, "differences do not settle here: draw other values"


@pytest.mark.parametrize("name", [name for name in CASES if name != "stop_gradient"])
def test_derivatives(name: str) -> None:
    case = CASES[name]
    xs = declare(case)
    y = case.ours(*xs)
    floats = [x for x in xs if x.dtype.kind == "f"]
    if y.dtype.kind != "f":
        for x in xs:
            with pytest.raises(gc.GraphTypeError):
                gc.pullback(y, x, y)
        return
    given = draw(case, DEFAULT, seed=1)
    values = {f"x{i}": value.values for i, value in enumerate(given)}
    others = [x for x in xs if x.dtype.kind != "f"]
    reference.check_derivatives(y, floats, others, values, DEFAULT, reliable)
    for x in others:
        with pytest.raises(gc.GraphTypeError, match="int64"):
            gc.pullback(y, x, y)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.batch])
def test_more_dims_are_a_loop(name: str) -> None:
    """Any input may have a dim more: value and pullback are those of its places, stacked."""
    case = CASES[name]
    xs = declare(case)
    y = case.ours(*xs)
    given = [x.values for x in draw(case, DEFAULT, seed=2)]
    random = np.random.default_rng(3)
    for i, x in enumerate(xs):
        stacked = np.stack([given[i], np.roll(given[i], 1)])
        wide = [*xs[:i], gc.tensor(x.name, {"extra": 2} | x.sizes, dtype=x.dtype), *xs[i + 1 :]]
        whole = case.ours(*wide)
        assert sorted(whole.dims) == sorted((*y.dims, "extra"))
        outputs, wholes = [y], [whole]
        ct = gc.tensor("ct", y.sizes)
        cts = gc.tensor("ct", {"extra": 2} | y.sizes)
        floats = [n for n, t in enumerate(xs) if t.dtype.kind == "f"]
        if y.dtype.kind == "f" and i in floats:
            outputs += [gc.pullback(y, x, ct, disconnected="zero")]
            wholes += [gc.pullback(whole, wide[i], cts, disconnected="zero")]
        f, g = gc.compile([*xs, ct], outputs), gc.compile([*wide, cts], wholes)
        weights = random.normal(size=(2, *[evaluate(size, DEFAULT) for size in y.shape]))
        found = g(*given[:i], stacked, *given[i + 1 :], weights)
        order = [dim for dim in whole.dims if dim != "extra"]
        found[0] = np.moveaxis(found[0], whole.dims.index("extra"), 0)
        for place in range(2):
            wanted = f(*given[:i], stacked[place], *given[i + 1 :], weights[place])
            value = found[0][place].transpose([order.index(dim) for dim in y.dims])
            close(value, wanted[0])
            for ours, theirs in zip(found[1:], wanted[1:], strict=True):
                close(ours[place], theirs)
