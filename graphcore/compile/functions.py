"""`function`: Python functions of tensors that arrays can be given to."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial, update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeAlias,
    TypeVar,
    get_args,
    overload,
)
from weakref import WeakValueDictionary

from graphcore.backends.mesh import Gather, Mesh
from graphcore.backends.target import Target
from graphcore.frontend.core.arguments import check_word
from graphcore.frontend.core.base import Base, Tensor, brief, refusal, type_refusal
from graphcore.frontend.core.public_calls import argument
from graphcore.frontend.core.static import Reads, holds, key_of, state_of
from graphcore.frontend.core.suggestions import Listing
from graphcore.frontend.core.trees import Tree
from graphcore.frontend.core.user_functions import parameters_of
from graphcore.frontend.core.wrong_calls import WITHOUT, reword_errors
from graphcore.interop.label_joins import Join
from graphcore.ir import Array, structures
from graphcore.ir.errors import GraphAttributeError
from graphcore.ir.help_text import parameters
from graphcore.ir.locks import new_lock
from graphcore.rewrites.engine import Rules
from graphcore.rewrites.pipeline import own_rules

from .asked import Returns, Sizes, asked_for, target_asked_for, with_options
from .compiled import Compiled, compile
from .declared import declare_inputs, holds_tensor, is_array

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K")
if TYPE_CHECKING:  # what a tensor becomes: Function[P, R] alone is Function[P, R, Any]
    from typing_extensions import TypeVar as Defaulted

    A = Defaulted("A", default=Any)
else:
    A = TypeVar("A")

DimsTree: TypeAlias = Any
"""Dims as `tensor` takes them, a tensor; or nested lists, tuples, dicts, dataclasses of these."""

VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@overload
def function(
    *wrong: Any,
    returns: Literal["numpy"] = ...,
    native: bool | None = ...,
    target: str | Target | None = ...,
    join: Join = ...,
    rules: Rules = ...,
    sizes: Sizes = ...,
    mesh: Mesh | None = ...,
    shard: Mapping[str, str] | None = ...,
    gather: Gather = ...,
    **inputs: DimsTree,
) -> Callable[[Callable[P, R]], Function[P, R, Array]]: ...
@overload
def function(
    *wrong: Any,
    returns: Returns = ...,
    native: bool | None = ...,
    target: str | Target | None = ...,
    join: Join = ...,
    rules: Rules = ...,
    sizes: Sizes = ...,
    mesh: Mesh | None = ...,
    shard: Mapping[str, str] | None = ...,
    gather: Gather = ...,
    **inputs: DimsTree,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
@reword_errors
@parameters(
    inputs="The dims of each parameter that takes arrays, as for `tensor`: their sizes by name, or "
    'their names alone. For a dtype other than float64 give a tensor, such as `gc.tensor("i", '
    '("row",), dtype="int64")`. For a tree of arrays give a tree of these; beside tensors an empty '
    "tuple is a part that holds nothing. All other parameters are static: the Python function gets "
    "their values, which must be hashable, and each value has a program of its own. The names of "
    "the options below are no names of inputs.",
    returns='"numpy" or "xarray", as in `compile`.',
    native="Whether machine code runs the program, as in `compile`.",
    target="What runs the program, as in `compile`.",
    join="How labels of DataArrays are joined, as in `compile`.",
    rules="Rewrite rules of your own, as in `compile`.",
    sizes='How `target="jax"` compiles for unknown sizes, as in `compile`.',
    mesh='The devices that run the program together, for `target="jax"`, as in `compile`.',
    shard="Which dim lies along which axis of the mesh, as in `compile`.",
    gather="What is done about a large value that every device needs, as in `compile`.",
)
def function(
    *wrong: Any,
    returns: Returns = "numpy",
    native: bool | None = None,
    target: str | Target | None = None,
    join: Join = "exact",
    rules: Rules = (),
    sizes: Sizes = "exact",
    mesh: Mesh | None = None,
    shard: Mapping[str, str] | None = None,
    gather: Gather = "say",
    **inputs: DimsTree,
) -> Callable[[Callable[P, R]], Function[P, R]]:
    """A decorator: a function of tensors takes arrays too, and is compiled for them.

    Called with tensors, the function runs unchanged, as part of a larger program. Called with
    arrays, it runs once with inputs of the declared dims. The program that this builds is compiled,
    and computes this call and all later ones.

    Returns
    -------
    Callable
        A decorator. The decorated function has the Python function as `__wrapped__`, and its
        `compiled(*args)` is the program that a call with these arguments runs.

    GraphError if a given name is not a parameter of the function. When it is called, if tensors and
    arrays are mixed, or if a static value is not hashable.

    >>> import graphcore as gc, numpy as np
    >>> @gc.function(x={"batch": None, "feature": 2}, w=("feature",))
    ... def loss(x, w, power=2):
    ...     return (gc.dot(x, w, dim="feature") ** power).mean("batch")
    >>> @gc.function(x={"batch": None, "feature": 2}, w=("feature",))
    ... def slope(x, w):
    ...     return gc.value_and_grad(loss(x, w, power=3), w)
    >>> loss(np.eye(2), np.array([1.0, 2.0]))
    array(2.5)
    >>> slope(np.eye(2), np.array([1.0, 2.0]))
    (array(4.5), array([1.5, 6. ]))
    """
    if wrong:
        cure = "declare its inputs: @gc.function(x={'row': None}) above def f(x)"
        raise type_refusal(f"takes inputs by name, not {brief(wrong[0])}", cure=cure)
    for name in ("static_argnums", "static_argnames"):
        if name in inputs:
            raise type_refusal(f"takes no {name}", cure=WITHOUT[name])
    some = {"returns": returns, "sizes": sizes, "mesh": mesh, "shard": shard, "gather": gather}
    check_word("join", join, get_args(Join))
    target_asked_for(with_options(asked_for(native, target), some))
    made = {name: declare_inputs(name, dims) for name, dims in inputs.items()}
    own_rules(rules, "function")
    options = {**some, "native": native, "target": target, "join": join, "rules": rules}
    return lambda taken: Function(taken, made, options)


class OfPrograms(Listing):
    """What has a program for each kind of call, and is not a program itself."""

    __slots__ = ()

    if not TYPE_CHECKING:  # as in Tensor

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and (hasattr(Compiled, name) or name in OF_PROGRAMS):
                cure = f"ask the program that a call runs: f.compiled(*arguments).{name}"
                reason = f"has no attribute {name!r}: it has a program for each kind of call"
                raise refusal(reason, cure=cure, kind=GraphAttributeError, name="Function")
            return super().__getattr__(name)


OF_PROGRAMS = frozenset({"stages", "passes"})
"""The attributes of programs that their class does not have."""


class Function(OfPrograms, Generic[P, R, A]):
    """A Python function of tensors that takes arrays too, made by `gc.function`.

    Safe to call from several threads at once. It can be pickled if its module can be imported, and
    goes to other processes by `cloudpickle`, so by joblib, Dask and ray, from anywhere.

    Static objects are compared by `==`. Those that equal themselves alone, such as the `self` of a
    method, are compared by their attributes too, arrays by value: a changed one gets a new program.
    So do names of the module and of enclosing functions that mean another object. What is not seen:
    a change inside such an object, and what functions of other modules read.
    """

    __wrapped__: Callable[P, R]
    __name__: str
    __qualname__: str
    _token: Any = None

    def __init__(
        self,
        function: Callable[P, R],
        inputs: Mapping[str, Tree],
        options: Mapping[str, Any],
    ) -> None:
        if not callable(function) or isinstance(function, type):
            cure = "put @gc.function(x=dims) above a function of tensors"
            raise type_refusal(f"{brief(function)} is not a function", cure=cure)
        self.__name__ = self.__qualname__ = type(function).__name__
        update_wrapper(self, function)
        self._signature = inspect.signature(function)
        self._check_names(function, inputs)
        self._inputs = {x: inputs[x] for x in self._signature.parameters if x in inputs}
        self._options = options
        self._programs: dict[Any, Program] = {}
        self._lock = new_lock()
        self._usual: Program | None = None  # for the defaults of all static parameters
        taking = list(self._signature.parameters.values())
        first = [p.name for p in taking if p.kind is not p.KEYWORD_ONLY][: len(self._inputs)]
        others = [p for p in taking if p.name not in self._inputs and p.kind not in VARIADIC]
        variadic = any(p.kind is p.VAR_KEYWORD for p in taking)
        self._gives_out = not variadic and "out" not in self._signature.parameters
        defaults = all(p.default is not p.empty for p in others)
        self._plain = len(first) if defaults and first == list(self._inputs) else -1
        self._token = self._named("_token", lambda: None)
        self._recipe = self._named("_recipe", lambda: (function, inputs, options))
        OWNERS[self._token] = self

    def _named(self, name: str, helper: Any) -> Any:
        """A helper that is pickled as the function itself would be: by its name, or by value.

        A pickle finds it as an attribute of this object. cloudpickle takes functions alone by
        value, where they cannot be imported: an object it would always look for by name.
        """
        helper.__module__, helper.__name__ = self.__module__, name
        helper.__qualname__ = f"{self.__qualname__}.{name}"
        return helper

    def _check_names(self, function: Callable[..., Any], inputs: Mapping[str, Tree]) -> None:
        parameters = self._signature.parameters
        taking = [name for name, p in parameters.items() if p.kind not in VARIADIC]
        for name in inputs:
            if name not in taking:
                near = get_close_matches(name, taking, 1)
                cure = f"did you mean {near[0]!r}?" if near else "declare parameters that it has"
                shown = f"{self.__name__}{parameters_of(function)}"
                raise type_refusal(f"{shown} has no parameter {name!r} for arrays", cure=cure)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self: Function[P, Tensor, A], *args: Any, **kwargs: Any) -> A: ...
    @overload
    def __call__(self: Function[P, list[Tensor], A], *args: Any, **kwargs: Any) -> list[A]: ...
    @overload
    def __call__(
        self: Function[P, dict[K, Tensor], A], *args: Any, **kwargs: Any
    ) -> dict[K, A]: ...
    @overload
    def __call__(
        self: Function[P, tuple[Tensor, Tensor], A], *args: Any, **kwargs: Any
    ) -> tuple[A, A]: ...
    @overload
    def __call__(
        self: Function[P, tuple[Tensor, Tensor, Tensor], A], *args: Any, **kwargs: Any
    ) -> tuple[A, A, A]: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The Python function's own result for tensors, that of its program for arrays.

        `out` are arrays for the results of its program, unless the function has a parameter of this
        name.
        """
        plain = len(args) == self._plain and not kwargs
        usual = self._usual if plain and not any(map(holds_tensor, args)) else None
        if usual is not None and not usual.reads.changed():
            return usual.compiled(*args)
        out = kwargs.pop("out", None) if self._gives_out else None
        bound = self._bind(args, kwargs)
        if bound.tensors:
            if out is not None:
                path, tensor = bound.tensors[0]
                reason = f"{path} is a tensor, for which there are no results to write into out"
                cure = "leave out= out, or pass arrays alone"
                raise type_refusal(reason, tensor, cure=cure, name=self.__name__)
            self._refuse_mixtures(bound)
            return self.__wrapped__(*args, **kwargs)
        program = self._program(bound)
        if plain:
            self._usual = program
        return program.compiled(*bound.arrays.values(), out=out)

    def compiled(self, /, *args: Any, **kwargs: Any) -> Compiled:
        """The program that a call with these arguments runs.

        Raises
        ------
        GraphError
            If some of them are tensors: such a call does not run a program.
        """
        bound = self._bind(args, kwargs)
        if bound.tensors:
            cure = "pass arrays, or compile what the function returns for these tensors"
            path, tensor = bound.tensors[0]
            reason = f"{path} is a tensor, for which the function runs as it is"
            raise type_refusal(reason, tensor, cure=cure, name=self.__name__)
        return self._program(bound).compiled

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        """The arguments of a call by name, defaults included."""
        try:
            found = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            given = ", ".join(map(argument, self._signature.parameters.values()))
            cure = f"write {self.__name__}({given})"
            name, reason = self.__name__, str(error)
            raise type_refusal(reason, cure=cure, name=name) from None
        found.apply_defaults()
        arrays = {name: found.arguments[name] for name in self._inputs}
        static = {name: x for name, x in found.arguments.items() if name not in arrays}
        tensors = [
            (path, leaf)
            for name, value in found.arguments.items()
            if holds_tensor(value)
            for path, leaf in structures.leaves(value, name)
            if isinstance(leaf, Base)
        ]
        return Bound(found, arrays, static, tensors)

    def _refuse_mixtures(self, bound: Bound) -> None:
        """Refuse arrays without dims among tensors."""
        arrays = [
            path
            for name, given in bound.arrays.items()
            for path, leaf in self._input_values(name, given)
            if is_array(leaf)
        ]
        if arrays:
            dims = self._dims(arrays[0])
            cure = f"give it dims, gc.constant({arrays[0]}, {dims}), or pass arrays alone"
            reason = f"{arrays[0]} is an array, and {bound.tensors[0][0]} is a tensor"
            tensor = bound.tensors[0][1]
            raise type_refusal(reason, tensor, cure=cure, name=self.__name__)

    def _input_values(self, name: str, given: Any) -> list[tuple[str, Any]]:
        """The values given for the inputs of a parameter; lists of numbers are arrays."""
        if isinstance(self._inputs[name], Base):
            return [(name, given)]
        return structures.leaves(given, name)

    def _dims(self, path: str) -> str:
        """The dims that were declared for an array, as text."""
        for name, tree in self._inputs.items():
            for place, x in structures.leaves(tree, name):
                if place == path:
                    return repr(x.dims)
        return "dims"

    def _program(self, bound: Bound) -> Program:
        """The program for the static values of a call, made anew where what it read has changed."""
        key = tuple([self._key(name, x) for name, x in bound.static.items()])
        state = state_of(bound.static)
        if (program := self._programs.get(key)) is None or program.is_old(state):
            with self._lock:
                if (program := self._programs.get(key)) is None or program.is_old(state):
                    program = self._programs[key] = self._make(bound)
        return program

    def _make(self, bound: Bound) -> Program:
        """A program for these static values, whose state is that after the function ran."""
        bound.found.arguments.update(self._inputs)
        result = self.__wrapped__(*bound.found.args, **bound.found.kwargs)
        compiled = compile(list(self._inputs.values()), result, **self._options)
        return Program(compiled, state_of(bound.static), Reads(self.__wrapped__))

    def _key(self, name: str, value: Any) -> Any:
        """A static value as a key: equal for values that the function cannot tell apart."""
        try:
            return key_of(value, self._forget)
        except TypeError:
            cure = f"declare it as an input, @gc.function({name}=dims), if it holds arrays; else "
            cure += "pass what is hashable: a tuple instead of a list, a frozen dataclass"
            reason = f"{name}={brief(value)} is static, but not hashable"
            raise type_refusal(reason, cure=cure, name=self.__name__) from None

    def _forget(self, gone: weakref.ref[Any]) -> None:
        """Drop the programs of an object that no longer exists."""
        for key in [key for key in list(self._programs) if holds(key, gone)]:
            self._programs.pop(key, None)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The function as a method, whose instance is static."""
        return self if instance is None else Method(self, instance)

    def __reduce__(self) -> tuple[Any, ...]:
        return owner, (self._token,), self._recipe

    def __setstate__(self, recipe: Any) -> None:
        if self._token is None:
            Function.__init__(self, *recipe())

    def __repr__(self) -> str:
        many = f"{len(self._programs)} program{'' if len(self._programs) == 1 else 's'}"
        inputs = ", ".join(
            f"{path}: {x.node.type}"
            for name, tree in self._inputs.items()
            for path, x in structures.leaves(tree, name)
        )
        return f"<Function {self.__qualname__}({inputs}): {many}>"


class Method(partial[Any], OfPrograms):
    """A `Function` of an instance."""

    func: Function[..., Any]

    def compiled(self, /, *args: Any, **kwargs: Any) -> Compiled:
        """The program that a call with these arguments runs."""
        program: Compiled = self.func.compiled(*self.args, *args, **self.keywords, **kwargs)
        return program


class Program(NamedTuple):
    """A compiled program with what its function read."""

    compiled: Compiled
    state: list[Any]
    reads: Reads

    def is_old(self, state: list[Any]) -> bool:
        """Whether static values, in this state now, or a name has changed since it was made."""
        return self.state != state or self.reads.changed()


OWNERS: WeakValueDictionary[Any, Function[..., Any]] = WeakValueDictionary()
"""The functions by their tokens."""


def owner(token: Any) -> Function[..., Any]:
    """The function of a token; of one that came by value, a function still to be set."""
    return OWNERS.get(token) or Function.__new__(Function)


class Bound(NamedTuple):
    """The arguments of a call."""

    found: inspect.BoundArguments
    arrays: dict[str, Any]
    static: dict[str, Any]
    tensors: list[tuple[str, Base]]
