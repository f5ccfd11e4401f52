"""Weighted statistics, and statistics of two tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from graphcore.ir.dtypes import HALF, SINGLE, float_for, promote, real_of
from graphcore.ir.help_text import parameters
from graphcore.ir.names import Hidden, apart
from graphcore.ir.sizes import Size, count

from .core.arguments import Dim, dims_of, require_dims, require_order, whole
from .core.base import Tensor, wrap
from .core.lift import Operand, single
from .core.suggestions import Listing
from .core.wrong_calls import worded_methods
from .index.indexing import take_along
from .order.quantiles import first_by_fraction, share_of
from .order.sorting import argsort
from .pointwise.casting import as_float, astype
from .pointwise.complex import conjugate, real
from .pointwise.elementwise import equal, maximum, not_equal
from .pointwise.formulas import clip
from .pointwise.formulas import where as choose
from .pointwise.missing import notnull
from .reduce.contraction import dot
from .reduce.masking import mask_operand, ratio, root, squared_modulus
from .reduce.reductions import all, any, mean, sum
from .reduce.running import cumulative_sum
from .shape.dims import broadcast, broadcast_to, stack
from .window.differences import diff

__all__ = [
    "average",
    "corr",
    "cov",
    "weighted",
]


@worded_methods
class Weighted(Listing):
    """A tensor with weights for its elements: the result of `x.weighted(weights)`.

    Its reductions run over dims of both tensors, by default all. `skipna` leaves out nan. Where the
    weights of the elements counted sum to 0, sums are 0 and all other statistics nan.
    """

    __slots__ = ("weights", "x")

    def __init__(self, x: Tensor, weights: Tensor) -> None:
        self.x = x
        self.weights = weights_for(x, weights)

    def __repr__(self) -> str:
        return f"<Weighted {self.x!r} by {self.weights!r}>"

    def sum_of_weights(self, dim: Dim = None) -> Tensor:
        """Sum of the weights of elements that are not nan; nan where it is 0."""
        total = self._total(dim)
        return choose(equal(total, 0), math.nan, total)

    def sum(self, dim: Dim = None, *, skipna: bool = False) -> Tensor:
        """Sum of the elements times their weights."""
        return self._sum(self._fill(skipna), dim)

    def mean(self, dim: Dim = None, *, skipna: bool = False) -> Tensor:
        """Sum of the elements times their weights, over the sum of the weights."""
        return self._by_single(lambda w: ratio(w.sum(dim, skipna=skipna), w._total(dim)))

    def sum_of_squares(self, dim: Dim = None, *, skipna: bool = False) -> Tensor:
        """`sum(abs(x - mean) ** 2 * weights)`."""
        middle = ratio(self.sum(dim, skipna=skipna), self._total(dim), 0)
        away = self._fill(skipna) - middle
        squares = squared_modulus(choose(notnull(self.x), away, 0) if skipna else away)
        return self._sum(squares, dim)

    def var(self, dim: Dim = None, *, skipna: bool = False) -> Tensor:
        """`sum(abs(x - mean) ** 2 * weights) / sum(weights)`."""
        return self._by_single(lambda w: ratio(w.sum_of_squares(dim, skipna=skipna), w._total(dim)))

    def std(self, dim: Dim = None, *, skipna: bool = False) -> Tensor:
        """Square root of `var`; where all values are equal its derivative is 0."""
        return self._by_single(lambda w: root(w.var(dim, skipna=skipna)))

    def _by_single(self, function: Callable[[Weighted], Tensor]) -> Tensor:
        """function(self), of float16 by float32, which holds more sums of weights."""
        if {self.x.dtype, self.weights.dtype} != {HALF}:
            return function(self)
        single = Weighted(astype(self.x, SINGLE), astype(self.weights, SINGLE))
        return astype(function(single), HALF)

    def quantile(self, q: Any, dim: Dim = None, *, skipna: bool = False) -> Tensor:
        """The value below which a fraction `q` of the weights is, interpolated linearly.

        `q` is as in `gc.quantile`. As in xarray: Akinshin 2023 (arXiv:2304.07265), with Kish's
        effective sample size as the number of elements.
        """
        x, weights = broadcast(as_float(self.x), as_float(self.weights))
        require_order(x)
        require_order(weights)
        mask = notnull(x) & not_equal(weights, 0)
        data = mask_operand(x, dim, mask)
        share, valid = share_of(data, q)
        line = apart(Hidden("place"), x.dims)
        x, w = (stack(choose(mask, v, 0), {line: data.dims}) for v in (x, weights))
        order = argsort(x, line)
        x, w = (take_along(v, order, line) for v in (x, w))
        total = sum(w, line)
        size = ratio(total * total, sum(w * w, line), 1)
        at = (size - 1) * astype(share, x.dtype)
        ends = cumulative_sum(ratio(w, total, 0), line, include_initial=True)
        found = sum(x * diff(clip(ends, at / size, (at + 1) / size), line), line) * size
        kept = any(mask, data.dims)
        if not skipna:
            kept = kept & all(notnull(data.x), data.dims)
        if valid is not None:
            kept = kept & valid
        return first_by_fraction(choose(kept, found, math.nan), share, q)

    def _fill(self, skipna: bool) -> Tensor:
        return choose(notnull(self.x), self.x, 0) if skipna else self.x

    def _sum(self, x: Tensor, dim: Dim) -> Tensor:
        return dot(x, self.weights, dim=... if dim is None else dim)

    def _total(self, dim: Dim) -> Tensor:
        return self._sum(astype(notnull(self.x), self.weights.dtype), dim)


def weights_for(x: Tensor, weights: Tensor) -> Tensor:
    """`weights` as floats of the dtype of a weighted mean of `x`: sums of integers overflow."""
    if weights.dtype.kind in "fc":
        return weights
    return astype(weights, real_of(float_for(promote(x.dtype, weights.dtype))))


@parameters(weights="The weight of each element, aligned by name.")
def weighted(x: Operand, weights: Operand) -> Weighted:
    """`x` with weights, which align by name; its methods are weighted reductions.

    These are `sum mean var std quantile sum_of_weights sum_of_squares`, as in xarray, except that
    nan is left out only with `skipna=True`, and that results of integers are floats.

    >>> x, w = gc.constant([1.0, 4.0], "t"), gc.constant([3.0, 1.0], "t")
    >>> gc.compile([], [x.weighted(w).mean("t"), x.weighted(w).var("t")])()
    [array(1.75), array(1.6875)]
    """
    return Weighted(wrap(single(x)), wrap(single(weights)))


@parameters(
    dim="The dims to reduce: one name, several, or None for all.",
    weights="The weight of each element, aligned by name; without them it is the mean.",
)
def average(x: Operand, dim: Dim = None, *, weights: Operand | None = None) -> Tensor:
    """Weighted mean over dims: `sum(x * weights) / sum(weights)`; nan where the weights sum to 0.

    >>> x = gc.constant([1.0, 4.0], "t")
    >>> gc.compile([], gc.average(x, weights=gc.constant([3.0, 1.0], "t")))()
    array(1.75)
    """
    return mean(x, dim) if weights is None else weighted(x, weights).mean(dim)


class CentredPair(NamedTuple):
    """Two tensors minus their means over `dims`, and the weights of their elements.

    `total` is the sum of the weights, `number` the number of elements counted.
    """

    x: Tensor
    y: Tensor
    dims: tuple[str, ...]
    weights: tuple[Tensor, ...]
    total: Tensor
    number: Tensor

    def mean_product(self, x: Tensor, y: Tensor) -> Tensor:
        """The mean of conj(x) y: one contraction."""
        return ratio(dot(conjugate(x), y, *self.weights, dim=self.dims), self.total)


def centred_pair(
    x: Operand, y: Operand, dim: Dim, weights: Operand | None, skipna: bool
) -> CentredPair:
    """Two tensors, centred; elements left out have weight 0."""
    left, right = (as_float(wrap(single(v))) for v in (x, y))
    union, _ = broadcast(left, right)
    dims = dims_of(union.node, dim)
    require_dims(union.node, dims)
    sizes = {name: union.sizes[name] for name in dims}
    number = wrap(single(count(sizes.values())))
    share = None
    if weights is not None:
        share = expand_to(weights_for(union, wrap(single(weights))), sizes)
    if skipna:
        valid = notnull(left) & notnull(right)
        number = sum(valid, dims)
        left, right = choose(valid, left, 0), choose(valid, right, 0)
        share = astype(valid, right.real.dtype) if share is None else choose(valid, share, 0)
    left, right = expand_to(left, sizes), expand_to(right, sizes)
    if share is None:
        return CentredPair(left - mean(left, dims), right - mean(right, dims), dims, (),
                    astype(number, right.dtype), number)  # fmt: skip
    total = sum(share, dims)
    left, right = (v - ratio(dot(v, share, dim=dims), total) for v in (left, right))
    return CentredPair(left, right, dims, (share,), total, number)


def expand_to(x: Tensor, sizes: dict[str, Size]) -> Tensor:
    """`x` repeated along those of some dims that it lacks."""
    return broadcast_to(x.node, sizes | x.sizes)


OF_PAIR = {
    "y": "The other tensor.",
    "dim": "The dims to reduce: one name, several, or None for all.",
    "skipna": "Whether to leave out elements where `x` or `y` is nan, as xarray always does: those "
    "that `y.shift(time=1)` lacks, for example.",
}


@parameters(
    **OF_PAIR,
    ddof="What is subtracted from the count of elements.",
    weights="The weight of each element in the means. These are then scaled by count / (count - "
    "ddof).",
)
def cov(
    x: Operand,
    y: Operand,
    dim: Dim = None,
    ddof: int = 1,
    weights: Operand | None = None,
    *,
    skipna: bool = False,
) -> Tensor:
    """Covariance of two tensors over dims.

    `sum(conj(x - mean(x)) * (y - mean(y))) / (count - ddof)`, nan where the divisor is not
    positive. Other dims align by name, and the result has them in order of first appearance.

    GraphError if neither tensor has one of the dims to reduce.

    >>> x = gc.constant([1.0, 2.0, 4.0], "t")
    >>> gc.compile([], [gc.cov(x, x, "t"), gc.cov(x, -2 * x, "t", ddof=0)])()
    [array(2.33333333), array(-3.11111111)]
    """
    pair = centred_pair(x, y, dim, weights, skipna)
    mean = pair.mean_product(pair.x, pair.y)
    real = pair.total.dtype
    left = maximum(pair.number - whole(ddof, "ddof", least=None), 0)
    return ratio(mean * astype(pair.number, real), astype(left, real))


@parameters(**OF_PAIR, weights="The weight of each element in the means.")
def corr(
    x: Operand, y: Operand, dim: Dim = None, weights: Operand | None = None, *, skipna: bool = False
) -> Tensor:
    """Pearson's correlation of two tensors over dims.

    `cov(x, y) / (std(x) * std(y))`; nan where a standard deviation is 0.

    >>> x = gc.constant([1.0, 2.0, 4.0], "t")
    >>> gc.compile([], gc.corr(x, -x, "t"))()
    array(-1.)
    """
    pair = centred_pair(x, y, dim, weights, skipna)
    spreads = [root(real(pair.mean_product(v, v))) for v in (pair.x, pair.y)]
    return ratio(pair.mean_product(pair.x, pair.y), spreads[0] * spreads[1])
