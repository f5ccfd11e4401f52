"""The table of public functions and what is checked of each, golden/operations.txt: no hole."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from tests.operations import CASES
from tests.ops.test_completeness import CREATION, MODULES, NOT_FUNCTIONS_OF_VALUES
from tests.ops.test_edges import COMPLEX
from tests.ops.test_ops import declare

HEAD = """\
What tests/ops/test_ops.py checks of every public function, by its cases in tests/operations: the value, dims and
dtype against xarray, NumPy or SciPy, in f64 and f32, with sizes known and unknown, and 1 and 0 among them;
d: pullback and pushforward against differences and each other, first and second order;
v: vectorised over one more dim equals a loop; c: complex values and derivatives (tests/ops/test_edges.py).
"""  # noqa: E501  # as wide as the table


def functions() -> dict[str, list[str]]:
    """Every public function with its other names, by the name it is shown by."""
    found: dict[int, list[str]] = {}
    for module in MODULES:
        prefix = module.__name__.removeprefix("graphcore").removeprefix(".frontend").lstrip(".")
        for name in dir(module):
            value = vars(module)[name]
            if name not in NOT_FUNCTIONS_OF_VALUES and not isinstance(value, ModuleType):
                found.setdefault(id(value), []).append(f"{prefix}.{name}".lstrip("."))
    return {names[0]: names for names in found.values()}


def row(names: list[str]) -> tuple[int, bool, bool, bool, bool]:
    """How many cases a function has, whether one gives floats, is vectorised, is complex."""
    words = {name.rpartition(".")[2] for name in names}
    cases = [case for key, case in CASES.items() if key.split()[0] in words]
    floats = vectorised = False
    for case in cases:
        floats |= case.ours(*declare(case)).dtype.kind in "fc"
        vectorised |= case.batch
    complex_too = any(key.split()[0] in words for key in COMPLEX)
    return len(cases), floats, vectorised, complex_too, bool(words & CREATION)


def test_every_public_function_has_a_row(golden: Callable[[str, str], None]) -> None:
    lines = [HEAD]
    for shown, names in sorted(functions().items()):
        cases, floats, vectorised, complex_too, creation = row(names)
        assert cases or creation, f"{shown} is in no case"
        marks = f"{'d' if floats else '-'}{'v' if vectorised else '-'}{'c' if complex_too else '-'}"
        others = f"  (also {', '.join(names[1:])})" if names[1:] else ""
        lines.append(f"{shown:28} {cases:3} cases  {marks}{others}")
    golden("operations", "\n".join(lines))
