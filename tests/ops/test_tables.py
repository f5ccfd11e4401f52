"""Every table keyed by ops is complete; a missing entry is named by its table and its op."""

from __future__ import annotations

from typing import Any

import pytest

from graphcore.inspection.op_text import BY_KIND, fallback
from graphcore.ir.axes import AxisKind, Opaque, Pointwise
from graphcore.ir.node import OPS
from graphcore.ir.op import Op
from graphcore.ir.types import TensorType
from tests.ops.tables import ALL, DERIVATIVES, PARTS_OF_OTHERS, SOME, holes, tables

FOUND: dict[str, Any] = dict(tables())


def is_part(name: str) -> bool:
    return name.endswith(PARTS_OF_OTHERS)


def test_every_table_says_which_ops_it_holds() -> None:
    """A new table keyed by ops is entered in ALL or SOME of tests/ops/tables.py."""
    said = {*ALL, *SOME, *DERIVATIVES}
    assert sorted(name for name in FOUND if name not in said and not is_part(name)) == []
    assert sorted(said - FOUND.keys()) == [], "these tables are gone: leave them out"


def test_no_table_has_a_hole() -> None:
    lines = holes(FOUND)
    recipe = "docs/developers/adding_an_op.md says which file holds which table"
    assert not lines, "\n".join([*lines, recipe])


def more_holes(found: dict[str, Any]) -> list[str]:
    """The holes that a change of the tables makes."""
    known = set(holes(FOUND))
    return [line for line in holes(found) if line not in known]


@pytest.mark.parametrize("name", ALL)
def test_an_omission_is_named(name: str) -> None:
    """All entries of a table are left out."""
    left_out = sorted(map(repr, ALL[name]() & set(FOUND[name])))
    lines = more_holes(FOUND | {name: {}})
    assert lines == [f"{op} is missing in {name}" for op in left_out]


@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_missing_derivative_is_named(name: str) -> None:
    left_out = sorted(map(repr, FOUND[name]))
    lines = more_holes(FOUND | {name: {}})
    assert [line.split(",")[0] for line in lines] == [f"{op} has 0 derivatives" for op in left_out]


def rule(x: TensorType) -> TensorType:
    """The operand."""
    return x


@pytest.mark.parametrize(
    ("dialect", "missing"),
    [
        ("named", {"lower.table LOWER"}),
        ("tensor", {"emit EMIT", "entries TABLE", "meaning MEANING", "0 derivatives"}),
        ("linalg", {
            *("linalg SIGNATURES", "emit EMIT", "entries TABLE", "meaning MEANING"),
            "0 derivatives",
        }),
        ("elementwise", {
            *("elementwise UFUNC", "LOWER", "EMIT", "entries TABLE", "meaning MEANING"),
            "0 derivatives",
        }),
        ("control", {
            *("LOWER", "derivatives CONTROL", "loops CONTROL", "inspection.interpreter RUNS"),
            "entries TABLE",
        }),
    ],
)  # fmt: skip
def test_all_that_a_new_op_lacks_is_named(
    dialect: str, missing: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Op("forgotten", dialect, rule, "An op.", axes=Pointwise())
    known = holes(FOUND)
    monkeypatch.setitem(OPS, repr(new), new)
    lines = [line for line in holes(FOUND) if line not in known]
    assert all(f"{dialect}.forgotten" in line for line in lines)
    assert len(lines) == len(missing)
    assert all(any(where in line for line in lines) for where in missing)


def kinds(kind: type[AxisKind] = AxisKind) -> set[type[AxisKind]]:
    return {kind}.union(*[kinds(sub) for sub in kind.__subclasses__()])


def test_every_kind_of_axes_is_worded() -> None:
    """Only kinds without an attr about axes have no phrase; their attrs are printed as they are."""
    bare = {kind.__name__ for kind in kinds() - set(BY_KIND)}
    assert bare == {
        "AxisKind",
        "ByAttr",
        "Alike",
        "Opaque",
        "Pointwise",
        "Same",
        "Picks",
        "Derives",
        "First",
    }
    assert fallback not in BY_KIND.values()
    assert not {op for op in OPS.values() if type(op.axes) is AxisKind}
    assert {op.dialect for op in OPS.values() if isinstance(op.axes, Opaque)} <= {
        *("leaf", "control", "autodiff", "schedule")
    }
