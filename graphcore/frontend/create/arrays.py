"""Tensors put together from nested lists of tensors and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.frontend.core.arguments import names
from graphcore.frontend.core.base import Base, Tensor, refusal, wrap
from graphcore.frontend.core.lift import common
from graphcore.frontend.shape.dims import concat, expand_dims, transpose
from graphcore.ir.help_text import parameters

from .inputs import constant

__all__ = ["array"]


@parameters(
    values="Lists or tuples as deep as there are dims, of equal lengths, of tensors without these "
    "dims and numbers; or an array.",
    dims="One name for each depth.",
)
def array(values: Any, dims: str | Sequence[str]) -> Tensor:
    """A tensor of the tensors and numbers in nested lists, one dim for each depth of the lists.

    Dims of the tensors broadcast by name and come first; dtypes promote. Without tensors it is
    `gc.constant`.

    GraphError if lists of one depth differ in length, or are not as deep as there are dims. If a
    tensor has one of the dims.

    >>> angle = gc.tensor("angle", {"time": None})
    >>> c, s = gc.cos(angle), gc.sin(angle)
    >>> gc.array([[c, -s], [s, c]], ("i", "j"))
    <Tensor: f64[time, i=2, j=2]>
    >>> gc.array([[c, -s], [s, c]], ("i", "j")).eval(angle=[0.0])
    array([[[ 1., -0.],
            [ 0.,  1.]]])
    """
    new = names(dims)
    shape, leaves = nested_items(values, len(new))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Base)]
    if not tensors:
        return constant(values, new)
    if len(shape) != len(new):
        reason = f"the lists are not all of one length and {len(new)} deep"
        cure = "give one dim for each depth of the lists, and as many elements in each list"
        raise refusal(reason, *tensors, cure=cure)
    parts = [wrap(node) for node in common(*leaves)]
    for part in parts:
        for dim in new:
            if dim in part.dims:
                cure = "give the new dims other names"
                raise refusal(f"an element has the dim {dim!r} already", part, cure=cure)
    for dim, size in zip(reversed(new), reversed(shape), strict=True):
        rows = [parts[at : at + size] for at in range(0, len(parts), size)]
        parts = [concat([expand_dims(part, dim) for part in row], dim) for row in rows]
    return transpose(parts[0], ..., *new)


def nested_items(values: Any, depth: int) -> tuple[tuple[int, ...], list[Any]]:
    """The common lengths of lists nested to a depth, and their elements.

    There are fewer lengths than the depth where lists differ.
    """
    if depth == 0 or not isinstance(values, list | tuple):
        return (), [values]
    found = [nested_items(value, depth - 1) for value in values]
    shapes = {shape for shape, _ in found}
    same = shapes.pop() if len(shapes) == 1 else ()
    return (len(found), *same), [leaf for _, some in found for leaf in some]
