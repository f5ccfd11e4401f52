"""Drawing programs: each statement is tried on the eager reference and kept if it has a meaning."""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import graphcore as gc

from . import control, eager
from .values import Array, Refused, Unclear, Value

INVENTED = (
    *["trips"] * 9, *["step"] * 8, *["row"] * 3, *["col"] * 3, *["nonzero"] * 3, *["time"] * 2,
    "branch", "diagonal", "place", "quantile", "edge", "pivot", "diag", "bin", "class", "power",
    "batch", "lag", "window", "inner", "value", "line", "rank", "carry", "place", "a", "b", "i",
    "copy of a", "a window", "kept", "kept", "distinct", "repeated", "unique",
)  # fmt: skip
"""Names that the library gives to dims and sizes of its own, and a few others."""


DEFAULTS = {"row", "col", "diag", "class", "power", "quantile", "nonzero", "kept"}
"""Names of new dims that are not said."""


def pool_of(rng: random.Random) -> list[str]:
    """The three names of a program: any, or one and what it becomes with primes."""
    names = list(dict.fromkeys(rng.choices(INVENTED, k=12)))[:3]
    if rng.random() < 0.5:
        names[1] = f"{names[0]}'"
    if rng.random() < 0.2:
        names[2] = f"{names[1]}'"
    elif rng.random() < 0.15:
        names[:2] = ["row", "col"]
    names = list(dict.fromkeys([*names, "a", "b", "c"]))[:3]
    rng.shuffle(names)
    return names


NAME = re.compile(r"\b[vpxkcf]\d+\b")
QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")


class Skip(Exception):
    """This cannot be drawn from what there is."""


class Statement(NamedTuple):
    """Assignments of `targets`, or, with a block, the definition of a function."""

    targets: tuple[str, ...]
    text: str
    block: Block | None = None

    def lines(self) -> list[str]:
        inner = [] if self.block is None else [f"    {line}" for line in self.block.lines()]
        return [*self.text.splitlines(), *inner]

    def used(self) -> set[str]:
        inner = self.block.used() if self.block else set()
        return ({*NAME.findall(self.text)} | inner) - set(self.targets)


class Block(NamedTuple):
    """Statements and what is returned at the end ("" at the outermost level)."""

    statements: list[Statement]
    result: str

    def lines(self) -> list[str]:
        body = [line for s in self.statements for line in s.lines()]
        return [*body, f"return {self.result}"] if self.result else body

    def used(self) -> set[str]:
        own = {t for s in self.statements for t in s.targets}
        return {*NAME.findall(self.result), *(n for s in self.statements for n in s.used())} - own

    def mapped(self, change: Callable[[str], str]) -> Block:
        """The same with each text changed."""
        statements = [
            s._replace(text=change(s.text), block=s.block and s.block.mapped(change))
            for s in self.statements
        ]
        return Block(statements, change(self.result))

    def pruned(self, needed: Iterable[str] = ()) -> Block:
        """Without what nobody needs."""
        wanted = {*needed, *NAME.findall(self.result)}
        kept: list[Statement] = []
        for s in reversed(self.statements):
            if wanted.isdisjoint(s.targets):
                continue
            if s.block is not None:
                s = s._replace(block=s.block.pruned())
            wanted |= s.used()
            kept.append(s)
        return Block(kept[::-1], self.result)


class Input(NamedTuple):
    """An input: its declaration, and how its values are made for given sizes."""

    name: str
    declared: dict[str, Any]
    dtype: str
    kind: str

    def line(self) -> str:
        dtype = "" if self.dtype == "float64" else f', dtype="{self.dtype}"'
        return f'{self.name} = gc.tensor("{self.name}", {self.declared!r}{dtype})'

    def tensor(self) -> gc.Tensor:
        return gc.tensor(self.name, self.declared, dtype=self.dtype)

    def renamed(self, names: Mapping[str, str]) -> Input:
        said = {d: names.get(str(s), s) for d, s in self.declared.items()}
        return self._replace(declared={names.get(d, d): s for d, s in said.items()})

    def values(self, sizes: dict[str, int], seed: int) -> Any:
        names = {d: d if s is None else s for d, s in self.declared.items()}
        shape = [s if isinstance(s, int) else sizes[s] for s in names.values()]
        return np.asarray(self.drawn(shape, [seed, int(self.name[1:])]), self.dtype)

    def drawn(self, shape: list[int], seed: list[int]) -> Any:
        rng = np.random.default_rng(seed)
        match self.kind:
            case "places":
                return rng.integers(0, 2, size=shape)
            case "zeros":  # where all positions are odd
                odd = np.prod(np.indices(shape) % 2, 0) if shape else 0
                return np.where(odd, 0.0, np.round(rng.uniform(0.3, 2, shape), 2))
            case "singular":
                grid = np.arange(1.0, 1 + int(np.prod(shape))).reshape(shape)
                return grid if shape != [2, 2] else np.array([[1.0, 2.0], [2.0, 4.0]])
            case _:
                return np.round(rng.normal(size=shape), 2)


class Program(NamedTuple):
    seed: int
    inputs: list[Input]
    block: Block
    outputs: list[str]
    sizes: list[dict[str, int]]

    def text(self) -> str:
        return "\n".join(self.block.lines())

    def pruned(self, outputs: Sequence[str]) -> Program:
        block = self.block.pruned(outputs)
        used = {*block.used(), *outputs}
        inputs = [i for i in self.inputs if i.name in used]
        return self._replace(inputs=inputs, block=block, outputs=list(outputs))

    def renamed(self, names: Mapping[str, str]) -> Program:
        """The same with other names of dims, wherever a text has them in quotes."""

        def change(text: str) -> str:
            return QUOTED.sub(lambda m: repr(names.get(old := ast.literal_eval(m[0]), old)), text)

        return self._replace(
            inputs=[one.renamed(names) for one in self.inputs],
            block=self.block.mapped(change),
            sizes=[{names.get(d, d): n for d, n in sizes.items()} for sizes in self.sizes],
        )

    def in_double(self) -> Program:
        single = {"float32": "float64"}
        inputs = [one._replace(dtype=single.get(one.dtype, one.dtype)) for one in self.inputs]
        return self._replace(inputs=inputs)

    def unknown(self) -> Program:
        """The same with inputs all of whose sizes are known at the call only."""
        inputs = [one._replace(declared=dict.fromkeys(one.declared)) for one in self.inputs]
        return self._replace(inputs=inputs)

    def values(self, call: int) -> dict[str, Any]:
        names = [one.name for one in self.inputs]
        return dict(zip(names, self.arguments(call), strict=True))

    def arguments(self, call: int) -> list[Any]:
        return [one.values(self.sizes[call], self.seed) for one in self.inputs]


FORMS = (
    "grad", "per", "pullback", "pushforward", "jacobian", "hessian", "hvp", "vectorize",
)  # fmt: skip
EAGER: dict[str, Any] = {"gc": eager, "np": np, **{f: getattr(control, f) for f in FORMS}}


class Drawing:
    """What has been drawn so far: `env` holds the values, `leaves` what each name depends on.

    Dims that are `frozen` must be left alone; those that are `met` are new to what is drawn, which
    is to use them inside.
    """

    def __init__(self, seed: int, draw: Callable[[Scope], None]) -> None:
        self.rng = random.Random(seed)
        self.draw = draw
        self.seed = seed
        self.pool = pool = pool_of(self.rng)
        self.sizes = {n: self.rng.choice((1, 2, 2, 3, 3, 4)) for n in pool}
        if self.rng.random() < 0.3:  # one size for all, so that all dims meet
            self.sizes = dict.fromkeys(pool, self.rng.choice((2, 3)))
        self.env: dict[str, Any] = dict(EAGER)
        self.leaves: dict[str, frozenset[str]] = {}
        self.inputs: list[Input] = []
        self.count = 0
        self.frozen: set[str] = set()
        self.met: set[str] = set()
        self.favour: dict[Any, float] = defaultdict(self.liking)
        self.least = 0 if self.rng.random() < 0.2 else 1  # elements that values have
        self.replaced: frozenset[str] = frozenset()  # what is not one value for all of a batch
        self.closed = False
        self.ended: str | None = None

    # ---- choices

    def liking(self) -> float:
        """How much a program likes a kind of statement: few kinds often, so that they meet."""
        return self.rng.choice((0.2, 0.5, 1, 1, 5))

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def choice(self, xs: Sequence[Any]) -> Any:
        if not xs:
            raise Skip
        return self.rng.choice(list(xs))

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def dim(self, x: str) -> str:
        """One of the dims of a value, not one that must be left alone."""
        return self.choice([d for d in self.env[x].dims if d not in self.frozen])

    def new_dim(self, taken: Iterable[str]) -> str:
        taken = {*taken, *self.frozen}
        return self.choice([n for n in self.pool if n not in taken])

    # ---- leaves of programs

    def input(self, sizes: dict[str, int], kind: str = "normal", dtype: str = "float64") -> str:
        """A new input of these dims, whose sizes are declared in one way or another."""
        declared: dict[str, Any] = {}
        for dim, size in sizes.items():
            unknown = [n for n in self.pool if self.sizes[n] == size]
            if dim in unknown and self.chance(0.5):
                declared[dim] = None
            elif unknown and self.chance(0.6):
                declared[dim] = self.choice(unknown)
            else:
                declared[dim] = size
        made = Input(self.name("x"), declared, dtype, kind)
        self.inputs.append(made)
        self.env[made.name] = Array(tuple(declared), made.values(self.sizes, self.seed))
        self.leaves[made.name] = frozenset([made.name])
        return made.name

    def some_input(self, dtype: str = "float64") -> str:
        dims = self.rng.sample(self.pool, self.choice((0, 1, 1, 1, 2, 2, 3)))
        kind = self.choice(("normal",) * 6 + ("zeros",))
        if len(dims) == 2 and self.sizes[dims[0]] == self.sizes[dims[1]] and self.chance(0.4):
            kind = "singular"
        return self.input({d: self.sizes[d] for d in dims}, kind, dtype)

    def constant(self, sizes: dict[str, int]) -> str:
        """The text of a constant."""
        data = np.round(
            np.array([self.rng.uniform(-2, 2) for _ in range(int(np.prod(list(sizes.values()))))]),
            1,
        )
        text = data.reshape(list(sizes.values())).tolist()
        if 0 in sizes.values():
            return f"gc.zeros({sizes!r})"
        return f"gc.constant({text!r}, {tuple(sizes)!r})"

    # ---- statements

    def tried(self, targets: Sequence[str], text: str) -> None:
        """Compute a statement, and refuse what is too large or no number."""
        with np.errstate(all="ignore"):
            exec(text, self.env)
        for target in targets:
            value = self.env[target]
            if not isinstance(value, Value):
                self.env[target] = value = control.lifted(value)
            data = value.base.data
            if data.ndim > 4 or not self.least <= data.size <= 100:
                raise Skip
            if data.dtype.kind == "f" and not (np.abs(data) < 1e3).all():
                raise Skip

    def depends(self, text: str) -> frozenset[str]:
        used = NAME.findall(text)
        return frozenset().union(*[self.leaves.get(n, frozenset()) for n in used])


class Scope:
    """A block being drawn: the names it may use, those that are its own last."""

    def __init__(
        self, drawing: Drawing, visible: Sequence[str], own: Sequence[str] = (), depth: int = 0
    ) -> None:
        self.drawing, self.depth = drawing, depth
        self.visible, self.own = list(visible), list(own)
        self.statements: list[Statement] = []

    @property
    def rng(self) -> random.Random:
        return self.drawing.rng

    def value(self, name: str) -> Value:
        return self.drawing.env[name]

    def values(self, kind: str = "f", least: int = 0) -> list[str]:
        return [
            n for n in dict.fromkeys([*self.visible, *self.own])
            if self.value(n).base.data.dtype.kind == kind and len(self.value(n).dims) >= least
        ]  # fmt: skip

    def dims(self, x: str, count: int) -> list[str]:
        """Some dims of a value, none that must be left alone."""
        free = [n for n in self.value(x).dims if n not in self.drawing.frozen]
        if len(free) < count:
            raise Skip
        return self.rng.sample(free, count)

    def with_dim(self, dim: str) -> str:
        """An input with a dim of this name, which must not have to be left alone."""
        found = [x for x in self.values() if x[0] == "x" and dim in self.value(x).dims]
        return self.drawing.choice([] if dim in self.drawing.frozen else found)

    def leave(self, x: str) -> None:
        """Not drawn where `x` has dims that must be left alone."""
        if self.drawing.frozen & set(self.value(x).dims):
            raise Skip

    def any(self, least: int = 0, kind: str = "f") -> str:
        """A value, by preference one of the block's own."""
        found = self.values(kind, least)
        own = [n for n in found if n in self.own]
        if own and self.drawing.chance(0.7):
            return self.drawing.choice(own[-3:])
        return self.drawing.choice(found)

    def emit(self, text: str, targets: int = 1) -> tuple[str, ...]:
        """A statement that makes new values."""
        names = tuple(self.drawing.name("v") for _ in range(targets))
        self.assigned(f"{', '.join(names)} = {text}", names)
        return names

    def emit_pair(self, text: str, carries: int) -> None:
        """The last carry of a scan and its results."""
        names = tuple(self.drawing.name("v") for _ in range(carries + 1))
        last = names[0] if carries == 1 else f"({', '.join(names[:-1])})"
        self.assigned(f"{last}, {names[-1]} = {text}", names)

    def emit_list(self, text: str, count: int) -> None:
        """A list of so many."""
        names = tuple(self.drawing.name("v") for _ in range(count))
        self.assigned(f"{', '.join(names)}, = {text}", names)

    def assigned(self, whole: str, names: tuple[str, ...]) -> None:
        drawing = self.drawing
        drawing.tried(names, whole)
        used = [drawing.env[n] for n in NAME.findall(whole) if n not in names]
        known = {d for x in used if isinstance(x, Value) for d in x.dims}
        if any(drawing.frozen & set(drawing.env[n].dims) - known for n in names):
            raise Skip  # what must be left alone would be made anew
        self.statements.append(Statement(names, whole))
        for n in names:
            drawing.leaves[n] = drawing.depends(whole)
        self.own += names

    def define(self, name: str, text: str) -> None:
        """A function written out."""
        exec(text, self.drawing.env)
        self.drawing.leaves[name] = frozenset()
        self.statements.append(Statement((name,), text))

    def loosely(self, text: str) -> None:
        """What may have no meaning: then it is the end of the program, and must be refused."""
        if self.drawing.frozen & DEFAULTS:
            raise Skip
        try:
            self.emit(text)
        except Refused:
            if self.depth:
                raise
            name = self.drawing.name("v")
            self.statements.append(Statement((name,), f"{name} = {text}"))
            self.drawing.ended = name

    def function(
        self,
        params: Sequence[tuple[str, Value, frozenset[str] | None]],
        finish: Callable[[Scope], str],
        visible: Sequence[str] | None = None,
        steps: Sequence[int] = (1, 2, 2, 3),
        given: str | None = None,
    ) -> str:
        """The name of a new function, whose params stand for values while it is drawn.

        A param with leaves stands for the value itself; others are values of their own.
        """
        drawing = self.drawing
        for name, value, leaves in params:
            drawing.env[name] = value
            drawing.leaves[name] = leaves if leaves is not None else frozenset([name])
        seen = [*self.visible, *self.own] if visible is None else list(visible)
        names = [n for n, _, _ in params]
        inner = Scope(drawing, seen, names, self.depth + 1)
        for _ in range(drawing.choice(steps)):
            drawing.draw(inner)
        result = finish(inner)
        function = drawing.name("f")
        header = f"def {function}({', '.join(names) if given is None else given}):"
        block = Block(inner.statements, result).pruned()
        statement = Statement((function,), header, block)
        exec("\n".join(statement.lines()), drawing.env)
        free = statement.used()
        drawing.leaves[function] = frozenset().union(
            *[drawing.leaves.get(n, frozenset()) for n in free if n not in names]
        ) - {n for n, _, leaves in params if leaves is None}
        self.statements.append(statement)
        return function

    def fitted(self, x: str, like: str) -> str:
        """The text of `x` with the dims of another value."""
        sizes = self.value(like).sizes
        gone = [d for d, n in self.value(x).sizes.items() if sizes.get(d) != n]
        if set(gone) & self.drawing.frozen:
            raise Skip
        text = f"gc.sum({x}, {gone!r})" if gone else x
        if not gone and self.value(x).sizes.keys() == sizes.keys() and self.drawing.chance(0.7):
            return text
        return f"gc.broadcast_like({text}, {like})"

    def without_others(self, x: str, like: str) -> str:
        """The text of `x` without dims of other sizes than those of another value."""
        sizes = self.value(like).sizes
        gone = [d for d, n in self.value(x).sizes.items() if sizes.get(d, n) != n]
        if set(gone) & self.drawing.frozen:
            raise Skip
        return f"gc.sum({x}, {gone!r})" if gone else x


def attempt(s: Scope, function: Callable[[Scope], Any]) -> bool:
    """Whether a statement could be drawn; if not, nothing is left of it."""
    d = s.drawing
    kept = len(s.statements), list(s.own), list(s.visible), set(d.frozen), d.closed, set(d.met)
    try:
        function(s)
    except (Skip, Refused, Unclear):
        del s.statements[kept[0] :]
        s.own, s.visible, d.frozen, d.closed, d.met = kept[1:]
        return False
    return True
