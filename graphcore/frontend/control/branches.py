"""Branches under JAX's names: only the chosen one is computed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias, overload

from graphcore.frontend.core import lift
from graphcore.frontend.core.arguments import as_list
from graphcore.frontend.core.base import Base, Tensor, brief, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, condition
from graphcore.frontend.core.tracing import close, differentiates, traced_operands
from graphcore.frontend.core.trees import Rebuild, Tree, flatten, paths
from graphcore.frontend.core.user_functions import callback, operand_names
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.elementwise import equal, logical_not
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.shape.dims import broadcast_to, concat
from graphcore.ir import INT, Hidden, Size, TensorType, toposort
from graphcore.ir.errors import GraphIndexError
from graphcore.ir.help_text import parameters
from graphcore.ir.names import apart
from graphcore.ir.node import recording
from graphcore.ir.transform import substitute
from graphcore.ir.types import fits
from graphcore.ops import control
from graphcore.ops.leaf import values

from .carries import aligned, table_of_types
from .guarded_members import for_members

__all__ = ["cond", "switch"]


Number: TypeAlias = "Tensor | complex"
"""The result of a branch where another returns a tensor."""


@overload
def cond(
    pred: Operand,
    then: Callable[..., Number],
    otherwise: Callable[..., Number],
    *operands: Tree,
) -> Tensor: ...
@overload
def cond(
    pred: Operand,
    then: Callable[..., Any],
    otherwise: Callable[..., Any],
    *operands: Tree,
) -> Any: ...
@parameters(
    pred="A bool tensor; a Python bool chooses immediately.",
    then="A function of the operands.",
    otherwise="The other function of the operands. Its results have the same structure and dtypes "
    "as those of `then`. Where one of the two lacks dims of the other, it is repeated along them. "
    "A Python number takes the dtype of the result of the other branch.",
    operands="Tensors or nested structures of them.",
)
def cond(
    pred: Operand,
    then: Callable[..., Tree],
    otherwise: Callable[..., Tree],
    *operands: Tree,
) -> Tree:
    """`then(*operands)` if the condition holds, else `otherwise(*operands)`.

    Only the chosen branch is computed, in derivatives as well. A condition with dims chooses for
    each element, and both branches are computed. Branches may use any tensor from outside.

    GraphError if the condition is not bool, or if the branches differ in the structure, sizes or
    dtypes of results.

    >>> x = gc.tensor("x", {})
    >>> y = gc.cond(x > 0, gc.log, lambda x: x - 1, x)
    >>> gc.compile([x], [y, gc.grad(y, x)])(-2.0)
    [array(-3.), array(1.)]
    """
    labels = operand_names(operands)
    then = callback("then", then, *labels)
    otherwise = callback("otherwise", otherwise, *labels)
    if isinstance(pred, bool):
        return then(*operands) if pred else otherwise(*operands)
    cure = "use a comparison, for instance `x > 0`"
    chosen = condition("the condition", pred, cure)
    if chosen.dims:
        masks = [logical_not(chosen), chosen]
        both, mirrored = all_made(CASES, [otherwise, then], operands, masks)
        return mirrored([where(chosen, x, y) for y, x in zip(*both, strict=True)])
    return branch(CASES, astype(chosen, INT), [otherwise, then], operands)


@overload
def switch(
    index: Operand, branches: Sequence[Callable[..., Number]], *operands: Tree
) -> Tensor: ...
@overload
def switch(index: Operand, branches: Sequence[Callable[..., Any]], *operands: Tree) -> Any: ...
@parameters(
    index="An integer tensor; one outside the branches is refused at the call. A Python integer "
    "chooses immediately.",
    branches="Functions of the operands, with results of one structure and dtypes. A result that "
    "lacks dims of others is repeated along them.",
    operands="Tensors or nested structures of them.",
)
def switch(index: Operand, branches: Sequence[Callable[..., Tree]], *operands: Tree) -> Tree:
    """`branches[index](*operands)`; only this branch is computed, in derivatives as well.

    An index with dims chooses for each element, and all branches are computed.

    >>> n, x = gc.tensor("n", {}, dtype="int64"), gc.tensor("x", {})
    >>> y = gc.switch(n, [gc.sin, gc.cos, gc.exp], x)
    >>> gc.compile([n, x], y)(2, 0.0)
    array(1.)
    """
    labels = operand_names(operands)
    if isinstance(branches, (Tensor, int, float)):  # as PyTensor's switch, which is where
        cure = "give a list of functions, or choose between values: gc.where(c, x, y)"
        raise type_refusal(f"branches={brief(branches)} is not a list", cure=cure)
    given = as_list("branches", branches)
    roles = [f"branch {i}" for i in range(len(given))]
    functions = [callback(role, f, *labels) for role, f in zip(roles, given, strict=True)]
    if not functions:
        raise refusal("has no branches", cure="give at least one function")
    if isinstance(index, int) and not isinstance(index, bool):
        if not 0 <= index < len(functions):
            reason = f"there is no branch {index} among {len(functions)}"
            raise refusal(reason, cure="branches count from 0", kind=GraphIndexError)
        return functions[index](*operands)
    chosen = wrap(lift.single(index))
    if chosen.dtype.kind not in "iu":
        cure = "give an integer, or use gc.cond for a bool"
        raise type_refusal(f"the index is {chosen.node.type}, not an integer", chosen, cure=cure)
    if chosen.dims:
        masks = [equal(chosen, i) for i in range(len(functions))]
        leaves, mirrored = all_made(roles, functions, operands, masks)
        return mirrored([one_of(chosen, column) for column in zip(*leaves, strict=True)])
    return branch(roles, chosen, functions, operands)


def one_of(index: Tensor, column: Sequence[Tensor]) -> Tensor:
    """For each element the result of the branch with its index."""
    dim = apart(Hidden("branch"), [dim for x in (index, *column) for dim in x.dims])
    positions = astype(index, "uint64")  # as which no index counts from the end
    return isel(concat(column, dim), {dim: positions})


CASES = "otherwise", "then"
"""The branches of `cond`, in the order of False and True."""


def branch(
    roles: Sequence[str],
    index: Tensor,
    functions: Sequence[Callable[..., Tree]],
    operands: tuple[Tree, ...],
) -> Tree:
    """The node that chooses between functions of the same operands."""
    nodes, names, params, state = traced_operands(operands)
    with recording() as built:
        made = [run(*state) for run in functions]
        leaves, mirrored = unify(roles, made)
    closed = close(names, params, *[[x.node for x in some] for some in leaves], made=built)
    node = control.switch(index.node, *nodes, *closed.captured, branches=closed.graphs)
    columns = zip(*[[leaf for _, leaf in paths(tree, "result")] for tree in made], strict=True)
    found = [lift.weak_like(y, column) for y, column in zip(values(node), columns, strict=True)]
    return mirrored(map(wrap, found))


def all_made(
    roles: Sequence[str],
    functions: Sequence[Callable[..., Tree]],
    operands: tuple[Tree, ...],
    masks: Sequence[Tensor],
) -> tuple[list[list[Tensor]], Rebuild]:
    """The results of several functions of the same operands, to be chosen from for each element.

    `masks` say where a function is chosen: elsewhere it refuses nothing. A function that
    differentiates keeps a graph of its own, in which an operand and a captured tensor are two
    params. A derivative with respect to one is not one with respect to the other, even if both are
    the same tensor.
    """
    nodes, names, params, state = traced_operands(operands)
    with recording() as built:
        leaves, mirrored = alike(roles, [run(*state) for run in functions])
    made = [[x.node for x in some] for some in leaves]
    below = [built.intersection(toposort(ys)) for ys in made]
    by_all = set.intersection(*below)
    made = [
        for_members(mask.node, inside - by_all, ys)
        for mask, inside, ys in zip(masks, below, made, strict=True)
    ]
    if differentiates(params, [y for ys in made for y in ys]):
        closed = close(names, params, *made)
        calls = [control.call(*nodes, *closed.captured, body=body) for body in closed.graphs]
        made = [[several[i] for i in range(len(leaves[0]))] for several in calls]
    else:
        new = dict(zip(params, nodes, strict=True))
        made = [list(substitute(ys, new)) for ys in made]
    return [list(map(wrap, ys)) for ys in made], mirrored


def alike(roles: Sequence[str], made: Sequence[Tree]) -> tuple[list[list[Tensor]], Rebuild]:
    """The leaves of each branch's result, all of one structure, and the function to rebuild it."""
    leaves, structures = zip(*[flatten(tree, "result") for tree in made], strict=True)
    shapes = [[name for name, _ in paths(tree, "result")] for tree in made]
    if any(shape != shapes[0] for shape in shapes):
        raise differ(roles, made, set.intersection(*map(set, shapes)))
    if any(structure.static != structures[0].static for structure in structures):
        reason = f"the branches return static values that differ: {[x.static for x in structures]}"
        raise type_refusal(reason, cure="return what differs as tensors")
    return list(leaves), structures[0]


def unify(roles: Sequence[str], made: Sequence[Tree]) -> tuple[list[list[Tensor]], Rebuild]:
    """The leaves of all branches in equal types: each is repeated along the dims that it lacks.

    Dims are in the order in which the branches, as they are written, have them. Python numbers take
    the dtypes of other branches.
    """
    leaves, mirrored = alike(roles, made)
    raw = [dict(paths(tree, "result")) for tree in made]
    same = {*raw[0]}
    for i, label in enumerate(raw[0]):
        column = [own[label] for own in raw]
        number = [lift.is_weak(leaf) and not isinstance(leaf, Base) for leaf in column]
        nodes = [None if n else x[i].node for x, n in zip(leaves, number, strict=True)]
        dtype = lift.promote(*map(lift.kind_among, column, nodes))
        written = leaves[::-1] if roles is CASES else leaves  # `then` stands first
        sizes: dict[str, Size] = {}
        for some in written:
            sizes |= {dim: n for dim, n in some[i].sizes.items() if dim not in sizes}
        for some, leaf, node in zip(leaves, column, nodes, strict=True):
            if lift.is_weak(leaf):
                some[i] = wrap(lift.in_dtype(node, dtype)) if node else astype(some[i], dtype)
            own = aligned(some[i].node, tuple(sizes))
            some[i] = broadcast_to(own, sizes | own.type.sizes)
            if not fits(TensorType.of(dtype, sizes), some[i].node.type):
                same.discard(label)
    if len(same) < len(raw[0]):
        raise differ(roles, made, same)
    return leaves, mirrored


def differ(roles: Sequence[str], made: Sequence[Tree], same: Collection[str]) -> Exception:
    """The error for branches whose results differ, side by side; all but the `same` are marked."""
    columns = {
        name: dict(zip([leaf for leaf, _ in paths(tree, "result")],
                       [x.node.type for x in flatten(tree, "result")[0]], strict=True))
        for name, tree in zip(roles, made, strict=True)
    }  # fmt: skip
    table = table_of_types(columns, same)
    reason = f"the branches differ in their results (*)\n{table}"
    cure = "return one structure, sizes and dtypes, as y.astype(x.dtype) and gc.full_like(x, 0) do"
    return type_refusal(reason, cure=cure)
