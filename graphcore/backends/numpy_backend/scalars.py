"""How ops of single numbers are written: in Python's own arithmetic.

A NumPy call on one number costs ten times as much. Where Python raises and NumPy does not (a
division by zero, an overflow, a value outside of a function's domain), NumPy answers.
"""

from __future__ import annotations

from collections.abc import Container

from graphcore.ir import Node, Op
from graphcore.ops import elementwise, leaf, tensor

from .call_text import call
from .of_scalars import OF_ONE, without_fraction, wrap_integer
from .value_names import is_number
from .writer import Writer


def is_spelled(node: Node) -> bool:
    """Whether Python has an expression for `node`, of numbers."""
    if not is_number(node.type) or not all(is_number(x.type) for x in node.inputs):
        return False
    if not node.inputs:
        return node.op is leaf.extent
    ops = OPS[node.inputs[-1].type.dtype.kind]
    return node.op in ANY or node.op is elementwise.cast or node.op in ops


def spell(node: Node, w: Writer) -> str:
    """The Python expression of a node."""
    if node.op is leaf.extent:
        size = w.size(node.attrs["size"])
        return call(w.bind("float", float), size) if node.type.dtype.kind == "f" else size
    xs = [w.scalar(x) for x in node.inputs]
    if node.op in ANY:
        return ANY[node.op].format(*xs)
    if node.op is elementwise.cast:
        return cast(node, w, *xs)
    match node.inputs[-1].type.dtype.kind:
        case "b":
            return LOGIC[node.op].format(*xs)
        case "i":
            return call(w.bind("wrapped", wrap_integer), INTEGERS[node.op].format(*xs))
    if node.op in FLOATS:
        return FLOATS[node.op].format(*xs)
    name = w.bind(f"{node.op.name}_of_one", OF_ONE[node.op.name])
    return QUOTIENT.format(*xs, name) if node.op is elementwise.divide else call(name, *xs)


QUOTIENT = "{0} / {1} if {1} else {2}({0}, {1})"


def cast(node: Node, w: Writer, x: str) -> str:
    """A number in another dtype."""
    before, after = node.inputs[0].type.dtype.kind, node.type.dtype.kind
    if after == "b":
        return f"{x} != 0"
    if after == "f":
        return call(w.bind("float", float), x)
    if before == "f":
        return call(w.bind("without_fraction", without_fraction), x)
    return call(w.bind("int", int), x)


MATH = {getattr(elementwise, name) for name in OF_ONE}
FLOATS: dict[Op, str] = {
    elementwise.add: "{0} + {1}",
    elementwise.subtract: "{0} - {1}",
    elementwise.multiply: "{0} * {1}",
    elementwise.negative: "-{0}",
    elementwise.absolute: "abs({0})",
    elementwise.square: "{0} * {0}",
    elementwise.isnan: "{0} != {0}",
    tensor.multiply_no_nan: "{0} * {1} if {0} or {1} - {1} == 0 else {0}",
    tensor.where_greater: "{0} if {1} > {2} else {0} * 0.5 if {1} == {2} else 0.0",
}
INTEGERS = {op: FLOATS[op] for op in (elementwise.add, elementwise.subtract, elementwise.multiply)}
LOGIC: dict[Op, str] = {
    elementwise.logical_and: "{0} and {1}",
    elementwise.logical_or: "{0} or {1}",
    elementwise.logical_not: "not {0}",
    elementwise.bitwise_and: "{0} and {1}",
    elementwise.bitwise_or: "{0} or {1}",
    elementwise.invert: "not {0}",
}
ANY: dict[Op, str] = {
    elementwise.equal: "{0} == {1}",
    elementwise.not_equal: "{0} != {1}",
    elementwise.less: "{0} < {1}",
    elementwise.less_equal: "{0} <= {1}",
    elementwise.greater: "{0} > {1}",
    elementwise.greater_equal: "{0} >= {1}",
    elementwise.maximum: "{0} if {0} >= {1} or {0} != {0} else {1}",
    elementwise.minimum: "{0} if {0} <= {1} or {0} != {0} else {1}",
    elementwise.where: "{1} if {0} else {2}",
}
OPS: dict[str, Container[Op]] = {
    "b": LOGIC,
    "i": INTEGERS,
    "f": {*FLOATS, *MATH},
}
"""The other ops that are spelled, by the kind of the last operand."""
