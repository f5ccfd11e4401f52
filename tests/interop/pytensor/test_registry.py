"""Every op that PyTensor's numba backend knows has a rule here, or a refusal with its reason."""

from typing import Any

import pytest

pytest.importorskip("pytensor", minversion="3.0")
pytest.importorskip("numba")

import pytensor.tensor as pt
from pytensor.graph.traversal import graph_inputs

from graphcore.interop.pytensor import UntranslatedError, from_pytensor
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


def answers(kind: type) -> list[str]:
    """The tables that answer an op: rules, or refusals."""
    names = [base.__name__ for base in kind.__mro__]
    if any(f".{space}." in kind.__module__ for space in ("sparse", "typed_list")):
        return ["refused"]
    tables = {"rule": RULES, "refused": REFUSED}
    return [what for what, table in tables.items() if not table.keys().isdisjoint(names)]


def test_every_op_has_either_a_rule_or_a_refusal() -> None:
    ops = [kind for kind in known_to_numba() if kind.__name__ not in MADE_BY_NUMBA]
    assert len(ops) > 100
    unclear = {kind.__name__: found for kind in ops if len(found := answers(kind)) != 1}
    assert unclear == {}


INPUTS = [pt.matrix("m"), pt.vector("v"), pt.lvector("i")]


def refused_graphs() -> dict[str, Any]:
    """A graph for each op that is refused by name, where this version of PyTensor has it."""
    import pytensor.sparse as sparse
    import pytensor.typed_list as lists
    from pytensor.tensor import linalg
    from pytensor.tensor.basic import choose

    m, v, i = INPUTS
    made: dict[str, Any] = {
        "sparse": lambda: sparse.dense_from_sparse(sparse.csr_from_dense(m).T),
        "typed_list": lambda: lists.make_list([v, v])[0],
        "Choose": lambda: choose(i, m),
        "Schur": lambda: linalg.schur(m)[0],
        "QZ": lambda: linalg.qz(m, m)[0],
        "TRSYL": lambda: linalg.solve_sylvester(m, m, m),
        "PdbBreakpoint": lambda: pdb.PdbBreakpoint("here")(pt.any(v > 0), v),
        "ScipyWrapperOp": lambda: optimize.minimize((v**2).sum(), v)[0],
        "RNGConsumerOp": lambda: pt.random.normal(v),
    }
    import pytensor.breakpoint as pdb
    import pytensor.tensor.optimize as optimize

    return made


@pytest.mark.parametrize("name", sorted(REFUSED.keys() - {"AbstractFunctionGraph"}))
def test_refusals_name_the_op_and_a_cure(name: str) -> None:
    build = refused_graphs()[name]
    try:
        y = build()
    except AttributeError:
        pytest.skip("this version of PyTensor lacks the op")
    inputs = [x for x in graph_inputs([y]) if x in INPUTS]
    with pytest.raises(UntranslatedError) as caught:
        from_pytensor(inputs, y)
    words = str(caught.value)
    assert CURES[name] in words or CURES["Schur"] in words
    assert "of PyTensor: " in words
    assert "made at test_registry.py" in words


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
