"""Functions of one or two operands that are one op each, under NumPy's names.

`unary` and `binary` make them from the table of ops; what is made of several ops is in formulas.py.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt

from graphcore.frontend.core.arguments import dtype_of
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, apply, single
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.op import Op
from graphcore.ops import elementwise as ops

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "lcm",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "pow",
    "power",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "spacing",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
]


class Unary(Protocol):
    """A function of one tensor or number."""

    __name__: str

    def __call__(self, x: Operand) -> Tensor:
        """The function of each value."""


class Binary(Protocol):
    """A function of two tensors or numbers."""

    __name__: str

    def __call__(self, x: Operand, y: Operand) -> Tensor:
        """The function of each pair of values."""


DOC = """{doc}, elementwise{like}.

{dims}
Integers become floats where the function needs them; a dtype it is not defined for is refused.
{unknown}
>>> import graphcore as gc
>>> {operands} = {inputs}
>>> gc.{path}{name}({operands})
<Tensor: {result}[{sizes}]>
"""
ONE = "The dims are those of `x`."
SEVERAL = """Operands align by name: the dims of `x` first, then the new ones of `y`; a dim of size
1 is never stretched. Python numbers are weak, as in NumPy 2."""
EXAMPLE = {"x": ("row", 2), "y": ("col", 3), "z": ("batch", 4), "w": ("time", 5)}


def unary(op: Op, result: str = "f64", of: str = "float64", path: str = "") -> Unary:
    """The function of one operand that `op` computes.

    `result` is the dtype of the documented example, whose operand has dtype `of`; `path` is where
    the function stands in `gc`.
    """

    def function(x: Operand) -> Tensor:
        return apply(op, x)

    document(function, op, "x", result, of, path)
    return function


def binary(op: Op, result: str = "f64", of: str = "float64", path: str = "") -> Binary:
    """The function of two operands that `op` computes; the rest as for `unary`."""

    def function(x: Operand, y: Operand) -> Tensor:
        return apply(op, x, y)

    document(function, op, "xy", result, of, path)
    return function


def document(
    function: Any, op: Op, operands: str, result: str = "f64", of: str = "float64", path: str = ""
) -> None:
    """Name and describe the function of `op`, whose operands have one letter each."""
    function.__name__ = function.__qualname__ = op.name
    dims = [EXAMPLE[x] for x in operands]
    unknown = [f"`{operands[place]}`" for place in ops.UNKNOWN.get(op, ())]
    function.__doc__ = DOC.format(
        doc=op.doc,
        like=like(op),
        dims=ONE if len(operands) == 1 else SEVERAL,
        unknown=f"No derivative by {', '.join(unknown)} is known.\n" if unknown else "",
        operands=", ".join(operands),
        inputs=", ".join(
            f"gc.tensor({x!r}, {{{dim!r}: {size}}}, dtype={of!r})"
            for x, (dim, size) in zip(operands, dims, strict=True)
        ),
        path=path,
        name=op.name,
        result=result,
        sizes=", ".join(f"{dim}={size}" for dim, size in dims),
    )


def like(op: Op) -> str:
    """The NumPy function of the same name, if there is one."""
    return "" if isinstance(ops.UFUNC[op], str) else f", as `numpy.{op.name}`"


def astype(x: Operand, dtype: npt.DTypeLike) -> Tensor:
    """The same values in another dtype, converted as NumPy's `astype` does.

    Complex values become no real ones, as their imaginary part would be lost: see `x.real`, `abs`.

    >>> import graphcore as gc
    >>> gc.astype(gc.tensor("x", {"row": 2}), "float32")
    <Tensor: f32[row=2]>
    """
    node = single("astype", x)
    wanted = dtype_of("astype", dtype, node)
    if node.type.dtype.kind == "c" and wanted.kind in "iuf":
        cure = "say what is meant: x.real, x.imag, or abs(x) for the modulus"
        reason = f"{node.type.dtype} as {wanted} would lose the imaginary part"
        raise refusal("astype", reason, node, cure=cure, kind=GraphTypeError)
    return wrap(node if node.type.dtype == wanted else ops.cast(node, dtype=wanted))


add = binary(ops.add)
subtract = binary(ops.subtract)
multiply = binary(ops.multiply)
divide = true_divide = binary(ops.divide)
floor_divide = binary(ops.floor_divide)
remainder = mod = binary(ops.remainder)
fmod = binary(ops.fmod)
power = pow = binary(ops.power)
negative = unary(ops.negative)
absolute = abs = unary(ops.absolute)
sign = unary(ops.sign)
square = unary(ops.square)
sqrt = unary(ops.sqrt)
cbrt = unary(ops.cbrt)
reciprocal = unary(ops.reciprocal)
exp = unary(ops.exp)
exp2 = unary(ops.exp2)
expm1 = unary(ops.expm1)
log = unary(ops.log)
log2 = unary(ops.log2)
log10 = unary(ops.log10)
log1p = unary(ops.log1p)
logaddexp = binary(ops.logaddexp)
logaddexp2 = binary(ops.logaddexp2)
sin = unary(ops.sin)
cos = unary(ops.cos)
tan = unary(ops.tan)
arcsin = asin = unary(ops.arcsin)
arccos = acos = unary(ops.arccos)
arctan = atan = unary(ops.arctan)
arctan2 = atan2 = binary(ops.arctan2)
hypot = binary(ops.hypot)
sinh = unary(ops.sinh)
cosh = unary(ops.cosh)
tanh = unary(ops.tanh)
arcsinh = asinh = unary(ops.arcsinh)
arccosh = acosh = unary(ops.arccosh)
arctanh = atanh = unary(ops.arctanh)
floor = unary(ops.floor)
ceil = unary(ops.ceil)
trunc = unary(ops.trunc)
rint = unary(ops.rint)
copysign = binary(ops.copysign)
heaviside = binary(ops.heaviside)
maximum = binary(ops.maximum)
minimum = binary(ops.minimum)
fmax = binary(ops.fmax)
fmin = binary(ops.fmin)
nextafter = binary(ops.nextafter)
spacing = unary(ops.spacing)

equal = binary(ops.equal, "bool")
not_equal = binary(ops.not_equal, "bool")
less = binary(ops.less, "bool")
less_equal = binary(ops.less_equal, "bool")
greater = binary(ops.greater, "bool")
greater_equal = binary(ops.greater_equal, "bool")
logical_and = binary(ops.logical_and, "bool", "bool")
logical_or = binary(ops.logical_or, "bool", "bool")
logical_xor = binary(ops.logical_xor, "bool", "bool")
logical_not = unary(ops.logical_not, "bool", "bool")
bitwise_and = binary(ops.bitwise_and, "i64", "int64")
bitwise_or = binary(ops.bitwise_or, "i64", "int64")
bitwise_xor = binary(ops.bitwise_xor, "i64", "int64")
invert = bitwise_not = bitwise_invert = unary(ops.invert, "i64", "int64")
left_shift = bitwise_left_shift = binary(ops.left_shift, "i64", "int64")
right_shift = bitwise_right_shift = binary(ops.right_shift, "i64", "int64")
bitwise_count = unary(ops.bitwise_count, "u8", "int64")
gcd = binary(ops.gcd, "i64", "int64")
lcm = binary(ops.lcm, "i64", "int64")
isnan = unary(ops.isnan, "bool")
isinf = unary(ops.isinf, "bool")
isfinite = unary(ops.isfinite, "bool")
signbit = unary(ops.signbit, "bool")
