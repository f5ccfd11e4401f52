"""The targets of the library, and the rule by which one is chosen where none is asked for.

The choice depends on the ops of a program and on the machine alone, neither on sizes nor on times:
so equal calls give equal bits, from the first to the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from graphcore.analysis.cost import TargetCosts
from graphcore.ir import Graph, Node, Trait
from graphcore.ir.axes import Along, Matrices
from graphcore.ir.graph import bodies_of
from graphcore.ops import leaf, tensor
from graphcore.rewrites.pipeline import Passes, shared_passes

from .boundary import Boundary
from .mesh import Sharding, refused, sharding_of
from .target import Program, Target


class NumPyCalls(Target):
    """Python functions of NumPy and SciPy calls: on every machine, for every op."""

    name, runs = "numpy", "NumPy calls"

    @property
    def own(self) -> Passes:
        """Parts are added at their places, and constants computed."""
        from .numpy_backend.passes import OWN

        return OWN

    def build(self, graph: Graph, boundary: Boundary) -> Program:
        """A program of NumPy calls."""
        from .numpy_backend.program import NumPyProgram

        return NumPyProgram(graph, boundary)


class MachineCode(Target):
    """Machine code, with NumPy calls for the ops that have none; loaded when it is first used."""

    name, runs = "native", "machine code"

    @property
    def costs(self) -> TargetCosts:
        """What machine code pays; for the shared passes the same as NumPy calls."""
        from .llvm_kernels.flops import COSTS

        return COSTS

    @property
    def own(self) -> Passes:
        """Nodes are laid out, computed again where that is cheaper, and joined to kernels."""
        from .llvm_kernels import OWN

        return OWN

    def unavailable(self) -> str | None:
        """Why no machine code can run here; None where it can."""
        from . import llvm_kernels

        return llvm_kernels.unavailable()

    def build(self, graph: Graph, boundary: Boundary) -> Program:
        """A program of machine code."""
        from .llvm_kernels.program import NativeProgram

        return NativeProgram(graph, boundary)

    def gains(self, graph: Graph) -> Node | None:
        """The first node that a kernel computes and NumPy not as well; None if there is none.

        Views, copies, sorts, transforms of rows, and single products and factorisations of matrices
        are the same work, or the same routines of BLAS and LAPACK, for both.
        """
        if not (found := [node for node in graph.every_node() if not is_as_quick(node)]):
            return None
        from . import llvm_kernels

        def computes(node: Node) -> bool:
            within = [x for body in bodies_of(node) for x in body.every_node()]
            return all(map(llvm_kernels.computes, (node, *within)))

        return next(filter(computes, found), None)


class XLA(Target):
    """Programs that JAX traces and XLA compiles, for each set of sizes; JAX is an extra.

    Parameters
    ----------
    on_device
        Whether results are arrays of JAX.
    buckets
        Whether sizes are rounded up.
    sharding
        The dims that lie along axes of a mesh; None for one device.
    """

    name, runs = "jax", "XLA"
    options = frozenset({"returns", "sizes", "mesh", "shard", "gather"})

    def __init__(
        self, on_device: bool = False, buckets: bool = False, sharding: Sharding | None = None
    ) -> None:
        self.on_device, self.buckets, self.sharding = on_device, buckets, sharding

    def with_options(self, **options: Any) -> XLA:
        """The target whose results, sizes and devices are as asked for."""
        given = {"mesh": None, "shard": None, "gather": "say", **options}
        sharding = sharding_of(given["mesh"], given["shard"], given["gather"])
        buckets = options.get("sizes") == "buckets"
        if buckets and sharding is not None:
            cure = "leave it out: a size is padded there to what devices divide evenly"
            raise refused("sizes='buckets' is for one device, not for a mesh", cure)
        return XLA(options.get("returns") == self.name, buckets, sharding)

    def check(self, graph: Graph) -> None:
        """Refuse dims that do not fit the program or the mesh."""
        if self.sharding is not None:
            self.sharding.check(graph)

    def for_part(self, graph: Graph) -> Target:
        """The same devices, for the dims that the graph has."""
        if self.sharding is None:
            return self
        return XLA(self.on_device, self.buckets, self.sharding.among(graph))

    @property
    def costs(self) -> TargetCosts:
        """What XLA pays, on an accelerator or not."""
        return TargetCosts(exponentials_of_choice=None)

    @property
    def shared(self) -> Passes:
        """The passes of all targets, but contractions stay whole."""
        from .jax_backend.passes import WHOLE

        return shared_passes(self.costs, WHOLE)

    @property
    def own(self) -> Passes:
        """On a mesh axes are not merged, and the last stage is printed with their places."""
        from .jax_backend.passes import SHARDED

        return [] if self.sharding is None else [SHARDED]

    def unavailable(self) -> str | None:
        """That JAX is not installed."""
        if find_spec("jax") is None:
            return "JAX is not installed: pip install 'graphcore[jax]'"
        return None

    def lacks(self, graph: Graph) -> Iterator[tuple[Node, str]]:
        """The nodes without an entry, those along axes whose sizes a loop finds; host calls."""
        from .jax_backend.lacks import lacks

        return lacks(graph, self.buckets, self.sharding is not None)

    def build(self, graph: Graph, boundary: Boundary) -> Program:
        """A program of JAX."""
        from .jax_backend.buckets import BucketedProgram
        from .jax_backend.meshed import MeshedProgram
        from .jax_backend.running import XLAProgram

        if self.sharding is not None:
            return MeshedProgram(graph, boundary, self.on_device, self.sharding)
        kind = BucketedProgram if self.buckets else XLAProgram
        return kind(graph, boundary, self.on_device)


def is_as_quick(node: Node) -> bool:
    """Whether NumPy calls are as quick as kernels for a node by itself."""
    kind = node.op.axes
    if isinstance(kind, Matrices):  # of a batch NumPy calls BLAS or LAPACK for each
        single: bool = node.inputs[0].type.ndim == len(kind.given[0])
        return single
    if isinstance(kind, Along) and kind.moves:  # sorts, and transforms of rows
        return True
    return node.op in COPIES or bool(NO_WORK & node.op.traits)


NO_WORK = {Trait.FREE, Trait.VIEW, Trait.EFFECT}
COPIES = {
    *(leaf.input_, leaf.as_size),
    *(tensor.pack, tensor.embed, tensor.overwrite, tensor.concat, tensor.gather),
}

NUMPY, NATIVE, JAX = NumPyCalls(), MachineCode(), XLA()
TARGETS: dict[str, Target] = {target.name: target for target in (NUMPY, NATIVE, JAX)}


def target_by_rule(graph: Graph) -> tuple[Target, str]:
    """The target of a graph after the shared passes, and why."""
    if (node := NATIVE.gains(graph)) is None:
        return NUMPY, ": machine code would gain nothing"
    if why := NATIVE.unavailable():
        return NUMPY, f": {why}"
    return NATIVE, f", as kernels compute {node.said}"
