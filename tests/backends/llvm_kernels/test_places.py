"""What stands at a place: every view, and every op that computes a place from others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graphcore.ir.literal import Literal
from graphcore.ir.node import Node
from graphcore.ops import elementwise as e
from graphcore.ops import leaf
from graphcore.ops import tensor as t

from .native import SIZES, Both, M, N, given, needs_machine_code, slowly, some

pytestmark = needs_machine_code

Make = Callable[[Node], Node]


def ranges(x: Node, *parts: tuple[object, object, int]) -> Node:
    starts, sizes, steps = zip(*parts, strict=True)
    return t.slice_(x, starts=starts, sizes=sizes, steps=steps)


def inserted(x: Node, *parts: tuple[object, object, int]) -> Node:
    shape, starts, steps = zip(*parts, strict=True)
    return t.embed(x, shape=shape, starts=starts, steps=steps)


ROWS: dict[str, Make] = {
    "itself": lambda x: x,
    "expanded before": lambda x: t.expand(x, axes=(0,), sizes=(M,)),
    "expanded after": lambda x: t.expand(x, axes=(1,), sizes=(M,)),
    "expanded by three": lambda x: t.expand(x, axes=(1,), sizes=(3,)),
    "expanded twice": lambda x: t.expand(x, axes=(0, 2), sizes=(2, M)),
    "reshaped to a column": lambda x: t.reshape(x, shape=(N, 1)),
    "packed": lambda x: t.pack(t.expand(x, axes=(1,), sizes=(4,)), shape=(4 * N,)),
    "split": lambda x: t.reshape(t.concat(x, x, axis=0), shape=(2, N)),
    "split the other way": lambda x: t.reshape(t.concat(x, x, axis=0), shape=(N, 2)),
    "merged": lambda x: t.reshape(t.expand(x, axes=(1,), sizes=(M,)), shape=(N * M,)),
    "every second": lambda x: ranges(x, (0, (N + 1) // 2, 2)),
    "backwards": lambda x: ranges(x, (N - 1, N, -1)),
    "padded": lambda x: inserted(x, (N + 5, 2, 1)),
    "spread": lambda x: inserted(x, (3 * N + 1, 1, 3)),
    "spread backwards": lambda x: inserted(x, (N + 2, N, -1)),
    "joined": lambda x: t.concat(x, e.negative(x), x, axis=0),
    "joined, twice the same": lambda x: t.concat(*[x, leaf_row(3)] * 2, axis=0),
    "joined in columns": lambda x: t.concat(*[t.reshape(x, shape=(N, 1))] * 3, axis=1),
    "overwritten": lambda x: t.overwrite(
        t.concat(x, x, axis=0), e.negative(x), starts=(N // 2,), steps=(1,)
    ),
    "overwritten at every second": lambda x: t.overwrite(
        t.concat(x, x, axis=0), e.negative(x), starts=(0,), steps=(2,)
    ),
    "windows": lambda x: t.windows(
        inserted(x, (N + 6, 3, 1)), axes=(0,), sizes=(3,), strides=(3,), dilations=(2,)
    ),
    "windows added": lambda x: t.overlap_add(
        t.expand(x, axes=(0,), sizes=(3,)), axes=(0,), sizes=(N + 2,), strides=(1,), dilations=(1,)
    ),
    "windows added with gaps": lambda x: t.overlap_add(
        t.expand(x, axes=(0,), sizes=(2,)),
        axes=(0,),
        sizes=(2 * N + 3,),
        strides=(2,),
        dilations=(3,),
    ),
}


def leaf_row(n: int) -> Node:
    return leaf.full(value=Literal(2.5), shape=(n,), dims=None)


@pytest.mark.parametrize("dtype", ["float64", *slowly("float32", "int64"), "bool", "complex128"])
@pytest.mark.parametrize("name", ROWS)
def test_views_of_a_row(name: str, dtype: str) -> None:
    if dtype != "float64" and ("twice the same" in name or (dtype == "bool" and "added" in name)):
        return
    if dtype == "bool" and any(word in name for word in ("joined", "overwritten")):
        return
    rng = np.random.default_rng(0)
    x = given("x", N, dtype=dtype)
    both = Both([ROWS[name](x)])
    for n in SIZES:
        if name == "windows added with gaps" and n == 0:
            continue
        for m in (0, 3, 9):
            both.agree([some(rng, (n,), dtype)], (n, m))


TABLES: dict[str, Make] = {
    "transposed": lambda x: t.transpose(x, perm=(1, 0)),
    "transposed and changed": lambda x: e.negative(t.transpose(x, perm=(1, 0))),
    "transposed, twice read": lambda x: e.add(
        t.transpose(x, perm=(1, 0)), t.expand(t.sum_(x, axes=(1,)), axes=(0,), sizes=(M,))
    ),
    "a column": lambda x: t.reshape(ranges(x, (0, N, 1), (M // 2, t_one(), 1)), shape=(N,)),
    "columns backwards": lambda x: ranges(x, (0, N, 1), (M - 1, M, -1)),
    "padded": lambda x: inserted(x, (N + 1, 1, 1), (M + 3, 2, 1)),
    "differences": lambda x: e.subtract(
        ranges(inserted(x, (N + 1, 0, 1), (M, 0, 1)), (1, N, 1), (0, M, 1)), x
    ),
    "merged": lambda x: t.reshape(x, shape=(N * M,)),
    "merged and transposed": lambda x: t.pack(t.transpose(x, perm=(1, 0)), shape=(N * M,)),
}


def t_one() -> int:
    return 1


@pytest.mark.parametrize("name", TABLES)
def test_views_of_a_table(name: str) -> None:
    rng = np.random.default_rng(1)
    both = Both([TABLES[name](given("x", N, M))])
    for n in (0, 1, 7, 9, 17):
        for m in (0, 1, 3, 8, 33):
            if name == "a column" and m == 0:
                continue
            both.agree([some(rng, (n, m))], (n, m), 4.0)


@pytest.mark.parametrize("dtype", ["int64", *slowly("int32", "uint64"), "uint8"])
def test_gather(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, i = given("x", N, M), given("i", N, dtype=dtype)
    both = Both(
        [
            t.gather(x, i, axes=(0,)),
            t.gather(x, i, axes=(1,)),
            t.gather(x, i, i, axes=(0, 1)),
            t.gather(ranges(x, (0, 1, 1), (0, M, 1)), e.subtract(i, i), axes=(0,)),
        ]
    )
    for n in SIZES[1:]:
        m = n + 3
        least = 0 if dtype[0] == "u" else -n
        positions = rng.integers(least, min(n, 100), n).astype(dtype)
        both.agree([positions, some(rng, (n, m))], (n, m))


def test_leaves() -> None:
    dtypes = [np.dtype(d) for d in ("int64", "float64", "int32", "float32", "complex128")]
    ranges_ = [leaf.iota(size=N, dtype=dtype, dims=None) for dtype in dtypes]
    sizes = [leaf.extent(size=(N - 7) // 2 + M % 3, dtype=dtype, dims=None) for dtype in dtypes]
    whole = leaf.full(value=Literal(np.nan), shape=(N, 3), dims=None)
    table = leaf.constant(value=Literal(np.arange(40.0).reshape(2, 20)), dims=None)
    short = leaf.constant(value=Literal(np.arange(3, dtype=np.int8)), dims=None)
    truth = leaf.constant(value=Literal(np.array(True)), dims=None)
    both = Both([*ranges_, *sizes, whole, table, short, truth])
    for n in SIZES:
        both.agree([], (n, 4))


def test_sizes_are_floored() -> None:
    sizes = [(N - 9) // 4, (N - 9) % 4, N // (M + 1), (N - 20) // (M + 1), (3 - N) % (M + 2)]
    both = Both([leaf.extent(size=size, dtype=np.dtype("int64"), dims=None) for size in sizes])
    for n in range(0, 30):
        for m in (0, 1, 4):
            both.agree([], (n, m))


def test_what_is_read_before_an_empty_loop_lies_in_no_buffer() -> None:
    x, y = given("x", M), given("y", N, N)
    first = t.reshape(ranges(x, (5, 1, 1)), shape=())
    both = Both([e.add(t.expand(first, axes=(0, 1), sizes=(N, N)), y), e.exp(first)])
    for n, m in ((0, 6), (9, 6)):
        both.agree([np.arange(float(m)), np.ones((n, n))], (n, m), 4.0)


def test_a_product_is_rounded_before_it_is_added() -> None:
    """0.1 * 10 - 1 is 0, and no part of a step more: the position of a quantile."""
    x, y = given("x", N), given("y", N)
    one = leaf.full(value=Literal(1.0), shape=(N,), dims=None)
    made = [e.subtract(e.multiply(x, y), one), e.add(one, e.multiply(x, e.negative(y)))]
    arrays = [np.full(9, 0.1), np.full(9, 10.0)]
    for found in Both([*made, *map(e.ceil, made)]).agree(arrays, (9, 0)):
        np.testing.assert_array_equal(found, 0)
