"""TRANSPOSE: ops linear in their float operands, `(node, ct) -> cotangent of each operand`.

The tangent of such an op is the op itself on tangents. None stands for an integer operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from graphcore.analysis.values import are_distinct
from graphcore.ir import INT, Node, Op, Shape, Size
from graphcore.ir.dtypes import real_of
from graphcore.ir.sizes import count
from graphcore.ops import autodiff, elementwise, leaf, tensor
from graphcore.rewrites import plain

Transpose: TypeAlias = Callable[[Node, Node], "tuple[Node | None, ...]"]


def inverse(perm: tuple[int, ...]) -> list[int]:
    """The order that undoes `perm`."""
    return [int(axis) for axis in np.argsort(perm)]


def slice_transpose(node: Node, ct: Node) -> tuple[Node]:
    """x̄ = ȳ at the places that were taken, 0 elsewhere"""
    (x,), attrs = node.inputs, node.attrs
    return (tensor.embed(ct, shape=x.type.shape, starts=attrs["starts"], steps=attrs["steps"]),)


def embed_transpose(node: Node, ct: Node) -> tuple[Node]:
    """x̄ = ȳ at the places x went to"""
    (x,), attrs = node.inputs, node.attrs
    return (tensor.slice_(ct, starts=attrs["starts"], sizes=x.type.shape, steps=attrs["steps"]),)


def windows_transpose(node: Node, ct: Node) -> tuple[Node]:
    """x̄ = ȳ added up at the places it was read from"""
    (x,), attrs = node.inputs, node.attrs
    sizes = tuple(x.type.shape[axis] for axis in attrs["axes"])
    return (tensor.overlap_add(ct, **attrs | {"sizes": sizes}),)


def overlap_add_transpose(node: Node, ct: Node) -> tuple[Node]:
    """x̄ = the windows of ȳ"""
    (x,), attrs = node.inputs, node.attrs
    first = attrs["axes"][0]
    sizes = x.type.shape[first : first + len(attrs["axes"])]
    return (tensor.windows(ct, **attrs | {"sizes": sizes}),)


def overwrite_transpose(node: Node, ct: Node) -> tuple[Node, Node]:
    """x̄ = ȳ where x is left, 0 elsewhere; and the part's cotangent is the rest of ȳ"""
    (_, part), attrs = node.inputs, node.attrs
    left = tensor.overwrite(ct, plain.full(0, ct.type.dtype, part.type.shape), **attrs)
    return left, tensor.slice_(ct, sizes=part.type.shape, **attrs)


def concat_transpose(node: Node, ct: Node) -> tuple[Node, ...]:
    """Each operand's own stretch of ȳ"""
    axis: int = node.attrs["axis"]
    shares = []
    start: Size = 0
    for x in node.inputs:
        size = x.type.shape[axis]
        shares.append(plain.take_range(ct, axis, start, size))
        start = start + size
    return tuple(shares)


def gather_transpose(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """x̄ = ȳ added up at the positions it was read from"""
    x, *indices = node.inputs
    back = tensor.scatter(ct, *indices, axes=node.attrs["axes"], shape=x.type.shape)
    return back, *(None,) * len(indices)


def scatter_transpose(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """ū = ȳ at the positions u was added to"""
    _, *indices = node.inputs
    return tensor.gather(ct, *indices, axes=node.attrs["axes"]), *(None,) * len(indices)


def scatter_add_transpose(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """x̄ = ȳ, and ū = ȳ at the positions u was added to"""
    _, _, *indices = node.inputs
    return ct, tensor.gather(ct, *indices, axes=node.attrs["axes"]), *(None,) * len(indices)


def put_transpose(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """x̄ = ȳ where x is left, 0 elsewhere; and ū = ȳ at the positions of updates that are there"""
    (_, updates, *indices), axes = node.inputs, node.attrs["axes"]
    left = tensor.put(ct, plain.full(0, ct.type.dtype, updates.type.shape), *indices, axes=axes)
    share = tensor.gather(ct, *indices, axes=axes)
    if not are_distinct(indices):
        share = plain.where(lasting_updates(node), share, 0)
    return left, share, *(None,) * len(indices)


def lasting_updates(node: Node) -> Node:
    """Which updates of a `put` no later one replaces: they are found by putting their numbers."""
    (x, updates, *indices), axes = node.inputs, node.attrs["axes"]
    shape: Shape = indices[0].type.shape
    numbers = plain.reshape(leaf.iota(size=count(shape), dtype=INT, dims=None), shape)
    buffer = plain.full(0, INT, tuple(x.type.shape[axis] for axis in axes))
    order = tuple(range(len(axes)))
    last = tensor.gather(tensor.put(buffer, numbers, *indices, axes=order), *indices, axes=order)
    rest = range(len(shape), updates.type.ndim)
    return plain.expand(elementwise.equal(last, numbers), rest, updates.type.shape)


def fft_transpose(node: Node, ct: Node) -> tuple[Node]:
    """The matrix e^(-2 pi i j k / n) is symmetric."""
    return (node.with_inputs(ct),)


def mirror_weights(node: Node, axis: int, size: Size, twice: float) -> Node:
    """`twice` where a value of an rfft stands for its conjugate as well, else 1."""
    half, real = node.type.shape[axis], real_of(node.type.dtype)
    k = plain.cast(leaf.iota(size=half, dtype=INT, dims=None), real)
    alone = elementwise.logical_or(
        plain.equals(k, 0), elementwise.equal(2 * k, plain.number(size, real, (half,)))
    )
    weight = plain.where(alone, plain.full(1, real, (half,)), plain.full(twice, real, (half,)))
    others = [other for other in range(node.type.ndim) if other != axis]
    return plain.cast(plain.expand(weight, others, node.type.shape), node.type.dtype)


def rfft_transpose(node: Node, ct: Node) -> tuple[Node]:
    """Re sum over k of ct[k] e^(-2 pi i j k / n), half of which is an irfft of the conjugates"""
    axis, size = node.attrs["axis"], node.inputs[0].type.shape[node.attrs["axis"]]
    halves = elementwise.conjugate(ct) * mirror_weights(ct, axis, size, 0.5)
    return (tensor.irfft(halves, axis=axis, size=size),)


def irfft_transpose(node: Node, ct: Node) -> tuple[Node]:
    """The conjugate of an rfft, twice where a value stands for its conjugate as well"""
    axis, size = node.attrs["axis"], node.attrs["size"]
    spectrum = tensor.rfft(ct, axis=axis)
    return (elementwise.conjugate(spectrum) * mirror_weights(spectrum, axis, size, 2),)


def cumsum_transpose(node: Node, ct: Node) -> tuple[Node]:
    """x̄[i] = sum of ȳ[j] over j >= i: the running sum from the other end"""
    axis: int = node.attrs["axis"]
    return (plain.flip(tensor.cumsum(plain.flip(ct, axis), axis=axis), axis),)


def imag_transpose(node: Node, ct: Node) -> tuple[Node]:
    """Im z = Re(-i z)"""
    (z,) = node.inputs
    return (plain.cast(ct, z.type.dtype) * plain.full(-1j, z.type.dtype, z.type.shape),)


TRANSPOSE: dict[Op, Transpose] = {
    autodiff.barrier: lambda node, ct: (ct,),
    elementwise.cast: lambda node, ct: (plain.cast(ct, node.inputs[0].type.dtype),),
    elementwise.real: lambda node, ct: (plain.cast(ct, node.inputs[0].type.dtype),),
    elementwise.imag: imag_transpose,
    elementwise.conjugate: lambda node, ct: (elementwise.conjugate(ct),),
    elementwise.ldexp: lambda node, ct: (elementwise.ldexp(ct, node.inputs[1]), None),
    tensor.expand: lambda node, ct: (plain.sum_over(ct, node.attrs["axes"]),),
    tensor.sum_: lambda node, ct: (plain.unsum(ct, node.attrs["axes"], node.inputs[0]),),
    tensor.pack: lambda node, ct: (plain.reshape(ct, node.inputs[0].type.shape),),
    tensor.reshape: lambda node, ct: (plain.reshape(ct, node.inputs[0].type.shape),),
    tensor.transpose: lambda node, ct: (plain.transpose(ct, inverse(node.attrs["perm"])),),
    tensor.slice_: slice_transpose,
    tensor.embed: embed_transpose,
    tensor.windows: windows_transpose,
    tensor.overlap_add: overlap_add_transpose,
    tensor.overwrite: overwrite_transpose,
    tensor.concat: concat_transpose,
    tensor.gather: gather_transpose,
    tensor.scatter: scatter_transpose,
    tensor.scatter_add: scatter_add_transpose,
    tensor.put: put_transpose,
    tensor.cumsum: cumsum_transpose,
    tensor.fft: fft_transpose,
    tensor.rfft: rfft_transpose,
    tensor.irfft: irfft_transpose,
}
