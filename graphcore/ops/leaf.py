"""Leaves, tuples of values, and values as sizes. They stand on every stage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from graphcore.ir.axes import First, Opaque, Picks
from graphcore.ir.dtypes import INT
from graphcore.ir.errors import GraphTypeError, require
from graphcore.ir.literal import Literal
from graphcore.ir.node import Node, natural
from graphcore.ir.op import Trait, op
from graphcore.ir.sizes import Expression, Shape, Size
from graphcore.ir.types import DType, TensorType, TupleType

from .labels import Labels, fit


@op(axes=Opaque())
def input_(
    *,
    name: str,
    dtype: DType,
    shape: Shape,
    dims: tuple[str, ...] | None,
    labels: tuple[str, ...] | None = None,
    trace: int | None = None,
) -> TensorType:
    """A value given at the call, or to a function being traced, whose traces are numbered.

    On plain stages `labels` are the dims that its axes had: programs that call these by other names
    share no node, so that none is described by the names of another.
    """
    return TensorType(dtype, shape, dims)


def param(name: str, type: TensorType) -> Node:
    """An operand of a body."""
    return input_(name=name, dtype=type.dtype, shape=type.shape, dims=type.dims)


def inputs_among(nodes: Iterable[Node]) -> list[Node]:
    """The inputs among some nodes, in their order."""
    return [node for node in nodes if node.op is input_]


@op(axes=Opaque(), traits=[Trait.FREE, Trait.KNOWN])
def constant(*, value: Literal, dims: tuple[str, ...] | None, labels: Labels = ()) -> TensorType:
    """An array known now; it may have coordinates along its dims."""
    made = TensorType(value.dtype, value.shape, dims)
    if labels:
        require(dims is not None and fit(labels, made.sizes), "labels of other dims", "align them")
    return made


@op(axes=Opaque(), traits=[Trait.FREE, Trait.KNOWN])
def full(*, value: Literal, shape: Shape, dims: tuple[str, ...] | None) -> TensorType:
    """One value, known now, in every place."""
    for dim, size in zip(dims or (), shape, strict=False):
        natural(dim, size)
    return TensorType(value.dtype, shape, dims)


@op(axes=Opaque(), traits=[Trait.FREE])
def iota(*, size: Size, dtype: DType, dims: tuple[str, ...] | None) -> TensorType:
    """0, 1, 2, ... along one axis."""
    if dims is not None:
        natural(dims[0], size)
    return TensorType(dtype, (size,), dims)


@op(axes=Opaque(), traits=[Trait.FREE])
def extent(*, size: Size, dtype: DType, dims: tuple[str, ...] | None) -> TensorType:
    """A size as a number."""
    return TensorType(dtype, (), dims)


@op(axes=Opaque())
def as_size(x: TensorType, *, size: Expression) -> TensorType:
    """An integer without dims; once it is computed, the unknown `size` is its value."""
    require(
        not x.shape and x.dtype == INT, f"{x} is not one integer of 64 bits", kind=GraphTypeError
    )
    return x


Relation: TypeAlias = tuple[str, Size, str, Size]
"""What an op needs, in words, and the two sizes with the relation between them that it needs."""


@op(axes=First(), traits=[Trait.VIEW])
def after(x: TensorType, *sizes: TensorType, needs: tuple[Relation, ...]) -> TensorType:
    """The value `x`, once sizes are computed; relations are checked as soon as they are known."""
    return x


@op(axes=Picks())
def tuple_(*items: TensorType) -> TupleType:
    """Several values as one."""
    return TupleType(items)


def item_of(several: Node, index: int) -> Node | None:
    """project(tuple(x, y, ...), i) = the i-th"""
    return several.inputs[index] if several.op is tuple_ else None


@op(axes=Picks(), traits=[Trait.VIEW], fold=item_of)
def project(several: TupleType, *, index: int) -> TensorType:
    """One value of several."""
    return several.items[index]


def values(node: Node) -> list[Node]:
    """The values of a node that has several."""
    return [node[i] for i in range(len(node.type.items))]
