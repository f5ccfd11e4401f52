"""`gc.signal`: convolution, correlation and window functions, under SciPy's names."""

from __future__ import annotations

import math
from typing import Literal

import numpy.typing as npt

from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import Dim, SizeLike
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.costs import fast_transform_size
from graphcore.frontend.core.lift import Operand, common, single
from graphcore.frontend.core.preferred_dtype import default
from graphcore.frontend.create.inputs import ones_like
from graphcore.frontend.create.ranges import arange
from graphcore.frontend.fft import fftn, ifftn, irfftn, rfftn
from graphcore.frontend.index.slices import cut, flip
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.complex import conjugate
from graphcore.frontend.pointwise.elementwise import absolute, cos, equal
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.shape.dims import with_size
from graphcore.frontend.window.convolution import conv
from graphcore.ir.help_text import parameters
from graphcore.ir.sizes import Size, maximum, minimum, same

__all__ = [
    "bartlett",
    "blackman",
    "convolve",
    "correlate",
    "fftconvolve",
    "hamming",
    "hann",
]

ConvolveMode = Literal["full", "same", "valid"]


@parameters(
    y="The other tensor.",
    dim="The dims: one name, several, or None for all that both have.",
    mode='The part of the result, for sizes n of `x` and m of `y`. With "full" it is where they '
    'overlap, of size `n + m - 1`. With "same" it is the central part of that, of size n. With '
    '"valid" it is where the smaller is inside the other, of size `abs(n - m) + 1`.',
)
def convolve(x: Operand, y: Operand, dim: Dim = None, mode: ConvolveMode = "full") -> Tensor:
    """Convolution along dims: `z[k] = sum over j of x[k - j] * y[j]`.

    Other dims align by name. The cost is the product of both sizes. `gc.conv` is the convolution of
    neural networks, which does not flip `y`.

    >>> x, y = gc.constant([1.0, 2.0, 3.0], "time"), gc.constant([1.0, 10.0], "time")
    >>> gc.compile([], [gc.signal.convolve(x, y, "time", mode) for mode in ("full", "valid")])()
    [array([ 1., 12., 23., 30.]), array([12., 23.])]
    """
    signal, kernel, dims = operands_along(x, y, dim)
    return correlate_full(signal, flip(kernel, dims), dims, mode)


@parameters(
    y="The other tensor.",
    dim="The dims: one name, several, or None for all that both have.",
    mode='"full", "same" or "valid", as in `convolve`.',
)
def correlate(x: Operand, y: Operand, dim: Dim = None, mode: ConvolveMode = "full") -> Tensor:
    """Cross-correlation along dims: `z[k] = sum over j of x[k + j] * conj(y[j])`.

    The first k of "full" is 1 - size of `y`: there only the last element of `y` overlaps `x`.

    >>> x, y = gc.constant([1.0, 2.0, 3.0], "time"), gc.constant([1.0, 10.0], "time")
    >>> gc.compile([], gc.signal.correlate(x, y, "time"))()
    array([10., 21., 32.,  3.])
    """
    signal, kernel, dims = operands_along(x, y, dim)
    return correlate_full(signal, conjugate(kernel), dims, mode)


@parameters(
    y="The other tensor.",
    dim="The dims: one name, several, or None for all that both have.",
    mode='"full", "same" or "valid", as in `convolve`.',
)
def fftconvolve(x: Operand, y: Operand, dim: Dim = None, mode: ConvolveMode = "full") -> Tensor:
    """`convolve` by Fourier transforms: faster if both are large; the result is always a float.

    The rounding error is relative to the largest elements: sums that should be 0 are not exactly 0.

    >>> x, y = gc.constant([1.0, 2.0, 3.0], "time"), gc.constant([1.0, 10.0], "time")
    >>> gc.compile([], gc.signal.fftconvolve(x, y, "time"))().round(6)
    array([ 1., 12., 23., 30.])
    """
    signal, kernel, dims = operands_along(x, y, dim)
    kept = kept_ranges(signal, kernel, dims, mode)
    sizes = {
        name: fast_transform_size(signal.sizes[name] + kernel.sizes[name] - 1) for name in dims
    }
    forth, back = rfftn, irfftn
    if "c" in (signal.dtype.kind, kernel.dtype.kind):
        forth, back = fftn, ifftn
    node = back(forth(signal, dims, sizes) * forth(kernel, dims, sizes), dims, sizes).node
    for name, (start, size) in kept.items():
        node = cut(node, name, start, size)
    return wrap(node)


def operands_along(x: Operand, y: Operand, dim: Dim) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Both operands, and the dims to convolve, along which `y` must not be empty."""
    signal, kernel = common(x, y)
    shared = tuple(name for name in signal.type.dims if name in kernel.type.dims)
    dims = (
        shared if dim is None or dim is ... else arguments.names(arguments.order_set(dim), signal)
    )
    arguments.require_dims(signal, dims)
    absent = [name for name in dims or signal.type.dims if name not in kernel.type.dims]
    free = [name for name in kernel.type.dims if name not in signal.type.dims]
    if 0 < len(free) <= len(absent):
        new = dict(zip(free, absent[-len(free) :], strict=True))
        cure = f"give it the dims that it moves along: y.rename({new})"
        raise refusal(f"the second operand has no dim {absent[0]!r}", signal, kernel, cure=cure)
    arguments.require_dims(kernel, dims)
    if not dims:
        cure = "for the product of all with all write x * y"
        raise refusal("moves along no dim", signal, kernel, cure=cure)
    for name in dims:
        kernel = with_size(kernel, name, maximum(kernel.type.size(name), 1))
    return wrap(signal), wrap(kernel), dims


def kept_ranges(
    x: Tensor, y: Tensor, dims: tuple[str, ...], mode: ConvolveMode
) -> dict[str, tuple[Size, Size]]:
    """For each dim the start and size of the results of `mode` within "full"."""
    arguments.check_word("mode", mode, ("full", "same", "valid"), x, y)
    found: dict[str, tuple[Size, Size]] = {}
    for dim in dims:
        size, other = x.sizes[dim], y.sizes[dim]
        short, long = minimum(size, other), maximum(size, other)
        found[dim] = {
            "full": (0, size + other - 1),
            "same": ((other - 1) // 2, size),
            "valid": (short - 1, long - short + 1),
        }[mode]
    return found


def correlate_full(x: Tensor, y: Tensor, dims: tuple[str, ...], mode: ConvolveMode) -> Tensor:
    """Sums of products wherever `mode` lets `y` overlap `x`."""
    ends = {
        dim: (y.sizes[dim] - 1 - start, start + size - x.sizes[dim])
        for dim, (start, size) in kept_ranges(x, y, dims, mode).items()
    }
    return conv(x, y, dims, contract=(), padding=ends)


WINDOW = {
    "size": "The size of the window.",
    "dim": "Its dim.",
    "sym": "Whether the window is symmetric, with n = size - 1, or one period, with n = size, as "
    "spectra need it.",
    "dtype": "The dtype of the result; by default that of `default_dtype`, float64.",
}


@parameters(**WINDOW)
def hann(
    size: SizeLike,
    *,
    dim: str,
    sym: bool = True,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """The Hann window, `(1 - cos(2 pi k / n)) / 2`, along one dim.

    >>> gc.compile([], gc.signal.hann(5, dim="time"))().round(6)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    wanted = arguments.made_dtype(dtype, like, default())
    return astype(cosines(size, dim, sym, 0.5, 0.5), wanted)


@parameters(**WINDOW)
def hamming(
    size: SizeLike,
    *,
    dim: str,
    sym: bool = True,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """The Hamming window, `0.54 - 0.46 cos(2 pi k / n)`, along one dim.

    >>> gc.compile([], gc.signal.hamming(5, dim="time"))().round(6)
    array([0.08, 0.54, 1.  , 0.54, 0.08])
    """
    wanted = arguments.made_dtype(dtype, like, default())
    return astype(cosines(size, dim, sym, 0.54, 0.46), wanted)


@parameters(**WINDOW)
def blackman(
    size: SizeLike,
    *,
    dim: str,
    sym: bool = True,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """The Blackman window, `0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)`, along one dim.

    >>> gc.compile([], gc.signal.blackman(6, dim="time", sym=False))().round(6)
    array([-0.  ,  0.13,  0.63,  1.  ,  0.63,  0.13])
    """
    wanted = arguments.made_dtype(dtype, like, default())
    return astype(cosines(size, dim, sym, 0.42, 0.5, 0.08), wanted)


@parameters(**WINDOW)
def bartlett(
    size: SizeLike,
    *,
    dim: str,
    sym: bool = True,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """The Bartlett window, the triangle `1 - |2 k / n - 1|`, along one dim.

    >>> gc.compile([], gc.signal.bartlett(5, dim="time"))()
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    length = arguments.size_of(dim, size)
    made = unless_one(length, 1 - absolute(2 * phase(length, dim, sym) - 1))
    return astype(made, arguments.made_dtype(dtype, like, default()))


def phase(size: Size, dim: str, sym: bool) -> Tensor:
    """k / n, the fraction of the period before each position."""
    return arange(size, dim=dim) / maximum(size - 1 if sym else size, 1)


def cosines(size: SizeLike, dim: str, sym: bool, *weights: float) -> Tensor:
    """The sum of (-1)^i weights[i] cos(2 pi i k / n)."""
    length = arguments.size_of(dim, size)
    angle = 2 * math.pi * phase(length, dim, sym)
    first, *rest = ((-1) ** i * weight * cos(i * angle) for i, weight in enumerate(weights))
    return unless_one(length, sum(rest, start=first))


def unless_one(size: Size, window: Tensor) -> Tensor:
    """`window`, but 1 where its size is 1."""
    if (alone := same(size, 1)) is not None:
        return ones_like(window) if alone else window
    return where(equal(wrap(single(size)), 1), 1.0, window)
