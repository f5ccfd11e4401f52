"""A target of another package, `tests/outside/steps.py`, runs programs and answers for them."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest

import graphcore as gc
from graphcore.analysis.cost import TargetCosts
from graphcore.backends.targets import NATIVE, NUMPY
from graphcore.ops import linalg
from tests.outside.steps import Steps

ROWS, COLUMNS = 5, 3
x = gc.tensor("x", {"row": None, "col": COLUMNS})
PROGRAMS: dict[str, Callable[[], gc.Tree]] = {
    "elementwise": lambda: gc.exp(-(x**2)) + gc.where(x > 0, x, 0.0),
    "reductions": lambda: [x.mean("row"), x.max("col"), x.argmin("row"), gc.special.logsumexp(x)],
    "softmax": lambda: gc.grad((gc.special.softmax(x, "col") ** 2).sum(), x),
    "views": lambda: x[{"row": slice(None, None, -1)}].T + x.T,
    "selection": lambda: gc.grad(gc.sort(x, "row")[{"row": 1}].sum(), x),
    "positions": lambda: gc.take(x, gc.argsort(x.sum("col"), "row"), "row"),
    "products": lambda: gc.grad(gc.dot(x, x.rename(row="other"), dim="col").max(), x),
    "matrices": lambda: gc.linalg.solve(
        gc.dot(x, x.rename(col="other"), dim="row") + gc.eye({"col": COLUMNS, "other": COLUMNS}),
        x.sum("row"),
        dims=("col", "other"),
    ),
    "running": lambda: gc.cumsum(x, "row") * gc.arange(COLUMNS, dim="col"),
    "loop": lambda: gc.grad(
        gc.scan(lambda c, e: (gc.tanh(c + e.sum()), c), 0.0, x, dim="row")[0], x
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    """As NumPy calls compute them, without rows too."""
    own = gc.compile([x], PROGRAMS[name](), target=Steps())
    usual = gc.compile([x], PROGRAMS[name](), target="numpy")
    for rows in (ROWS, 1):
        given = np.random.default_rng(rows).uniform(-1, 1, (max(rows, 2), COLUMNS))
        found, wanted = own(given), usual(given)
        pairs = zip(found, wanted, strict=True) if isinstance(found, list) else [(found, wanted)]
        for y, z in pairs:
            np.testing.assert_allclose(y, z, rtol=1e-12, atol=1e-13)
            assert y.dtype == z.dtype


def test_answers() -> None:
    f = gc.compile([x], gc.grad(gc.exp(x).sum(), x), target=Steps())
    assert f.target == ("steps", "steps", ", as target='steps'")
    assert f.source == "steps  # steps, as target='steps'\n    exp\n"
    assert "f.source:2: exp" in str(f.why("%0"))
    assert repr(f).endswith(": steps, as target='steps'>")
    assert "define i64" in f.llvm  # of the same program as machine code
    g = pickle.loads(pickle.dumps(f))
    given = np.ones((2, COLUMNS))
    assert g.target == f.target
    assert (g(given) == f(given)).all()
    assert f.trace(given)[0].name == "x"


def test_what_it_lacks_is_refused_in_the_words_of_the_program(tmp_path: object) -> None:
    f = gc.compile([x], gc.take(x, [0, 7], "row"), target=Steps())
    for refused, words in (
        (lambda: f(np.ones((2, COLUMNS))), r"call: take at .*\n  its result"),
        (lambda: f(np.ones((2, 9))), "col"),
        (lambda: f.profile(np.ones((9, COLUMNS))), "is not measured by step"),
        (lambda: gc.save(f, f"{tmp_path}/f.gc"), "cannot hold the target 'steps'"),
        (
            lambda: gc.compile(
                [x], gc.while_loop(lambda c: c < 3, lambda c: c + 1, x.sum()), target=Steps()
            ),
            "target 'steps' does not compute while_loop at .*: it has no rule",
        ),
        (lambda: gc.compile([x], x, native=True, target=Steps()), "contradict each other"),
    ):
        with pytest.raises(gc.GraphError, match=words):
            refused()


TARGET_FOLDERS = ("numpy_backend", "llvm_kernels", "jax_backend")


def test_no_neutral_file_names_a_target() -> None:
    """But the list of the library's own; `import` of a target's folder makes a file its own."""
    from tests.test_architecture import PACKAGE, python_files

    own = [PACKAGE / "backends" / name for name in TARGET_FOLDERS]
    neutral = [
        file
        for file in python_files()
        if file.is_relative_to(PACKAGE)
        and file != PACKAGE / "backends" / "targets.py"
        and not any(file.is_relative_to(folder) for folder in own)
    ]
    lines = [
        f"{file.relative_to(PACKAGE)}: {line}"
        for file in neutral
        for line in file.read_text(encoding="utf-8").splitlines()
        if any(name in line for name in TARGET_FOLDERS)
    ]
    assert lines == []


def test_checks_convert_nothing() -> None:
    """A target checks arrays of its own by lines that ask them for shapes and values of sizes."""
    z = gc.tensor("z", {"n": None, "m": None})
    w = gc.tensor("w", {"n//m": z.sizes["n"] // z.sizes["m"], "col": COLUMNS})
    k = gc.tensor("k", (), dtype="int64")
    g = gc.compile([z, w, k], [z.isel(n=slice(1, None)), w, gc.arange(k, dim="k")], native=False)
    checks = g._boundary.checks

    def check(*arrays: object) -> tuple[int, ...]:
        names = {f"x{i}": array for i, array in enumerate(arrays)} | {"refuse": checks.refuse}
        exec("\n".join(checks.lines()), names)
        return tuple(names[f"n{i}"] for i in range(3))  # type: ignore[misc]

    def shaped(*shape: int, value: int = 2) -> object:
        return SimpleNamespace(shape=shape, item=lambda: value)

    assert check(shaped(6, 2), shaped(3, COLUMNS), shaped()) == (6, 2, 2)
    for wrong in (
        (shaped(6, 2), shaped(4, COLUMNS), shaped()),
        (shaped(6, 2), shaped(3, 9), shaped()),
        (shaped(6, 0), shaped(3, COLUMNS), shaped()),  # n // 0
        (shaped(6, 2), shaped(3, COLUMNS), shaped(value=-1)),
    ):
        with pytest.raises(gc.GraphValueError) as own:
            check(*wrong)
        arrays = [np.ones(x.shape) for x in wrong[:2]]  # type: ignore[attr-defined]
        with pytest.raises(gc.GraphValueError) as usual:
            g(*arrays, wrong[2].item())  # type: ignore[attr-defined]
        said = [re.sub(r"called at .*", "", str(error.value)) for error in (own, usual)]
        assert said[0] == said[1]
        assert "size" in said[0] or "needs 1 <= m" in said[0]


class Copying(Steps):
    """A target that reads and writes values for nothing, and factors no batch one by one."""

    costs = TargetCosts(products_per_value=0, rows_factored_alone=10**6)


def test_shared_passes_choose_by_the_costs_of_the_target() -> None:
    matrices = gc.tensor("matrices", {"batch": None, "row": 64, "col": 64})
    y = gc.linalg.solve(matrices, gc.tensor("b", {"batch": None, "row": 64}))
    both = [y, gc.linalg.det(matrices)]
    inputs = [matrices, gc.tensor("b", {"batch": None, "row": 64})]
    ops = [
        gc.compile(inputs, both, target=target).stages["optimized"].ops()
        for target in (Steps(), Copying())
    ]
    assert [linalg.lu_factor in some for some in ops] == [True, False]


def test_the_targets_of_the_library_share_the_costs_of_shared_passes() -> None:
    """Which of them runs is decided after these passes."""
    for field in fields(TargetCosts):
        assert getattr(NATIVE.costs, field.name) == getattr(NUMPY.costs, field.name)
    assert "scheduled" in repr(NATIVE.passes)
