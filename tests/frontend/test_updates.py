"""Updates and segments where positions repeat, values tie, are 0 or infinite, or do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.frontend.core.base import wrap
from graphcore.ops import named

INF, NAN = np.inf, np.nan


def values(outputs, /, **given):
    """Outputs for inputs by name."""
    inputs = [gc.tensor(name, *declared) for name, declared in DECLARED.items() if name in given]
    return gc.compile(inputs, outputs)(**{name: np.asarray(value) for name, value in given.items()})


DECLARED = {"x": ({"a": None},), "y": ({"n": None},), "i": ({"n": None}, None, "int64")}
X, Y, N = (gc.tensor(name, *declared) for name, declared in DECLARED.items())


def test_the_last_value_stays_and_has_the_derivative():
    z = X.at[{"a": N}].set(Y)
    given = {"x": [1.0, 2.0, 3.0], "y": [10.0, 20.0, 30.0, 40.0], "i": [1, 0, 1, -3]}
    dx, dy = gc.grad((z * z).sum(), [X, Y])
    found = values([z, dx, dy], **given)
    for ours, wanted in zip(found, ([40, 30, 3], [0, 0, 6], [0, 0, 60, 80]), strict=True):
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_last_is_told_row_major(order):
    """In whatever order the positions lie in memory."""
    random = np.random.default_rng(0)
    where = np.array(random.integers(0, 5, (6, 7)), order=order)
    new = np.array(random.normal(size=(6, 7)), order=order)
    x = gc.tensor("x", {"a": 5})
    y, i = (
        gc.tensor("y", {"p": None, "q": None}),
        gc.tensor("i", {"p": None, "q": None}, None, "i8"),
    )
    found = gc.compile([x, y, i], x.at[{"a": i}].set(y))(np.zeros(5), new, where)
    wanted = np.zeros(5)
    for place, value in zip(where.ravel(), new.ravel(), strict=True):
        wanted[place] = value
    np.testing.assert_array_equal(found, wanted)


def test_signs_of_zero_nan_and_infinity_are_set():
    (found,) = values([X.at[{"a": N}].set(Y)], x=[1.0] * 4, y=[-0.0, NAN, -INF], i=[0, 1, 2])
    np.testing.assert_array_equal(found, [-0.0, NAN, -INF, 1])
    assert np.signbit(found[0])


def test_values_that_are_replaced_do_not_count():
    """d log(x) is infinite at 0, and of no matter where the value is replaced."""
    for z in (gc.log(X).at[{"a": N}].set(Y), gc.log(X).at[:1].set(1.0)):
        found = values([gc.grad(z.sum(), X)], x=[0.0, 2.0], y=[1.0], i=[0])
        np.testing.assert_array_equal(found, [[0, 0.5]])


@pytest.mark.parametrize("change", ["max", "min"])
def test_ties_share_evenly(change):
    z = getattr(X.at[{"a": N}], change)(Y)
    given = {"x": [1.0, 1.0, 1.0, INF], "y": [1.0, 1.0, 5.0, -5.0, 1.0], "i": [0, 0, 1, 1, 2]}
    dx, dy = values(gc.grad(gc.where(gc.isfinite(z), z, 0).sum(), [X, Y]), **given)
    np.testing.assert_allclose(dx, [1 / 3, 0, 1 / 2, 0])
    np.testing.assert_allclose(dy, [1 / 3, 1 / 3, change == "max", change == "min", 1 / 2])


def test_segments_of_infinities_share_evenly():
    y = gc.segment_max(Y, N, 3)
    found = values([y, gc.grad(y.isel(n=1), Y)], y=[-INF, -INF, 0.0], i=[1, 1, 0])
    np.testing.assert_array_equal(found[0], [0, -INF, -INF])
    np.testing.assert_array_equal(found[1], [0.5, 0.5, 0])


def test_nan_is_the_extreme():
    y = gc.segment_max(Y, N, 3)
    found = values([y, gc.grad(y.isel(n=0), Y)], y=[1.0, NAN, 2.0], i=[0, 0, 1])
    np.testing.assert_array_equal(found[0], [NAN, 2, -INF])
    np.testing.assert_array_equal(found[1], [0, 0, 0])


@pytest.mark.parametrize("y", [[0.0, 3, 2, 5], [0.0, 3, 0, 5], [0.0, 0, 0, 5]])
def test_products_are_exact_with_zeros(y):
    """First and second derivatives are those of the product written out."""
    together = gc.segment_prod(Y, N, 3)
    one, two = together.isel(n=1), Y.isel(n=0) * Y.isel(n=1) * Y.isel(n=2)
    slopes, wanted = gc.grad(one, Y), gc.grad(two, Y)
    curves, bends = (gc.grad(s.isel(n=0), Y) for s in (slopes, wanted))
    other = gc.grad(together.isel(n=0), Y)
    found = values([one, two, slopes, wanted, curves, bends, other], y=y, i=[1, 1, 1, 0])
    for ours, theirs in zip(found[0:6:2], found[1:6:2], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(found[6], [0, 0, 0, 1])


def test_an_infinity_stays_in_its_segment():
    y = gc.grad(gc.segment_prod(Y, N, 3).sum(), Y)
    found = values([y], y=[2.0, 3.0, INF, 3.0, 4.0], i=[1, 0, 1, 0, 2])
    np.testing.assert_array_equal(found, [[INF, 3, 2, 3, 1]])


def test_long_products_are_exact_with_zeros():
    """The running product by doubling, across segments that overflow."""
    random = np.random.default_rng(1)
    y, i = random.normal(size=300), random.integers(0, 3, 300)
    y[i == 1] = 1e10
    y[np.flatnonzero(i == 2)[5]] = 0
    found = values([gc.grad(gc.segment_prod(Y, N, 3).isel(n=[0, 2]).sum(), Y)], y=y, i=i)[0]
    for segment in (0, 2):
        places = np.flatnonzero(i == segment)
        wanted = [np.prod(y[places[places != place]]) for place in places]
        np.testing.assert_allclose(found[places], wanted, rtol=1e-10)


def test_products_of_places_are_exact_with_zeros():
    z = X.at[{"a": N}].multiply(Y)
    given = {"x": [2.0, 0.0], "y": [0.0, 3.0, 5.0], "i": [0, 0, 1]}
    dx, dy = gc.grad(z.sum(), [X, Y])
    mixed = gc.grad(dy.isel(n=1), [X, Y])
    found = values([z, dx, dy, *mixed], **given)
    for ours, wanted in zip(found, ([0, 0], [0, 5], [6, 0, 0], [0, 0], [2, 0, 0]), strict=True):
        np.testing.assert_array_equal(ours, wanted)


def batched(extra):
    """Each op of updates, where x, the updates or the positions have a dim more."""
    have = [{"e": 2} if name in extra else {} for name in ("x", "y", "i")]
    x, y, i = (
        gc.tensor("x", {"a": 3, "b": 2} | have[0]),
        gc.tensor("y", {"n": 4} | have[1]),
        gc.tensor("i", {"n": 4, "b": 2} | have[2], dtype="int64"),
    )
    together = {"over": ("n",), "dims": ("a",), "sizes": (3,)}
    received = {"over": ("n",), "dims": ("a",)}
    outputs = [
        *(op(y.node, i.node, **together) for op in (named.scatter, named.scatter_prod)),
        *(
            op(x.node, y.node, i.node, **received)
            for op in (named.put, named.scatter_max, named.scatter_min)
        ),
        named.overwrite(x.node, y.node, dims=(), starts=(), steps=()),
        named.overwrite(x[:, :1].node, y[{"n": slice(2)}].rename(n="a").node,
                        dims=("a",), starts=(2,), steps=(-2,)),
    ]  # fmt: skip
    return [x, y, i], outputs


@pytest.mark.parametrize("extra", ["", "x", "y", "i", "xy", "yi", "xyi"])
def test_more_dims_are_batch(extra):
    """Each place along them is computed as if it were alone."""
    inputs, outputs = batched(extra)
    random = np.random.default_rng(0)
    values = [random.normal(size=x.shape) for x in inputs[:2]]
    values.append(random.integers(-3, 3, inputs[2].shape))
    found = gc.compile(inputs, [wrap(y) for y in outputs])(*values)
    alone, single = batched("")
    f = gc.compile(alone, [wrap(y) for y in single])

    def at(place, x, dims):
        return x.take(place, dims.index("e")) if "e" in dims else x

    for place in range(2):
        given = [at(place, v, x.dims) for v, x in zip(values, inputs, strict=True)]
        for ours, y, theirs in zip(found, outputs, f(*given), strict=True):
            np.testing.assert_allclose(at(place, ours, y.type.dims), theirs, rtol=1e-14)


def test_updates_along_a_dim_that_positions_lack_come_together():
    x, y, i = X, gc.tensor("y", {"n": 4}), gc.tensor("i", {}, dtype="int64")
    into, own = {"over": ("n",), "dims": ("a",)}, {"sizes": (3,)}
    made = [op(y.node, i.node, **into, **own) for op in (named.scatter, named.scatter_prod)]
    made += [op(x.node, y.node, i.node, **into) for op in (named.put, named.scatter_max)]
    made += [named.scatter_min(x.node, y.node, i.node, **into)]
    found = gc.compile([x, y, i], [wrap(z) for z in made])([0, 3, 5], [2.0, 4, 3, 2], 1)
    wanted = [[0, 11, 0], [1, 48, 1], [0, 2, 5], [0, 4, 5], [0, 2, 5]]
    np.testing.assert_array_equal(found, wanted)


def test_a_part_of_another_dtype_is_cast():
    x, part = gc.tensor("x", {"a": 3}, dtype="float32"), gc.tensor("p", {"a": 2})
    y = wrap(named.overwrite(x.node, part.node, dims=("a",), starts=(1,), steps=(1,)))
    (found,) = gc.compile([x, part], [y])(np.zeros(3, "float32"), [0.1, 2])
    np.testing.assert_array_equal(found, np.array([0, 0.1, 2], "float32"))


UPDATES = {
    "set": lambda at, y: at.set(y),
    "add": lambda at, y: at.add(y),
    "subtract": lambda at, y: at.subtract(y),
    "multiply": lambda at, y: at.multiply(y),
    "divide": lambda at, y: at.divide(y),
    "power": lambda at, y: at.power(y),
    "min": lambda at, y: at.min(y),
    "max": lambda at, y: at.max(y),
}
MASKED = {
    "alone": (lambda x, m, c: m, lambda a, m, c: m),
    "of all dims": (lambda x, m, c: x > 2, lambda a, m, c: a > 2),
    "by name": (lambda x, m, c: {"col": c}, lambda a, m, c: np.s_[:, c]),
    "both dims": (lambda x, m, c: (m, c), lambda a, m, c: np.ix_(m, c)),
    "beside a position": (lambda x, m, c: (m, 1), lambda a, m, c: (m, 1)),
    "beside a slice": (lambda x, m, c: {"row": m, "col": slice(1)}, lambda a, m, c: np.s_[m, :1]),
    "beside places": (lambda x, m, c: {"row": m, "col": [1, 0]}, lambda a, m, c: (m, np.s_[::-1])),
    "constant": (lambda x, m, c: gc.constant([True, False, True], "row"), lambda a, m, c: m),
}


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("key", MASKED)
def test_masks_known_only_at_the_call(update, key):
    x = gc.tensor("x", {"row": None, "col": 2})
    m, c = gc.tensor("m", {"row": None}, dtype="bool"), gc.tensor("c", {"col": 2}, dtype="bool")
    s = gc.tensor("s", {})
    ours, theirs = MASKED[key]
    y = UPDATES[update](x.at[ours(x, m, c)], s)
    a = np.arange(1.0, 7.0).reshape(3, 2)
    masks = np.array([True, False, True]), np.array([False, True])
    f = gc.compile([x, m, c, s], [y, *gc.grad((y * y).sum(), [x, s])])
    found, by_x, by_s = f(a, *masks, 2.5)
    places = np.zeros(a.shape, bool)
    places[theirs(a, *masks)] = True
    known = UPDATES[update](x.at[gc.constant(places, ("row", "col"))], s)
    whole = UPDATES[update](x.at[...], s)
    chosen = gc.where(gc.constant(places, ("row", "col")), whole, x)
    wanted = gc.compile([x, s], [chosen, *gc.grad((chosen**2).sum(), [x, s]), known])(a, 2.5)
    np.testing.assert_array_equal(found, wanted[0])
    np.testing.assert_array_equal(found, wanted[3])
    np.testing.assert_allclose(by_x, wanted[1])
    np.testing.assert_allclose(by_s, wanted[2])
    if update == "set":
        a[theirs(a, *masks)] = 2.5
        np.testing.assert_array_equal(found, a)
    if update == "add":
        a[theirs(a, *masks)] += 2.5
        np.testing.assert_array_equal(found, a)


INTEGERS = gc.tensor("k", {"a": 4}, dtype="int32")


def test_dtypes_as_in_place():
    x = gc.tensor("x", {"a": 4}, dtype="float32")
    assert x.at[0].add(gc.ones({})).dtype == np.float32
    assert x.at[0].set(1).dtype == np.float32
    assert x.at[0].multiply(gc.ones({}, "int64")).dtype == np.float32
    assert INTEGERS.at[0].add(gc.ones({}, "int64")).dtype == np.int32
    assert gc.segment_sum(INTEGERS, [0, 1, 0, 1], 2, "a").dtype == np.int64
    assert gc.segment_mean(INTEGERS, [0, 1, 0, 1], 2, "a").dtype == np.float64
    assert gc.segment_max(INTEGERS, [0, 1, 0, 1], 2, "a").dtype == np.int32


def test_empty_segments_of_integers():
    y = [f(INTEGERS, [0, 0, 0, 0], 2, "a") for f in (gc.segment_max, gc.segment_min)]
    found = gc.compile([INTEGERS], y)(np.array([3, 1, 2, 5], np.int32))
    bounds = np.iinfo(np.int32)
    np.testing.assert_array_equal(found, [[5, bounds.min], [1, bounds.max]])


def test_segments_of_symbolic_size():
    n = gc.tensor("w", {"group": None})
    y = gc.segment_sum(Y, N, n.sizes["group"], name="group") * n
    f = gc.compile([Y, N, n], y)
    np.testing.assert_array_equal(f([1.0, 2, 4], [0, 1, 0], [1.0, 1, 2]), [5, 2, 0])


AT = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "complex64"])
@pytest.mark.parametrize("change", AT)
def test_every_dtype_as_numpy(change, dtype):
    """`x.at[i].add(y)` is `np.add.at(x, i, y)`; quotients of integers are refused."""
    random = np.random.default_rng(0)
    wanted, y = (random.integers(0, 5, n).astype(dtype) for n in (4, 9))
    y = np.maximum(y, np.ones((), dtype))
    given = wanted.copy(), y, random.integers(-4, 4, 9)
    inputs = [gc.tensor("x", {"a": 4}, dtype=dtype), gc.tensor("y", {"n": 9}, dtype=dtype), N]
    region = inputs[0].at[{"a": N}]
    whole = wanted.dtype.kind in "biu"
    if (change, dtype) == ("subtract", "bool") or (change == "divide" and whole):
        with pytest.raises(gc.GraphTypeError):
            getattr(region, change)(inputs[1])
        return
    found = gc.compile(inputs, getattr(region, change)(inputs[1]))(*given)
    AT[change].at(wanted, given[2], y)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("change", [*AT, "set", "segment"])
@pytest.mark.parametrize("wide", ["x", "y", "i"])
def test_vectorised(change, wide):
    """With a dim more on one input: the value and gradient of each place."""
    inputs = dict(zip("xyi", (gc.tensor("x", {"a": 4}), gc.tensor("y", {"n": 9}), N), strict=True))
    if change == "segment":
        z = gc.segment_max(inputs["y"] * inputs["x"].sum(), N, 4, name="a")
    else:
        z = getattr(inputs["x"].at[{"a": N}], change)(inputs["y"])
    outputs = [z, *gc.grad(gc.where(gc.isfinite(z), z * z, 0).sum(), [inputs["x"], inputs["y"]])]
    old = inputs[wide]
    many = gc.tensor(old.name, {"many": 3} | old.sizes, dtype=old.dtype)
    random = np.random.default_rng(0)
    values = [random.normal(size=4), random.uniform(1, 2, 9), random.integers(0, 4, 9)]
    at = "xyi".index(wide)
    stacked = np.stack([np.roll(values[at], shift) for shift in range(3)])
    f = gc.compile([*inputs.values()], outputs)
    wider = [
        y.transpose("many", ...) for y in gc.vectorize(outputs, {old: many}) if "many" in y.dims
    ]
    g = gc.compile([many if x is old else x for x in inputs.values()], wider)
    found = g(*values[:at], stacked, *values[at + 1 :])
    assert len(found) == 3
    for place, value in enumerate(stacked):
        for ours, wanted in zip(found, f(*values[:at], value, *values[at + 1 :]), strict=True):
            np.testing.assert_allclose(ours[place], wanted, rtol=1e-12)


@pytest.mark.parametrize("how", ["add", "multiply", "max", "min"])
@pytest.mark.parametrize("dims", [("a", "b"), ("b", "a"), ("c", "a")])
def test_places_that_differ_are_combined_at_once(how: str, dims: tuple[str, str]) -> None:
    """Along two of three dims, whatever their order, with batch and updates that broadcast."""
    ufuncs = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}
    x = gc.tensor("x", {"a": 4, "b": 5, "c": 4})
    (rest,) = set("abc") - set(dims)
    random = np.random.default_rng(0)
    values = random.normal(size=(4, 5, 4))
    walk = gc.arange(3, dim="walk")
    for update_dims in (("walk", rest), ("walk",)):
        sizes = {"walk": 3, rest: x.sizes[rest]}
        update = random.normal(size=[sizes[dim] for dim in update_dims])
        u = gc.tensor("u", {dim: sizes[dim] for dim in update_dims})
        f = gc.compile([x, u], getattr(x.at[{dims[0]: walk, dims[1]: walk + 1}], how)(u))
        wanted = values.copy()
        moved = wanted.transpose(["abc".index(dim) for dim in (*dims, rest)])
        spread = np.broadcast_to(update if update.ndim == 2 else update[:, None], (3, sizes[rest]))
        for step in range(3):
            moved[step, step + 1] = ufuncs[how](moved[step, step + 1], spread[step])
        np.testing.assert_array_equal(f(values, update), wanted)


@pytest.mark.parametrize("key", [..., {"t": slice(None)}, {"t": slice(None, None, 2)}])
def test_what_is_replaced_as_a_whole_is_checked_all_the_same(key: Any) -> None:
    """Found by a random program: a product whose every element was replaced was never checked."""
    x = gc.tensor("x", {"s": None})
    product = gc.dot(x, gc.constant([[1.3]], ("s", "t")), dim="s")
    f = gc.compile([x], product.at[key].set(0.5))
    np.testing.assert_array_equal(f(np.ones(1)), [0.5])
    with pytest.raises(gc.GraphError, match=r"dot at .* needs s == 1"):
        f(np.ones(3))


def test_what_is_shifted_out_as_a_whole_is_checked_all_the_same() -> None:
    x = gc.tensor("x", {"s": None})
    product = gc.dot(x, gc.constant([[1.3]], ("s", "t")), dim="s")
    f = gc.compile([x], gc.shift(product, t=1, fill_value=0.5))
    np.testing.assert_array_equal(f(np.ones(1)), [0.5])
    with pytest.raises(gc.GraphError, match=r"dot at .* needs s == 1"):
        f(np.ones(3))
