"""A symbolic named-axis differentiable array compiler.

>>> import graphcore as gc
>>> x, w = gc.tensor("x", {"batch": None, "feature": 8}), gc.tensor("w", {"feature": 8})
>>> gc.dot(x, w, dim="feature")
<Tensor: f64[batch]>
"""

from .compile import Compiled, compile
from .frontend import special
from .frontend.complex import angle, conj, conjugate, imag, real
from .frontend.contraction import (
    dot,
    einsum,
)
from .frontend.creation import (
    constant,
    full,
    full_like,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from .frontend.derivatives import (
    grad,
    pullback,
    pushforward,
    stop_gradient,
)
from .frontend.derivatives import (
    grad,
    pullback,
    pushforward,
    stop_gradient,
)
from .frontend.elementwise import (
    abs,
    absolute,
    acos,
    acosh,
    add,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    astype,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cbrt,
    ceil,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    greater,
    greater_equal,
    heaviside,
    hypot,
    invert,
    isfinite,
    isinf,
    isnan,
    left_shift,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    pow,
    power,
    reciprocal,
    remainder,
    right_shift,
    rint,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    true_divide,
    trunc,
)
from .frontend.formulas import (
    around,
    clip,
    deg2rad,
    degrees,
    divmod,
    fabs,
    fix,
    float_power,
    isclose,
    modf,
    nan_to_num,
    positive,
    rad2deg,
    radians,
    round,
    sinc,
    where,
)
from .frontend.indexing import (
    isel,
    take,
    take_along,
)
from .frontend.ranges import (
    arange,
    eye,
    linspace,
)
from .frontend.reductions import (
    all,
    any,
    argmax,
    argmin,
    cumprod,
    cumsum,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from .frontend.shape import (
    broadcast,
    broadcast_like,
    concat,
    expand_dims,
    rename,
    squeeze,
    stack,
    transpose,
    unstack,
)
from .frontend.tensor import (
    Tensor,
)
from .inspection import debug_print
from .ir.errors import GraphError, GraphIndexError, GraphTypeError, GraphValueError

# fmt: off
__all__ = [  # noqa: RUF022
    "Compiled", "GraphError", "GraphIndexError", "GraphTypeError", "GraphValueError", "Tensor",
    "abs", "absolute", "acos", "acosh", "add", "all", "angle", "any", "arange", "arccos",
    "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "around",
    "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "broadcast", "broadcast_like", "cbrt", "ceil", "clip",
    "compile",     "concat", "conj", "conjugate", "constant", "copysign", "cos", "cosh", "cumprod", "cumsum",
    "debug_print", "deg2rad", "degrees", "divide", "divmod", "dot", "einsum", "equal", "exp",
    "exp2", "expand_dims", "expm1", "eye", "fabs", "fix", "float_power", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "full", "full_like", "grad", "greater", "greater_equal", "heaviside",
    "hypot", "imag", "invert", "isclose", "isel", "isfinite", "isinf", "isnan", "left_shift",
    "less", "less_equal", "linspace", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "max", "maximum", "mean", "min",
    "minimum", "mod", "modf", "multiply", "nan_to_num", "negative", "not_equal", "ones",
    "ones_like", "positive", "pow", "power", "prod", "pullback", "pushforward", "rad2deg",
    "radians", "real", "reciprocal", "remainder", "rename", "right_shift", "rint", "round", "sign",
    "signbit", "sin", "sinc", "sinh", "special", "sqrt", "square", "squeeze", "stack", "std",
    "stop_gradient", "subtract", "sum", "take", "take_along", "tan", "tanh", "tensor", "transpose",
    "true_divide", "trunc", "unstack", "var", "where", "zeros", "zeros_like",
]
# fmt: on
