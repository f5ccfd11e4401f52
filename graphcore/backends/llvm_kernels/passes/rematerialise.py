"""Loops compute values of each step again that cost more to keep: by a minimum cut.

A loop reads sequences: values that an earlier loop recorded at each step, and arrays of all steps
that were computed at once before it. A reverse loop reads most of them, as it goes through what the
loop of the program has computed. Keeping a value costs a store and a load at each step and memory
for all steps; computing it again at its step costs arithmetic, and keeping what that needs.

    record i[t];  before: d = i * (1 - i);  at each step: ct * d[t]
        becomes   record i[t];  at each step: ct * (i[t] * (1 - i[t]))

All sequences of a loop are decided on together, by the costs of the target: see `kept`. Results
have the same bits, as the same ops compute them.
"""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import Any, NamedTuple

from graphcore.analysis.cost import bytes_of, elements
from graphcore.analysis.cuts import kept
from graphcore.backends.llvm_kernels.flops import MachineCosts
from graphcore.ir import Graph, Node, TensorType, Trait, reached, toposort
from graphcore.ir.node import Attrs
from graphcore.ir.provenance import inheriting
from graphcore.ir.sizes import count
from graphcore.ops import control, leaf, tensor
from graphcore.ops.control import LOOPS, Loop, LoopOperand
from graphcore.rewrites.loops import view
from graphcore.rewrites.loops.sharing import prune
from graphcore.rewrites.plain import refill

MOST_VALUES = 500
"""How many values are looked at for one loop; those behind them can only be kept."""


class Value(NamedTuple):
    """A value that a step may need.

    It is that of a node in the body of `loop` at the same step, or, where there is no loop, the
    element of an array that belongs to the step; `fixed` is a value that is the same at all steps.
    """

    loop: Node | None
    node: Node
    fixed: bool = False


def rematerialise(graph: Graph, costs: MachineCosts) -> Graph:
    """The graph whose loops compute values again where that costs less than to keep them."""
    if LOOPS.isdisjoint(graph.ops()):
        return graph
    graph = view.inside_as_well(partial(rematerialise, costs=costs), graph)
    known = Known(graph)
    changed = False
    for node in reversed(known.loops):  # an earlier loop may have to record more for a later one
        if node.op is control.scan:
            changed |= Choice(node, known, costs).make()
    return prune(graph, known.loops, known.keys) if changed else graph


class Known:
    """A graph, its loops as they have become, and the nodes that stand for each of them."""

    def __init__(self, graph: Graph) -> None:
        self.loops = {node: Loop.of(node) for node in graph.nodes() if node.op in LOOPS}
        self.keys = {node: node for node in self.loops}
        self.outputs = {*graph.outputs}
        self.readers: dict[Node, list[Node]] = {}
        self.arrays: dict[Value, Node] = {}
        """The results of loops, by the values of one step."""
        for node in graph.nodes():
            for x in node.inputs:
                self.readers.setdefault(x, []).append(node)
            if (value := self.recorded_value(node)) is not None:
                self.arrays.setdefault(value, node)

    def recorded_value(self, array: Node) -> Value | None:
        """The value that each step of a loop records in an array."""
        if array.op is not leaf.project or (key := self.keys.get(array.inputs[0])) is None:
            return None
        loop = self.loops[key]
        index = array.attrs["index"] - len(loop.carries)
        fits = key.op is control.scan and index >= 0
        return Value(key, loop.results[index]) if fits else None

    def array(self, value: Value) -> Node:
        """The values of all steps, which a loop records from now on if it did not."""
        if value.loop is None:
            return value.node
        if value not in self.arrays:
            old = self.loops[value.loop]
            new = old._replace(results=(*old.results, value.node))
            with inheriting(value.loop):
                extended = new.build()
            self.loops[value.loop], self.keys[extended] = new, value.loop
            self.arrays[value] = extended[len(new.carries) + len(old.results)]
        return self.arrays[value]


class Choice:
    """Which of the sequences of one loop are kept, and which of them its steps compute again."""

    def __init__(self, node: Node, known: Known, costs: MachineCosts) -> None:
        self.node, self.known, self.costs = node, known, costs
        self.loop, self.length = known.loops[node], node.attrs["length"]
        self.outside: dict[Node, dict[Node, Value]] = {}
        self.local: dict[Node, set[str]] = {}
        self.roots = {x.param: self.value(Value(None, x.value)) for x in self.loop.sequences}
        self.seen: dict[Value, None] = {}
        """The values looked at, operands first."""
        body = toposort(self.loop.roots)
        elsewhere = {x for node in body if not node.op.pointwise for x in node.inputs}
        self.stored = {value for x, value in self.roots.items() if x in elsewhere}
        """The values that a step stores where it computes them, for ops that read other places."""
        self.operands: dict[Value, list[Value]] = {}
        """The operands of each value that can be computed again."""

    def make(self) -> bool:
        """Change the loop where it costs less with some values computed again; whether it does."""
        self.explore()
        if self.operands.keys().isdisjoint(self.roots.values()):
            return False
        again = {x: self.computing_cost(x) for x in self.operands}
        keep = {x: self.keeping_cost(x, self.is_held(x)) for x in self.seen if not x.fixed}
        stay = kept(dict.fromkeys(self.roots.values()), self.operands, keep, again)
        if stay.issuperset(self.roots.values()):
            return False
        self.known.loops[self.node] = self.change(stay)
        return True

    # ---- values of one step

    def value(self, value: Value) -> Value:
        """The same value where it comes from: what a loop has recorded, or was given."""
        while not value.fixed:
            if value.loop is None:
                made = self.known.recorded_value(value.node)
                if made is None or made.loop is None or made.loop.attrs["length"] != self.length:
                    break
                value = made
            elif (given := self.outside_values(value.loop).get(value.node)) is not None:
                value = given
            else:
                break
        return value

    def outside_values(self, node: Node) -> dict[Node, Value]:
        """The values outside of a loop that its params stand for, those of carries aside."""
        if node not in self.outside:
            loop = self.known.loops[node]
            self.outside[node] = {x.param: Value(None, x.value) for x in loop.sequences}
            self.outside[node] |= {x.param: Value(None, x.value, True) for x in loop.captured}
        return self.outside[node]

    def found_inside(self, node: Node) -> set[str]:
        """The sizes that each step of a loop finds anew, which no other loop knows."""
        if node not in self.local:
            self.local[node] = view.trip_counts_inside(node.attrs["body"])
        return self.local[node]

    def type(self, value: Value) -> TensorType:
        """The type of a value at one step."""
        type = value.node.type
        return type if value.loop or value.fixed else TensorType(type.dtype, type.shape[1:])

    def made_of(self, value: Value) -> list[Value] | None:
        """The values from which a value is computed again; None if it never is.

        It is not where that alone takes longer than to keep it.
        """
        node = value.node
        if value.fixed or not node.inputs or self.costs.again(node) is None:
            return None
        if self.computing_cost(value) >= self.keeping_cost(value, held=False):
            return None
        if value.loop is not None:
            if any(view.depends_on(x, self.found_inside(value.loop)) for x in (node, *node.inputs)):
                return None
            return [
                Value(None, x, fixed=True)
                if Trait.FREE in x.op.traits
                else self.value(Value(value.loop, x))
                for x in node.inputs
            ]
        if node.op is tensor.expand and 0 in node.attrs["axes"]:
            return [Value(None, node.inputs[0], fixed=True)]
        if not node.op.pointwise and at_one_step(node) is None:
            return None
        if any(x.op is leaf.iota for x in node.inputs):
            return None
        return [
            Value(None, refill(x, x.type.shape[1:]), fixed=True)
            if x.op is leaf.full
            else self.value(Value(None, x))
            for x in node.inputs
        ]

    def explore(self) -> None:
        """Find the values that can be computed again."""
        stack = [*dict.fromkeys(self.roots.values())]
        parts: dict[Value, list[Value] | None] = {}
        while stack:
            x = stack[-1]
            if x not in parts:
                parts[x] = self.made_of(x) if len(parts) < MOST_VALUES else None
                stack += [y for y in parts[x] or () if y not in parts]
            else:
                stack.pop()
                self.seen[x] = None
                if (made := parts[x]) is not None:
                    self.operands.setdefault(x, made)

    # ---- costs

    def computing_cost(self, value: Value) -> int:
        """The picoseconds that it takes to compute a value again at one step."""
        type, costs = self.type(value), self.costs
        spent = (costs.again(value.node) or 0) * max(elements(type), costs.places_of_step)
        if value in self.stored:
            spent += bytes_of(type) * (costs.read(0) + costs.write(0))
        return spent

    def keeping_cost(self, value: Value, held: bool) -> int:
        """The picoseconds to read a value at one step, and to write it unless it is held."""
        type = self.type(value)
        known = all(isinstance(size, int) for size in (self.length, *type.shape))
        size = bytes_of(type) * self.length if known else 0
        each = self.costs.read(size)
        return bytes_of(type) * (each if held else each + self.costs.write(size))

    def is_held(self, value: Value) -> bool:
        """Whether the values of all steps lie in memory in any case.

        What a loop records for arrays that are computed from it is: these would be kept otherwise.
        """
        if value.loop is None and value not in self.operands:
            return True
        array = self.known.arrays.get(value) if value.loop else value.node
        if array is None:
            return False
        if array in self.known.outputs or any(x.value is array for x in self.loop.captured):
            return True
        others = [x for x in self.known.readers.get(array, ()) if x is not self.node]
        return any(value.loop or Value(None, x) not in self.operands for x in others)

    # ---- the loop that computes some again

    def change(self, stay: Container[Value]) -> Loop:
        """The loop that reads the values that `stay`, and computes the others from them."""
        loop, names = self.loop, view.unused_names("again", self.loop)
        sequences, captured = list(loop.sequences), list(loop.captured)
        made = {value: param for param, value in self.roots.items() if value in stay}
        made |= {Value(None, x.value, fixed=True): x.param for x in captured}
        for value in self.needed_values(stay):
            if value in made:
                continue
            if value not in stay and not value.fixed:
                made[value] = self.again(value, [made[x] for x in self.operands[value]])
            elif value.fixed and Trait.FREE in value.node.op.traits:
                made[value] = value.node
            else:
                made[value] = leaf.param(next(names), self.type(value)).label(labels(value))
                if value.fixed:
                    captured.append(LoopOperand(made[value], value.node))
                else:
                    sequences.append(LoopOperand(made[value], self.known.array(value)))
        loop = loop._replace(sequences=tuple(sequences), captured=tuple(captured))
        new = {x: made[value] for x, value in self.roots.items() if made[value] is not x}
        return view.replaced(loop, new, rematerialise)

    def needed_values(self, stay: Container[Value]) -> list[Value]:
        """The values that steps need where some stay, operands first."""
        found = reached(
            self.roots.values(), lambda x: () if x in stay else self.operands.get(x, ())
        )
        return [x for x in self.seen if x in found]

    def again(self, value: Value, xs: list[Node]) -> Node:
        """A value computed from its operands at the same step."""
        node, attrs = value.node, value.node.attrs
        if value.loop is None and not node.op.pointwise:
            found = at_one_step(node)
            assert found is not None
            if node.op is tensor.expand and not found["axes"]:
                return xs[0]
            attrs = Attrs(found)
        with inheriting(node):
            return Node(node.op, tuple(xs), attrs).label(labels(value))


def at_one_step(node: Node) -> dict[str, Any] | None:
    """The attrs of a view of all steps for one of them; None if it changes the first axis."""
    attrs = node.attrs
    if node.op is tensor.expand:
        axes = tuple([axis - 1 for axis in attrs["axes"] if axis])
        return {"axes": axes, "sizes": attrs["sizes"][len(attrs["sizes"]) - len(axes) :]}
    if node.op is tensor.concat:
        return {"axis": attrs["axis"] - 1} if attrs["axis"] else None
    (x,) = node.inputs
    same = x.type.shape[:1] == node.type.shape[:1]
    match node.op:
        case tensor.reshape if same and count(x.type.shape[1:]) == count(node.type.shape[1:]):
            return {"shape": attrs["shape"][1:]}
        case tensor.transpose if attrs["perm"][0] == 0:
            return {"perm": tuple([axis - 1 for axis in attrs["perm"][1:]])}
        case tensor.slice_ if same and attrs["starts"][0] == 0 and attrs["steps"][0] == 1:
            return {name: attrs[name][1:] for name in ("starts", "sizes", "steps")}
    return None


def labels(value: Value) -> Any:
    """The labels of the axes of a value at one step."""
    known = value.node.labels
    return known[1:] if known and value.loop is None and not value.fixed else known
