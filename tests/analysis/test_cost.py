"""What nodes cost at representative sizes."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.analysis.cost import TYPICAL, Cost, bytes_of, cost, elements, representative, total
from graphcore.ir.dtypes import FLOAT
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import Size, maximum, unknown
from graphcore.ops import control, elementwise, leaf, linalg, tensor
from graphcore.rewrites.plain import expand

N = unknown("n")


def value(name: str, *shape: Size, dtype: np.dtype = FLOAT) -> Node:
    return leaf.input_(name=name, dtype=dtype, shape=shape, dims=None)


A, B, V = value("a", 20, 30), value("b", 30, 40), value("v", 30)


def test_sizes_as_numbers() -> None:
    assert representative(7) == 7
    assert representative(N) == TYPICAL
    assert representative(2 * N + 1) == 2 * TYPICAL + 1
    assert representative(maximum(N, 1000)) == 1000
    assert representative(3 - N) == 0
    assert representative(N // (N - unknown("m"))) == TYPICAL
    assert elements(value("x", N, 3).type) == 3 * TYPICAL
    assert bytes_of(value("x", N, 3).type) == 8 * 3 * TYPICAL


def test_arithmetic_reads_and_writes() -> None:
    assert cost(A + A) == Cost(600, 3 * 600 * 8)
    assert cost(expand(V, [0], (20, 30)) * A).bytes == (30 + 2 * 600) * 8
    assert cost(elementwise.exp(A)).flops == 10 * 600
    assert cost(elementwise.less(A, A)) == Cost(600, 2 * 600 * 8 + 600)


def test_views_and_leaves_cost_nothing() -> None:
    for node in (A, tensor.transpose(A, perm=(1, 0)), expand(V, [0], (20, 30)), linalg.qr(A)[0]):
        assert cost(node) == Cost()


def test_products() -> None:
    assert cost(tensor.matmul(A, B)) == Cost(2 * 20 * 30 * 40, 8 * (600 + 1200 + 800))
    assert cost(tensor.matvec(A, V)).flops == 2 * 600
    both = tensor.einsum(A, B, operands=((0, 1), (1, 2)), result=(0, 2))
    assert cost(both) == cost(tensor.matmul(A, B))


def test_matrices() -> None:
    square, wide = value("s", 5, 30, 30), value("w", 5, 30, 2)
    n, m = 5 * 30**3, 5 * 30 * 30 * 2
    assert cost(linalg.cholesky(square)).flops == n
    assert cost(linalg.solve(square, wide, check=False)).flops == n + m
    lower = linalg.solve_triangular(square, wide, lower=True, unit=False, check=False)
    assert cost(lower).flops == 5 * 30 * 30 + m
    assert cost(linalg.eigh(square)).flops > 10 * n


def test_picked_elements_are_all_that_is_read() -> None:
    place = value("i", 2, dtype=np.dtype("i8"))
    rows = tensor.gather(value("table", 10_000, 3), place, axes=(0,))
    assert cost(rows).bytes == 2 * 8 + 2 * (2 * 3 * 8)


def test_a_loop_costs_what_its_steps_cost() -> None:
    x = value("x", 30)
    body = Graph((x,), (x * x + x,))
    how = {"carries": 1, "sequences": 0, "reverse": False, "dim": None, "checkpoint": ()}
    step = total(body.nodes())
    assert step == cost(x * x) + cost(x + x)
    assert cost(control.scan(V, body=body, length=9, **how)) == step.times(9)
    assert cost(control.scan(V, body=body, length=N, **how)) == step.times(TYPICAL)
    assert cost(control.call(V, body=body)) == step


def test_a_choice_costs_as_much_as_its_longest_branch() -> None:
    x = value("x", 30)
    short, long = Graph((x,), (x + x,)), Graph((x,), (elementwise.exp(x),))
    which = value("k", dtype=np.dtype("i8"))
    assert cost(control.switch(which, V, branches=(short, long))) == total(long.nodes())


@pytest.mark.parametrize("name", ["lstm", "gp"])
def test_of_a_whole_program(name: str) -> None:
    from benchmarks.programs import Program

    program = Program(name).make("graphcore")
    assert isinstance(program, gc.Compiled)
    whole = total(program.stages["optimized"].nodes())
    assert 1e6 < whole.flops < 1e8
    assert whole.bytes > 1e6
