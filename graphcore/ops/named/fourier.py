"""Discrete Fourier transforms along a dim, without a factor: the frontend scales them."""

from __future__ import annotations

from graphcore.ir.axes import Along
from graphcore.ir.dtypes import complex_for, float_for, real_of
from graphcore.ir.errors import GraphTypeError, require
from graphcore.ir.op import op
from graphcore.ir.sizes import Size, same
from graphcore.ir.types import TensorType

from .dims import has, not_empty


@op(axes=Along("dim", moves=True))
def fft(x: TensorType, *, dim: str, inverse: bool) -> TensorType:
    """sum over j of x[j] e^(-2 pi i j k / n) along `dim`; of e^(+2 pi i j k / n) if `inverse`."""
    has(x, (dim,))
    not_empty(x, (dim,))
    return TensorType(complex_for(x.dtype), x.shape, x.dims)


@op(axes=Along("dim", moves=True))
def rfft(x: TensorType, *, dim: str) -> TensorType:
    """The first n // 2 + 1 values of `fft` of real `x`: the rest are their conjugates."""
    has(x, (dim,))
    not_empty(x, (dim,))
    cure = "use fft, or take the real and imaginary parts apart"
    require(x.dtype.kind != "c", f"transforms real values, not {x}", cure, GraphTypeError)
    sizes = x.sizes | {dim: x.size(dim) // 2 + 1}
    return TensorType(complex_for(x.dtype), tuple(sizes.values()), x.dims)


@op(axes=Along("dim", moves=True))
def irfft(x: TensorType, *, dim: str, size: Size) -> TensorType:
    """The real values, `size` of them, whose `rfft` is `x`, times `size`."""
    has(x, (dim,))
    require(same(size, 0) is not True, "gives no values", "give n, at least 1")
    fits = same(x.size(dim), size // 2 + 1) is not False
    require(fits, f"{x} is not an rfft of {size} values along dim {dim!r}")
    real = real_of(float_for(x.dtype))
    return TensorType(real, tuple((x.sizes | {dim: size}).values()), x.dims)
