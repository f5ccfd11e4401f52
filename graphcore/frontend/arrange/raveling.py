"""Trees as one vector, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from graphcore.frontend.core.arguments import names
from graphcore.frontend.core.base import Base, Tensor, brief, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import as_array, dtype_of
from graphcore.frontend.core.trees import Tree, flatten, naming_path
from graphcore.frontend.index.slices import cut
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.shape.dims import broadcast_to, join, squeeze, with_size
from graphcore.ir import DType, Hidden, Node, Shape, Size, structures
from graphcore.ir.dtypes import promote
from graphcore.ir.help_text import parameters
from graphcore.ir.sizes import count
from graphcore.ir.structures import Branch
from graphcore.ops import named

__all__ = ["ravel"]

INSIDE = Hidden("parameter")
"""The dim of the vector while parts are cut and joined, which no user's dim equals."""


class Part(NamedTuple):
    """A leaf of a tree: what is needed to build it from a part of the vector."""

    dtype: DType
    shape: Shape
    dims: tuple[str, ...] | None  # of an array there are none


@parameters(
    tree="Nested lists, tuples, dicts, dataclasses and objects of registered classes, of tensors "
    "or of arrays. The dtype of the vector is the one to which all promote; parts get theirs back.",
    dim="The dim of the vector. Other dims that `unravel` finds in a vector come first in each "
    "part. Of an array, such as the draws of a sampler, these are all axes but the last. A "
    "function that sums over all dims then sums over these too: for many vectors, each with a "
    "value of its own, use `vectorize`, as in the last example.",
)
def ravel(tree: Tree, dim: str = "parameter") -> tuple[Any, Callable[[Any], Tree]]:
    """A tree as one vector, and the function from such vectors to trees.

    `scipy.optimize`, samplers and solvers work on vectors. The vector of a tree of tensors is a
    tensor, that of a tree of arrays and numbers an array. The function turns a tensor into a tree
    of tensors, and an array into a tree of arrays.

    GraphError if there is an array without names among tensors. When the function is called, if a
    vector has another size, or if sizes are not known.

    >>> import graphcore as gc, numpy as np
    >>> params = {"w": gc.tensor("w", {"feature": 2}), "b": gc.tensor("b", {})}
    >>> vector, unravel = gc.ravel(params)
    >>> vector
    <Tensor: f64[parameter=3]>
    >>> unravel(np.array([1.0, 2.0, 3.0]))
    {'w': array([1., 2.]), 'b': array(3.)}

    A loss as a function of the vector, with its gradient, as `scipy.optimize.minimize(f, start,
    jac=True)` takes it:

    >>> v = gc.tensor("v", vector.sizes)
    >>> p = unravel(v)
    >>> f = gc.compile([v], gc.value_and_grad((p["w"] ** 2).sum() + (p["b"] - 1) ** 2, v))
    >>> start, _ = gc.ravel({"w": np.array([1.0, 2.0]), "b": 0.0})
    >>> f(start)
    (array(6.), array([ 2.,  4., -2.]))

    The same of many vectors at once, such as the chains of a sampler:

    >>> many = gc.tensor("many", {"chain": None, "parameter": 3})
    >>> gc.vectorize((p["w"] ** 2).sum() + (p["b"] - 1) ** 2, {v: many})
    <Tensor: f64[chain]>
    """
    (dim,) = names((dim,), new=True)
    found = structures.leaves(tree, "tree")
    if not any(isinstance(leaf, Base) or hasattr(leaf, "dims") for _, leaf in found):
        arrays, parts = [], []
        for path, leaf in found:
            with naming_path(path):
                arrays.append(as_array(leaf))
                parts.append(Part(dtype_of(arrays[-1].dtype), arrays[-1].shape, None))
        kept = structures.outline(tree, lambda leaf, path: None)
        flat = [x.reshape(-1).astype(common(parts)) for x in arrays]
        return np.concatenate([np.empty(0, common(parts)), *flat]), Unravel(kept, parts, dim)
    tensors, rebuild = flatten(tree)
    parts = [Part(x.dtype, x.shape, x.dims) for x in tensors]
    rows = [row(astype(x, common(parts)).node) for x in tensors]
    vector = named.rename(join(rows, INSIDE), names=((INSIDE, dim),))
    return wrap(vector), Unravel(rebuild.structure, parts, dim)


def common(parts: list[Part]) -> DType:
    """The dtype to which all parts promote."""
    return promote(*[part.dtype for part in parts]) if parts else np.dtype(float)


def row(x: Node) -> Node:
    """A tensor as a vector."""
    if not x.type.dims:
        return broadcast_to(x, {INSIDE: 1}).node
    return named.stack(x, dims=x.type.dims, name=INSIDE)


class Unravel:
    """From vectors to trees of one structure."""

    def __init__(self, structure: Branch | None, parts: list[Part], dim: str) -> None:
        self._structure, self._parts, self._dim = structure, parts, dim

    def __call__(self, vector: Any) -> Tree:
        """The tree whose parts, one after the other, are the vector."""
        made = self._tensors(vector) if isinstance(vector, Tensor) else self._arrays(vector)
        return structures.fill(self._structure, iter(made))

    def _tensors(self, vector: Tensor) -> list[Tensor]:
        """The parts of a tensor."""
        node = vector.node
        sizes: list[Size] = [count(part.shape) for part in self._parts]
        if self._dim not in node.type.dims:
            cure = f"declare it: gc.tensor('theta', {{{self._dim!r}: {sum(sizes)}}}), "
            cure += "or choose the name: gc.ravel(tree, dim='row')"
            raise refusal(f"the vector has no dim {self._dim!r}", vector, cure=cure)
        x = named.rename(node, names=((self._dim, INSIDE),))
        x = with_size(x, INSIDE, sum(sizes))
        made, start = [], 0
        for size, part in zip(sizes, self._parts, strict=True):
            if part.dims is None and part.shape:
                cure = "ravel a tree of tensors, gc.constant(array, dims), for parts with dims"
                reason = f"an array of shape {part.shape} was raveled, which has no names of dims"
                raise type_refusal(reason, vector, cure=cure)
            own = cut(x, INSIDE, start, size)
            found = (
                squeeze(wrap(own), INSIDE)
                if not part.dims
                else wrap(named.unstack(own, dim=INSIDE, names=part.dims, sizes=part.shape))
            )
            made.append(astype(found, part.dtype))
            start += size
        return made

    def _arrays(self, vector: Any) -> list[np.ndarray[Any, Any]]:
        """The parts of an array."""
        if self._dim in getattr(vector, "dims", ()):
            vector = vector.transpose(..., self._dim)
        x = as_array(vector)
        shapes = [shape for _, shape, _ in self._parts]
        if not all(isinstance(size, int) for shape in shapes for size in shape):
            cure = "ravel arrays of the sizes that are meant, or pass a tensor"
            reason = f"the sizes of the parts are not known: {', '.join(map(brief, shapes))}"
            raise refusal(reason, cure=cure)
        ends = np.cumsum([0, *[math.prod(shape) for shape in shapes]])
        if x.shape[-1:] != (ends[-1],):
            reason = f"takes vectors of {ends[-1]} numbers, not an array of shape {x.shape}"
            cure = "pass a vector, as ravel makes it, or an array with vectors along its last axis"
            raise refusal(reason, cure=cure, where="called")
        pieces = zip(ends, ends[1:], self._parts, strict=False)
        return [
            x[..., start:end].astype(part.dtype).reshape((*x.shape[:-1], *part.shape))
            for start, end, part in pieces
        ]
