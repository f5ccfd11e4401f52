"""What each rule that is a function fires at, and what no rule may touch."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.ir.literal import Literal
from graphcore.ir.node import Node
from graphcore.ir.sizes import unknown
from graphcore.ops import elementwise as e
from graphcore.ops import leaf, tensor
from graphcore.rewrites.plain import full, nonzero
from graphcore.rewrites.powers import POWERS


def given(name: str, *shape: Any, dtype: str = "float64") -> Node:
    return leaf.input_(name=name, dtype=np.dtype(dtype), shape=shape, dims=None)


X, Y = given("x", 2, 3), given("y", 2, 3)
N = unknown("n")
S, ROW, COL, NONE = given("s"), given("r", 3), given("c", 2), given("o", N)
M, CUBE = given("m", 3, 4), given("q", 2, 3, 4)
E_X = e.exp(X)
NX = given("w", N, 3)
INT, FLAG, Z = (
    given("i", 2, 3, dtype="int64"),
    given("f", 2, 3, dtype="bool"),
    given("z", 2, 3, dtype="complex128"),
)


def expand(x: Node, axes: tuple[int, ...], *sizes: Any) -> Node:
    return tensor.expand(x, axes=axes, sizes=sizes)


def transpose(x: Node, *perm: int) -> Node:
    return tensor.transpose(x, perm=perm)


def cut(x: Node, starts: Any, sizes: Any, steps: Any) -> Node:
    return tensor.slice_(x, starts=starts, sizes=sizes, steps=steps)


def windows(x: Node, axes: Any, sizes: Any, strides: Any, dilations: Any) -> Node:
    return tensor.windows(x, axes=axes, sizes=sizes, strides=strides, dilations=dilations)


def embed(x: Node, shape: Any, starts: Any, steps: Any) -> Node:
    return tensor.embed(x, shape=shape, starts=starts, steps=steps)


def overwrite(x: Node, part: Node, starts: Any, steps: Any) -> Node:
    return tensor.overwrite(x, part, starts=starts, steps=steps)


def total(x: Node, *axes: int) -> Node:
    return tensor.sum_(x, axes=axes)


def einsum(*xs: Node, operands: Any, result: Any) -> Node:
    return tensor.einsum(*xs, operands=operands, result=result)


def counted(size: Any) -> Node:
    return leaf.iota(size=size, dtype=np.dtype("int64"), dims=None)


def twos(*shape: Any, dtype: str = "float64") -> Node:
    return full(2, np.dtype(dtype), shape)


def literal(value: Any) -> Node:
    return leaf.constant(value=Literal(value), dims=None)


def cast(x: Node, dtype: str) -> Node:
    return e.cast(x, dtype=np.dtype(dtype))


OUTER = expand(COL, (1,), 3) * expand(ROW, (0,), 2)
BATCHED = einsum(X, given("b", 4, 2), operands=((0, 1), (2, 0)), result=(0, 1, 2))

VARIANCE = e.square(Y) + 0.25
DEVIATION = e.where(
    e.equal(VARIANCE, full(0, np.dtype("f8"), (2, 3))),
    full(0, np.dtype("f8"), (2, 3)),
    e.sqrt(nonzero(VARIANCE)),
)

EXAMPLES: dict[str, list[Node]] = {
    "square_of_deviation": [e.square(DEVIATION), e.square(DEVIATION / X)],
    "product_of_deviations": [DEVIATION * DEVIATION, (X * DEVIATION) * (X * DEVIATION)],
    "log_of_sum_of_exponentials": [e.log(total(E_X, 1)), e.log(total(E_X, 0, 1))],
    "quotient_of_exponentials": [
        E_X / expand(total(E_X, 1), (1,), 3),
        E_X / expand(total(E_X, 0, 1), (0, 1), 2, 3),
    ],
    "sign_of_complex": [e.sign(Z), e.sign(Z * 0)],
    "log_of_softmax": [e.log(tensor.softmax(X, axes=(0,))), e.log(tensor.softmax(X, axes=(0, 1)))],
    "exponential_of_log_softmax": [
        e.exp(tensor.log_softmax(X, axes=(1,))),
        e.exp(tensor.log_softmax(X, axes=(0, 1))),
    ],
    "less_logsumexp": [X - expand(tensor.logsumexp(X, axes=(1,)), (1,), 3)],
    "small_powers": [X ** full(n, np.dtype("f8"), (2, 3)) for n in POWERS]
    + [Z ** full(n, np.dtype("c16"), (2, 3)) for n in POWERS],
    "power_of_exponential": [
        e.exp(X) ** full(n, np.dtype("f8"), (2, 3)) for n in (-4, -0.5, 0.25)
    ],
    "scaled_twice": [
        twos(2, 3) * (full(-0.7, np.dtype("f8"), (2, 3)) * X),
        (X * full(0.3, np.dtype("f8"), (2, 3))) * full(-0.5, np.dtype("f8"), (2, 3)),
    ],
    "logic_of_known": [
        e.logical_and(FLAG, full(True, np.dtype("bool"), (2, 3))),
        e.logical_and(full(False, np.dtype("bool"), (2, 3)), FLAG),
        e.logical_or(FLAG, full(True, np.dtype("bool"), (2, 3))),
        e.logical_or(full(False, np.dtype("bool"), (2, 3)), FLAG),
    ],
    "multiply_no_nan_of_simple": [
        tensor.multiply_no_nan(X, full(-0.7, np.dtype("f8"), (2, 3))),
        tensor.multiply_no_nan(-X, Y),
    ],
    "same_dtype": [
        cast(X, "float64"),
        cast(cast(X, "complex128"), "float64"),
        cast(cast(given("h", 2, 3, dtype="int32"), "float64"), "float32"),
        cast(cast(FLAG, "int8"), "float64"),
        cast(cast(given("g", 2, 3, dtype="float32"), "float64"), "float32"),
        cast(cast(given("g", 2, 3, dtype="float32"), "float64"), "int32"),
    ],
    "slice_of_iota": [
        cut(counted(n), (start,), (size,), (step,))
        for n, start, size, step in (
            *((9, 0, 5, 1), (9, 2, 4, 1), (9, 8, 3, -2), (9, 5, 0, 1)),
            *((20_000, 7, 6_000, 3), (N + 2, 0, N + 1, 1), (N + 2, 1, 1, 1)),
        )
    ],
    "slice_of_counted": [
        cut(2 * counted(9) + 3, (5,), (4,), (-1,)),
        cut(
            e.equal(expand(counted(9), (1,), 4), expand(counted(4), (0,), 9)),
            *((2, 1), (4, 2), (1, 2)),
        ),
    ],
    "gather_of_iota": [
        tensor.gather(counted(5), literal(np.array(at)), axes=(0,))
        for at in ([4, 0, -5], [[1], [-1]])
    ],
    "where_of_known": [
        e.where(full(holds, np.dtype("?"), (2, 3)), X, Y) for holds in (True, False)
    ],
    "fold_constants": [
        e.exp(twos(2, 3)),
        twos(2, 3) * literal(np.arange(6.0).reshape(2, 3)),
        e.less(literal(np.array([1.0, np.nan])), twos(2)),
        cast(literal(np.array([1.5, -2.5])), "int32"),
        cast(literal(np.array([1 + 2j])), "float64"),
        e.floor_divide(literal(np.array([7, -7])), full(2, np.dtype("i8"), (2,))),
        e.divide(literal(np.array([1.0, -1.0, 0.0])), full(0, np.dtype("f8"), (3,))),
    ],
    "repeat_later": [
        e.exp(expand(ROW, (0,), 2)),
        expand(ROW, (0,), 2) + expand(S, (0, 1), 2, 3),
        expand(ROW, (0,), 2) * twos(2, 3),
        expand(COL, (1,), 3) - expand(S, (0, 1), 2, 3),
        e.where(
            expand(given("b", dtype="bool"), (0, 1), 2, N), expand(NONE, (0,), 2), twos(2, N)
        ),
        cast(expand(ROW, (0,), N), "float32"),
        tensor.concat(expand(ROW, (0,), 2), expand(given("t", 4), (0,), 2), axis=1),
        tensor.concat(expand(ROW, (0, 2), 2, N), expand(X, (2,), N), axis=0),
        cut(expand(ROW, (0,), 4), (3, 1), (2, 2), (-2, 1)),
        cut(expand(X, (1,), N), (1, N - 1, 2), (1, N, 2), (1, -1, -1)),
        tensor.concat(twos(1, N), expand(COL, (1,), N), axis=0),
        embed(expand(ROW, (0,), N), (N, 7), (0, 1), (1, 2)),
        overwrite(expand(ROW, (1,), N), expand(COL, (1,), N), (2, 0), (-1, 1)),
        tensor.max_(expand(X, (1, 3), N, 4), axes=(0, 1)),
        tensor.prod(expand(X, (0, 2), N, 4), axis=2),
        tensor.cumsum(expand(X, (1,), N), axis=2),
        tensor.sort(expand(X, (0, 2), 4, N), axis=1),
        tensor.argsort(expand(X, (0, 2), 4, N), axis=3, size=2, descending=True),
        tensor.recurrence(expand(X, (1,), N), expand(Y, (1,), N), axis=0),
        total(expand(ROW, (0, 2), N, 4), 0, 1),
        total(expand(CUBE, (1,), N), 0, 3),
    ],
    "view_later": [
        e.exp(transpose(X, 1, 0)),
        transpose(X, 1, 0) + transpose(Y, 1, 0),
        transpose(CUBE, 2, 0, 1) * twos(4, 2, 3),
        e.where(transpose(FLAG, 1, 0), transpose(X, 1, 0), twos(3, 2)),
        e.exp(windows(CUBE, (1, 2), (2, 3), (2, 1), (1, 1))),
        windows(NX, (0,), (2,), (1,), (2,)) * windows(e.exp(NX), (0,), (2,), (1,), (2,)),
        e.where(
            windows(FLAG, (1,), (2,), (1,), (1,)), windows(X, (1,), (2,), (1,), (1,)), twos(2, 2, 2)
        ),
    ],
    "view_of_full": [
        transpose(twos(2, 3), 1, 0),
        expand(twos(3), (0,), 2),
        tensor.reshape(twos(2, 3), shape=(6,)),
        cut(twos(2, 3), (0, 0), (1, 2), (1, 1)),
        windows(twos(2, 3), (0, 1), (2, 2), (1, 1), (1, 1)),
        windows(twos(N, 3), (0,), (2,), (2,), (1,)),
    ],
    "transpose_of_view": [
        transpose(X, 0, 1),
        transpose(transpose(CUBE, 1, 2, 0), 2, 0, 1),
        transpose(transpose(CUBE, 1, 2, 0), 1, 0, 2),
        transpose(expand(ROW, (0,), N), 1, 0),
        transpose(expand(X, (1, 2), 4, 5), 3, 1, 0, 2),
    ],
    "expand_of_expand": [
        expand(X, ()),
        expand(expand(ROW, (0,), 2), (1,), N),
        expand(expand(ROW, (1,), 2), (0, 2), 4, 5),
    ],
    "reshape_of_reshape": [
        tensor.reshape(X, shape=(2, 3)),
        tensor.reshape(tensor.reshape(X, shape=(6,)), shape=(3, 2)),
    ],
    "reshape_of_transpose": [
        tensor.reshape(transpose(CUBE, 2, 0, 1), shape=(4, 6)),
        tensor.reshape(transpose(CUBE, 1, 2, 0), shape=(12, 2)),
        tensor.reshape(transpose(CUBE, 1, 2, 0), shape=(3, 2, 2, 2)),
        tensor.reshape(transpose(NX, 1, 0), shape=(3, 1, N)),
        tensor.reshape(transpose(expand(CUBE, (1,), 1), 3, 0, 1, 2), shape=(4, 6)),
    ],
    "reshape_of_expand": [
        tensor.reshape(expand(ROW, (0,), 2), shape=(2, 1, 3)),
        tensor.reshape(expand(CUBE, (1,), N), shape=(2, N, 12)),
        tensor.reshape(expand(ROW, (0, 2), 4, N), shape=(2, 2, 3, N)),
        tensor.reshape(expand(NX, (1, 2), 2, 5), shape=(N, 10, 3)),
    ],
    "concat_of_zeros": [
        tensor.concat(full(0, X.type.dtype, (1, 3)), X, axis=0),
        tensor.concat(X, full(0, X.type.dtype, (2, N)), axis=1),
        tensor.concat(*[full(0, FLAG.type.dtype, (2, n)) for n in (1, 2)], FLAG, axis=1),
    ],
    "embed_of_view": [
        embed(NX, (N, 3), (N - 1, 0), (-1, 1)),
        embed(embed(X, (3, 7), (1, 6), (1, -3)), (9, 8), (8, 1), (-4, 1)),
        embed(embed(NX, (N + 1, 3), (1, 0), (1, 1)), (N + 3, 9), (N + 2, 1), (-1, 2)),
    ],
    "embeds_put_together": [
        embed(X, (2, 9), (0, 1), (1, 1)) + embed(given("p", 2, 2), (2, 9), (0, 4), (1, 1)),
        embed(X, (7, 3), (3, 0), (2, 1)) + embed(given("p", 1, 3), (7, 3), (1, 0), (2, 1)),
        embed(NX, (N + 4, 3), (1, 0), (1, 1)) + embed(X, (N + 4, 3), (N + 1, 0), (1, 1)),
    ],
    "slice_of_overwrite": [
        cut(overwrite(X, given("a", 2, 2), (0, 2), (1, -2)), (0, 2), (2, 2), (1, -2)),
        cut(overwrite(NX, given("a", N, 1), (0, 2), (1, 1)), (0, 2), (N, 1), (1, 1)),
    ],
    "overwrite_of_all": [
        overwrite(X, Y, (1, 0), (-1, 1)),
        overwrite(overwrite(X, full(0, X.type.dtype, (2, 1)), (0, 2), (1, 1)), given("a", 2, 1),
                  (0, 2), (1, 1)),
    ],
    "concat_of_concat": [
        tensor.concat(tensor.concat(X, Y, axis=1), Y, axis=1),
        tensor.concat(X, tensor.concat(NX, X, axis=0), Y, axis=0),
    ],
    "slice_of_slice": [
        cut(X, (0, 0), (2, 3), (1, 1)),
        cut(cut(X, (1, 2), (2, 3), (-1, -1)), (0, 0), (2, 2), (1, 2)),
        cut(cut(X, (1, 2), (2, 2), (-1, -2)), (1, 1), (2, 2), (-1, -1)),
        cut(cut(NX, (N - 1, 0), (N, 3), (-1, 1)), (N - 1, 1), (N, 2), (-1, 1)),
    ],
    "sum_of_view": [
        tensor.sum_(given("one", 1, N, 1), axes=(0, 2)),
        total(X),
        total(twos(2, 3), 1),
        total(twos(N, 3), 0, 1),
        total(twos(N, 3, dtype="int64"), 0),
        total(total(CUBE, 1), 0),
        total(total(CUBE, 0, 2), 0),
        total(expand(ROW, (0,), 4), 0),
        total(expand(ROW, (0,), N), 0),
        total(expand(INT, (1,), N), 1, 2),
        total(-X, 1),
        total(-Z, 0),
    ],
    "scatter_to_zeros": [
        tensor.scatter_add(
            full(0, np.dtype("f8"), (3, 4)),
            given("u", 2, 4),
            given("k", 2, dtype="uint8"),
            axes=(0,),
        ),
    ],
    "sum_of_scatter": [
        total(
            tensor.scatter(
                given("u", 2, 4),
                expand(leaf.iota(size=2, dtype=np.dtype("i8"), dims=None), (), ),
                given("k", 2, dtype="uint8"),
                axes=(0, 1),
                shape=(2, 3, 4),
            ),
            1,
        ),
    ],
    "reduction_of_transpose": [
        total(transpose(CUBE, 2, 0, 1), 0, 2),
        total(transpose(CUBE, 1, 2, 0), 1),
        tensor.prod(transpose(CUBE, 2, 0, 1), axis=1),
        tensor.argmax(transpose(CUBE, 1, 2, 0), axis=2),
        tensor.max_(transpose(CUBE, 2, 0, 1), axes=(0,)),
        tensor.min_(transpose(CUBE, 1, 2, 0), axes=(0, 2)),
    ],
    "sum_of_product": [total(X * Y, 1), total(e.square(X), 0, 1), total(-X * Y, 0)],
    "einsum_of_view": [
        einsum(transpose(X, 1, 0), M, operands=((0, 1), (0, 2)), result=(1, 2)),
        einsum(expand(ROW, (0,), 2), X, operands=((0, 1), (0, 1)), result=(0,)),
        einsum(expand(ROW, (0,), N), M, operands=((0, 1), (1, 2)), result=(2,)),
        einsum(expand(ROW, (0,), N), M, operands=((0, 1), (1, 2)), result=(2, 0)),
        einsum(twos(2, 3), X, operands=((0, 1), (0, 1)), result=(1,)),
        einsum(expand(S, (0,), 5), X, operands=((2,), (0, 1)), result=(1, 2)),
    ],
    "einsum_of_outer": [
        einsum(OUTER, OUTER, operands=((0, 1), (0, 1)), result=()),
        einsum(OUTER, M, operands=((0, 1), (1, 2)), result=(2, 0)),
        einsum(BATCHED, X, operands=((0, 1, 2), (0, 1)), result=(2,)),
    ],
    "quotient_of_outer": [
        OUTER / expand(given("p", 2), (1,), 3),
        OUTER / expand(given("p", 3), (0,), 2),
        BATCHED / expand(given("p", 2, 4), (1,), 3),
    ],
    "scalars_outside": [
        einsum(S, X, Y, operands=((), (0, 1), (0, 1)), result=(0,)),
        einsum(-X, M, operands=((0, 1), (1, 2)), result=(0, 2)),
        einsum(S, Z, operands=((), (0, 1)), result=(1, 0)),
    ],
    "one_operand": [
        einsum(X, operands=((0, 1),), result=(1, 0)),
        einsum(CUBE, operands=((0, 1, 2),), result=(2, 0)),
    ],
}  # fmt: skip

DECLINED = [
    cast(cast(INT, "float64"), "int64"),  # rounds beyond 2**53
    cast(cast(INT, "float64"), "float32"),
    cast(cast(X, "float32"), "float64"),
    full(0.3, np.dtype("f8"), (2, 3)) * (full(0.7, np.dtype("f8"), (2, 3)) * X),
    twos(2, 3) * (full(1e-310, np.dtype("f8"), (2, 3)) * X),
    e.sqrt(Z * Z),
    e.log(e.exp(Z)),
    E_X ** full(0.3, np.dtype("f8"), (2, 3)),  # its product with x is rounded
    e.absolute(-given("g", 2, 3, dtype="uint8")),
    X - expand(tensor.logsumexp(Y, axes=(1,)), (1,), 3),
    X - expand(tensor.logsumexp(tensor.transpose(CUBE, perm=(0, 2, 1)), axes=(1, 2)), (1,), 3),
    E_X / expand(total(e.exp(Y), 1), (1,), 3),
    given("a", 3, 3) - expand(tensor.logsumexp(given("a", 3, 3), axes=(0,)), (1,), 3),
    e.exp(given("a", 3, 3)) / expand(total(e.exp(given("a", 3, 3)), 0), (1,), 3),
    transpose(X, 1, 0) + expand(ROW, (1,), 2),
    e.exp(windows(X, (1,), (1,), (2,), (1,))),
    windows(X, (0,), (2,), (1,), (1,)) + given("a", 2, 1, 3),
    windows(CUBE, (2,), (2,), (2,), (1,)) + windows(given("q", 2, 3, 5), (2,), (2,), (2,), (1,)),
    embed(X, (2, 9), (0, 1), (1, 1)) + embed(Y, (2, 9), (0, 3), (1, 1)),
    embed(X, (2, 9), (0, 1), (1, 1)) + embed(Y, (2, 9), (0, 5), (1, 1)),
    embed(X, (2, 9), (0, 1), (1, 1)) + embed(Y, (2, 9), (0, 4), (1, 2)),
    embed(given("a", 1, 2), (4, 4), (0, 0), (1, 1))
    + embed(given("b", 1, 2), (4, 4), (1, 2), (1, 1)),
    tensor.concat(tensor.concat(X, Y, axis=0), given("d", 4, 3), axis=1),
    cut(overwrite(X, given("a", 2, 2), (0, 1), (1, 1)), (0, 0), (2, 2), (1, 1)),
    overwrite(overwrite(X, given("a", 2, 2), (0, 0), (1, 1)), given("b", 2, 1), (0, 0), (1, 1)),
    total(INT * INT, 0),
    einsum(X, M, operands=((0, 1), (1, 2)), result=(0, 2)),
]
"""Near misses: no rule may fire at the top of these."""
