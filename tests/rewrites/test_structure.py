"""What is known of matrices, what follows from it, and that each matrix is factored once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.analysis.matrices import Fact, facts
from graphcore.ir.graph import Graph
from graphcore.ops import leaf, tensor
from graphcore.rewrites.engine import simplify
from graphcore.rewrites.lower import lower_names
from graphcore.rewrites.structure import structure

L = gc.linalg
X = gc.tensor("x", {"row": 4, "col": 4})
B = gc.tensor("b", {"row": 4})
BATCH = gc.tensor("x", {"batch": 2, "row": 4, "col": 4})
LOWER, UPPER, UNITARY = Fact.LOWER, Fact.UPPER, Fact.UNITARY
SEMIDEFINITE = Fact.SEMIDEFINITE
DIAGONAL = {LOWER, UPPER}
POSITIVE = {Fact.HERMITIAN, SEMIDEFINITE, Fact.DEFINITE}


def as_square(x: gc.Tensor, new: str) -> gc.Tensor:
    return x.rename({new: "col" if "row" in x.dims else "row"})


def gram(x: gc.Tensor) -> gc.Tensor:
    return gc.dot(x, x.rename(row="other"), dim="col").rename(other="col")


def complex_gram(x: gc.Tensor) -> gc.Tensor:
    return gc.dot(x, gc.conj(x).rename(row="other"), dim="col").rename(other="col")


GRAM = {Fact.HERMITIAN, SEMIDEFINITE}
EYE = gc.eye({"row": 4, "col": 4})
Z = gc.tensor("z", {"row": 4, "col": 4}, dtype="complex128")
Q = as_square(L.qr(X).q, "rank")
SAMPLES = gc.tensor("samples", {"sample": None, "row": 4})
N = SAMPLES.sizes["sample"]
OF_SAMPLES = gc.dot(SAMPLES, SAMPLES.rename(row="col"), dim="sample")
KNOWN: dict[str, tuple[gc.Tensor, set[Fact]]] = {
    "nothing": (X, set()),
    "cholesky": (L.cholesky(X), {LOWER}),
    "cholesky upper": (L.cholesky(X, upper=True), {UPPER}),
    "transpose": (L.matrix_transpose(L.cholesky(X)), {UPPER}),
    "tril": (gc.tril(X), {LOWER}),
    "triu": (gc.triu(X), {UPPER}),
    "eye": (EYE, DIAGONAL | POSITIVE),
    "scaled eye": (0.5 * EYE, DIAGONAL | POSITIVE),
    "negative eye": (-EYE, DIAGONAL | {Fact.HERMITIAN}),
    "qr": (Q, {UNITARY}),
    "r": (as_square(L.qr(X).r, "rank"), {UPPER}),
    "eigh": (as_square(L.eigh(X).vectors, "eigen"), {UNITARY}),
    "sum": (gc.tril(X) + L.cholesky(X), {LOWER}),
    "mixed": (gc.tril(X) + gc.triu(X), set()),
    "gram": (gram(X), GRAM),
    "definite": (gram(X) + 1e-3 * EYE, POSITIVE),
    "less": (gram(X) - 1e-3 * EYE, {Fact.HERMITIAN}),
    "complex gram": (complex_gram(Z), GRAM),
    "complex, without conjugation": (gram(Z), set()),
    "in single precision": (Q.astype("float32"), {UNITARY}),
    "in double again": (Q.astype("float32").astype("float64"), set()),
    "rounded": (Q.astype("int64").astype("float64"), set()),
    "rounded triangle": (gc.tril(X).astype("int64").astype("float64"), {LOWER}),
    "rounded gram": (gram(X).astype("int64").astype("float64"), {Fact.HERMITIAN}),
    "real part of unitary": (gc.real(Q.astype("complex128")), set()),
    "complex unitary": (Q.astype("complex128"), {UNITARY}),
    "real part of gram": (gc.real(gram(X).astype("complex128")), GRAM),
    "rounded eye": (EYE.astype("int64").astype("float64"), DIAGONAL | {Fact.HERMITIAN}),
    "by a complex number": (1j * gc.tril(X), {LOWER}),
    "by a real one of complex dtype": (gram(X).astype("complex128") * (2 + 0j), GRAM),
    "complex": (gram(X).astype("complex128") * 1j, set()),
    "by a number known at the call": (gram(X) * gc.tensor("s", {}), {Fact.HERMITIAN}),
    "by one number for each row": (gram(X) * B, set()),
    "divided by a number": (gram(X) / 3.0 + 1e-3 * EYE, POSITIVE),
    "divided by a complex number": (gram(X).astype("complex128") / 2j, set()),
    "divided by one known at the call": (gram(X) / gc.tensor("s", {}), set()),
    "divided by one number for each row": (gram(X) / B, set()),
    "divided by a negative number": (gram(X) / -3.0, set()),
    "divided by zero": (gc.tril(X) / 0.0, set()),
    "divided by a size": (OF_SAMPLES / N + 1e-3 * EYE, POSITIVE),
    "by one over a size": ((1 / N) * OF_SAMPLES + 1e-3 * EYE, POSITIVE),
    "divided by what may be negative": (OF_SAMPLES / (N - 1), set()),
    "by a size that may be 0": ((OF_SAMPLES + EYE) * N, {Fact.HERMITIAN}),
    "by a size of one at least": ((OF_SAMPLES + EYE) * (N + 1), POSITIVE),
    "one for all of a batch": (gram(BATCH) + EYE, POSITIVE),
    "each row for all of a batch": (gc.tril(BATCH) + B, set()),
    "exponential": (L.expm(X), set()),
    "exponential of a Hermitian one": (L.expm(gram(X)), POSITIVE),
}


def plain(*xs: gc.Tensor) -> Graph:
    graph = lower_names(Graph((), tuple(x.node for x in xs)))
    return simplify(graph, structure)


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known(name: str) -> None:
    x, wanted = KNOWN[name]
    (node,) = plain(x).outputs
    assert facts(node) == wanted


def test_tall_factors_are_not_unitary() -> None:
    tall = gc.tensor("t", {"row": 5, "col": 3})
    (node,) = plain(L.qr(tall).q).outputs
    assert facts(node) == frozenset()


EINSUMS: dict[str, tuple[tuple[tuple[int, ...], ...], tuple[int, ...], set[Fact]]] = {
    "gram": (((0, 1, 2), (0, 3, 2)), (0, 1, 3), GRAM),
    "gram of the other order": (((0, 1, 2), (0, 3, 2)), (0, 3, 1), GRAM),
    "of columns": (((0, 1, 2), (0, 1, 3)), (0, 2, 3), GRAM),
    "summed over the batch": (((0, 1, 2), (0, 3, 2)), (1, 3), GRAM),
    "over the batch alone": (((0, 1, 2), (0, 3, 2)), (2, 1, 3), GRAM),
    "times its transpose": (((0, 1, 2), (0, 2, 1)), (0, 1, 2), {Fact.HERMITIAN}),
    "the same, summed": (((0, 1, 2), (0, 2, 1)), (1, 2), {Fact.HERMITIAN}),
    "squares": (((0, 1, 2), (0, 1, 2)), (0, 1, 2), set()),
    "between elements of the batch": (((0, 1, 2), (3, 1, 2)), (1, 0, 3), GRAM),
    "of other elements": (((0, 1, 2), (3, 4, 2)), (0, 1, 4), set()),
    "product": (((0, 1, 2), (0, 2, 3)), (0, 1, 3), set()),
}


@pytest.mark.parametrize("name", EINSUMS)
def test_what_is_known_of_a_matrix_with_itself(name: str) -> None:
    operands, result, wanted = EINSUMS[name]
    x = leaf.input_(name="x", dtype=np.dtype(float), shape=(4, 4, 4), dims=None)
    y = tensor.einsum(x, x, operands=operands, result=result)
    assert facts(y) == wanted
    a = np.random.default_rng(0).normal(size=(4, 4, 4))
    letters = [word for pair in zip([a, a], operands, strict=True) for word in pair]
    if SEMIDEFINITE in wanted:
        assert np.linalg.eigvalsh(np.einsum(*letters, result)).min() > -1e-12


def test_facts_of_a_long_sum() -> None:
    """As deep as a graph may be."""
    k = gc.tril(X)
    for i in range(1500):
        k = k + gc.tril(X) * float(i)
    f = gc.compile([X, B], L.solve(k, B))
    assert set(ops(f)) == {"solve_triangular"}
    np.testing.assert_allclose(f(np.eye(4), b), b / (1 + 1499 * 750))


def ops(f: gc.Compiled) -> Counter[str]:
    nodes = f.stages["optimized"].every_node()
    return Counter(node.op.name for node in nodes if node.op.dialect == "linalg")


def inverse_times(x: gc.Tensor) -> gc.Tensor:
    return gc.dot(L.inv(x), B, dim="row")


Case = tuple[Callable[[gc.Tensor], gc.Tensor], Callable[[Any, Any], Any], set[str]]
b = np.array([1.0, -2.0, 3.0, 0.5])
solve = lambda a: np.linalg.solve(a, np.broadcast_to(b[:, None], (*a.shape[:-1], 1)))[..., 0]
t = lambda a: np.swapaxes(a, -1, -2)
diagonal = lambda a: np.diagonal(a, axis1=-2, axis2=-1)
FOLLOWS: dict[str, Case] = {
    "inverse times": (inverse_times, lambda a, b: solve(a), {"solve"}),
    "times inverse": (
        lambda x: gc.dot(L.inv(x), B.rename(row="col"), dim="col"),
        lambda a, b: solve(t(a)), {"solve"},
    ),
    "log det": (
        lambda x: gc.log(L.det(gram(x))), lambda a, b: np.log(np.linalg.det(a @ t(a))), {"slogdet"}
    ),
    "log abs det": (
        lambda x: gc.log(abs(L.det(x))), lambda a, b: np.log(np.abs(np.linalg.det(a))), {"slogdet"}
    ),
    "log det negative": (
        lambda x: gc.log(L.det(x * gc.constant([-1.0, 1, 1, 1], "row"))),
        lambda a, b: np.log(np.linalg.det(a * np.array([-1.0, 1, 1, 1])[:, None])), {"slogdet"},
    ),
    "lower": (
        lambda x: L.solve(gc.tril(x), B), lambda a, b: solve(np.tril(a)), {"solve_triangular"}
    ),
    "upper": (
        lambda x: L.solve(gc.triu(x), B), lambda a, b: solve(np.triu(a)), {"solve_triangular"}
    ),
    "unitary": (
        lambda x: L.solve(as_square(L.qr(x).q, "rank"), B),
        lambda a, b: solve(np.linalg.qr(a)[0]), {"qr"},
    ),
    "a multiple of unitary": (
        lambda x: L.solve(2 * as_square(L.qr(x).q, "rank"), B),
        lambda a, b: solve(2 * np.linalg.qr(a)[0]), {"qr", "solve"},
    ),
    "inverse of unitary": (
        lambda x: L.inv(as_square(L.qr(x).q, "rank")),
        lambda a, b: np.linalg.inv(np.linalg.qr(a)[0]), {"qr"},
    ),
    "det of triangle": (
        lambda x: L.det(gc.tril(x)), lambda a, b: np.linalg.det(np.tril(a)), set()
    ),
    "slogdet of triangle": (
        lambda x: L.slogdet(gc.triu(x)).logabsdet,
        lambda a, b: np.linalg.slogdet(np.triu(a))[1], set(),
    ),
    "masked triangle": (
        lambda x: L.solve_triangular(gc.tril(x), B, lower=True),
        lambda a, b: solve(np.tril(a)), {"solve_triangular"},
    ),
    "inverse of a diagonal": (
        lambda x: L.inv(gc.tril(gc.triu(x)), check=False) @ B.rename(row="col"),
        lambda a, b: 1 / diagonal(a) * b, set(),
    ),
    "diagonal of a triangle": (
        lambda x: L.solve_triangular(gc.triu(L.cholesky(gram(x))), B, lower=True),
        lambda a, b: b / diagonal(np.linalg.cholesky(a @ t(a))), {"cholesky", "solve_triangular"},
    ),
    "masked right-hand side": (
        lambda x: L.solve_triangular(x, gc.where(B > 0, B, 0)),
        lambda a, b: np.linalg.solve(np.triu(a), np.maximum(b, 0)[:, None])[..., 0],
        {"solve_triangular"},
    ),
    "triangle masked by values": (
        lambda x: L.solve_triangular(gc.where(x >= -1e9 * EYE + EYE, gc.tril(x), 0), B, lower=True),
        lambda a, b: solve(np.where(a >= -1e9 * np.eye(4) + np.eye(4), np.tril(a), 0)),
        {"solve_triangular"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("x", [X, BATCH], ids=["one", "batch"])
@pytest.mark.parametrize("name", FOLLOWS)
def test_what_follows(name: str, x: gc.Tensor) -> None:
    ours, theirs, wanted = FOLLOWS[name]
    values = np.random.default_rng(3).normal(size=x.shape) + 2 * np.eye(4)
    f = gc.compile([x, B], ours(x))
    assert set(ops(f)) == wanted
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(f(values, b), theirs(values, b), 1e-9, 1e-9)


def test_one_matrix_is_factored_once() -> None:
    """Values and gradients of solves and determinants of one matrix share its LU factors."""
    y = L.slogdet(X).logabsdet + L.solve(X, B).sum() + L.det(X) + gc.sin(L.inv(X)).sum()
    f = gc.compile([X, B], [y, gc.grad(y, X)])
    assert ops(f)["lu_factor"] == 1
    assert not {"solve", "inv", "det", "slogdet"} & ops(f).keys()
    a = np.random.default_rng(1).normal(size=(4, 4)) + 3 * np.eye(4)
    wanted = (
        np.linalg.slogdet(a)[1] + solve(a).sum() + np.linalg.det(a) + np.sin(np.linalg.inv(a)).sum()
    )
    np.testing.assert_allclose(f(a, b)[0], wanted)


def test_a_definite_matrix_is_factored_by_cholesky() -> None:
    k = gram(X) + 0.1 * EYE
    y = L.slogdet(k).logabsdet + gc.dot(B, L.solve(k, B).rename(col="row"))
    f = gc.compile([X, B], [y, gc.grad(y, X)])
    assert ops(f)["cholesky"] == 1
    assert not {"lu_factor", "solve", "slogdet", "inv"} & ops(f).keys()
    a = np.random.default_rng(1).normal(size=(4, 4))
    full = a @ a.T + 0.1 * np.eye(4)
    np.testing.assert_allclose(f(a, b)[0], np.linalg.slogdet(full)[1] + b @ solve(full))


def test_transposed_solves_of_complex_definite_matrices() -> None:
    """They share the Cholesky factor; aᵀ is the conjugate of a."""
    k = complex_gram(Z) + EYE
    right = B.astype("complex128")
    turned = L.solve(L.matrix_transpose(k), right)
    f = gc.compile([Z, B], [L.solve(k, right), turned, L.inv(k), gc.grad(gc.real(turned).sum(), Z)])
    assert ops(f)["cholesky"] == 1
    assert not {"lu_factor", "solve", "inv"} & ops(f).keys()
    rng = np.random.default_rng(1)
    a = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4))
    full = a @ a.conj().T + np.eye(4)
    for found, wanted in zip(f(a, b), [full, full.T], strict=False):
        np.testing.assert_allclose(found, np.linalg.solve(wanted, b))


def test_vectors_give_the_values_as_well() -> None:
    for values, vectors in (
        (L.eigvalsh(X), L.eigh(X).vectors),
        (L.svdvals(X), L.svd(X).u),
    ):
        f = gc.compile([X], [values, vectors])
        assert sum(ops(f).values()) == 1
        g = gc.compile([X], values)
        assert ops(g).keys() <= {"eigvalsh", "svdvals"}


def test_an_inverse_that_is_wanted_shares_its_factors() -> None:
    inverse = L.inv(X)
    f = gc.compile([X, B], [inverse, gc.dot(inverse, B, dim="row")])
    assert ops(f) == {"lu_factor": 1, "lu_solve": 2}


def test_solves_of_a_cholesky_factor_check_nothing() -> None:
    """The factorisation has: what is not positive definite is an error of that one."""
    f = gc.compile([X, B], L.cho_solve(L.cholesky(X), B))
    solves = [n for n in f.stages["optimized"].every_node() if n.op.name == "solve_triangular"]
    assert [n.attrs["check"] for n in solves] == [False, False]
    np.testing.assert_allclose(f(4 * np.eye(4), b), b / 4)
    with pytest.raises(gc.GraphError, match="not positive definite"):
        f(np.zeros((4, 4)), b)


@pytest.mark.parametrize("definite", [False, True])
@pytest.mark.parametrize("n", [4, 64])
def test_batches_of_large_matrices_share_their_factors(n: int, definite: bool) -> None:
    """Small ones are solved all in one call instead."""
    x = gc.tensor("x", {"batch": None, "row": n, "col": n})
    right = gc.tensor("right", {"batch": None, "row": n})
    k = gram(x) + gc.eye({"row": n, "col": n}) if definite else x
    y = L.solve(k, right)
    f = gc.compile([x, right], [y, gc.grad(gc.sin(y).sum(), right), L.slogdet(k).logabsdet])
    counts = ops(f)
    assert counts.get("cholesky" if definite else "lu_factor", 0) == (n == 64)
    assert counts.get("solve", 0) == (0 if n == 64 else 2)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, n, n)), rng.normal(size=(3, n))
    full = a @ a.transpose(0, 2, 1) + np.eye(n) if definite else a
    found, slope, size = f(a, b)
    wanted = np.linalg.solve(full, b[..., None])[..., 0]
    back = np.linalg.solve(full.transpose(0, 2, 1), np.cos(wanted)[..., None])[..., 0]
    for ours, theirs in ((found, wanted), (slope, back), (size, np.linalg.slogdet(full)[1])):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    a[1] = 0
    if not definite:
        with pytest.raises(gc.GraphError, match="singular"):
            f(a, b)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", ["x", "batch"])
def test_the_factor_of_a_factor_times_its_transpose_is_the_factor(name: str, native: bool) -> None:
    x = {"x": X, "batch": BATCH}[name]
    on = gc.equal(gc.arange(4, dim="row"), gc.arange(4, dim="col"))
    below = gc.tril(x, dims=("row", "col"))
    a = np.random.default_rng(0).normal(size=x.shape)
    filled = gc.where(on, gc.exp(x), below).transpose(*x.dims)
    for factor in (
        L.cholesky(gram(x) + 4 * gc.where(on, 1.0, 0.0), dims=("row", "col")),
        *([filled] if x is X else []),
    ):
        again = L.cholesky(gram(factor), dims=("row", "col"))
        asked = [again, factor, gc.grad((again**3).sum(), x), gc.grad((factor**3).sum(), x)]
        f = gc.compile([x], asked, native=native)
        found = f(a)
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[2], found[3])


def test_the_factor_of_other_squares_is_computed() -> None:
    """The diagonal may be negative, the other product is lᵀ l, or a failure would be hidden."""
    unchecked = L.cholesky(gram(X), dims=("row", "col"), check=False)
    factor = L.cholesky(gram(X), dims=("row", "col"))
    for other in (
        L.cholesky(gram(gc.tril(X, dims=("row", "col"))), dims=("row", "col")),
        L.cholesky(gram(factor.rename(row="col", col="row")), dims=("row", "col")),
        L.cholesky(gram(unchecked), dims=("row", "col")),
    ):
        simple = gc.compile([X], other, native=False).stages["simplified"]
        assert simple.outputs[0].op.name == "cholesky"
        assert simple.outputs[0].inputs[0].op is tensor.einsum
