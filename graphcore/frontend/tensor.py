"""`Tensor`, the class of all tensors: with Python's operators and xarray's methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from graphcore.ir.help_text import parameters

from . import numpy_functions, statistics
from .arrange import moves
from .core.base import Base, brief, type_refusal
from .core.lift import Operand
from .core.suggestions import attribute
from .core.user_functions import callback
from .core.wrong_calls import worded_methods
from .index import dropping, slices
from .index.indexing import getitem, isel, sel
from .index.updates import At
from .order import counting, groups, quantiles, sorting
from .pointwise import casting, complex, formulas, missing
from .pointwise import elementwise as e
from .pointwise.families import Binary, Unary, reflect
from .reduce import reductions, running
from .reduce.contraction import dot
from .shape import dims
from .window import differences, padding
from .window.rolling import coarsen, rolling

__all__ = [
    "Tensor",
]


Values = Mapping[Any, Any]
"""An array for each input, by tensor or by name."""


@worded_methods
class Tensor(Base):
    """A named tensor: an input, a constant, or the result of a function.

    Operators work elementwise and align by name; `@` sums over shared dims; `x[{"row": 0}]`
    indexes. Methods are the functions of the same name: `x.sum("row")` is `gc.sum(x, "row")`.

    >>> import graphcore as gc
    >>> x, w = gc.tensor("x", {"batch": None, "row": 3}), gc.tensor("w", {"row": 3})
    >>> (x * w - 1).sum("row"), (x @ w).dims, x is gc.tensor("x", {"batch": None, "row": 3})
    (<Tensor: f64[batch]>, ('batch',), True)
    """

    __slots__ = ()
    __hash__ = object.__hash__
    _evaluator: ClassVar[Callable[[Tensor, Values | None, Values], Any]]
    """The function that computes values; `compile/evaluation.py` sets it, which sees backends."""

    __add__: Binary = e.add
    __radd__: Binary = reflect(e.add)
    __sub__: Binary = e.subtract
    __rsub__: Binary = reflect(e.subtract)
    __mul__: Binary = e.multiply
    __rmul__: Binary = reflect(e.multiply)
    __truediv__: Binary = e.divide
    __rtruediv__: Binary = reflect(e.divide)
    __floordiv__: Binary = e.floor_divide
    __rfloordiv__: Binary = reflect(e.floor_divide)
    __mod__: Binary = e.remainder
    __rmod__: Binary = reflect(e.remainder)

    def __divmod__(self, other: Operand) -> tuple[Tensor, Tensor]:
        return formulas.divmod(self, other)

    def __rdivmod__(self, other: Operand) -> tuple[Tensor, Tensor]:
        return formulas.divmod(other, self)

    def __pow__(self, other: Operand) -> Tensor:
        if self.dtype.kind == "b" and type(other) is int and other == 2:
            return e.square(self)  # int8, as in NumPy; np.power makes int64
        return e.power(self, other)

    __rpow__: Binary = reflect(e.power)

    def __matmul__(self, other: Operand) -> Tensor:
        return dot(self, other)

    def __rmatmul__(self, other: Operand) -> Tensor:
        return dot(other, self)

    __and__: Binary = e.bitwise_and
    __rand__: Binary = reflect(e.bitwise_and)
    __or__: Binary = e.bitwise_or
    __ror__: Binary = reflect(e.bitwise_or)
    __xor__: Binary = e.bitwise_xor
    __rxor__: Binary = reflect(e.bitwise_xor)
    __lshift__: Binary = e.left_shift
    __rlshift__: Binary = reflect(e.left_shift)
    __rshift__: Binary = e.right_shift
    __rrshift__: Binary = reflect(e.right_shift)
    __eq__: Binary = e.equal  # type: ignore[assignment]  # object's gives a bool
    __ne__: Binary = e.not_equal  # type: ignore[assignment]  # object's gives a bool
    __lt__: Binary = e.less
    __le__: Binary = e.less_equal
    __gt__: Binary = e.greater
    __ge__: Binary = e.greater_equal
    __neg__: Unary = e.negative

    def __pos__(self) -> Tensor:
        return formulas.positive(self)

    __invert__: Unary = e.invert
    __abs__: Unary = e.absolute

    def __round__(self, decimals: int = 0) -> Tensor:
        return formulas.round(self, decimals)

    __floor__: Unary = e.floor
    __ceil__: Unary = e.ceil
    __trunc__: Unary = e.trunc

    def __getitem__(self, key: Any) -> Tensor:
        return getitem(self, key)

    @property
    def at(self) -> At:
        """Elements to change: `x.at[{"row": 0}].add(y)` is `x` with `y` added there."""
        return At(self)

    @property
    def T(self) -> Tensor:
        """`x` with its dims in reverse order."""
        return dims.transpose(self)

    @property
    def real(self) -> Tensor:
        """The real part."""
        return complex.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return complex.imag(self)

    def pipe(
        self,
        function: Callable[..., Any] | tuple[Callable[..., Any], str],
        *args: Any,
        **options: Any,
    ) -> Any:
        """`function(x, *args, **options)`, for chains of a user's own functions.

        With a pair (function, keyword) instead of a function, `x` is passed as that keyword.
        """
        match function:
            case (made, str(keyword)) if callable(made):
                options[keyword] = self
                return callback("function", made, "...", f"{keyword}=")(*args, **options)
            case _ if callable(function):
                return callback("function", function, "x", "...")(self, *args, **options)
        cure = "give a function, or a pair of one and a keyword"
        raise type_refusal(f"{brief(function)} is not a function", self, cure=cure)

    @parameters(
        values="An array for each input that is needed, by tensor. For an inner tensor the given "
        "value takes the place of the computed one.",
        named="The same by the names of the inputs.",
    )
    def eval(self, values: Values | None = None, /, **named: Any) -> np.ndarray[Any, Any]:
        """The value of the tensor as an array, for given values of the inputs.

        Everything is compiled anew, for NumPy alone; `gc.compile` and `gc.function` make functions.

        GraphError if a value is missing or does not fit, or if no input has a given name.

        >>> x = gc.tensor("x", {"row": None})
        >>> (2 * x).eval(x=[1.0, 2.0])
        array([2., 4.])
        """
        array: np.ndarray[Any, Any] = Tensor._evaluator(self, values, named)
        return array

    sum = reductions.sum
    prod = reductions.prod
    mean = reductions.mean
    var = reductions.var
    std = reductions.std
    max = reductions.max
    min = reductions.min
    any = reductions.any
    all = reductions.all
    argmax = reductions.argmax
    argmin = reductions.argmin
    argsort = sorting.argsort
    sort = sorting.sort
    top_k = sorting.top_k
    rank = sorting.rank
    median = quantiles.median
    quantile = quantiles.quantile
    count = reductions.count
    cumsum = running.cumsum
    cumprod = running.cumprod
    isnull = missing.isnull
    notnull = missing.notnull
    fillna = missing.fillna
    ffill = running.ffill
    bfill = running.bfill
    isin = counting.isin
    weighted = statistics.weighted
    groupby = groups.groupby
    diff = differences.diff
    dot = dot
    transpose = dims.transpose
    rename = dims.rename
    swap_dims = dims.swap_dims
    expand_dims = dims.expand_dims
    broadcast_like = dims.broadcast_like
    squeeze = dims.squeeze
    stack = dims.stack
    unstack = dims.unstack
    roll = moves.roll
    head = slices.head
    tail = slices.tail
    thin = slices.thin
    shift = moves.shift
    pad = padding.pad
    astype = casting.astype
    isel = isel
    rolling = rolling
    coarsen = coarsen
    where = dropping.where
    dropna = dropping.dropna
    clip = formulas.clip
    round = formulas.round
    conj = complex.conjugate
    conjugate = complex.conjugate

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *xs: Any, **options: Any) -> Any:
        """NumPy's elementwise functions call ours: `np.exp(x)`, `np.float32(2) * x`."""
        return numpy_functions.call_ufunc(ufunc, method, xs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, options: Any
    ) -> Any:
        """NumPy's other functions call ours where no axis is involved: `np.where(c, x, y)`."""
        return numpy_functions.call_function(function, args, options)

    if not TYPE_CHECKING:  # as in Base
        sel = sel
        loc = property(sel)

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # a protocol that Python or a library looks for
                raise AttributeError(name)
            raise attribute(self, name)
