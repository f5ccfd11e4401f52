"""The table of public functions with complex inputs: values against NumPy's, derivatives against
differences, or a refusal where SciPy and NumPy refuse as well or there is no order to go by.

A gradient is dRe(y)/dRe(x) - i dRe(y)/dIm(x), so that Re(sum(gradient * v)) is how y changes
along v, for every function, whether analytic or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray

import graphcore as gc
from tests.operations import CASES, FAMILIES
from tests.operations.case import DEFAULT, Case, Input, bare

OFTEN = {"arithmetic", "calculus", "contraction", "reductions", "special", "statistics"}
FAMILY = {name: module.__name__.rpartition(".")[2] for module in FAMILIES for name in module.CASES}
STEP = 1e-5

UNORDERED = ("nan_to_num", "logcumsumexp", "histogram", "pad median", "rank", "median", "interp")
UNORDERED += ("weighted quantile", *(f"rolling {kind}median" for kind in ("", "middle ", "some ")))
UNORDERED += tuple(f"coarsen {kind}median" for kind in ("", "pad ", "trim "))
UNORDERED += ("groupby median", "gelu", "cross_entropy")
"""What complex numbers have no order for; and four that are not written for them."""

ALONE = "has no complex reference, or one that is not unique"
REASONS = {
    **dict.fromkeys(("linalg", "control"), ALONE),  # test_linalg.py, test_loop_forms.py
    **dict.fromkeys(("correlate full", "correlate same", "correlate valid"), "conjugates"),
    **dict.fromkeys(("norm skipna", "norm where"), "the reference squares"),
    **dict.fromkeys(("rolling some max", "rolling some min"), "the reference has -inf * 1j"),
    **dict.fromkeys(("astype", "astype int"), "to a real dtype is refused"),
    "corr weights": "the reference does not conjugate weights",
    "stop_gradient": "its derivative is not that of its value",
}
"""Why some are not compared here."""


def told_apart(name: str) -> str:
    """Why a case is left out, if it is."""
    squares = name.startswith("weighted") and any(w in name for w in ("var", "std", "squares"))
    return REASONS.get(name) or REASONS.get(FAMILY[name]) or ("squares" if squares else "")


NAMES = [
    pytest.param(name, marks=() if FAMILY[name] in OFTEN else pytest.mark.slow)
    for name, case in CASES.items()
    if any(given.dtype == "float64" for given in case.inputs) and not told_apart(name)
]


def drawn(given: Input, random: np.random.Generator) -> np.ndarray:
    values = np.asarray(given.draw(random, DEFAULT))
    return values + 1j * given.draw(random, DEFAULT) if given.dtype == "float64" else values


def several(y: Any) -> list[Any]:
    return list(y.values()) if isinstance(y, dict) else list(y) if isinstance(y, tuple) else [y]


def reference(case: Case, values: list[np.ndarray]) -> Any:
    """What the reference gives; None where it refuses."""
    try:
        return case.theirs(
            *[
                xarray.DataArray(value, dims=given.dims.split())
                for value, given in zip(values, case.inputs, strict=True)
            ]
        )
    except (TypeError, ValueError, NotImplementedError, np.exceptions.DTypePromotionError):
        return None


def loss_of(y: gc.Tensor) -> gc.Tensor:
    """The sum of |y|**2, each times another number."""
    weights = gc.cos(gc.arange(y.size, dim="place")).unstack(place=dict(y.sizes)) + 1.5
    return ((gc.real(y) ** 2 + gc.imag(y) ** 2) * weights).sum()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_complex(name: str) -> None:
    case, random = CASES[name], np.random.default_rng(5)
    values = [drawn(given, random) for given in case.inputs]
    xs = [
        gc.tensor(f"x{i}", {dim: DEFAULT[dim] for dim in given.dims.split()}, dtype=value.dtype)
        for i, (given, value) in enumerate(zip(case.inputs, values, strict=True))
    ]
    wanted = reference(case, values)
    try:
        ys = several(case.ours(*xs))
    except gc.GraphTypeError:
        assert wanted is None or FAMILY[name] == "special" or name.startswith(UNORDERED)
        return
    found = gc.compile(xs, ys)(*values)
    for y, ours, theirs in zip(ys, found, several(wanted), strict=False):
        if wanted is not None:
            theirs = bare(xarray.DataArray(theirs)).transpose(*y.dims).values
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)
    for y in [y for y in ys if y.dtype.kind in "fc"][:1]:
        for place, x in enumerate(xs):
            if x.dtype.kind == "c":
                check_derivatives(y, xs, values, place, random)


def check_derivatives(
    y: gc.Tensor, xs: list[gc.Tensor], values: list[Any], place: int, random: np.random.Generator
) -> None:
    """Both modes against differences along a complex direction."""
    x, loss = xs[place], loss_of(y)
    v = gc.tensor("v", x.sizes, dtype=x.dtype)
    along = gc.pushforward(y, x, v, disconnected="zero")
    f = gc.compile([*xs, v], [loss, y, gc.grad(loss, x, disconnected="zero"), along])
    shape = values[place].shape
    direction = random.normal(size=shape) + 1j * random.normal(size=shape)
    (up, y_up, _, _), (_, _, slope, tangent), (down, y_down, _, _) = [
        f(*[z + step * direction if i == place else z for i, z in enumerate(values)], direction)
        for step in (STEP, 0, -STEP)
    ]
    change = (slope * direction).sum().real
    np.testing.assert_allclose(change, (up - down) / (2 * STEP), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tangent, (y_up - y_down) / (2 * STEP), rtol=1e-5, atol=1e-6)


ZERO: dict[str, Any] = {
    "sign": (gc.sign, 0),
    "abs": (abs, 0),
    "angle": (gc.angle, 0),
}


@pytest.mark.parametrize("name", ZERO)
def test_derivatives_at_0(name: str) -> None:
    function, wanted = ZERO[name]
    z = gc.tensor("z", {}, dtype="complex128")
    y = function(z)
    f = gc.compile([z], [gc.real(y), gc.grad(gc.real(y), z), gc.pushforward(y, z, z + (1 + 2j))])
    np.testing.assert_array_equal(f(0j), [0, wanted, wanted])


REFUSED = {
    "huber": lambda z: gc.special.huber(1.0, z),
    "weighted quantile": lambda z: z.weighted(gc.ones({"row": 3})).quantile(0.5, "row"),
    "quantile by complex weights": lambda z: gc.real(z).weighted(z).quantile(0.5, "row"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_an_order(name: str) -> None:
    with pytest.raises(gc.GraphTypeError, match="complex numbers have no order"):
        REFUSED[name](gc.tensor("z", {"row": 3}, dtype="complex128"))
