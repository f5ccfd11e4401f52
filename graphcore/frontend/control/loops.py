"""Loops under JAX's names, over dims by name. Bodies are traced, not run."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from numbers import Integral
from typing import Any, TypeVar, overload

from graphcore.frontend.core.arguments import SizeLike, names, size_of
from graphcore.frontend.core.base import Tensor, refusal, type_refusal, wrap
from graphcore.frontend.core.costs import CHECKPOINT_LEVELS
from graphcore.frontend.core.lift import Operand, condition, single
from graphcore.frontend.core.tracing import between_params, close, placeholder
from graphcore.frontend.core.trees import Tree, flatten, paths
from graphcore.frontend.core.user_functions import callback
from graphcore.frontend.create.inputs import constant
from graphcore.frontend.create.ranges import arange
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.elementwise import greater
from graphcore.frontend.reduce.reductions import any as any_of
from graphcore.ir import INT, Expression, Hidden, Size, toposort
from graphcore.ir.help_text import parameters
from graphcore.ir.node import recording
from graphcore.ir.sizes import lower_bound, maximum, same
from graphcore.ir.transform import substitute
from graphcore.ops import control
from graphcore.ops.control import Checkpoint
from graphcore.ops.leaf import values
from graphcore.ops.named.dims import drop

from .carries import Carry
from .guarded_members import for_members, guard

__all__ = ["fori_loop", "map", "scan", "while_loop"]

C = TypeVar("C")
"""The carry of a loop."""

X = TypeVar("X")
"""The tensors along which a loop walks, and the elements of a step."""

Y = TypeVar("Y")
"""The result of a step, and those of all steps."""


@overload
def scan(
    body: Callable[[Tensor, X], tuple[Tensor, Y]],
    init: complex,
    xs: X = ...,
    dim: str | None = ...,
    length: SizeLike = ...,
    reverse: bool = ...,
    *,
    checkpoint: int | str | None = ...,
) -> tuple[Tensor, Y]: ...
@overload
def scan(
    body: Callable[[C, X], tuple[C, Y]],
    init: C,
    xs: X = ...,
    dim: str | None = ...,
    length: SizeLike = ...,
    reverse: bool = ...,
    *,
    checkpoint: int | str | None = ...,
) -> tuple[C, Y]: ...
@overload
def scan(
    body: Callable[[Any, Any], tuple[Any, Any]],
    init: Tree,
    xs: Tree = ...,
    dim: str | None = ...,
    length: SizeLike = ...,
    reverse: bool = ...,
    *,
    checkpoint: int | str | None = ...,
) -> tuple[Any, Any]: ...
@parameters(
    body="`(carry, x) -> (carry, y)`. It is traced, not run at each step. The carry keeps its "
    "structure, dims and dtypes. A start value is repeated along dims that the body adds to it, "
    "which come after its own. `y` is any structure of tensors, or None.",
    init="The first carry: tensors and numbers in lists, tuples and dicts. Python numbers take the "
    "dtype that the body computes for them.",
    xs="Tensors with the dim `dim`; a step gets one element along it, without the dim. Or None.",
    dim='The dim of the loop: by default "time", or that of `xs` if these are vectors. It is the '
    'first dim of the results of all steps, wherever `xs` has it; `ys.transpose("batch", "time", '
    "...)` moves it.",
    length="The number of steps, required without `xs`: a number, a size, or an integer input "
    "without dims.",
    reverse="Whether to run from the last position to the first; results stay at their positions.",
    checkpoint="What a pullback saves of the steps. None saves all it needs, an integer k at least "
    'every k-th carry, and "log" a few carries on several levels. The pullback computes the rest '
    "again.",
)
def scan(
    body: Callable[[Tree, Tree], tuple[Tree, Tree]],
    init: Tree,
    xs: Tree = None,
    dim: str | None = None,
    length: SizeLike = None,
    reverse: bool = False,
    *,
    checkpoint: int | str | None = None,
) -> tuple[Tree, Tree]:
    """A loop over the positions along `dim`: (last carry, results of all steps).

    Each step turns a carry and one element of `xs` into a new carry and a result. The body may use
    any tensor from outside; a derivative with respect to it sums the contributions of all steps.

    GraphError if the body changes the structure, dims or dtypes of the carry, or if `xs` lacks the
    dim.

    >>> import graphcore as gc, numpy as np
    >>> x = gc.tensor("x", {"time": None})
    >>> last, sums = gc.scan(lambda total, x: (total + x, total), 0.0, x)
    >>> gc.compile([x], [last, sums])(np.array([1.0, 2.0, 3.0]))
    [array(6.), array([0., 1., 3.])]
    """
    body = callback("body", body, "carry", "x")
    sequences, rebuild = optional(xs, "xs")
    if dim is None:
        own, *others = {x.dims for x in sequences} or {()}
        dim = own[0] if len(own) == 1 and not others else "time"
    (dim,) = names((dim,))
    for x in sequences:
        if dim not in x.dims:
            near = [*get_close_matches(dim, x.dims, 1), *x.dims, "row"][0]
            cure = f"name the dim of the steps, as in dim={near!r}; a tensor that each step reads "
            cure += "whole does not belong in xs: use it in the body"
            raise refusal(f"xs has no dim {dim!r}", x, cure=cure)
    if length is None and not sequences:
        raise refusal("has neither xs nor a length", cure="give gc.scan(..., length=10)")
    steps = sequences[0].sizes[dim] if length is None else size_of(dim, length)
    inner = [] if xs is None else [name for name, _ in paths(xs, "x")]
    places = [
        placeholder(name, drop(x.dtype, x.node.type, (dim,))) for x, name in zip(sequences, inner)
    ]
    carry = Carry(init)
    with recording() as built:
        new, result = carry.settle(
            lambda state: pair(body(state, rebuild([wrap(x) for x in places])))
        )
    ys, mirrored = optional(result, "y")
    closed = close([*carry.labels, *inner], [*carry.params, *places], [*new, *[y.node for y in ys]])
    captured = list(closed.captured)
    if (lower_bound(steps) or 0) < 1:
        captured = guard(closed.graphs[0], captured, built, lambda: greater(steps, 0).node)
    node = control.scan(
        *carry.start,
        *[x.node for x in sequences],
        *captured,
        body=closed.graphs[0],
        carries=len(new),
        sequences=len(sequences),
        length=steps,
        reverse=bool(reverse),
        dim=dim,
        checkpoint=policy(checkpoint, steps),
    )
    results = values(node)
    return carry.results(results[: len(new)]), mirrored([wrap(y) for y in results[len(new) :]])


def optional(tree: Tree, name: str) -> tuple[list[Tensor], Callable[[list[Tensor]], Tree]]:
    """The tensors of a tree; none if it is None."""
    return ([], lambda _: None) if tree is None else flatten(tree, name)


def pair(made: Any) -> tuple[Tree, Tree]:
    """The carry and the result that a body of `scan` must return."""
    if not isinstance(made, tuple) or len(made) != 2:
        reason = f"the body returns {type(made).__name__}, not (carry, y)"
        raise type_refusal(reason, cure="return a pair; y may be None")
    return made


def policy(checkpoint: Any, steps: Size) -> Checkpoint:
    """The lengths of the chunks whose first carries a pullback saves: for None there are none."""
    if checkpoint is None:
        return ()
    if isinstance(checkpoint, str) and checkpoint == "log":
        return levels(steps)
    if isinstance(checkpoint, int) and not isinstance(checkpoint, bool) and checkpoint > 0:
        return (checkpoint,)
    raise refusal(f"checkpoint={checkpoint!r}", cure="use None, 'log', or a number of steps")


def levels(steps: Size) -> Checkpoint:
    """The lengths of the chunks on several levels; those that fill a known number of steps.

    Where chunks are not full, each step has to ask whether it is one.
    """
    found = []
    for most in CHECKPOINT_LEVELS:
        if isinstance(steps, int):
            if steps <= most:
                continue
            whole = [n for n in range(most, most // 2, -1) if steps % n == 0]
            steps = most = (*whole, most)[0]
        found.append(most)
    return tuple(found)


@parameters(
    function="`x -> y`; the results are any structure of tensors.",
    xs="Tensors with the dim `dim`.",
    dim="The dim of the loop, as in `scan`.",
    checkpoint="As in `scan`.",
)
def map(
    function: Callable[[X], Y],
    xs: X,
    dim: str | None = None,
    *,
    checkpoint: int | str | None = None,
) -> Y:
    """`function` of each element along `dim`, one after the other; results have the same dim.

    Functions work on whole dims without it: use this to save memory, or for bodies with loops of
    different lengths.

    >>> import graphcore as gc, numpy as np
    >>> x = gc.tensor("x", {"row": None, "col": 2})
    >>> gc.compile([x], gc.map(lambda row: row.sum() ** 2, x, dim="row"))(np.ones((3, 2)))
    array([4., 4., 4.])
    """
    made = callback("function", function, "x")
    ys: Y = scan(lambda _, x: ((), made(x)), (), xs, dim, checkpoint=checkpoint)[1]
    return ys


@overload
def while_loop(
    cond: Callable[[Tensor], Tensor],
    body: Callable[[Tensor], Tensor],
    init: complex,
    max_steps: Operand | None = ...,
) -> Tensor: ...
@overload
def while_loop(
    cond: Callable[[C], Tensor],
    body: Callable[[C], C],
    init: C,
    max_steps: Operand | None = ...,
) -> C: ...
@overload
def while_loop(
    cond: Callable[[Any], Tensor],
    body: Callable[[Any], Any],
    init: Tree,
    max_steps: Operand | None = ...,
) -> Any: ...
@parameters(
    cond="`carry -> bool tensor`.",
    body="`carry -> carry`, as for `scan`. It may use any tensor from outside.",
    init="The first carry, as for `scan`.",
    max_steps="The largest number of steps; None means no limit. Inside of functions that JAX "
    "transforms a pullback needs one, as a number or a size.",
)
def while_loop(
    cond: Callable[[Tree], Tensor],
    body: Callable[[Tree], Tree],
    init: Tree,
    max_steps: Operand | None = None,
) -> Tree:
    """The carry after steps of `body` for as long as `cond` holds; it is tested before each step.

    It has derivatives in both modes, and the number of steps needs no bound. The number of steps
    itself has no derivative. A condition with dims makes a batched loop, in which each element
    stops at its own step.

    GraphError if the condition is not bool, or if the body changes the structure, dims or dtypes of
    the carry.

    Examples
    --------
    Newton's square root, to the last digit:

    >>> import graphcore as gc, numpy as np
    >>> x = gc.tensor("x", {})
    >>> root = gc.while_loop(lambda r: abs(r * r - x) > 1e-12 * x, lambda r: (r + x / r) / 2, x)
    >>> gc.compile([x], [root, gc.grad(root, x)])(4.0)
    [array(2.), array(0.25)]
    """
    cond = callback("cond", cond, "carry")
    body = callback("body", body, "carry")
    if max_steps is None:
        return loop_while(cond, body, init)
    _, last = loop_while(
        lambda state: cond(state[1]) & (state[0] < max_steps),
        lambda state: (state[0] + 1, body(state[1])),
        (constant(0), init),
        most_steps(max_steps),
    )
    return last


def most_steps(limit: Operand) -> Size | None:
    """The limit of a loop as a size; None if it is known only at the call."""
    if isinstance(limit, Integral):
        return int(limit)
    return limit if isinstance(limit, Expression) else None


def loop_while(
    cond: Callable[[Tree], Tensor],
    body: Callable[[Tree], Tree],
    init: Tree,
    most: Size | None = None,
) -> Tree:
    """The carry after all steps, of which there are no more than `most` where that is known."""
    carry = Carry(init)

    def step(state: Tree) -> tuple[Tree, Tensor]:
        cure = "compare something, for instance `error > 1e-9`"
        going = condition("the condition", cond(state), cure)
        if missing := carry.missing_sizes(going):
            carry.widen(missing)
            return step(carry.state())
        made = body(state)
        if going.dims:
            made = carry.select(going, made, state)
        return made, going

    with recording() as built:
        new, going = carry.settle(step, lambda old, new: old.dims == new.dims)
    if going.dims:
        new = for_members(going.node, between_params(carry.params, new, ()), new)
    closed = close(carry.labels, carry.params, [any_of(going).node], new)
    predicate, graph = closed.graphs
    starts = dict(zip(carry.params, carry.start, strict=True))
    captured = guard(
        graph,
        closed.captured,
        built,
        lambda: substitute([going.node], starts)[0],
        toposort([going.node]),
    )
    node = control.while_loop(
        *carry.start,
        *captured,
        predicate=predicate,
        body=graph,
        carries=len(new),
        trips=None,
        **({} if most is None else {"most": most}),
    )
    return carry.results(values(node))


@overload
def fori_loop(
    lower: Operand,
    upper: Operand,
    body: Callable[[Tensor, Tensor], Tensor],
    init: complex,
    *,
    checkpoint: int | str | None = ...,
) -> Tensor: ...
@overload
def fori_loop(
    lower: Operand,
    upper: Operand,
    body: Callable[[Tensor, C], C],
    init: C,
    *,
    checkpoint: int | str | None = ...,
) -> C: ...
@overload
def fori_loop(
    lower: Operand,
    upper: Operand,
    body: Callable[[Tensor, Any], Any],
    init: Tree,
    *,
    checkpoint: int | str | None = ...,
) -> Any: ...
@parameters(
    lower="The first `i`: an integer, a size or an integer tensor.",
    upper="The end of the range, which is excluded: an integer, a size or an integer tensor.",
    body="`(i, carry) -> carry`; `i` is an int64 tensor without dims.",
    init="The first carry, as for `scan`.",
    checkpoint="As in `scan`.",
)
def fori_loop(
    lower: Operand,
    upper: Operand,
    body: Callable[[Tensor, Tree], Tree],
    init: Tree,
    *,
    checkpoint: int | str | None = None,
) -> Tree:
    """The carry after `body(i, carry)` for `i = lower, lower + 1, ..., upper - 1`.

    >>> import graphcore as gc, numpy as np
    >>> x = gc.tensor("x", {})
    >>> power = gc.fori_loop(0, 3, lambda i, p: p * x, 1.0)
    >>> gc.compile([x], [power, gc.grad(power, x)])(2.0)
    [array(8.), array(12.)]
    """
    body = callback("body", body, "i", "carry")
    if isinstance(lower, (int, Expression)) and isinstance(upper, (int, Expression)):
        steps = maximum(upper - lower, 0)
        dim = Hidden("step")

        def step(carry: Tree, i: Tensor) -> tuple[Tree, None]:
            return body(i if same(lower, 0) else i + lower, carry), None

        return scan(step, init, arange(steps, dim=dim), dim, checkpoint=checkpoint)[0]
    for end in (single(lower), single(upper)):
        if end.type.dtype.kind not in "iu":
            cure = "cast it: x.astype('int64')"
            raise type_refusal(f"ends are integers, not {end.type}", end, cure=cure)
    first = astype(lower, INT)
    _, last = while_loop(
        lambda state: state[0] < upper, lambda state: (state[0] + 1, body(*state)), (first, init)
    )
    return last
