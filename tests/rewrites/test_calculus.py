"""The derivative entry of every plain op, by itself: both modes, and the second order of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphcore.ir.graph import Graph
from graphcore.ir.literal import Literal
from graphcore.ir.node import Node, full_like
from graphcore.ir.sizes import evaluate, unknown
from graphcore.ops import autodiff, leaf, special, tensor
from graphcore.ops import elementwise as e
from graphcore.rewrites.algebra import algebra
from graphcore.rewrites.derivatives import PARTIALS, TRANSPOSE, VJP
from graphcore.rewrites.engine import simplify
from graphcore.rewrites.expand import expand_derivatives
from graphcore.rewrites.motion import motion
from tests import interpreter, reference

N = unknown("n")


def given(name: str, *shape: Any, dtype: str = "f8") -> Node:
    return leaf.input_(name=name, dtype=np.dtype(dtype), shape=shape, dims=None)


X, Y, V = given("x", 2, N), given("y", 2, N), given("v", N)
CUBE, M, B = given("q", 2, N, 4), given("m", N, 4), given("b", 2, 4, 5)
AT, J = given("i", 5, dtype="i8"), given("j", 5, dtype="i8")
FLAG = given("f", 2, N, dtype="?")

TENSOR: dict[str, Node] = {
    "expand": tensor.expand(V, axes=(0, 2), sizes=(2, 4)),
    "reshape": tensor.reshape(X, shape=(N * 2,)),
    "pack": tensor.pack(X, shape=(N * 2,)),
    "transpose": tensor.transpose(CUBE, perm=(2, 0, 1)),
    "slice": tensor.slice_(CUBE, starts=(1, 0, 3), sizes=(2, N, 2), steps=(-1, 1, -2)),
    "embed": tensor.embed(X, shape=(5, N + 1), starts=(4, 1), steps=(-3, 1)),
    "windows": tensor.windows(CUBE, axes=(2,), sizes=(2,), strides=(1,), dilations=(2,)),
    "windows of several": tensor.windows(
        CUBE, axes=(0, 1), sizes=(2, 2), strides=(1, 2), dilations=(1, 1)
    ),
    "overlap_add": tensor.overlap_add(
        given("w", 4, N), axes=(0,), sizes=(N + 3,), strides=(1,), dilations=(1,)
    ),
    "overlap_add of several": tensor.overlap_add(
        given("w", 3, 2, 2, 2, N), axes=(1, 2), sizes=(5, N + 1), strides=(3, 1), dilations=(1, 1)
    ),
    "concat": tensor.concat(X, Y, X, axis=1),
    "multiply_no_nan": tensor.multiply_no_nan(X, Y),
    "where_greater": tensor.where_greater(X, Y, X * Y),
    "where_greater ties": tensor.where_greater(X, Y, Y),
    "sum": tensor.sum_(CUBE, axes=(0, 2)),
    "prod": tensor.prod(CUBE, axis=1),
    "max": tensor.max_(CUBE, axes=(0, 2)),
    "min": tensor.min_(CUBE, axes=(1,)),
    "max initial": tensor.max_(CUBE, axes=(2,), initial=Literal(0.5)),
    "norm": tensor.norm(CUBE, axes=(0, 2)),
    "logsumexp": tensor.logsumexp(CUBE, axes=(1, 2)),
    "softmax": tensor.softmax(CUBE, axes=(0, 1)),
    "log_softmax": tensor.log_softmax(CUBE, axes=(0, 1)),
    "cumsum": tensor.cumsum(CUBE, axis=1),
    "print": tensor.print_(CUBE, label="", number=0, dims=("i", "j", "k")),
    "fft": tensor.fft(
        e.cast(CUBE, dtype=np.dtype("c16")) * given("z", 2, N, 4, dtype="c16"),
        axis=1,
        inverse=False,
    ),
    "fft inverse": tensor.fft(given("z", 2, N, 4, dtype="c16"), axis=0, inverse=True),
    "rfft even": tensor.rfft(CUBE, axis=2),
    "rfft odd": tensor.rfft(X, axis=1),
    "irfft even": tensor.irfft(given("z", 2, 3, dtype="c16"), axis=1, size=4),
    "irfft odd": tensor.irfft(given("z", 3, 2, dtype="c16"), axis=0, size=5),
    "cumprod": tensor.cumprod(CUBE, axis=2),
    "cummax": tensor.cummax(CUBE, axis=1),
    "cummin": tensor.cummin(CUBE, axis=0),
    "logcumsumexp": tensor.logcumsumexp(CUBE, axis=1),
    "sort": tensor.sort(CUBE, axis=2),
    "recurrence": tensor.recurrence(X, Y, axis=1),
    "recurrence of one": tensor.recurrence(CUBE, CUBE, axis=0),
    "einsum": tensor.einsum(X, M, V, operands=((0, 1), (1, 2), (1,)), result=(2, 0)),
    "einsum alone": tensor.einsum(X, V, operands=((0, 1), (2,)), result=(0,)),
    "einsum squared": tensor.einsum(X, X, operands=((0, 1), (2, 1)), result=(2, 0)),
    "matmul": tensor.matmul(X, M),
    "matmul batched": tensor.matmul(CUBE, B),
    "matvec": tensor.matvec(X, V),
    "matvec batched": tensor.matvec(CUBE, given("u", 2, 4)),
    "vecdot": tensor.vecdot(X, Y),
    "vecdot of one": tensor.vecdot(X, X),
    "gather": tensor.gather(CUBE, AT, axes=(2,)),
    "gather two": tensor.gather(CUBE, AT, J, axes=(2, 0)),
    "scatter": tensor.scatter(given("u", 5, N), AT, axes=(1,), shape=(N, 4)),
    "scatter_prod": tensor.scatter_prod(given("u", 5, N), AT, axes=(1,), shape=(N, 4)),
    "scatter_add": tensor.scatter_add(M, given("u", 5, N), AT, axes=(1,)),
    "scatter_max": tensor.scatter_max(M, given("u", 5, N), AT, axes=(1,)),
    "scatter_min": tensor.scatter_min(CUBE, given("u", 5, N), AT, J, axes=(2, 0)),
    "put": tensor.put(M, given("u", 5, N), AT, axes=(1,)),
    "put two": tensor.put(CUBE, given("u", 5, N), AT, J, axes=(2, 0)),
    "overwrite": tensor.overwrite(CUBE, given("u", 2, N, 2), starts=(1, 0, 3), steps=(-1, 1, -2)),
    "scatter two": tensor.scatter(given("u", 5, N), AT, J, axes=(2, 0), shape=(2, N, 4)),
}
ELEMENTWISE: dict[str, Node] = {
    "add": X + Y,
    "zeta": special.zeta(full_like(X, 3), e.square(X) + 1),
    "multiply by itself": X * X,
    "where": e.where(FLAG, X, Y),
    "cast": e.cast(X, dtype=np.dtype("c16")),
    "real": e.real(e.cast(X, dtype=np.dtype("c16")) * given("z", 2, N, dtype="c16")),
    "imag": e.imag(e.cast(X, dtype=np.dtype("c16")) * given("z", 2, N, dtype="c16")),
    "conjugate": e.conjugate(given("z", 2, N, dtype="c16")),
    "int operand": X * e.cast(FLAG, dtype=np.dtype("f8")),
    "barrier": autodiff.barrier(X) * X,
}
CASES = TENSOR | ELEMENTWISE


def test_every_tensor_rule_is_tested() -> None:
    tested = {node.op for node in TENSOR.values()}
    rules = {op for op in (*PARTIALS, *TRANSPOSE, *VJP) if op.dialect == "tensor"}
    assert rules - tested == set()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [3, 1])
def test_entry(name: str, n: int) -> None:
    """<ct, J v> == <v, Jᵀ ct>, differences, and the same for the pullback's own derivatives."""
    y = CASES[name]
    sizes = {"n": n}
    inputs = [node for node in Graph((), (y,)).nodes() if node.op is leaf.input_]
    random = np.random.default_rng(7)

    def draw(x: Node) -> np.ndarray:
        shape = [evaluate(s, sizes) for s in x.type.shape]
        match x.type.dtype.kind:
            case "i":
                return random.integers(0, 2 if x is J else 4, size=shape)
            case "b":
                return random.integers(0, 2, size=shape).astype(bool)
            case "c":
                return random.normal(size=shape) + 1j * random.normal(size=shape)
        return np.asarray(random.normal(size=shape))

    values = {x.attrs["name"]: draw(x) for x in inputs}
    xs = [x for x in inputs if x.type.dtype.kind in "fc"]

    def partner(prefix: str, like: Node) -> Node:
        made = leaf.input_(
            name=f"{prefix} {like.attrs.get('name')}", dtype=like.type.dtype,
            shape=like.type.shape, dims=None,
        )  # fmt: skip
        values[made.attrs["name"]] = draw(made)
        return made

    ct, vs, ws = partner("ct", y), [partner("v", x) for x in xs], [partner("w", x) for x in xs]
    k = len(xs)

    def pull(y: Node, ct: Node) -> list[Node]:
        several = autodiff.pullback(y, *xs, ct, ys=1, wrt=k)
        return [several[i] for i in range(k)]

    def push(*ys: Node) -> list[Node]:
        several = autodiff.pushforward(*ys, *xs, *vs, ys=len(ys), wrt=k)
        return [several[i] for i in range(len(ys))]

    back, (forth,) = pull(y, ct), push(y)
    twice = autodiff.pullback(*back, *xs, *ws, ys=k, wrt=k)
    graph = Graph(
        (*inputs, ct, *vs, *ws), (y, forth, *back, *push(*back), *[twice[i] for i in range(k)])
    )
    expanded = expand_derivatives(graph)
    tidied = simplify(expanded, algebra | motion)
    first = Graph(expanded.params, expanded.outputs[: 2 + k])

    def along(t: float) -> list[np.ndarray]:
        moved = {x.attrs["name"]: values[x.attrs["name"]] + t * values[v.attrs["name"]]
                 for x, v in zip(xs, vs, strict=True)}  # fmt: skip
        return interpreter.run(first, values | moved, sizes)

    def reliable(settled: bool) -> None:
        assert settled

    slopes = reference.differences(along, reliable)
    c, v, w = ([values[t.attrs["name"]] for t in some] for some in ([ct], vs, ws))
    for stage in (expanded, tidied):
        _, jv, *rest = interpreter.run(stage, values, sizes)
        b, hv, gg = rest[:k], rest[k : 2 * k], rest[2 * k :]
        for derivative, slope in zip([jv, *hv], [slopes[0], *slopes[2:]], strict=True):
            reference.close(derivative, slope, rtol=1e-6)
        assert reference.inner(c, [jv]) == pytest.approx(reference.inner(b, v), abs=1e-9)
        assert reference.inner(w, hv) == pytest.approx(reference.inner(gg, v), abs=1e-9)
