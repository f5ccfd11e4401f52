"""Every op at the edges: nan, infinities, signed zeros, integers, bool, complex, and where a
derivative has no single value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special

import graphcore as gc
from graphcore.ir.graph import Graph
from graphcore.ir.op import Op
from graphcore.ops import elementwise, special
from graphcore.ops.meaning import MEANING
from tests import interpreter, reference
from tests.operations import CASES
from tests.operations.case import DEFAULT
from tests.ops.tables import arity
from tests.ops.test_completeness import INTERNAL
from tests.ops.test_ops import declare, draw

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EDGES = [
    *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 1.5, 10.0, -40.0),
    *(88.0, 710.0, -750.0, 1e-300, 1e-40, 1e-8, 1e16, 1e300, -1e300, np.pi),
]
VALUES: dict[str, list[Any]] = {
    "bool": [False, True],
    "int8": [0, 1, -1, 2, 7, 127, -128],
    "uint8": [0, 1, 2, 7, 255],
    "int64": [0, 1, -1, 2, -3, 62, 2**62, -(2**63)],
    "float32": EDGES,
    "float64": EDGES,
    "complex128": [0, 1, -2, 1j, 1 + 2j, -1.5 + 0.5j, 0.3 - 0.2j, -0.1 - 0.7j, 30 - 2j],
}


def small(dtype: str) -> list[Any]:
    """For functions of three and more operands: SciPy's hyp1f1 does not return from large ones."""
    if dtype[:5] == "float":
        return EDGES[:1] + EDGES[3:15]
    return [value for value in VALUES[dtype] if abs(value) <= 3]


def public(op: Any) -> Callable[..., gc.Tensor]:
    """The function users call for an op; that of expn takes its order as a number."""
    if op is special.expn:
        return lambda *xs: gc.Tensor(op(*[x.node for x in xs]))
    found = vars(gc).get(op.name) or vars(gc.special).get(op.name)
    assert found, f"{op} has no function in gc or gc.special: give it one in graphcore/frontend"
    return found


def in_machine_code(op: Any, grid: list[np.ndarray], wanted: np.ndarray) -> np.ndarray:
    """What machine code computes, where it is nearer to the exact value than NumPy or SciPy.

    It computes functions of float32 in float64, and those below without SciPy's quotient, which
    may be 0 or infinite.
    """
    if isinstance(elementwise.UFUNC[op], str):
        wanted = MEANING[op](*[g.astype(np.float64) for g in grid]).astype(wanted.dtype)
    x, *rest = [g.astype(np.longdouble) for g in grid]
    if op is special.kl_div:
        (y,) = rest
        plain = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
        exact = x * (np.log(x) - np.log(y)) - x + y
        return np.where(plain, exact, wanted).astype(wanted.dtype)
    return wanted


EXTREMES = (elementwise.maximum, elementwise.minimum, elementwise.fmax, elementwise.fmin)
"""Which of 0 and -0 is the extreme: NumPy's answer depends on how many values it is given."""


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize(
    "op", [op for op in elementwise.UFUNC if op not in INTERNAL], ids=lambda op: op.name
)
def test_edge_values(op: Any, dtype: str, machine_code: bool) -> None:
    """All pairs of values, on different dims; what NumPy refuses is refused."""
    function = elementwise.UFUNC[op]
    operands = arity(op)
    pool = VALUES[dtype] if operands <= 2 else small(dtype)
    values = [np.array(pool, dtype) for _ in range(operands)]
    if op.name == "power" and np.dtype(dtype).kind in "iu":
        values[1] = values[1][values[1] >= 0]
    xs = [gc.tensor(f"x{i}", {f"d{i}": None}, dtype=dtype) for i in range(operands)]
    grid = np.meshgrid(*values, indexing="ij")
    if isinstance(function, str):
        if np.dtype(dtype).kind == "c":
            return  # SciPy's complex functions are few, and none is promised
        grid = [g if np.dtype(dtype).kind == "f" else g.astype(np.float64) for g in grid]
    try:
        wanted = MEANING[op](*grid)
    except TypeError:
        with pytest.raises(gc.GraphTypeError):
            public(op)(*xs)
        return
    y = public(op)(*xs)
    if isinstance(function, str):
        wanted = wanted.astype(y.dtype)
    f = gc.compile(xs, y)
    by_name = {f"x{i}": value for i, value in enumerate(values)}
    sizes = {f"d{i}": len(value) for i, value in enumerate(values)}
    own = in_machine_code(op, grid, wanted) if machine_code else wanted
    interpreted = interpreter.run(f.stages["optimized"], by_name, sizes)[0]
    for found, expected in ((f(*values), own), (interpreted, wanted)):
        assert found.dtype == expected.dtype == y.dtype
        if expected.dtype.kind in "fc":
            # a vectorised loop may differ from the strided one by an ulp or two
            np.testing.assert_allclose(found, expected, rtol=8 * np.finfo(expected.dtype).eps)
            zero = (expected == 0) & (expected.dtype.kind == "f")
            if machine_code and op in EXTREMES and expected.dtype.kind == "f":
                zero &= np.signbit(grid[0]) == np.signbit(grid[1])
            assert (np.signbit(found[zero].real) == np.signbit(expected[zero].real)).all()
        else:
            np.testing.assert_array_equal(found, expected)
    assert np.array_equal(f.stages["named"].outputs[0].type.dtype, wanted.dtype)


REDUCTIONS: dict[str, Any] = {
    "sum": np.sum, "prod": np.prod, "mean": np.mean, "var": np.var, "std": np.std,
    "max": np.max, "min": np.min, "any": np.any, "all": np.all,
    "argmax": np.argmax, "argmin": np.argmin, "cumsum": np.cumsum, "cumprod": np.cumprod,
}  # fmt: skip
ROWS = np.array(
    [
        [1.0, 2.0, -3.0],
        [np.nan, 1.0, 2.0],
        [2.0, np.nan, np.inf],
        [np.inf, 1.0, np.inf],
        [-np.inf, np.inf, 0.0],
        [-np.inf, -np.inf, -np.inf],
        [0.0, -0.0, 0.0],
        [-0.0, -0.0, -0.0],
        [5.0, 5.0, 5.0],
    ]
)


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "int8", "uint8", "int64", "bool", "complex128"]
)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_at_the_edges(name: str, dtype: str, machine_code: bool) -> None:
    """Machine code adds up in another order, so that rounding of complex numbers may remain."""
    values = np.nan_to_num(ROWS, posinf=100, neginf=0) if dtype[0] not in "fc" else ROWS
    values = abs(values) if dtype[0] == "u" else values
    values = values.astype(dtype)
    if dtype[0] == "c":
        values = values * np.exp(0.3j)
    x = gc.tensor("x", {"row": None, "col": None}, dtype=dtype)
    y = getattr(gc, name)(x, "col")
    f = gc.compile([x], y)
    wanted = REDUCTIONS[name](values, axis=1)
    sizes = {"row": values.shape[0], "col": 3}
    rtol = 1e-6 if dtype == "float32" else 1e-14
    atol = 6 * np.finfo(dtype).eps if machine_code and dtype[0] == "c" else 0
    for found in (f(values), interpreter.run(f.stages["optimized"], {"x": values}, sizes)[0]):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol, atol)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_softmax_family_at_the_edges(name: str) -> None:
    rows = np.array(
        [[-np.inf] * 3, [-np.inf, 0.0, 1.0], [1e300, -1e300, 0.0], [710.0, 711.0, 700.0],
         [np.nan, 0.0, 1.0], [-np.inf, np.nan, -np.inf], [-800.0, -801.0, -802.0]]
    )  # fmt: skip
    x = gc.tensor("x", {"row": None, "col": None})
    found = gc.compile([x], getattr(gc.special, name)(x, "col"))(rows)
    wanted = getattr(scipy.special, name)(rows, axis=1)
    if name == "softmax":
        wanted[0] = 0  # stated: 0 where all are -inf
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


# ---- complex derivatives


def reliable(settled: bool) -> None:
    assert settled, "differences do not settle here: draw other values"


Z = {"row": 3, "col": 2}
COMPLEX: dict[str, Callable[..., gc.Tensor]] = {
    **{
        name: getattr(gc, name)
        for name in (
            *("negative", "square", "sqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2"),
            *("log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh"),
            *("cosh", "tanh", "arcsinh", "arccosh", "arctanh", "absolute", "conj", "real"),
            *("sign", "imag", "angle", "sum", "mean", "prod", "var", "std", "cumsum", "cumprod"),
        )
    },
    "multiply": lambda z: z * z.isel(row=0),
    "divide": lambda z: z.isel(col=0) / z,
    "power": lambda z: z ** z.isel(row=1),
    "cube": lambda z: z**3,
    "dot": lambda z: gc.dot(z, z.rename(col="other"), gc.conj(z), dim="row"),
    "where": lambda z: gc.where(z.real > 0, z * 2, gc.conj(z)),
    "norm": lambda z: (z * gc.conj(z)).sum().real,
    "phase": lambda z: z / abs(z),
    "from real": lambda z: z.real * gc.exp(1j * z.imag) + z.real**2,
    "cast": lambda z: z.real.astype("complex128") * z,
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_derivatives(name: str) -> None:
    """dRe(y)/dRe(x) - i dRe(y)/dIm(x): the pairing of cotangent and tangent is Re(ct * t)."""
    z = gc.tensor("z", Z, dtype="complex128")
    y = COMPLEX[name](z)
    random = np.random.default_rng(5)
    value = random.uniform(0.2, 0.9, (3, 2)) * np.exp(1j * random.uniform(-2.5, 2.5, (3, 2)))
    reference.check_derivatives(y, [z], [], {"z": value}, {}, reliable)


def test_real_and_complex_operands() -> None:
    x, z = gc.tensor("x", Z), gc.tensor("z", Z, dtype="complex128")
    y = (x * z + gc.exp(z) ** x).sum("row")
    random = np.random.default_rng(6)
    values = {"x": random.uniform(0.3, 1, (3, 2)), "z": random.normal(size=(3, 2)) * (1 + 0.5j)}
    reference.check_derivatives(y, [x, z], [], values, {}, reliable)


@pytest.mark.parametrize("function", ["floor", "argmax", "int"])
def test_integers_carry_no_gradient(function: str) -> None:
    x = gc.tensor("x", {"row": 3})
    step = {
        "floor": gc.floor,
        "argmax": lambda x: x.argmax().astype("float64"),
        "int": lambda x: x.astype("int64").astype("float64"),
    }[function](x)
    y = (x * step).sum()
    found = gc.compile([x], [gc.grad(y, x), step])(np.array([1.5, -2.5, 3.5]))
    np.testing.assert_allclose(found[0], np.broadcast_to(found[1], 3))


def floats() -> Iterator[Any]:
    """Cases that give floats; those whose ops stand in cases before them are slow tests."""
    seen: set[Op] = set()
    for name, case in CASES.items():
        y = case.ours(*declare(case))
        if name != "stop_gradient" and y.dtype.kind == "f":
            ops = Graph((), (y.node,)).ops()
            yield pytest.param(name, marks=pytest.mark.slow) if ops <= seen else name
            seen |= ops


@pytest.mark.parametrize("name", list(floats()))
def test_a_cotangent_of_zero_has_a_derivative(name: str) -> None:
    """d/dt of the gradient of t * y at t = 0 is the gradient of y: no rule skips zeros for good."""
    case = CASES[name]
    xs = declare(case)
    y = case.ours(*xs)
    t = gc.tensor("t", {})
    floats = [x for x in xs if x.dtype.kind == "f"]
    plain = gc.grad(gc.sin(y).sum(), floats, disconnected="zero")
    scaled = gc.grad((gc.sin(y) * t).sum(), floats, disconnected="zero")
    ones = [gc.ones_like(x) for x in scaled]
    forth = gc.pushforward(scaled, t, gc.ones({}), disconnected="zero")
    back = gc.pullback(scaled, t, ones, disconnected="zero")
    given = [x.values for x in draw(case, DEFAULT, seed=1)]
    *both, total = gc.compile([*xs, t], [*plain, *forth, back])(*given, 0.0)
    wanted, found = both[: len(plain)], both[len(plain) :]
    for ours, theirs in zip(found, wanted, strict=True):
        reference.close(ours, theirs)
    assert float(total) == pytest.approx(sum(float(w.sum()) for w in wanted), abs=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_gradients_keep_the_dtype_of_their_input(dtype: str) -> None:
    """Also where the computation goes on in a wider dtype."""
    x, y = gc.tensor("x", {"row": 3}, dtype=dtype), gc.tensor("y", {"row": 3})
    loss = gc.real((gc.sin(x) * y + x**2).sum())
    random = np.random.default_rng(0)
    a, b = random.normal(size=3).astype(dtype), random.normal(size=3)
    dx, dy, forth = gc.compile(
        [x, y], [*gc.grad(loss, [x, y]), gc.pushforward(gc.sin(x) * y, [x, y], [x, y])]
    )(a, b)
    assert (dx.dtype, dy.dtype) == (a.dtype, b.dtype)
    np.testing.assert_allclose(dx, np.cos(a) * b + 2 * a, rtol=1e-5)
    np.testing.assert_allclose(dy, np.sin(a).real, rtol=1e-5)
    np.testing.assert_allclose(forth, np.cos(a) * a * b + np.sin(a) * b, rtol=1e-5)


ZEROS: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "prod": lambda x: x.prod("col"),
    "prod all": lambda x: x.prod(),
    "cumprod": lambda x: x.cumprod("col"),
    "cumprod both": lambda x: x.cumprod(["row", "col"]),
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "power 5": lambda x: x**5.0,
    "power of tensor": lambda x: x ** gc.constant([2.0, 3.0, 4.0], "col"),
    "product": lambda x: gc.sin(x) * gc.expm1(x) / (1 + x),
    "dot": lambda x: gc.dot(x, x, x, dim="col"),
    "sinc": gc.sinc,
    "softmax": lambda x: gc.special.softmax(x, "col"),
    "var": lambda x: (x * 0 + 1).var("col") + x.var("row"),
    "hypot": lambda x: gc.hypot(x, 1.0),
    "arctan2": lambda x: gc.arctan2(x, 2 + x),
    "logaddexp": lambda x: gc.logaddexp(x, 0.0),
    "softplus": gc.special.softplus,
    "where": lambda x: gc.where(x == x, gc.sin(x), gc.log(x)),
    "xlogy": lambda x: gc.special.xlogy(x, 2 + x),
    "xlog1py": lambda x: gc.special.xlog1py(x, 1 + x),
    "tanh": lambda x: gc.tanh(x) * gc.special.erf(x) + gc.special.sigmoid(x),
    "division": lambda x: x / (x + 1) - x / 3,
    "exp of minus": lambda x: gc.exp(-x * x),
}


@pytest.mark.parametrize("name", ZEROS)
def test_derivatives_at_zeros(name: str) -> None:
    """Where many rules divide by their operand or by their result: both orders are finite."""
    x = gc.tensor("x", {"row": None, "col": 3})
    at = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, -1.5], [0.5, -0.0, 0.0], [0.0, 0.0, 0.0]])
    reference.check_derivatives(ZEROS[name](x), [x], [], {"x": at}, {"row": 4}, reliable)
