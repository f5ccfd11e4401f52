"""Every scalar op of PyTensor: values in all modes, dtypes, slopes."""

import numpy as np
import pytest

pytest.importorskip("pytensor", minversion="3.0")

import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.tensor.elemwise import Elemwise

from graphcore.interop.pytensor.scalars import OWN_DTYPES, SCALARS
from graphcore.ir.errors import GraphTypeError

from .compared import exact_since, same_differences, same_slopes, same_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

R = np.random.default_rng(0)
ANY = R.normal(size=(3, 4)) * 2
POSITIVE = np.abs(ANY) + 0.1
UNIT = R.uniform(0.05, 0.95, (3, 4))
WHOLE = R.integers(-5, 6, (3, 4))
ABOVE = POSITIVE + 1
BOOL = WHOLE > 0

UNARY = {
    **dict.fromkeys(
        [
            "abs",
            "neg",
            "sgn",
            "sqr",
            "exp",
            "exp2",
            "expm1",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "arcsinh",
            "arctan",
        ],
        ANY,
    ),
    **dict.fromkeys(
        ["floor", "ceil", "trunc", "round_half_to_even", "round_half_away_from_zero"], ANY
    ),
    **dict.fromkeys(
        [
            "erf",
            "erfc",
            "erfcx",
            "sigmoid",
            "softplus",
            "j0",
            "j1",
            "i0",
            "i1",
            "reciprocal",
            "identity",
        ],
        ANY,
    ),
    **dict.fromkeys(
        ["log", "log2", "log10", "log1p", "sqrt", "gamma", "gammaln", "psi", "tri_gamma"], POSITIVE
    ),
    **dict.fromkeys(["arcsin", "arccos", "arctanh", "erfinv", "erfcinv"], UNIT),
    "arccosh": ABOVE,
    "log1mexp": -POSITIVE,
    "ndtri_exp": -POSITIVE,
    "isnan": np.array([1.0, np.nan, np.inf]),
    "isinf": np.array([1.0, np.nan, -np.inf]),
    "invert": BOOL,
}
BINARY = {
    **dict.fromkeys(
        [
            "add",
            "sub",
            "mul",
            "true_div",
            "int_div",
            "mod",
            "maximum",
            "minimum",
            "arctan2",
            "second",
        ],
        (ANY, ANY[::-1] + 0.05),
    ),
    **dict.fromkeys(["lt", "gt", "le", "ge", "eq", "neq"], (WHOLE, WHOLE[::-1])),
    "pow": (POSITIVE, ANY),
    "gammainc": (POSITIVE, ABOVE),
    "gammaincc": (POSITIVE, ABOVE),
    "gammaincinv": (POSITIVE, UNIT),
    "gammainccinv": (POSITIVE, UNIT),
    "jv": (POSITIVE, ABOVE),
    "ive": (POSITIVE, ABOVE),
    "kve": (POSITIVE, ABOVE),
    "owens_t": (ANY, UNIT),
    "and_": (BOOL, BOOL[::-1]),
    "or_": (BOOL, BOOL[::-1]),
    "xor": (BOOL, BOOL[::-1]),
}
MORE = {
    "switch": (BOOL, ANY, POSITIVE),
    "clip": (ANY, -UNIT, UNIT),
    "betainc": (POSITIVE, ABOVE, UNIT),
    "betaincinv": (POSITIVE, ABOVE, UNIT),
    "hyp2f1": (POSITIVE, ABOVE, ABOVE + 1, UNIT / 2),
}
CASES = {**{k: (v,) for k, v in UNARY.items()}, **BINARY, **MORE}
NAMES = {"sgn": "sign", "abs": "abs", "round_half_to_even": "round_half_to_even"}

LACKING = {"gammaincinv", "gammainccinv", "betaincinv"}
"""Ops whose slopes PyTensor lacks."""
TRUTHS = {"isnan", "isinf"}
REFUSED = {"hyp2f1", "jv", "ive", "kve"}
"""Ops whose slope in the first operand nobody knows here."""


def op(name: str) -> Elemwise:
    scalar = {"sgn": "sign"}.get(name, name)
    for space in (ps, ps.basic, ps.math):
        if hasattr(space, scalar):
            return Elemwise(getattr(space, scalar))
    if name not in ("maximum", "minimum"):
        pytest.skip("this version of PyTensor lacks the op")
    return Elemwise(ps.basic.scalar_maximum if name == "maximum" else ps.basic.scalar_minimum)


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    same_values(op(name), CASES[name])
    f32 = [a.astype("float32") if a.dtype == float else a for a in CASES[name]]
    same_values(op(name), f32, rtol=2e-4)


@pytest.mark.parametrize("name", [n for n in CASES if n not in LACKING | REFUSED | TRUTHS])
def test_slopes(name: str) -> None:
    if name in ("gammaincc", "owens_t", "erfcx", "ndtri_exp"):
        exact_since(3.3)
    if any(a.dtype == float for a in CASES[name]):
        same_slopes(op(name), CASES[name], rtol=1e-7)


@pytest.mark.parametrize("name", LACKING)
def test_slopes_that_pytensor_lacks(name: str) -> None:
    same_differences(op(name), [a[:1] for a in CASES[name]])


@pytest.mark.parametrize("name", REFUSED)
def test_unknown_slopes_are_refused(name: str) -> None:
    with pytest.raises(GraphTypeError, match=r"(?s)no derivative with respect to its first.*cure:"):
        same_differences(op(name), [a[:1] for a in CASES[name]])


@pytest.mark.parametrize("name", ["add", "mul", "maximum", "int_div", "mod", "and_", "or_", "xor"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "bool"])
def test_integers(name: str, dtype: str) -> None:
    x = (np.abs(WHOLE) + 1).astype(dtype)
    same_values(op(name), [x, x[::-1]])


@pytest.mark.parametrize(
    "name", ["exp", "log", "sqrt", "sigmoid", "true_div", "gammaln", "abs", "neg", "sgn", "sqr"]
)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_floats_of_integers(name: str, dtype: str) -> None:
    x = (np.abs(WHOLE) + 1).astype(dtype)
    same_values(op(name), [x, x] if name == "true_div" else [x], rtol=1e-6)


@pytest.mark.parametrize("shape", [(0, 4), (1, 4), (3, 1), (1, 1)])
@pytest.mark.parametrize("static", [False, True])
def test_empty_and_size_1(shape: tuple[int, ...], static: bool) -> None:
    x = R.normal(size=shape)
    same_values(lambda x: [pt.exp(x), x * 2, -x], [x], static)


def test_broadcasting() -> None:
    x, y, z = R.normal(size=(3, 1)), R.normal(size=(1, 4)), R.normal(size=4)
    build = lambda x, y, z: [x + y, x * z, (x - y) ** 2 / (1 + z**2), pt.second(x, z[None])]
    same_values(build, [x, y, z], static=True)
    same_slopes(build, [x, y, z], static=True)


def test_casts() -> None:
    x = np.array([-2.7, -0.5, 0.0, 1.5, 2.5])
    kinds = ["int8", "int32", "int64", "float32", "bool", "complex128"]
    same_values(lambda x: [pt.cast(x, kind) for kind in kinds], [x])


def test_complex() -> None:
    z = R.normal(size=4) + 1j * R.normal(size=4)
    same_values(lambda z: [pt.real(z), pt.imag(z), pt.conj(z), abs(z), z * z + 1, pt.exp(z)], [z])
    same_values(pt.complex, [ANY, POSITIVE])


def test_complex_numbers_of_parts_that_are_not_finite() -> None:
    ends = np.array([0.0, 1.0, np.inf, -np.inf, np.nan])
    same_values(lambda x, y: pt.complex(x[:, None], y), [ends, ends])


def test_bounds_of_clip_that_cross_and_slopes_at_bounds() -> None:
    """The lower bound comes first, nan is no bound, and at a bound the slope is that of x."""
    ends = np.array([-1.0, 0.0, 2.0, np.nan])
    same_values(lambda x, y, z: pt.clip(x[:, None, None], y[:, None], z), [ends, ends, ends])
    whole = np.arange(-2, 4)
    same_values(lambda x: pt.clip(x, np.int64(3), np.int64(1)), [whole])
    same_slopes(lambda x: pt.clip(x, -1.0, 2.0), [ends[:3]])


def test_polygamma() -> None:
    same_values(lambda x: pt.polygamma(2, x), [POSITIVE])


def test_a_composite_op() -> None:
    x, y = ps.float64("x"), ps.float64("y")
    composite = Elemwise(ps.Composite([x, y], [ps.exp(x) * y, x + y]))
    same_values(lambda x, y: composite(x, y), [ANY, POSITIVE])


def test_a_scalar_loop() -> None:
    from pytensor.scalar.loop import ScalarLoop

    x, c = ps.float64("x"), ps.float64("c")
    n = np.int64(7)
    halved = Elemwise(ScalarLoop([x], [x * c + 1], [c]))
    same_values(lambda n, x, c: halved(n, x, c), [n, ANY, UNIT])
    ended = Elemwise(ScalarLoop([x], [x * 2], [c], until=x * 2 > c))
    same_values(lambda n, x, c: ended(n, x, c), [n, POSITIVE, ABOVE * 9])


def test_slopes_by_loops() -> None:
    """PyTensor's own slopes of these are loops of scalars."""
    exact_since(3.3)
    for name in ("gammainc", "gammaincc", "betainc"):
        same_slopes(op(name), CASES[name], rtol=1e-7)


def test_every_scalar_op_of_the_table_is_tested() -> None:
    spaces = [ps, ps.basic, ps.math]
    names = [{"sgn": "sign"}.get(name, name) for name in CASES]
    known = [getattr(space, name) for name in names for space in spaces if hasattr(space, name)]
    tested = {type(op).__name__ for op in known}
    there = {name for space in spaces for name in dir(space)}
    others = {
        *("Angle", "Cast", "Complex", "Conj", "Imag", "Real", "PolyGamma"),
        *("ComplexFromPolar", "Deg2Rad", "Rad2Deg", "GammaL", "GammaU"),
        *("Maximum", "Minimum", "ScalarMaximum", "ScalarMinimum", "MulWithoutZeros"),
    }
    assert {*SCALARS, *OWN_DTYPES} & there <= tested | others
