"""Functions with their own treatment in derivatives: rematerialised, or with a given pullback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from graphcore.analysis.instances import Instances, Mixed
from graphcore.frontend.control.carries import aligned
from graphcore.frontend.core.base import refusal, type_refusal, wrap
from graphcore.frontend.core.tracing import close, placeholder, traced_operands, varying
from graphcore.frontend.core.trees import Tree, flatten, paths
from graphcore.frontend.core.user_functions import callback, operand_names, require_function
from graphcore.ir import Graph, Node, toposort
from graphcore.ir.dtypes import differentiable
from graphcore.ir.help_text import parameters
from graphcore.ir.node import recording
from graphcore.ir.types import fits
from graphcore.ops import control

__all__ = ["checkpoint", "custom_pullback"]

P = ParamSpec("P")
R = TypeVar("R")


def checkpoint(function: Callable[P, R]) -> Callable[P, R]:
    """`function` with only its operands saved for derivatives, which compute the rest again.

    This takes less memory and more time (rematerialisation).

    >>> x = gc.tensor("x", {"row": 2})
    >>> y = gc.checkpoint(lambda x: gc.sin(gc.exp(x)))(x).sum()
    >>> gc.compile([x], gc.grad(y, x))([0.0, 1.0])
    array([ 0.54030231, -2.47834973])
    """
    require_function("function", function, "*operands")

    @wraps(function)
    def call(*operands: Any) -> Any:
        nodes, names, params, state = traced_operands(operands)
        run = callback("function", function, *operand_names(operands))
        with recording() as built:
            ys, mirrored = flatten(run(*state), "result")
        closed = close(names, params, [y.node for y in ys], made=built)
        (body,) = closed.graphs
        node = control.call(*nodes, *closed.captured, body=body)
        return mirrored([wrap(node[i]) for i in range(len(ys))])

    return cast("Callable[P, R]", call)


@parameters(
    function="A function of tensors or structures of them. It may use constants; other tensors "
    "from outside are refused.",
    pullback="`(operands, result, ct) -> cts`: the cotangent of each operand, as a tuple in their "
    "order and structures; `ct` has the structure of the result. It must be linear in `ct`, as "
    "forward mode and higher orders are derived from it. The graph may not show that it is "
    "linear, as when a loop ends by the size of a residual. Forward mode then runs it once for "
    "each element of the result. Elements that it treats separately, such as the members of a "
    "batch, are done at once.",
    pushforward="`(operands, result, tangents) -> tangent of the result`. It must be linear in "
    "`tangents`, which have the structures of the operands. Forward mode and higher orders then "
    "run it once instead.",
)
def custom_pullback(
    function: Callable[P, R],
    pullback: Callable[[tuple[Tree, ...], Tree, Tree], Any],
    pushforward: Callable[[tuple[Tree, ...], Tree, tuple[Tree, ...]], Tree] | None = None,
) -> Callable[P, R]:
    """`function` with a pullback of its own, for instance by the implicit function theorem.

    GraphError if one of the functions uses a tensor from outside. If cotangents do not have the
    types of the operands, or tangents those of the result. When a derivative is compiled, if one of
    them is not linear in `ct` or `tangents`.

    Notes
    -----
    Second derivatives with respect to the operands differentiate the steps of a loop in `pullback`.
    If few steps find a solution but not its derivative, as with conjugate gradients, call
    another function with a pullback of its own in `pullback`.

    Examples
    --------
    The fixed point z = cos(a z), whose iterations are never differentiated:

    >>> def solve(a):
    ...     step = lambda z: gc.cos(a * z)
    ...     return gc.while_loop(lambda z: abs(step(z) - z) > 1e-12, step, 0.5)
    >>> def implicit(operands, z, ct):
    ...     (a,) = operands
    ...     slope = -gc.sin(a * z)
    ...     return (ct * slope * z / (1 - slope * a),)
    >>> a = gc.tensor("a", {})
    >>> z = gc.custom_pullback(solve, implicit)(a)
    >>> [v.round(6) for v in gc.compile([a], [z, gc.grad(z, a)])(1.0)]
    [np.float64(0.739085), np.float64(-0.297474)]
    """
    require_function("function", function, "*operands")
    require_function("pullback", pullback, "operands, result, ct")
    if pushforward is not None:
        arguments = "operands, result, tangents"
        require_function("pushforward", pushforward, arguments)

    @wraps(function)
    def call(*operands: Any) -> Any:
        nodes, names, params, state = traced_operands(operands)
        run = callback("function", function, *operand_names(operands))
        result = run(*state)
        ys, mirrored = flatten(result, "result")
        results = [y.node for y in ys]
        labels = [name for name, _ in paths(result, "result")]
        shown = rule_params("", labels, results)
        seen = mirrored(map(wrap, shown))
        cts = rule_params("ct of ", labels, results)
        shares = rule_results(
            "pullback", pullback, "ct", (state, seen, mirrored(map(wrap, cts))), nodes
        )
        rule, forward = closed_graph([*params, *shown, *cts], shares), None
        if pushforward is not None:
            tangents = rule_params("tangent of ", names, nodes)
            arguments = state, seen, flatten(operands)[1](map(wrap, tangents))
            moved = rule_results("pushforward", pushforward, "tangents", arguments, results)
            forward = closed_graph([*params, *shown, *tangents], moved)
        dims = separate_dims(rule)
        node = control.custom(
            *nodes,
            body=closed_graph(params, results),
            rule=rule,
            forward=forward,
            apart=tuple(tuple(x.type.dims.index(dim) for dim in dims) for x in (*params, *shown)),
        )
        return mirrored([wrap(node[i]) for i in range(len(ys))])

    return cast("Callable[P, R]", call)


def rule_params(prefix: str, names: Sequence[str], nodes: Sequence[Node]) -> list[Node]:
    """A param of a rule for each of some values."""
    return [placeholder(prefix + name, x.type) for name, x in zip(names, nodes, strict=True)]


def rule_results(
    role: str, rule: Callable[..., Tree], moving: str, values: tuple[Tree, ...], likes: list[Node]
) -> list[Node]:
    """The results of a rule, refused unless they are typed as `likes`."""
    made = callback(role, rule, "operands", "result", moving)(*values)
    found, _ = flatten(made, role)
    wanted = [x.type for x in likes]
    matched = [aligned(x.node, type.dims) for x, type in zip(found, wanted)]
    if len(found) != len(likes) or not all(fits(x.type, y) for x, y in zip(matched, wanted)):
        what = "operand" if role == "pullback" else "result"
        reason = f"the {role} returns {[str(x.node.type) for x in found]}"
        cure = f"return values of {[str(type) for type in wanted]}, one for each {what}"
        raise type_refusal(reason, *likes, cure=cure)
    return matched


def closed_graph(params: list[Node], outputs: list[Node]) -> Graph:
    """A graph that captures nothing, refused if it would; constants are part of it."""
    names = [param.attrs["name"] for param in params]
    found = close(names, params, outputs, made={*toposort(outputs)} - varying(outputs))
    if found.captured:
        reason = "the function or a rule of it captures a tensor"
        raise refusal(reason, *found.captured, cure="pass it as an operand")
    return found.graphs[0]


def separate_dims(rule: Graph) -> list[str]:
    """The dims along which a pullback works separately for each position: batch dims."""
    floats = [x for x in rule.params if differentiable(x.type.dtype)]
    shared = [
        dim
        for dim in (rule.params[0].type.dims if rule.params else ())
        if all(dim in x.type.sizes for x in rule.params)
    ]
    found = []
    for dim in shared:
        size = rule.params[0].type.size(dim)
        try:
            made = Instances({dim: size}).follow(rule.outputs, {x: {dim: (dim,)} for x in floats})
        except Mixed:
            continue
        if all(made[share][0].keys() <= {dim} for share in rule.outputs):
            found.append(dim)
    return found
