"""Scheduled graphs as machine code: one native function, made with LLVM, for all sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.types import TensorType, TupleType
from graphcore.ops import leaf
from graphcore.schedule.regions import without_kernels

from . import entrance, machine
from .arithmetic import KINDS, SCALAR, emits
from .entrance import Array, Bind, Kernel, Program, Report
from .failures import report
from .functions import compiled, module
from .loops import CONTROL
from .places import PLACES, is_register
from .routines import ALONE, lacks
from .writer import Homes, Shared, Writer

__all__ = ["EMITTED", "NotEmitted", "build", "kernel", "refused", "text", "unavailable"]

EMITTED: frozenset[Op] = frozenset(
    {leaf.input_, leaf.constant, leaf.project, *PLACES, *SCALAR, *ALONE, *CONTROL}
)
"""The ops that machine code computes, for the dtypes that `refused` does not name."""


class NotEmitted(Exception):
    """A graph has ops that no machine code computes: `nodes` holds one node of each of them."""

    def __init__(self, ops: Mapping[str, Node]) -> None:
        super().__init__(f"no machine code computes {', '.join(ops)}")
        self.ops, self.nodes = tuple(ops), tuple(ops.values())


def unavailable() -> str | None:
    """Why no machine code can run here; None where it can."""
    return machine.refusal() or entrance.refusal()


def refused(graph: Graph) -> dict[str, Node]:
    """The ops of a graph that no machine code computes, with dtypes where these are why."""
    return {why: node for node in graph.every_node() if (why := reason(node))}


def reason(node: Node) -> str | None:
    """Why machine code does not compute a node, if it does not."""
    if node.op not in EMITTED:
        return str(node.op)
    types = [type for x in (node, *node.inputs) for type in items(x)]
    odd = [type.dtype.name for type in types if type.dtype.name not in KINDS]
    if odd or (node.op in SCALAR and not emits(node)) or lacks(node):
        return f"{node.op} of {', '.join(dict.fromkeys(type.dtype.name for type in types))}"
    return None


def items(node: Node) -> Sequence[TensorType]:
    """The types of the values of a node."""
    return node.type.items if isinstance(node.type, TupleType) else [node.type]


def text(graph: Graph, unknowns: tuple[str, ...]) -> str:
    """The IR of a graph in its final form."""
    return written(without_kernels(graph), unknowns)[0]


def written(graph: Graph, unknowns: tuple[str, ...]) -> tuple[str, Shared]:
    """The IR of a graph, and what its table holds."""
    program = Shared(graph, unknowns)
    w, b = Writer(program), program.b
    for i, x in enumerate(graph.params):
        room = w.room(x.type, program.pointer(program.entry(i)))
        w.know([x], [w.load(room) if is_register(x.type) else room])
    homes: Homes = {}
    for i, y in enumerate(graph.outputs, len(graph.params)):
        homes.setdefault(y, []).append(w.room(y.type, program.pointer(program.entry(i))))
    w.graph(graph, homes)
    b.do("ret i64 0")
    head = "define i64 @kernel(ptr noalias %table, ptr noalias %sizes, ptr noalias %record)"
    return module(head, b), program


def kernel(graph: Graph, unknowns: tuple[str, ...]) -> tuple[Kernel, Report]:
    """The machine code of a plain graph in its final form, and what words its failures.

    `unknowns` orders the sizes that are known at the call.

    Raises
    ------
    NotEmitted
        If there is no machine code for an op, of the dtypes that it has here.
    """
    graph = without_kernels(graph)
    if ops := refused(graph):
        raise NotEmitted(ops)
    ir, program = written(graph, unknowns)
    params, results = (tuple([x.type for x in side]) for side in (graph.params, graph.outputs))
    code, failures = compiled(ir, "kernel"), program.failures
    made = Kernel(code, params, results, unknowns, tuple(program.slots), failures.words)
    return made, lambda record, known: report(graph, failures.sites, record, known)


def build(graph: Graph, unknowns: tuple[str, ...], bind: Bind) -> Callable[..., list[Array]]:
    """The function of a plain graph, called with the arguments themselves.

    `bind` checks and converts those that are not what the machine code takes.
    """
    made, failed = kernel(graph, unknowns)
    return Program(made, bind, failed).entrance()
