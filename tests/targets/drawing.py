"""Programs and arguments for both targets, of each kind of random programs that there is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

import graphcore as gc
from tests.random_programs.deriving import derived
from tests.random_programs.drawing import Program
from tests.random_programs.running import built
from tests.random_programs.statements import drawn
from tests.targets.comparing import Both, Verdict

SIZES = (0, 1, 2, 7, 8, 9, 17)
KINDS: dict[str, Callable[[int], Program]] = {
    "programs": drawn,
    "graphs": partial(derived, kind="plain"),
    "loops": partial(derived, kind="loops"),
}


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


def differing(kind: str, first: int, count: int) -> list[str]:
    """The programs of a kind whose results differ between the targets, and how."""
    return [
        f"{seed}: {x.reason}"
        for seed in range(first, first + count)
        for x in whole(KINDS[kind](seed))
        if x.kind == "differs"
    ]


def asked(y: gc.Tensor, given: Mapping[str, gc.Tensor]) -> tuple[Both, list[gc.Tensor]]:
    """A value with its derivatives of both modes, and the inputs that come with these."""
    xs = [x for x in given.values() if x.dtype.kind == "f"]
    ct, *vs = (gc.tensor(f"with {i}", x.sizes) for i, x in enumerate([y, *xs]))
    zero: Any = {"disconnected": "zero"}
    results = [y, *gc.pullback(y, xs, ct, **zero), gc.pushforward(y, xs, vs, **zero)]
    return Both(gc.compile([*given.values(), ct, *vs], results)), [ct, *vs]
