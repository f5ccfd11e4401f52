"""Elementwise ops on JAX at special values, against what they mean: NumPy's ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.jax_backend.table import TABLE
from graphcore.ir import Node, Op
from graphcore.ops import elementwise as e
from graphcore.ops import leaf
from graphcore.ops.elementwise import UFUNC
from graphcore.ops.meaning import MEANING
from tests.ops.tables import arity, of
from tests.shares import shared

from .single_ops import compute

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FLOATS = [
    *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 1.5, 10.0, -40.0),
    *(88.0, 710.0, -750.0, 1e-300, 1e-8, 1e16, 1e300, -1e300, np.pi, -3.0, -0.1, 1e-3, -7.5),
]
PARTS = [0.0, -0.0, 1.0, -2.0, 0.3, 30.0, np.inf, -np.inf, np.nan]
VALUES: dict[str, list[Any]] = {
    "b": [False, True],
    "i": [0, 1, -1, 2, 3, 7, -3, 5, 12, 62, 63, 64],
    "u": [0, 1, 2, 3, 7, 12, 62, 64, 255],
    "f": FLOATS,
    "c": [complex(x, y) for x in PARTS for y in PARTS],
}
DTYPES = [
    *("float64", "float32", "float16", "complex128", "complex64", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
]
PLAIN = [op for op, function in UFUNC.items() if isinstance(function, np.ufunc)]


def pool(dtype: np.dtype[Any]) -> np.ndarray:
    """The values of a dtype; floats that are too small for it are left out: JAX has them as 0."""
    values = VALUES[dtype.kind]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = [x for x in values if x <= info.max] + [info.max, info.min, info.max - 1]
    found = np.array(values, dtype)
    return found[(found == 0) == (np.array(values) == 0)]


def node_of(op: Op, dtypes: list[np.dtype[Any]], count: int) -> Node | None:
    """The op of inputs of some dtypes; None if it is not defined for them."""
    xs = [
        leaf.input_(name=f"x{k}", dtype=dtype, shape=(count,), dims=None)
        for k, dtype in enumerate(dtypes)
    ]
    try:
        return op(*xs)
    except gc.GraphTypeError:
        return None


def pairs(left: np.ndarray, right: np.ndarray) -> list[np.ndarray]:
    return [x.ravel() for x in np.meshgrid(left, right, indexing="ij")]


def computed(
    ops: list[Op], given: list[np.ndarray]
) -> list[tuple[Node, list[np.ndarray], np.ndarray]]:
    """The nodes of ops for operands from `given`, those operands, and the results on JAX."""
    cases = []
    for op in ops:
        xs = given[: arity(op)]
        node = node_of(op, [x.dtype for x in xs], len(xs[0]))
        if node is not None:
            cases.append((node, xs))
    return [(node, xs, y) for (node, xs), (y,) in zip(cases, compute(cases), strict=True)]


def far(found: np.ndarray, wanted: np.ndarray, ulps: float) -> np.ndarray:
    """Where results differ: the sign of zero counts, and what is too small for the dtype is 0."""
    if wanted.dtype.kind not in "fc":
        return found != wanted
    info = np.finfo(wanted.dtype)
    if wanted.dtype.kind == "c":
        size = np.where(np.isfinite(wanted), np.abs(wanted), 0)
        parts = ("real", "imag")
        ways = [(getattr(found, p), getattr(wanted, p)) for p in parts]
    else:
        size, ways = np.where(np.isfinite(wanted), np.abs(wanted), 0), [(found, wanted)]
    wrong = np.zeros(wanted.shape, bool)
    for ours, theirs in ways:
        same = (ours == theirs) & (np.signbit(ours) == np.signbit(theirs))
        same |= np.isnan(ours) & np.isnan(theirs)
        near = np.abs(ours - theirs) <= ulps * info.eps * size
        small = (np.abs(theirs) < info.tiny) & (ours == 0) & (theirs != 0)
        wrong |= ~(same | (near & ((ours != 0) | (theirs != 0))) | small)
    return wrong


# ---- accepted differences


class Accepted(NamedTuple):
    """Where an op may differ from NumPy's answer, by operands and that answer, and why."""

    where: Callable[..., np.ndarray]
    why: str


def endless(*xs: np.ndarray) -> np.ndarray:
    """Where a part of an operand, or of the result, is infinite or nan."""
    return np.any([~np.isfinite(x) for x in xs], axis=0)


def zeros_of_two_signs(x: np.ndarray, y: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))


EITHER_ZERO = Accepted(zeros_of_two_signs, "NumPy's choice depends on how many values there are")
OTHER_NAN = Accepted(endless, "which part is nan, or the sign of one that is 0 or infinite")
OF_COMPLEX = dict.fromkeys(
    (
        *(e.power, e.sin, e.cos),
        *(e.arcsin, e.arccos, e.arctan, e.arcsinh, e.arccosh, e.arctanh),
    ),
    OTHER_NAN,
)
ACCEPTED: dict[str, dict[Op, Accepted]] = {
    "float64": dict.fromkeys((e.maximum, e.minimum), EITHER_ZERO),
    "float32": dict.fromkeys((e.maximum, e.minimum), EITHER_ZERO),
    "float16": dict.fromkeys((e.maximum, e.minimum, e.fmax, e.fmin), EITHER_ZERO),
    "complex128": OF_COMPLEX,
    "complex64": OF_COMPLEX,
}
"""Each does differ; of all ops `test_subnormal_floats` has a difference."""
ULPS = 8
COMPLEX_ULPS: dict[Op, float] = {e.power: 200, e.sinh: 16, e.cosh: 16, e.sin: 16, e.cos: 16}
"""NumPy's power takes the exponential of a rounded product, XLA's sinh is good to 8 ulp."""


def agree(ops: list[Op], dtype: np.dtype[Any]) -> None:
    given = pairs(pool(dtype), pool(dtype))
    for node, xs, found in computed(ops, given):
        op = node.op
        if op is e.power and dtype.kind == "i":
            some = xs[1] >= 0
            xs, found = [x[some] for x in xs], found[some]
        wanted = np.asarray(MEANING[op](*xs))
        assert found.dtype == wanted.dtype == node.type.dtype
        ulps = COMPLEX_ULPS.get(op, ULPS) if dtype.kind == "c" else ULPS
        wrong = far(found, wanted, ulps)
        accepted = ACCEPTED.get(dtype.name, {}).get(op)
        if accepted is not None:
            assert wrong.any(), f"{op.name} of {dtype}: NumPy's answer is given now"
            wrong &= ~accepted.where(*xs, wanted)
        at = np.flatnonzero(wrong)[:5]
        cases = [(*(x[i] for x in xs), "gives", found[i], "not", wanted[i]) for i in at]
        assert not cases, f"{op.name} of {dtype}: {cases}"


def test_the_table_holds_every_elementwise_op() -> None:
    assert {op for op in TABLE if op.dialect == "elementwise"} == of("elementwise")()


@pytest.mark.parametrize("dtype", shared(DTYPES, 4))
def test_special_values(dtype: str) -> None:
    agree(PLAIN, np.dtype(dtype))


def test_subnormal_floats() -> None:
    """XLA counts them as 0 on CPUs, operands and results."""
    given = np.array([1e-310, 1e-300]), np.array([0.5, 1e-300])
    node = node_of(e.multiply, [given[0].dtype] * 2, 2)
    assert node is not None
    (((found),),) = compute([(node, given)])
    assert list(found) == [0, 0]
    assert (given[0] * given[1])[0] > 0


SAMPLE: dict[str, list[Op]] = {
    "int64": [e.floor_divide, e.remainder, e.power, e.gcd, e.right_shift, e.reciprocal],
    "float64": [e.floor_divide, e.remainder, e.hypot, e.exp2, e.maximum, e.sign, e.logaddexp],
    "complex64": [e.divide, e.sqrt, e.sign, e.maximum, e.less, e.exp],
}


@pytest.mark.parametrize("dtype", SAMPLE)
def test_some_special_values(dtype: str) -> None:
    agree(SAMPLE[dtype], np.dtype(dtype))
