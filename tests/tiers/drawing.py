"""Programs and arguments for both tiers, of each kind of random programs that there is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import hypothesis
import numpy as np
from hypothesis import strategies as st

import graphcore as gc
from graphcore.ir.sizes import evaluate
from tests.laws import random_graphs
from tests.loops import random_loops
from tests.random_programs.drawing import Program
from tests.random_programs.running import built
from tests.random_programs.statements import drawn
from tests.tiers.comparing import Both, Verdict

SIZES = (0, 1, 2, 7, 8, 9, 17)
One = Callable[[Any, Callable[[], list[Verdict]]], None]
"""Takes the name of a program, and the function that runs it."""


# ---- arguments


def forms(given: np.ndarray) -> dict[str, Any]:
    """The same values otherwise in memory."""
    between = [2 * size for size in given.shape]
    apart = np.zeros((*between, 3), given.dtype)[(*[slice(None, None, 2)] * given.ndim, ..., 1)]
    apart[...] = given
    odd = np.zeros(given.nbytes + 1, np.uint8)[1:].view(given.dtype).reshape(given.shape)
    odd[...] = given
    fixed = given.copy()
    fixed.flags.writeable = False
    return {
        "strided": apart,
        "reversed": np.flip(np.flip(given).copy()),
        "turned": given.T.copy().T,
        "unaligned": odd,
        "read-only": fixed,
        "of the other byte order": given.astype(given.dtype.newbyteorder()),
        "a list": given.tolist() if given.size else given,
    }


# ---- whole programs whose names come from a pool of three


def sized(program: Program) -> Iterator[list[Any]]:
    """Arguments of the sizes that a program was drawn for, and of others."""
    yield from (program.arguments(call) for call in range(len(program.sizes)))
    rng = random.Random(program.seed)
    for _ in range(2):
        sizes = {name: rng.choice(SIZES) for name in program.sizes[0]}
        yield program._replace(sizes=[sizes]).arguments(0)


def whole(program: Program) -> list[Verdict]:
    try:
        both = Both(*built(program, [None])[0])
    except gc.GraphError:
        return [Verdict("refused")]
    return [both.compare(arguments) for arguments in sized(program)]


def programs(first: int, count: int, one: One) -> None:
    for seed in range(first, first + count):
        one(seed, lambda seed=seed: whole(drawn(seed)))


# ---- random graphs and loops, with derivatives of both modes and of second order


Tensors = list[gc.Tensor]


def partners(prefix: str, xs: Tensors) -> Tensors:
    """A tensor of the same dims for each."""
    return [gc.tensor(f"{prefix} {i}", x.sizes) for i, x in enumerate(xs)]


def questions(ys: Tensors, xs: Tensors) -> tuple[Tensors, Tensors]:
    """Values, derivatives of first and of second order; and the cotangents and tangents."""
    cts, vs, ws = partners("ct", ys), partners("v", xs), partners("w", xs)
    zero: Any = {"disconnected": "zero"}
    back = gc.pullback(ys, xs, cts, **zero)
    forth = gc.pushforward(ys, xs, vs, **zero)
    second = [
        *gc.pushforward(back, xs, vs, **zero),
        *gc.pullback(back, xs, ws, **zero),
        *gc.pullback(forth, xs, cts, **zero),
        *gc.pushforward(forth, xs, ws, **zero),
    ]
    return [*ys, *back, *forth, *second], [*cts, *vs, *ws]


def asked(
    ys: list[gc.Tensor], given: Mapping[str, gc.Tensor], floats: tuple[str, ...], order: int
) -> tuple[Both, list[gc.Tensor]]:
    """A program with its derivatives up to an order, and the inputs that come with these."""
    xs = [given[name] for name in floats]
    if order == 2:
        results, more = questions(ys, xs)
    else:
        zero: Any = {"disconnected": "zero"}
        more = [*partners("ct", ys), *partners("v", xs)]
        cts, vs = more[: len(ys)], more[len(ys) :]
        results = [*ys, *gc.pullback(ys, xs, cts, **zero), *gc.pushforward(ys, xs, vs, **zero)]
    return Both(gc.compile([*given.values(), *more], results)), more


def compared(
    made: tuple[Both, list[gc.Tensor]],
    values: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    seed: int,
) -> Verdict:
    both, more = made
    rng = np.random.default_rng(seed)
    shapes = [[evaluate(n, dict(sizes)) for n in x.shape] for x in more]
    random = [rng.normal(size=shape).astype(x.dtype) for x, shape in zip(more, shapes, strict=True)]
    return both.compare([*values.values(), *random])


def graph(program: random_graphs.Program, seed: int, order: int) -> list[Verdict]:
    given = random_graphs.inputs()
    floats = random_graphs.FLOATS
    made = asked([program(given)], given, floats, order)
    rng, found = random.Random(seed), []
    for sizes in ((4, 2), (rng.choice(SIZES[1:]), rng.choice(SIZES[1:])), (17, 9), (1, 0)):
        known = random_graphs.SIZES | dict(zip("cd", sizes, strict=True))
        found.append(compared(made, random_graphs.arrays(seed, *sizes), known, seed))
    return found


def loop(program: random_loops.Program, seed: int, order: int) -> list[Verdict]:
    rng, unknown = random.Random(seed), seed % 3 > 0
    some = [{"a": 1 + seed % 2, "b": 2, "time": (3, 2, 4, 1, 0)[seed % 5]}]
    if unknown:
        some.append({name: rng.choice(SIZES) for name in ("a", "b", "time")})
    given = random_loops.inputs(dict.fromkeys(some[0]) if unknown else some[0])
    made = asked(program(gc, given), given, random_loops.FLOATS, order)
    return [compared(made, random_loops.arrays(seed, sizes), sizes, seed) for sizes in some]


def by_hypothesis(
    strategy: Any, run: Callable[..., list[Verdict]]
) -> Callable[[int, int, One], None]:
    """Programs as hypothesis draws them from a seed."""

    def campaign(first: int, count: int, one: One) -> None:
        @hypothesis.seed(first)
        @hypothesis.settings(
            max_examples=count,
            database=None,
            deadline=None,
            derandomize=False,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(strategy, st.integers(0, 9999), st.sampled_from([1, 1, 2]))
        def each(program: Any, seed: int, order: int) -> None:
            one((program, seed, order), lambda: run(program, seed, order))

        each()

    return campaign


KINDS: dict[str, Callable[[int, int, One], None]] = {
    "programs": programs,
    "graphs": by_hypothesis(random_graphs.programs(mixed=True), graph),
    "loops": by_hypothesis(st.one_of(random_loops.programs(1), random_loops.programs(2)), loop),
}


def differing(kind: str, first: int, count: int) -> list[str]:
    """The programs of a kind whose results differ between the tiers, and how."""
    found: list[str] = []

    def one(name: Any, run: Any) -> None:
        found.extend(f"{name}: {x.reason}" for x in run() if x.kind == "differs")

    KINDS[kind](first, count, one)
    return found
