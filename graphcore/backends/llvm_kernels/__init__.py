"""Scheduled graphs as machine code, made with LLVM. README.md in this folder maps the files.

A graph in which some node has no machine code is a program of NumPy calls and kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from graphcore.backends import numpy_backend
from graphcore.backends.boundary import Bind
from graphcore.backends.llvm_kernels.passes.exponentials import share_exponentials
from graphcore.backends.llvm_kernels.passes.layout import short_axes_first
from graphcore.backends.llvm_kernels.passes.parts import read_parts_in_results
from graphcore.backends.llvm_kernels.passes.pieces import cut_kernels
from graphcore.backends.llvm_kernels.passes.rematerialise import rematerialise
from graphcore.backends.numpy_backend.constants import compute_constants
from graphcore.ir import Array, Graph, Node, Op, Size, TensorType, TupleType, Type
from graphcore.ir.contracts import Contract
from graphcore.ir.names import ValueOf
from graphcore.ir.provenance import described_by
from graphcore.ir.remembered import remembered
from graphcore.ir.sizes import count
from graphcore.ir.sizes import unknowns as names_in
from graphcore.ops import leaf, linalg
from graphcore.ops import tensor as t
from graphcore.ops.leaf import values
from graphcore.ops.schedule import kernel
from graphcore.rewrites.loops import loops_in_blocks
from graphcore.rewrites.pipeline import DECOMPOSED, Pass, Passes, by_costs, in_turn
from graphcore.schedule.regions import sizes_needed, with_kernels

from . import entrance, machine, threads
from .arithmetic import KINDS, SCALAR, emits
from .codegen import GraphWriter
from .dense import PRODUCTS_PER_VALUE
from .elementary import compiled, module
from .entrance import CallableKernel, Hosted, Kernel, Report, Slot
from .failures import Machine
from .flops import COSTS
from .loops import CONTROL
from .passes.longer_runs import in_longer_runs
from .passes.taps import summed_in_place
from .passes.transposes import transpose_inside_loops
from .places import PLACES, is_register
from .routines import ALONE, lacks
from .writer import Homes, Shared, Writer

__all__ = [
    *("EMITTED", "OWN", "build", "computes", "hosted", "machine_code"),
    *("refused", "text", "unavailable", "whole", "writer"),
]

EMITTED: frozenset[Op] = frozenset(
    {leaf.input_, leaf.constant, leaf.project, *PLACES, *SCALAR, *ALONE, *CONTROL}
)
"""The ops that machine code computes, for the dtypes that `refused` does not name."""


KERNELS = Contract(*DECOMPOSED.allowed, "schedule", but=DECOMPOSED.but)

shared = Pass("exponentials shared", in_turn(compute_constants, share_exponentials), DECOMPOSED)
laid_out = Pass("laid out", short_axes_first, DECOMPOSED)
scheduled = Pass("scheduled", by_costs(rematerialise, COSTS), DECOMPOSED)

in_blocks = Pass("members in blocks", by_costs(loops_in_blocks, COSTS.elements_at_once), DECOMPOSED)

OWN: Passes = [
    *(in_blocks, shared, scheduled, laid_out),
    Pass("kernels", lambda graph: with_every_kernel(graph), KERNELS),
]
"""The passes that serve machine code, after those that are shared."""


def unavailable() -> str | None:
    """Why no machine code can run here; None where it can."""
    return machine.unavailable() or entrance.unavailable()


def with_every_kernel(graph: Graph) -> Graph:
    """The graph with kernels; long ones call kernels for their pieces."""
    lying = read_parts_in_results(transpose_inside_loops(in_longer_runs(summed_in_place(graph))))
    return cut_kernels(with_kernels(lying, computes))


def refused(graph: Graph) -> dict[str, Node]:
    """The ops of a graph without machine code, with their dtypes where these are the reason."""
    return {why: node for node in graph.every_node() if (why := reason(node))}


def computes(node: Node) -> bool:
    """Whether machine code computes a node, its bodies aside."""
    return reason(node) is None


def reason(node: Node) -> str | None:
    """Why machine code does not compute a node; None where it does."""
    if node.op not in EMITTED:
        return str(node.op)
    known = has_kind(node.type) and all(has_kind(x.type) for x in node.inputs)
    if known and not (node.op in SCALAR and not emits(node)) and not lacks(node):
        return None
    names = [type.dtype.name for x in (node, *node.inputs) for type in items(x)]
    return f"{node.op} of {', '.join(dict.fromkeys(names))}"


@remembered
def has_kind(type: Type) -> bool:
    """Whether machine code knows the dtypes of a value."""
    several = type.items if isinstance(type, TupleType) else [type]
    return all(one.dtype.name in KINDS for one in several)


def items(node: Node) -> Sequence[TensorType]:
    """The types of the values of a node."""
    return node.type.items if isinstance(node.type, TupleType) else [node.type]


def text(graph: Graph, unknowns: tuple[str, ...]) -> str:
    """The IR of all kernels of a graph in its final form, with the user's lines as comments."""
    from .pseudocode import comment

    bodies = dict.fromkeys([x.attrs["body"] for x in graph.every_node() if x.op is kernel])
    outer = single_kernel(graph)
    known = {} if outer is None else {outer.attrs["body"]: unknowns}
    sizes = [known.get(body) or sizes_needed(body) for body in bodies]
    with described_by(graph.trace):
        pairs = zip(bodies, sizes, strict=True)
        return "\n".join([written(*pair, note_of=comment)[0] for pair in pairs])


def written(
    graph: Graph,
    unknowns: tuple[str, ...],
    patient: bool = False,
    note_of: Callable[[Node], str] | None = None,
    writer: Callable[[Shared], Writer] = GraphWriter,
    piece: Callable[[Graph], Machine] = lambda body: machine_code(body, sizes_needed(body)),
) -> tuple[str, Shared]:
    """The IR of a graph, and what its table holds.

    Where it is `patient`, long loops are shared by threads, and look for signals. What `note_of`
    says of a node stands at the ends of its lines. `writer` writes it, and `piece` makes the
    machine code of kernels that it calls.
    """
    program = Shared(graph, unknowns, piece, patient)
    program.b.note_of = note_of
    w, b = writer(program), program.b
    if patient:
        program.sharing.routine = f"inttoptr (i64 {threads.code()['share']} to ptr)"
    for i, x in enumerate(graph.params):
        buffer = w.buffer(x.type, program.pointer(program.entry(i)))
        w.know([x], [w.load(buffer) if is_register(x.type) else buffer])
    homes: Homes = {}
    for i, y in enumerate(graph.outputs, len(graph.params)):
        homes.setdefault(y, []).append(w.buffer(y.type, program.pointer(program.entry(i))))
    w.graph(graph, homes)
    b.do("ret i64 0")
    program.sharing.end(program.failures.words)
    head = "define i64 @kernel(ptr noalias %table, ptr noalias %sizes, ptr noalias %record)"
    return module(head, b), program


MADE: WeakValueDictionary[tuple[Graph, tuple[str, ...]], Machine] = WeakValueDictionary()
"""The machine code in use, so that no graph is compiled twice."""
RECENT = machine.Recent()
"""The machine code of other graphs with equal IR, and of those that were in use before."""


def machine_code(graph: Graph, unknowns: tuple[str, ...]) -> Machine:
    """The machine code of a plain graph in its final form, which `computes` all nodes of.

    `unknowns` orders the sizes that are given to it.
    """
    if (made := MADE.get((graph, unknowns))) is None:
        ir, program = written(graph, unknowns)
        slots = [*map(type, program.slots)]
        patient = machine.cached(lambda: patient_code(graph, unknowns, slots))
        made = machine_of(graph, unknowns, program, stages(ir), patient)
        MADE[graph, unknowns] = made
    return made


def machine_of(
    graph: Graph,
    unknowns: tuple[str, ...],
    program: Shared,
    code: machine.Stages,
    patient: Callable[[], machine.Stages] | None = None,
) -> Machine:
    """The kernel with this machine code: its arguments, its memory, and the failures it reports."""
    params, results = (tuple([x.type for x in side]) for side in (graph.params, graph.outputs))
    failures, slots = program.failures, program.table()
    counts = counts_of(graph, frozenset(unknowns))
    head = params, results, unknowns, slots, failures.words
    calls = [*program.calls.made.values()]
    return Machine(Kernel(code, *head, counts, patient), graph, failures.sites, calls)


def stages(ir: str, calls: Sequence[machine.Stages] = ()) -> machine.Stages:
    """The machine code of a kernel, which calls some others."""

    def make(effort: int) -> machine.Code:
        with machine.making():
            return compiled(ir, "kernel", effort=effort)

    if calls:  # their addresses are in the text
        return machine.Stages.of(ir, make, calls)
    return RECENT.of(ir, make)


def patient_code(
    graph: Graph, unknowns: tuple[str, ...], slots: Sequence[type[Slot]]
) -> machine.Stages:
    """The machine code of a graph whose nests look for signals; so do those of its kernels.

    It is called with the table of the usual code, which has such `slots`.
    """
    ir, program = written(graph, unknowns, patient=True)
    assert [*map(type, program.slots)] == slots, "the code for long nests has another table"
    return stages(ir, program.calls.patient)


OF_PRODUCTS = frozenset({t.matmul, linalg.solve_triangular, linalg.solve, linalg.lu_solve})
"""Ops whose results are computed by products of numbers, which threads share."""
OF_FACTORS = frozenset(
    {
        *(linalg.cholesky, linalg.cholesky_cotangent, linalg.lu_factor),
        *(linalg.solve, linalg.inv, linalg.det, linalg.slogdet),
    }
)
"""Ops that factor their operand, or one like it, by products."""


def counts_of(graph: Graph, names: frozenset[str]) -> tuple[Size, ...]:
    """How many elements nodes have, in bodies as well, where the sizes of these names decide it.

    Products count as well, and solutions of triangles by products: as elements that take as long.
    """
    nodes = [*graph.every_node()]
    counts = dict.fromkeys([count(x.shape) for node in nodes for x in items(node)])
    for node in nodes:
        if node.op in OF_PRODUCTS | OF_FACTORS:
            a = node.inputs[0]
            for ops, x in ((OF_PRODUCTS, node), (OF_FACTORS, a)):
                if node.op in ops:
                    products = count((*x.type.shape, a.type.shape[-1]))
                    counts[products // PRODUCTS_PER_VALUE] = None
    return tuple([n for n in counts if names_in(n) <= names])


def build(graph: Graph, unknowns: tuple[str, ...], bind: Bind) -> Callable[..., list[Array]]:
    """The function of a graph with kernels, called with the arguments themselves.

    A program that is one kernel has its fast entrance: `bind` checks and converts only arguments
    that machine code does not take as they are. NumPy runs all others, and calls their kernels; so
    it does where values of arguments are sizes, as the entrance looks at their shapes alone.
    """
    by_value = any(isinstance(name, ValueOf) for name in unknowns)
    if (called := single_kernel(graph)) is None or by_value:
        run = numpy_backend.build(graph, unknowns, hosted_now).__call__
        return lambda *args: run(*bind(args))
    made = machine_code(called.attrs["body"], unknowns)
    return CallableKernel(made.kernel, bind, worded(made, graph, called)).entrance()


def writer(graph: Graph, unknowns: tuple[str, ...]) -> Callable[..., None] | None:
    """The function of a graph that is one kernel: of sizes, arrays, and arrays for the results."""
    if (called := single_kernel(graph)) is None:
        return None
    made = machine_code(called.attrs["body"], unknowns)
    return Hosted(made.kernel, worded(made, graph, called)).entrance()


def worded(made: Machine, graph: Graph, called: Node) -> Report:
    """What makes the errors of a graph that is a call of one kernel."""

    def failed(record: list[int], known: dict[str, int]) -> Exception:
        with described_by(graph.trace):
            return made.failed(record, known).worded(called)

    return failed


def hosted(body: Graph) -> numpy_backend.CompiledKernel:
    """The body of a kernel as a function that a program of NumPy calls can call."""
    sizes = sizes_needed(body)
    made = machine_code(body, sizes)
    return numpy_backend.CompiledKernel(sizes, Hosted(made.kernel, made.failed).entrance())


def hosted_now(body: Graph) -> numpy_backend.CompiledKernel:
    """The same function, whose machine code is made now."""
    made = machine_code(body, sizes_needed(body))
    made.kernel.code.at_once()
    return hosted(body)


def single_kernel(graph: Graph) -> Node | None:
    """The kernel of a graph that is a single kernel, else None."""
    called = graph.outputs[0].inputs[0] if graph.outputs and graph.outputs[0].inputs else None
    if called is None or called.op is not kernel or called.inputs != graph.params:
        return None
    return called if graph.outputs == tuple(values(called)) else None
