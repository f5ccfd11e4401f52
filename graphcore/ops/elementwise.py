"""Elementwise ops. Named operands align by name; plain operands must agree in shape.

`UFUNC` has the function of each: a NumPy ufunc, or the name of a special function (those are
declared in special.py).
"""

from __future__ import annotations

import numpy as np

from graphcore.ir import BOOL, DType, Op, TensorType, Trait
from graphcore.ir.axes import Pointwise
from graphcore.ir.dtypes import float_for, loop_dtypes, promote
from graphcore.ir.errors import GraphTypeError, Refusal, require
from graphcore.ir.node import union
from graphcore.ir.op import declare, op
from graphcore.ir.sizes import same

UFUNC: dict[Op, np.ufunc | str] = {}
UNKNOWN: dict[Op, tuple[int, ...]] = {}
"""The operands by which no derivative of an op is known, so that one is refused."""
COMPLEX = frozenset({"expit", "erf", "erfc", "xlogy", "xlog1py"})
"""Special functions with a complex form."""


def broadcast(dtype: DType, *types: TensorType) -> TensorType:
    """The common type: for named tensors the union of dims, in order of first appearance."""
    first, *rest = types
    if first.dims is None:
        for other in rest:
            if other.shape != first.shape:
                plain_shapes_agree(first, other)
        return first if first.dtype == dtype else TensorType(dtype, first.shape)
    if all(other.dims == first.dims and other.shape == first.shape for other in rest):
        return first if first.dtype == dtype else TensorType(dtype, first.shape, first.dims)
    return TensorType.of(dtype, union(*types))


def plain_shapes_agree(x: TensorType, y: TensorType) -> None:
    """Refuse plain operands of different shapes: lowering has broadcast them already."""
    require(
        len(x.shape) == len(y.shape)
        and all(same(a, b) is not False for a, b in zip(x.shape, y.shape, strict=True)),
        f"plain shapes differ: {x}, {y}",
    )


def compute_dtypes(op: Op, *dtypes: DType) -> tuple[DType, ...]:
    """The dtypes in which `op` computes: those of its operands, then that of its result."""
    ufunc = UFUNC[op]
    if isinstance(ufunc, str):
        common = float_for(promote(*dtypes))
        cure = "take the real and imaginary parts apart"
        require(
            common.kind == "f" or ufunc in COMPLEX,
            f"is not defined for {common}",
            cure,
            GraphTypeError,
        )
        return (common,) * (len(dtypes) + 1)
    try:
        return loop_dtypes(ufunc, *dtypes)
    except TypeError as error:
        shown = ", ".join(map(str, dtypes))
        cure = "cast the operands with astype first"
        if BOOL in dtypes and ufunc in (np.subtract, np.negative):
            cure = "use logical_xor or logical_not, or cast with astype first"
        raise Refusal(f"is not defined for {shown}", cure, GraphTypeError) from error


def elementwise(
    name: str,
    doc: str,
    function: np.ufunc | str = "",
    unknown: tuple[int, ...] = (),
    *,
    commutative: bool = False,
    module: str = __name__,
) -> Op:
    """An elementwise op computed by `function`, by default NumPy's of its name.

    It has no derivatives in its operands `unknown`. `module` is that which declares it: `__name__`
    there.
    """

    def rule(*types: TensorType) -> TensorType:
        return broadcast(compute_dtypes(new, *[type.dtype for type in types])[-1], *types)

    traits = [Trait.IN_PLACE, *([Trait.COMMUTATIVE] if commutative else [])]
    new = Op(name, "elementwise", rule, doc, axes=Pointwise(), traits=traits, module=module)
    UFUNC[new] = function or getattr(np, name)
    if unknown:
        UNKNOWN[new] = unknown
    return declare(new)


add = elementwise("add", "`x + y`", commutative=True)
subtract = elementwise("subtract", "`x - y`")
multiply = elementwise("multiply", "`x * y`", commutative=True)
divide = elementwise("divide", "`x / y`")
floor_divide = elementwise("floor_divide", "`floor(x / y)`")
remainder = elementwise("remainder", "`x - y*floor(x / y)`: the sign of `y`")
fmod = elementwise("fmod", "`x - y*trunc(x / y)`: the sign of `x`")
power = elementwise("power", "`x ** y`")
negative = elementwise("negative", "`-x`")
absolute = elementwise("absolute", "`|x|`; of a complex number its modulus")
sign = elementwise("sign", "-1, 0 or 1; of a complex number `x / |x|`")
square = elementwise("square", "`x * x`")
sqrt = elementwise("sqrt", "Square root of `x`")
cbrt = elementwise("cbrt", "Cube root of `x`")
reciprocal = elementwise("reciprocal", "`1 / x`")
exp = elementwise("exp", "`e ** x`")
exp2 = elementwise("exp2", "`2 ** x`")
expm1 = elementwise("expm1", "`e ** x - 1`, accurate near 0")
log = elementwise("log", "Natural logarithm of `x`")
log2 = elementwise("log2", "Logarithm of `x` to base 2")
log10 = elementwise("log10", "Logarithm of `x` to base 10")
log1p = elementwise("log1p", "`log(1 + x)`, accurate near 0")
logaddexp = elementwise("logaddexp", "`log(e ** x + e ** y)`, without overflow", commutative=True)
logaddexp2 = elementwise(
    "logaddexp2", "`log2(2 ** x + 2 ** y)`, without overflow", commutative=True
)
sin = elementwise("sin", "Sine of `x` radians")
cos = elementwise("cos", "Cosine of `x` radians")
tan = elementwise("tan", "Tangent of `x` radians")
arcsin = elementwise("arcsin", "Angle in radians whose sine is `x`")
arccos = elementwise("arccos", "Angle in radians whose cosine is `x`")
arctan = elementwise("arctan", "Angle in radians whose tangent is `x`")
arctan2 = elementwise("arctan2", "Angle in radians of the point `(y, x)`: `y` comes first")
hypot = elementwise("hypot", "`sqrt(x*x + y*y)`, without overflow", commutative=True)
sinh = elementwise("sinh", "Hyperbolic sine of `x`")
cosh = elementwise("cosh", "Hyperbolic cosine of `x`")
tanh = elementwise("tanh", "Hyperbolic tangent of `x`")
arcsinh = elementwise("arcsinh", "Inverse hyperbolic sine of `x`")
arccosh = elementwise("arccosh", "Inverse hyperbolic cosine of `x`")
arctanh = elementwise("arctanh", "Inverse hyperbolic tangent of `x`")
floor = elementwise("floor", "Largest integer not above `x`")
ceil = elementwise("ceil", "Smallest integer not below `x`")
trunc = elementwise("trunc", "`x` without its fraction")
rint = elementwise("rint", "Nearest integer, halves to even")
copysign = elementwise("copysign", "`|x|` with the sign of `y`")
heaviside = elementwise("heaviside", "0 below 0, 1 above, `y` at 0")
maximum = elementwise("maximum", "The larger of `x` and `y`; nan if either is", commutative=True)
minimum = elementwise("minimum", "The smaller of `x` and `y`; nan if either is", commutative=True)
fmax = elementwise("fmax", "The larger of `x` and `y`; nan only if both are", commutative=True)
fmin = elementwise("fmin", "The smaller of `x` and `y`; nan only if both are", commutative=True)
ldexp = elementwise("ldexp", "`x * 2**y` for an integer `y`")
nextafter = elementwise("nextafter", "Next float after `x` in the direction of `y`")
spacing = elementwise("spacing", "Distance from `x` to the next float away from 0")
conjugate = elementwise("conjugate", "Complex conjugate of `x`")

equal = elementwise("equal", "`x == y`", commutative=True)
not_equal = elementwise("not_equal", "`x != y`", commutative=True)
less = elementwise("less", "`x < y`")
less_equal = elementwise("less_equal", "`x <= y`")
greater = elementwise("greater", "`x > y`")
greater_equal = elementwise("greater_equal", "`x >= y`")
logical_and = elementwise("logical_and", "Whether `x` and `y` are both true", commutative=True)
logical_or = elementwise("logical_or", "Whether `x` or `y` is true", commutative=True)
logical_xor = elementwise(
    "logical_xor", "Whether exactly one of `x` and `y` is true", commutative=True
)
logical_not = elementwise("logical_not", "Whether `x` is false")
bitwise_and = elementwise("bitwise_and", "`x & y`, bit by bit", commutative=True)
bitwise_or = elementwise("bitwise_or", "`x | y`, bit by bit", commutative=True)
bitwise_xor = elementwise("bitwise_xor", "`x ^ y`, bit by bit", commutative=True)
invert = elementwise("invert", "`~x`, bit by bit")
left_shift = elementwise("left_shift", "`x * 2**y`")
right_shift = elementwise("right_shift", "`x // 2**y`")
bitwise_count = elementwise("bitwise_count", "How many bits of `|x|` are 1")
gcd = elementwise("gcd", "Greatest common divisor of `|x|` and `|y|`", commutative=True)
lcm = elementwise("lcm", "Least common multiple of `|x|` and `|y|`", commutative=True)
isnan = elementwise("isnan", "Whether `x` is nan")
isinf = elementwise("isinf", "Whether `x` is infinite")
isfinite = elementwise("isfinite", "Whether `x` is neither nan nor infinite")
signbit = elementwise("signbit", "Whether the sign of `x` is negative, also of `-0.0`")


@op(axes=Pointwise())
def real(x: TensorType) -> TensorType:
    """Real part of a complex x."""
    return TensorType(np.dtype(f"f{x.dtype.itemsize // 2}"), x.shape, x.dims)


@op(axes=Pointwise())
def imag(x: TensorType) -> TensorType:
    """Imaginary part of a complex x."""
    return TensorType(np.dtype(f"f{x.dtype.itemsize // 2}"), x.shape, x.dims)


@op(axes=Pointwise(), said="astype")
def cast(x: TensorType, *, dtype: DType) -> TensorType:
    """The same values in another dtype, as `astype`; complex to real keeps the real part."""
    return TensorType(dtype, x.shape, x.dims)


@op(axes=Pointwise())
def where(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    """x where the condition holds, else y."""
    require(
        condition.dtype == BOOL,
        f"the condition is {condition}, not bool",
        "compare it, for instance `x != 0`",
        GraphTypeError,
    )
    return broadcast(promote(x.dtype, y.dtype), condition, x, y)
