"""Shapes, reductions and order: values in all modes, and slopes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytensor", minversion="3.0")

import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.tensor import extra_ops

from graphcore.interop.pytensor import UntranslatedError

from .compared import same_differences, same_slopes, same_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

R = np.random.default_rng(1)
V, M, T = R.normal(size=6), R.normal(size=(3, 4)), R.normal(size=(2, 3, 4))
ONE, NONE = R.normal(size=(1, 4)), R.normal(size=(0, 4))
N = np.int64(3)
INTS = R.integers(0, 5, (3, 4))

SHAPES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "shape": (lambda x: [x.shape, x.shape[0] * x.shape[1], x.size, pt.prod(x.shape[:1])], [M]),
    "shape of an operand": (lambda x: x * x.shape[0] / x.shape[1], [M]),
    "dimshuffle": (lambda x: [x.T, x[:, None, :], x.dimshuffle(1, "x", 0), x[None]], [M]),
    "squeeze": (lambda x: x[0:1].squeeze(0), [M]),
    "reshape": (
        lambda x: [
            x.reshape((2, -1)),
            x.flatten(),
            x.reshape((x.shape[0] * 4,)),
            x.reshape((1, 3, 1, 4)),
        ],
        [M],
    ),
    "reshape to a number": (lambda x: x.reshape(()), [R.normal(size=(1, 1))]),
    "reshape a number": (lambda x: x.reshape((1, 1)), [np.float64(2.0)]),
    "reshape at the call": (
        lambda x, n: [x.reshape((n, x.size // n)), x.reshape((n, -1)), x.reshape((-1, 2, n - 1))],
        [M, N],
    ),
    "join axes": (lambda x: [pt.join_dims(x, 1, 2), pt.join_dims(x, 0, 2)], [T]),
    "split axes": (lambda x: pt.split_dims(x, (2, 3), axis=0), [V]),
    "flatten": (lambda x: [x.flatten(2), x.ravel()], [T]),
    "alloc": (
        lambda x, n: [
            pt.alloc(x, n, 3, 4),
            pt.zeros((n, 2)),
            pt.full_like(x, 2.0),
            pt.ones_like(x),
        ],
        [M, N],
    ),
    "empty": (lambda x: pt.empty((3, 2)).shape, [M]),
    "fill": (lambda x: [pt.zeros_like(x), pt.fill(x, 3.5), pt.broadcast_to(x, (2, 3, 4))], [M]),
    "join": (
        lambda x, y: [pt.concatenate([x, y, x]), pt.concatenate([x, x * 2], axis=1)],
        [M, NONE],
    ),
    "stack": (
        lambda x, y: [pt.stack([x, y]), pt.stack([x, y], axis=-1), pt.stack([x.sum(), 2.0])],
        [M, M * 2],
    ),
    "split": (
        lambda x: [
            *pt.split(x, [1, 3], n_splits=2, axis=1),
            *pt.split(x, [1, 1, 1], n_splits=3, axis=0),
        ],
        [M],
    ),
    "eye": (
        lambda n: [pt.eye(3), pt.eye(n, 4, 1), pt.eye(4, n, -1), pt.identity_like(pt.ones((n, n)))],
        [N],
    ),
    "arange": (
        lambda n: [
            pt.arange(5),
            pt.arange(n),
            pt.arange(1, n + 4, 2),
            pt.arange(n, -2, -1),
            pt.arange(0.0, 2.0, 0.5),
        ],
        [N],
    ),
    "linspace": (lambda x: pt.linspace(0, x.sum(), 5), [V]),
    "diagonals": (
        lambda x: [pt.diag(x), pt.diagonal(x, 1), pt.diagonal(x, -1), pt.trace(x[:3, :3])],
        [M],
    ),
    "diagonals of more axes": (lambda x: [pt.diagonal(x, 0, 1, 2), pt.diagonal(x, 1, 0, 2)], [T]),
    "diagonal matrices": (lambda x: [pt.diag(x), extra_ops.diff(x)], [V]),
    "triangles": (lambda x: [pt.tril(x), pt.triu(x, 1), pt.tri(3, 4)], [M]),
    "tile": (lambda x: [pt.tile(x, (2, 1)), pt.tile(x, (2, 2, 1))], [M]),
    "repeat": (
        lambda x: [pt.repeat(x, 2, axis=0), pt.repeat(x, [1, 0, 3], axis=0), pt.repeat(x, 3)],
        [M],
    ),
    "repeat at the call": (lambda x, n: pt.repeat(x, n, axis=0), [M, np.array([2, 0, 1])]),
    "flip and roll": (
        lambda x: [x[::-1], pt.flip(x), pt.roll(x, 2, axis=1), pt.moveaxis(x, 0, 1)],
        [M],
    ),
    "pad": (
        lambda x: [pt.pad(x, 1), pt.pad(x, ((0, 1), (2, 0)), mode="constant", constant_values=2.0)],
        [M],
    ),
    "pad by edges": (
        lambda x: [
            pt.pad(x, 2, mode="edge"),
            pt.pad(x, 1, mode="reflect"),
            pt.pad(x, 1, mode="wrap"),
        ],
        [M],
    ),
    "kron": (lambda x, y: pt.linalg.kron(x, y), [M, M[:2]]),
    "specify shape": (
        lambda x: [pt.specify_shape(x, (3, None)), pt.specify_shape(x, (None, 4)) * 2],
        [M],
    ),
    "unravel": (lambda i: [*pt.unravel_index(i, (3, 4))], [np.array([0, 5, 11])]),
    "ravel": (
        lambda i, j: [
            pt.ravel_multi_index((i, j), (3, 4)),
            pt.ravel_multi_index((i, j), (3, 4), order="F"),
        ],
        [np.array([0, 2]), np.array([3, 1])],
    ),
    "ravel of fewer axes": (
        lambda i, j: pt.ravel_multi_index((j, i), (3, 4)),
        [np.array([0, 2]), np.array([[2, 1], [0, 2]])],
    ),
    "roll an empty axis": (lambda x: [pt.roll(x, 2, axis=0), pt.roll(x, -1, axis=1)], [NONE]),
    "bartlett": (
        lambda n: [extra_ops.bartlett(n), extra_ops.bartlett(1), extra_ops.bartlett(6)],
        [N],
    ),
    "vander": (lambda x: pt.vander(x, 3) if hasattr(pt, "vander") else x, [V]),
    "view": (lambda x: [pt.tensor_copy(x), pytensor.gradient.zero_grad(x) + x], [M]),
}
REDUCTIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "sums": (
        lambda x: [x.sum(), x.sum(0), x.sum((0, 2)), x.sum(-1, keepdims=True), pt.sum(x, axis=())],
        [T],
    ),
    "products": (lambda x: [x.prod(), x.prod(1), x.prod((0, 2))], [T]),
    "extremes": (lambda x: [x.max(), x.min(1), x.max((0, 2)), pt.ptp(x, axis=0)], [T]),
    "means": (lambda x: [x.mean(), x.var(1), x.std((0, 2)), x.norm(2)], [T]),
    "argmax": (lambda x: [x.argmax(), x.argmax(1), x.argmin(0), pt.argmax(x, axis=(0, 2))], [T]),
    "max and argmax": (lambda x: [*pt.max_and_argmax(x, axis=1)], [T]),
    "logic": (
        lambda x: [(x > 0).any(), (x > 0).all(1), (x > 0).sum(0), pt.all(x > -9), (x > 0).mean()],
        [T],
    ),
    "softmax": (
        lambda x: [
            pt.special.softmax(x, axis=1),
            pt.special.log_softmax(x, axis=-1),
            pt.special.softmax(x, axis=None),
        ],
        [T],
    ),
    "logsumexp": (
        lambda x: [
            pt.logsumexp(x),
            pt.logsumexp(x, axis=1),
            pt.logsumexp(x, axis=1, keepdims=True),
        ],
        [T],
    ),
    "logaddexp": (
        lambda x, y: (
            [pt.logaddexp(x, y), pt.xlogx.xlogx(abs(x))]
            if hasattr(pt, "xlogx")
            else pt.logaddexp(x, y)
        ),
        [M, M[::-1]],
    ),
    "logaddexp of fewer axes": (
        lambda x, y: [pt.logaddexp(x, y), pt.logaddexp(y, x, 1.0)],
        [R.normal(size=4), R.normal(size=(4, 4))],
    ),
    "xlogy": (
        lambda x, y: [
            x + y,
            *[vars(pt.special)[f](x, y) for f in ("xlogy", "xlog1py") if hasattr(pt.special, f)],
        ],
        [np.arange(4.0), R.uniform(0, 1, (4, 4))],
    ),
    "cumulative": (
        lambda x: [pt.cumsum(x, axis=1), pt.cumprod(x, axis=0), pt.cumsum(x), pt.cumprod(x)],
        [M],
    ),
    "sort": (
        lambda x: [pt.sort(x), pt.sort(x, axis=0), pt.sort(x, axis=None), pt.argsort(x, axis=1)],
        [M],
    ),
    "searchsorted": (
        lambda x, v: [pt.searchsorted(pt.sort(x), v), pt.searchsorted(pt.sort(x), v, side="right")],
        [V, M],
    ),
    "searchsorted by a sorter": (lambda x, v: pt.searchsorted(x, v, sorter=pt.argsort(x)), [V, M]),
    "unique": (
        lambda x: [
            *pt.unique(x, return_index=True, return_inverse=True, return_counts=True),
            pt.unique(x),
        ],
        [INTS],
    ),
    "unique slices": (
        lambda x: [
            *pt.unique(x, True, True, True, axis=0),
            pt.unique(x, axis=1),
            pt.unique(x[None, :, :2], axis=1),
        ],
        [INTS[[0, 2, 0, 1, 2]] % 3],
    ),
    "nonzero": (lambda x: [*pt.nonzero(x), pt.flatnonzero(x)], [INTS]),
    "bincount": (lambda x: pt.bincount(x), [INTS.ravel()]),
    "top": (lambda x: pt.sort(x)[-2:], [V]),
    "diff": (lambda x: [pt.diff(x), pt.diff(x, n=2, axis=0)], [M]),
    "median": (
        lambda x: [pt.median(x), pt.median(x, axis=1)] if hasattr(pt, "median") else x.sum(),
        [M],
    ),
    "quadratic": (
        lambda x: [pt.sqr(x).sum(1), pt.math.sum(x, dtype="float32"), pt.sum(pt.cast(x, "int8"))],
        [M],
    ),
    "products without zeros": (
        lambda x: [pt.prod(x * (x > 0), axis=0, no_zeros_in_input=True)],
        [M],
    ),
}
CASES = SHAPES | REDUCTIONS
NO_FLOATS = {
    *("shape", "empty", "eye", "arange", "unravel", "ravel", "ravel of fewer axes", "bartlett"),
    *(
        "argmax",
        "unique",
        "unique slices",
        "nonzero",
        "bincount",
        "searchsorted",
        "searchsorted by a sorter",
    ),
}
"""Cases whose results or operands are whole numbers."""
OWN_SLOPES = {"products without zeros", "view", "quadratic", "xlogy"}
"""Slopes that PyTensor lacks, or has nan for, or makes what a user asked for."""


@pytest.mark.parametrize("static", [False, True], ids=["open", "static"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, static: bool) -> None:
    build, arrays = CASES[name]
    if static and name in ("eye", "arange", "bartlett", "alloc"):
        pytest.skip("has numbers alone")
    same_values(build, arrays, static)


@pytest.mark.parametrize("name", [name for name in CASES if name not in NO_FLOATS | OWN_SLOPES])
def test_slopes(name: str) -> None:
    build, arrays = CASES[name]
    same_slopes(build, arrays)


@pytest.mark.parametrize("name", OWN_SLOPES - {"view", "quadratic"})
def test_slopes_are_those_of_differences(name: str) -> None:
    same_differences(*CASES[name], rtol=1e-4)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (1, 4), (1, 1)])
@pytest.mark.parametrize("static", [False, True], ids=["open", "static"])
def test_empty_and_size_1(shape: tuple[int, ...], static: bool) -> None:
    x = R.normal(size=shape)
    same_values(
        lambda x: [
            x.sum(),
            x.sum(0),
            x.prod(1),
            x.T,
            x.flatten(),
            pt.cumsum(x, axis=0),
            x + x[0] if shape[0] else x,
        ],
        [x],
        static,
    )


def test_static_size_1_axes_have_no_dim() -> None:
    same_values(
        lambda x, y: [
            x.sum(0),
            x.max(1),
            x.argmax(0),
            pt.special.softmax(x, axis=0),
            pt.sort(x, axis=0),
            x.reshape((2, 2)),
            pt.concatenate([x, y]),
            pt.cumsum(x, axis=0),
        ],
        [ONE, M],
        static=True,
    )


def test_a_dropped_axis_must_have_size_1() -> None:
    x = pt.matrix("x")
    y = pytensor.tensor.elemwise.DimShuffle(input_ndim=2, new_order=(1,))(
        pt.specify_shape(x, (1, None))
    )
    f = pytensor.function([x], y, mode="GRAPHCORE")
    np.testing.assert_array_equal(f(M[:1]), M[0])
    with pytest.raises(Exception, match=r"(?s)size|shape"):
        f(M)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "bool"])
def test_reductions_of_bits(dtype: str) -> None:
    from pytensor.tensor.elemwise import CAReduce

    x = R.integers(-100, 100, (3, 4)).astype(dtype)
    ops = [ps.and_, ps.or_, ps.xor]
    same_values(lambda x: [CAReduce(op, axis=axis)(x) for op in ops for axis in (None, 0, 1)], [x])


def test_extremes_of_nothing() -> None:
    initial = lambda x: [pt.max(x, axis=1, initial=-np.inf), pt.min(x, axis=1, initial=np.inf)]
    try:
        initial(pt.matrix())
    except TypeError:
        pytest.skip("this version of PyTensor has no such extremes")
    for x in (M, M[:, :0], (M * 9).astype(int), INTS[:, :0]):
        same_values(initial, [x])
    with pytest.raises(ValueError, match="max"):
        same_values(lambda x: pt.max(x), [M[:0]])


def test_logaddexp_of_narrow_integers_is_in_the_dtype_of_the_result() -> None:
    x = pt.vector("x", dtype="bool")
    f = pytensor.function([x], pt.logaddexp(x, x), mode="GRAPHCORE")
    np.testing.assert_allclose(f(np.array([False])), np.log(2.0), rtol=1e-6)


def test_running_sums_of_bools_are_refused() -> None:
    """PyTensor's own modes differ: its type is bool, and some of them count."""
    x = pt.vector("x", dtype="bool")
    with pytest.raises(UntranslatedError, match=r"(?s)bool, which holds no counts.*cure: cast"):
        pytensor.function([x], pt.cumsum(x), mode="GRAPHCORE")


def test_sizes_of_a_batch_must_be_the_same() -> None:
    from pytensor.graph.replace import vectorize_graph

    v, n, vs, ns = pt.vector("v"), pt.lscalar("n"), pt.matrix("vs"), pt.lvector("ns")
    y = vectorize_graph(v[:n] * 2, {v: vs, n: ns})
    f = pytensor.function([vs, ns], y, mode="GRAPHCORE")
    np.testing.assert_array_equal(f(M, [-1, -1, -1]), 2 * M[:, :-1])
    with pytest.raises(ValueError, match="differs in a batch: 1 and 3"):
        f(M, [3, 1, 3])


def test_complex_numbers_summed_to_real_ones() -> None:
    z = M + 1j * M[::-1]
    x = pt.zmatrix("x")
    y = pt.math.Sum(axis=1, dtype="float64", acc_dtype="complex128")(x)
    np.testing.assert_allclose(pytensor.function([x], y, mode="GRAPHCORE")(z), M.sum(1))


@pytest.mark.parametrize("order", ["C", "F"])
def test_positions_that_do_not_fit_are_refused(order: str) -> None:
    i = pt.lvector("i")
    unravel = pytensor.function([i], pt.unravel_index(i, (3, 4), order=order), mode="GRAPHCORE")
    ravel = pytensor.function(
        [i], pt.ravel_multi_index((i, i + 1), (3, 4), order=order), mode="GRAPHCORE"
    )
    assert [y.tolist() for y in unravel([11])] == [[2], [3]]
    for f, k in ((unravel, 12), (unravel, -1), (ravel, 3), (ravel, -1)):
        with pytest.raises(IndexError, match="is outside"):
            f([k])


def test_a_size_by_floats_that_the_call_gives_is_refused() -> None:
    x = pt.scalar("x")
    with pytest.raises(UntranslatedError, match=r"(?s)ARange of PyTensor: only the call.*cure:"):
        pytensor.function([x], pt.arange(x), mode="GRAPHCORE")
