"""Random programs of loops in loops, drawn by hypothesis, and the same programs written out.

A program is made of blocks of statements. A statement takes values from a pool, by how recent they
are, and adds what it makes: any numbers make a program, so that failures shrink. `control` says
what a loop is: graphcore itself, or `WrittenOut`, which repeats the body in Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import graphcore as gc

Tree = Any
DIMS: dict[str, tuple[str, ...]] = {
    "s": (),
    "x": ("a",),
    "w": ("a", "b"),
    "c": ("b",),
    "u": ("time",),
    "v": ("time", "a"),
    "n": (),  # an integer, 0 to 3
}
FLOATS = ("s", "x", "w", "c", "u", "v")
WALKED = ("u", "v")


def inputs(sizes: Mapping[str, int | None]) -> dict[str, gc.Tensor]:
    """The inputs; None stands for a size that is known at the call."""
    dtypes = {"n": "int64"}
    return {
        name: gc.tensor(name, {d: sizes[d] for d in dims}, dtype=dtypes.get(name, "float64"))
        for name, dims in DIMS.items()
    }


def arrays(seed: int, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Values for the inputs."""
    random = np.random.default_rng(seed)
    values = {k: random.normal(size=[sizes[d] for d in dims]) for k, dims in DIMS.items()}
    return {k: np.asarray(v) for k, v in values.items()} | {"n": np.array(seed % 4)}


class WrittenOut:
    """Loops and branches as the repetition of their bodies, for given values of the inputs.

    How often a body is repeated and which branch is taken is found out by computing predicates.
    """

    def __init__(self, given: Mapping[str, gc.Tensor], values: Mapping[str, np.ndarray]) -> None:
        self.params, self.values = list(given.values()), values
        self.count = itertools.count()

    def apart(self, *xs: gc.Tensor) -> tuple[gc.Tensor, ...]:
        """What a body is given: other tensors than those outside, also where they are equal."""
        return tuple(gc.where(gc.constant(True), x, float(next(self.count))) for x in xs)

    def value(self, x: gc.Tensor) -> np.ndarray:
        return gc.compile(self.params, x)(**self.values)

    def scan(
        self, body: Any, init: Any, xs: Any, dim: str, length: Any = None, reverse: bool = False,
        checkpoint: Any = None,
    ) -> Any:  # fmt: skip
        steps = length if length is not None else xs[0].sizes[dim]
        carry, results = init, []
        for t in range(steps)[:: -1 if reverse else 1]:
            places = (x.isel({dim: t}) for x in xs)
            carry, ys = body(self.apart(*carry), self.apart(*places))
            results.append(ys)
        if not results:
            _, ys = body(init, tuple(x.sum(dim) for x in xs))
            return init, tuple(gc.zeros({dim: 0} | y.sizes) + 0 * y for y in ys)
        columns = zip(*results[:: -1 if reverse else 1], strict=True)
        stacked = [gc.concat([y.expand_dims(dim) for y in column], dim) for column in columns]
        return carry, tuple(stacked)

    def while_loop(self, cond: Any, body: Any, init: Any, max_steps: Any = None) -> Any:
        limit = np.inf if max_steps is None else self.value(max_steps + gc.zeros({}, "int64"))
        state, steps = widened(init, cond(init)), 0
        while steps < limit and self.value(going := cond(state)).any():
            new = body(self.apart(*state))
            state = tuple(
                gc.where(going, y, x).transpose(*x.dims) for x, y in zip(state, new, strict=True)
            )
            steps += 1
        return state

    def fori_loop(
        self, lower: Any, upper: Any, body: Any, init: Any, checkpoint: Any = None
    ) -> Any:
        stop = upper if isinstance(upper, int) else int(self.value(upper))
        for i in range(lower, stop):
            init = body(gc.constant(i), self.apart(*init))
        return init

    def cond(self, pred: gc.Tensor, then: Any, otherwise: Any, *operands: Any) -> Any:
        given = self.apart(*operands)
        if pred.dims:
            return gc.where(pred, then(*given), otherwise(*given))
        return (then if self.value(pred) else otherwise)(*given)

    def switch(self, index: gc.Tensor, branches: Sequence[Any], *operands: Any) -> Any:
        return branches[int(self.value(index))](*self.apart(*operands))

    def checkpoint(self, function: Any) -> Any:
        return lambda *operands: function(*self.apart(*operands))

    def custom_pullback(self, function: Any, pullback: Any, pushforward: Any) -> Any:
        return function


def widened(state: tuple[gc.Tensor, ...], going: gc.Tensor) -> tuple[gc.Tensor, ...]:
    """Carries repeated along the dims of a predicate."""
    missing = [{dim: size for dim, size in going.sizes.items() if dim not in x.dims} for x in state]
    return tuple(
        x.expand_dims(more).transpose(*x.dims, *more) if more else x
        for x, more in zip(state, missing, strict=True)
    )


# ---- values


class Pool:
    """The values a block may use, the sequences it may walk, and an integer."""

    def __init__(self, values: Iterable[Any], walked: Iterable[Any], count: gc.Tensor) -> None:
        self.values, self.walked, self.count = list(values), list(walked), count

    def __getitem__(self, ago: int) -> gc.Tensor:
        return self.values[-1 - ago % len(self.values)]

    def inside(self, *more: gc.Tensor) -> Pool:
        return Pool([*self.values, *more], self.walked, self.count)

    def add(self, *more: gc.Tensor) -> None:
        self.values += more


def fitted(x: gc.Tensor, like: gc.Tensor) -> gc.Tensor:
    """`x` with the dims of `like`: summed over others, repeated along those it lacks."""
    return gc.broadcast_like(x.sum([d for d in x.dims if d not in like.dims]), like)


def positive(x: gc.Tensor) -> gc.Tensor:
    return 0.3 + 0.5 * gc.special.sigmoid(x)


def shrunk(x: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
    return x * gc.tanh(y)


def slope(x: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
    """A derivative, by a value that may itself be an inner one."""
    return gc.grad(gc.sin(x * y).sum(), x, disconnected="zero")


def pushed(x: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
    return gc.pushforward(gc.tanh(x * y), y, gc.cos(y), disconnected="zero")


def along(x: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
    """The second derivative along a direction."""
    return gc.hvp((gc.sin(x) * y).sum(), x, gc.cos(x))


MADE: dict[str, Callable[[gc.Tensor, gc.Tensor], gc.Tensor]] = {
    "sin": lambda x, y: gc.sin(x),
    "product": lambda x, y: x * y,
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - 0.5 * y,
    "quotient": lambda x, y: x / (1 + y * y),
    "shrunk": shrunk,
    "tanh": lambda x, y: gc.tanh(x),
    "square": lambda x, y: x * x / (1 + x * x),
    "exp": lambda x, y: gc.exp(gc.sin(x)),
    "dot": lambda x, y: gc.dot(x, y, dim=x.dims[:1]),
    "softmax": lambda x, y: gc.special.softmax(x, x.dims) if x.dims else gc.cos(x),
    "total": lambda x, y: x.sum(x.dims[:1]),
    "mean": lambda x, y: x.mean(x.dims[-1:]) * y,
    "cumsum": lambda x, y: gc.sin(gc.cumsum(x, x.dims[0])) if x.dims else 2 * x,
    "last": lambda x, y: x.isel({x.dims[0]: -1}) if x.dims else y,
    "where": lambda x, y: gc.where(x > y, x, gc.sin(y)),
    "stopped": lambda x, y: x * gc.stop_gradient(y),
    "constant": lambda x, y: gc.full_like(x, 0.7),
    "slope": slope,
    "pushed": pushed,
    "along": along,
}
CHANGES: dict[str, Callable[[gc.Tensor, gc.Tensor], gc.Tensor]] = {
    "mixed": lambda old, v: gc.sin(old + fitted(v, old)),
    "times": lambda old, v: old * fitted(gc.cos(v), old),
    "linear": lambda old, v: 0.8 * old + fitted(v, old),
    "added": lambda old, v: old + fitted(v, old),
    "replaced": lambda old, v: fitted(v, old),
    "kept": lambda old, v: old,
}
"""How a carry becomes a new one."""


# ---- statements


class Make(NamedTuple):
    how: str
    x: int
    y: int

    def run(self, control: Any, pool: Pool) -> None:
        pool.add(MADE[self.how](pool[self.x], pool[self.y]))


class Block(NamedTuple):
    statements: tuple[Any, ...]

    def run(self, control: Any, pool: Pool, *more: gc.Tensor) -> Pool:
        """The pool with what it had, some more, and what the statements make."""
        inner = pool.inside(*more)
        for statement in self.statements:
            statement.run(control, inner)
        return inner


class Carries(NamedTuple):
    """Where carries start, and by what they change: (how, value); they may change places."""

    starts: tuple[int, ...]
    changes: tuple[tuple[str, int], ...]
    swap: bool

    def first(self, pool: Pool) -> tuple[gc.Tensor, ...]:
        return tuple(pool[i] for i in self.starts)

    def next(self, pool: Pool, carry: Sequence[gc.Tensor]) -> tuple[gc.Tensor, ...]:
        changes = zip(carry, self.changes, strict=True)
        new = [CHANGES[how](old, pool[at]) for old, (how, at) in changes]
        return tuple(
            fitted(y, old) for y, old in zip(new[::-1] if self.swap else new, carry, strict=True)
        )


class Scan(NamedTuple):
    """Along the time of some sequences, or, if there are none, a number of steps."""

    block: Block
    carries: Carries
    walked: tuple[int, ...]
    length: int
    results: tuple[int, ...]
    reverse: bool
    checkpoint: int | str | None

    def run(self, control: Any, pool: Pool) -> None:
        xs = tuple(pool.walked[i % len(pool.walked)] for i in self.walked)
        dim, length = ("time", None) if xs else ("step", self.length)

        def body(carry: Any, places: Any) -> Any:
            inner = self.block.run(control, pool, *carry, *places)
            return self.carries.next(inner, carry), tuple(inner[i] for i in self.results)

        last, ys = control.scan(
            body, self.carries.first(pool), xs, dim, length, self.reverse,
            checkpoint=self.checkpoint,
        )  # fmt: skip
        for y in ys:
            weights = gc.cos(gc.arange(y.sizes[dim], dim=dim) + 1.0)
            pool.add((weights * y).sum(dim))
        if xs:
            pool.walked += ys
        pool.add(*last)


class While(NamedTuple):
    """Until a sum of positive terms passes a limit: a number, or one for each place of a value."""

    block: Block
    carries: Carries
    each: bool
    term: int
    limit: float
    max_steps: int | None

    def run(self, control: Any, pool: Pool) -> None:
        def term(pool: Pool) -> gc.Tensor:
            return pool[self.term] if self.each else pool[self.term].sum()

        def body(state: Any) -> Any:
            level, *carry = state
            inner = self.block.run(control, pool, level, *carry)
            step = fitted(0.3 + 0.5 * gc.special.sigmoid(term(inner)), level)
            return level + step, *self.carries.next(inner, carry)

        start = 0.3 * gc.sin(term(pool))
        most = {} if self.max_steps is None else {"max_steps": self.max_steps}
        made = control.while_loop(
            lambda state: state[0] < self.limit, body, (start, *self.carries.first(pool)), **most
        )
        pool.add(*made)


class Count(NamedTuple):
    """From an integer to another, which may be known at the call only."""

    block: Block
    carries: Carries
    lower: int
    upper: int | None
    checkpoint: int | str | None

    def run(self, control: Any, pool: Pool) -> None:
        def body(i: gc.Tensor, carry: Any) -> Any:
            inner = self.block.run(control, pool, gc.sin(0.5 * i), *carry)
            return self.carries.next(inner, carry)

        upper = pool.count if self.upper is None else self.upper
        start = self.carries.first(pool)
        pool.add(*control.fori_loop(self.lower, upper, body, start, checkpoint=self.checkpoint))


class Choose(NamedTuple):
    """One of two blocks; by a value with dims, place by place."""

    then: Block
    otherwise: Block
    test: int
    like: int
    captured: bool

    def run(self, control: Any, pool: Pool) -> None:
        test, like = pool[self.test], pool[self.like]
        if not set(test.dims) <= set(like.dims):
            test = test.sum()

        def branch(block: Block) -> Any:
            def made(*given: gc.Tensor) -> gc.Tensor:
                return fitted(block.run(control, pool, *given)[0], like)

            return made

        operands = () if self.captured else (gc.sin(like),)
        found = control.cond(test > 0.1, branch(self.then), branch(self.otherwise), *operands)
        pool.add(found)


class Switch(NamedTuple):
    """One of three or four by an integer."""

    blocks: tuple[Block, ...]
    like: int

    def run(self, control: Any, pool: Pool) -> None:
        like = pool[self.like]
        branches = [
            lambda x, block=block: fitted(block.run(control, pool, x)[0], like)
            for block in self.blocks
        ]
        pool.add(control.switch(pool.count, branches, like))


class Wrap(NamedTuple):
    """A block computed again by pullbacks."""

    block: Block
    x: int

    def run(self, control: Any, pool: Pool) -> None:
        function = control.checkpoint(lambda x: self.block.run(control, pool, x)[0])
        pool.add(function(pool[self.x]))


class Own(NamedTuple):
    """A function with rules of its own, which may hold a loop that solves v = ct + v / 4."""

    x: int
    y: int
    solves: str
    forward: bool

    def run(self, control: Any, pool: Pool) -> None:
        def function(x: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
            return gc.sin(x * y)

        def pullback(operands: Any, result: gc.Tensor, ct: gc.Tensor) -> Any:
            x, y = operands
            slope = self.solved(ct) * gc.cos(x * y)
            return fitted(slope * y, x), fitted(slope * x, y)

        def pushforward(operands: Any, result: gc.Tensor, tangents: Any) -> gc.Tensor:
            (x, y), (dx, dy) = operands, tangents
            return self.solved(dx * y + x * dy) * gc.cos(x * y)

        own = control.custom_pullback(function, pullback, pushforward if self.forward else None)
        pool.add(own(pool[self.x], pool[self.y]))

    def solved(self, ct: gc.Tensor) -> gc.Tensor:
        """`ct` itself, which a loop may find again: of all places at once, or of each."""
        if not self.solves:
            return ct

        def left(v: gc.Tensor) -> gc.Tensor:
            error, size = abs(ct + v / 4 - v), abs(ct)
            if self.solves == "each":
                return error > 1e-14 * size
            return (error > 1e-14 * size.sum()).any()

        return 0.75 * gc.while_loop(left, lambda v: ct + v / 4, ct)


# ---- drawing

AGO = st.integers(0, 9)
LENGTH = st.integers(0, 3)
POLICY = st.sampled_from([None, None, 2, 1, "log"])
MAKE = st.builds(Make, st.sampled_from(list(MADE)), AGO, AGO)


def tuples(of: Any, least: int, most: int) -> Any:
    return st.lists(of, min_size=least, max_size=most).map(tuple)


@st.composite
def carries(draw: Any) -> Carries:
    count = draw(st.integers(1, 2))
    change = st.tuples(st.sampled_from(list(CHANGES)), AGO)
    return Carries(
        draw(tuples(AGO, count, count)), draw(tuples(change, count, count)), draw(st.booleans())
    )


def blocks(depth: int) -> Any:
    """Blocks with loops in loops, `depth` of them."""
    simple = st.one_of(
        MAKE,
        MAKE,
        MAKE,
        st.builds(Own, AGO, AGO, st.sampled_from(["", "each", "all"]), st.booleans()),
    )
    if not depth:
        return tuples(simple, 1, 2).map(Block)
    both = st.one_of(loops(depth), simple)
    return st.builds(lambda some, loop: Block((*some, loop)), tuples(both, 0, 1), loops(depth))


def loops(depth: int) -> Any:
    """Loops and branches whose bodies nest `depth - 1` more."""
    inner = st.one_of(blocks(0), blocks(depth - 1))
    scan = st.builds(
        Scan, inner, carries(), tuples(AGO, 0, 2), LENGTH, tuples(AGO, 0, 2), st.booleans(), POLICY
    )
    until = st.builds(
        While, inner, carries(), st.booleans(), AGO, st.sampled_from([0.9, 0.1, 1.6]),
        st.sampled_from([None, None, 2]),
    )  # fmt: skip
    count = st.builds(Count, inner, carries(), st.integers(0, 1), st.none() | LENGTH, POLICY)
    choose = st.builds(Choose, inner, inner, AGO, AGO, st.booleans())
    switch = st.builds(Switch, st.tuples(inner, inner, inner, inner), AGO)
    wrap = st.builds(Wrap, inner, AGO)
    return st.one_of(scan, until, count, choose, scan, until, switch, wrap)


class Program(NamedTuple):
    """A block over the inputs; its results are what it made last."""

    block: Block

    def __call__(self, control: Any, given: Mapping[str, gc.Tensor]) -> list[gc.Tensor]:
        values = [given[name] for name in DIMS if name not in (*WALKED, "n")]
        pool = Pool(values, [given[name] for name in WALKED], given["n"])
        made = self.block.run(control, pool)
        return made.values[-2:]


def programs(depth: int = 2) -> Any:
    return blocks(depth).map(Program)
