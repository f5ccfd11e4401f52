"""`gc.check_grads` passes right derivatives, and names the worst entry of wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

RANDOM = np.random.default_rng(7)
X, W = gc.tensor("x", {"row": None, "col": 3}), gc.tensor("w", {"col": 3, "out": 2})
Z = gc.tensor("z", {"row": 3}, dtype="complex128")
S = gc.tensor("single", {"row": 4}, dtype="float32")
N = gc.tensor("n", {"row": None}, dtype="int64")
VALUES: dict[gc.Tensor, Any] = {
    X: RANDOM.normal(size=(4, 3)),
    W: RANDOM.normal(size=(3, 2)),
    Z: RANDOM.normal(size=3) + 1j * RANDOM.normal(size=3),
    S: RANDOM.uniform(0.5, 2, 4).astype("f4"),
    N: [3, 0, 1, 3],
}


def walked(x: gc.Tensor) -> gc.Tensor:
    last, each = gc.scan(lambda c, row: (gc.tanh(c + row), c.sum()), 0 * x.isel(row=0), x, "row")
    return last.sum() + each.sum()


RIGHT: dict[str, tuple[Any, Any, list[gc.Tensor]]] = {
    "products": (gc.dot(X, W, dim="col"), [X, W], [X, W]),
    "a tree": ({"a": gc.exp(X), "b": [X.isel(row=N).sum()]}, {"x": X}, [X, N]),
    "a loop": (walked(X), X, [X]),
    "complex": (gc.exp(Z) * Z.sum(), Z, [Z]),
    "a real result of complex values": (abs(gc.sin(Z)), Z, [Z]),
    "float32": (gc.log(S) * S, S, [S]),
    "values of other magnitudes": ((X * 1e-12) ** 2 * 1e30, X, [X]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name: str) -> None:
    y, wrt, inputs = RIGHT[name]
    found = gc.check_grads(y, wrt, {x: VALUES[x] for x in inputs})
    assert found.error <= found.allowed


def test_values_may_be_given_by_name_and_only_some_elements_are_moved() -> None:
    x = gc.tensor("x", {"row": None})
    found = gc.check_grads(gc.sin(x), x, {"x": np.linspace(0, 1, 1000)}, most=3)
    assert found.error <= found.allowed


def planted(
    pullback: Callable[..., Any], pushforward: Callable[..., Any] | None = None
) -> Callable[[gc.Tensor], gc.Tensor]:
    """The square, with derivatives that may be wrong."""
    return gc.custom_pullback(lambda x: x * x, pullback, pushforward)


def right(operands: Any, y: Any, ct: Any) -> Any:
    return (2 * operands[0] * ct,)


def wrong(operands: Any, y: Any, ct: Any) -> Any:
    """Wrong at one place, by half a percent."""
    here = (gc.arange(4, dim="row") == 2) & (gc.arange(3, dim="col") == 1)
    return (2 * operands[0] * ct * gc.where(here, 1.005, 1.0),)


def test_the_worst_entry_is_named_by_dims() -> None:
    x = gc.tensor("x", {"row": 4, "col": 3})
    with pytest.raises(gc.GraphValueError) as error:
        gc.check_grads(planted(wrong)(x), x, {x: VALUES[X]})
    message = str(error.value)
    assert "the derivative of y at row=2, col=1 with respect to 'x' at row=2, col=1" in message
    value = VALUES[X][2, 1]
    assert f"{2 * value * 1.005:.5g}"[:5] in message
    assert f"{2 * value:.5g}"[:5] in message
    assert "by central differences" in message
    assert "cure: look at the rules given to custom_pullback" in message


@pytest.mark.parametrize("one", ["pullback", "pushforward"])
def test_each_mode_is_checked(one: str) -> None:
    x = gc.tensor("x", {"row": 4, "col": 3})

    def forth(operands: Any, y: Any, tangents: Any) -> Any:
        return (wrong if one == "pushforward" else right)(operands, y, tangents[0])[0]

    y = planted(wrong if one == "pullback" else right, forth)(x)
    with pytest.raises(gc.GraphValueError, match="row=2, col=1 with respect to 'x' at row=2, col"):
        gc.check_grads({"loss": y}, x, {x: VALUES[X]})
