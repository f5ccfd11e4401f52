"""Loops and branches: their derivatives are loops and branches whose bodies hold a lazy derivative.

The pullback of a loop walks its steps the other way: each pulls the cotangent of the new carry back
to the old one, through the body's whole Jacobian at that step's own carry, which the loop recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from graphcore.ir.dtypes import differentiable
from graphcore.ir.graph import Graph
from graphcore.ir.names import Hidden, apart
from graphcore.ir.node import Attrs, Node, full_like
from graphcore.ir.op import Op
from graphcore.ir.sizes import Expression, Size, unknown
from graphcore.ir.types import TensorType
from graphcore.ops import autodiff, control, leaf
from graphcore.ops.paths import between, leading_to
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

    def __init__(self, body: Graph) -> None:
        self.taken = {param.attrs["name"] for param in body.params}

    def like(self, prefix: str, nodes: Iterable[Node]) -> list[Node]:
        """A param for a value that goes with each of some nodes."""
        return [self.new(f"{prefix} {x.attrs.get('name', 'result')}", x.type) for x in nodes]

    def new(self, name: str, type: TensorType) -> Node:
        """A param of its own."""
        name = apart(name, self.taken)
        self.taken.add(name)
        return leaf.input_(name=name, dtype=type.dtype, shape=type.shape, dims=None)


def varying(body: Graph, sources: Iterable[int], carries: int) -> tuple[set[int], set[int]]:
    """Which params vary with those of `sources`, and which outputs, from step to step."""
    params = {i for i in sources if differentiable(body.params[i].type.dtype)}
    while True:
        path = between(body.outputs, [body.params[i] for i in params])
        outputs = {i for i, y in enumerate(body.outputs) if y in path}
        carried = {i for i in outputs if i < carries}
        if carried <= params:
            return params, outputs
        params |= carried


def counting(body: Graph, targets: Iterable[int], carries: int) -> tuple[set[int], set[int]]:
    """Which params the outputs `targets` vary with, and which outputs count for them.

    A carry varies with its start at least, as there may be no steps.
    """
    outputs = set(targets)
    while True:
        found = leading_to([body.outputs[i] for i in outputs])
        params = {i for i, x in enumerate(body.params) if x in found}
        carried = {i for i in params if i < carries}
        if carried <= outputs:
            return params | {i for i in outputs if i < carries}, outputs
        outputs |= carried


Item = TypeVar("Item")


def pick(items: Sequence[Item], indices: Iterable[int]) -> list[Item]:
    """The items at some places."""
    return [items[i] for i in indices]


def zero_for(value: Node | None, like: Node) -> Node:
    """A cotangent or tangent, zeros where it is zero."""
    return full_like(like, 0) if value is None else value


def results(node: Node) -> list[Node]:
    """The values of a node of several."""
    return [node[i] for i in range(len(node.type.items))]


# ---- loops


def loop_pullback(
    node: Node, cts: Several, wanted: Sequence[bool], history: list[Node], length: Size
) -> Several:
    """The loop that walks `node`'s steps backwards, from their recorded carries.

        ct[t] = pullback(carry[t] -> carry[t + 1], y[t]; ct[t + 1], ct of y[t])

    What is captured gets the sum of its shares of all steps.
    """
    body, n = node.attrs["body"], node.attrs["carries"]
    m = node.attrs.get("sequences", 0)
    sources = [i for i, use in enumerate(wanted) if use]
    varied, made = varying(body, sources, n)
    useful, counted = counting(body, [i for i, ct in enumerate(cts) if ct is not None], n)
    active = varied & useful
    carries = sorted(i for i in active if i < n)
    walked = sorted(i for i in active if n <= i < n + m and wanted[i])
    captured = sorted(i for i in active if i >= n + m and wanted[i])
    steps = sorted(i for i in made & counted if i >= n and cts[i] is not None)
    new = Params(body)
    ct_carries = new.like("ct of", pick(body.params, carries))
    totals = new.like("ct of", pick(body.params, captured))
    ct_steps = [new.new(f"ct of result {i - n}", body.outputs[i].type) for i in steps]
    ys = pick(body.outputs, (*carries, *steps))
    wrt = pick(body.params, (*carries, *walked, *captured))
    pulled = autodiff.pullback(*ys, *wrt, *ct_carries, *ct_steps, ys=len(ys), wrt=len(wrt))
    shares = [pulled[i] for i in range(len(wrt))]
    first, last = len(carries), len(carries) + len(walked)
    sums = [total + share for total, share in zip(totals, shares[last:], strict=True)]
    inner = body.params
    backward = Graph(
        (*ct_carries, *totals, *inner[:n], *inner[n : n + m], *ct_steps, *inner[n + m :]),
        (*shares[:first], *sums, *shares[first:last]),
    )
    back = control.scan(
        *[zero_for(cts[i], node.inputs[i]) for i in carries],
        *[full_like(node.inputs[i], 0) for i in captured],
        *history,
        *node.inputs[n : n + m],
        *[ct for i in steps if (ct := cts[i]) is not None],
        *node.inputs[n + m :],
        body=backward,
        carries=len(carries) + len(captured),
        sequences=n + m + len(steps),
        length=length,
        reverse=not node.attrs.get("reverse", False),
        dim=None,
        checkpoint=(),
    )
    found = dict(zip((*carries, *captured, *walked), results(back), strict=True))
    return [found.get(i) for i in range(len(node.inputs))]


def scan_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    if node.attrs["checkpoint"]:
        return call_pullback(in_chunks(node), cts, wanted)
    body, n = node.attrs["body"], node.attrs["carries"]
    recording = Graph(body.params, (*body.outputs, *body.params[:n]))
    recorded = Node(node.op, node.inputs, Attrs(node.attrs | {"body": recording}))
    history = results(recorded)[len(body.outputs) :]
    return loop_pullback(node, cts, wanted, history, node.attrs["length"])


def while_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    """The number of steps is known once the loop has run; it carries no derivative."""
    body, n = node.attrs["body"], node.attrs["carries"]
    trips = number_of_trips(node) if node.attrs["trips"] is None else node.attrs["trips"]
    recording = Graph(body.params, (*body.outputs, *body.params[:n]))
    attrs = Attrs(node.attrs | {"body": recording, "trips": trips})
    history = results(Node(node.op, node.inputs, attrs))[len(body.outputs) :]
    return loop_pullback(node, cts, wanted, history, trips)


_trips: WeakKeyDictionary[Node, Size] = WeakKeyDictionary()
_named: WeakValueDictionary[Hidden, Expression] = WeakValueDictionary()


def number_of_trips(loop: Node) -> Size:
    """The unknown size that stands for the number of steps of one loop."""
    if loop not in _trips:
        names = (Hidden(f"trips{i or ''}") for i in count())
        name = next(name for name in names if name not in _named)
        _trips[loop] = _named[name] = unknown(name)
    return _trips[loop]


def loop_pushforward(node: Node, tangents: Several) -> Several:
    """The loop that carries the tangents along."""
    body, n = node.attrs["body"], node.attrs["carries"]
    m = node.attrs.get("sequences", 0)
    given = [i for i, t in enumerate(tangents) if t is not None]
    varied, made = varying(body, given, n)
    carries = sorted(i for i in varied if i < n)
    walked = [i for i in given if n <= i < n + m]
    captured = [i for i in given if i >= n + m]
    steps = sorted(i for i in made if i >= n)
    new = Params(body)
    moved, stepped, held = (
        new.like("tangent of", pick(body.params, some)) for some in (carries, walked, captured)
    )
    ys = pick(body.outputs, (*carries, *steps))
    wrt = pick(body.params, (*carries, *walked, *captured))
    pushed = autodiff.pushforward(*ys, *wrt, *moved, *stepped, *held, ys=len(ys), wrt=len(wrt))
    found = [pushed[i] for i in range(len(ys))]
    inner, outer = body.params, node.inputs
    params = (*inner[:n], *moved, *inner[n : n + m], *stepped, *inner[n + m :], *held)
    forward = Graph(
        params,
        (*body.outputs[:n], *found[: len(carries)], *body.outputs[n:], *found[len(carries) :]),
    )
    attrs = dict(node.attrs) | {"body": forward, "carries": n + len(carries)}
    if m:
        attrs["sequences"] = m + len(walked)
    if "predicate" in attrs:
        attrs["predicate"] = Graph(params, attrs["predicate"].outputs)
    loop = node.op(
        *outer[:n],
        *[zero_for(tangents[i], outer[i]) for i in carries],
        *outer[n : n + m],
        *[t for i in walked if (t := tangents[i]) is not None],
        *outer[n + m :],
        *[t for i in captured if (t := tangents[i]) is not None],
        **attrs,
    )
    places = dict(zip(carries, range(n, n + len(carries)), strict=True))
    after = n + len(carries) + len(body.outputs) - n
    places |= dict(zip(steps, range(after, after + len(steps)), strict=True))
    return [loop[places[i]] if i in places else None for i in range(len(node.type.items))]


# ---- branches and calls


def pulled_back(body: Graph, cts: Several, wanted: Sequence[bool]) -> tuple[Graph, list[int]]:
    """The body that pulls cotangents back, its new params last, and the inputs it answers for."""
    given = [i for i, ct in enumerate(cts) if ct is not None]
    asked = [i for i, x in enumerate(body.params) if wanted[i] and differentiable(x.type.dtype)]
    new = Params(body)
    ct_params = [new.new(f"ct of result {i}", body.outputs[i].type) for i in given]
    ys, wrt = pick(body.outputs, given), pick(body.params, asked)
    pulled = autodiff.pullback(*ys, *wrt, *ct_params, ys=len(ys), wrt=len(wrt))
    return Graph((*body.params, *ct_params), tuple(pulled[i] for i in range(len(wrt)))), asked


def pushed_forward(body: Graph, tangents: Several) -> Graph:
    """The body that pushes tangents forward, its new params last."""
    given = [i for i, t in enumerate(tangents) if t is not None]
    moving = Params(body).like("tangent of", pick(body.params, given))
    ys, wrt = body.outputs, pick(body.params, given)
    pushed = autodiff.pushforward(*ys, *wrt, *moving, ys=len(ys), wrt=len(wrt))
    return Graph((*body.params, *moving), tuple(pushed[i] for i in range(len(ys))))


def present(values: Several) -> list[Node]:
    """Those that are not zero."""
    return [value for value in values if value is not None]


def switch_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    made = [pulled_back(body, cts, wanted[1:]) for body in node.attrs["branches"]]
    branches, asked = tuple(body for body, _ in made), made[0][1]
    back = control.switch(*node.inputs, *present(cts), branches=branches)
    found = dict(zip(asked, results(back), strict=True))
    return [None, *[found.get(i) for i in range(len(node.inputs) - 1)]]


def switch_pushforward(node: Node, tangents: Several) -> Several:
    branches = tuple(pushed_forward(body, tangents[1:]) for body in node.attrs["branches"])
    return results(control.switch(*node.inputs, *present(tangents[1:]), branches=branches))


def call_pullback(node: Node, cts: Several, wanted: Sequence[bool]) -> Several:
    body, asked = pulled_back(node.attrs["body"], cts, wanted)
    back = control.call(*node.inputs, *present(cts), body=body)
    found = dict(zip(asked, results(back), strict=True))
    return [found.get(i) for i in range(len(node.inputs))]


def call_pushforward(node: Node, tangents: Several) -> Several:
    body = pushed_forward(node.attrs["body"], tangents)
    return results(control.call(*node.inputs, *present(tangents), body=body))


LOOPS: dict[Op, Rules] = {
    control.scan: Rules(scan_pullback, loop_pushforward),
    control.while_loop: Rules(while_pullback, loop_pushforward),
    control.switch: Rules(switch_pullback, switch_pushforward),
    control.call: Rules(call_pullback, call_pushforward),
}
