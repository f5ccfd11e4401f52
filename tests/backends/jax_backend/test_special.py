"""Special functions on JAX, against SciPy's: at random values and at their edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
import scipy.special

import graphcore as gc
from graphcore.backends.jax_backend.host import HOST
from graphcore.ir import Literal, Op
from graphcore.ops import leaf, special
from graphcore.ops.elementwise import UFUNC
from graphcore.ops.meaning import MEANING
from tests.ops.tables import arity
from tests.shares import shared

from .single_ops import compute
from .test_elementwise import node_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Draw: TypeAlias = Callable[[int], np.ndarray]
RNG = np.random.default_rng(0)
COUNT = 500


def even(low: float, high: float) -> Draw:
    return lambda count: RNG.uniform(low, high, count)


def logs(low: float, high: float) -> Draw:
    """Between two numbers above 0, of all magnitudes."""
    return lambda count: np.exp(RNG.uniform(np.log(low), np.log(high), count))


def mixed(*draws: Draw) -> Draw:
    def run(count: int) -> np.ndarray:
        return RNG.permutation(np.concatenate([draw(count) for draw in draws]))[:count]

    return run


def minus(draw: Draw) -> Draw:
    return lambda count: -draw(count)


POSITIVE = mixed(logs(1e-6, 1e3), even(0, 5))
REAL = mixed(even(-5, 5), even(-50, 50), logs(1e-8, 1e3))
PROBABILITY = mixed(even(0, 1), logs(1e-12, 1), lambda count: 1 - logs(1e-9, 1)(count))
ORDER, PLACE = even(0, 30), mixed(even(0, 50), logs(1e-2, 300))
FEW_ORDERS, TINY = mixed(logs(1e-6, 1), even(0, 1)), logs(1e-300, 1e-5)
SHAPE = logs(0.05, 200)
DOMAINS: dict[Op, list[Draw]] = {
    special.logit: [PROBABILITY],
    special.log1mexp: [minus(POSITIVE)],
    special.xlogy: [REAL, POSITIVE],
    special.xlog1py: [REAL, POSITIVE],
    special.entr: [POSITIVE],
    special.rel_entr: [POSITIVE, POSITIVE],
    special.kl_div: [POSITIVE, POSITIVE],
    special.erfc: [even(-5, 26)],
    special.erfcx: [mixed(even(-5, 5), POSITIVE)],
    special.erfinv: [mixed(even(-1, 1), logs(1e-9, 1))],
    special.erfcinv: [mixed(even(0, 2), logs(1e-200, 1))],
    special.ndtr: [even(-37, 8)],
    special.log_ndtr: [mixed(even(-40, 8), even(-3, 3))],
    special.ndtri: [mixed(PROBABILITY, logs(1e-200, 1))],
    special.ndtri_exp: [minus(mixed(logs(1e-12, 1e3), logs(1e-3, 1e5)))],
    special.owens_t: [mixed(even(-5, 5), even(-37, 37)), even(-5, 5)],
    special.gamma: [mixed(even(-5, 5), even(0, 100))],
    special.rgamma: [mixed(even(-5, 5), even(0, 100))],
    special.gammaln: [mixed(POSITIVE, even(3, 20), logs(1e-8, 1e9))],
    special.loggamma: [mixed(POSITIVE, logs(1e-8, 1e9))],
    special.digamma: [POSITIVE],
    special.zeta: [mixed(even(1.001, 20), logs(1.0001, 100)), mixed(even(0.1, 20), logs(1, 1e4))],
    special.poch: [POSITIVE, even(-3, 5)],
    special.binom: [mixed(even(-5, 30), logs(1, 300)), even(-3, 20)],
    special.beta: [logs(1e-3, 50), logs(1e-3, 50)],
    special.betaln: [POSITIVE, POSITIVE],
    special.gammainc: [POSITIVE, POSITIVE],
    special.gammaincc: [POSITIVE, POSITIVE],
    special.gammaincinv: [SHAPE, PROBABILITY],
    special.gammainccinv: [SHAPE, PROBABILITY],
    special.betainc: [SHAPE, SHAPE, PROBABILITY],
    special.betaincc: [SHAPE, SHAPE, PROBABILITY],
    special.betaincinv: [SHAPE, SHAPE, PROBABILITY],
    special.betainccinv: [SHAPE, SHAPE, PROBABILITY],
    special.i0: [even(-50, 50)],
    special.i1: [even(-50, 50)],
    special.k0: [mixed(even(0, 50), logs(1e-6, 50))],
    special.k1: [mixed(even(0, 50), logs(1e-6, 50))],
    special.k0e: [POSITIVE],
    special.k1e: [POSITIVE],
    special.kv: [ORDER, PLACE],
    special.kve: [ORDER, PLACE],
    special.iv: [ORDER, PLACE],
    special.ive: [ORDER, PLACE],
    special.jv: [ORDER, PLACE],
    special.yv: [ORDER, PLACE],
    special.y0: [POSITIVE],
    special.y1: [POSITIVE],
    special.exp1: [POSITIVE],
    special.expn: [lambda count: RNG.integers(0, 20, count).astype(float), POSITIVE],
    special.spence: [POSITIVE],
    special.ellipk: [mixed(PROBABILITY, even(-10, 1), minus(logs(1e-3, 1e9)))],
    special.ellipe: [mixed(PROBABILITY, even(-10, 1), minus(logs(1e-3, 1e9)))],
    special.hyp1f1: [even(0.1, 10), even(0.1, 10), even(-10, 10)],
    special.hyp2f1: [even(0.1, 5), even(0.1, 5), even(0.1, 8), even(-0.9, 0.9)],
    special.pseudo_huber: [POSITIVE, REAL],
    special.pseudo_huber_by_delta: [POSITIVE, REAL],
    special.pseudo_huber_by_r: [POSITIVE, REAL],
}
"""Where random values of each operand are drawn; of the others anywhere."""

EDGES = [
    *(np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 1.5, 10.0, -40.0),
    *(88.0, 710.0, -750.0, 1e-300, 1e-8, 1e16, 1e300, -1e300, np.pi, 1e-3, 30.5, 200.0),
]
FEW_EDGES = [np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 0.5, 2.0, -0.5]
MOST: dict[Op, float] = {
    special.kl_div: 200,  # longer floats lose as many digits of what is left
    special.dawsn: 50,
    special.digamma: 50,
    special.erfinv: 20,
    special.owens_t: 2000,  # SciPy's own error far away
    special.log_ndtr: 100,
    special.gamma: 50,
    special.rgamma: 50,
    special.gammaln: 500,
    special.loggamma: 500,
    special.ndtri_exp: 4000,  # SciPy's own error far to the left: 7e-13
    special.poch: 1e4,  # SciPy's own error: it takes differences of logarithms
    special.beta: 500,
    special.betaln: 1e5,
    special.binom: 1e4,  # SciPy's own error
    special.gammainc: 1000,
    special.gammaincc: 500,
    special.gammaincinv: 1e5,
    special.gammainccinv: 1e5,
    special.betainc: 1e4,
    special.betaincc: 1e4,
    special.betaincinv: 1e5,
    special.betainccinv: 1e5,
    special.tanh_slope: 1000,
    special.sigmoid_slope: 500,
    special.inversion_slope: 500,
    special.j0: 1e5,  # near zeros
    special.j1: 1e5,
    special.y0: 1e5,
    special.y1: 1e5,
    special.kv: 2000,
    special.kve: 2000,
    special.iv: 500,
    special.ive: 1000,
    special.expi: 500,
    special.kl_div: 1000,  # as the reference has it: near 1 its long doubles cancel
    special.erfinv: 64,
    special.k1: 32,
}
"""Bounds of relative errors, in units of the dtype's eps; of the others 16, in float32 200."""


def agree(ops: list[Op], dtype: str, count: int = COUNT) -> None:
    """Random values to a bound, edges to a looser one."""
    cases = []
    for op in ops:
        xs = [draw(count) for draw in DOMAINS.get(op, [REAL] * arity(op))]
        if op in SLOPES:
            xs[1] = SLOPES[op](xs[0])
        pool = np.array(EDGES if len(xs) < 3 else FEW_EDGES)
        edges = [x.ravel() for x in np.meshgrid(*[pool] * len(xs), indexing="ij")]
        edges = [x.astype(dtype).astype(float) for x in edges]
        there = [True] * edges[0].size if op not in ACCEPTED else ~ACCEPTED[op](*edges)
        given = [np.concatenate([x, y[there]]).astype(dtype) for x, y in zip(xs, edges)]
        given = [np.where(np.abs(x) < np.finfo(dtype).tiny, x.dtype.type(0), x) for x in given]
        node = node_of(op, [np.dtype(dtype)] * len(xs), len(given[0]))
        assert node is not None
        cases.append((node, given))
    eps, tiny = np.finfo(dtype).eps, np.finfo(dtype).tiny
    for (node, given), (found,) in zip(cases, compute(cases), strict=True):
        assert found.dtype == dtype
        wanted = reference(node.op, given).astype(dtype).astype(float)
        ours = found.astype(float)
        same = (ours == wanted) | (np.isnan(ours) & np.isnan(wanted))
        same |= (np.abs(wanted) <= 4 * tiny) & (np.abs(ours) <= 4 * tiny)  # a factor may be less
        off = np.where(same, 0, np.abs(ours - wanted) / np.abs(wanted) / eps)
        least = 16.0 if dtype == "float64" else 200.0
        bound = np.full(len(off), max(MOST.get(node.op, 0), least))
        bound[count:] = np.maximum(bound[count:], 1e-9 / eps)
        at = np.flatnonzero(~(off <= bound))[:5]
        shown = [(*(float(x[i]) for x in given), "gives", ours[i], "not", wanted[i]) for i in at]
        assert not shown, f"{node.op.name} of {dtype}, off by {off[at]} eps: {shown}"


def reference(op: Op, given: list[np.ndarray]) -> np.ndarray:
    """SciPy's values in float64; of kl_div in longer floats, as SciPy loses digits near 1."""
    wide = [x.astype(float) for x in given]
    wanted = np.asarray(MEANING[op](*wide))
    if op is special.kl_div:
        x, y = [x.astype(np.longdouble) for x in given]
        plain = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
        return np.where(plain, x * (np.log(x) - np.log(y)) - x + y, wanted)
    return wanted


SLOPES: dict[Op, Callable[[np.ndarray], np.ndarray]] = {
    special.sigmoid_slope: scipy.special.expit,
    special.tanh_slope: np.tanh,
}
"""Ops whose second operand is a function of the first."""


def beyond(*xs: np.ndarray) -> np.ndarray:
    """Where an operand is so large or small that squares are no floats."""
    sizes = [np.abs(x) for x in xs]
    return np.any([(s > 1e100) | (s < 1e-100) & (s > 0) | ~np.isfinite(s) for s in sizes], axis=0)


def everywhere(*xs: np.ndarray) -> np.ndarray:
    return np.ones(xs[0].shape, bool)


def infinite(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where an operand is infinite and the other large, or one is -inf."""
    large = (np.abs(x) > 1e15) & (np.abs(y) > 1e15)
    return large & (np.isinf(x) | np.isinf(y)) | (x == -np.inf) | (y == -np.inf)


ACCEPTED: dict[Op, Callable[..., np.ndarray]] = {
    # Squares of distances are no floats where NumPy's formula has them.
    special.inversion_slope: beyond,
    special.pseudo_huber_by_delta: lambda x, y: beyond(x, y) | (x < 0) | np.isnan(x),
    # Pairs that are no point and its function.
    special.sigmoid_slope: everywhere,
    special.tanh_slope: everywhere,
    # SciPy's values where there are none: of nan, at poles, of parameters that are 0 or infinite.
    special.zeta: lambda x, y: ~((np.abs(x) < 1e3) & (y > 0) & (y < 1e15)),
    special.gammaincinv: lambda a, p: ~((a > 1e-3) & (a < 1e10)),
    special.gammainccinv: lambda a, p: ~((a > 1e-3) & (a < 1e10)),
    special.betaincinv: lambda a, b, p: np.isinf(a) | np.isinf(b),
    special.betainccinv: lambda a, b, p: np.isinf(a) | np.isinf(b),
    # SciPy gives nan, 0 or infinity to numbers that it takes for too large.
    **dict.fromkeys(
        (special.kv, special.kve, special.iv, special.ive),
        # Of small arguments and whole orders SciPy's are 0.
        lambda v, x: ~((np.abs(v) < 80) & (np.abs(x) < 700) & (np.abs(x) > 1e-290)),
    ),
    # Whole orders alone are meant, and distances from the next one are lost.
    special.expn: lambda n, x: ~((n >= 0) & (n == np.floor(n)) & (n < 1e3) & (x >= 0)),
    # SciPy's comes by a beta function of n near 0, which has lost digits.
    special.binom: lambda n, k: (np.abs(k) > 1e9) | (np.abs(n) <= 1e-8) & (n != 0),
    # SciPy has lost the phase.
    **dict.fromkeys((special.j0, special.j1, special.y0, special.y1), lambda x: np.abs(x) > 1e10),
    # A float still, while e^x is none.
    special.expi: lambda x: x == 710,
    # Of -1e300 SciPy says infinity: of 1 and b it is 1 / b.
    special.beta: lambda a, b: infinite(a, b) | (np.minimum(a, b) < -1e15),
    special.betaln: lambda a, b: infinite(a, b) | (np.minimum(a, b) < -1e15),
    # NumPy's square of the quotient is no float.
    special.pseudo_huber_by_r: beyond,
}
"""Where answers at edges differ from SciPy's."""
WHOLE = {
    *(special.gamma_density, special.gammainc_by, special.beta_density, special.betainc_by),
    special.digamma_step,
}
"""Ops whose first operands are constant whole numbers."""
SPECIAL = [op for op, name in UFUNC.items() if isinstance(name, str)]
OURS = [op for op in SPECIAL if op not in WHOLE and op not in HOST]
GROUPS = [OURS[k::8] for k in range(8)]


def test_what_runs_on_the_host() -> None:
    assert {op for op in HOST if op.dialect == "elementwise"} == {
        *(special.jv, special.yv, special.hyp1f1, special.hyp2f1)
    }


def test_some_values() -> None:
    ops = [special.sigmoid, special.xlogy, special.kl_div, special.log_ndtr, special.rgamma]
    agree(ops, "float64", 100)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_halves_of_the_least_numbers_are_not_lost(dtype: str) -> None:
    """Where subnormals are 0 the half of such a number is."""
    x = np.finfo(dtype).tiny * np.array([1, 1.5, 1.99, 3, 4, 5], dtype)
    p = gc.tensor("p", {"n": None}, dtype=dtype)
    found = gc.compile([p], gc.special.erfcinv(p), target="jax")(x)
    wanted = scipy.special.erfcinv(x.astype(float))
    np.testing.assert_allclose(found, wanted, rtol=16 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_digamma_has_its_digits_near_its_root(dtype: str) -> None:
    x = (1.4616321449683622 + np.array([-1e-3, -1e-9, 0, 1e-14, 1e-6, 0.1])).astype(dtype)
    p = gc.tensor("p", {"n": None}, dtype=dtype)
    found = gc.compile([p], gc.special.digamma(p), target="jax")(x)
    wanted = scipy.special.digamma(x.astype(float))
    np.testing.assert_allclose(found, wanted, rtol=16 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("group", shared(range(len(GROUPS)), 4))
def test_values(group: int, dtype: str) -> None:
    agree(GROUPS[group], dtype)


@pytest.mark.slow
@pytest.mark.parametrize("op", ACCEPTED, ids=lambda op: op.name)
def test_accepted_differences_are_there(op: Op) -> None:
    """Else the entry of `ACCEPTED` is one too many."""
    edges = [
        x.ravel()
        for x in np.meshgrid(*[np.array(EDGES if arity(op) < 3 else FEW_EDGES)] * arity(op))
    ]
    edges = [x[ACCEPTED[op](*edges)] for x in edges]
    node = node_of(op, [np.dtype(float)] * len(edges), len(edges[0]))
    assert node is not None
    (((found),),) = compute([(node, edges)])
    wanted = reference(op, edges)
    assert not np.allclose(found, wanted, rtol=1e-9, atol=0, equal_nan=True)


ORDERS: dict[Op, list[tuple[int, ...]]] = {
    special.gamma_density: [(0,), (1,), (2,)],
    special.gammainc_by: [(1,), (2,)],
    special.beta_density: [(0, 0, 0, 0), (1, 0, 1, 0), (1, 1, 0, 1)],
    special.betainc_by: [(1, 0), (1, 1)],
    special.digamma_step: [(0,), (1,)],
}


def test_slopes_keep_their_digits() -> None:
    """Also where the function is near 1, so that the difference from there has lost digits."""
    x = gc.tensor("x", {"a": None})
    outputs = [gc.grad(gc.tanh(x).sum(), x), gc.grad(gc.special.sigmoid(x).sum(), x)]
    given = np.linspace(-12, 12, 1801)
    wide = given.astype(np.longdouble)
    wanted = np.cosh(wide) ** -2, np.cosh(wide / 2) ** -2 / 4
    for found, exact in zip(gc.compile([x], outputs, target="jax")(given), wanted, strict=True):
        np.testing.assert_allclose(found, exact, rtol=5 * np.finfo(float).eps)


def test_bessel_functions_of_small_orders_and_arguments() -> None:
    """Where their logarithm runs over hundreds, and large powers cancel."""
    v, x = gc.tensor("v", {"a": None}), gc.tensor("x", {"a": None})
    f = gc.compile([v, x], [gc.special.kv(v, x), gc.special.iv(v, x)], target="jax")
    order, place = FEW_ORDERS(COUNT), TINY(COUNT)
    second, first = f(order, place)
    np.testing.assert_allclose(second, scipy.special.kv(order, place), rtol=1e-12)
    half = place.astype(np.longdouble) / 2  # SciPy's iv is 0 below 1e-200
    series = half**order * (1 + half**2 / (order + 1))
    np.testing.assert_allclose(first, series / scipy.special.gamma(order + 1), rtol=1e-12)


def test_owens_t_far_away() -> None:
    h, a = gc.tensor("h", {"a": None}), gc.tensor("a", {"a": None})
    f = gc.compile([h, a], gc.special.owens_t(h, a), target="jax")
    far = np.linspace(4, 37, 100)
    below = scipy.special.ndtr(-far)
    np.testing.assert_allclose(f(far, np.ones(100)), below * (1 - below) / 2, rtol=1e-12)
    np.testing.assert_allclose(
        f(far, np.full(100, -1e-9)), -5e-10 / np.pi * np.exp(-far * far / 2), rtol=1e-12
    )
    np.testing.assert_allclose(f(far, np.full(100, np.inf)), below / 2, rtol=1e-12)
    between = np.full(100, 0.5)
    np.testing.assert_allclose(f(far, between), scipy.special.owens_t(far, between), rtol=1e-12)


@pytest.mark.slow
def test_derivatives_by_parameters() -> None:
    count = 40
    cases = []
    for op, several in ORDERS.items():
        for orders in several:
            known = [
                leaf.full(value=Literal(np.array(float(n))), shape=(count,), dims=None)
                for n in orders
            ]
            free = 3 if op in (special.beta_density, special.betainc_by) else 2
            xs = [logs(0.3, 50)(count) for _ in range(free)]
            if op in (special.beta_density, special.betainc_by):
                xs[-1] = even(0.01, 0.99)(count)
            inputs = [
                leaf.input_(name=f"x{k}", dtype=np.dtype(float), shape=(count,), dims=None)
                for k in range(free)
            ]
            given = [np.full(count, float(n)) for n in orders[: len(known)]] + xs
            cases.append((op(*known, *inputs), given))
    for (node, given), (found,) in zip(cases, compute(cases), strict=True):
        wanted = MEANING[node.op](*given)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-14, err_msg=str(node))
