"""Axes as they lie: the order in which operands are written does not decide the order of loops."""

import numpy as np
import pytest

import graphcore as gc
from graphcore.ops import tensor

SIZES = {"row": 3, "col": 5, "depth": 4}


def strided(f, stage="optimized"):
    """How many transposes of values with all dims there are in a stage, in bodies as well."""
    nodes = f.stages[stage].every_node()
    return sum(x.op is tensor.transpose and x.type.ndim == len(SIZES) for x in nodes)


def aligned(value, dims):
    """A value in the order of `SIZES`, with axes of one place for the dims that it lacks."""
    own = [dim for dim in SIZES if dim in dims]
    places = [SIZES[dim] if dim in dims else 1 for dim in SIZES]
    return value.transpose([dims.index(dim) for dim in own]).reshape(places)


def random_program(seed, same_order):
    """Large and small operands in random turns: inputs, the result, values, and its value."""
    rng = np.random.default_rng(seed)
    order = tuple(map(str, rng.permutation([*SIZES])))
    inputs, values = [], []
    for i in range(5):
        dims = order if same_order or i % 2 else tuple(map(str, rng.permutation(order)))
        dims = dims if i < 3 else tuple(dim for dim in dims if rng.random() < 0.6)
        inputs.append(gc.tensor(f"x{i}", dims))
        values.append(rng.normal(size=[SIZES[dim] for dim in dims]))
    pairs = [(x, aligned(value, x.dims)) for x, value in zip(inputs, values, strict=True)]
    result = pairs[4]
    for i in [*rng.permutation(5), *rng.permutation(5)]:
        name = rng.choice(["multiply", "add", "subtract"])
        x, y = (pairs[i], result) if rng.random() < 0.7 else (result, pairs[i])
        result = getattr(gc, name)(x[0], y[0]), getattr(np, name)(x[1], y[1])
    y, value = result
    if same_order:
        y = y.transpose(*order)
    return inputs, y, values, value.transpose([[*SIZES].index(dim) for dim in y.dims])


@pytest.mark.by_rule
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_large_operands_are_read_as_they_lie(seed, native):
    """No value with all dims is read or stored with strides; bits are those of NumPy."""
    inputs, y, values, expected = random_program(seed, same_order=True)
    f = gc.compile(inputs, y, native=native)
    assert strided(f) == 0
    np.testing.assert_array_equal(f(*values), expected)


@pytest.mark.parametrize("seed", range(12))
def test_transposes_become_no_more(seed):
    inputs, y, values, expected = random_program(seed, same_order=False)
    f = gc.compile(inputs, y)
    assert strided(f, "axes aligned") <= strided(f, "scattered added")
    np.testing.assert_array_equal(f(*values), expected)


def test_a_result_is_stored_in_another_order_rather_than_an_operand_read():
    """`c * a` costs what `(a * c).transpose(...)` does: stores can be tiled, reads cannot."""
    a, c = gc.tensor("a", ("x", "y", "z")), gc.tensor("c", ("z",))
    f = gc.compile([a, c], c * a)
    (y,) = f.stages["optimized"].outputs
    assert (y.op, strided(f)) == (tensor.transpose, 1)
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 3, 4)), rng.normal(size=4)
    np.testing.assert_array_equal(f(x, z), (x * z).transpose(2, 0, 1))


def wave(first):
    """Steps of a stencil on several arrays, times a factor that they share."""
    c, p0 = gc.tensor("c", ("z", "x")), gc.tensor("p0", ("shot", "z", "x"))

    def step(_, p):
        lap = p.roll(x=1) + p.roll(z=-1) - 2 * p
        return c * (p + 0.1 * lap) if first else (p + 0.1 * lap) * c

    return gc.compile([c, p0], gc.fori_loop(0, 3, step, p0))


def test_carries_of_loops_keep_their_order():
    f, g = wave(first=True), wave(first=False)
    assert strided(f) == strided(g) == 0
    rng = np.random.default_rng(0)
    given = rng.normal(size=(4, 3)), rng.normal(size=(2, 4, 3))
    np.testing.assert_array_equal(f(*given), g(*given))


def test_reductions_run_along_memory_where_nothing_else_decides():
    """Chains come first, and what is summed last, whatever was written first."""
    y, u = gc.tensor("y", {"obs": 30}), gc.tensor("u", {"chain": 20, "k": 2})
    z = (y - u.isel(k=0)) / u.isel(k=1)
    f = gc.compile([y, u], gc.grad(gc.exp(u.isel(k=0) + z**2).sum(), u))
    nodes = f.stages["optimized"].nodes()
    assert (30, 20) not in {x.type.shape for x in nodes}
    assert (20, 30) in {x.inputs[0].type.shape for x in nodes if x.op is tensor.sum_}


def test_a_matrix_and_its_transpose_stay():
    """One of them is read with strides in any order."""
    x = gc.tensor("x", {"i": 3, "j": 3})
    turned = x.rename(i="j", j="i")
    f = gc.compile([x], (x + 2 * turned) * x)
    value = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(f(value), (value + 2 * value.T) * value)


def test_axes_of_one_place_have_no_order():
    x, y = gc.tensor("x", {"i": 1, "j": 4}), gc.tensor("y", {"j": 4, "i": 1})
    f = gc.compile([x, y], (y * x).transpose("i", "j"))
    a = np.arange(4.0)
    np.testing.assert_array_equal(f(a[None], a[:, None]), a[None] ** 2)


@pytest.mark.by_rule
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("last", [4, 1])
def test_a_matrix_whose_last_axis_is_of_the_batch_is_not_copied(native, last):
    """x[t, s, n] v[t, n] is added up over t as x lies; one place of n has no order."""
    x, v = gc.tensor("x", {"t": 5, "s": 3, "n": last}), gc.tensor("v", {"t": 5, "n": last})
    f = gc.compile([x, v], gc.dot(x, v, dim="t"), native=native)
    ops = {node.op for node in f.stages["optimized"].nodes()}
    assert (tensor.matvec in ops) == (last == 1)
    assert strided(f) == 0 or last == 1
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 3, last)), rng.normal(size=(5, last))
    np.testing.assert_allclose(f(a, b), np.einsum("tsn,tn->sn", a, b), rtol=1e-13)


def test_rows_are_read_and_added_to():
    """A network: the values of a node lie side by side where edges read or add to them."""
    x = gc.tensor("x", {"node": None, "feature": None})
    w = gc.tensor("w", {"feature": None, "hidden": None})
    start, end = (gc.tensor(name, {"edge": None}, dtype="int64") for name in ("start", "end"))

    def spread(h):
        return gc.segment_sum(h[{"node": start}], end, x.sizes["node"], dim="edge", name="node")

    h = gc.maximum(spread(gc.dot(x, w, dim="feature")), 0.0)
    y = (spread(gc.tanh(h)) ** 2).sum()
    f = gc.compile([x, w, start, end], gc.grad(y, w))
    moved = [n for n in f.stages["optimized"].nodes() if n.op in (tensor.gather, tensor.scatter)]
    assert {(n.op.name, n.attrs["axes"]) for n in moved} == {("gather", (0,)), ("scatter", (0,))}
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((6, 3)), rng.standard_normal((3, 2))
    i, j = rng.integers(0, 6, (2, 9))
    spread_by = np.zeros((6, 6))
    np.add.at(spread_by, (j, i), 1.0)
    mixed = spread_by @ (a @ b)
    h = np.tanh(np.maximum(mixed, 0.0))
    by_h = spread_by.T @ (2 * spread_by @ h) * (1 - h**2) * (mixed > 0)
    np.testing.assert_allclose(f(a, b, i, j), a.T @ spread_by.T @ by_h, rtol=1e-12)


@pytest.mark.parametrize("dims", [(), ("z",), ("z", "y"), ("y", "z")])
@pytest.mark.parametrize("native", [True, False])
def test_sums_of_segments_along_any_axis(dims, native):
    """Of several axes, one of them of size 1; positions along one dim and along two."""
    sizes = {"edge": 7, "z": 3, "y": 1}
    rng = np.random.default_rng(0)
    for along in (("edge",), ("edge", "z")):
        own = dict.fromkeys(("edge", *along, *dims))
        x = gc.tensor("x", dict.fromkeys(own))
        i = gc.tensor("i", dict.fromkeys(along), dtype="int64")
        y = gc.segment_sum(x, i, 4, dim=along, name="to")
        f = gc.compile([x, i], y, native=native)
        a = rng.standard_normal([sizes[dim] for dim in own])
        at = rng.integers(0, 4, [sizes[dim] for dim in along])
        left = [dim for dim in own if dim not in along]
        rows = np.transpose(a, [[*own].index(dim) for dim in (*along, *left)])
        expected = np.zeros((4, *[sizes[dim] for dim in left]))
        np.add.at(expected, at, rows)
        order = [("to", *left).index(dim) for dim in y.dims]
        np.testing.assert_allclose(f(a, at), expected.transpose(order), rtol=1e-13)


def test_updates_go_to_rows_where_nothing_else_is_transposed():
    x, i = gc.tensor("x", {"edge": None, "f": None}), gc.tensor("i", {"edge": None}, dtype="int64")
    y = gc.segment_sum(x, i, 3, dim="edge", name="to").transpose("f", "to")
    f = gc.compile([x, i], y)
    (made,) = [n for n in f.stages["optimized"].nodes() if n.op is tensor.scatter]
    assert made.attrs["axes"] == (0,)
    f(np.ones((4, 2)), np.array([0, 2, 2, 1]))
