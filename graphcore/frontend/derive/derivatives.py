"""Derivatives: each call adds one lazy node, however large the graph between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import Literal

from graphcore.analysis.instances import Axes, Instances, Mixed, instance_axes
from graphcore.analysis.paths import between, of_floats, refuse_unknown
from graphcore.frontend.core.arguments import check_word, names, order_set
from graphcore.frontend.core.base import Tensor, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import describe, is_function, single
from graphcore.frontend.core.tracing import dependents
from graphcore.frontend.core.trees import T, Tree, flatten
from graphcore.frontend.core.wrong_calls import for_function
from graphcore.ir import Hidden, Node, Size, full_like, reached, toposort
from graphcore.ir.dtypes import differentiable
from graphcore.ir.errors import GraphError, GraphTypeError
from graphcore.ir.help_text import parameters
from graphcore.ir.provenance import public_call
from graphcore.ops import autodiff, leaf, named
from graphcore.ops.named.dims import close_match

from .vectorize import repeat_source, widen_silently

__all__ = [
    "grad",
    "pullback",
    "pushforward",
    "stop_gradient",
    "value_and_grad",
]


@parameters(
    y="A float tensor without dims, unless `per` says otherwise.",
    wrt="Inputs or inner tensors of `y`: one, or a list, tuple or dict of them.",
    per="Dims of instances, such as a batch: each instance gets a gradient of its own. They are "
    "dims of the inputs, or of `y` if only it has them; ... means all of `y`. A tensor of `wrt` "
    "that lacks one of these dims is repeated along it. Its gradient has the dims that the tensor "
    "lacks first, in the order of `per`, then those of the tensor. `grad(y.sum(), x)` is `grad(y, "
    "x, per=dims).sum(dims not of x)`. Each element of `y` must depend on one instance only.",
    disconnected='Whether a part of `wrt` on which `y` does not depend is refused ("error") or has '
    'gradient 0 ("zero").',
)
def grad(
    y: Tensor,
    wrt: T,
    *,
    per: str | Iterable[str] | EllipsisType = (),
    disconnected: Literal["error", "zero"] = "error",
) -> T:
    """The gradient of a scalar `y` with respect to each tensor of `wrt`, in the structure of `wrt`.

    Each gradient has the dims and dtype of its `wrt`. For complex values it is `dRe(y)/dRe(x) - i
    dRe(y)/dIm(x)`, which is the complex derivative where that exists.

    GraphError if `y` has dims that are not in `per`, or if instances mix. If a part of `wrt` is an
    integer, or if `y` does not depend on it. If an operation between has no derivative.

    >>> x, w = gc.tensor("x", {"row": 3}), gc.tensor("w", {})
    >>> gc.compile([x], gc.grad((x**2).sum(), x))([1.0, 2.0, 3.0])
    array([2., 4., 6.])
    >>> gc.compile([x, w], gc.grad(w * x**2, w, per="row"))([1.0, 2.0, 3.0], 1.0)
    array([1., 4., 9.])
    """
    y = tensor_to_differentiate(y)
    if not (isinstance(per, tuple) and per == ()):
        return per_instance(y, wrt, per, disconnected)
    if y.dims:
        raise derivative_error(
            f"the result has dims {y.dims}; a gradient is taken of one number",
            [y.node],
            "sum it first, name its instances with per=..., or use gc.pullback(y, wrt, ct)",
        )
    return pullback_of([y.node], wrt, [full_like(y.node, 1)], disconnected)


@parameters(
    y="A float tensor without dims, unless `per` says otherwise.",
    wrt="Inputs or inner tensors of `y`: one, or a list, tuple or dict of them.",
    per="Dims of instances, as in `grad`.",
    disconnected='"error" or "zero", as in `grad`.',
)
def value_and_grad(
    y: Tensor,
    wrt: T,
    *,
    per: str | Iterable[str] | EllipsisType = (),
    disconnected: Literal["error", "zero"] = "error",
) -> tuple[Tensor, T]:
    """The pair of `y` and `grad(y, wrt)`, which share what they compute.

    GraphError as `grad` does.

    >>> x = gc.tensor("x", {"row": 2})
    >>> gc.compile([x], gc.value_and_grad((x**2).sum(), x))([1.0, 2.0])
    (array(5.), array([2., 4.]))
    """
    y = tensor_to_differentiate(y)
    return y, grad(y, wrt, per=per, disconnected=disconnected)


def tensor_to_differentiate(y: Tensor) -> Tensor:
    """The tensor to differentiate; of a Python function the error says how to write it."""
    if is_function(y):
        reason = f"takes the tensor to differentiate, not {describe(y)}"
        raise type_refusal(reason, cure=for_function(public_call()))
    return wrap(single(y))


def per_instance(
    y: Tensor, wrt: T, per: str | Iterable[str] | EllipsisType, disconnected: str
) -> T:
    """The gradient of each instance: that of the sum with respect to `wrt` repeated along `per`."""
    sources, rebuild = flatten(wrt, "wrt")
    xs = [t.node for t in sources]
    require_differentiable([y.node], xs, disconnected)
    (new, _), wide, _ = of_instances(y.node, xs, per)
    made = autodiff.pull([new], [*wide.values()], [full_like(new, 1)])
    found = dict(zip(wide, map(wrap, made), strict=True))
    gradients: T = rebuild([found[x] for x in xs])
    return gradients


def of_instances(
    y: Node, xs: Sequence[Node], per: str | Iterable[str] | EllipsisType
) -> tuple[tuple[Node, Axes], dict[Node, Node], tuple[str, ...]]:
    """`y` rebuilt from `xs` repeated along `per`, with its axes; the repeated `xs`; and the axes.

    Refused where the instances along an axis mix.
    """
    known = instance_sizes(y, xs)
    axes = axes_of(y, xs, known) if per is ... else names(order_set(per), y)
    for axis in axes:
        if axis not in known:
            cure = close_match(axis, tuple(known))
            raise derivative_error(f"per: no input has a dim {axis!r}", [y, *xs], cure)
    sizes = {axis: known[axis] for axis in axes}
    try:
        wide = repeat_source(xs, sizes, {}, [y])
        (new,) = widen_silently([y], wide)
        for dim in sorted(new.type.sizes.keys() - y.type.sizes.keys()):
            raise Mixed(y, dim, "has lost the dim")
        own: Axes = {axis: (axis,) for axis in axes}
        found = Instances(sizes).follow([new], dict.fromkeys(wide.values(), own))
    except Mixed as mixed:
        how = f"{mixed.node.op.said} at {mixed.node.origin} {mixed.how}"
        reason = f"per: the instances along {mixed.axis!r} mix: {how}"
        cure = f"leave {mixed.axis!r} out of per, or do not bring its instances together"
        raise derivative_error(reason, [y, *xs], cure) from None
    except GraphError as error:
        reason = (
            f"per: repeated along {', '.join(axes)}, wrt is refused: {str(error).splitlines()[0]}"
        )
        raise derivative_error(reason, [y, *xs], "check whether instances mix there") from error
    return (new, found[new][0] or own), wide, axes


def instance_sizes(y: Node, xs: Sequence[Node]) -> dict[str, Size]:
    """The dims of `xs`, else those of the result, else those of the program's leaves."""
    starts = [node for node in toposort([y]) if not node.inputs]
    order = (*reversed(starts), y, *reversed(xs))
    return {dim: size for node in order for dim, size in node.type.sizes.items()}


def axes_of(y: Node, xs: Sequence[Node], known: dict[str, Size]) -> tuple[str, ...]:
    """The dims of `xs` that appear as dims of `y`; for dims that `xs` lack, those of `y`."""
    kept = {dim for x in xs for dim in x.type.sizes}
    while True:
        sources: dict[Node, Axes] = {
            x: {dim: (dim,) for dim in x.type.sizes if dim in kept} for x in xs
        }
        try:
            found = Instances(known).follow([y], sources)[y][0]
            break
        except Mixed as mixed:
            kept.remove(mixed.axis)
    axes = [axis for dim in y.type.dims for axis in instance_axes(found.get(dim, ())) or [dim]]
    for axis in axes:
        if axes.count(axis) > 1:
            reason = f"per: dim {axis!r} of the result is another than that of its inputs"
            raise derivative_error(
                reason, [y, *xs], "rename one of them, or name the instances' dims"
            )
    return tuple(axes)


@parameters(
    y="A float tensor, or nested lists, tuples and dicts of them.",
    wrt="Inputs or inner tensors of `y`, in any structure, which the result has as well.",
    ct="The cotangents, in the structure of `y`, each with the dims of its tensor, in any order.",
    disconnected="As in `grad`.",
)
def pullback(y: Tree, wrt: T, ct: Tree, *, disconnected: Literal["error", "zero"] = "error") -> T:
    """The cotangent of each tensor of `wrt`, given the cotangent `ct` of `y`: `ctᵀ · dy/dwrt`.

    >>> x, ct = gc.tensor("x", {"row": 3}), gc.tensor("ct", {"row": 3})
    >>> gc.compile([x, ct], gc.pullback(x**2, x, ct))([1.0, 2.0, 3.0], [1.0, 0.0, 10.0])
    array([ 2.,  0., 60.])
    """
    ys, _ = flatten(y, "y")
    cts, _ = flatten(ct, "ct")
    matched = match_types("cotangent", ys, cts)
    return pullback_of([t.node for t in ys], wrt, matched, disconnected)


@parameters(
    y="A float tensor, or nested lists, tuples and dicts of them.",
    wrt="Inputs or inner tensors of `y`, in any structure.",
    tangent="The tangents, in the structure of `wrt`, each with the dims of its tensor, in any "
    "order.",
    disconnected="As in `grad`.",
)
def pushforward(
    y: T, wrt: Tree, tangent: Tree, *, disconnected: Literal["error", "zero"] = "error"
) -> T:
    """The tangent of `y`, given that of each tensor of `wrt`: `dy/dwrt · tangent`.

    It has the structure of `y`.

    >>> x, v = gc.tensor("x", {"row": 3}), gc.tensor("v", {"row": 3})
    >>> gc.compile([x, v], gc.pushforward((x**2).sum(), x, v))([1.0, 2.0, 3.0], [1.0, 0.0, 10.0])
    array(62.)
    """
    return pushforward_of(y, wrt, tangent, disconnected)


def stop_gradient(x: Tensor) -> Tensor:
    """`x`, treated as a constant by every derivative.

    >>> x = gc.tensor("x", {"row": 2})
    >>> gc.compile([x], gc.grad((x * gc.stop_gradient(x)).sum(), x))([2.0, 3.0])
    array([2., 3.])
    """
    return wrap(autodiff.stop_gradient(single(x)))


def pullback_of(ys: list[Node], wrt: T, cts: list[Node], disconnected: str) -> T:
    """The one pullback node; its results in the structure of `wrt`."""
    sources, rebuild = flatten(wrt, "wrt")
    xs = [t.node for t in sources]
    require_differentiable(ys, xs, disconnected)
    ys, xs = shield(ys, xs)
    cotangents: T = rebuild([*map(wrap, autodiff.pull(ys, xs, cts))])
    return cotangents


def pushforward_of(y: T, wrt: Tree, tangent: Tree, disconnected: str) -> T:
    """The one pushforward node; its results in the structure of `y`."""
    results, rebuild = flatten(y, "y")
    sources, _ = flatten(wrt, "wrt")
    tangents, _ = flatten(tangent, "tangent")
    matched = match_types("tangent", sources, tangents)
    ys, xs = [t.node for t in results], [t.node for t in sources]
    require_differentiable(ys, xs, disconnected)
    ys, xs = shield(ys, xs)
    tangents_of_y: T = rebuild([*map(wrap, autodiff.push(ys, xs, matched))])
    return tangents_of_y


def match_types(what: str, primals: Sequence[Tensor], others: Sequence[Tensor]) -> list[Node]:
    """Each tangent or cotangent with its dims in the order of its primal, and in its dtype."""
    if len(primals) != len(others):
        nodes = [x.node for x in (*primals, *others)]
        reason = f"{len(others)} {what}s for {len(primals)} tensors"
        raise derivative_error(reason, nodes, f"give one {what} for each")
    matched = []
    for x, t in zip(primals, others, strict=True):
        if set(x.dims) != set(t.dims):
            reason = f"the {what} has dims {t.dims}, not {x.dims}"
            raise derivative_error(reason, [x.node, t.node], f"give the {what} the same dims")
        matched.append(t.astype(x.dtype).transpose(*x.dims).node)
    return matched


def require_differentiable(ys: list[Node], wrt: list[Node], disconnected: str) -> None:
    """Refuses tensors that have no derivative, before anything is built."""
    check_word("disconnected", disconnected, ("error", "zero"), *ys)
    for y in ys:
        if not differentiable(y.type.dtype):
            cure = "if it should be a number, cast it: y.astype('float64')"
            raise derivative_error(f"the result is {y.type.dtype}, not a float", [y], cure)
    for x in wrt:
        if not differentiable(x.type.dtype):
            cure = "declare it as a float; integers and bool carry no derivative"
            raise derivative_error(
                f"cannot differentiate with respect to {x.type.dtype} values", [x], cure
            )
    if disconnected == "error":
        refuse_disconnected(ys, wrt)
    moving = between(ys, wrt)
    for node in moving:
        refuse_unknown(node, moving)


def refuse_disconnected(ys: list[Node], wrt: list[Node]) -> None:
    """Refuses a part of `wrt` that reaches no result through float values."""
    stops = autodiff.stop_gradient
    found = reached(
        ys, lambda node: [x for x in node.inputs if node.op is not stops and of_floats(x.type)]
    )
    for x in wrt:
        if x not in found:
            reason, cure = disconnection(x, ys)
            raise derivative_error(reason, [x, *ys], cure)


def disconnection(x: Node, ys: list[Node]) -> tuple[str, str]:
    """Why `ys` have no derivative with respect to `x`, and the cure."""
    cure = "leave it out of wrt, or ask for zeros with disconnected='zero'"
    order = toposort(ys)
    dependent = dependents(order, [x])
    cuts = [
        node
        for node in order
        if not dependent.isdisjoint(node.inputs)
        and (node.op is autodiff.stop_gradient or not of_floats(node.type))
    ]
    if cuts and not dependent.isdisjoint(ys):
        what = f"{cuts[0].op.said} at {cuts[0].origin}"
        if cuts[0].op is autodiff.stop_gradient:
            return f"the result depends on it only through {what}", cure
        reason = f"the result depends on it only through integers or bool: {what}"
        return reason, f"differentiate what is computed before the {cuts[0].op.said}; or {cure}"
    if x.op is not leaf.input_ and x.inputs:
        cure = "differentiate with respect to the tensors that the result is computed from"
        if x.op is named.rename and isinstance(x.attrs["names"][0][0], Hidden):
            (dim,) = x.type.dims
            size = f"gc.tensor('theta', {{{dim!r}: {x.type.size(dim)}}})"
            cure = f"of a vector: theta = {size}, and compute the result from unravel(theta)"
        return "the result is not computed from it", cure
    return "the result does not depend on it through float values", cure


def derivative_error(reason: str, operands: Sequence[Node], cure: str) -> GraphError:
    """The error for a derivative that cannot be asked for."""
    return refusal(reason, *operands, cure=cure, kind=GraphTypeError, where="asked")


def shield(ys: list[Node], wrt: list[Node]) -> tuple[list[Node], list[Node]]:
    """`ys` and `wrt` with a barrier over each inner `wrt`, so that no rewrite removes it.

    Inputs come first, so a barrier is inside everything else of `wrt` that is built on its node.
    """
    inner = {x for x in wrt if x.op is not leaf.input_}
    if not inner:
        return ys, wrt
    done: dict[Node, Node] = {}
    for node in toposort([*ys, *wrt]):
        new = node.with_inputs(*[done[x] for x in node.inputs])
        done[node] = autodiff.barrier(new) if node in inner else new
    return [done[y] for y in ys], [done[x] for x in wrt]
