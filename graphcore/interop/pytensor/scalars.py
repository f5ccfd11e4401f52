"""Elementwise: PyTensor's scalar ops by name, and `Elemwise`, which applies one to tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

import graphcore as gc
from graphcore import special
from graphcore.frontend.core.base import Tensor
from graphcore.ir.sizes import Size, lower_bound, maximum, minimum, same

from .refused import Unsaid
from .rules import Apply, names_of, refuse, rule, translate
from .values import Value, is_known, is_sizes, known, lift


def folded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two operands, of any number of them."""
    return lambda *xs: reduce(function, xs)


def either(logical: Callable[..., Any], bitwise: Callable[..., Any]) -> Callable[..., Any]:
    """A function of bools, or of the bits of integers."""
    return lambda *xs: reduce(logical if xs[0].dtype == bool else bitwise, xs)


def choose(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`Switch`: any number may be the condition."""
    return gc.where(truth(condition), x, y)


def truth(x: Tensor) -> Tensor:
    """Whether values are not 0."""
    return x if x.dtype == bool else gc.not_equal(x, 0)


def broadcast_second(x: Tensor, y: Tensor) -> Tensor:
    """`Second(x, y)`: `y` along the dims of `x` as well."""
    return gc.full({dim: n for dim, n in x.sizes.items() if dim not in y.dims}, y)


def round_away(x: Tensor) -> Tensor:
    """The nearest integer, halves away from 0."""
    return gc.where(x >= 0, gc.floor(x + 0.5), gc.ceil(x - 0.5))


def clip(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """`low` where `x` is less, else `high` where `x` is more: bounds that cross, or nan, decide so.

    At a bound the slope is that of `x`, as in PyTensor.
    """
    return gc.where(x < low, low, gc.where(x > high, high, x))


def complex_of(x: Tensor, y: Tensor) -> Tensor:
    """`x + i y`; `1j * y` alone would have the real part nan where `y` is not finite."""
    turned = 1j * y
    for end in (np.inf, -np.inf):
        turned = gc.where(gc.equal(y, end), complex(0, end), turned)
    return x + gc.where(gc.isnan(y), complex(0, np.nan), turned)


def times_unless_zero(x: Tensor, y: Tensor) -> Tensor:
    """`x y`, in which a factor 0 is left out."""
    return gc.where(gc.equal(x, 0), y, gc.where(gc.equal(y, 0), x, x * y))


def poly_gamma(n: Tensor, x: Tensor) -> Tensor:
    """The derivative of order n, which is one integer known now."""
    order = n.node.attrs.get("value")
    if order is None or np.unique(order.array).size != 1:
        raise Unsaid("the order of polygamma is known only at the call", "give an integer")
    return special.polygamma(int(order.array.flat[0]), x)


SCALARS: dict[str, Callable[..., Tensor]] = {
    "Abs": gc.abs,
    "Add": folded(gc.add),
    "ArcCos": gc.arccos,
    "ArcCosh": gc.arccosh,
    "ArcSin": gc.arcsin,
    "ArcSinh": gc.arcsinh,
    "ArcTan": gc.arctan,
    "ArcTan2": gc.arctan2,
    "ArcTanh": gc.arctanh,
    "BetaInc": special.betainc,
    "BetaIncInv": special.betaincinv,
    "Ceil": gc.ceil,
    "Clip": clip,
    "Cos": gc.cos,
    "Cosh": gc.cosh,
    "Deg2Rad": gc.deg2rad,
    "Erf": special.erf,
    "Erfc": special.erfc,
    "Erfcinv": special.erfcinv,
    "Erfcx": special.erfcx,
    "Erfinv": special.erfinv,
    "Exp": gc.exp,
    "Exp2": gc.exp2,
    "Expm1": gc.expm1,
    "Floor": gc.floor,
    "Gamma": special.gamma,
    "GammaInc": special.gammainc,
    "GammaIncC": special.gammaincc,
    "GammaIncCInv": special.gammainccinv,
    "GammaIncInv": special.gammaincinv,
    "GammaL": lambda k, x: special.gammainc(k, x) * special.gamma(k),
    "GammaLn": special.gammaln,
    "GammaU": lambda k, x: special.gammaincc(k, x) * special.gamma(k),
    "Hyp2F1": special.hyp2f1,
    "I0": special.i0,
    "I0e": special.i0e,  # of PyMC, as is I1e
    "I1": special.i1,
    "I1e": special.i1e,
    "Identity": lambda x: x,
    "IntDiv": gc.floor_divide,
    "Ive": special.ive,
    "J0": special.j0,
    "J1": special.j1,
    "Jv": special.jv,
    "Kve": special.kve,
    "Log": gc.log,
    "Log10": gc.log10,
    "Log1mexp": special.log1mexp,
    "Log1p": gc.log1p,
    "Log2": gc.log2,
    "Maximum": gc.maximum,
    "Minimum": gc.minimum,
    "Mod": gc.mod,
    "Mul": folded(gc.multiply),
    "MulWithoutZeros": times_unless_zero,
    "NdtriExp": special.ndtri_exp,
    "Neg": gc.negative,
    "Owens_t": special.owens_t,
    "Pow": gc.power,
    "Psi": special.digamma,
    "Rad2Deg": gc.rad2deg,
    "Reciprocal": gc.reciprocal,
    "RoundHalfAwayFromZero": round_away,
    "RoundHalfToEven": gc.rint,
    "ScalarMaximum": gc.maximum,
    "ScalarMinimum": gc.minimum,
    "Sigmoid": special.expit,
    "Sign": gc.sign,
    "Sin": gc.sin,
    "Sinh": gc.sinh,
    "Softplus": special.softplus,
    "Sqr": gc.square,
    "Sqrt": gc.sqrt,
    "Sub": gc.subtract,
    "Tan": gc.tan,
    "Tanh": gc.tanh,
    "TriGamma": lambda x: special.polygamma(1, x),
    "TrueDiv": gc.divide,
    "Trunc": gc.trunc,
}
"""Functions of operands that are cast to the dtype of the result first."""

OWN_DTYPES: dict[str, Callable[..., Tensor]] = {
    "AND": either(gc.logical_and, gc.bitwise_and),
    "Angle": gc.angle,
    "Cast": lambda x: x,
    "Complex": complex_of,
    "ComplexFromPolar": lambda r, angle: complex_of(r * gc.cos(angle), r * gc.sin(angle)),
    "Conj": gc.conj,
    "EQ": gc.equal,
    "GE": gc.greater_equal,
    "GT": gc.greater,
    "Imag": gc.imag,
    "Invert": lambda x: gc.logical_not(x) if x.dtype == bool else gc.invert(x),
    "IsInf": gc.isinf,
    "IsNan": gc.isnan,
    "LE": gc.less_equal,
    "LT": gc.less,
    "NEQ": gc.not_equal,
    "OR": either(gc.logical_or, gc.bitwise_or),
    "PolyGamma": poly_gamma,
    "Real": gc.real,
    "Second": broadcast_second,
    "Switch": choose,
    "XOR": either(gc.logical_xor, gc.bitwise_xor),
}
"""Functions of operands as they are."""


def remainder(a: Size, b: Size) -> Size:
    """`a % b`, which is 0 where b is 0, as NumPy has it: so an empty axis can be rolled."""
    found: Size = a % (maximum(b, 1) if lower_bound(b) == 0 else b)
    return found


SIZES: dict[str, Callable[..., Any]] = {
    "Abs": abs,
    "Add": lambda *xs: sum(xs),
    "Cast": lambda x: x,
    "Clip": lambda x, low, high: minimum(maximum(x, low), high),
    "EQ": same,
    "Identity": lambda x: x,
    "IntDiv": operator.floordiv,
    "Maximum": maximum,
    "Minimum": minimum,
    "Mod": remainder,
    "Mul": folded(operator.mul),
    "NEQ": lambda a, b: None if (equal := same(a, b)) is None else not equal,
    "Neg": operator.neg,
    "ScalarMaximum": maximum,
    "ScalarMinimum": minimum,
    "Second": lambda x, y: y,
    "Sqr": lambda x: x * x,
    "Sub": operator.sub,
    "Switch": lambda c, x, y: x if c else y,
}
"""Arithmetic of sizes; None where what a size is decides the result."""


@rule("Elemwise")
def elementwise(node: Apply, *operands: Value) -> Value | Sequence[Value]:
    """A scalar op on tensors that align by name."""
    if any(map(is_sizes, operands)) and all(map(is_known, operands)):
        found = of_sizes(node.op.scalar_op, operands, node.outputs[0].type)
        if found is not None:
            return found
    tensors = [lift(x, v.type) for x, v in zip(operands, node.inputs)]
    return scalar_results(node.op.scalar_op, tensors, [v.type.dtype for v in node.outputs], node)


@rule("ScalarOp")
def scalar_node(node: Apply, *operands: Value) -> Value | Sequence[Value]:
    """A scalar op on scalars."""
    tensors = [lift(x, v.type) for x, v in zip(operands, node.inputs)]
    if any(map(is_sizes, operands)) and all(map(is_known, operands)):
        found = of_sizes(node.op, operands, node.outputs[0].type)
        if found is not None:
            return found
    return scalar_results(node.op, tensors, [v.type.dtype for v in node.outputs], node)


def of_sizes(op: Any, operands: Sequence[Value], type: Any) -> Value:
    """Sizes computed elementwise; None where they are numbers that only the call gives."""
    function = SIZES.get(op.__class__.__name__)
    if function is None or np.dtype(type.dtype).kind not in "iub":
        return None
    arrays = np.broadcast_arrays(*[np.asarray(x, object) for x in operands])
    made = np.empty(arrays[0].shape, object)
    for at in np.ndindex(made.shape):
        made[at] = function(*[x[at] for x in arrays])
    return None if any(y is None for y in made.flat) else known(made)


def scalar_results(
    op: Any, xs: Sequence[Tensor], dtypes: Sequence[str], node: Apply
) -> list[Tensor]:
    """The results of a scalar op, in the dtypes that PyTensor gives them."""
    names = names_of(op)
    if "Composite" in names:
        return [
            y if isinstance(y, Tensor) else lift(y, v.type)
            for y, v in zip(translate(op.fgraph, xs), op.fgraph.outputs)
        ]
    if "ScalarLoop" in names:
        return scalar_loop(op, xs)
    own = next((OWN_DTYPES[name] for name in names if name in OWN_DTYPES), None)
    function = own or next((SCALARS[name] for name in names if name in SCALARS), None)
    if function is None:
        name = names[0]
        cure = f'graphcore.interop.pytensor.SCALARS["{name}"] = a function of tensors'
        refuse(node, f"the scalar op {name} has no counterpart", cure)
    if (own is None and np.dtype(dtypes[0]).kind != "f") or (own is None and not is_complex(xs)):
        xs = [gc.astype(x, dtypes[0]) for x in xs]
    return [gc.astype(function(*xs), dtypes[0])]


def is_complex(xs: Sequence[Tensor]) -> bool:
    """Whether there is a complex operand."""
    return any(x.dtype.kind == "c" for x in xs)


def scalar_loop(op: Any, xs: Sequence[Tensor]) -> list[Tensor]:
    """`ScalarLoop(n, *state, *constants)`: its own graph, n times or until it says that it is done.

    Each element ends at its own step.
    """
    n, *rest = xs
    many = len(op.outputs) - bool(op.is_while)
    constants = rest[many:]
    sizes = {dim: size for x in rest for dim, size in x.sizes.items()}
    start = [gc.full({d: k for d, k in sizes.items() if d not in x.dims}, x) for x in rest[:many]]

    def step(state: Any) -> Any:
        i, done, values = state
        made = translate(op.fgraph, [*values, *constants])
        found = [lift(y, v.type) for y, v in zip(made, op.fgraph.outputs)]
        done = found.pop() if op.is_while else done
        return i + 1, done, found

    done = gc.full(sizes, gc.constant(False)) if op.is_while else gc.constant(False)
    _, ended, last = gc.while_loop(
        lambda state: gc.logical_and(gc.less(state[0], n), gc.logical_not(state[1])),
        step,
        (gc.constant(0), done, start),
    )
    if not op.is_while:
        return [*last]
    return [*last, gc.logical_or(ended, gc.less_equal(n, 0))]
