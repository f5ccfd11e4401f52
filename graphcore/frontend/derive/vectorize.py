"""A program on inputs with more dims: every op takes dims it does not mention as batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from graphcore.analysis.instances import Mixed
from graphcore.frontend.control.branches import one_of
from graphcore.frontend.control.guarded_members import for_members
from graphcore.frontend.core.arguments import mapping
from graphcore.frontend.core.base import Base, Tensor, brief, refusal, type_refusal, wrap
from graphcore.frontend.core.trees import T, flatten
from graphcore.frontend.core.values_as_sizes import refuse_computed
from graphcore.frontend.shape.dims import broadcast_to, in_order
from graphcore.ir import Graph, Node, Op, Size, TensorType, TupleType, full_like, toposort, trace
from graphcore.ir.help_text import parameters
from graphcore.ir.names import ValueOf, hidden_names
from graphcore.ir.node import Attrs
from graphcore.ir.sizes import same, unknown, unknowns
from graphcore.ir.transform import resize, transform
from graphcore.ops import autodiff, control, leaf, named
from graphcore.ops import elementwise as ops
from graphcore.ops.control import Carry, Loop, LoopOperand

__all__ = ["vectorize"]

NewDims = dict[str, Size]


@parameters(
    outputs="Tensors in any structure, which the result has as well.",
    replace="Maps inputs or inner tensors to tensors with the same dims and sizes, and new dims. "
    "New dims come first in the results, in the order in which these tensors have them, then the "
    "dims that the results had. Derivatives are taken separately for each position along new dims.",
)
def vectorize(outputs: T, replace: Mapping[Tensor, Tensor]) -> T:
    """The program on tensors with more dims: equivalent to a loop over the new dims.

    GraphError if a replacement lacks a dim of the tensor that it replaces, or has another dtype or
    size. If a result has a dim with the name of a new one. Unknown sizes are compared at the call;
    one that no remaining input has becomes that of the new tensor.

    >>> import graphcore as gc, numpy as np
    >>> x, w = gc.tensor("x", {"row": 2}), gc.tensor("w", {"row": 2})
    >>> many = gc.tensor("x", {"batch": None, "row": 2})
    >>> slopes = gc.vectorize(gc.grad((x * w).sum() ** 2, w), {x: many})
    >>> gc.compile([many, w], slopes)(np.array([[1.0, 2.0], [3.0, 0.0]]), np.ones(2))
    array([[ 6., 12.],
           [18.,  0.]])
    """
    tensors, rebuild = flatten(outputs, "outputs")
    replace = mapping(replace, None, "{x: x_with_more_dims}")
    for old, wide in replace.items():
        for x in (old, wide):
            if not isinstance(x, Base):
                cure = "write {x: x_with_more_dims}"
                raise type_refusal(f"{brief(x)} is not a tensor", cure=cure)
        if not set(old.dims) <= set(wide.dims) or old.dtype != wide.dtype:
            reason = f"{wide.node.type} cannot stand for {old.node.type}"
            cure = "keep the dtype and all dims, and add new ones"
            raise type_refusal(reason, old, wide, cure=cure)
    refuse_computed([t.node for t in tensors], [old.node for old in replace])
    roots, new = fit_sizes([t.node for t in tensors], {o.node: w.node for o, w in replace.items()})
    in_use = dims_in_use(roots)
    inner = hidden_names([dim for dim in extras(new.items()) if dim in in_use], in_use)
    found = widen_roots(roots, {old: rename_dims(wide, inner, old) for old, wide in new.items()})
    found = [require_equal_sizes(y, [wide for wide in new.values() if wide.needs]) for y in found]
    added = tuple(extras((old.node, wide.node) for old, wide in replace.items()))
    made = [named_back(y, inner) for y in found]
    wider: T = rebuild([wrap(first(y, added, t.dims)) for y, t in zip(made, tensors, strict=True)])
    return wider


def first(y: Node, added: Sequence[str], own: tuple[str, ...]) -> Node:
    """`y` with the dims `added` that it has before its own."""
    return in_order(y, [*[dim for dim in added if dim in y.type.dims and dim not in own], *own])


def as_in(xs: Iterable[Node], likes: Iterable[Node]) -> list[Node]:
    """Each of `xs` with its dims in the order of another."""
    return [in_order(x, like.type.dims) for x, like in zip(xs, likes, strict=True)]


def fit_sizes(
    roots: Sequence[Node], new: Mapping[Node, Node]
) -> tuple[Sequence[Node], Mapping[Node, Node]]:
    """A program and the replacements of some of its tensors, in the same sizes.

    An unknown size that only replaced tensors have becomes that of the new tensor. All other sizes
    are compared: refused if they differ, checked at the call if that is unknown.
    """
    kept = leaf.inputs_among(toposort(roots, new.keys()))
    given = {name for node in kept for size in node.type.shape for name in unknowns(size)}
    sizes: dict[str, Size] = {}
    for old, wide in new.items():
        for dim, size in old.type.sizes.items():
            for name in unknowns(size) - given:
                if size is unknown(name) and not isinstance(name, ValueOf):
                    sizes.setdefault(name, wide.type.size(dim))
    olds = tuple(new)
    changed = resize([*roots, *olds], sizes)
    pairs = zip(changed[len(roots) :], new.values(), strict=True)
    return changed[: len(roots)], {old: of_its_sizes(wide, old) for old, wide in pairs}


def of_its_sizes(wide: Node, old: Node) -> Node:
    """`wide` with the requirement that its dims have the sizes that they have in `old`."""
    for dim, size in old.type.sizes.items():
        if same(size, wide.type.size(dim)) is False:
            reason = f"dim {dim!r} has sizes {size} and {wide.type.size(dim)}"
            cure = "give both the same size, or build the program on an input of unknown size"
            raise refusal(reason, old, wide, cure=cure)
    return broadcast_to(wide, wide.type.sizes | old.type.sizes).node


def require_equal_sizes(y: Node, wides: Sequence[Node]) -> Node:
    """`y` with the requirement that the sizes of all `wides` agree, even if it reads none."""
    below = set(toposort([y])) if wides else ()
    for wide in wides:
        if wide not in below:
            nothing = named.any_(ops.not_equal(wide, wide), dims=wide.type.dims)
            y = ops.where(nothing, y, y)
    return y


def dims_in_use(roots: Iterable[Node]) -> set[str]:
    """Every dim in a program, including those in the bodies of its loops and branches."""
    types = [node.type for node in Graph((), tuple(roots)).every_node()]
    several = (type.items if isinstance(type, TupleType) else (type,) for type in types)
    return {dim for items in several for item in items for dim in item.dims or ()}


def rename_dims(x: Node, names: Mapping[str, str], old: Node | None = None) -> Node:
    """`x` with other names for those of its dims that have one, except the dims of `old`."""
    kept = old.type.dims if old else ()
    pairs = tuple((dim, names[dim]) for dim in x.type.dims if dim in names and dim not in kept)
    return named.rename(x, names=pairs) if pairs else x


def named_back(y: Node, inner: Mapping[str, str]) -> Node:
    """A result with the user's names of new dims; refused if it has such a dim already."""
    back = {name: dim for dim, name in inner.items()}
    for dim, name in inner.items():
        if {dim, name} <= y.type.sizes.keys():
            cure = f"rename the new dim {dim!r}"
            raise refusal(f"dim {dim!r} is not new: a result has it already", y, cure=cure)
    return rename_dims(y, back)


def extra(old: Node, new: Node) -> NewDims:
    """The dims of `new` that `old` lacks."""
    known = old.type.dims
    return {dim: size for dim, size in new.type.sizes.items() if dim not in known}


def extras(pairs: Iterable[tuple[Node, Node]]) -> NewDims:
    """The new dims of several pairs of tensors."""
    found: NewDims = {}
    for old, new in pairs:
        found |= extra(old, new)
    return found


def widen(x: Node, dims: NewDims) -> Node:
    """`x` repeated along the dims it lacks, which come first."""
    missing = {dim: size for dim, size in dims.items() if dim not in x.type.sizes}
    return broadcast_to(x, missing | x.type.sizes).node


def widen_roots(roots: Sequence[Node], new: Mapping[Node, Node]) -> list[Node]:
    """`roots` where the keys of `new` are replaced by tensors with more dims."""

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[trace.Rule, Node] | None:
        if inputs == node.inputs:
            return None
        if (rule := RULES.get(node.op)) is not None:
            return rule, rule(node, inputs, new)
        pairs = zip(node.inputs, inputs, strict=True)
        more = extras((old, x) for old, x in pairs if isinstance(x.type, TensorType))
        return widen_roots, Node(node.op, inputs, Attrs(node.op.axes.with_dims(node, more)))

    return list(transform(Graph((), tuple(roots)), visit, done=dict(new)).outputs)


def widen_silently(roots: Sequence[Node], new: Mapping[Node, Node]) -> list[Node]:
    """`widen_roots` of what is computed for a derivative alone, and so prints nothing."""
    return widen_roots(silent(Graph((), tuple(roots)), new).outputs, new)


def silent(graph: Graph, kept: Iterable[Node] = ()) -> Graph:
    """A graph that prints nothing, where some nodes stay as they are."""
    if named.print_ not in graph.ops():
        return graph

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[trace.Rule, Node]:
        return silent, inputs[0]

    done = {x: x for x in kept}
    return transform(graph, visit, at={named.print_}, bodies=silent, done=done)


def wide_derivative(node: Node, inputs: Sequence[Node], new: Mapping[Node, Node]) -> Node:
    """The derivative at each position: sources are repeated first, then outputs are rebuilt."""
    ys, wrt, _ = autodiff.group(node, node.inputs)
    new_ys, _, given = autodiff.group(node, inputs)
    dims = extras(zip(node.inputs, inputs, strict=True))
    if node.op is autodiff.pullback:
        refuse_sums(node, dims, ys, wrt)
    sources = repeat_source(wrt, dims, new, new_ys)
    xs = [sources[x] for x in wrt]
    made = [widen(y, dims) for y in widen_silently(ys, {**new, **sources})]
    likes = made if node.op is autodiff.pullback else xs
    moved = as_in([widen(t, dims) for t in given], likes)
    return Node(node.op, (*made, *xs, *moved), node.attrs)


def refuse_sums(node: Node, dims: NewDims, ys: Sequence[Node], xs: Sequence[Node]) -> None:
    """Refuses a cotangent that would be summed along one of its new dims."""
    for dim in dims:
        if any(dim in y.type.sizes for y in ys) and any(dim not in x.type.sizes for x in xs):
            raise Mixed(node, dim, "sums over it")


def repeat_source(
    wrt: Sequence[Node], dims: NewDims, new: Mapping[Node, Node], ys: Sequence[Node]
) -> dict[Node, Node]:
    """For each of `wrt` a source of the derivative: itself along `dims`, with a barrier of its own.

    Its replacement may be used in `ys` for other purposes as well; these do not count as the
    source.
    """
    found: dict[Node, Node] = {}
    used = set(toposort(ys))
    for x in toposort(wrt):
        if x in wrt:
            wide = widen(widen_roots([x], {**new, **found})[0], dims)
            barriers = (autodiff.barrier(wide, mark=mark) for mark in count())
            found[x] = next(barrier for barrier in barriers if barrier not in used)
            used.add(found[x])
    return found


# ---- loops and branches: their bodies, on params with more dims


def inner(param: Node, dims: NewDims) -> Node:
    """A param of a body with new dims, which come first."""
    return leaf.param(param.attrs["name"], widen(param, dims).type)


def operand_dims(node: Node, inputs: Sequence[Node]) -> list[NewDims]:
    """The new dims of each operand."""
    return [extra(x, y) for x, y in zip(node.inputs, inputs, strict=True)]


def body_with_new_dims(body: Graph, dims: Sequence[NewDims]) -> tuple[list[Node], list[Node]]:
    """The params of a body with new dims, and its outputs computed from them."""
    params = [inner(param, more) for param, more in zip(body.params, dims, strict=True)]
    return params, widen_roots(body.outputs, dict(zip(body.params, params, strict=True)))


def wide_loop(node: Node, inputs: Sequence[Node], new: Mapping[Node, Node]) -> Node:
    """If the condition gets dims, each element along them stops at its own step."""
    old, dims = Loop.of(node), operand_dims(node, inputs)
    n, dim = len(old.carries), old.settings.get("dim", "")
    if node.op is control.scan and any(dim in more for more in dims):
        raise Mixed(node, dim, "walks along it")
    step, each = Graph(old.params.all, old.roots), NewDims()
    while True:
        params, outputs = body_with_new_dims(step, dims)
        if old.condition is not None:
            each = extra(old.condition, outputs[-1])
        pairs = zip(old.updates, outputs, strict=False)
        grown = [own | extra(x, y) | each for own, (x, y) in zip(dims, pairs, strict=False)]
        if all(own.keys() == more.keys() for own, more in zip(dims, grown, strict=False)):
            break
        dims[:n] = grown
    own, given = old.params.split(params), old.params.split(inputs)
    condition = None if old.condition is None else outputs.pop()
    if each and condition is not None:
        outputs = for_members(condition, toposort(outputs), outputs)
    updates = [widen(y, more) for y, more in zip(outputs, dims[:n], strict=False)]
    if each and condition is not None:
        updates = [ops.where(condition, y, p) for y, p in zip(updates, own.carries, strict=True)]
        condition = named.any_(condition, dims=condition.type.dims)
    starts = [widen(x, more) for x, more in zip(given.carries, dims[:n], strict=True)]
    starts, updates = as_in(starts, own.carries), as_in(updates, own.carries)
    pairs = zip(given.sequences, own.sequences, strict=True)
    sequences = [in_order(x, (dim, *param.type.dims)) for x, param in pairs]
    return old._replace(
        carries=tuple(map(Carry, own.carries, starts, updates)),
        sequences=tuple(map(LoopOperand, own.sequences, sequences)),
        captured=tuple(map(LoopOperand, own.captured, as_in(given.captured, own.captured))),
        results=tuple(outputs[n:]),
        condition=condition,
    ).build()


def wide_switch(node: Node, inputs: Sequence[Node], new: Mapping[Node, Node]) -> Node:
    """If the index gets dims, all branches are computed, and one is chosen for each element."""
    index, *operands = inputs
    chosen_by, *dims = operand_dims(node, inputs)
    if chosen_by:
        all_made = []
        for b, branch in enumerate(node.attrs["branches"]):
            found = widen_roots(branch.outputs, dict(zip(branch.params, operands, strict=True)))
            chosen = ops.equal(index, full_like(index, b))
            all_made.append(for_members(chosen, toposort(found, operands), found))
        results = [list(map(wrap, column)) for column in zip(*all_made, strict=True)]
        return leaf.tuple_(*[one_of(wrap(index), column).node for column in results])
    made = [body_with_new_dims(branch, dims) for branch in node.attrs["branches"]]
    olds = [branch.outputs for branch in node.attrs["branches"]]
    columns: list[list[Node]] = []
    for i in range(len(node.type.items)):
        more = extras((old[i], outputs[i]) for old, (_, outputs) in zip(olds, made, strict=True))
        column = [widen(outputs[i], more) for _, outputs in made]
        columns.append(as_in(column, [column[0]] * len(column)))
    params = made[0][0]
    graphs = [Graph(tuple(params), outputs) for outputs in zip(*columns, strict=True)]
    return control.switch(index, *as_in(operands, params), branches=tuple(graphs))


def wide_call(node: Node, inputs: Sequence[Node], new: Mapping[Node, Node]) -> Node:
    params, outputs = body_with_new_dims(node.attrs["body"], operand_dims(node, inputs))
    body = Graph(tuple(params), tuple(outputs))
    return control.call(*as_in(inputs, params), body=body)


def wide_custom(node: Node, inputs: Sequence[Node], new: Mapping[Node, Node]) -> Node:
    """Every operand is repeated along all new dims, so that each position has its own cotangent."""
    dims = extras(zip(node.inputs, inputs, strict=True))
    body, rule, forward = (node.attrs[name] for name in ("body", "rule", "forward"))
    refuse_sums(node, dims, body.outputs, node.inputs)
    params, outputs = body_with_new_dims(body, [dims] * len(inputs))
    wide = [widen(y, dims) for y in outputs]
    results = [inner(y, dims) for y in rule.params[len(params) : len(params) + len(wide)]]
    first = tuple(range(len(dims)))
    return control.custom(
        *as_in([widen(x, dims) for x in inputs], params),
        body=Graph(tuple(params), tuple(as_in(wide, results))),
        rule=every_place(rule, dims, params),
        forward=None if forward is None else every_place(forward, dims, results),
        apart=tuple((*first, *(len(dims) + axis for axis in axes)) for axes in node.attrs["apart"]),
    )


def every_place(rule: Graph, dims: NewDims, likes: Sequence[Node]) -> Graph:
    """A rule on params that all have the new dims, its results as `likes` are."""
    params, made = body_with_new_dims(rule, [dims] * len(rule.params))
    back = as_in([widen(y, dims) for y in made], likes)
    return Graph(tuple(params), tuple(back))


BatchRule = Callable[[Node, Sequence[Node], Mapping[Node, Node]], Node]
RULES: dict[Op, BatchRule] = {
    autodiff.pullback: wide_derivative,
    autodiff.pushforward: wide_derivative,
    control.scan: wide_loop,
    control.while_loop: wide_loop,
    control.switch: wide_switch,
    control.call: wide_call,
    control.custom: wide_custom,
}
"""Ops whose results depend on more than operands and attrs: bodies, derivatives, several values."""
