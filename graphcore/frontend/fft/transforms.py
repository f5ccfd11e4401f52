"""`gc.fft`: discrete Fourier transforms along dims, under NumPy's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy.typing as npt

from graphcore.frontend.arrange.moves import roll
from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import Dim, SizeLike
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.core.preferred_dtype import default
from graphcore.frontend.create.ranges import arange
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.complex import conjugate
from graphcore.frontend.pointwise.elementwise import sqrt
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.window.padding import pad
from graphcore.ir import Node, Size
from graphcore.ir.dtypes import real_of
from graphcore.ir.help_text import parameters
from graphcore.ir.sizes import maximum, minimum
from graphcore.ops import named
from graphcore.ops.named import close_match

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

Norm = Literal["backward", "ortho", "forward"]
INVERSE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The factor of a transform whose inverse has this one."""


TRANSFORMED = {
    "x": "A real or complex tensor; float32 gives complex64.",
    "dim": "The dim, which keeps its name.",
    "n": "The size to transform: `x` is cut, or padded with zeros at its end. By default its own.",
    "norm": 'Which transform is divided by n: "backward", the inverse; "forward", the forward '
    'transform; "ortho", both by the square root of n.',
}
ALL_TRANSFORMED = TRANSFORMED | {
    "dim": "The dims to transform: one name, several, or None for all.",
    "n": "Sizes to transform, by dim.",
}


@parameters(**TRANSFORMED)
def fft(x: Operand, dim: str | None = None, n: SizeLike = None, norm: Norm = "backward") -> Tensor:
    """Fourier transform along a dim: `sum over j of x[j] * e^(-2 pi i j k / n)`, complex.

    >>> gc.compile([], gc.fft.fft(gc.constant([1.0, 2.0, 3.0, 4.0], "time"), dim="time"))()
    array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    node, size, dim = resize(x, dim, n)
    return scale(named.fft(node, dim=dim, inverse=False), size, norm)


@parameters(**TRANSFORMED)
def ifft(x: Operand, dim: str | None = None, n: SizeLike = None, norm: Norm = "backward") -> Tensor:
    """Inverse of `fft`: `sum over j of x[j] * e^(2 pi i j k / n)`, divided by n.

    >>> gc.compile([], gc.fft.ifft(gc.constant([4.0, 0.0, 0.0, 0.0], "time"), dim="time"))()
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    node, size, dim = resize(x, dim, n)
    return scale(named.fft(node, dim=dim, inverse=True), size, inverse_of(norm))


@parameters(**TRANSFORMED)
def rfft(x: Operand, dim: str | None = None, n: SizeLike = None, norm: Norm = "backward") -> Tensor:
    """The first `n // 2 + 1` values of `fft` for a real tensor; the rest are their conjugates.

    >>> gc.compile([], gc.fft.rfft(gc.constant([1.0, 2.0, 3.0, 4.0], "time"), dim="time"))()
    array([10.+0.j, -2.+2.j, -2.+0.j])
    """
    node, size, dim = resize(x, dim, n)
    return scale(named.rfft(node, dim=dim), size, norm)


@parameters(**TRANSFORMED)
def irfft(
    x: Operand, dim: str | None = None, n: SizeLike = None, norm: Norm = "backward"
) -> Tensor:
    """Inverse of `rfft`: `n` real values, by default `2 * (m - 1)` for m complex ones.

    The imaginary part of the first value, and for even n of the last, is ignored.

    >>> z = gc.constant([10, -2 + 2j, -2], "time")
    >>> gc.compile([], gc.fft.irfft(z, dim="time"))()
    array([1., 2., 3., 4.])
    """
    node = single(x)
    dim = arguments.dim_of(node, dim)
    size = 2 * (node.type.size(dim) - 1) if n is None else arguments.size_of(dim, n)
    half, _, dim = resize(wrap(node), dim, size // 2 + 1)
    made = named.irfft(half, dim=dim, size=size)
    return scale(made, size, inverse_of(norm))


@parameters(**TRANSFORMED)
def hfft(x: Operand, dim: str | None = None, n: SizeLike = None, norm: Norm = "backward") -> Tensor:
    """`fft` of values whose second half would be the conjugate of the first: `n` real values.

    >>> gc.compile([], gc.fft.hfft(gc.constant([1.0, 2.0, 3.0], "time"), dim="time"))()
    array([ 8., -2.,  0., -2.])
    """
    return irfft(conjugate(x), dim, n, inverse_of(norm))


@parameters(**TRANSFORMED)
def ihfft(
    x: Operand, dim: str | None = None, n: SizeLike = None, norm: Norm = "backward"
) -> Tensor:
    """Inverse of `hfft`: the first `n // 2 + 1` values.

    >>> z = gc.constant([11.0, -2.0, 0.0, -2.0, 1.0, -2.0], "time")
    >>> gc.compile([], gc.fft.ihfft(z, dim="time"))().shape
    (4,)
    """
    return conjugate(rfft(x, dim, n, inverse_of(norm)))


@parameters(**ALL_TRANSFORMED)
def fftn(
    x: Operand, dim: Dim = None, n: Mapping[str, SizeLike] | None = None, norm: Norm = "backward"
) -> Tensor:
    """`fft` along several dims.

    >>> x = gc.constant([[1.0, 2.0], [3.0, 4.0]], ("row", "col"))
    >>> gc.compile([], gc.fft.fftn(x))()
    array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]])
    >>> gc.fft.fftn(x, n={"col": 8}).sizes
    {'row': 2, 'col': 8}
    """
    return dim_by_dim(fft, x, dim, n, norm)


@parameters(**ALL_TRANSFORMED)
def ifftn(
    x: Operand, dim: Dim = None, n: Mapping[str, SizeLike] | None = None, norm: Norm = "backward"
) -> Tensor:
    """`ifft` along several dims.

    >>> x = gc.constant([[4.0, 0.0], [0.0, 0.0]], ("row", "col"))
    >>> gc.compile([], gc.fft.ifftn(x))()
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return dim_by_dim(ifft, x, dim, n, norm)


@parameters(**ALL_TRANSFORMED)
def rfftn(
    x: Operand, dim: Dim = None, n: Mapping[str, SizeLike] | None = None, norm: Norm = "backward"
) -> Tensor:
    """`rfft` along the last of several dims, then `fft` along the others.

    >>> x = gc.constant([[1.0, 2.0], [3.0, 4.0]], ("row", "col"))
    >>> gc.compile([], gc.fft.rfftn(x))()
    array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]])
    """
    *others, last = dims_to_transform(x, dim)
    sizes = sizes_of(x, (*others, last), n)
    made = rfft(x, last, sizes.pop(last, None), norm)
    return dim_by_dim(fft, made, others, sizes, norm)


@parameters(**ALL_TRANSFORMED)
def irfftn(
    x: Operand, dim: Dim = None, n: Mapping[str, SizeLike] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Inverse of `rfftn`: `ifft` along all but the last of several dims, then `irfft`.

    >>> z = gc.constant([[10.0, -2.0], [-4.0, 0.0]], ("row", "col"))
    >>> gc.compile([], gc.fft.irfftn(z))()
    array([[1., 2.],
           [3., 4.]])
    """
    *others, last = dims_to_transform(x, dim)
    sizes = sizes_of(x, (*others, last), n)
    size = sizes.pop(last, None)
    return irfft(dim_by_dim(ifft, x, others, sizes, norm), last, size, norm)


@parameters(dim="The dims to shift: one name, several, or None for all.")
def fftshift(x: Operand, dim: Dim = None) -> Tensor:
    """The zero frequency moved to the middle of dims: a roll by `n // 2`.

    >>> gc.compile([], gc.fft.fftshift(gc.constant([0, 1, -2, -1], "time"), "time"))()
    array([-2, -1,  0,  1])
    """
    return half_rolled(x, dim, 1)


@parameters(dim="The dims to shift: one name, several, or None for all.")
def ifftshift(x: Operand, dim: Dim = None) -> Tensor:
    """Inverse of `fftshift`.

    >>> gc.compile([], gc.fft.ifftshift(gc.constant([-2, -1, 0, 1], "time"), "time"))()
    array([ 0,  1, -2, -1])
    """
    return half_rolled(x, dim, -1)


def half_rolled(x: Operand, dim: Dim, sign: int) -> Tensor:
    """`x` rolled along dims by half their size, forwards or backwards."""
    value = wrap(single(x))
    dims = ordered_dims(value, arguments.order_set(dim))
    return roll(value, {name: sign * (value.sizes[name] // 2) for name in dims})


FREQUENCIES = {
    "n": "The size of the dim that is transformed.",
    "d": "The spacing of its points.",
    "dim": "The dim of the frequencies.",
    "dtype": "The dtype of the result; by default that of `1 / d`.",
}


@parameters(**FREQUENCIES)
def fftfreq(
    n: SizeLike,
    d: Operand = 1.0,
    *,
    dim: str,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """The frequencies of `fft`, in cycles per unit of the spacing `d`.

    >>> import graphcore as gc, numpy as np
    >>> gc.compile([], gc.fft.fftfreq(4, dim="time"))()
    array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    size = arguments.size_of(dim, n)
    half = (size + 1) // 2
    k = arange(size, dim=dim, dtype=default())
    made = where(k >= half, k - size, k) / size / d
    wanted = arguments.made_dtype(dtype, like)
    return made if wanted is None else astype(made, wanted)


@parameters(**FREQUENCIES)
def rfftfreq(
    n: SizeLike,
    d: Operand = 1.0,
    *,
    dim: str,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """The frequencies of `rfft`, in cycles per unit of the spacing `d`.

    >>> gc.compile([], gc.fft.rfftfreq(4, dim="time"))()
    array([0.  , 0.25, 0.5 ])
    """
    size = arguments.size_of(dim, n)
    made = arange(size // 2 + 1, dim=dim, dtype=default()) / size / d
    wanted = arguments.made_dtype(dtype, like)
    return made if wanted is None else astype(made, wanted)


def dim_by_dim(
    function: Callable[..., Tensor],
    x: Operand,
    dim: Dim,
    n: Mapping[str, SizeLike] | None,
    norm: Norm,
) -> Tensor:
    """A transform along one dim after another."""
    made = wrap(single(x))
    dims = ordered_dims(made, arguments.order_set(dim))
    sizes = sizes_of(made, dims, n)
    for one in dims:
        made = function(made, one, sizes.get(one), norm)
    return made


def sizes_of(
    x: Operand, dims: tuple[str, ...], n: Mapping[str, SizeLike] | None
) -> dict[str, SizeLike]:
    """The sizes that are given for some of `dims`."""
    node = single(x)
    sizes = arguments.mapping({} if n is None else n, None, "n={'dim': 8}", node)
    for dim in sizes:
        if dim not in dims:
            cure = close_match(str(dim), dims)
            raise refusal(f"n has a size for {dim!r}, which is not transformed", node, cure=cure)
    return sizes


def ordered_dims(x: Operand, dim: Dim) -> tuple[str, ...]:
    """The dims, in the order given."""
    node = single(x)
    dims = arguments.dims_of(node, dim, ordered=True)
    arguments.require_dims(node, dims)
    return dims


def dims_to_transform(x: Operand, dim: Dim) -> tuple[str, ...]:
    """The dims, in the order given; refused if there is none."""
    dims = ordered_dims(x, dim)
    if not dims:
        raise refusal("there is no dim to transform", single(x), cure="name one")
    return dims


def resize(x: Operand, dim: str | None, n: SizeLike) -> tuple[Node, Size, str]:
    """The operand, cut or padded with zeros to size `n` of the dim, this size, and the dim."""
    node = single(x)
    dim = arguments.dim_of(node, dim)
    own = node.type.size(dim)
    if n is None:
        return node, own, dim
    size = arguments.size_of(dim, n)
    if size is own or size == own:
        return node, own, dim
    kept, more = minimum(own, size), maximum(size - own, 0)
    cut = isel(wrap(node), {dim: slice(0, kept)})
    return pad(cut, {dim: (0, more)}, constant_values=0).node, size, dim


def inverse_of(norm: Any) -> Any:
    """The norm of the forward transform that has the factor of the inverse one with `norm`."""
    arguments.check_word("norm", norm, INVERSE)
    return INVERSE[norm]


def scale(node: Node, size: Size, norm: Any) -> Tensor:
    """A transform with its factor: "forward" divides by the size."""
    made = wrap(node)
    if inverse_of(norm) == "forward":
        return made
    if norm == "forward":
        return made / size
    return made / astype(sqrt(size), real_of(made.dtype))
