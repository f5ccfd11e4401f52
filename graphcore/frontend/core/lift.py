"""Operands: tensors, numbers, sizes and arrays with dims become nodes here and nowhere else.

Python numbers are weak, as in NumPy 2: they take the dtype that the operation computes in for its
other operands. NumPy scalars and 0-d arrays are strong: they keep theirs. Arrays need dims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import Any, Protocol, TypeAlias, TypeGuard, Union

import numpy as np
import numpy.typing as npt

from graphcore.ir import BOOL, INT, DType, Expression, Graph, Literal, Node, Op, TensorType
from graphcore.ir.dtypes import as_dtype, float_for, real_of
from graphcore.ir.errors import DATES, GraphError, GraphTypeError, GraphValueError
from graphcore.ir.interrupts import is_interrupt
from graphcore.ir.node import NO_ATTRS, OPS, Attrs
from graphcore.ir.provenance import calling_library, public_call
from graphcore.ir.size_formulas import Formula
from graphcore.ops import autodiff, elementwise, leaf
from graphcore.ops.labels import differing_dim, labels_of

from .base import Base, Tensor, brief, refusal, type_refusal, wrap
from .preferred_dtype import preferred_dtype
from .unnamed import warn_of_pairs
from .weak import Call, NumberKind, any_weak, kind_of, mark, mark_cast


class Labelled(Protocol):
    """An array with names for its axes, such as an xarray.DataArray."""

    @property
    def dims(self) -> tuple[Any, ...]:
        """The names."""

    @property
    def values(self) -> Any:
        """The array."""


Number: TypeAlias = complex | np.generic
Operand: TypeAlias = Union[  # at run time as well, where `Tensor` is but a name
    "Tensor", Number, np.ndarray[tuple[()], Any], Expression, Formula, Labelled
]
"""An operand of functions: a tensor, a number, an array without axes, a size or a formula of sizes;
or an array that names its axes, such as an xarray.DataArray."""

SAMPLE: dict[object, complex] = {int: 0, float: 0.0, complex: 0j}
COMPARISONS = frozenset(
    {
        elementwise.equal,
        elementwise.not_equal,
        elementwise.less,
        elementwise.less_equal,
        elementwise.greater,
        elementwise.greater_equal,
    }
)


def apply(op: Op, *xs: Operand) -> Tensor:
    """An elementwise `op` of operands of any kind."""
    nodes = [x.node if isinstance(x, Base) else strong(x, xs) for x in xs]
    warn_of_pairs(nodes)
    refuse_other_labels(nodes)
    if are_strong(nodes):
        return wrap(Node(op, tuple(nodes), NO_ATTRS))
    kinds = tuple(map(kind_among, xs, nodes))
    if not any(isinstance(kind, np.dtype) for kind in kinds):
        kinds = tuple(map(promote, kinds))  # without other operands, Python's own dtypes
    dtypes = weak_dtypes(op, kinds)
    if op in COMPARISONS and (answer := comparison_out_of_range(op, xs, nodes, dtypes)) is not None:
        return wrap(answer)
    made = Node(op, numbers_filled(xs, nodes, dtypes), NO_ATTRS)
    return wrap(weak_like(made, xs, Call(partial(apply, op), xs)))


def common(*xs: Operand) -> tuple[Node, ...]:
    """Operands as nodes; weak ones in the dtype to which all others promote."""
    nodes = [x.node if isinstance(x, Base) else strong(x, xs) for x in xs]
    warn_of_pairs(nodes)
    refuse_other_labels(nodes)
    if are_strong(nodes):
        return tuple(nodes)
    kinds = tuple(map(kind_among, xs, nodes))
    return numbers_filled(xs, nodes, (promote(*kinds),) * len(xs))


def are_strong(nodes: list[Node | None]) -> TypeGuard[list[Node]]:
    """Whether no operand is weak: there is a node for each, and no tensor is weak now."""
    return None not in nodes and not any_weak()


def kind_among(x: Operand, node: Node | None) -> NumberKind:
    """The kind of number, or the dtype, that an operand counts as in promotion."""
    if node is None:
        return kind(x)
    return kind_of(node) or node.type.dtype


def is_weak(x: object) -> bool:
    """Whether an operand is a Python number, a size, or a tensor that promotes as they do."""
    if isinstance(x, Base):
        return kind_of(x.node) is not None
    numbers = (int, float, complex, Expression, Formula)
    return isinstance(x, numbers) and not isinstance(x, np.generic)


def weak_like(made: Node, xs: Sequence[Operand], call: Call | None = None) -> Node:
    """`made`, weak if all operands `xs` are and one of them is a tensor."""
    weak = all(map(is_weak, xs)) and any(isinstance(x, Base) for x in xs)
    return mark(made, call) if weak else made


def single(x: Operand) -> Node:
    """The node of a single operand."""
    return x.node if isinstance(x, Base) else common(x)[0]


def condition(said: str, x: Operand, cure: str) -> Tensor:
    """A tensor that must be bool; the error calls it as `said`."""
    node = single(x)
    if node.type.dtype.kind != "b":
        raise type_refusal(f"{said} is {node.type}, not bool", node, cure=cure)
    return wrap(node)


def strong(x: object, xs: Iterable[object] = ()) -> Node | None:
    """The node of an operand with a dtype; None for a weak one. Errors show the operands `xs`."""
    if isinstance(x, np.generic):
        return scalar(x, dtype_of(x.dtype))
    if isinstance(x, (int, float, complex, Expression, Formula)):
        return None
    if isinstance(x, np.ndarray):
        by_xarray = calling_library() == "xarray"  # it would wrap a result as its own array
        if x.ndim == 0 and not by_xarray:
            return scalar(x, dtype_of(x.dtype))
        others = [y for y in xs if isinstance(y, Base)]
        cure = "name its axes: gc.constant(array, dims)"
        reason = f"an array of shape {x.shape} has no dims"
        if by_xarray:
            cure = "put the tensor first, as in x * array"
            if hasattr(elementwise, name := public_call()):
                cure = f"write gc.{name}(array, x); or {cure}"
            reason = "xarray passes the values of an array on without its dims"
        raise type_refusal(reason, *others, cure=cure)
    if is_labelled(x):
        return constant_with_dims(x)
    cure = stranger_cure(x) or "use tensors, numbers, or arrays with dims: gc.constant(array, dims)"
    reason = f"{describe(x)} is not a tensor or a number"
    others = [y for y in xs if isinstance(y, Base)]
    raise type_refusal(reason, *others, cure=cure)


def is_labelled(x: object) -> TypeGuard[Labelled]:
    """Whether `x` is an array that names its axes; the `values` of a Dataset are a method."""
    return hasattr(x, "dims") and hasattr(x, "values") and not callable(x.values)


def describe(x: Any) -> str:
    """An object given in place of a tensor, as errors show it."""
    if is_function(x):
        return f"function {x.__name__}"
    if hasattr(x, "to_numpy") and hasattr(x, "shape"):
        return f"a {type(x).__name__} of shape {x.shape}"
    return f"{type(x).__name__} {brief(x)}"


def is_function(x: Any) -> bool:
    """Whether `x` is a function with a name, of Python, NumPy or a user."""
    return callable(x) and hasattr(x, "__name__") and not isinstance(x, type)


def stranger_cure(x: object) -> str:
    """The cure for an object that is not a tensor but related to tensors, or ""."""
    if is_function(x):
        return "call it first, and give the tensor that it returns: f(x), not f"
    if isinstance(x, Node):
        return "make a tensor of the node: gc.Tensor(node)"
    if hasattr(x, "to_numpy"):
        dims = ("row", "col")[: getattr(x, "ndim", 1)]
        return f"name its axes: gc.constant(frame.to_numpy(), {dims})"
    if isinstance(x, (list, tuple)) and any(isinstance(part, Base) for part in x):
        return "to join tensors along a new dim: gc.concat(xs, 'new')"
    return ""


def constant_with_dims(x: Labelled) -> Node:
    """A constant with the dims of an array that names its axes."""
    made = array(as_array(x.values), tuple(x.dims))
    if labels := labels_of(x):
        value = made.attrs["value"]
        return leaf.constant(value=value, dims=made.type.dims, labels=labels)
    return made


def refuse_other_labels(nodes: Iterable[Node | None]) -> None:
    """Refuse constants that are aligned by a dim along which their labels differ."""
    known = [x for x in nodes if x is not None and x.op is leaf.constant and "labels" in x.attrs]
    for x in known[1:]:
        if dim := differing_dim(known[0].attrs["labels"], x.attrs["labels"]):
            cure = (
                "align them first, a, b = xr.align(a, b, join='inner'); or leave the labels of one "
                f"out, a.drop_vars({dim!r})"
            )
            raise refusal(f"labels of dim {dim!r} differ", known[0], x, cure=cure)


def as_array(value: Any, *operands: Base | Node) -> np.ndarray[Any, Any]:
    """A NumPy array of numbers, nested lists or anything else that NumPy accepts."""
    if np.ma.is_masked(value):
        cure = "fill them: value.filled(np.nan)"
        raise refusal("the array has masked values", *operands, cure=cure)
    try:
        return np.asarray(value)
    except GraphError:  # a tensor raises its own error
        raise
    except Exception as error:  # NumPy raises errors of many kinds
        if is_interrupt(error):
            raise
        cure = "give numbers, in rows of one length"
        reason = f"{brief(value)} is not an array: {error}"
        kind = GraphTypeError if isinstance(error, TypeError) else GraphValueError
        raise refusal(reason, *operands, cure=cure, kind=kind) from None


def array(values: np.ndarray[Any, Any], dims: tuple[str, ...]) -> Node:
    """A constant whose axes are `dims`."""
    if values.dtype == object and any(isinstance(v, (Expression, Formula)) for v in values.flat):
        cure = (
            "name the axes first, gc.constant(array, dims) * size, or gc.concat([size, 2.0], dim)"
        )
        raise type_refusal("the array holds sizes that are known only at the call", cure=cure)
    dtype = dtype_of(values.dtype)
    if values.ndim != len(dims):
        reason = f"an array of shape {values.shape} has {values.ndim} axes, not dims {dims}"
        raise refusal(reason, cure="name each axis once")
    check_dims(dims)
    if not dims:
        return scalar(values, dtype)
    return leaf.constant(value=Literal(values, dtype), dims=dims)


def dtype_of(dtype: npt.DTypeLike, *operands: Base | Node) -> DType:
    """A dtype that graphcore computes with."""
    if hasattr(dtype, "dtype") and not isinstance(dtype, (type, np.dtype)):
        cure = "write dtype=x.dtype"
        reason = f"{type(dtype).__name__} {brief(dtype)} is not a dtype"
        raise type_refusal(reason, *operands, cure=cure)
    try:
        return as_dtype(np.dtype(dtype))
    except Exception as error:  # NumPy raises errors of many kinds
        if is_interrupt(error):
            raise
        near = get_close_matches(dtype, DTYPES, 1) if isinstance(dtype, str) else []
        meant = f"did you mean {near[0]!r}? " if near else ""
        cure = f"{meant}use bool, integers, floats or complex of NumPy"
        if isinstance(dtype, np.dtype) and dtype.kind in "mM":
            cure = DATES
        raise type_refusal(str(error), *operands, cure=cure) from None


DTYPES = [f"{kind}{bits}" for kind in ("float", "int", "uint") for bits in (64, 32, 16, 8)]
DTYPES += ["complex128", "complex64", "bool"]


def check_dims(dims: tuple[object, ...]) -> None:
    """Refuses names that are not strings, or that occur twice."""
    for dim in dims:
        if not isinstance(dim, str):
            raise type_refusal(
                f"{dim!r} is not the name of a dim", cure="dims are named by strings"
            )
        if dims.count(dim) > 1:
            raise refusal(f"dims {dims} repeat {dim!r}", cure="name each dim once")


def scalar(value: Any, dtype: DType) -> Node:
    """A number without dims."""
    return leaf.full(value=Literal(value, dtype), shape=(), dims=())


def kind(x: object) -> NumberKind:
    """The kind of number that a weak operand counts as in promotion."""
    match x:
        case bool():
            return BOOL
        case int() | Expression():
            return int
        case float():
            return float
        case Formula():
            return complex if complex in map(kind, x.operands) else float
    return complex


@lru_cache(maxsize=4096)
def weak_dtypes(op: Op, kinds: tuple[NumberKind, ...]) -> tuple[DType, ...]:
    """The dtype in which `op` takes each operand, where Python numbers are weak."""
    ufunc = elementwise.UFUNC[op]
    if isinstance(ufunc, str):
        return (float_for(promote(*kinds)),) * len(kinds)
    try:
        return ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))
    except TypeError:  # the type rule refuses these with a better error
        return (promote(*kinds),) * len(kinds)


def promote(*kinds: NumberKind) -> DType:
    """The common dtype of operands, where Python numbers are weak."""
    found = np.result_type(*[SAMPLE.get(kind, kind) for kind in kinds])
    return found if any(isinstance(kind, np.dtype) for kind in kinds) else preferred_dtype(found)


def numbers_filled(
    xs: tuple[object, ...], nodes: list[Node | None], dtypes: tuple[DType, ...]
) -> tuple[Node, ...]:
    """`nodes`, weak ones cast to these dtypes, and numbers of these where a node is missing."""
    return tuple(
        weak(x, dtype, nodes) if node is None else in_dtype(node, dtype)
        for x, node, dtype in zip(xs, nodes, dtypes)
    )


def in_dtype(node: Node, dtype: DType) -> Node:
    """`node`, in another dtype if it is weak and of another."""
    if node.type.dtype == dtype or kind_of(node) is None:
        return node
    return mark_cast(elementwise.cast(node, dtype=dtype))


def weak(x: Any, dtype: DType, others: list[Node | None]) -> Node:
    """A Python number or a size as a number of `dtype`; for a size at least int64."""
    if isinstance(x, Expression):
        return leaf.extent(size=x, dtype=INT if dtype.kind in "biu" else dtype, dims=())
    if isinstance(x, Formula):
        if kind(x) is float and dtype.kind == "c":  # there is no floor of a complex number
            real = weak(x, real_of(dtype), others)
            return elementwise.cast(real, dtype=dtype)
        operands = [weak(part, dtype, others) for part in x.operands]
        return Node(OPS[f"elementwise.{x.operator}"], tuple(operands), NO_ATTRS)
    try:
        attrs = number(x, dtype, "" if isinstance(x, int) else repr(x))
    except (OverflowError, TypeError):
        raise out_of_bounds(x, dtype, others) from None
    return Node(leaf.full, (), attrs)


@lru_cache(maxsize=1024, typed=True)
def number(value: complex, dtype: DType, text: str) -> Attrs:
    """The attrs of a Python number; its `text` tells 0.0 from -0.0, which are equal as keys."""
    with np.errstate(over="ignore"):
        return Attrs({"value": Literal(value, dtype), "shape": (), "dims": ()})


def out_of_bounds(x: Any, dtype: DType, others: list[Node | None]) -> GraphError:
    """The error for a Python number that its dtype cannot represent."""
    name = str(holding(x))
    shown = f"of {x.bit_length()} bits" if isinstance(x, int) and abs(x) >= 1 << 64 else x
    return refusal(
        f"Python {type(x).__name__} {shown} does not fit {dtype}",
        *[node for node in others if node is not None],
        cure=f"cast the tensor to a dtype that holds it, x.astype({name!r})"
        if any(others)
        else f"give dtype={name!r}",
    )


def holding(x: complex) -> DType:
    """A dtype that holds a Python number: int64 or uint64 for integers in their range."""
    found = np.min_scalar_type(x)  # of objects for large integers
    if found.kind in "iu":
        return np.dtype("uint64") if isinstance(x, int) and x > np.iinfo(INT).max else INT
    return np.dtype("complex128" if found.kind == "c" else "float64")


def comparison_out_of_range(
    op: Op, xs: tuple[Any, ...], nodes: list[Node | None], dtypes: tuple[DType, ...]
) -> Node | None:
    """The result of a comparison with a Python integer that is outside the range of the dtype."""
    if (nodes[0] is None) == (nodes[1] is None):
        return None
    at = 0 if nodes[0] is None else 1
    x, dtype = xs[at], dtypes[at]
    if dtype.kind not in "iu" or isinstance(x, Expression):
        return None
    bounds = np.iinfo(dtype)
    if bounds.min <= x <= bounds.max:
        return None
    inside = dtype.type(0)
    ufunc = elementwise.UFUNC[op]
    assert isinstance(ufunc, np.ufunc)
    answer = ufunc(*((x, inside) if at == 0 else (inside, x)))
    other = nodes[1 - at]
    assert other is not None
    type: TensorType = other.type
    made = leaf.full(value=Literal(answer, BOOL), shape=type.shape, dims=type.dims)
    return keep_checks_of(made, other)


def has_checks(x: Node) -> bool:
    """Whether a call must check conditions, such as equal sizes, before `x` can be computed."""
    return any(node.needs for node in Graph((), (x,)).every_node())


def keep_checks_of(made: Node, x: Node) -> Node:
    """`made`, computed from the type of `x` alone, with the run-time checks that `x` requires."""
    if not has_checks(x):
        return made
    unused = autodiff.stop_gradient(elementwise.cast(x, dtype=made.type.dtype))
    return elementwise.where(scalar(True, BOOL), made, unused)
