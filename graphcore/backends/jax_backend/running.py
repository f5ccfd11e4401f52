"""Programs on JAX: one program of XLA for each set of sizes, and one record read after a call."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from graphcore.backends import result_memory
from graphcore.backends.argument_checks import Parameter
from graphcore.backends.boundary import Boundary
from graphcore.backends.chunked import convert_in_memory
from graphcore.backends.errors import reword
from graphcore.backends.failing import SizeError
from graphcore.backends.target import Compilation, Program, Values
from graphcore.ir import Array, Graph, Node
from graphcore.ir.errors import GraphWarning
from graphcore.ir.name_text import show_dim
from graphcore.ir.provenance import described_by, user_line
from graphcore.ir.sizes import evaluate, unknowns
from graphcore.ops import control, leaf, tensor
from graphcore.schedule.order import finders, in_order

from . import inside
from .constants import is_large, on_device
from .emit import Emitter
from .failures import SITE, Failures, can_fail, depth_of
from .sizes import Sizes
from .source import source_lines

CAPACITY = 64
"""The steps of a recorded `while_loop` that there is room for at first."""
barrier: Callable[[], None] = jax.effects_barrier
"""Waits for prints."""


class Traced:
    """A graph as a function that XLA compiles for each set of sizes.

    Parameters
    ----------
    graph
        What it computes.
    names
        The sizes that are numbers when it is compiled.
    """

    meshed: ClassVar[bool] = False

    def __init__(self, graph: Graph, names: Sequence[str]) -> None:
        self.graph, self.names = graph, tuple(names)
        nodes = [*graph.every_node()]
        found = finders(nodes)
        loops = {name: some[0] for name, some in found.items() if some[0].op is control.while_loop}
        with described_by(graph.trace):
            self.loops = [f"{node.said} at {node.origin}" for node in loops.values()]
        self.counted = [*loops]
        self.large = [*dict.fromkeys(filter(is_large, nodes))]
        self.depth, self.reads = depth_of(graph), can_fail(graph)
        self.prints = any(x.op is tensor.print_ for x in nodes)
        self.capacities: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.failures: dict[Any, Failures] = {}
        self.compilations: list[Compilation] = []
        self.jitted = self.jit(self.trace)

    @cached_property
    def constants(self) -> list[Any]:
        """The values of large constants, on the device."""
        return [*map(on_device, self.large)]

    def jit(self, function: Callable[..., Any]) -> Any:
        """The function as XLA compiles it."""
        return jax.jit(function, static_argnums=(2, 3))

    def trace(
        self,
        arrays: Sequence[Any],
        constants: Sequence[Any],
        sizes: tuple[int, ...],
        capacities: tuple[int, ...],
    ) -> tuple[list[Any], Any]:
        """What XLA compiles: the results and the record of a call."""
        return self.emit(arrays, constants, self.find_sizes(sizes, capacities), (sizes, capacities))

    def emit(
        self, arrays: Sequence[Any], constants: Sequence[Any], found: Sizes, key: Any
    ) -> tuple[list[Any], Any]:
        """The results and the record, for sizes as they are while JAX traces."""
        failures = Failures(self.depth, self.counted)
        large = dict(zip(self.large, constants, strict=True))
        emitter = Emitter(found, failures, large, self.meshed)
        with described_by(self.graph.trace):
            results = emitter.graph(self.graph, arrays)
        self.failures[key] = failures
        return results, failures.record if self.reads else None

    def find_sizes(self, sizes: tuple[int, ...], capacities: tuple[int, ...]) -> Sizes:
        """The sizes of a tracing."""
        return Sizes(self.known(sizes), dict(zip(self.counted, capacities, strict=True)))

    def known(self, sizes: tuple[int, ...]) -> dict[str, int]:
        """Sizes by name."""
        return dict(zip(self.names, sizes, strict=True))

    def __call__(self, arrays: Sequence[Any], sizes: tuple[int, ...]) -> list[Any]:
        """The results for checked arrays and numbers; an error in the user's words if it fails.

        If a `while_loop` has more steps than there is room for, all is computed again with room for
        the next power of two.
        """
        capacities = self.capacities.get(sizes) or (CAPACITY,) * len(self.counted)
        while True:
            results, record = self.run(arrays, sizes, capacities)
            if self.prints:
                barrier()
            if record is None:
                return results
            found, failures = np.asarray(record).tolist(), self.failures[sizes, capacities]
            counts = [failures.count(found, name) for name in self.counted]
            if all(count <= capacity for count, capacity in zip(counts, capacities, strict=True)):
                break
            pairs = zip(counts, capacities, strict=True)
            capacities = tuple(
                max(capacity, 1 << (count - 1).bit_length()) for count, capacity in pairs
            )
            self.capacities[sizes] = capacities
        if found[SITE]:
            with described_by(self.graph.trace):
                raise failures.sites[found[SITE] - 1].error(found)
        return results

    def run(
        self, arrays: Sequence[Any], sizes: tuple[int, ...], capacities: tuple[int, ...]
    ) -> tuple[list[Any], Any]:
        """The results and the record; compiled where these sizes are new."""
        new = (sizes, capacities) not in self.failures
        start = time.perf_counter()
        try:
            made: tuple[list[Any], Any] = self.jitted(arrays, self.constants, sizes, capacities)
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise reword(
                MemoryError(str(error)), None, "the memory of the device is full"
            ) from error
        if new:
            shown = {show_dim(name): size for name, size in self.known(sizes).items()}
            lines = dict(zip(self.loops, capacities, strict=True))
            self.compilations.append(Compilation(shown, lines, time.perf_counter() - start))
        return made


class Finder(NamedTuple):
    """What finds a size while a program runs: its value, and what ops need once it is known."""

    name: str
    node: Node
    traced: Traced


class XLAProgram(Program):
    """A graph that runs on JAX.

    Parameters
    ----------
    graph
        The graph of the last pass.
    boundary
        Checks arguments.
    on_device
        Whether results are arrays of JAX, where they lie.
    """

    def __init__(self, graph: Graph, boundary: Boundary, on_device: bool = False) -> None:
        super().__init__(graph, boundary)
        self.on_device = on_device
        names = [*boundary.unknowns]
        self.finders: list[Finder] = []
        for node in in_order(graph.nodes()):
            if node.op is leaf.as_size:
                (name,) = node.attrs["size"].unknowns
                if name not in names:
                    inner = Graph(graph.params, node.inputs, graph.trace)
                    self.finders.append(Finder(name, node, self.part(inner, names)))
                    names.append(name)
        self.needs = [
            need for x in graph.nodes() if x.op is leaf.after for need in x.attrs["needs"]
        ]
        self.traced = self.part(graph, names)

    def part(self, graph: Graph, names: Sequence[str]) -> Traced:
        """A graph of the program, for XLA."""
        return Traced(graph, names)

    @property
    def compilations(self) -> list[Compilation]:
        """The programs that XLA has compiled, those that find sizes first."""
        parts = [*[x.traced for x in self.finders], self.traced]
        return [each for part in parts for each in part.compilations]

    def lines(self) -> Sequence[tuple[str, Sequence[Node]]]:
        """The ops that JAX traces."""
        with described_by(self.graph.trace):
            return source_lines(self.graph)

    @cached_property
    def root(self) -> inside.Variant:
        """The program as a primitive of JAX knows it."""
        assert self.variants is not None
        made: inside.Variant = self.variants(self)
        return made

    def make(self) -> Values:
        """The function of a call's arguments."""
        classes = held_classes()
        bind, plain = self.boundary.binding(classes, held), {*classes.values(), float, int}

        def call(*args: Any) -> list[Array]:
            if not plain.issuperset(map(type, args)) and any(map(is_traced, args)):
                return inside.call(self.root, args)
            # Of this thread, for the call alone, which runs even while JAX traces other values.
            with jax.core.eval_context(), jax.enable_x64(True):
                arrays, sizes = bind(args)
                for finder in self.finders:
                    sizes = (*sizes, self.size(finder, arrays, sizes))
                results = self.traced(arrays, sizes)
            if self.on_device:
                warn_of_halving(results)
                return results
            return [*map(own_array, results)]

        return call

    def size(self, finder: Finder, arrays: Sequence[Any], sizes: tuple[int, ...]) -> int:
        """A size that the program computes, once it fits what ops need."""
        (value,) = finder.traced(arrays, sizes)
        size = int(value)
        with described_by(self.graph.trace):
            if size < 0:
                error = SizeError(f"a computed size is {size}, but sizes are 0 or more")
                raise reword(error, finder.node)
            known = finder.traced.known(sizes) | {finder.name: size}
            for said, left, relation, right in self.needs:
                of = unknowns(left) | unknowns(right)
                if finder.name in of and of <= known.keys():
                    a, b = evaluate(left, known), evaluate(right, known)
                    if not RELATIONS[relation](a, b):
                        raise reword(SizeError(f"{said}, but they are {a} and {b}"), finder.node)
        return size


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": int.__eq__,
    "<": int.__lt__,
    "<=": int.__le__,
}


def warn_of_halving(results: Sequence[Any]) -> None:
    """Warn once that JAX computes with half the bits of what it is given."""
    if _warned or jax.dtypes.canonicalize_dtype(np.float64) == np.float64:
        return
    if any(y.dtype in WIDE for y in results):
        _warned.append(True)
        said = (
            "call: results are of 64 bits, and JAX computes with 32 of them: y + 1 is float32\n"
            "  cure: jax.config.update('jax_enable_x64', True), or inputs of dtype='float32'"
        )
        line = user_line()
        warnings.warn_explicit(said, GraphWarning, line.file, line.line)


_warned: list[bool] = []
WIDE = ("float64", "complex128", "int64", "uint64")


@cache
def held_classes() -> dict[str, type]:
    """The classes of arguments that are taken as they are where they fit, by names in code."""
    with jax.core.eval_context():
        return {"ndarray": np.ndarray, "device_array": type(jnp.zeros(0))}


def is_traced(x: Any) -> bool:
    """Whether JAX traces an argument."""
    return isinstance(x, jax.core.Tracer)


def held(param: Parameter, x: Any) -> Any:
    """An argument in the dtype and dims of an input; an array of JAX stays where it is."""
    if not isinstance(x, jax.Array):
        return convert_in_memory(param, x)
    param.convert(stand_in(x.shape, x.dtype))
    return x.astype(param.dtype)


@lru_cache(maxsize=256)
def stand_in(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array that needs no memory, for one of JAX of this shape and dtype."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def own_array(x: Any) -> Array:
    """A result as an array of NumPy that shares memory with nothing, and may be written to."""
    found = result_memory.empty(x.shape, x.dtype)
    np.copyto(found, x)
    return found
