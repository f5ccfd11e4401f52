"""Linear algebra: every op and variant of linalg_table.py, in every batch and layout, real and
complex, against NumPy and SciPy one matrix at a time, and their differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.linalg.linalg_table import TABLE, Variant

Layout = tuple[str, ...]
LAYOUTS: dict[tuple[int, ...], Layout] = {
    (): ("q", "p"),
    (3,): ("p", "b", "q"),
    (2, 3): ("q", "b", "p", "c"),
    (0,): ("b", "p", "q"),
}
"""For each batch the order of dims that is tried always."""
OTHERS: list[tuple[tuple[int, ...], Layout]] = [
    ((), ("p", "q")),
    ((3,), ("b", "p", "q")),
    ((3,), ("q", "p", "b")),
    ((3,), ("q", "b", "p")),
    ((2, 3), ("b", "c", "p", "q")),
    ((2, 3), ("p", "b", "c", "q")),
    ((2, 3), ("c", "q", "b", "p")),
    ((0,), ("q", "b", "p")),
]
REAL_AND_COMPLEX = [
    (name, dtype)
    for name, variant in TABLE.items()
    for dtype in ("float64", "complex128")
    if dtype == "float64" or variant.of_complex
]
STEP = 3e-4
SINGLE = {"float64": "float32", "complex128": "complex64"}


def sizes(variant: Variant, batch: tuple[int, ...], layout: Layout) -> dict[str, int]:
    known = dict(zip("bc", batch)) | dict(zip("pq", variant.shape, strict=True))
    return {dim: known[dim] for dim in layout}


def laid_out(a: np.ndarray, layout: Layout) -> np.ndarray:
    """Matrices in a batch, in the order of dims of a tensor."""
    dims = [*(dim for dim in "bc" if dim in layout), "p", "q"]
    return np.ascontiguousarray(a.transpose([dims.index(dim) for dim in layout]))


def meant(variant: Variant, a: np.ndarray) -> np.ndarray:
    """`theirs`, matrix by matrix."""
    batch = a.shape[:-2]
    like = np.asarray(variant.theirs(variant.draw(np.random.default_rng(0), (), a.dtype.name)))
    found = np.zeros((*batch, *like.shape), like.dtype)
    for at in np.ndindex(batch):
        found[at] = variant.theirs(a[at])
    return found


def made(variant: Variant, x: gc.Tensor) -> gc.Tensor:
    """`ours` with the batch first."""
    y = variant.ours(x)
    batch = [dim for dim in ("b", "c") if dim in x.dims]
    assert set(y.dims) == {*batch, *variant.dims}
    return y.transpose(*batch, *variant.dims)


def slope(f: Callable[[float], Any]) -> Any:
    """df/dt at 0, by differences of fourth order."""
    near, far = f(STEP) - f(-STEP), f(2 * STEP) - f(-2 * STEP)
    return (8 * near - far) / (12 * STEP)


def close(found: Any, wanted: Any, rtol: float) -> None:
    """Equal but for rounding, measured by the largest value."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    scale = max(1, np.abs(wanted).max(initial=0))
    assert np.abs(found - wanted).max(initial=0) <= rtol * scale


def random_like(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    values = random.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.normal(size=shape)
    return values.astype(dtype)


def check(name: str, dtype: str, batch: tuple[int, ...], layout: Layout) -> None:
    """Value, both modes and the second order, as far as there are derivatives."""
    variant = TABLE[name]
    random = np.random.default_rng(len(name))
    a = variant.draw(random, batch, dtype)
    wanted = meant(variant, a)
    x = gc.tensor("x", sizes(variant, batch, layout), dtype=dtype)
    y = made(variant, x)
    assert y.dtype == wanted.dtype
    if y.dtype.kind not in "fc":
        close(gc.compile([x], y)(laid_out(a, layout)), wanted, 0)
        return
    v, w = (gc.tensor(word, x.sizes, dtype=dtype) for word in "vw")
    ct = gc.tensor("ct", y.sizes, dtype=y.dtype)
    zero = {"disconnected": "zero"}
    back = gc.pullback(y, x, ct, **zero)
    forth = gc.pushforward(y, x, v, **zero)
    along = (back * v).sum()
    along = gc.real(along) if along.dtype.kind == "c" else along
    outputs = {
        "value": y,
        "back": back,
        "forth": forth,
        "along": along,
        "forth of back": gc.pushforward(along, x, w, **zero),
        "back of back": gc.grad(along, x, **zero),
    }
    first = gc.compile([x, v, ct], along)
    f = gc.compile([x, v, w, ct], outputs)
    d, e = (random_like(random, a.shape, dtype) for _ in range(2))
    c = random_like(random, wanted.shape, wanted.dtype)
    at, dv, ew = (laid_out(values, layout) for values in (a, d, e))
    found = f(at, dv, ew, c)
    close(found["value"], wanted, 1e-9)
    theirs = slope(lambda t: meant(variant, a + t * d))
    close(found["forth"], theirs, 1e-6)
    close(np.sum(found["back"] * dv).real, np.sum(c * theirs).real, 1e-6)
    close(found["along"], np.sum(c * theirs).real, 1e-6)
    # The second order, from the first one, which is checked.
    change = slope(lambda t: first(at + t * ew, dv, c))
    close(found["forth of back"], change, 1e-6)
    close(np.sum(found["back of back"] * ew).real, change, 1e-6)


@pytest.mark.parametrize("name", TABLE)
def test_in_a_batch(name: str) -> None:
    check(name, "float64", (2, 3), LAYOUTS[2, 3])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), REAL_AND_COMPLEX)
def test_in_every_batch_and_layout(name: str, dtype: str) -> None:
    for batch, layout in [*LAYOUTS.items(), *OTHERS]:
        check(name, dtype, batch, layout)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), REAL_AND_COMPLEX)
def test_single_precision(name: str, dtype: str) -> None:
    """Results and gradients keep the precision of the input, and are those of double precision."""
    variant = TABLE[name]
    random = np.random.default_rng(len(name))
    a = variant.draw(random, (3,), dtype)
    found = []
    for own in (dtype, SINGLE[dtype]):
        x = gc.tensor("x", sizes(variant, (3,), LAYOUTS[3,]), dtype=own)
        y = made(variant, x)
        outputs = [y]
        if y.dtype.kind in "fc":
            z = (y * y).sum()
            z = gc.real(z) if z.dtype.kind == "c" else z
            outputs.append(gc.grad(z, x, disconnected="zero"))
            assert outputs[1].dtype == own
        found.append(gc.compile([x], outputs)(laid_out(a.astype(own), LAYOUTS[3,])))
    for double, single in zip(*found, strict=True):
        assert single.dtype == SINGLE.get(double.dtype.name, double.dtype)
        close(single, double, 1e-4)


HEAD = """\
What tests/linalg/test_linalg.py checks of every op of linear algebra, in all its variants (tests/linalg/linalg_table.py):
in the batches (), (3,), (2, 3) and (0,), with the dims in several orders and the two of matrices apart,
r: real values, against NumPy and SciPy one matrix at a time; f: the same in single precision; d: pullback and
pushforward against differences of these; s: second order, pushforward and pullback of the pullback;
C: all of it for complex values.
"""  # noqa: E501  # as wide as the table


def test_every_function_has_its_rows(golden: Callable[[str, str], None]) -> None:
    """What follows from the table is what the tests above run: a hole would show here."""
    told = {name.split()[0] for name in TABLE}
    assert told == set(dir(gc.linalg))
    lines = [HEAD]
    for name, variant in TABLE.items():
        x = gc.tensor("x", sizes(variant, (), ("p", "q")))
        floats = made(variant, x).dtype.kind in "fc"
        marks = f"rf{'ds' if floats else '--'}{'C' if variant.of_complex else '-'}"
        lines.append(f"{name:44} {'x'.join(map(str, variant.shape))}  {marks}")
    golden("linear_algebra", "\n".join(lines))
