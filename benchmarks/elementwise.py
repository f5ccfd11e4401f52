"""Every elementwise op of every dtype as machine code, against the NumPy function of that name.

python -m benchmarks.elementwise [--ops NAME ...] [--dtypes NAME ...] [--rounds N] [--json PATH]

Both make their result; operands stay in the cache. Processor time, in turn, least of all rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.special

import graphcore as gc
from benchmarks.measure import Call, interleaved, settle_allocator, use_one_thread
from graphcore.backends.llvm_kernels.arithmetic import KINDS, emits
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ops import leaf
from graphcore.ops.elementwise import UFUNC

SIZES = (1_000, 1_000_000)
SPECIAL = ("sigmoid", "softplus", "erf", "erfc", "xlogy", "logit")
"""Functions of gc.special that are rows beside the ops of NumPy."""
RANGES = {
    **dict.fromkeys(("arcsin", "arccos", "arctanh", "logit"), (0.05, 0.95)),
    **dict.fromkeys(("arccosh",), (1.0, 9.0)),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "sqrt", "power", "xlogy"), (0.05, 9.0)),
    **dict.fromkeys(("left_shift", "right_shift"), (0, 7)),
}
"""Where the operands of an op are; else within 4 of 0."""
Function = Callable[..., Any]


class Case(NamedTuple):
    """An op of operands of some dtypes, in graphcore and in NumPy."""

    name: str
    dtype: str
    operands: tuple[np.dtype, ...]
    ours: Function
    theirs: Function


class Row(NamedTuple):
    """Seconds of a call at one size."""

    name: str
    dtype: str
    size: int
    ours: float
    numpy: float

    @property
    def ratio(self) -> float:
        """NumPy's time over ours."""
        return self.numpy / self.ours


def expit(x: Any) -> Any:
    """The function that SciPy has under another name."""
    return scipy.special.expit(x)


def log_of_one_more(x: Any) -> Any:
    """What NumPy's users write for softplus."""
    return np.logaddexp(x.dtype.type(0), x)


def functions() -> Iterator[tuple[str, Op | None, Function, Function, int]]:
    """Each name with its op, graphcore's function, the other one, and how many operands it has."""
    for op, ufunc in UFUNC.items():
        if isinstance(ufunc, np.ufunc):
            yield op.name, op, getattr(gc, op.name, op), ufunc, ufunc.nin
    theirs = {"sigmoid": expit, "softplus": log_of_one_more}
    for name in SPECIAL:
        other = theirs.get(name) or getattr(scipy.special, name)
        yield name, None, getattr(gc.special, name), other, 2 if name == "xlogy" else 1


def cases(ops: Sequence[str], dtypes: Sequence[str]) -> Iterator[Case]:
    """Every op of every dtype that has machine code and a NumPy function."""
    for dtype in map(np.dtype, dtypes):
        for name, op, ours, theirs, count in functions():
            kinds = (dtype, np.dtype("int32")) if name == "ldexp" else (dtype,) * count
            if (not ops or name in ops) and works(op, kinds):
                yield Case(name, dtype.name, kinds, ours, theirs)
        for to in map(np.dtype, KINDS):
            keeps = to.kind in "bc" or dtype.kind != "c"
            if to != dtype and keeps and (not ops or f"to {to}" in ops):
                yield cast(dtype, to)
        if not ops or "where" in ops:
            kinds = (np.dtype(bool), dtype, dtype)
            yield Case("where", dtype.name, kinds, gc.where, np.where)
        if (not ops or "clip" in ops) and dtype.kind in "iuf":
            yield Case("clip", dtype.name, (dtype,), clipped(gc.clip), clipped(np.clip))


def clipped(clip: Function) -> Function:
    """A function of one operand."""
    return lambda x: clip(x, 1, 3)


def cast(dtype: np.dtype, to: np.dtype) -> Case:
    """The conversion of a dtype to another."""
    ours, theirs = (lambda x: x.astype(to.name)), (lambda x: x.astype(to))
    return Case(f"to {to}", dtype.name, (dtype,), ours, theirs)


def works(op: Op | None, dtypes: Sequence[np.dtype]) -> bool:
    """Whether an op has machine code for some dtypes."""
    if op is None:
        return dtypes[0].kind == "f" and dtypes[0].itemsize > 2
    try:
        node = op(*[given(f"x{i}", dtype) for i, dtype in enumerate(dtypes)])
    except GraphTypeError:
        return False
    return emits(node)


def given(name: str, dtype: np.dtype) -> Node:
    """An input without axes."""
    return leaf.input_(name=name, dtype=dtype, shape=(), dims=None)


def data(case: Case, size: int) -> list[Any]:
    """Random operands that lie where the op is defined."""
    rng = np.random.default_rng(5)
    low, high = RANGES.get(case.name, (-4.0, 4.0))
    made: list[Any] = []
    for dtype in case.operands:
        if dtype.kind == "b":
            made.append(rng.integers(0, 2, size).astype(dtype))
        elif dtype.kind in "iu":
            least = max(int(low), 0 if dtype.kind == "u" or case.name in RANGES else -9)
            made.append(rng.integers(least, max(int(high), 9), size).astype(dtype))
        else:
            x = rng.uniform(low, high, size)
            made.append(
                (x + 1j * rng.uniform(-2, 2, size) if dtype.kind == "c" else x).astype(dtype)
            )
    return made


def run(case: Case, rounds: int, sizes: Sequence[int] = SIZES) -> Iterator[Row]:
    """Both functions of a case, in turn."""
    xs = [gc.tensor(f"x{i}", {"n": None}, dtype=k.name) for i, k in enumerate(case.operands)]
    ours = gc.compile(xs, case.ours(*xs), native=True)
    for size in sizes:
        given = data(case, size)
        calls = {"ours": Call(ours, given), "numpy": Call(case.theirs, given)}
        require_same(case, ours(*given), case.theirs(*given))
        least = 0.0005 if size < 100_000 else 0.002
        samples = interleaved(calls, rounds, least, clock=time.process_time)
        yield Row(case.name, case.dtype, size, min(samples["ours"]), min(samples["numpy"]))


def require_same(case: Case, found: Any, wanted: Any) -> None:
    """Refuse results that differ beyond rounding."""
    if found.dtype.kind in "fc":
        rtol = 1e-2 if found.dtype.itemsize == 2 else 2e-5 if found.dtype.itemsize < 9 else 1e-6
        np.testing.assert_allclose(found, wanted, rtol, rtol, err_msg=f"{case.name} {case.dtype}")
    else:
        np.testing.assert_array_equal(found, wanted, f"{case.name} {case.dtype}")


def summary(rows: Sequence[Row]) -> str:
    """How many rows are slower than NumPy's, and the mean ratio, by dtype and size."""
    lines = [f"{'dtype':12}{'size':>10}{'rows':>6}{'slower':>8}{'NumPy / ours':>14}"]
    for size in dict.fromkeys(row.size for row in rows):
        of_size = [row for row in rows if row.size == size]
        for dtype in [*dict.fromkeys(row.dtype for row in of_size), "all"]:
            own = [row.ratio for row in of_size if dtype in (row.dtype, "all")]
            mean = math.exp(sum(map(math.log, own)) / len(own))
            slower = sum(ratio < 1 for ratio in own)
            lines.append(f"{dtype:12}{size:>10,}{len(own):>6}{slower:>8}{mean:>14.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", nargs="*", default=())
    parser.add_argument("--dtypes", nargs="*", default=tuple(KINDS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    use_one_thread()
    settle_allocator()
    warnings.simplefilter("ignore")
    rows = []
    with np.errstate(all="ignore"):
        for case in cases(options.ops, options.dtypes):
            for row in run(case, options.rounds):
                rows.append(row)
                times = f"{row.ours * 1e6:10.2f}{row.numpy * 1e6:10.2f} us{row.ratio:8.2f}"
                print(f"{row.name:16}{row.dtype:12}{row.size:>10,}{times}", flush=True)
    print(summary(rows))
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows]), encoding="utf-8")


if __name__ == "__main__":
    main()
