"""Graphs as JSON, and back to the very same nodes.

The form, version 1, is an object with

``format``, ``version``
    "graphcore graph" and 1.
``origins``
    The user's lines, as [file, line, via, caller, function]: files by their last part, as the
    folders of who wrote them are nobody's business; `via` is the number of the line that asked for
    the derivative, or null; `caller` is [file, line] or null; `function` is the function
    of ours that the line calls, or "".
``types``
    The types of values, as {"dtype", "shape", "dims"}, or [numbers of types] for several values.
``graphs``
    The graphs: bodies come before the graphs of their nodes, and the last is the whole. Each
    is {"params", "outputs", "nodes", "stage"}: numbers of nodes, the nodes with inputs before their
    users, and whether lines and labels belong to a stage of a compilation.

A node is {"op", "inputs", "attrs", "type", "origin", "labels"}: the full name of its op, numbers of
nodes, values, numbers in ``types`` and ``origins``, and the dims of its axes where they are known.

Values are null, booleans, integers, strings and lists, which stand for tuples, and objects of one
key: {"float": hexadecimal text}, {"complex": [two of these texts]}, {"dtype": NumPy's name},
{"hidden": text} for a name that no user can say, {"op": name}, {"graph": number},
{"literal": {"dtype", "shape", "bytes"}} with the bytes in base64, in row-major order,
{"array": number} for one that is kept beside the text, and
{"size": [[coefficient, [[atom, power], ...]], ...]} for a sum of products of unknown sizes. An atom
is the name of an unknown (text, {"hidden": text}, {"value": the name of an input whose value it is}
or {"computed": text, "key": text}), or {operation: [size, size]}, with "//", "%", "min" or "max".

What is read is built by the type rules, as all nodes are, and its types are compared with those
given. Nothing in it is run or imported, so that it may come from anywhere.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore.ir import Expression, Graph, Literal, Node, Op, TensorType, TupleType, Type
from graphcore.ir.errors import GraphError, GraphTypeError, GraphValueError
from graphcore.ir.interrupts import is_interrupt
from graphcore.ir.node import OPS, Attrs
from graphcore.ir.op import RENAMED
from graphcore.ir.provenance import Origin, basename, described_by, inheriting, thread_state
from graphcore.ir.trace import Trace
from graphcore.ops import leaf

from .attrs import suits
from .json_parts import (
    Damaged,
    check,
    document_of,
    dtype_of,
    fields,
    item_at,
    items,
    literal_of,
    name_of,
    number,
    refuse_constant,
    size_form,
    size_of,
    string,
    text,
)

FORMAT, VERSION = "graphcore graph", 1
MOST_NUMBERS_IN_TEXT = 16
"""The most numbers of an array that are written in the text, where others are written elsewhere."""


# ---- to JSON


def to_json(graph: Graph) -> str:
    """The text of a graph."""
    return json.dumps(Writing().document(graph), allow_nan=False, separators=(",", ":"))


class Writing:
    """The tables of one text; arrays that are no part of it go to `arrays`, if it is given."""

    def __init__(self, arrays: list[np.ndarray[Any, Any]] | None = None) -> None:
        self.arrays = arrays
        self.origins: dict[Origin, int] = {}
        self.types: dict[Type, int] = {}
        self.graphs: dict[Graph, int] = {}
        self.rows: dict[str, list[Any]] = {"origins": [], "types": [], "graphs": []}

    def document(self, graph: Graph) -> dict[str, Any]:
        """The whole."""
        with described_by(graph.trace or thread_state.trace):
            self.graph(graph, graph.trace is not None)
        return {"format": FORMAT, "version": VERSION, **self.rows}

    def graph(self, graph: Graph, stage: bool) -> int:
        """The number of a graph; bodies have lower ones."""
        if (known := self.graphs.get(graph)) is not None:
            return known
        number = {node: at for at, node in enumerate(graph.nodes())}
        row = {
            "params": [number[x] for x in graph.params],
            "outputs": [number[x] for x in graph.outputs],
            "nodes": [
                {
                    "op": repr(node.op),
                    "inputs": [number[x] for x in node.inputs],
                    "attrs": {name: self.attr(node, x, stage) for name, x in node.attrs.items()},
                    "type": self.type(node.type),
                    "origin": self.origin(node.origin),
                    "labels": node.labels
                    and [name if name is None else text(name) for name in node.labels],
                }
                for node in graph.nodes()
            ],
            "stage": stage,
        }
        self.rows["graphs"].append(row)
        return self.graphs.setdefault(graph, len(self.rows["graphs"]) - 1)

    def attr(self, node: Node, value: Any, stage: bool) -> Any:
        """An attr of a node."""
        try:
            return self.value(value, stage)
        except TypeError as error:
            raise GraphTypeError(
                f"to_json: {node.op.said} at {node.origin} has {error}, which JSON cannot hold\n"
                "  cure: leave it out of the graph that is written"
            ) from None

    def value(self, value: Any, stage: bool) -> Any:
        """A value of an attr."""
        match value:
            case None | bool() | int():
                return value
            case str():
                return text(value)
            case float():
                return {"float": value.hex()}
            case complex():
                return {"complex": [value.real.hex(), value.imag.hex()]}
            case tuple():
                return [self.value(x, stage) for x in value]
            case np.dtype():
                return {"dtype": value.str}
            case Literal(array=array) if (
                self.arrays is not None and array.size > MOST_NUMBERS_IN_TEXT
            ):
                self.arrays.append(array)
                return {"array": len(self.arrays) - 1}
            case Literal(array=array):
                data = b64encode(array.tobytes()).decode("ascii")
                literal = {"dtype": array.dtype.str, "shape": list(array.shape), "bytes": data}
                return {"literal": literal}
            case Expression():
                return size_form(value)
            case Graph():
                return {"graph": self.graph(value, stage)}
            case Op():
                return {"op": repr(value)}
        raise TypeError(f"a {type(value).__name__}")

    def type(self, type: Type) -> int:
        """The number of a type."""
        if type not in self.types:
            if isinstance(type, TupleType):
                row: Any = [self.type(item) for item in type.items]
            else:
                dims = None if type.dims is None else [text(dim) for dim in type.dims]
                shape = [size_form(size) for size in type.shape]
                row = {"dtype": type.dtype.str, "shape": shape, "dims": dims}
            self.rows["types"].append(row)
            self.types[type] = len(self.rows["types"]) - 1
        return self.types[type]

    def origin(self, origin: Origin) -> int:
        """The number of a line."""
        waiting = [origin]
        while waiting[-1].via is not None and waiting[-1].via not in self.origins:
            waiting.append(waiting[-1].via)
        for each in reversed(waiting):
            if each not in self.origins:
                via = None if each.via is None else self.origins[each.via]
                called = each.caller and [basename(each.caller[0]), each.caller[1]]
                row = [basename(each.file), each.line, via, called, each.function]
                self.rows["origins"].append(row)
                self.origins[each] = len(self.rows["origins"]) - 1
        return self.origins[origin]


# ---- from JSON


def from_json(text: str | bytes) -> Graph:
    """The graph of a text."""
    try:
        document = json.loads(text, parse_constant=refuse_constant)
        return Reading(document).graphs[-1]
    except Damaged as error:
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply"
    except (ValueError, TypeError) as error:
        if isinstance(error, GraphError):
            raise
        reason = f"it is not JSON: {error}"
    raise GraphValueError(
        f"from_json: the text is not a graph: {reason[:300]}\n"
        "  cure: give text that to_json of this version wrote, unchanged"
    ) from None


class Reading:
    """The tables of one text, and the arrays that are kept beside it."""

    def __init__(self, document: Any, arrays: Sequence[Literal] = ()) -> None:
        self.arrays = list(arrays)
        origins, types, graphs = document_of(
            document, FORMAT, VERSION, "origins", "types", "graphs"
        )
        self.origins: list[Origin] = []
        for row in items(origins, "origins"):
            self.origins.append(self.origin(row, f"origin {len(self.origins)}"))
        self.types: list[Type] = []
        for row in items(types, "types"):
            self.types.append(self.type(row, f"type {len(self.types)}"))
        self.trace = Trace()
        self.graphs: list[Graph] = []
        for row in items(graphs, "graphs"):
            self.graphs.append(self.graph(row, f"graph {len(self.graphs)}"))
        check(self.graphs, "there are no graphs")

    def origin(self, row: Any, where: str) -> Origin:
        """A user's line."""
        file, line, via, caller, function = items(row, where, 5)
        via = None if via is None else item_at(self.origins, via, where)
        if caller is not None:
            called, at = items(caller, where, 2)
            caller = string(called, where), number(at, where)
        plain = all(map(str.isidentifier, string(function, where).split("."))) or not function
        check(plain, f"{where} has a function that is no name")
        return Origin(string(file, where), number(line, where), via, caller, function)

    def type(self, row: Any, where: str) -> Type:
        """The type of one value, or of several."""
        if isinstance(row, list):
            found = [item_at(self.types, at, where) for at in row]
            check(all(isinstance(x, TensorType) for x in found), f"{where} is a tuple of tuples")
            return TupleType(tuple(found))
        dtype, shape, dims = fields(row, where, "dtype", "shape", "dims")
        shape = tuple(size_of(size, where) for size in items(shape, where))
        dims = None if dims is None else tuple(name_of(x, where) for x in items(dims, where))
        return TensorType(dtype_of(dtype, where), shape, dims)

    def value(self, value: Any, where: str) -> Any:
        """A value of an attr."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, list):
            return tuple(self.value(x, where) for x in value)
        check(isinstance(value, dict) and len(value) == 1, f"{where} is not a value")
        ((kind, inner),) = value.items()
        match kind:
            case "hidden":
                return name_of(value, where)
            case "float":
                return float_of(inner, where)
            case "complex":
                return complex(*[float_of(x, where) for x in items(inner, where, 2)])
            case "dtype":
                return dtype_of(inner, where)
            case "literal":
                return literal_of(inner, where)
            case "array":
                return item_at(self.arrays, inner, where)
            case "size":
                return size_of(value, where)
            case "graph":
                found = item_at(self.graphs, inner, where)
                check(is_body(found), f"{where} is a graph that is no body")
                return found
            case "op":
                return op_of(inner, where)
        raise Damaged(f"{where} is of the unknown kind {kind!r:.20}")

    def graph(self, row: Any, where: str) -> Graph:
        """A graph, node by node."""
        params, outputs, rows, stage = fields(row, where, "params", "outputs", "nodes", "stage")
        check(isinstance(stage, bool), f"{where} does not say whether it is a stage")
        trace = self.trace if stage else None
        nodes: list[Node] = []
        for each in items(rows, where):
            self.node(each, nodes, trace, f"node {len(nodes)} of {where}")
        sides = [
            tuple(item_at(nodes, at, where) for at in items(side, where))
            for side in (params, outputs)
        ]
        return Graph(sides[0], sides[1], trace)

    def node(self, row: Any, nodes: list[Node], trace: Trace | None, where: str) -> None:
        """The next node, built by the type rule of its op."""
        names = "op", "inputs", "attrs", "type", "origin", "labels"
        op, inputs, attrs, type, origin, labels = fields(row, where, *names)
        op, origin = op_of(op, where), item_at(self.origins, origin, where)
        operands = tuple(item_at(nodes, at, where) for at in items(inputs, where))
        check(isinstance(attrs, dict), f"{where} lacks attrs")
        given = {key: self.value(value, f"{key!r:.40} of {where}") for key, value in attrs.items()}
        for key, value in given.items():
            check(suits(op, key, value), f"{key!r:.40} of {where} is of the wrong kind")
        with inheriting(origin):
            try:
                node = Node(op, operands, Attrs(given))
            # a type rule may fail in any way on operands that no program gives it
            except Exception as error:
                if is_interrupt(error):
                    raise
                said = f"{op.said}, {where}, is refused: {type_name(error)}{error}"
                raise Damaged(said) from None
        check(node.type is item_at(self.types, type, where), f"{where} is not {node.type}")
        nodes.append(node)
        if labels is not None:
            labels = tuple(x if x is None else name_of(x, where) for x in items(labels, where))
            check(len(labels) == len(getattr(node.type, "shape", ())), f"{where} has wrong labels")
        if trace is not None:
            trace.lines[node] = origin
            if labels is not None:
                trace.labels[node] = labels


def is_body(graph: Graph) -> bool:
    """Whether a loop or branch can have this body: all that it needs are its params."""
    inputs = leaf.inputs_among(graph.nodes())
    once = len(set(graph.params)) == len(graph.params)
    plain = all(isinstance(x.type, TensorType) for x in graph.outputs)
    return once and plain and set(inputs) == set(graph.params)


def type_name(error: Exception) -> str:
    """The kind of an error that is none of ours."""
    return "" if isinstance(error, GraphError) else f"{type(error).__name__}: "


def op_of(value: Any, where: str) -> Op:
    """An op that is declared; no module is imported for one."""
    name = string(value, where)
    name = RENAMED.get(name, name)
    check(
        name in OPS, f"{where} has the op {name!r:.60}, which is not declared: import its package"
    )
    return OPS[name]


def float_of(value: Any, where: str) -> float:
    """A float by its hexadecimal digits."""
    try:
        return float.fromhex(string(value, where))
    except (ValueError, OverflowError):
        raise Damaged(f"{where} is not a float") from None
