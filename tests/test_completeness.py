"""No table has a hole: what was forgotten when an op was added is named here."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.numpy_backend import emit, loops
from graphcore.ir.graph import Graph
from graphcore.ir.node import OPS
from graphcore.ir.op import Op
from graphcore.ops import autodiff, elementwise, leaf, linalg, named, special, tensor
from graphcore.rewrites.decompose import DECOMPOSE
from graphcore.rewrites.derivatives import CONTROL, JVP, PARTIALS, TRANSPOSE, VJP
from graphcore.rewrites.expand import EXPAND
from graphcore.rewrites.lower import LOWER
from tests import interpreter, reference
from tests.operations import CASES
from tests.test_ops import declare

NO_FLOATS = {
    *(tensor.any_, tensor.all_, tensor.argmax, tensor.argmin),
    *(tensor.argsort, tensor.searchsorted),
}
"""Plain ops whose result is never a float."""

INTERNAL = {
    *(special.gamma_density, special.gammainc_by),
    *(special.beta_density, special.betainc_by),
}
"""Ops that only derivatives use."""

NOT_FUNCTIONS_OF_VALUES = {
    *(
        "tensor",
        "compile",
        "debug_print",
        "fft",
        "linalg",
        "signal",
        "special",
        "Tensor",
        "Compiled",
    ),
    *(name for name in gc.__all__ if name.endswith("Error")),
}
CREATION = {"zeros", "ones", "full", "full_like", "zeros_like", "ones_like", "constant"}


def ops(*dialects: str) -> set[Op]:
    return {op for op in OPS.values() if op.dialect in dialects}


def names(some: set[Op]) -> list[str]:
    return sorted(map(repr, some))


def may_be_float(op: Op) -> bool:
    """Whether an elementwise op may give floats."""
    if op not in elementwise.UFUNC:
        return True
    function = elementwise.UFUNC[op]
    return isinstance(function, str) or any(loop[-1] == "d" for loop in function.types)


DIFFERENTIABLE = {
    *(op for op in ops("elementwise") if may_be_float(op)),
    *(ops("tensor", "linalg") - NO_FLOATS - linalg.FACTORED),
}


def test_every_dialect_is_known() -> None:
    assert {op.dialect for op in OPS.values()} == {
        "leaf", "elementwise", "named", "tensor", "linalg", "autodiff", "control",
        "schedule",
    }  # fmt: skip


def test_every_differentiable_op_has_one_derivative() -> None:
    tables = [PARTIALS.keys(), TRANSPOSE.keys(), VJP.keys(), JVP.keys()]
    assert names(DIFFERENTIABLE - set().union(*tables)) == []
    twice = [op for op in OPS.values() if sum(op in table for table in tables) > 1]
    assert twice == []


def test_no_other_op_has_a_derivative() -> None:
    tables = {*PARTIALS, *TRANSPOSE, *VJP, *JVP}
    inside = ["barrier", "matrix_function", "svd_of", "trace_of_function", "turn"]
    assert names(tables - DIFFERENTIABLE) == [f"autodiff.{name}" for name in inside]


def test_partials_are_of_elementwise_ops() -> None:
    assert set(PARTIALS) <= ops("elementwise")
    for op, rule in PARTIALS.items():
        function = elementwise.UFUNC.get(op)
        if isinstance(function, np.ufunc):
            assert len(inspect.signature(rule).parameters) == function.nin + 1, op


def test_every_named_op_is_lowered() -> None:
    wanted = ops("named", "elementwise", "control") | {
        *(leaf.input_, leaf.constant, leaf.full, leaf.iota, leaf.extent, leaf.project),
        *(autodiff.barrier, autodiff.stop_gradient),
    }
    assert names(wanted ^ set(LOWER)) == []


def test_every_loop_and_branch_is_differentiated_and_emitted() -> None:
    for table in (CONTROL, loops.CONTROL, interpreter.CONTROL):
        assert names(ops("control") ^ set(table)) == []


def test_every_lazy_derivative_is_expanded() -> None:
    assert {autodiff.pullback, autodiff.pushforward, leaf.project} <= set(EXPAND)


def test_every_op_has_its_meaning() -> None:
    assert names(ops("elementwise", "tensor", "linalg") ^ set(interpreter.REFERENCE)) == []
    assert names(ops("named") ^ set(reference.NAMED)) == []


def test_every_plain_op_is_emitted() -> None:
    assert names(ops("elementwise", "tensor", "linalg") - set(emit.EMIT) - set(DECOMPOSE)) == []


def test_every_op_is_documented() -> None:
    assert [op for op in OPS.values() if not op.doc.strip()] == []


def used(case: str) -> set[Op]:
    """The ops of the user's graph of a case."""
    xs = declare(CASES[case])
    y = CASES[case].ours(*xs)
    return {node.op for node in Graph(tuple(x.node for x in xs), (y.node,)).nodes()}


def test_every_op_is_in_the_table_of_tests() -> None:
    tested = set().union(*map(used, CASES))
    # parts of complex numbers are tested by COMPLEX of test_edges, as the table has real inputs
    complex_only = {elementwise.real, elementwise.imag, elementwise.conjugate}
    assert names(ops("named", "elementwise") - tested - INTERNAL - complex_only) == []


MODULES = (gc, gc.fft, gc.linalg, gc.signal, gc.special)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_function_is_in_the_table_of_tests(module: object) -> None:
    words = {key.split()[0] for key in CASES} | CREATION
    tested = {id(vars(m)[word]) for word in words for m in MODULES if word in vars(m)}
    untested = [
        name
        for name in module.__all__
        if id(vars(module)[name]) not in tested and name not in NOT_FUNCTIONS_OF_VALUES
    ]
    assert untested == []


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
