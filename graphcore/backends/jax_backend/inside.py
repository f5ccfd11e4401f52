"""A program inside of functions that JAX transforms: `jax.jit`, `grad`, `jvp`, `vmap`, `hessian`.

One primitive of JAX stands for the program and for all variants of it. Its `jvp` is the variant
that computes tangents, its transpose the one that computes cotangents, its batching the one on
inputs with one more axis. So JAX's transformations nest in any order, and JAX differentiates none
of the program.

Nobody can raise an error there, or call once more: results of a call that fails are nan, integers 0
and bools False, and the steps that a derivative records need a limit.

Large constants are operands of the primitive, behind the inputs: JAX captures them as it does those
of its own functions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from functools import cache, partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from graphcore.backends.argument_checks import refusal
from graphcore.ir import Array, Graph, Node
from graphcore.ir.dtypes import differentiable
from graphcore.ir.errors import GraphError, GraphTypeError
from graphcore.ir.name_text import show_dim
from graphcore.ir.provenance import described_by
from graphcore.ir.sizes import evaluate
from graphcore.ops import control

from .emit import Emitter
from .failures import Failures
from .sizes import Sizes

Numbers = tuple[int, ...]


class Variant(Protocol):
    """A program, or its derivative or batched form, as `compile.variants.Variant` has it."""

    graph: Graph
    floats: Numbers

    @property
    def program(self) -> Any:
        """The compiled program."""

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What is made for a key, by the first call that needs it."""

    def with_values(self, values: Mapping[int, int]) -> Variant:
        """The program without some inputs, whose values are these."""

    def pushforward(self, moving: Numbers) -> Variant:
        """From inputs and tangents of some to tangents of floats."""

    def transpose(self, moving: Numbers, given: Numbers) -> Variant:
        """From cotangents of some outputs to those of some inputs."""

    def vectorize(self, axes: tuple[int | None, ...]) -> tuple[Variant, tuple[bool, ...]]:
        """The program on inputs with one more axis each, and which outputs have it."""


program_p: Any = Primitive("graphcore")
program_p.multiple_results = True


def call(variant: Variant, args: Sequence[Any]) -> list[Any]:
    """The results for arguments that JAX traces, all or some of them."""
    refuse_computed_sizes(variant.program)
    boundary = variant.program.boundary
    read = [x.parameter for x in boundary.giver.values() if x.axis is None]
    for i in read:
        if isinstance(args[i], jax.core.Tracer):
            param = boundary.params[i]
            reason = f"the value of input {param.shown} is a size, but JAX traces it"
            cure = "pass an integer of Python, as static_argnums of jax.jit does"
            raise refusal(reason, param.declared, cure=cure, kind=GraphTypeError)
    given = [
        x if i in read or not isinstance(x, jax.Array) else stand_in(x.shape, x.dtype)
        for i, x in enumerate(args)
    ]
    arrays, _ = boundary.bind(given)
    if read:
        variant = variant.with_values({i: int(arrays[i]) for i in read})
    operands = [
        jnp.asarray(x if isinstance(x, jax.Array) else array, canonical(array.dtype))
        for i, (x, array) in enumerate(zip(args, arrays, strict=True))
        if i not in read
    ]
    return bind(variant, *operands)


def bind(variant: Variant, *operands: Any) -> list[Any]:
    """The results for operands of the dtypes that JAX has; on a mesh at their places."""
    given = *operands, *variant.program.traced.constants
    if not variant.program.traced.meshed:
        made: list[Any] = program_p.bind(*given, variant=variant)
        return made
    placed: list[Any] = variant.once("placed", lambda: jax.jit(partial(at_places, variant)))(*given)
    return placed


def at_places(variant: Variant, *given: Any) -> list[Any]:
    """The results on a mesh; by the places of its own arrays JAX sees which devices it is for."""
    boundary, placement = variant.program.boundary, variant.program.placement
    operands = [*map(placement.constrain, given, boundary.types)]
    made = program_p.bind(*operands, *given[len(operands) :], variant=variant)
    return [*map(placement.constrain, made, boundary.results)]


def inputs(variant: Variant, given: Sequence[Any]) -> Sequence[Any]:
    """What is given for the inputs, without what is given for large constants."""
    return given[: len(variant.graph.params)]


def refuse_computed_sizes(program: Any) -> None:
    """Refuse a program with sizes that are known only while it runs."""
    for finder in program.finders:
        (x,) = finder.node.inputs
        with described_by(program.graph.trace):
            reason = f"{x.op.said} at {x.origin} computes the size {show_dim(finder.name)}, and "
        reason += "functions that JAX traces have only arrays of known sizes"
        raise refusal(reason, cure="call the program outside of it", kind=GraphTypeError)


def stand_in(shape: Sequence[int], dtype: Any) -> Array:
    """An array that needs no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def canonical(dtype: Any) -> Any:
    """The dtype that JAX has for one of a program: of 32 bits, unless x64 is on."""
    return jax.dtypes.canonicalize_dtype(dtype)


# ---- values


def shapes(*avals: Any, variant: Variant) -> tuple[list[ShapedArray], Set[Any]]:
    """The types of the results for operands of these types, and whether it prints."""
    known, traced = sizes_for(variant, inputs(variant, avals)), variant.program.traced
    capacities(variant, known)
    types = [
        ShapedArray(tuple(evaluate(n, known) for n in y.type.shape), canonical(y.type.dtype))
        for y in variant.graph.outputs
    ]
    return types, effects_of_prints(not traced.meshed) if traced.prints else set()


@cache
def effects_of_prints(ordered: bool) -> Set[Any]:
    """The marks by which JAX leaves out no print of its own functions, nor changes their order."""
    with jax.core.eval_context():
        prints = lambda: jax.debug.callback(lambda: None, ordered=ordered)
        effects: Set[Any] = jax.make_jaxpr(prints)().effects
    return effects


def sizes_for(variant: Variant, arrays: Sequence[Any]) -> dict[str, int]:
    """The unknown sizes by name, for arrays of these shapes."""
    boundary = variant.program.boundary
    pairs = zip(boundary.params, arrays, strict=True)
    known: dict[str, int]
    _, known = boundary.bind_named([stand_in(x.shape, param.dtype) for param, x in pairs])
    return known


def capacities(variant: Variant, known: Mapping[str, int]) -> tuple[int, ...]:
    """How many steps each recorded loop may have, 1 at least; refused where one has no limit."""
    program = variant.program
    limits: dict[str, list[Node]] = {name: [] for name in program.traced.counted}
    for node in program.graph.every_node():
        if node.op is control.while_loop and node.attrs["trips"] is not None:
            (name,) = node.attrs["trips"].unknowns
            limits[name].append(node)
    found = []
    for loops in limits.values():
        for node in loops:
            if "most" not in node.attrs:
                raise unlimited(program, node)
        found.append(max(1, *(evaluate(node.attrs["most"], known) for node in loops)))
    return tuple(found)


def unlimited(program: Any, loop: Node) -> GraphError:
    """The error for a loop whose steps are recorded, and of which there may be any number."""
    with described_by(program.graph.trace):
        reason = f"the derivative of the while_loop at {loop.origin} needs the values of each step,"
    reason += " and functions that JAX traces have no arrays for any number of steps"
    cure = "limit the steps by a number: gc.while_loop(cond, body, init, max_steps=100)"
    return refusal(reason, cure=cure, kind=GraphTypeError)


def compute(variant: Variant, dtypes: Sequence[Any], *operands: Any) -> list[Any]:
    """The results in these dtypes; nan, or 0, if the program fails."""
    program = variant.program
    params, traced = program.boundary.params, program.traced
    given = inputs(variant, operands)
    large = dict(zip(traced.large, operands[len(given) :], strict=True))
    arrays = [x.astype(param.dtype) for x, param in zip(given, params, strict=True)]
    known = sizes_for(variant, arrays)
    capacity = dict(zip(traced.counted, capacities(variant, known), strict=True))
    failures = Failures(traced.depth, traced.counted)
    emitter = Emitter(Sizes(known, capacity), failures, large, traced.meshed)
    with described_by(program.graph.trace):
        results = emitter.graph(program.graph, arrays)
    if failures.sites:
        results = [jnp.where(failures.failed, nothing(y.dtype), y) for y in results]
    return [y.astype(dtype) for y, dtype in zip(results, dtypes, strict=True)]


def nothing(dtype: Any) -> Any:
    """What stands for a result that there is not."""
    return np.asarray(np.nan if dtype.kind in "fc" else 0).astype(dtype)


def lower(context: mlir.LoweringRuleContext, *operands: Any, variant: Variant) -> Any:
    """The program as a part of the one that XLA compiles, in the dtypes that it was written in."""
    dtypes = [aval.dtype for aval in context.avals_out]
    lowered = mlir.lower_fun(
        lambda *arrays: compute(variant, dtypes, *arrays), multiple_results=True
    )
    with jax.enable_x64(True):
        return lowered(context, *operands)


def run(*operands: Any, variant: Variant) -> list[Any]:
    """The results for arrays, where JAX transforms a function without tracing it."""
    make = lambda: jax.jit(lambda *arrays: program_p.bind(*arrays, variant=variant))
    made: list[Any] = variant.once("jitted", make)(*operands)
    return made


# ---- transformations


def push(primals: Sequence[Any], tangents: Sequence[Any], *, variant: Variant) -> Any:
    """The results and their tangents."""
    primals, tangents = inputs(variant, primals), inputs(variant, tangents)
    ys = bind(variant, *primals)
    moved = [ad.Zero(jax.typeof(y).to_tangent_aval()) for y in ys]
    moving = tuple(
        i
        for i, (x, tangent) in enumerate(zip(variant.graph.params, tangents, strict=True))
        if type(tangent) is not ad.Zero and differentiable(x.type.dtype)
    )
    if moving and variant.floats:
        given = [tangents[i] for i in moving]
        made = bind(variant.pushforward(moving), *primals, *given)
        for i, tangent in zip(variant.floats, made, strict=True):
            moved[i] = tangent
    return ys, moved


def transpose(cts: Sequence[Any], *operands: Any, variant: Variant) -> list[Any]:
    """The cotangents of the operands that are to be found, in which the program is linear."""
    moving = tuple(i for i, x in enumerate(operands) if isinstance(x, ad.UndefinedPrimal))
    given = tuple(i for i, ct in enumerate(cts) if type(ct) is not ad.Zero)
    found: list[Any] = [None] * len(operands)
    if not given:
        for i in moving:
            found[i] = ad.Zero(operands[i].aval)
        return found
    known = [x for i, x in enumerate(inputs(variant, operands)) if i not in moving]
    made = bind(variant.transpose(moving, given), *known, *[cts[i] for i in given])
    for i, ct in zip(moving, made, strict=True):
        found[i] = ct
    return found


def vectorize(operands: Sequence[Any], axes: Sequence[int | None], *, variant: Variant) -> Any:
    """The results for a batch of operands, and where they have its axis."""
    wide, has = variant.vectorize(tuple(inputs(variant, axes)))
    made = bind(wide, *inputs(variant, operands))
    return made, [0 if there else None for there in has]


program_p.def_effectful_abstract_eval(shapes)
program_p.def_impl(run)
mlir.register_lowering(program_p, lower)
ad.primitive_jvps[program_p] = push
ad.primitive_transposes[program_p] = transpose
batching.primitive_batchers[program_p] = vectorize
