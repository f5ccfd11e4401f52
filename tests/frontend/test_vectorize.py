"""`vectorize`, `jacobian`, `hessian` and `hvp`: programs on more dims, and whole derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.node import toposort
from tests.operations import CASES, control, derivatives
from tests.operations.case import DEFAULT
from tests.ops.test_ops import declare, draw
from tests.reference import close

exactly = np.testing.assert_array_equal
# The rest of the table is slow.
SAMPLE = [*control.CASES, *derivatives.CASES, "softmax", "cumprod", "quantile", "take", "sort"]


@pytest.mark.parametrize(
    "name",
    [
        name if name in SAMPLE else pytest.param(name, marks=pytest.mark.slow)
        for name, case in CASES.items()
        if case.batch or name in SAMPLE
    ],
)
def test_every_function_on_more_dims_is_a_loop(name: str) -> None:
    """Value, pullback and pushforward of the stack are the stack of those of its places."""
    case = CASES[name]
    xs = declare(case)
    y = case.ours(*xs)
    given = [x.values for x in draw(case, DEFAULT, seed=2)]
    for i, x in enumerate(xs):
        outputs = [y]
        if y.dtype.kind == x.dtype.kind == "f":
            outputs.append(gc.pullback(y, x, gc.cos(y), disconnected="zero"))
            outputs.append(gc.pushforward(y, x, gc.sin(x), disconnected="zero"))
        wide = gc.tensor(x.name, {"extra": 2} | x.sizes, dtype=x.dtype)
        whole = gc.vectorize(outputs, {x: wide})
        stacked = np.stack([given[i], np.roll(given[i], 1)])
        found = gc.compile([*xs[:i], wide, *xs[i + 1 :]], whole)(
            *given[:i], stacked, *given[i + 1 :]
        )
        alone = gc.compile(xs, outputs)
        for place in range(2):
            wanted = alone(*given[:i], stacked[place], *given[i + 1 :])
            for old, new, values, want in zip(outputs, whole, found, wanted, strict=True):
                close(at_place(values, new.dims, old.dims, place), want)


def at_place(
    values: np.ndarray, have: tuple[str, ...], want: tuple[str, ...], place: int
) -> np.ndarray:
    """One place of the new dim, if there is one, with its dims in the order wanted."""
    if "extra" in have:
        values = np.moveaxis(values, have.index("extra"), 0)[place]
    order = [dim for dim in have if dim != "extra"]
    return values.transpose([order.index(dim) for dim in want])


def test_several_inputs_at_once_and_inner_tensors() -> None:
    x, w = gc.tensor("x", {"row": 3}), gc.tensor("w", {"row": 3})
    xs = gc.tensor("x", {"batch": None, "row": 3})
    ws = gc.tensor("w", {"row": 3, "batch": None})
    loss = (x * w).sum() ** 2
    both = gc.vectorize({"loss": loss, "dw": gc.grad(loss, w)}, {x: xs, w: ws})
    values = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2) - 2
    found = gc.compile([xs, ws], both)(*values)
    inner = (values[0] * values[1].T).sum(1)
    exactly(found["loss"], inner**2)
    dims = both["dw"].dims
    exactly(found["dw"].transpose([dims.index(d) for d in ("batch", "row")]),
            2 * inner[:, None] * values[0])  # fmt: skip
    h = gc.exp(x)
    many = gc.tensor("h", {"k": 2, "row": 3})
    replaced = gc.vectorize((h * w).sum(), {h: many})
    exactly(gc.compile([many, w], replaced)(np.ones((2, 3)), np.arange(3.0)), [3.0, 3.0])


def test_what_does_not_change_is_the_same_node() -> None:
    x, w = gc.tensor("x", {"row": 3}), gc.tensor("w", {"row": 3})
    y, z = gc.sin(x), gc.sin(w)
    wide = gc.tensor("x", {"batch": 2, "row": 3})
    assert gc.vectorize(z, {x: wide}) is z
    assert gc.vectorize(y, {x: wide}) is gc.sin(wide)


# ---- whole derivatives


def numeric(f: Callable[..., np.ndarray], values: list[np.ndarray], i: int) -> np.ndarray:
    """df / d(values[i]) by central differences, the axes of f first."""
    columns = []
    for place in np.ndindex(values[i].shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = values[i].copy()
            moved[place] += step
            ends.append(np.asarray(f(*values[:i], moved, *values[i + 1 :])))
        columns.append((ends[0] - ends[1]) / 2e-6)
    return np.stack(columns, -1).reshape(*columns[0].shape, *values[i].shape)


@pytest.mark.parametrize("known", [True, False])
def test_jacobian_of_trees(known: bool) -> None:
    size = {"row": 3} if known else {"row": None}
    x, w = gc.tensor("x", {**size, "col": 2}), gc.tensor("w", {"col": 2})
    y = {"a": gc.sin(x * w).sum("col"), "b": [gc.exp(w) * x.mean(), (w * w).sum()]}
    jac = gc.jacobian(y, {"x": x, "w": (w,)})
    assert jac["a"]["x"].dims == ("row", "row'", "col")
    assert jac["b"][0]["w"][0].dims == ("col", "col'")
    assert jac["b"][1]["w"][0].dims == ("col",)
    values = [np.random.default_rng(0).normal(size=(3, 2)), np.array([0.3, -0.8])]
    found = gc.compile([x, w], [jac, gc.jacobian(y["b"][1], w)])(*values)
    for part, tensor in (("a", y["a"]), (0, y["b"][0])):
        own = found[0][part] if part == "a" else found[0]["b"][part]
        f = gc.compile([x, w], tensor)
        close(own["x"], numeric(f, values, 0), rtol=1e-8)
        close(own["w"][0], numeric(f, values, 1), rtol=1e-8)
    exactly(found[1], 2 * values[1])


def lazy_ops(y: gc.Tensor) -> set[str]:
    """The lazy derivatives in a graph."""
    return {node.op.name for node in toposort([y.node])} & {"pullback", "pushforward"}


def test_the_mode_is_chosen_by_size() -> None:
    small, large = gc.tensor("s", {"row": 2}), gc.tensor("l", {"col": 5})
    wide = gc.sin(small.sum() * gc.exp(large))
    tall = gc.sin(small * large.sum())
    assert lazy_ops(gc.jacobian(wide, small)) == {"pushforward"}
    assert lazy_ops(gc.jacobian(tall, large)) == {"pullback"}
    n = gc.tensor("n", {"row": None})
    assert lazy_ops(gc.jacobian(n * n.sum(), n)) == {"pullback"}
    values = np.array([0.2, -0.4]), np.linspace(-1, 1, 5)
    for y, x, i in ((wide, small, 0), (tall, large, 1)):
        f = gc.compile([small, large], y)
        found = gc.compile([small, large], gc.jacobian(y, x))(*values)
        close(found, numeric(f, list(values), i), rtol=1e-8)


def test_a_size_known_only_at_the_call_counts_as_a_large_one_in_the_choice_of_the_mode() -> None:
    """It was reverse, one pullback for each of 2,000 rows: 46 ms instead of 0.3."""
    x, w = gc.tensor("x", {"row": None, "col": 5}), gc.tensor("w", {"col": 5})
    y = gc.tanh(gc.dot(x, w, dim="col"))
    assert lazy_ops(gc.jacobian(y, w)) == {"pushforward"}
    assert (
        lazy_ops(gc.jacobian(y.sum(), x)) == lazy_ops(gc.jacobian(w * x.mean(), x)) == {"pullback"}
    )
    assert lazy_ops(gc.jacobian(y, x)) == {"pullback"}
    a, b = gc.tensor("a", {"i": None}), gc.tensor("b", {"j": None})
    assert lazy_ops(gc.jacobian(a * b.sum(), b)) == {"pullback"}
    assert lazy_ops(gc.jacobian(a * b * b, b)) == {"pushforward"}
    values = [np.random.default_rng(0).normal(size=(7, 5)), np.linspace(-1, 1, 5)]
    modes = [None, "forward", "reverse"]
    found = gc.compile([x, w], [gc.jacobian(y, [w, x], mode=mode) for mode in modes])(*values)
    f = gc.compile([x, w], y)
    for by_w, by_x in found:
        close(by_w, numeric(f, values, 1), rtol=1e-8)
        close(by_x, numeric(f, values, 0), rtol=1e-8)
    for mode, op in (("forward", "pushforward"), ("reverse", "pullback")):
        assert lazy_ops(gc.jacobian(y.sum(), w, mode=mode)) == {op}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
def test_blocks_of_a_jacobian_of_instances(mode: str | None, known: bool) -> None:
    b, c = (4, 3) if known else (None, None)
    x, w, v = gc.tensor("x", {"b": b, "c": c}), gc.tensor("w", {"c": c, "d": 2}), gc.tensor("v", {})
    values = [np.random.default_rng(0).normal(size=shape) for shape in ((4, 3), (3, 2), ())]

    def both(
        y: gc.Tensor, wrt: list[gc.Tensor], per: object
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The blocks and the whole Jacobian by each."""
        blocks, whole = gc.jacobian(y, wrt, per=per, mode=mode), gc.jacobian(y, wrt)
        return list(zip(*gc.compile([x, w, v], [blocks, whole])(*values), strict=True))

    (by_x, whole), *rest = both(gc.tanh(gc.dot(gc.sin(x), w, dim="c")) * v, [x, w, v], "b")
    close(by_x, np.einsum("bdbc->bdc", whole))
    for block, same in rest:  # what all instances share has a place in each row as it is
        close(block, same)
    ((each, whole),) = both(gc.exp(x), [x], ...)
    close(each, np.einsum("bcbc->bc", whole))
    inner = gc.sin(x)
    for block, whole in both(gc.exp(inner) * inner.mean("c"), [inner, x], "b"):
        close(block, np.einsum("bcbd->bcd", whole))
    _, steps = gc.scan(lambda s, e: (gc.tanh(s + e * v), s * e), 0.3, x, dim="c")
    (by_x, whole), (by_v, same) = both(steps, [x, v], "b")
    close(by_x, np.einsum("cbbe->cbe", whole))
    close(by_v, same)


@pytest.mark.parametrize("known", [True, False])
def test_hessian_and_hvp(known: bool) -> None:
    x = gc.tensor("x", {"row": 3 if known else None})
    w = gc.tensor("w", {"row": 3 if known else None, "col": 2})
    y = (gc.sin(x) * w**2).sum() + gc.exp(w.prod("row")).sum() * x.prod()
    hessian = gc.hessian(y, {"x": x, "w": w})
    v, u = gc.tensor("v", x.sizes), gc.tensor("u", w.sizes)
    along = gc.hvp(y, {"x": x, "w": w}, {"x": v, "w": u})
    random = np.random.default_rng(1)
    values = [random.normal(size=3), random.normal(size=(3, 2))]
    moves = [random.normal(size=3), random.normal(size=(3, 2))]
    whole = gc.compile([x, w], hessian)(*values)
    found = gc.compile([x, w, v, u], along)(*values, *moves)
    first = gc.compile([x, w], gc.grad(y, [x, w]))
    for i, one in enumerate("xw"):
        for j, other in enumerate("xw"):
            f = lambda *at, i=i: first(*at)[i]
            close(whole[one][other], numeric(f, values, j), rtol=1e-7)
        product = sum(
            np.tensordot(whole[one][other], move, move.ndim)
            for other, move in zip("xw", moves, strict=True)
        )
        close(found[one], product)


def test_whole_derivatives_of_loops() -> None:
    x, w = gc.tensor("x", {"time": None}), gc.tensor("w", {"row": 2})
    last, ys = gc.scan(lambda c, x: (gc.tanh(c * w.sum() + x * w), c.sum()), w, x)
    n = gc.while_loop(lambda c: (c * c).sum() > 0.1, lambda c: c * gc.sin(w), last)
    outputs = {"last": last, "ys": ys, "n": n}
    jac = gc.jacobian(outputs, [x, w])
    values = [np.array([0.3, -0.5, 0.9]), np.array([0.8, -0.6])]
    found = gc.compile([x, w], jac)(*values)
    for name, y in outputs.items():
        f = gc.compile([x, w], y)
        for i in range(2):
            close(found[name][i], numeric(f, values, i), rtol=1e-7)
    total = (last * last).sum() + gc.sin(n).sum()
    hessian = gc.compile([x, w], gc.hessian(total, [x, w]))(*values)
    first = gc.compile([x, w], gc.grad(total, [x, w]))
    for i in range(2):
        for j in range(2):
            f = lambda *at, i=i: first(*at)[i]
            close(hessian[i][j], numeric(f, values, j), rtol=1e-6)


def test_a_jacobian_may_be_differentiated() -> None:
    x = gc.tensor("x", {"row": 3})
    jac = gc.jacobian(x * x.sum(), x)
    third = gc.jacobian(gc.hessian((x**3).sum() * x.sum(), x), x)
    assert third.dims == ("row", "row'", "row''")
    values = [np.array([1.0, 2.0, -1.0])]
    close(
        gc.compile([x], gc.grad((jac * jac).sum(), x))(*values),
        numeric(gc.compile([x], (jac * jac).sum()), values, 0),
        rtol=1e-7,
    )
    second = gc.compile([x], gc.hessian((x**3).sum() * x.sum(), x))
    close(gc.compile([x], third)(*values), numeric(second, values, 0), rtol=1e-7)


def test_what_a_derivative_is_by_stays_apart() -> None:
    """Two inputs, or an input and what is captured, in whose place the same tensor comes."""
    a, b, x = (gc.tensor(name, {"row": 2}) for name in "abx")
    values = np.array([2.0, 3.0])

    def at(y: gc.Tensor, *olds: gc.Tensor) -> np.ndarray:
        return gc.compile([x], gc.vectorize(y, dict.fromkeys(olds, x)))(values)

    def slope(y: gc.Tensor, wrt: gc.Tensor) -> gc.Tensor:
        return gc.grad(y.sum(), wrt)

    np.testing.assert_allclose(at(slope(a * b**2, a), a, b), values**2)
    np.testing.assert_allclose(at(slope(a * x**2, a), a), values**2)
    np.testing.assert_allclose(at(slope(a * x**2, x), a), 2 * values**2)
    np.testing.assert_allclose(at(slope(slope(a * b * x**2, a) * b, b), a, b), 2 * values**3)
    both = gc.grad((a * b**2).sum(), [a, b])
    np.testing.assert_allclose(at(both[0] + 10 * both[1], a, b), 21 * values**2)
    tangent = gc.pushforward(a * b**2, a, gc.ones_like(a))
    np.testing.assert_allclose(at(tangent, a, b), values**2)
    inner = a * 2
    chain = gc.grad((inner**2 * a).sum(), [inner, a])
    np.testing.assert_allclose(at(chain[0] + 100 * chain[1], a), 1204 * values**2)


def test_new_dims_come_first_in_the_order_in_which_they_are_brought() -> None:
    x, w = gc.tensor("x", {"i": 3}), gc.tensor("w", {"k": 2})
    wide = gc.tensor("X", {"a": 4, "i": 3, "b": 5})
    other = gc.tensor("W", {"c": 6, "k": 2, "a": 4})
    outputs = [x.sum() * w, w * x, gc.grad((w * x).sum() ** 2, x), x, w]
    made = gc.vectorize(outputs, {x: wide, w: other})
    assert [y.dims for y in made] == [
        *[("a", "b", "c", "k"), ("a", "b", "c", "k", "i"), ("a", "b", "c", "i")],
        *[("a", "b", "i"), ("a", "c", "k")],
    ]
    turned = gc.vectorize(outputs, {w: other, x: wide})
    assert turned[1].dims == ("c", "a", "b", "k", "i")


def test_an_index_that_gets_dims_counts_from_no_end():
    """A negative index is refused, as it is without the new dim."""
    index, many = (gc.tensor("index", dims, dtype="int64") for dims in ({}, {"batch": None}))
    x = gc.tensor("x", {"row": 3})
    y = gc.vectorize(gc.switch(index, [lambda x: x, gc.exp], x), {index: many})
    f = gc.compile([many, x], y)
    np.testing.assert_array_equal(f([1, 0], np.zeros(3)), [[1, 1, 1], [0, 0, 0]])
    with pytest.raises(gc.GraphIndexError, match=r"switch .* position -1 is outside dim 'branch'"):
        f([0, -1], np.zeros(3))
