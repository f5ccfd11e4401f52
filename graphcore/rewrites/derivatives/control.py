"""Loops and branches: their derivatives are loops and branches whose bodies hold a lazy derivative.

The pullback of a loop takes its steps in reverse: each pulls the cotangent of the new carry back to
the old one, through the body's whole Jacobian at that step's own carry, which the loop recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from graphcore.analysis.paths import Paths
from graphcore.ir import Expression, Graph, Hidden, Node, Op, Size, TensorType, full_like
from graphcore.ir.dtypes import differentiable
from graphcore.ir.graph import with_bodies
from graphcore.ir.names import apart
from graphcore.ir.sizes import unknown
from graphcore.ir.transform import transform
from graphcore.ops import control, leaf, tensor
from graphcore.ops.autodiff import pull, push
from graphcore.ops.control import Carry, Groups, Loop, LoopOperand
from graphcore.ops.leaf import values
from graphcore.rewrites.checkpoint import in_chunks

Several = Sequence[Node | None]
"""One node for each of several values; None where it is zero."""


class Rules(NamedTuple):
    """Both modes of an op of several results."""

    pullback: Callable[[Node, Several, Sequence[bool]], Several]
    """(node, cotangents of its results, which inputs are wanted) -> cotangents of its inputs"""
    pushforward: Callable[[Node, Several], Several]
    """(node, tangents of its inputs) -> tangents of its results"""


class Params:
    """New params of a body, named apart from those it has."""

    def __init__(self, params: Iterable[Node]) -> None:
        self.in_use = {param.attrs["name"] for param in params}

    def like(self, prefix: str, nodes: Iterable[Node]) -> list[Node]:
        """A param for a value that goes with each of some nodes."""
        return [self.new(f"{prefix} {x.attrs.get('name', 'result')}", x.type) for x in nodes]

    def new(self, name: str, type: TensorType) -> Node:
        """A param of its own."""
        name = apart(name, self.in_use)
        self.in_use.add(name)
        return leaf.param(name, type)


Item = TypeVar("Item")


def pick(items: Sequence[Item], indices: Iterable[int]) -> list[Item]:
    """The items at some indices."""
    return [items[i] for i in indices]


def zero_for(value: Node | None, like: Node) -> Node:
    """A cotangent or tangent, zeros where it is zero."""
    return full_like(like, 0) if value is None else value


def present(values: Several) -> list[Node]:
    """Those that are not zero."""
    return [value for value in values if value is not None]


def indices_of_present(values: Several) -> list[int]:
    """The indices of those that are not zero."""
    return [i for i, value in enumerate(values) if value is not None]


def place_values(indices: Iterable[int], made: Iterable[Node], count: int) -> Several:
    """`count` values: those made, at their indices, and zeros."""
    found = dict(zip(indices, made, strict=True))
    return [found.get(i) for i in range(count)]


# ---- what a derivative computes again


def silent(graph: Graph) -> Graph:
    """A graph that prints nothing: its values have been printed, as they were computed first."""
    if tensor.print_ not in graph.ops():
        return graph
    return transform(graph, lambda node, xs: (silent, xs[0]), at={tensor.print_}, bodies=silent)


def silent_loop(node: Node) -> Loop:
    """A loop whose steps print nothing."""
    return Loop.of(Node(node.op, node.inputs, with_bodies(node, silent)))


# ---- loops


def loop_pullback(
    node: Node, cts: Several, wanted: Sequence[bool], history: list[Node], length: Size
) -> Several:
    """The loop that takes the steps of `node` in reverse, from their recorded carries.

        ct[t] = pullback(carry[t] -> carry[t + 1], y[t]; ct[t + 1], ct of y[t])

    The cotangent of a captured value is the sum of those of all steps.
    """
    loop = silent_loop(node)
    indices, n = loop.params.split(range(len(node.inputs))), len(loop.carries)
    varying, made = Paths().through(node)
    asked = {i for i, use in enumerate(wanted) if use}
    useful = set[int]().union(*pick(made, indices_of_present(cts)))
    active = {i for i in useful if varying[i] & asked}
    carries = [i for i in indices.carries if i in active]
    sequences = [i for i in indices.sequences if i in active and wanted[i]]
    captured = [i for i in indices.captured if i in active and wanted[i]]
    steps = [i for i in indices_of_present(cts) if i >= n and made[i] & asked]
    new, params = Params(loop.params.all), loop.params.all
    ct_carries = new.like("ct of", pick(params, carries))
    totals = new.like("ct of", pick(params, captured))
    ct_steps = [new.new(f"ct of result {i - n}", loop.outputs[i].type) for i in steps]
    ys = pick(loop.outputs, (*carries, *steps))
    wrt = Groups(*[tuple(pick(params, some)) for some in (carries, sequences, captured)])
    found = wrt.split(pull(ys, wrt.all, [*ct_carries, *ct_steps]))
    starts = [zero_for(cts[i], node.inputs[i]) for i in carries]
    zeros = [full_like(node.inputs[i], 0) for i in captured]
    sums = [total + ct for total, ct in zip(totals, found.captured, strict=True)]
    recorded = map(LoopOperand, loop.params.carries, history)
    given = map(LoopOperand, ct_steps, present([cts[i] for i in steps]))
    back = Loop(
        control.scan,
        {
            "length": length,
            "reverse": not loop.settings.get("reverse", False),
            "dim": None,
            "checkpoint": (),
        },
        (*map(Carry, ct_carries, starts, found.carries), *map(Carry, totals, zeros, sums)),
        (*recorded, *loop.sequences, *given),
        loop.captured,
        found.sequences,
    ).build()
    return place_values((*carries, *captured, *sequences), values(back), len(node.inputs))


def record_carries(node: Node, **settings: Any) -> list[Node]:
    """The carries that each step of a loop starts from."""
    loop = Loop.of(node)
    results = (*loop.results, *loop.params.carries)
    recorded = loop._replace(results=results, settings={**loop.settings, **settings}).build()
    return values(recorded)[len(node.type.items) :]


def scan_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    if node.attrs["checkpoint"]:
        return call_pullback(in_chunks(node), cts, wanted)
    return loop_pullback(node, cts, wanted, record_carries(node), node.attrs["length"])


def while_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    """The number of steps is known once the loop has run; it carries no derivative."""
    trips = trip_count(node) if node.attrs["trips"] is None else node.attrs["trips"]
    return loop_pullback(node, cts, wanted, record_carries(node, trips=trips), trips)


_trips: WeakKeyDictionary[Node, Size] = WeakKeyDictionary()
_named: WeakValueDictionary[Hidden, Expression] = WeakValueDictionary()


def trip_count(loop: Node) -> Size:
    """The unknown size that stands for the number of steps of a loop."""
    if loop not in _trips:
        names = (Hidden(f"trips{i or ''}") for i in count())
        name = next(name for name in names if name not in _named)
        _trips[loop] = _named[name] = unknown(name)
    return _trips[loop]


def loop_pushforward(node: Node, tangents: Several) -> Several:
    """The loop that carries the tangents along."""
    loop = silent_loop(node)
    indices, n = loop.params.split(range(len(node.inputs))), len(loop.carries)
    varying, made = Paths().through(node)
    moving = {*indices_of_present(tangents)}
    carries = [i for i in indices.carries if varying[i] & moving]
    sequences, captured = (
        [i for i in some if tangents[i] is not None]
        for some in (indices.sequences, indices.captured)
    )
    steps = [i for i, some in enumerate(made) if i >= n and some & moving]
    new, params = Params(loop.params.all), loop.params.all
    moved, stepped, held = (
        new.like("tangent of", pick(params, some)) for some in (carries, sequences, captured)
    )
    ys = pick(loop.outputs, (*carries, *steps))
    wrt = pick(params, (*carries, *sequences, *captured))
    found = push(ys, wrt, [*moved, *stepped, *held])
    starts = [zero_for(tangents[i], node.inputs[i]) for i in carries]
    given = [present(pick(tangents, some)) for some in (sequences, captured)]
    forward = loop._replace(
        carries=(*loop.carries, *map(Carry, moved, starts, found)),
        sequences=(*loop.sequences, *map(LoopOperand, stepped, given[0])),
        captured=(*loop.captured, *map(LoopOperand, held, given[1])),
        results=(*loop.results, *found[len(carries) :]),
    ).build()
    both = values(forward)
    last = both[n : n + len(carries)]
    each = both[len(both) - len(steps) :]
    return place_values((*carries, *steps), (*last, *each), len(node.type.items))


# ---- branches and calls


def pulled_back(body: Graph, cts: Several, wanted: Sequence[bool]) -> tuple[Graph, list[int]]:
    """The body that pulls cotangents back, its new params last, and the inputs of its results.

    It holds cotangents that are one number, as the 1 of a gradient is.
    """
    body, given = silent(body), indices_of_present(cts)
    asked = [i for i, x in enumerate(body.params) if wanted[i] and differentiable(x.type.dtype)]
    new = Params(body.params)
    flowing = [
        ct if ct.op is leaf.full else new.new(f"ct of result {i}", ct.type)
        for i, ct in zip(given, present(cts), strict=True)
    ]
    made = pull(pick(body.outputs, given), pick(body.params, asked), flowing)
    ct_params = [ct for ct in flowing if ct.op is not leaf.full]
    return Graph((*body.params, *ct_params), tuple(made)), asked


def operands_of_pullback(node: Node, cts: Several) -> list[Node]:
    """The operands of a node of bodies that pull cotangents back."""
    return [*node.inputs, *[ct for ct in present(cts) if ct.op is not leaf.full]]


def pushed_forward(body: Graph, given: Sequence[int]) -> Graph:
    """The body that pushes tangents of some params forward, its new params last."""
    body = silent(body)
    wrt = pick(body.params, given)
    moving = Params(body.params).like("tangent of", wrt)
    return Graph((*body.params, *moving), tuple(push(body.outputs, wrt, moving)))


def switch_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    made = [pulled_back(body, cts, wanted[1:]) for body in node.attrs["branches"]]
    branches, asked = tuple(body for body, _ in made), made[0][1]
    back = control.switch(*operands_of_pullback(node, cts), branches=branches)
    return [None, *place_values(asked, values(back), len(node.inputs) - 1)]


def switch_pushforward(node: Node, tangents: Several) -> Several:
    given = indices_of_present(tangents[1:])
    branches = tuple(pushed_forward(body, given) for body in node.attrs["branches"])
    return values(control.switch(*node.inputs, *present(tangents[1:]), branches=branches))


def call_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    body, asked = pulled_back(node.attrs["body"], cts, wanted)
    back = control.call(*operands_of_pullback(node, cts), body=body)
    return place_values(asked, values(back), len(node.inputs))


def call_pushforward(node: Node, tangents: Several) -> Several:
    body = pushed_forward(node.attrs["body"], indices_of_present(tangents))
    return values(control.call(*node.inputs, *present(tangents), body=body))


LOOPS: dict[Op, Rules] = {
    control.scan: Rules(scan_pullback, loop_pushforward),
    control.while_loop: Rules(while_pullback, loop_pushforward),
    control.switch: Rules(switch_pullback, switch_pushforward),
    control.call: Rules(call_pullback, call_pushforward),
}
