"""Every op that PyTensor's numba backend knows has a rule here, or a refusal with its reason."""

import pytest

pytest.importorskip("pytensor", minversion="3.0")
pytest.importorskip("numba")

from graphcore.interop.pytensor.refused import CURES, REFUSED
from graphcore.interop.pytensor.rules import RULES
from graphcore.interop.pytensor.scalars import OWN_DTYPES, SCALARS

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MADE_BY_NUMBA = {
    *("FusedElemwise", "IndexedElemwise", "OpWithCoreShape", "RandomVariableWithCoreShape"),
    *("ScalarizedElemwise",),
}
"""Ops that only the rewrites of other backends make."""


def known_to_numba() -> list[type]:
    import pytensor.link.numba.dispatch.basic as basic

    found = [f.registry for f in vars(basic).values() if hasattr(f, "registry")]
    ops = {kind for registry in found for kind in registry if kind.__module__[:9] == "pytensor."}
    return sorted(ops, key=lambda kind: (kind.__module__, kind.__name__))


def is_answered(kind: type) -> bool:
    names = [base.__name__ for base in kind.__mro__]
    spaces = [space for space in ("sparse", "typed_list") if f".{space}." in kind.__module__]
    tables = [RULES, SCALARS, OWN_DTYPES, REFUSED]
    return bool(spaces) or any(name in table for name in names for table in tables)


def test_every_op_is_answered() -> None:
    ops = known_to_numba()
    assert len(ops) > 100
    left = [k.__name__ for k in ops if not is_answered(k) and k.__name__ not in MADE_BY_NUMBA]
    assert left == []


def test_every_scalar_op_is_answered() -> None:
    import pytensor.scalar as ps

    kinds = {
        kind
        for space in (ps.basic, ps.math)
        for kind in vars(space).values()
        if isinstance(kind, type) and issubclass(kind, ps.ScalarOp)
    }
    known = {*SCALARS, *OWN_DTYPES, "Composite", "ScalarLoop"}
    left = {k.__name__ for k in kinds if known.isdisjoint(base.__name__ for base in k.__mro__)}
    assert {name for name in left if not name.endswith("ScalarOp")} <= ABSTRACT


ABSTRACT = {
    *("LogicalComparison", "FixedLogicalComparison", "UnaryBitOp", "BinaryBitOp"),
    *("ScalarInnerGraphOp",),
}
"""Classes that no op is of itself."""


def test_every_refusal_has_a_cure() -> None:
    assert REFUSED.keys() | {"rule"} == CURES.keys()


def test_no_op_has_a_rule_and_a_refusal() -> None:
    assert RULES.keys().isdisjoint(REFUSED)
