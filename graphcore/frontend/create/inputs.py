"""New tensors: inputs, constants, and tensors of one value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from graphcore.frontend.core import lift
from graphcore.frontend.core.arguments import SizeLike, dims_sizes, made_dtype, names
from graphcore.frontend.core.base import Base, Tensor, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Labelled, Operand
from graphcore.frontend.core.preferred_dtype import default, of_numbers
from graphcore.frontend.core.trees import T, flatten
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.shape.dims import full_of
from graphcore.ir import Expression
from graphcore.ir.help_text import parameters
from graphcore.ir.size_formulas import Formula
from graphcore.ir.structures import leaves
from graphcore.ops import leaf

__all__ = [
    "constant",
    "full",
    "full_like",
    "inputs_like",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
]


@parameters(
    name="The name of the argument of compiled programs.",
    dims="The size of each dim, by name. An integer is a known size. None is a size that the call "
    "gives; all such dims of one name have the same size. A string names an unknown size, and an "
    'expression such as `2 * x.sizes["row"]` or "2*row" follows from others. Or the names alone, '
    "with sizes in `shape`.",
    shape="The sizes, if `dims` are names; by default all unknown.",
    dtype="bool, an integer, a float or complex; by default that of `default_dtype`, float64.",
)
def tensor(
    name: str,
    dims: Mapping[str, SizeLike] | str | Iterable[str],
    shape: Iterable[SizeLike] | SizeLike = None,
    dtype: npt.DTypeLike | None = None,
) -> Tensor:
    """An input: a tensor whose values are given when the compiled program is called.

    GraphError if a name or size is not valid, or if a dim occurs twice.

    >>> gc.tensor("x", {"batch": None, "feature": 8})
    <Tensor x: f64[batch, feature=8]>
    >>> gc.tensor("y", ("sample", "feature"), shape=("n_test", 8), dtype="float32")
    <Tensor y: f32[sample=n_test, feature=8]>
    """
    if not isinstance(name, str):
        cure = "give the input's name first: gc.tensor('x', {'row': 2})"
        raise type_refusal(f"{name!r} is not a name", cure=cure)
    known, sizes = dims_sizes(dims, shape)
    made = made_dtype(dtype, None, default())
    return wrap(leaf.input_(name=name, dtype=made, shape=sizes, dims=known))


@parameters(
    tree="Tensors, numbers and arrays with dims, in nested lists, tuples, dicts and dataclasses.",
    name="The name of the whole, with which the names of the inputs begin.",
)
def inputs_like(tree: T, name: str) -> T:
    """Inputs with the dims, sizes and dtypes of the tensors of a tree, in its structure.

    Each is named by where it is, such as "state[1]['w']".

    >>> params = {"w": gc.tensor("w", {"row": 2})}
    >>> opt = gc.optimize.adam(0.1)
    >>> state = gc.inputs_like(opt.init(params), "state")
    >>> new = opt.update(params, gc.grad((params["w"] ** 2).sum(), params), state)
    >>> f = gc.compile([params, state], new)
    >>> start = {"w": [1.0, -20.0]}
    >>> f(start, gc.evaluate(opt.init(params)))[0]
    {'w': array([  0.9, -19.9])}
    """
    paths = [path for path, _ in leaves(tree, name)]
    found, rebuild = flatten(tree, name)
    pairs = zip(paths, found, strict=True)
    made: T = rebuild([tensor(path, x.sizes, dtype=x.dtype) for path, x in pairs])
    return made


@parameters(
    value="A number, a NumPy array or nested lists; or an array with dims, such as an "
    "xarray.DataArray, whose coordinates are dropped.",
    dims="The name of each axis; not needed for a number or an array with dims.",
    dtype="By default that of the value, for floats of Python that of `default_dtype`, float64. "
    "Unlike a Python number, a constant keeps its dtype when it is combined with other operands.",
)
def constant(
    value: npt.ArrayLike | Labelled | Tensor,
    dims: str | Iterable[str] | None = None,
    dtype: npt.DTypeLike | None = None,
    *,
    like: Operand | None = None,
) -> Tensor:
    """A constant tensor.

    GraphError if an array has no dims, or not one for each axis.

    >>> gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    <Tensor: i64[row=2, col=3]>
    """
    if lift.is_labelled(value) or isinstance(value, (Base, Formula, Expression)):
        made = wrap(lift.single(value))
        if dims is not None and names(dims) != made.dims:
            raise refusal(f"dims {made.dims} are not {dims}", made, cure="rename them")
    else:
        values = lift.as_array(value)
        wanted = () if dims is None else names(dims)
        if dims is None and values.ndim:
            reason = f"an array of shape {values.shape} needs dims"
            raise refusal(reason, cure="name its axes: gc.constant(array, ('row', 'col'))")
        values = values.astype(of_numbers(value, values.dtype), copy=False)
        made = wrap(lift.array(values, wanted))
    wished = made_dtype(dtype, like)
    return made if wished is None else astype(made, wished)


@parameters(
    sizes="The size of each dim, as for `tensor`; for instance `x.sizes`.",
    value="A number, or a tensor, whose dims come after those of `sizes`.",
    dtype="By default that of the value.",
)
def full(
    sizes: Mapping[str, SizeLike],
    value: Operand,
    dtype: npt.DTypeLike | None = None,
    *,
    like: Operand | None = None,
) -> Tensor:
    """A tensor whose elements all have one value.

    >>> gc.compile([], gc.full({"row": 2, "col": 3}, 1.5))()
    array([[1.5, 1.5, 1.5],
           [1.5, 1.5, 1.5]])
    """
    dims, shape = dims_sizes(sizes)
    wanted = made_dtype(dtype, like)
    if wanted is None:
        node = lift.single(value)
    elif isinstance(value, (int, float, complex)) and not isinstance(value, np.complexfloating):
        node = lift.weak(value, wanted, [])
    else:
        node = astype(value, wanted).node
    return full_of(node, dict(zip(dims, shape, strict=True)))


@parameters(
    sizes="The size of each dim, as for `tensor`; for instance `x.sizes`.",
    dtype="The dtype of the result; by default that of `default_dtype`, float64.",
)
def zeros(
    sizes: Mapping[str, SizeLike],
    dtype: npt.DTypeLike | None = None,
    *,
    like: Operand | None = None,
) -> Tensor:
    """A tensor of zeros: of float64, of `dtype`, or of the dtype of `like`.

    >>> gc.compile([], gc.zeros({"row": 2, "col": 3}))()
    array([[0., 0., 0.],
           [0., 0., 0.]])
    >>> gc.zeros({"row": 2, "col": None}, dtype="float32")
    <Tensor: f32[row=2, col]>
    """
    return full(sizes, 0, made_dtype(dtype, like, default()))


@parameters(
    sizes="The size of each dim, as for `tensor`; for instance `x.sizes`.",
    dtype="The dtype of the result; by default that of `default_dtype`, float64.",
)
def ones(
    sizes: Mapping[str, SizeLike],
    dtype: npt.DTypeLike | None = None,
    *,
    like: Operand | None = None,
) -> Tensor:
    """A tensor of ones: of float64, of `dtype`, or of the dtype of `like`.

    >>> gc.compile([], gc.ones({"row": 2, "col": 3}))()
    array([[1., 1., 1.],
           [1., 1., 1.]])
    >>> gc.ones({"row": 2, "col": None}, dtype="float32")
    <Tensor: f32[row=2, col]>
    """
    return full(sizes, 1, made_dtype(dtype, like, default()))


@parameters(
    x="The tensor that has the dims and sizes.",
    value="A number or a tensor without dims.",
    dtype="The dtype of the result; by default that of `x`.",
)
def full_like(x: Operand, value: Operand, dtype: npt.DTypeLike | None = None) -> Tensor:
    """A tensor of one value with the dims, sizes and, by default, dtype of `x`.

    >>> gc.compile([], gc.full_like(gc.constant([1.0, 2.0], "row"), 7))()
    array([7., 7.])
    """
    node = lift.single(x)
    if dims := getattr(value, "dims", ()):
        reason = f"takes one value, not a tensor with the dims {tuple(dims)}"
        operands = [node, value] if isinstance(value, Base) else [node]
        cure = "repeat it along the dims of x: gc.broadcast_like(value, x)"
        raise refusal(reason, *operands, cure=cure)
    made = full(node.type.sizes, value, node.type.dtype if dtype is None else dtype)
    return wrap(lift.keep_checks_of(made.node, node))


@parameters(
    x="The tensor that has the dims and sizes.",
    dtype="The dtype of the result; by default that of `x`.",
)
def zeros_like(x: Operand, dtype: npt.DTypeLike | None = None) -> Tensor:
    """A tensor of zeros with the dims, sizes and, by default, dtype of `x`.

    >>> gc.compile([], gc.zeros_like(gc.constant([1.0, 2.0], "row")))()
    array([0., 0.])
    """
    return full_like(x, 0, dtype)


@parameters(
    x="The tensor that has the dims and sizes.",
    dtype="The dtype of the result; by default that of `x`.",
)
def ones_like(x: Operand, dtype: npt.DTypeLike | None = None) -> Tensor:
    """A tensor of ones with the dims, sizes and, by default, dtype of `x`.

    >>> gc.compile([], gc.ones_like(gc.constant([1.0, 2.0], "row"), dtype="int32"))()
    array([1, 1], dtype=int32)
    """
    return full_like(x, 1, dtype)
