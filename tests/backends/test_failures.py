"""What fails at a call: in whose name, of which kind, and whose fault it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.numpy_backend import routines
from graphcore.ir.errors import DefectError

OUTSIDE: dict[str, Callable[..., gc.Tensor]] = {
    "segment_sum": lambda x, y, n, k: gc.segment_sum(y, n, 3),
    "segment_max": lambda x, y, n, k: gc.segment_max(y, n, 3),
    "segment_mean": lambda x, y, n, k: gc.segment_mean(y, n, 3),
    "bincount": lambda x, y, n, k: gc.bincount(n, 3),
    "take_along": lambda x, y, n, k: gc.take_along(x, n, "c"),
    "take_along (gradient)": lambda x, y, n, k: gc.grad(gc.take_along(x, n, "c").sum(), x),
    "take": lambda x, y, n, k: gc.take(x, n.rename(b="place"), "c"),
    "switch": lambda x, y, n, k: gc.switch(n, [lambda: y, lambda: 2 * y]),
    "switch (one number)": lambda x, y, n, k: gc.switch(k, [lambda: y, lambda: 2 * y]),
    "isel": lambda x, y, n, k: x.isel(c=k),
    "isel (brackets)": lambda x, y, n, k: x[{"c": k}],
    "at.set": lambda x, y, n, k: x.at[{"c": k}].set(0.0),
    "at.add": lambda x, y, n, k: x.at[{"c": n}].add(y),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_position_outside_is_refused_in_the_name_of_the_function_called(name: str) -> None:
    x, y = gc.tensor(f"x of {name}", {"b": 3, "c": 4}), gc.tensor(f"y of {name}", {"b": 3})
    n, k = (gc.tensor(f"{i} of {name}", d, dtype="int64") for i, d in (("n", {"b": 3}), ("k", {})))
    f = gc.compile([x, y, n, k], OUTSIDE[name](x, y, n, k))
    with pytest.raises(gc.GraphIndexError) as refused:
        f(np.ones((3, 4)), np.ones(3), [0, 1, 9], 9)
    said = str(refused.value)
    assert said.startswith(f"call: {name.split(' ')[0]} at test_failures.py:")
    assert "9" in said


def test_no_branch_counts_from_the_end() -> None:
    n, y = gc.tensor("n", {"b": 2}, dtype="int64"), gc.tensor("y", {"b": 2})
    branches = [lambda: y, lambda: 2 * y]
    f = gc.compile([n, y], [gc.switch(n, branches), gc.grad(gc.switch(n, branches).sum(), y)])
    np.testing.assert_array_equal(f([0, 1], [3.0, 4.0]), [[3, 8], [1, 2]])
    with pytest.raises(gc.GraphIndexError, match=r"switch at .*position -1 is outside") as refused:
        f([0, -1], [3.0, 4.0])
    assert "positions run from 0 to 1" in str(refused.value)
    with pytest.raises(gc.GraphIndexError):
        gc.compile([y], gc.switch(gc.constant([0, -1], "b"), branches))([3.0, 4.0])


@pytest.mark.parametrize("size", [2**29, 2**33], ids=["more than there is", "more than NumPy has"])
@pytest.mark.parametrize("form", ["output", "buffer", "loop"])
def test_out_of_memory_names_its_line(form: str, size: int) -> None:
    u, v = gc.tensor("u", {"i": None}), gc.tensor("v", {"j": None})
    product = u * v
    if form == "buffer":
        product = gc.exp(product).sum("i") + gc.cumsum(gc.exp(product), "i").max("i")
    if form == "loop":
        _, product = gc.scan(lambda s, v: (s + v, gc.maximum(u, s)), 0.0, v, dim="j")
    f = gc.compile([u, v], product)
    with pytest.raises(MemoryError, match=r"(multiply|exp|scan) at test_failures.py:\d+: ") as e:
        f(np.broadcast_to(1.0, size), np.broadcast_to(1.0, size))
    assert isinstance(e.value, gc.GraphError)
    assert "walk along a dim" in str(e.value)


@pytest.mark.usefixtures("generated_python")
def test_an_error_that_no_values_make_is_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(x: np.ndarray) -> np.ndarray:
        raise AssertionError("not called, as a call gives it more")

    monkeypatch.setattr(routines, "rows", rows)
    x, n = gc.tensor("x", {"b": 3, "c": 4}), gc.tensor("n", {"b": 3}, dtype="int64")
    f = gc.compile([x, n], gc.take(gc.sin(x), n.rename(b="place"), "b"))
    with pytest.raises(DefectError, match="a defect of graphcore, not of the program") as e:
        f(np.ones((3, 4)), [0, 1, 2])
    assert not isinstance(e.value, TypeError | ValueError)
    assert "take at test_failures.py:" in str(e.value)
    assert "takes 1 positional argument" in str(e.value)
    assert "rows(" in str(e.value)


WIDTHS = {
    "constant": {"constant_values": 0},
    **{mode: {"mode": mode} for mode in ("edge", "reflect", "wrap", "linear_ramp", "mean")},
}


@pytest.mark.parametrize("mode", WIDTHS)
def test_a_width_that_turns_negative_is_refused_at_the_call(mode: str) -> None:
    m = gc.tensor("m", {"row": None})
    f = gc.compile([m], gc.pad(m, row=(m.sizes["row"] - 3, 1), **WIDTHS[mode]))
    assert f(np.ones(4)).shape == (6,)
    assert f(np.ones(3)).shape == (4,)
    with pytest.raises(
        gc.GraphValueError, match=r"pad at .* needs 0 <= row - 3 for dim 'row'"
    ) as e:
        f(np.ones(2))
    assert "but they are 0 and -1" in str(e.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: gc.linspace(0.0, 1.0, n, dim="new"),
        lambda n: gc.eye({"new": n, "other": 2}),
        lambda n: gc.one_hot(gc.arange(2, dim="t"), n),
    ],
)
def test_a_range_that_turns_negative_is_refused_at_the_call(
    make: Callable[..., gc.Tensor],
) -> None:
    m = gc.tensor("m", {"row": None})
    f = gc.compile([m], make(m.sizes["row"] - 3) + m.sum())
    f(np.ones(4))
    with pytest.raises(gc.GraphValueError, match=r"needs 0 <= row - 3 for dim '\w+', but"):
        f(np.ones(2))


def test_an_input_called_self_is_given_by_name() -> None:
    own = gc.tensor("self", {"a": 2})
    np.testing.assert_array_equal(gc.compile([own], own * 2)(self=[1.0, 2.0]), [2, 4])


STRANGE = {"a name of two lines": "p\nq", "a name without end": "z" * 100_000}


@pytest.mark.parametrize("name", STRANGE.values(), ids=STRANGE)
def test_names_stay_short_and_on_their_line(name: str) -> None:
    u, v = gc.tensor(name, {name: None}), gc.tensor("v", {name: name + "2"})
    w = gc.tensor("w", {name: None, "b": 2})
    k = gc.tensor("k", {}, dtype="int64")
    ones = np.ones
    calls: list[Callable[[], object]] = [
        lambda: gc.compile([u], u)(ones((2, 2))),
        lambda: gc.compile([u], u)(),
        lambda: gc.compile([u], u)(**{name + "3": ones(2)}),
        lambda: gc.compile([u], u)(ones(2) * 1j),
        lambda: gc.compile([u, v], u * v)(ones(2), ones(3)),
        lambda: gc.compile([u, w], u * w)(ones(2), ones((3, 2))),
        lambda: gc.compile([w], w)(ones((3, 3))),
        lambda: gc.compile([w, k], w.isel({name: k}))(ones((3, 2)), 9),
        lambda: gc.compile([{name: u}], u)({"other": ones(2)}),
        lambda: u.sum("nothing"),
        lambda: u.isel({name: 1.5}),
        lambda: u.rename({name: 3}),
    ]
    for call in calls:
        with pytest.raises(gc.GraphError) as refused:
            call()
        message = str(refused.value)
        assert len(message) < 3000, message[:5000]
        assert "p\nq" not in message


def test_more_dims_than_numpy_has_are_refused_when_built() -> None:
    many = {f"d{i}": 1 for i in range(65)}
    with pytest.raises(gc.GraphValueError, match="65 dims, of at most 64"):
        gc.tensor("x", many)
    x = gc.tensor("x", {"a": 2})
    with pytest.raises(gc.GraphValueError, match="expand_dims: 65 dims, of at most 64"):
        x.expand_dims(dict.fromkeys(list(many)[:64], 1))
    most = dict.fromkeys(list(many)[:63], 1)
    assert gc.compile([x], x.expand_dims(most) + 1)([1.0, 2.0]).shape == (1,) * 63 + (2,)
