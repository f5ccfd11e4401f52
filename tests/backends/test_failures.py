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


@pytest.mark.parametrize("size", [2**29, 2**33], ids=["more than there is", "more than NumPy has"])
@pytest.mark.parametrize("form", ["output", "buffer", "loop"])
def test_out_of_memory_names_its_line(form: str, size: int) -> None:
    u, v = gc.tensor("u", {"i": None}), gc.tensor("v", {"j": None})
    product = u * v
    if form == "buffer":
        product = gc.exp(product).sum("i") + gc.cumsum(gc.exp(product), "i").max("i")
    if form == "loop":
        _, product = gc.scan(lambda s, v: (s + v, u + s), 0.0, v, dim="j")
    f = gc.compile([u, v], product)
    with pytest.raises(MemoryError, match=r"(multiply|exp|scan) at test_failures.py:\d+: ") as e:
        f(np.broadcast_to(1.0, size), np.broadcast_to(1.0, size))
    assert isinstance(e.value, gc.GraphError)
    assert "walk along a dim" in str(e.value)


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
