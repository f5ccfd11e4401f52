"""The inputs of a program: tensors made by `gc.tensor`, and inner ones that become inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from graphcore.backends.argument_checks import join_names
from graphcore.backends.boundary import Requirement, requirements
from graphcore.frontend.core.base import refusal, type_refusal
from graphcore.frontend.core.tracing import varying
from graphcore.frontend.core.values_as_sizes import computed_sizes
from graphcore.ir import INT, Graph, Node, TensorType, toposort
from graphcore.ir.graph import bodies_of, unknowns_of
from graphcore.ir.name_text import show_dim
from graphcore.ir.names import Computed, ValueOf, apart
from graphcore.ir.provenance import inheriting
from graphcore.ir.sizes import unknown, unknowns
from graphcore.ir.transform import substitute
from graphcore.ops import autodiff, control, leaf

Absent = Callable[[str], tuple[str, str]]
"""The reason and the cure, for an input of a name that is missing."""


def program(params: Sequence[Node], outputs: Sequence[Node], absent: Absent) -> Graph:
    """The graph from `params` to `outputs`, as a user needs it.

    Inner tensors among the params become inputs, and no longer depend on others. `absent` says that
    an input is missing, and the cure, from its name.
    """
    names: dict[str, Node] = {}
    for node in leaf.inputs_among(params):
        name = node.attrs["name"]
        if name in names:
            mend = "give each input a name of its own, and list it once"
            raise refusal(f"two inputs are named '{show_dim(name)}'", names[name], node, cure=mend)
        names[name] = node
    new = replacements(params, names)
    for node in new:
        refuse_derivatives(node, outputs)
    inputs = tuple(new.get(node, node) for node in params)
    results = with_sizes(outputs)
    graph = Graph(inputs, substitute(results, new) if new else results)
    for node in leaf.inputs_among(graph.nodes()):
        if node not in inputs:
            name = show_dim(node.attrs["name"])
            if "trace" in node.attrs:
                mend = "let the function return the tensors that are needed outside of it"
                reason = f"'{name}' is known only inside the function that was given it"
                raise refusal(reason, node, cure=mend)
            reason, mend = absent(name)
            raise refusal(reason, node, cure=mend)
    return graph


def as_size(name: Computed) -> Node:
    """The node after which the size of this name is known."""
    with inheriting(name.node):
        return leaf.as_size(name.node, size=unknown(name))


def with_sizes(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """The outputs, the first of which is given once all computed sizes are."""
    return after_sizes(outputs, [as_size(x) for x in computed_sizes(outputs) if x.node is not None])


def after_sizes(outputs: Sequence[Node], sizes: Sequence[Node]) -> tuple[Node, ...]:
    """The outputs, the first of which is given once sizes are computed and found to fit."""
    if not sizes or not outputs:
        return tuple(outputs)
    names = {name for node in sizes for name in node.attrs["size"].unknowns}
    needs = [
        (words(required), *required.need[1:4])
        for required in requirements(Graph((), tuple(outputs)))
        if names & (unknowns(required.need.left) | unknowns(required.need.right))
    ]
    first, *others = outputs
    with inheriting(first):
        return leaf.after(first, *sizes, needs=tuple(needs)), *others


def words(required: Requirement) -> str:
    """What an op needs of two sizes, in words."""
    need = required.need
    shown = f"{need.left} {need.relation} {need.right} for dim '{show_dim(need.dim)}'"
    names = [name for size in (need.left, need.right) for name in sorted(unknowns(size))]
    lines = [f"at {x.node.origin}" for x in names if isinstance(x, Computed) and x.node is not None]
    where = f" (computed {' and '.join(dict.fromkeys(lines))})" if lines else ""
    return f"{required.op} at {required.origin} needs {shown}{where}"


def inputs_by_name(outputs: Sequence[Node], known: Iterable[Node] = ()) -> dict[str, Node]:
    """The inputs that outputs need; those that only their values as sizes need are `known` ones."""
    by_name = {str(x.attrs["name"]): x for x in leaf.inputs_among(known)}
    sizes = [name.node for name in computed_sizes(outputs) if name.node is not None]
    graph = Graph((), (*outputs, *sizes))
    found = {str(node.attrs["name"]): node for node in leaf.inputs_among(graph.nodes())}
    read = [name for x in graph.every_node() for name in sorted(unknowns_of(x), key=repr)]
    for size in dict.fromkeys(read):
        if isinstance(size, ValueOf):
            any_integer = leaf.param(str(size), TensorType(INT, (), ()))
            found.setdefault(str(size), by_name.get(str(size), any_integer))
    return found


def not_listed(params: Sequence[Node]) -> Absent:
    """The words for an input that is missing in a list."""
    names = [x.attrs["name"] for x in leaf.inputs_among(params)]
    cure = f"add it to the list of inputs ({join_names(names) or 'now empty'})"
    return lambda name: (f"the outputs need input '{name}', which is not among the inputs", cure)


def replacements(params: Sequence[Node], names: Iterable[str]) -> dict[Node, Node]:
    """The input that takes the place of each inner tensor among the params."""
    in_use = set(names)
    found: dict[Node, Node] = {}
    for node in params:
        if node.op is leaf.input_:
            continue
        if node in found:
            raise refusal("a tensor is listed twice", node, cure="list it once")
        if node not in varying([node]):
            mend = (
                "declare it: gc.tensor(name, dims); for a tree of constants, such as the state of "
            )
            mend += "an optimizer, write @gc.function(params=params, state=adam.init(params))"
            raise type_refusal(f"{node.op.said}(...) is a constant, not an input", node, cure=mend)
        name = apart(f"{node.op.said}(...)", in_use)
        in_use.add(name)
        type = node.type
        with inheriting(node.origin):
            found[node] = leaf.input_(name=name, dtype=type.dtype, shape=type.shape, dims=type.dims)
    return found


def refuse_derivatives(given: Node, outputs: Sequence[Node]) -> None:
    """Refuse derivatives that would pass through an inner tensor."""
    above = varying([given])
    for node in toposort(outputs):
        for source in sources(node):
            below = varying([source])
            if given not in below and not above.isdisjoint(below):
                asked = f"{node.op.said} at {node.origin}"
                reason = f"{asked} is with respect to values from which an inner input is computed"
                mend = "take it with respect to the inner tensor, or list only gc.tensor's inputs"
                raise refusal(reason, given, source, cure=mend)


def sources(node: Node) -> Iterator[Node]:
    """The tensors that a node may differentiate with respect to, or that its body reads."""
    if node.op in autodiff.LAZY:
        yield from autodiff.group(node, node.inputs)[1]
    elif node.op is control.call or holds_derivative(node):
        yield from node.inputs


def holds_derivative(node: Node) -> bool:
    """Whether the body of a loop or branch differentiates."""
    return any(inner.op in autodiff.LAZY for body in bodies_of(node) for inner in body.every_node())
