"""Derivatives: each call adds one lazy node, however large the graph between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from graphcore.ir.dtypes import differentiable
from graphcore.ir.errors import GraphTypeError, GraphValueError
from graphcore.ir.node import Node, describe_operand, full_like, toposort
from graphcore.ir.provenance import user_line
from graphcore.ops import autodiff, leaf

from .tensor import Tensor
from .trees import flatten

__all__ = [
    "grad",
    "pullback",
    "pushforward",
    "stop_gradient",
]

Tree = Any
"""A tensor, or nested lists, tuples and dicts of tensors."""


def grad(y: Tensor, wrt: Tree, *, disconnected: Literal["error", "zero"] = "error") -> Tree:
    """The gradient of a scalar `y` by each tensor of `wrt`, in the form of `wrt`.

    Element by element it has the dims and dtype of what it is taken by. For complex values it is
    dRe(y)/dRe(x) - i dRe(y)/dIm(x), which is the complex derivative where there is one.

    Parameters
    ----------
    y
        A float tensor without dims.
    wrt
        Inputs or inner tensors of `y`: one, or a list, tuple or dict of them.
    disconnected
        What to do where `y` does not depend on a part of `wrt`: refuse, or answer zeros.

    Raises
    ------
    GraphError
        If `y` has dims, if a part of `wrt` is an integer or disconnected from `y`, or if an op on
        the way has no derivative.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 3})
    >>> gc.grad((x**2).sum(), x)
    <Tensor: f64[row=3]>
    """
    if y.dims:
        raise refused(
            "grad",
            f"the result has dims {y.dims}; a gradient is taken of one number",
            [y.node],
            "sum it first, or weigh its values with gc.pullback(y, wrt, ct)",
        )
    return pullback_of("grad", [y.node], wrt, [full_like(y.node, 1)], disconnected)


def pullback(
    y: Tree, wrt: Tree, ct: Tree, *, disconnected: Literal["error", "zero"] = "error"
) -> Tree:
    """The cotangent of each tensor of `wrt`, given the cotangent `ct` of `y`: ctᵀ · dy/dwrt.

    `ct` has the form of `y` and each of its tensors the dims of its own, in any order. The result
    has the form of `wrt`.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 3})
    >>> ct = gc.tensor("ct", {"row": 3})
    >>> gc.pullback(x**2, x, ct)
    <Tensor: f64[row=3]>
    """
    ys, _ = flatten(y)
    cts, _ = flatten(ct)
    matched = match_types("pullback", "cotangent", ys, cts)
    return pullback_of("pullback", [t.node for t in ys], wrt, matched, disconnected)


def pushforward(
    y: Tree, wrt: Tree, tangent: Tree, *, disconnected: Literal["error", "zero"] = "error"
) -> Tree:
    """The tangent of `y`, in its form, given that of each tensor of `wrt`: dy/dwrt · tangent.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 3})
    >>> v = gc.tensor("v", {"row": 3})
    >>> gc.pushforward((x**2).sum(), x, v)
    <Tensor: f64[]>
    """
    results, rebuild = flatten(y)
    sources, _ = flatten(wrt)
    tangents, _ = flatten(tangent)
    matched = match_types("pushforward", "tangent", sources, tangents)
    ys, xs = [t.node for t in results], [t.node for t in sources]
    check("pushforward", ys, xs, disconnected)
    ys, xs = shield(ys, xs)
    node = autodiff.pushforward(*ys, *xs, *matched, ys=len(ys), wrt=len(xs))
    return rebuild([Tensor(node[i]) for i in range(len(ys))])


def stop_gradient(x: Tensor) -> Tensor:
    """`x`, counted as a constant by every derivative.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 3})
    >>> gc.stop_gradient(x)
    <Tensor: f64[row=3]>
    """
    return Tensor(autodiff.stop_gradient(x.node))


def pullback_of(name: str, ys: list[Node], wrt: Tree, cts: list[Node], disconnected: str) -> Tree:
    """The one pullback node, its results in the form of `wrt`."""
    sources, rebuild = flatten(wrt)
    xs = [t.node for t in sources]
    check(name, ys, xs, disconnected)
    ys, xs = shield(ys, xs)
    node = autodiff.pullback(*ys, *xs, *cts, ys=len(ys), wrt=len(xs))
    return rebuild([Tensor(node[i]) for i in range(len(xs))])


def match_types(
    name: str, what: str, primals: Sequence[Tensor], others: Sequence[Tensor]
) -> list[Node]:
    """Each tangent or cotangent with the dims in the order of its primal, and its dtype."""
    if len(primals) != len(others):
        raise GraphTypeError(f"{name}: {len(others)} {what}s for {len(primals)} tensors")
    matched = []
    for x, t in zip(primals, others, strict=True):
        if set(x.dims) != set(t.dims):
            reason = f"the {what} has dims {t.dims}, not {x.dims}"
            raise refused(name, reason, [x.node, t.node], f"give the {what} the same dims")
        matched.append(t.astype(x.dtype).transpose(*x.dims).node)
    return matched


def check(name: str, ys: list[Node], wrt: list[Node], disconnected: str) -> None:
    """Refuse what no derivative can be taken of or by, before anything is built."""
    if disconnected not in ("error", "zero"):
        raise GraphValueError(f"{name}: disconnected is 'error' or 'zero', not {disconnected!r}")
    for y in ys:
        if not differentiable(y.type.dtype):
            cure = "cast it with astype('float64') if it should be a number"
            raise refused(name, f"the result is {y.type.dtype}, not a float", [y], cure)
    for x in wrt:
        if not differentiable(x.type.dtype):
            cure = "declare it as a float; integers and bool carry no derivative"
            raise refused(name, f"cannot differentiate by {x.type.dtype} values", [x], cure)
    if disconnected == "error":
        refuse_disconnected(name, ys, wrt)


def refuse_disconnected(name: str, ys: list[Node], wrt: list[Node]) -> None:
    """Every part of `wrt` must reach a result through float values."""
    reached: set[Node] = set(ys)
    for node in reversed(list(toposort(ys))):
        if node in reached and node.op is not autodiff.stop_gradient:
            reached.update(x for x in node.inputs if carries(x))
    for x in wrt:
        if x not in reached:
            raise refused(
                name,
                "the result does not depend on it through float values",
                [x, *ys],
                "leave it out of wrt, or ask for zeros with disconnected='zero'",
            )


def carries(node: Node) -> bool:
    """Whether a derivative can flow through a value: it is made of floats, or of several values."""
    dtype = getattr(node.type, "dtype", None)
    return dtype is None or differentiable(dtype)


def refused(name: str, reason: str, operands: Sequence[Node], cure: str) -> GraphTypeError:
    """The error with its operands, the user's line and the cure."""
    lines = [f"{name}: {reason}", *map(describe_operand, operands)]
    return GraphTypeError("\n".join([*lines, f"  asked at {user_line()}", f"  cure: {cure}"]))


def shield(ys: list[Node], wrt: list[Node]) -> tuple[list[Node], list[Node]]:
    """The same with a barrier over each `wrt` that is no input, so that no rewrite removes it.

    Walked inputs first, so that a barrier stands inside whatever else of `wrt` is built on it.
    """
    inner = {x for x in wrt if x.op is not leaf.input_}
    if not inner:
        return ys, wrt
    done: dict[Node, Node] = {}
    for node in toposort([*ys, *wrt]):
        new = node.with_inputs(*[done[x] for x in node.inputs])
        done[node] = autodiff.barrier(new) if node in inner else new
    return [done[y] for y in ys], [done[x] for x in wrt]
