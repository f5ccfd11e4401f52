"""Python functions as closed graphs: operands become params, tensors from outside are captured."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple

from graphcore.ir import Graph, Node, TensorType, Trait, toposort
from graphcore.ir.names import apart
from graphcore.ir.transform import substitute
from graphcore.ops import autodiff, leaf

from .base import wrap
from .trees import flatten, paths
from .values_as_sizes import refuse_computed
from .weak import kind_of, mark

serial_numbers = count()


def placeholder(name: str, type: TensorType) -> Node:
    """A param of a function being traced, unlike any other so that traces may be nested."""
    trace = next(serial_numbers)
    return leaf.input_(name=name, dtype=type.dtype, shape=type.shape, dims=type.dims, trace=trace)


class Given(NamedTuple):
    """The operands of a function, and the params that replace them, in the same structure."""

    nodes: list[Node]
    names: list[str]
    params: list[Node]
    state: tuple[Any, ...]


def traced_operands(operands: tuple[Any, ...]) -> Given:
    """Operands of a function to be traced."""
    tensors, rebuild = flatten(operands, "operands")
    names = [name for name, _ in paths(operands, "operand")]
    nodes = [x.node for x in tensors]
    params = [placeholder(name, x.type) for name, x in zip(names, nodes, strict=True)]
    for param, x in zip(params, nodes, strict=True):
        if kind_of(x) is not None:
            mark(param)
    return Given(nodes, names, params, rebuild(map(wrap, params)))


class Closed(NamedTuple):
    """Graphs with the same params: those of the functions, then all captured tensors."""

    graphs: tuple[Graph, ...]
    captured: tuple[Node, ...]


def close(
    names: Sequence[str],
    params: Sequence[Node],
    *outputs: Sequence[Node],
    made: Collection[Node] = (),
) -> Closed:
    """A graph for each list of outputs; equal programs have equal params.

    Nodes that do not depend on the params are captured, unless they were `made` inside, or have an
    effect that was written inside.
    """
    refuse_computed([y for ys in outputs for y in ys], params)
    computed = {x for x in made if x.op is not leaf.input_ and not is_free(x)}
    effects = effects_inside(params, [y for ys in outputs for y in ys])
    inside = between_params([*params, *effects], [y for ys in outputs for y in ys], computed)
    captured = captures([y for ys in outputs for y in ys], inside)
    in_use: set[str] = set()
    new: dict[Node, Node] = {}
    inner = [(captured_name(x), x) for x in captured]
    for name, node in [*zip(names, params, strict=True), *inner]:
        name = apart(name, in_use)
        in_use.add(name)
        new[node] = leaf.param(name, node.type)
    own = tuple(new[x] for x in (*params, *captured))
    return Closed(tuple(Graph(own, substitute(ys, new)) for ys in outputs), tuple(captured))


def effects_inside(params: Iterable[Node], outputs: Sequence[Node]) -> list[Node]:
    """The nodes with an effect that were written inside a function, after its params."""
    first = min((x.attrs["trace"] for x in params if "trace" in x.attrs), default=None)
    if first is None:
        return []
    found = [x for x in toposort(outputs) if Trait.EFFECT in x.op.traits]
    return [x for x in found if x.attrs["number"] > first]


def differentiates(params: Sequence[Node], outputs: Sequence[Node]) -> bool:
    """Whether a function with these params and outputs takes a derivative inside."""
    return any(node.op in autodiff.LAZY for node in between_params(params, outputs, ()))


def captured_name(node: Node) -> str:
    """The name of a captured value inside the graph."""
    return str(node.attrs["name"]) if node.op is leaf.input_ else node.op.name


def is_free(node: Node) -> bool:
    """Whether a node is known without operands, and as cheap inside of a body as outside."""
    return Trait.FREE in node.op.traits


def between_params(
    params: Iterable[Node], outputs: Sequence[Node], made: Iterable[Node]
) -> set[Node]:
    """Nodes to compute inside: all that depend on params or are differentiated."""
    order = toposort(outputs)
    inside = dependents(order, params) | set(made)
    seen: set[Node] = set()
    while lazy := [node for node in order if node.op in autodiff.LAZY and node in inside - seen]:
        seen.update(lazy)
        for node in lazy:
            inside |= nodes_between(node)
    return inside


def nodes_between(lazy: Node) -> set[Node]:
    """The nodes between the sources of a lazy derivative and its outputs."""
    ys, wrt, _ = autodiff.group(lazy, lazy.inputs)
    return dependents(toposort(ys), wrt).difference(wrt)


def dependents(order: Iterable[Node], on: Iterable[Node]) -> set[Node]:
    """The nodes `on`, and those of `order`, inputs first, that depend on them."""
    found = set(on)
    for node in order:
        if not found.isdisjoint(node.inputs):
            found.add(node)
    return found


def varying(outputs: Sequence[Node]) -> set[Node]:
    """The nodes that depend on an input or on a param."""
    order = toposort(outputs)
    return dependents(order, leaf.inputs_among(order))


def captures(outputs: Sequence[Node], inside: set[Node]) -> list[Node]:
    """The values from outside that are used inside, each once; constants are not captured."""
    used = [x for node in toposort(outputs) if node in inside for x in node.inputs]
    return list(dict.fromkeys(x for x in (*used, *outputs) if x not in inside and not is_free(x)))
