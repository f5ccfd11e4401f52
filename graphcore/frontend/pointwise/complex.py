"""Parts of complex numbers, under NumPy's names; real numbers are their own real part."""

from __future__ import annotations

from graphcore.frontend.core.base import Tensor, wrap
from graphcore.frontend.core.lift import Operand, keep_checks_of, single, weak
from graphcore.frontend.shape.dims import full_of
from graphcore.ir.help_text import parameters
from graphcore.ops import elementwise as ops

from .elementwise import arctan2
from .formulas import rad2deg

__all__ = [
    "angle",
    "conj",
    "conjugate",
    "imag",
    "iscomplex",
    "isreal",
    "real",
]


def real(x: Operand) -> Tensor:
    """Real part of `x`, in a real dtype.

    >>> gc.compile([], gc.real(gc.constant([1 + 2j, 3j], "row")))()
    array([1., 0.])
    """
    node = single(x)
    return wrap(ops.real(node) if node.type.dtype.kind == "c" else node)


def imag(x: Operand) -> Tensor:
    """Imaginary part of `x`, in a real dtype; 0 if `x` is real.

    >>> gc.compile([], gc.imag(gc.constant([1 + 2j, 3j], "row")))()
    array([2., 3.])
    """
    node = single(x)
    if node.type.dtype.kind == "c":
        return wrap(ops.imag(node))
    zeros = full_of(weak(0, node.type.dtype, []), node.type.sizes)
    return wrap(keep_checks_of(zeros.node, node))


def conjugate(x: Operand) -> Tensor:
    """Complex conjugate of `x`; `x` itself if it is real.

    >>> gc.compile([], gc.conj(gc.constant([1 + 2j, 3j], "row")))()
    array([1.-2.j, 0.-3.j])
    """
    node = single(x)
    return wrap(node if node.type.dtype.kind in "iuf" else ops.conjugate(node))


conj = conjugate


def isreal(x: Operand) -> Tensor:
    """Whether the imaginary part of `x` is 0; true for every real number.

    >>> gc.compile([], gc.isreal(gc.constant([1 + 2j, 3], "row")))()
    array([False,  True])
    """
    return imag(x) == 0


def iscomplex(x: Operand) -> Tensor:
    """Whether the imaginary part of `x` is not 0.

    >>> gc.compile([], gc.iscomplex(gc.constant([1 + 2j, 3], "row")))()
    array([ True, False])
    """
    return imag(x) != 0


@parameters(
    z="A tensor or number.",
    deg="Whether the angle is in degrees.",
)
def angle(z: Operand, deg: bool = False) -> Tensor:
    """Angle of a complex number from the positive real axis, in radians, or in degrees if `deg`.

    >>> gc.compile([], gc.angle(gc.constant([1j, -1], "row"), deg=True))()
    array([ 90., 180.])
    """
    x = wrap(single(z))
    radians = arctan2(imag(x) if x.dtype.kind == "c" else 0, real(x))
    return rad2deg(radians) if deg else radians
