"""Functions of NumPy arrays inside of programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any

from graphcore.frontend.core.arguments import names
from graphcore.frontend.core.base import Base, refusal, wrap
from graphcore.frontend.core.trees import Tree, flatten, paths
from graphcore.frontend.core.user_functions import require_function
from graphcore.frontend.shape.dims import transpose
from graphcore.ir.help_text import parameters
from graphcore.ops import outside
from graphcore.ops.named.dims import close_match

from .custom import custom_pullback

__all__ = ["callback"]


@parameters(
    function="A function of arrays, in the structures of the operands. The axes of an array are "
    "the dims of the operand, in its order, or those of `dims` that it has, in the order of "
    "`dims`.",
    result="Tensors with the dims, sizes and dtypes of the results, one or nested. Give an "
    'operand, or a new tensor such as `gc.zeros({"root": 3})`; only its type is used. Arrays of '
    "other shapes, or of dtypes that would lose values, are refused at the call.",
    dims="The dims that the function works along; by default all that the operands have at the "
    "call. A whole batch is given to the function at once if its dims are among them.",
    pullback="The derivative in reverse mode, as in `custom_pullback`: a function of tensors, for "
    "instance a callback.",
    pushforward="The derivative in forward mode, as in `custom_pullback`. Without it forward mode "
    "runs the `pullback` once for each element of the result.",
)
def callback(
    function: Callable[..., Any],
    result: Tree,
    *,
    dims: str | Iterable[str] | None = None,
    pullback: Callable[[tuple[Tree, ...], Tree, Tree], Any] | None = None,
    pushforward: Callable[[tuple[Tree, ...], Tree, tuple[Tree, ...]], Tree] | None = None,
) -> Callable[..., Tree]:
    """A function of NumPy arrays, such as one of SciPy's, as a function of tensors.

    It runs when the compiled program does. It is called once for each position along the dims that
    are not in `dims`, and along those that `vectorize` adds. It must have no side effects: its
    result depends on its operands alone. Equal calls may be made once, and calls that no output
    needs are not made. Derivatives and loops may make a call again. It gets copies of its operands,
    and its results are copied.

    GraphError if no operand has a dim of `dims`. If a derivative is asked for and there is no
    `pullback`. At a call, if the function raises an error, which is the cause of this one. At a
    call, if its results have another structure, shape or dtype.

    >>> import graphcore as gc, numpy as np
    >>> x = gc.tensor("x", {"row": None, "col": None})
    >>> median = gc.callback(np.median, gc.zeros({}), dims="col")
    >>> gc.compile([x], median(x))([[1.0, 2.0, 9.0], [3.0, 3.0, 6.0]])
    array([2., 3.])

    >>> from scipy.special import zeta
    >>> slope = gc.callback(lambda x: (zeta(x + 1e-6) - zeta(x - 1e-6)) / 2e-6, x)
    >>> f = gc.callback(zeta, x, pullback=lambda operands, y, ct: (ct * slope(*operands),))
    >>> gc.compile([x], gc.grad(f(x).sum(), x))([[2.0, 3.0]]).round(4)
    array([[-0.9375, -0.1981]])
    """
    require_function("function", function, "*operands")
    templates, mirrored = flatten(result, "result")
    labels = tuple(path for path, _ in paths(result, "result"))
    known = None if dims is None else names(dims)
    apart = partial(paths, path="result")
    plain: dict[int, outside.Function] = {}

    def run(*operands: Tree) -> Tree:
        tensors, arranged = flatten(operands, "operands")
        held = outside.Function(function, arranged, apart, labels)
        if len(operands) == len(tensors) and all(isinstance(x, Base) for x in operands):
            held = plain.setdefault(len(operands), held)
        nodes = [x.node for x in tensors]
        for dim in known or ():
            if not any(dim in x.type.dims for x in nodes):
                cure = close_match(dim, tuple({d: None for x in nodes for d in x.type.dims}))
                raise refusal(f"no operand has a dim {dim!r}", *nodes, cure=cure)
        node = outside.callback(
            *nodes,
            function=held,
            dims=tuple(
                x.type.dims if known is None else tuple(d for d in known if d in x.type.dims)
                for x in nodes
            ),
            made=tuple(x.dims for x in templates),
            sizes=tuple(size for x in templates for size in x.shape),
            dtypes=tuple(x.dtype for x in templates),
            masked=False,
        )
        results = [wrap(node[i]) for i in range(len(templates))]
        return mirrored(
            transpose(y, *[dim for dim in y.dims if dim not in like.dims], *like.dims)
            for y, like in zip(results, templates, strict=True)
        )

    if pullback is None:
        if pushforward is not None:
            cure = "give pullback as well: both modes are derived from it"
            raise refusal("there is a pushforward, but no pullback", cure=cure)
        return wraps(function, updated=())(run)
    return wraps(function, updated=())(custom_pullback(run, pullback, pushforward))
