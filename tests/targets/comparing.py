"""One program as NumPy calls and as machine code, for the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import graphcore as gc
from graphcore.backends import llvm_kernels
from tests.machine_code import build, kernels
from tests.targets import precise

Array = Any
CLOSE = 4
"""How many units of its largest value a result may be away from NumPy's without further ado."""
FURTHER = 4
"""How much further from the exact result machine code may be than NumPy calls, or than rounding
can carry the program."""
RUNS = (4, 40)
"""How many runs with other rounding are made to find this out, and how many before a verdict."""


UNFIT = "let the values that sizes are computed from give sizes that fit"
"""The cure where sizes that a program computes do not fit: of several such places each target says
the one that it comes to first."""


class Verdict(NamedTuple):
    """What came of a program: "equal", "close", "rounding", "refused" or "differs"."""

    kind: str
    reason: str = ""


class Both:
    """A compiled program in both targets."""

    def __init__(self, compiled: gc.Compiled) -> None:
        boundary = compiled._boundary
        self.graph, self.bind = compiled.stages["optimized"], boundary.bind
        self.unknowns: Sequence[str] = boundary.unknowns
        self.calls: Callable[..., list[Array]] = compiled._program.prepare()
        self.native = build(compiled)
        self.whole = llvm_kernels.single_kernel(kernels(compiled)) is not None

    def compare(self, arguments: Sequence[Array]) -> Verdict:
        """Machine code against NumPy calls: results, or the words in which both refuse."""
        wanted, found = attempt(self.calls, arguments), attempt(self.native, arguments)
        again = attempt(self.native, arguments)
        if isinstance(wanted, str) or isinstance(found, str):
            if wanted == found == again or all(UNFIT in str(x) for x in (wanted, found, again)):
                return Verdict("refused")
            return Verdict("differs", f"{shown(found)} and {shown(again)}, NumPy: {shown(wanted)}")
        repeated = not isinstance(again, str) and (
            not self.whole  # rounding of NumPy's and LAPACK's depends on where arrays lie
            or all(map(same, found, again))
        )
        if not repeated:
            return Verdict("differs", "from call to call")
        if all(map(same, found, wanted)):
            return Verdict("equal")
        if all(map(near, found, wanted)):
            return Verdict("close")
        for runs in RUNS:
            reason = self.judged(found, wanted, arguments, runs)
            if not reason:
                return Verdict("rounding")
        return Verdict("differs", reason)

    def judged(
        self, found: list[Array], wanted: list[Array], arguments: Sequence[Array], runs: int
    ) -> str:
        """Where machine code is further from the exact results than it may be, if anywhere."""
        arrays, known = self.bind(arguments)
        names = [param.attrs["name"] for param in self.graph.params]
        values = dict(zip(names, arrays, strict=True))
        sizes = dict(zip(self.unknowns, known, strict=True))
        exact = precise.run(self.graph, values, sizes)
        random = np.random.default_rng(0)
        others = [precise.run(self.graph, values, sizes, random) for _ in range(runs)]
        for n, (x, y, z) in enumerate(zip(found, wanted, exact, strict=True)):
            spread = [other[n] for other in others]
            if wrong := further(x, y, z, spread):
                return f"result {n}: {wrong}"
        return ""


def attempt(f: Callable[..., list[Array]], arguments: Sequence[Array]) -> list[Array] | str:
    """The results, or the message of the error, but for the line of the call."""
    try:
        with np.errstate(all="ignore"):
            return [np.asarray(y) for y in f(*arguments)]
    except gc.GraphError as error:
        return "\n".join(line for line in str(error).splitlines() if "called at" not in line)


def shown(found: list[Array] | str) -> str:
    return repr(found) if isinstance(found, str) else "results"


def same(x: Array, y: Array) -> bool:
    """Whether all bits are equal; one nan is as good as another."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    x, y = [np.atleast_1d(v).view(v.real.dtype) for v in (x, y)]
    return bool(np.all((x == y) & (np.signbit(x) == np.signbit(y)) | np.isnan(x) & np.isnan(y)))


def near(x: Array, y: Array) -> bool:
    """Whether two results are equal but for some units of the largest value."""
    return bool((x.dtype, x.shape) == (y.dtype, y.shape) and np.all(close(x, y)))


def close(x: Array, y: Array) -> Array:
    """Where two results are equal but for some units of themselves, or one of the largest value."""
    if x.dtype.kind not in "fc":
        return np.asarray(x == y)
    eps, finite = np.finfo(x.dtype).eps, np.isfinite(y)
    scale = np.abs(y[finite]).max(initial=0)
    with np.errstate(all="ignore"):
        gap = np.abs(x - y)
    agree = (gap <= CLOSE * eps * np.abs(y)) | (x == y) | np.isnan(x) & np.isnan(y)
    return np.asarray(agree | finite & (gap <= eps * scale))


def further(x: Array, y: Array, exact: Array, others: list[Array]) -> str:
    """Where `x` is further from the exact result than `y` or rounding, if anywhere."""
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        return f"{x.dtype}{x.shape}, NumPy: {y.dtype}{y.shape}"
    if exact is None or any(other.shape != exact.shape for other in others):
        return ""  # how many steps a loop makes is a matter of rounding
    with np.errstate(all="ignore"):
        if x.dtype.kind not in "fc":
            wrong = (x != y) & np.all([other == exact for other in others], axis=0)
        else:
            size, rounded = np.finfo(x.dtype), np.all(np.isfinite(others), axis=0)
            exact = np.where(rounded & ~np.isfinite(exact), y, exact)  # only rounding gives numbers
            may = np.max([np.abs(other - exact) for other in [*others, y]], axis=0)
            may = FURTHER * (may + size.eps * np.abs(exact)) + size.tiny
            unsure = ~np.isfinite(np.max([np.abs(v) for v in others], axis=0)) & np.isfinite(exact)
            huge = np.abs(exact) > 0.1 * size.max  # beyond the range of the dtype
            wrong = ~(close(x, y) | unsure | huge | (np.abs(x - exact) <= may))
    if not wrong.any():
        return ""
    at = tuple(np.argwhere(wrong)[0])
    apart = [other[at] for other in others[:4]]
    return (
        f"{np.sum(wrong)} of {wrong.size} places, first {list(map(int, at))}: {x[at]!r}, "
        f"NumPy {y[at]!r}, exact {exact[at]!r}, otherwise rounded {apart}"
    )
