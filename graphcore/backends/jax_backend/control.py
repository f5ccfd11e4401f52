"""Leaves, loops, branches and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from graphcore.backends.failing import SizeError
from graphcore.ir import Graph, Node, Trait
from graphcore.ops import control, leaf

from .entries import Value, entry
from .failures import SITE, Tracing, can_fail, has_every_branch

Values = Sequence[Value]


# ---- leaves


@entry(leaf.constant)
def constant(cx: Tracing, node: Node) -> Value:
    return jnp.asarray(node.attrs["value"].array)


@entry(leaf.full)
def full(cx: Tracing, node: Node) -> Value:
    return jnp.full(cx.shape(node.type), node.attrs["value"].array)


@entry(leaf.iota)
def iota(cx: Tracing, node: Node) -> Value:
    return jnp.arange(cx.size(node.attrs["size"])).astype(node.type.dtype)


@entry(leaf.extent)
def extent(cx: Tracing, node: Node) -> Value:
    return jnp.asarray(cx.found.count(node.attrs["size"])).astype(node.type.dtype)


@entry(leaf.as_size)
def as_size(cx: Tracing, node: Node, x: Value) -> Value:
    """A value whose size the host has found by now: other values of that size must equal it."""
    (name,) = node.attrs["size"].unknowns
    known = cx.found.count(node.attrs["size"])
    words = lambda left, right: (
        f"the size {name} is computed twice, but they are {left} and {right}"
    )
    cx.note(node, x != known, cx.site(node, kind=SizeError)._replace(reason=words), known, x)
    return x


@entry(leaf.after)
def after(cx: Tracing, node: Node, x: Value, *sizes: Value) -> Value:
    """A value, once sizes are known and fit: the host has checked that before."""
    return x


# ---- loops


def step_of(cx: Tracing, node: Node, graph: Graph, given: Values, record: Value, t: Value) -> Any:
    """The outputs of a body in a step of a loop, and the record after it."""
    before, cx.failures.record = cx.failures.record, record
    cx.failures.loops.append(node)
    made = cx.body(graph, given)
    cx.failures.stepped(record, t)
    cx.failures.loops.pop()
    record, cx.failures.record = cx.failures.record, before
    return made, record


@entry(control.scan)
def scan(cx: Tracing, node: Node, *xs: Value) -> Values:
    attrs = node.attrs
    n, m, body, length = (attrs[k] for k in ("carries", "sequences", "body", "length"))
    carries, sequences, captured = xs[:n], xs[n : n + m], xs[n + m :]

    def compute(carries: Values, record: Value, elements: Values, t: Value) -> Any:
        made, record = step_of(cx, node, body, [*carries, *elements, *captured], record, t)
        return tuple(made[:n]), record, tuple(made[n:])

    if cx.found.is_padded(length):
        return scan_counted(cx, node, carries, sequences, compute)
    fails, whole = can_fail(body), cx.failures.record

    def step(carry: Any, given: Any) -> Any:
        (carries, record), (t, elements) = carry, given
        carries, record, made = compute(carries, record if fails else whole, elements, t)
        return (carries, record if fails else None), made

    steps = cx.size(length)
    (carries, record), stacked = lax.scan(
        step,
        (carries, whole if fails else None),
        (lax.iota(jnp.int64, steps) if fails else None, sequences),
        length=steps,
        reverse=attrs["reverse"],
    )
    if fails:
        cx.failures.record = record
    return *carries, *stacked


def scan_counted(
    cx: Tracing, node: Node, carries: Values, sequences: Values, compute: Callable[..., Any]
) -> Values:
    """A scan of as many steps as a size has that is found while the program runs."""
    attrs = node.attrs
    count, capacity = cx.found.count(attrs["length"]), cx.size(attrs["length"])
    made = node.type.items[attrs["carries"] :]
    stacks = tuple(jnp.zeros(cx.shape(y), y.dtype) for y in made)

    def step(k: Value, state: Any) -> Any:
        carries, record, stacks = state
        t = count - 1 - k if attrs["reverse"] else k
        elements = [lax.dynamic_index_in_dim(x, t, 0, keepdims=False) for x in sequences]
        carries, record, made = compute(carries, record, elements, t)
        return carries, record, written(stacks, made, t)

    steps = jnp.minimum(count, capacity)  # if there are more, the program runs again
    state = carries, cx.failures.record, stacks
    carries, cx.failures.record, stacks = lax.fori_loop(0, steps, step, state)
    return *carries, *stacks


def written(stacks: Values, values: Values, at: Value) -> Values:
    """Results of steps, with those of one more step."""
    pairs = zip(stacks, values, strict=True)
    return tuple(lax.dynamic_update_index_in_dim(stack, y, at, 0) for stack, y in pairs)


@entry(control.while_loop)
def while_loop(cx: Tracing, node: Node, *xs: Value) -> Values:
    """What XLA has as well, if nothing is to be noted of its steps."""
    attrs = node.attrs
    n, body, predicate = attrs["carries"], attrs["body"], attrs["predicate"]
    carries, captured = tuple(xs[:n]), xs[n:]
    if attrs["trips"] is not None or can_fail(body) or can_fail(predicate):
        return while_noted(cx, node, carries, captured)
    whole, none = cx.failures.record, jnp.zeros((), jnp.int64)

    def going(carries: Values) -> Value:
        return step_of(cx, node, predicate, [*carries, *captured], whole, none)[0][0]

    def step(carries: Values) -> Values:
        return tuple(step_of(cx, node, body, [*carries, *captured], whole, none)[0])

    made: Values = lax.while_loop(going, step, carries)
    return made


def while_noted(cx: Tracing, node: Node, carries: Values, captured: Values) -> Values:
    """With `trips` the results of steps are recorded; one more place takes those without room.

    The predicate is computed at the end of a step, so that it is traced where it may fail.
    """
    attrs, n = node.attrs, len(carries)
    body, predicate = attrs["body"], attrs["predicate"]
    fails = can_fail(body) or can_fail(predicate)

    def going(carries: Values, record: Value, t: Value) -> Any:
        (holds,), record = step_of(cx, node, predicate, [*carries, *captured], record, t)
        return holds & (record[SITE] == 0) if fails else holds, record

    def step(state: Any) -> Any:
        carries, _, record, t, stacks = state
        made, record = step_of(cx, node, body, [*carries, *captured], record, t)
        stacks = written(stacks, made[n:], jnp.minimum(t, capacity))
        holds, record = going(tuple(made[:n]), record, t + 1)
        return tuple(made[:n]), holds, record, t + 1, stacks

    name, capacity = "", 0
    stacks: Values = ()
    if attrs["trips"] is not None:
        (name,) = attrs["trips"].unknowns
        capacity = cx.found.capacities[name]
        stacks = tuple(
            jnp.zeros((capacity + 1, *cx.sizes(y.shape[1:])), y.dtype) for y in node.type.items[n:]
        )
    zero = jnp.zeros((), jnp.int64)
    holds, record = going(carries, cx.failures.record, zero)
    state = carries, holds, record, zero, stacks
    carries, _, cx.failures.record, count, stacks = lax.while_loop(lambda s: s[1], step, state)
    if name:
        cx.found.counts[name] = count
        cx.failures.needs(name, count)
    return *carries, *[stack[:capacity] for stack in stacks]


# ---- branches and bodies


@entry(control.switch)
def switch(cx: Tracing, node: Node, index: Value, *given: Value) -> Values:
    branches = node.attrs["branches"]
    number = index.astype(jnp.int64)
    if not has_every_branch(node):
        reason = f"there is no branch {{}} among {len(branches)}"
        wrong = (number < 0) | (number >= len(branches))
        cx.note(node, wrong, cx.site(node, reason, kind=IndexError), number)
    fails, whole = any(map(can_fail, branches)), cx.failures.record

    def run(branch: Graph) -> Callable[..., Any]:
        def compute(given: Values, record: Value) -> Any:
            before, cx.failures.record = cx.failures.record, record if fails else whole
            made = tuple(cx.body(branch, given))
            record, cx.failures.record = cx.failures.record, before
            return made, record if fails else None

        return compute

    every = [run(branch) for branch in branches]
    made: Values
    made, record = lax.switch(number, every, given, whole if fails else None)
    if fails:
        cx.failures.record = record
    return made


@entry(control.call)
def call(cx: Tracing, node: Node, *xs: Value) -> Values:
    """A checkpoint: XLA must not merge what is computed again with the first time.

    Where the body has no products, matrices or loops, to compute it again costs no more than to
    read it: there the border, which keeps XLA from joining loops over elements, is left out.
    """
    body = node.attrs["body"]
    barrier: Callable[[Values], Values] = lax.optimization_barrier
    return cx.body(body, barrier(xs) if is_costly(body) else xs)


def is_costly(graph: Graph) -> bool:
    """Whether a graph is more than loops over elements."""
    return any(
        Trait.PRODUCT in op.traits or op in control.LOOPS or op.dialect == "linalg"
        for op in graph.ops()
    )


@entry(control.linear)
def inline(cx: Tracing, node: Node, *xs: Value) -> Values:
    return cx.body(node.attrs["body"], xs)
