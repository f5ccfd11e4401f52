"""Programs made of a program: its derivatives, and itself on inputs with more dims.

Another library that traces a program, as JAX does, has transformations of its own. What it needs of
the program for them is asked for one by one, and each is compiled as the program itself was.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from graphcore.backends.target import Program
from graphcore.frontend.core.base import wrap
from graphcore.frontend.derive.derivatives import pushforward
from graphcore.frontend.derive.vectorize import dims_in_use, silent, vectorize
from graphcore.ir import Graph, Hidden, Node, Size, full_like, toposort
from graphcore.ir.dtypes import differentiable
from graphcore.ir.locks import new_lock
from graphcore.ir.names import ValueOf, apart
from graphcore.ir.sizes import unknown
from graphcore.ir.transform import resize, substitute
from graphcore.ops import autodiff, leaf

from .inputs import not_listed, program

Numbers = tuple[int, ...]
"""The numbers of some inputs, or of some outputs, in order."""


class Variant:
    """A program of named ops, and what is made of it when that is first asked for.

    Parameters
    ----------
    graph
        The graph of the stage "named".
    build
        Compiles a graph of that stage.
    program
        The program of `graph`, if it is compiled already.
    """

    def __init__(
        self, graph: Graph, build: Callable[[Graph], Any], program: Program | None = None
    ) -> None:
        self.graph, self._build = graph, build
        self._lock = new_lock()
        self._made: dict[Hashable, Any] = {} if program is None else {"program": program}
        self.floats: Numbers = tuple(
            i for i, y in enumerate(graph.outputs) if differentiable(y.type.dtype)
        )
        """The numbers of the outputs that have derivatives."""

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What is made for a key, by the first call that needs it."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def __repr__(self) -> str:
        inputs = ", ".join(f"{x.attrs['name']}: {x.type}" for x in self.graph.params)
        return f"<({inputs}) -> ({', '.join(str(y.type) for y in self.graph.outputs)})>"

    @property
    def program(self) -> Program:
        """The compiled program."""
        made: Program = self.once("program", lambda: self._build(self.graph)._program)
        return made

    def with_values(self, values: Mapping[int, int]) -> Variant:
        """The program without some inputs, integers whose values are sizes: these are known."""
        made: Variant = self.once(tuple(values.items()), lambda: self._with_values(values))
        return made

    def pushforward(self, moving: Numbers) -> Variant:
        """From all inputs, then tangents of the `moving` ones, to tangents of `floats`."""
        made: Variant = self.once(("pushforward", moving), lambda: self._pushforward(moving))
        return made

    def transpose(self, moving: Numbers, given: Numbers) -> Variant:
        """From the other inputs, then cotangents of `given` outputs, to those of `moving` inputs.

        The outputs are linear in the `moving` inputs.
        """
        key = "transpose", moving, given
        made: Variant = self.once(key, lambda: self._transpose(moving, given))
        return made

    def vectorize(self, axes: tuple[int | None, ...]) -> tuple[Variant, tuple[bool, ...]]:
        """The program on inputs with one more axis each, at a place or nowhere (None).

        Outputs have it first, where they have it: the second value says which do.
        """
        made: tuple[Variant, tuple[bool, ...]] = self.once(axes, lambda: self._vectorize(axes))
        return made

    def _of(self, params: Sequence[Node], outputs: Sequence[Node]) -> Variant:
        """Another program, which is compiled in the same way."""
        graph = program(params, outputs, not_listed(params))
        return Variant(graph, self._build)

    def _with_values(self, values: Mapping[int, int]) -> Variant:
        names: dict[str, Size] = {
            ValueOf(self.graph.params[i].attrs["name"]): value for i, value in values.items()
        }
        given = {
            self.graph.params[i]: full_like(self.graph.params[i], value)
            for i, value in values.items()
        }
        outputs = substitute(self.graph.outputs, given)
        params = [x for i, x in enumerate(self.graph.params) if i not in values]
        made = resize((*params, *outputs), names)
        return self._of(made[: len(params)], made[len(params) :])

    def _pushforward(self, moving: Numbers) -> Variant:
        params = self.graph.params
        xs = [params[i] for i in moving]
        tangents = self._inputs_like("tangent of", xs)
        made = pushforward(
            [wrap(self.graph.outputs[i]) for i in self.floats],
            list(map(wrap, xs)),
            list(map(wrap, tangents)),
            disconnected="zero",
        )
        outputs = silent(Graph((), tuple([y.node for y in made]))).outputs
        return self._of((*params, *tangents), outputs)

    def _transpose(self, moving: Numbers, given: Numbers) -> Variant:
        """The cotangents do not depend on the values of the inputs, which are zeros."""
        params, ys = self.graph.params, [self.graph.outputs[i] for i in given]
        kept = [x for i, x in enumerate(params) if i not in moving]
        cts = self._inputs_like("cotangent of", ys)
        made = transposed(ys, [params[i] for i in moving], cts)
        return self._of((*kept, *cts), silent(Graph((), tuple(made))).outputs)

    def _vectorize(self, axes: tuple[int | None, ...]) -> tuple[Variant, tuple[bool, ...]]:
        params, outputs = self.graph.params, self.graph.outputs
        in_use = dims_in_use((*params, *outputs))
        dim = next(name for i in count() if (name := Hidden(f"member{i or ''}")) not in in_use)
        wide = [x if axis is None else widened(x, dim, axis) for x, axis in zip(params, axes)]
        replace = {wrap(x): wrap(y) for x, y in zip(params, wide, strict=True) if x is not y}
        made = [y.node for y in vectorize(list(map(wrap, outputs)), replace)]
        return self._of(wide, made), tuple([dim in y.type.dims for y in made])

    def _inputs_like(self, what: str, likes: Iterable[Node]) -> list[Node]:
        """An input of the type of each of some tensors."""
        in_use = {str(x.attrs["name"]) for x in self.graph.params}
        found = []
        for i, like in enumerate(likes):
            name = apart(f"{what} {like.attrs.get('name', i)}", in_use)
            in_use.add(name)
            type = like.type
            found.append(leaf.input_(name=name, dtype=type.dtype, shape=type.shape, dims=type.dims))
        return found


def transposed(ys: Sequence[Node], xs: Sequence[Node], cts: Sequence[Node]) -> list[Node]:
    """The cotangents of `xs`, in which `ys` are linear, for those of `ys`.

    The transpose of a pushforward is the pullback, and the other way round: so the steps of the
    program that it is a derivative of are taken once.
    """
    for lazy in reversed(toposort(ys)):
        if lazy.op not in autodiff.LAZY:
            continue
        made = leaf.values(lazy)
        outer, zeros = at_zeros(ys, made)
        primals, sources, moved = autodiff.group(lazy, lazy.inputs)
        if set(xs).isdisjoint(toposort([*outer, *primals, *sources])):
            back = autodiff.pull if lazy.op is autodiff.pushforward else autodiff.push
            cts = back(primals, sources, autodiff.pull(outer, zeros, cts))
            ys = moved
            break
    found, zeros = at_zeros(ys, xs)
    return autodiff.pull(found, zeros, cts)


def at_zeros(ys: Sequence[Node], xs: Sequence[Node]) -> tuple[Sequence[Node], list[Node]]:
    """`ys` where `xs` are zeros, and these: each is a node of its own, which `ys` do not have."""
    used, zeros = set(toposort(ys)), list[Node]()
    for x in xs:
        marked = (autodiff.barrier(full_like(x, 0), mark=mark) for mark in count())
        zeros.append(next(zero for zero in marked if zero not in used))
        used.add(zeros[-1])
    return substitute(ys, dict(zip(xs, zeros, strict=True))), zeros


def widened(x: Node, dim: str, axis: int) -> Node:
    """The input with one more dim, of unknown size, at a place among its dims."""
    type = x.type
    shape = (*type.shape[:axis], unknown(dim), *type.shape[axis:])
    dims = (*type.dims[:axis], dim, *type.dims[axis:])
    return leaf.input_(name=x.attrs["name"], dtype=type.dtype, shape=shape, dims=dims)
