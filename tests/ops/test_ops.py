"""Every public function: its value, dims and dtype as NumPy, SciPy and xarray have them, and its
derivatives in both modes against differences. One table; the tests run over it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import xarray

import graphcore as gc
from graphcore.ir.sizes import evaluate
from tests import interpreter, reference
from tests.operations import CASES
from tests.operations.case import DEFAULT, Case, bare
from tests.reference import close

ONES, EMPTY = dict.fromkeys(DEFAULT, 1), dict.fromkeys(DEFAULT, 0)
NO_ROWS, NO_COLS = DEFAULT | {"row": 0}, DEFAULT | {"col": 0, "batch": 0}
DTYPE_TOLERANCE = {2: 1e-3, 4: 1e-5, 8: 1e-12, 16: 1e-12, 1: 0}


def declare(case: Case, known: bool = False, dtype: str = "float64") -> list[gc.Tensor]:
    """The inputs of a case, of unknown sizes but for the dims that must keep theirs."""
    return [
        gc.tensor(
            f"x{i}",
            {d: DEFAULT[d] if known or d in (*case.fixed, "one") else None for d in x.dims.split()},
            dtype=x.dtype if x.dtype != "float64" else dtype,
        )
        for i, x in enumerate(case.inputs)
    ]


def draw(case: Case, sizes: dict[str, int], dtype: str = "", seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    kept = sizes | {dim: DEFAULT[dim] for dim in (*case.fixed, "one")}
    return [xarray.DataArray(x.draw(random, kept, dtype), dims=x.dims.split()) for x in case.inputs]


def mostly(names: Iterable[str], most: int) -> Iterator[tuple[str, Any]]:
    """These cases with their marks: all but the first `most` of each function are slow tests."""
    counts: Counter[str] = Counter()
    for name in names:
        op, *_ = name.split()
        counts[op] += 1
        yield name, pytest.mark.slow if counts[op] > most else ()


def params(names: Iterable[str], most: int) -> list[Any]:
    return [pytest.param(name, marks=marks) for name, marks in mostly(names, most)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=marks)
        for dtype, most in (("float64", 2), ("float32", 1))
        for name, marks in mostly(CASES, most)
    ],
)
def test_value(name: str, dtype: str) -> None:
    """One compilation serves all sizes, 1 and 0 included; float64 has known ones as well."""
    case = CASES[name]
    ways = [(False, [DEFAULT, ONES, EMPTY, NO_ROWS, NO_COLS]), (True, [DEFAULT])]
    for known, tried in ways if dtype == "float64" else ways[:1]:
        xs = declare(case, known, dtype)
        y = case.ours(*xs)
        f = gc.compile(xs, y)
        for sizes in tried:
            given = draw(case, sizes, dtype)
            values = [x.values for x in given]
            try:
                wanted = bare(case.theirs(*given))
            except (ValueError, IndexError):  # an extreme value of nothing
                assert 0 in sizes.values()
                with pytest.raises(gc.GraphError):
                    f(*values)
                continue
            assert (y.dims, y.dtype) == (wanted.dims, wanted.dtype)
            by_name = {f"x{i}": value for i, value in enumerate(values)}
            results = [f(*values)] + [
                interpreter.run(f.stages[stage], by_name, sizes)[0]
                for stage in ("lowered", "optimized")
            ]
            for found in results:
                if found is None:  # a lazy derivative, which has no value yet
                    continue
                assert found.dtype == wanted.dtype
                close(found, wanted.values, rtol=DTYPE_TOLERANCE[min(8, wanted.dtype.itemsize)])


def reliable(settled: bool) -> None:
    assert settled, "differences do not settle here: draw other values"


@pytest.mark.parametrize("name", params([name for name in CASES if name != "stop_gradient"], 1))
def test_derivatives(name: str) -> None:
    case = CASES[name]
    xs = declare(case)
    y = case.ours(*xs)
    floats = [x for x in xs if x.dtype.kind == "f"]
    if y.dtype.kind != "f":
        for x in xs:
            with pytest.raises(gc.GraphTypeError):
                gc.pullback(y, x, y)
        return
    given = draw(case, DEFAULT, seed=1)
    values = {f"x{i}": value.values for i, value in enumerate(given)}
    others = [x for x in xs if x.dtype.kind != "f"]
    reference.check_derivatives(y, floats, others, values, DEFAULT, reliable)
    for x in others:
        with pytest.raises(gc.GraphTypeError, match=str(x.dtype)):
            gc.pullback(y, x, y)


@pytest.mark.parametrize("name", params([name for name, case in CASES.items() if case.batch], 1))
def test_more_dims_are_a_loop(name: str) -> None:
    """Any input may have a dim more: value and pullback are those of its places, stacked."""
    case = CASES[name]
    xs = declare(case)
    y = case.ours(*xs)
    given = [x.values for x in draw(case, DEFAULT, seed=2)]
    random = np.random.default_rng(3)
    for i, x in enumerate(xs):
        stacked = np.stack([given[i], np.roll(given[i], 1)])
        wide = [*xs[:i], gc.tensor(x.name, {"extra": 2} | x.sizes, dtype=x.dtype), *xs[i + 1 :]]
        whole = case.ours(*wide)
        assert sorted(whole.dims) == sorted((*y.dims, "extra"))
        outputs, wholes = [y], [whole]
        ct = gc.tensor("ct", y.sizes)
        cts = gc.tensor("ct", {"extra": 2} | y.sizes)
        floats = [n for n, t in enumerate(xs) if t.dtype.kind == "f"]
        if y.dtype.kind == "f" and i in floats:
            outputs += [gc.pullback(y, x, ct, disconnected="zero")]
            wholes += [gc.pullback(whole, wide[i], cts, disconnected="zero")]
        f, g = gc.compile([*xs, ct], outputs), gc.compile([*wide, cts], wholes)
        weights = random.normal(size=(2, *[evaluate(size, DEFAULT) for size in y.shape]))
        found = g(*given[:i], stacked, *given[i + 1 :], weights)
        order = [dim for dim in whole.dims if dim != "extra"]
        found[0] = np.moveaxis(found[0], whole.dims.index("extra"), 0)
        for place in range(2):
            wanted = f(*given[:i], stacked[place], *given[i + 1 :], weights[place])
            value = found[0][place].transpose([order.index(dim) for dim in y.dims])
            close(value, wanted[0])
            for ours, theirs in zip(found[1:], wanted[1:], strict=True):
                close(ours[place], theirs)
