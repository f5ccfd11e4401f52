"""Per-instance gradients: `per=` follows axes by identity and refuses programs that mix them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.random_programs.drawing import Program, Skip
from tests.random_programs.running import results, tensors
from tests.random_programs.shrinking import held, require
from tests.random_programs.statements import drawn
from tests.reference import close

exactly = np.testing.assert_array_equal


# ---- against other ways

ZERO: Any = {"disconnected": "zero"}


def graded(y: gc.Tensor, wrt: list[gc.Tensor], per: Any) -> list[gc.Tensor] | None:
    """The gradients of each instance, its dims first; None if the instances mix."""
    try:
        each = gc.grad(y, wrt, per=per, **ZERO)
    except gc.GraphTypeError as error:
        if any(known in str(error) for known in ("mix", "no input has", "is another than")):
            return None
        raise
    if per is ...:
        return each
    for g, x in zip(each, wrt, strict=True):
        assert set(g.dims) == {*x.dims, *per}
    return [g.transpose(*per, ...) for g in each]


def same_where_sane(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for ours, theirs in zip(found, wanted, strict=True):
        if np.isfinite(theirs).all() and np.abs(theirs).max(initial=0) < 1e6:
            close(ours, theirs, rtol=1e-8)


def one_by_one(
    f: gc.Compiled,
    dims: dict[str, tuple[str, ...]],
    wrt: list[gc.Tensor],
    values: dict[str, np.ndarray],
    per: list[str],
) -> list[np.ndarray]:
    """What `f` says of each instance on its own, stacked."""
    sizes = {d: n for name, v in values.items() for d, n in zip(dims[name], v.shape, strict=True)}
    counts = [sizes[dim] for dim in per]
    found = [np.zeros((*counts, *[sizes[d] for d in x.dims if d not in per])) for x in wrt]
    for place in np.ndindex(*counts):
        here = {d: slice(at, at + 1) for d, at in zip(per, place, strict=True)}
        only = {
            name: value[tuple(here.get(d, slice(None)) for d in dims[name])]
            for name, value in values.items()
        }
        for whole, part, x in zip(found, f(**only), wrt, strict=True):
            whole[place] = part.squeeze(tuple(i for i, d in enumerate(x.dims) if d in per))
    return found


@pytest.mark.parametrize("count", [100, pytest.param(3000, marks=pytest.mark.slow)])
def test_random_programs(count: int) -> None:
    """grad(y.sum(), x) is grad(y, x, per=per).sum(per - x.dims), and as a loop over instances.

    Of all inputs or of some, the others being data; of programs and of pullbacks of them.
    """
    tried, compared = {True: 0, False: 0}, [0]

    def check(program: Program) -> None:
        random = np.random.default_rng(program.seed)
        program = program.unknown().in_double()
        xs, values = tensors(program), program.values(0)
        y = results(program, xs)[-1]
        floats = [x for x in xs.values() if x.dtype.kind == "f"]
        if not floats:
            raise Skip
        if random.random() < 0.5:
            y = gc.pullback(y, floats[random.integers(len(floats))], gc.cos(y), **ZERO)
        wrt = [x for x in floats if random.random() < 0.5] or floats
        per: Any = [dim for dim in y.dims if random.random() < 0.7] or ...
        each = graded(y, wrt, per)
        tried[each is not None] += 1
        if each is None:
            return
        whole = gc.compile(list(xs.values()), gc.grad(y.sum(), wrt, **ZERO))
        sums = [
            g.sum([d for d in g.dims if d not in x.dims]).transpose(*x.dims)
            for g, x in zip(each, wrt, strict=True)
        ]
        try:
            found, total = gc.compile(list(xs.values()), [each, sums])(**values)
        except gc.GraphError as refused:  # the sizes do not fit the program
            raise Skip from refused
        same_where_sane(total, whole(**values))
        alone = per is not ... and not any(repr(dim) in program.text() for dim in per)
        if alone and len(wrt) == len(floats):  # and no instance goes by its position
            compared[0] += 1
            dims = {name: x.dims for name, x in xs.items()}
            same_where_sane(found, one_by_one(whole, dims, wrt, values, per))

    require(held(check), (drawn(seed, "plain") for seed in range(count)))
    assert tried[True] > count / 10, tried
    assert compared[0] > count / 50, compared


# ---- by hand


def test_two_inputs_of_different_dims_and_a_parameter() -> None:
    """Every partial of every instance (foo, bar), whichever input lacks whichever dim."""
    x, y = gc.tensor("x", {"foo": None}), gc.tensor("y", {"bar": None})
    w = gc.tensor("w", {})
    out = gc.sin(x * w) * y**2 + x * y * w
    each = gc.grad(out, {"x": x, "y": y, "w": w}, per=("foo", "bar"))
    assert {k: set(g.dims) for k, g in each.items()} == {k: {"foo", "bar"} for k in "xyw"}
    a, b, c = np.array([0.1, 0.7, -0.4]), np.array([1.0, -2.0]), 1.3
    found = gc.compile([x, y, w], {k: g.transpose("foo", "bar") for k, g in each.items()})(a, b, c)
    p, q = a[:, None], b[None, :]
    close(found["x"], c * np.cos(p * c) * q**2 + q * c)
    close(found["y"], 2 * np.sin(p * c) * q + p * c)
    close(found["w"], p * np.cos(p * c) * q**2 + p * q)
    again = gc.grad(out, [x, y, w], per=...)
    assert [set(g.dims) for g in again] == [{"foo", "bar"}] * 3
    exactly(gc.compile([x, y, w], again[0].transpose("foo", "bar"))(a, b, c), found["x"])


def test_some_of_the_dims() -> None:
    """Dims that are not named are summed over, as in any gradient."""
    x, w = gc.tensor("x", {"row": 2, "col": 3}), gc.tensor("w", {"col": 3})
    out = (gc.sin(x) * w**2).sum("col")
    each = gc.grad(out, w, per="row")
    assert set(each.dims) == {"row", "col"}
    values = np.random.default_rng(0).normal(size=(2, 3)), np.array([1.0, 2.0, 3.0])
    found = gc.compile([x, w], each.transpose("row", "col"))(*values)
    close(found, 2 * np.sin(values[0]) * values[1])


KEPT: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "renamed": lambda x: gc.sin(x).rename(row="k", col="row"),
    "transposed": lambda x: gc.sin(x.transpose("col", "row")),
    "stacked": lambda x: gc.sin(x.stack(k=("col", "row"))),
    "stacked and back": lambda x: gc.sin(x.stack(k=("col", "row"))).unstack(
        k={"p": x.sizes["col"], "q": x.sizes["row"]}
    ),
    "stacked, renamed": lambda x: gc.sin(x.stack(k=("row", "col")).rename(k="row")) ** 2,
    "more dims": lambda x: (x * gc.constant([1.0, 2.0], "new")).sum("new"),
    "expanded": lambda x: gc.sin(x).expand_dims(one=1, two=2).sum(("one", "two")),
    "a loop": lambda x: gc.fori_loop(0, 2, lambda i, y: gc.sin(y) * x, x),
    "a loop of members": lambda x: gc.while_loop(lambda y: y < 2, lambda y: y + gc.exp(x), x),
    "a branch": lambda x: gc.cond(gc.constant(True), gc.sin, gc.cos, x),
    "a checkpoint": lambda x: gc.checkpoint(lambda x: gc.sin(x).rename(row="k"))(x),
    "a scan": lambda x: gc.scan(
        lambda c, t: (gc.sin(c + t * x), c), x, gc.constant([0.1, 0.2], "time")
    )[1].sum("time"),
}


@pytest.mark.parametrize("name", KEPT)
def test_axes_are_followed(name: str) -> None:
    """Through rename, stack and unstack, and into bodies; `...` finds those of the result."""
    x = gc.tensor("x", {"row": None, "col": None})
    out = KEPT[name](x)
    values = np.random.default_rng(1).normal(size=(3, 2))
    each = gc.grad(out, x, per=("row", "col"))
    assert set(each.dims) == {"row", "col"}
    found, wanted, same = gc.compile(
        [x],
        [each.transpose("row", "col"), gc.grad(out.sum(), x),
         gc.grad(out, x, per=...).transpose("row", "col")],
    )(values)  # fmt: skip
    close(found, wanted)
    exactly(same, found)


PARAMETERS: dict[str, Callable[[gc.Tensor, gc.Tensor], gc.Tensor]] = {
    "normalised data": lambda x, w: (x - x.mean("row")) * w**2,
    "running sums of data": lambda x, w: x.cumsum("row") * gc.sin(w),
    "data picked": lambda x, w: x.isel(row=gc.constant([0, 1, 1], "row")) * w,
    "repeated": lambda x, w: (w * w).expand_dims(row=x.sizes["row"]) * x,
    "branch by place": lambda x, w: gc.cond(x > 0, lambda: w * x, lambda: gc.sin(w)),
    "tangent": lambda x, w: gc.pushforward(gc.sin(w) * x, w, gc.cos(w)),
    "gradient per instance": lambda x, w: gc.grad(gc.sin(w * x), w, per="row") * w,
    "cotangent of data": lambda x, w: gc.pullback(gc.sin(w), w, x.sum()) * x,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_of_data(name: str) -> None:
    """Data may mix, if the parameter's shares do not: their sum is the whole gradient."""
    x, w = gc.tensor("x", {"row": None}), gc.tensor("w", {})
    y = PARAMETERS[name](x, w)
    each = gc.grad(y, w, per="row")
    values = np.array([0.3, -1.0, 2.0]), 0.7
    total, wanted = gc.compile([x, w], [each.sum(), gc.grad(y.sum(), w)])(*values)
    close(total, wanted)


def test_the_rule_of_a_function_is_followed() -> None:
    """A pullback of one's own may not mix what the function keeps apart."""
    x = gc.tensor("x", {"row": 3})
    y = gc.custom_pullback(lambda x: x * x, lambda xs, y, ct: (2 * ct * xs[0],))(x)
    found = gc.compile([x], gc.grad(y, x, per="row"))(np.array([1.0, 2.0, 3.0]))
    exactly(found, [2.0, 4.0, 6.0])


def test_statistics_that_carry_no_derivative_may_mix() -> None:
    """What is stopped, or made of integers, tells nothing of other instances to a derivative."""
    x = gc.tensor("x", {"row": 3})
    scale = gc.stop_gradient(x.max("row"))
    out = x**2 * scale + x.argmax("row")
    found = gc.compile([x], gc.grad(out, x, per="row"))(np.array([1.0, 2.0, 3.0]))
    exactly(found, [6.0, 12.0, 18.0])


def test_dims_that_only_the_result_has() -> None:
    """Made on the way from what is not differentiated by, they tell instances apart as well."""
    x, w = gc.tensor("x", {"row": 3}), gc.tensor("w", {"batch": None})
    data = gc.windows(gc.constant([1.0, 2.0, 4.0, 8.0], "time"), {"time": 2}, "lag")
    out = data * gc.sin(x) * w.rename(batch="b")
    each = gc.grad(out, x, per=...)
    assert each.dims == ("time", "lag", "b", "row")
    f = gc.compile([x, w], [each, gc.grad(out.sum(), x), gc.grad(out, x, per="b").sum("b")])
    values = np.array([0.1, 0.2, -0.4]), np.array([1.0, -2.0])
    found, wanted, again = f(*values)
    close(found.sum((0, 1, 2)), wanted)
    close(again, wanted)
    windows = np.array([[1.0, 2.0], [2.0, 4.0], [4.0, 8.0]])
    close(found, np.einsum("tl,b,r->tlbr", windows, values[1], np.cos(values[0])))


def test_instances_of_higher_order() -> None:
    """A per-instance gradient of a per-instance gradient: each instance's second derivative."""
    x, w = gc.tensor("x", {"row": None}), gc.tensor("w", {})
    out = gc.sin(x * w)
    first = gc.grad(out, w, per="row")
    again = gc.grad(first, w, per="row")
    mixed = gc.grad(first, x, per="row")
    values = np.array([0.2, -1.0, 3.0]), 0.7
    found = gc.compile([x, w], [first, again, mixed])(*values)
    a, c = values
    for got, want in zip(
        found,
        [a * np.cos(a * c), -a * a * np.sin(a * c), np.cos(a * c) - a * c * np.sin(a * c)],
        strict=True,
    ):
        close(got, want)


def test_inner_tensors_and_trees() -> None:
    """By a tensor made on the way; of a tree; and by one that the result has nothing of."""
    x, w = gc.tensor("x", {"row": 3}), gc.tensor("w", {"col": 2})
    h = gc.exp(w)
    out = (h * x).sum("col") + h.sum()
    each = gc.grad(out, {"h": h, "in": [w, x]}, per="row")
    values = np.array([0.5, 1.0, -1.0]), np.array([0.1, -0.3])
    found = gc.compile([x, w], each)(*values)
    a, e = values[0], np.exp(values[1])
    dims = each["h"].dims
    close(found["h"].transpose([dims.index(d) for d in ("row", "col")]), (a[:, None] + 1) + 0 * e)
    dims = each["in"][0].dims
    close(found["in"][0].transpose([dims.index(d) for d in ("row", "col")]), (a[:, None] + 1) * e)
    close(found["in"][1], np.full(3, e.sum()))
    zeros = gc.grad(out, gc.tensor("z", {}), per="row", disconnected="zero")
    assert zeros.dims == ("row",)


def test_an_axis_merged_with_a_dim_that_is_none() -> None:
    """It is known again when the parts are those that were merged."""
    x = gc.tensor("x", {"row": None, "col": None})
    merged = gc.sin(x.stack(k=("col", "row"))) ** 2
    back = merged.unstack(k={"p": x.sizes["col"], "q": x.sizes["row"]})
    each = gc.grad(back.sum("p"), x, per="row")
    found, wanted = gc.compile([x], [each, gc.grad(back.sum(), x)])(np.ones((3, 2)))
    exactly(found, wanted)


def test_a_tensor_that_is_read_for_its_dims_mixes_no_instances() -> None:
    x, y = gc.tensor("x", {"k": 4}), gc.tensor("y", {"step": None})
    last = gc.fori_loop(0, 2, lambda i, s: s + gc.sin(gc.broadcast_like(x.sum(), s)), y)
    slopes = gc.compile([x, y], gc.grad(last, x, per="step"))(np.ones(4), np.zeros(3))
    close(slopes, np.full((3, 4), 2 * np.cos(4.0)))
