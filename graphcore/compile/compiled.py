"""`compile` and the programs it makes: the only place that knows every part."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from operator import itemgetter
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_args,
    overload,
)

import numpy.typing as npt

from graphcore.backends.arguments import Arguments
from graphcore.backends.boundary import Boundary
from graphcore.backends.c_function import CFunction
from graphcore.backends.chunked import InChunks, require_in_memory
from graphcore.backends.given_results import GivenResults
from graphcore.backends.mesh import Gather, Mesh
from graphcore.backends.target import Choice, Target, Values
from graphcore.backends.targets import NUMPY, target_by_rule
from graphcore.frontend.core.arguments import check_word
from graphcore.frontend.core.base import Tensor, refusal, type_refusal
from graphcore.frontend.core.trees import Tree, flatten, picker
from graphcore.frontend.core.wrong_calls import reword_errors
from graphcore.inspection.shown import file_at
from graphcore.interop.label_joins import Inner, Join, check_constants, joined_dims
from graphcore.interop.xarrays import DataArrays
from graphcore.ir import Array, Graph
from graphcore.ir.help_text import attributes, parameters
from graphcore.ir.name_text import show_dim
from graphcore.ir.provenance import described_by, public_call
from graphcore.ir.structures import leaves
from graphcore.ir.trace import Trace, rule_name
from graphcore.ops import leaf
from graphcore.rewrites import pipeline
from graphcore.rewrites.engine import Rules, is_importable
from graphcore.rewrites.pipeline import COMMON

from .asked import (
    Asked,
    Returns,
    Sizes,
    asked_for,
    require_ops,
    target_asked_for,
    with_options,
    written,
)
from .inputs import after_sizes, not_listed, program
from .precision import require_precision
from .questions import Questions, Stages, lowered
from .variants import Variant

K = TypeVar("K")
if TYPE_CHECKING:  # which know it: Compiled alone is Compiled[Any]
    from typing_extensions import TypeVar as Defaulted

    from graphcore.interop.blocks import ByBlocks

    R = Defaulted("R", default=Any)
else:
    R = TypeVar("R")

Plain: TypeAlias = Literal["numpy"]


class Options(TypedDict, total=False):
    """The arguments of `compile` that every form of results takes alike."""

    native: bool | None
    target: str | Target | None
    join: Join
    dtype: npt.DTypeLike | None
    rules: Rules
    sizes: Sizes
    mesh: Mesh | None
    shard: Mapping[str, str] | None
    gather: Gather


@overload
def compile(
    inputs: Tree, outputs: Tensor, *, returns: Plain = ..., **options: Unpack[Options]
) -> Compiled[Array]: ...
@overload
def compile(
    inputs: Tree, outputs: list[Tensor], *, returns: Plain = ..., **options: Unpack[Options]
) -> Compiled[list[Array]]: ...
@overload
def compile(
    inputs: Tree, outputs: dict[K, Tensor], *, returns: Plain = ..., **options: Unpack[Options]
) -> Compiled[dict[K, Array]]: ...
@overload
def compile(
    inputs: Tree,
    outputs: tuple[Tensor, Tensor],
    *,
    returns: Plain = ...,
    **options: Unpack[Options],
) -> Compiled[tuple[Array, Array]]: ...
@overload
def compile(
    inputs: Tree,
    outputs: tuple[Tensor, Tensor, Tensor],
    *,
    returns: Plain = ...,
    **options: Unpack[Options],
) -> Compiled[tuple[Array, Array, Array]]: ...
@overload
def compile(
    inputs: Tree, outputs: Tree, *, returns: Returns = ..., **options: Unpack[Options]
) -> Compiled[Any]: ...
@reword_errors
@parameters(
    inputs="Tensors made by `tensor`, in the order of the call's arguments. Lists, tuples, dicts "
    "and dataclasses of them are arguments of the same form. An inner tensor may be among them: "
    "the call then gives its value, and does not need the inputs that it is computed from.",
    outputs="What to compute: a tensor, or nested lists, tuples, dicts, dataclasses and objects of "
    "registered classes (`gc.tree.register`), which the result mirrors.",
    returns='What results are: "numpy" arrays with their axes in the order of the dims of the '
    'output, or "xarray" DataArrays, without names and attrs. They have the coordinates that '
    "xarray would give them, from the arguments and from constants that are DataArrays. These are "
    "selected, joined, padded with nan, averaged over blocks, or merged to levels of an index. "
    "Where one position is picked the coordinate becomes a scalar. A dim that is sorted, "
    "transformed or new has no coordinate, nor one that a loop or branch selects from, nor one "
    "along which different elements of one argument meet. "
    'With "jax", which needs `target="jax"`, they are arrays of JAX, where they were computed.',
    native='Whether machine code runs the program: True is `target="native"`, False '
    '`target="numpy"`.',
    target='What runs the program, from the first call to the last. With "numpy" it is NumPy '
    'calls. With "native" it is machine code, whose first call takes tens to hundreds of '
    'milliseconds more. With "jax" it is a program of XLA for each set of sizes that calls '
    "have. None, the default, decides by the ops of the program: machine code if it computes some "
    "of them otherwise than NumPy does, and if this machine can run it. `Compiled.target` says "
    "which and why. A `Target` of another package may be given too. The first two differ by "
    "rounding: results of elementwise operations by at most 4 units in the last place.",
    join="How labels of one dim are joined that differ between DataArrays, arguments or constants. "
    'By default, "exact", the call is refused. With "override" elements meet by position, and '
    'results have the labels of the first. With "inner" those meet whose labels all have, in the '
    "order of the first; where a size is declared, none may go. A dim without labels agrees with "
    'all, and a dim with a size of another name, {"time": "n_other"}, is another one.',
    dtype='The widest float of the program: "float32" refuses an operation that makes float64 of '
    "float32, and float64 inputs and outputs, and names their line. None allows all.",
    rules="Rewrite rules of your own, tried before those of the library: a list of equations, such "
    "as `(P.log(P.exp(x)), lambda x: x)`, and of functions under `on`, or a `RuleSet`. They "
    "simplify the program before its derivatives are taken, for every target.",
    sizes='How `target="jax"` compiles for unknown sizes. With "exact" each set of them has a '
    'program of its own. With "buckets" sizes are rounded up to powers of two: there are few '
    "programs, and padding takes time, but has no part in the results.",
    mesh='The devices that run the program together, for `target="jax"`: `gc.Mesh({"data": 8})`.',
    shard='Which dim of inputs and outputs lies along which axis of the mesh: {"batch": "data"}. '
    "Every device has the whole of other dims. Where other values lie XLA decides. An unknown size "
    "that devices do not divide evenly is padded, and the results are the same.",
    gather="What is done about a value of 1 MB or more that every device needs as a whole: by "
    'default, "say", a warning names its line. With "refuse" the call is refused.',
)
def compile(
    inputs: Tree,
    outputs: Tree,
    *,
    returns: Returns = "numpy",
    native: bool | None = None,
    target: str | Target | None = None,
    join: Join = "exact",
    dtype: npt.DTypeLike | None = None,
    rules: Rules = (),
    sizes: Sizes = "exact",
    mesh: Mesh | None = None,
    shard: Mapping[str, str] | None = None,
    gather: Gather = "say",
) -> Compiled[Any]:
    """A compiled program, which computes `outputs` from `inputs`.

    GraphError if two inputs share a name, or if an output needs an input that is not given. If a
    derivative passes through an inner tensor that is an input. If this machine cannot run the
    target that is asked for, or the target lacks an operation. If a rule changes a type, or rules
    never come to an end.

    >>> import graphcore as gc, numpy as np
    >>> x = gc.tensor("x", {"row": None})
    >>> f = gc.compile([x], {"total": x.sum(), "twice": 2 * x})
    >>> f(np.array([1.0, 2.0]))
    {'total': array(3.), 'twice': array([2., 4.])}

    >>> import xarray
    >>> g = gc.compile([x], 2 * x, returns="xarray")
    >>> g(xarray.DataArray([1.0, 2.0], {"row": ["a", "b"]})).coords["row"].values
    array(['a', 'b'], dtype='<U1')

    >>> h = gc.exp(x)
    >>> gc.compile([h], gc.grad((h * h).sum(), h))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    arguments = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    params, arranged = flatten(arguments, "inputs")
    results, mirrored = flatten(outputs, "outputs")
    nodes = [x.node for x in params]
    graph = program(nodes, [y.node for y in results], not_listed(nodes))
    if dtype is not None:
        require_precision(graph, dtype)
    options = {"returns": returns, "sizes": sizes, "mesh": mesh, "shard": shard, "gather": gather}
    asked = with_options(asked_for(native, target), options)
    return Compiled(graph, arranged.form(), mirrored.form(), returns, asked, join, rules)


@attributes(
    stages='The graphs between the parts of compilation, by name: "named", "lowered", '
    '"simplified", "expanded", "optimized" and "scheduled"; for machine code also "kernels". '
    "`print` shows a graph as `debug_print` does. The name of any pass gives the graph after it.",
    passes="Every pass in order, as a tuple of `name`, `graph` (after it), `records` (its "
    "rewrites), `seconds` and `change`.",
)
class Compiled(Questions, Generic[R]):
    """A compiled program: call it, or look into it.

    For type checkers it is generic in the form of its results: `Compiled[Array]`.

    Safe to call from several threads at once; pickled, it compiles again where it is loaded.
    """

    __name__ = "program"  # libraries such as xarray ask a function for its name

    def __init__(
        self,
        graph: Graph,
        arguments: list[Tree],
        results: Tree,
        returns: Returns = "numpy",
        asked: Asked = None,
        join: Join = "exact",
        rules: Rules = (),
    ) -> None:
        if type(arguments) is not list or any(y.type.dims is None for y in graph.outputs):
            reason = "its class takes a graph of the stage 'named', and forms of the results"
            cure = "write gc.compile(inputs, outputs); tensors of a graph are gc.Tensor(node)"
            raise type_refusal(reason, cure=cure, name="Compiled")
        self._arguments, self._results, self._returns = arguments, results, returns
        self._asked, self._join = asked, join
        target = target_asked_for(asked)
        if target is not None:
            target.check(graph)
        check_word("join", join, get_args(Join))
        self._label = labeller(graph, returns, join)
        dims = joined_dims(graph) if join != "override" else []
        check_constants(dims)
        graph = Graph(graph.params, graph.outputs, Trace(graph.lines()))
        with pipeline.without_collection(), described_by(graph.trace):
            self._boundary = Boundary(graph, dims if join == "exact" else ())
            shared = COMMON if target is None else target.shared
            self._own = pipeline.Own.of(rules, public_call("compile"), shared)
            self.passes = pipeline.run(graph, self._own.into(shared))
            if target is None:
                target, why = target_by_rule(self.passes[-1].graph)
            else:
                why = f", as {written(asked)}"
            self.passes = pipeline.run(
                self.passes[-1].graph, self._own.into(target.own), self.passes
            )
            self.stages = Stages(self.passes)
            self.target = Choice(target.name, target.runs, why)
            require_ops(target, self.passes[-1].graph)
            self._program = target.build(self.passes[-1].graph, self._boundary)
        self._part = partial(part, self.target.name if asked is None else asked, self._own.rules)
        self._program.variants = partial(Variant, graph, self._part)
        self._values: Values = first_call(weakref.ref(self))
        self._given = Arguments(arguments, self._boundary.params)
        self._has_out = any(param.name == "out" for param in self._boundary.params)
        self._plain = len(arguments) if arguments == list(range(len(arguments))) else -1
        if join == "inner":  # all arguments are arranged
            self._given = Inner(arguments, self._boundary.params, self._boundary.types, dims)
            self._plain = -1
        kind, numbers = type(results), [*range(len(graph.outputs))]
        flat = kind in (list, tuple) and [*results] == numbers
        self._result: Callable[[list[Array]], Any] = kind if flat else picker(results)

    def __call__(self, /, *args: Any, out: Any = None, **kwargs: Any) -> R:
        """The results for these arrays, by position or by name, in the form of the outputs.

        The results are written into the arrays `out`, which have that form, and these are
        returned. A program with an input of this name takes its value instead. A call that fails
        may have written into some.

        If an argument is a DataArray in chunks of Dask, the results are lazy DataArrays: see
        `over_blocks`.
        """
        if out is not None and self._has_out:
            kwargs["out"], out = out, None
        if kwargs or len(args) != self._plain:
            args = self._given.arrange(args, kwargs)
        try:
            values = self._values(*args) if out is None else self._given_results.fill(out, args)
        except InChunks:
            values = None
        if values is None:
            return cast(R, self._result(self._by_blocks(args, out)))
        if self._label is not None:
            values = self._label(values, args)
        elif out is not None:
            return cast(R, out)
        results: R = self._result(values)
        return results

    @cached_property
    def _by_blocks(self) -> ByBlocks:
        """What calls the program block by block."""
        from graphcore.interop.blocks import ByBlocks  # which imports Dask

        graph = self.stages["named"]
        with_labels = cast(Callable[[], DataArrays], lambda: labeller(graph, "xarray", self._join))
        return ByBlocks(graph, self._boundary, self._part, lowered, with_labels)

    @cached_property
    def _given_results(self) -> GivenResults:
        """What writes results into arrays of the caller's."""
        return GivenResults(self._results, self.stages["named"], self._boundary, self._program)

    @reword_errors
    @parameters(path="The file, which is overwritten. Import it from its path, under any name.")
    def export(self, path: str | PathLike[str]) -> None:
        """Write the program to one Python file that needs NumPy alone, and SciPy if it uses that.

        Its function `program` takes the arguments of a call and checks them with the same errors.
        It returns the same bits as a program compiled with `native=False`. Dataclasses are replaced
        by ones of the same name and fields. Strings of the program, such as names of inputs and
        dims, are in it as literals and comments, never as code. Labels of constants are compared
        as text.

        GraphError if the program runs a callback or an operation of another package, or returns
        DataArrays, or if its inputs or outputs are in registered classes.

        >>> import graphcore as gc, runpy, tempfile, pathlib
        >>> x = gc.tensor("x", {"row": None})
        >>> path = pathlib.Path(tempfile.mkdtemp(), "twice.py")
        >>> gc.compile([x], 2 * x).export(path)
        >>> runpy.run_path(str(path))["program"](x=[1.0, 2.0])
        array([2., 4.])
        """
        file = file_at("export", path, "program.py")
        if self._returns == "xarray":
            cure = 'compile it with returns="numpy"'
            raise refusal("the program returns DataArrays, which need xarray", cure=cure)
        plain = self._for(NUMPY)
        text = plain._program.file_text(self._arguments, self._results)
        file.write_text(text, encoding="utf-8")

    @reword_errors
    @parameters(
        declaration="The function in C. The names of its parameters are inputs, results and dims. "
        "Inputs without dims may be values; others, and results, are pointers to row-major arrays. "
        "An integer that is named after a dim gives its size. `void *` parameters are ignored. "
        "None, the default, makes one: sizes, inputs, then pointers for all results. A result of "
        'one float may be returned, as by `"double f(double x)"`; it is nan if the call fails. '
        'Other functions return a status, as by `"int f(const double *x, double *y)"`.',
        success="The status of a call that did not fail. If it is 0, a positive status says that "
        "the program fails at these values (1) or that a result has nan (2), and a negative one "
        "that no values would help. If it is another number, such as 1 for SciPy, a call that "
        "fails returns 0, and nan is no failure.",
        sizes="Sizes that are the same in all calls, by the names of dims.",
    )
    def cfunc(self, declaration: str | None = None, success: int = 0, **sizes: int) -> CFunction:
        """The program as a C function, which runs without Python and without the GIL.

        GraphError if the program is not machine code throughout, if it prints or calls Python, or
        if it has a size that is found while it runs. If the declaration does not fit the program.

        Examples
        --------
        >>> import graphcore as gc, scipy
        >>> x = gc.tensor("x", {"row": None})
        >>> f = gc.compile([x], (x**2).sum(), native=True)
        >>> c = f.cfunc("double f(int row, double *x)")
        >>> c.signature
        'double (int, double *)'
        >>> value, _ = scipy.integrate.nquad(scipy.LowLevelCallable(c.ctypes), [[0, 1], [0, 1]])
        >>> round(value, 9)
        0.666666667
        """
        return self._c_function(declaration, success, success == 0, sizes)

    def _c_function(
        self, declaration: str | None, success: int, finds_nan: bool, sizes: dict[str, int]
    ) -> CFunction:
        """The program as a C function, which may return nan as a failure."""
        from graphcore.backends.c_function import c_function  # loaded at its first use

        if self._join == "inner":
            raise refusal("C functions have no labels to join", cure="compile it without join=")
        paths = [path for path, _ in sorted(leaves(self._results), key=itemgetter(1))]
        named = self.stages["named"]
        return c_function(self._program, named, paths, declaration, success, finds_nan, sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        forms = self._arguments, self._results, self._returns
        if local := [rule for rule in self._own.rules.rules() if not is_importable(rule)]:
            reason = (
                f"a pickle cannot hold the rule {rule_name(local[0])}: no module has it by name"
            )
            cure = "write its function as a def in a module, in place of a lambda"
            raise type_refusal(reason, cure=cure, name="Compiled")
        rules = [self._own.rules] if self._own.rules.entries else []
        return Compiled, (self.stages["named"], *forms, self._asked, self._join, *rules)

    def _for(self, target: Target) -> Compiled[Any]:
        """The program on another target, with its results as arrays; itself if it runs there."""
        if self.target.name == target.name:
            return self
        forms = self._arguments, self._results
        asked, rules = target.name, self._own.rules
        return Compiled(self.stages["named"], *forms, asked=asked, rules=rules)

    def __repr__(self) -> str:
        from graphcore.inspection.text import few

        typed = zip(self._boundary.params, self._boundary.types, strict=True)
        inputs = few(f"{show_dim(param.name)}: {type}" for param, type in typed)
        outputs = few(str(y.type) for y in self.stages["named"].outputs)
        return f"<Compiled ({inputs}) -> ({outputs}): {self.target}>"


def part(asked: Asked, rules: Rules, graph: Graph) -> Compiled[list[Array]]:
    """A program of another graph, with results as arrays, that runs as one does."""
    form = [*range(len(graph.params))], [*range(len(graph.outputs))]
    if isinstance(asked, Target):
        asked = asked.for_part(graph)
    return Compiled(graph, *form, asked=asked, join="override", rules=rules)


def first_call(compiled: weakref.ref[Compiled]) -> Values:
    """The values of the first call of a program: its code is made, and serves all later calls."""

    def make_and_run(*args: Any) -> list[Array]:
        for x in args:
            require_in_memory(x)
        found = compiled()
        assert found is not None
        found._values = found._program.prepare()
        return found._values(*args)

    return make_and_run


def labeller(graph: Graph, returns: Returns, join: Join) -> DataArrays | None:
    """The function that turns arrays into the results of a call."""
    check_word("returns", returns, get_args(Returns))
    if returns != "xarray":
        return None

    sizes = [node for node in graph.nodes() if node.op is leaf.as_size]

    def compile_graph(positions: Graph) -> Compiled:
        form = list(range(len(positions.params))), list(range(len(positions.outputs)))
        outputs = after_sizes(positions.outputs, sizes)
        inner = Graph(positions.params, outputs)
        return Compiled(inner, *form, asked=False, join="override")

    return DataArrays(graph, compile_graph, join)
