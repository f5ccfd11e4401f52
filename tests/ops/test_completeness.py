"""Every op is documented, tested and has its function; test_tables.py says the same of tables."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.graph import Graph
from graphcore.ir.node import OPS
from graphcore.ir.op import Op
from graphcore.ops import elementwise, leaf, named
from graphcore.rewrites.derivatives import PARTIALS
from tests.operations import CASES
from tests.ops.tables import INTERNAL
from tests.ops.test_ops import declare

NOT_FUNCTIONS_OF_VALUES = {
    *(
        "tensor",
        "inputs_like",
        "compile",
        "check_grads",
        "load",
        "save",
        "debug_print",
        "evaluate",
        "over_blocks",
        "Mesh",
        "join_processes",
        "Dim",
        "Function",
        "GraphWarning",
        "Operand",
        "Tree",
        "function",
        "optimize",
        "threads",
        "tree",
        "fft",
        "linalg",
        "nn",
        "signal",
        "special",
        "Tensor",
        "Compiled",
    ),
    *(name for name in dir(gc) if name.endswith("Error")),
}
CREATION = {"zeros", "ones", "full", "full_like", "zeros_like", "ones_like", "constant"}


def ops(*dialects: str) -> set[Op]:
    return {op for op in OPS.values() if op.dialect in dialects}


def names(some: set[Op]) -> list[str]:
    return sorted(map(repr, some))


def test_every_dialect_is_known() -> None:
    assert {op.dialect for op in OPS.values()} == {
        "leaf", "elementwise", "named", "tensor", "linalg", "autodiff", "control",
        "schedule",
    }  # fmt: skip


def test_partials_are_of_elementwise_ops() -> None:
    assert set(PARTIALS) <= ops("elementwise")
    for op, rule in PARTIALS.items():
        function = elementwise.UFUNC.get(op)
        if isinstance(function, np.ufunc):
            assert len(inspect.signature(rule).parameters) == function.nin + 1, op


def test_every_op_is_documented() -> None:
    assert [op for op in OPS.values() if not op.doc.strip()] == []


def used(case: str) -> set[Op]:
    """The ops of the user's graph of a case."""
    xs = declare(CASES[case])
    y = CASES[case].ours(*xs)
    return {node.op for node in Graph(tuple(x.node for x in xs), (y.node,)).nodes()}


NO_ROW = "have no row: add one to the table of their family in tests/operations"


def test_every_op_is_in_the_table_of_tests() -> None:
    tested = set().union(*map(used, CASES))
    # parts of complex numbers are tested by COMPLEX of test_edges, as the table has real inputs
    complex_only = {elementwise.real, elementwise.imag, elementwise.conjugate}
    untested = names(ops("named", "elementwise") - tested - INTERNAL - complex_only)
    assert not untested, f"{untested} {NO_ROW}"


MODULES = (gc, gc.fft, gc.linalg, gc.nn, gc.signal, gc.special)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_function_is_in_the_table_of_tests(module: object) -> None:
    words = {key.split()[0] for key in CASES} | CREATION
    tested = {id(vars(m)[word]) for word in words for m in MODULES if word in vars(m)}
    untested = [
        name
        for name in dir(module)
        if id(vars(module)[name]) not in tested and name not in NOT_FUNCTIONS_OF_VALUES
    ]
    assert not untested, f"{module.__name__}: {untested} {NO_ROW}"


def test_methods_are_functions() -> None:
    """What xarray has as a method is one here."""
    for name in (
        *("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin"),
        *(
            "count",
            "isnull",
            "notnull",
            "cumsum",
            "cumprod",
            "dot",
            "transpose",
            "rename",
            "expand_dims",
            "squeeze",
            "stack",
        ),
        *("swap_dims", "roll", "shift", "pad", "head", "tail", "thin", "pipe"),
        *("unstack", "broadcast_like", "isel", "where", "clip", "astype", "round", "conj"),
    ):
        assert callable(getattr(gc.Tensor, name)), name


def test_named_ops_speak_of_dims() -> None:
    """Every named op takes named operands only: plain ones are refused by its type rule."""
    plain = leaf.input_(name="x", dtype=np.dtype("f8"), shape=(2,), dims=None)
    with pytest.raises(gc.GraphError):
        named.sum_(plain, dims=("row",))
