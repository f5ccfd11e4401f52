"""What runs programs: a `Target` makes a `Program` of a graph of plain ops.

A new target is a class of each kind; docs/developers/adding_a_backend.md shows one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from graphcore.analysis.cost import TargetCosts
from graphcore.inspection.profile import Found, Machine
from graphcore.ir import Array, Graph, Node
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.help_text import attributes, fields
from graphcore.ir.locks import new_lock
from graphcore.ir.provenance import described_by, user_line
from graphcore.rewrites.pipeline import Passes, shared_passes, without_collection

from .boundary import Boundary
from .c_interface import Entry, Interface

Values: TypeAlias = "Callable[..., list[Array]]"
"""From the arguments of a call to the arrays of its results."""


class Choice(NamedTuple):
    """The target of a program and why it runs there; printed, it is a sentence."""

    name: str
    runs: str
    why: str

    def __str__(self) -> str:
        return f"{self.runs}{self.why}"


@fields
class Compilation(NamedTuple):
    """A compilation for the sizes of some calls, of a target that compiles for each set of them.

    `sizes` are unknown sizes by name, `capacities` the most steps of each `while_loop` whose steps
    are recorded. `seconds` is how long it took, with the first call of these sizes.
    """

    sizes: Mapping[str, int]
    capacities: Mapping[str, int]
    seconds: float


class Measurement(Protocol):
    """A program whose parts are measured while it runs."""

    def measure(self) -> float:
        """Measure a call once more; the seconds of the fastest so far."""

    def collect(self, cost: float, machine: Machine, sizes: Mapping[str, int]) -> Found:
        """What ran in the fastest call, which took `cost` seconds longer than usual."""


@attributes(
    graph="The graph of the last pass.",
    boundary="Checks the arguments of a call, and gives arrays and the sizes that "
    "`boundary.unknowns` names.",
)
class Program(ABC):
    """A graph that runs on a target. Errors of its calls are raised in the user's words."""

    def __init__(self, graph: Graph, boundary: Boundary) -> None:
        self.graph, self.boundary = graph, boundary
        self._lock = new_lock()
        self._values: Values | None = None
        self.variants: Callable[[Program], Any] | None = None
        """Makes what derives programs from this one, where another library transforms it."""

    def prepare(self) -> Values:
        """The function that a call runs; its code is made when it is first asked for."""
        with self._lock, without_collection(), described_by(self.graph.trace):
            if self._values is None:
                self._values = self.make()
            return self._values

    @abstractmethod
    def make(self) -> Values:
        """Make the function that a call runs: from arguments in order to arrays of its own."""

    def writer(self) -> Callable[..., None] | None:
        """What computes results in arrays that it is given, if it can: row-major ones, and aligned.

        It is called with the unknown sizes, arrays of the declared dtypes and dims, and these.
        """
        return None

    @property
    def compilations(self) -> Sequence[Compilation]:
        """What was compiled for sizes of calls; nothing where one code serves all sizes."""
        return ()

    def lines(self) -> Sequence[tuple[str, Sequence[Node]]]:
        """The source, line by line, each with the nodes that it computes."""
        return []

    def said_of_threads(self, node: Node) -> str:
        """What `f.why` says of the threads that run a step; nothing if only one does."""
        return ""

    def note(self, node: Node) -> str:
        """What the printer adds to a node of the last stage, such as the buffer of its result."""
        return ""

    @property
    def places(self) -> Mapping[str, str]:
        """The axes of a mesh along which dims lie."""
        return {}

    def below(self) -> str:
        """What the printer adds below the last stage."""
        return ""

    def messages(self, given: Sequence[Any]) -> Any:
        """What devices send each other in a call with these arguments."""
        cure = 'compile it with target="jax", mesh= and shard='
        raise unable("runs on one device, and sends no messages", cure)

    def place(self, given: Sequence[Any]) -> list[Any]:
        """Arguments as arrays where the program wants them."""
        cure = 'compile it with target="jax", mesh= and shard='
        raise unable("runs on one device, where arguments are whole", cure)

    def measure(self, given: Sequence[Any]) -> Measurement:
        """The program as it is measured in calls with these arguments."""
        raise unable("is not measured by step", "time its calls; NumPy calls are measured")

    @property
    def llvm(self) -> str:
        """The LLVM IR that its machine code is made from."""
        raise unable("has no LLVM IR", "compile it with native=True")

    def file_text(self, arguments: Sequence[Any], results: Any) -> str:
        """The program as a Python file of its own, for arguments and results of these forms."""
        raise unable("cannot be one file", "compile it with native=False")

    def c_function(self) -> Callable[[Interface], Entry]:
        """Makes C functions of the program, which run without Python."""
        raise unable("cannot be a C function", "compile it with native=True")


@attributes(
    name="How `compile(..., target=name)` asks for it.",
    costs="What it pays, for passes that choose between two ways to compute the same.",
    shared="The passes before a graph is built that other targets have too.",
    own="The passes after them.",
    runs='What runs programs, in a few words: "NumPy calls".',
    options="The options of `compile` that it alone takes.",
)
class Target(ABC):
    """A way to run programs."""

    name: ClassVar[str]
    runs: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()

    @property
    def costs(self) -> TargetCosts:
        """What it pays, as measured for a processor with BLAS and LAPACK."""
        return TargetCosts()

    @property
    def shared(self) -> Passes:
        """The passes of all targets, with the costs of this one."""
        return shared_passes(self.costs)

    @property
    def own(self) -> Passes:
        """The passes that serve this target alone; its graphs are given to `build` after these."""
        return []

    @property
    def passes(self) -> Passes:
        """All passes."""
        return [*self.shared, *self.own]

    def with_options(self, **options: Any) -> Target:
        """The target with some of its options."""
        return self

    def check(self, graph: Graph) -> None:
        """Refuse a program of named ops that its options do not fit."""
        return

    def for_part(self, graph: Graph) -> Target:
        """The target for a graph made of the user's: its derivative, or that of a block."""
        return self

    def unavailable(self) -> str | None:
        """Why it cannot run on this machine; None where it can."""
        return None

    def lacks(self, graph: Graph) -> Iterable[tuple[Node, str]]:
        """The nodes of a graph after its passes that it cannot compute, each with the reason."""
        return ()

    @abstractmethod
    def build(self, graph: Graph, boundary: Boundary) -> Program:
        """The program of a graph after its passes; code may be made later, by the first call."""


def unable(reason: str, cure: str) -> GraphTypeError:
    """The error for a question that programs of a target do not answer."""
    return GraphTypeError(f"the program {reason}\n  asked at {user_line()}\n  cure: {cure}")
