"""Functions of Hermitian matrices written by eigenvalues and eigenvectors: their derivatives are
those of the function, to any order, also where eigenvalues are equal or nearly so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore import linalg as L

N = 4
T = gc.Tensor
RC: Any = {"row": N, "col": N}
RANDOM = np.random.default_rng(0)
TURN = np.linalg.qr(RANDOM.normal(size=(N, N)))[0]
UNITARY = np.linalg.qr(RANDOM.normal(size=(N, N)) + 1j * RANDOM.normal(size=(N, N)))[0]


def of_values(*values: float, turn: np.ndarray = TURN) -> np.ndarray:
    return (turn * np.array(values)) @ turn.conj().T


MATRICES = {
    "one": np.eye(N),
    "zero": np.zeros((N, N)),
    "diagonal": np.diag([1.0, 1.0, 2.0, 2.0]),
    "a projection": of_values(1, 1, 0, 0),
    "two pairs": of_values(1, 1, 2, 2),
    "three the same": of_values(1, 1, 1, -2),
    "complex pairs": of_values(1, 1, 2, 2, turn=UNITARY),
    "within ten units": np.diag([1.0, 1 + 2e-15, 1 + 4e-15, 3.0]),
    "at 1e-12": np.diag([1.0, 1 + 1e-12, 1 + 3e-12, 1 + 7e-12]),
    "at 1e-9": np.diag([1.0, 1 + 1e-9, 2, 2 + 3e-9]),
    "at 1e-7": np.diag([1.0, 1 + 1e-7, 1 + 3e-7, -1.0]),
    "at 1e-5": np.diag([1.0, 1 + 1e-5, 1 - 2e-5, 0.5]),
    "apart": of_values(0.3, 1.1, -0.7, 2.0),
}
CLOSE = [name for name in MATRICES if name.startswith("at ")]
FIRST = ("two pairs", "complex pairs", "within ten units", "at 1e-7")
MOST = [pytest.param(at, marks=() if at in FIRST else pytest.mark.slow) for at in MATRICES]
SINGLE = [pytest.param(dtype, marks=pytest.mark.slow) for dtype in ("float32", "complex64")]


def times(a: T, b: T) -> T:
    return gc.dot(a.rename(col="k"), b.rename(row="k"), dim="k")


def mirrored(x: T, lower: bool = True) -> T:
    """The Hermitian matrices of one triangle."""
    side = gc.tril(x, k=-1) if lower else gc.triu(x, k=1)
    on = gc.where(gc.arange(N, dim="row") == gc.arange(N, dim="col"), gc.real(x), 0)
    return side + gc.conj(L.matrix_transpose(side)) + on


def around(w: T, v: T) -> T:
    return gc.dot(v, w, gc.conj(v).rename(row="col"), dim="eigen")


def exponential(x: T) -> T:
    return around(gc.exp(L.eigh(x).values), L.eigh(x).vectors)


def number(y: T) -> T:
    """One real number, to which each part of `y` contributes in its own way."""
    weights = np.cos(np.arange(np.prod(y.shape, dtype=int))).reshape(y.shape)
    y = gc.real(y * np.exp(0.3j)) if y.dtype.kind == "c" else y
    return (gc.sin(y) * gc.constant(weights.astype(y.dtype), y.dims)).sum()


def orders(y: T, x: T, d: T) -> dict[str, T]:
    """Derivatives to the third order, in both modes and mixed."""
    back, forth = gc.grad(y, x), gc.pushforward(y, x, d)
    along = gc.real(gc.conj(back) * d).sum()
    return {
        "value": y,
        "reverse": back,
        "forward": forth,
        "forward of reverse": gc.pushforward(back, x, d),
        "reverse of reverse": gc.grad(along, x),
        "reverse of forward": gc.grad(forth, x),
        "forward of forward": gc.pushforward(forth, x, d),
        "reverse of both": gc.grad(gc.pushforward(forth, x, d), x),
        "forward of all": gc.pushforward(gc.pushforward(forth, x, d), x, d),
    }


def compare(inputs: Any, ours: dict[str, T], theirs: dict[str, T], at: Any, *rtol: float) -> None:
    """Equal but for a part of the largest, which the first, second and third order have each."""
    agree(gc.compile(inputs, [ours, theirs]), at, *rtol)


def agree(f: gc.Compiled, at: Any, *rtol: float) -> None:
    """`compare`, for a compiled program."""
    found, wanted = f(*at)
    for name, value in wanted.items():
        atol = rtol[min(order(name), len(rtol)) - 1] * max(1.0, np.abs(value).max())
        np.testing.assert_allclose(found[name], value, rtol=0, atol=atol, err_msg=name)


def order(name: str) -> int:
    """The order of the derivatives that `orders` names."""
    return 3 if name.endswith(("both", "all")) else 2 if " of " in name else 1


def fired(f: gc.Compiled) -> int:
    """How many functions of matrices were found."""
    rules = [record.rule for stage in f.passes for record in stage.records]
    return sum(getattr(rule, "__name__", "") == "function_of_matrix" for rule in rules)


def polynomial(w: T) -> T:
    return 0.3 * w**5 - w**3 + 2 * w**2 - w + 1


def polynomial_of(s: T) -> T:
    square = times(s, s)
    cube = times(square, s)
    return 0.3 * times(square, cube) - cube + 2 * square - s + gc.eye(RC, dtype=s.dtype)


@pytest.mark.parametrize("lower", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float64", "complex128", *SINGLE])
@pytest.mark.parametrize("name", MOST)
def test_polynomials_are_those_of_the_matrix(
    name: str, dtype: str, lower: bool, random: np.random.Generator
) -> None:
    """Their derivatives are known exactly at any matrix."""
    at = MATRICES[name]
    if at.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        pytest.skip("a complex matrix")
    x, d = (gc.tensor(word, RC, dtype=dtype) for word in "xd")
    values, vectors = L.eigh(x, lower=lower)
    ours = orders(number(around(polynomial(values), vectors)), x, d)
    theirs = orders(number(polynomial_of(mirrored(x, lower))), x, d)
    direction = random.normal(size=(N, N))
    single = np.dtype(dtype).itemsize < (16 if np.dtype(dtype).kind == "c" else 8)
    rtol = (1e-4, 1e-3, 1e-2) if single else (1e-12, 1e-9, 1e-5) if name in CLOSE else (1e-11,)
    compare([x, d], ours, theirs, (at.astype(dtype), direction.astype(dtype)), *rtol)


def ways(w: T, v: T, b: T, c: T) -> dict[str, T]:
    """Functions of a matrix in the ways one may write them."""
    back = gc.conj(v).rename(row="col")
    f, p = gc.exp(w), gc.dot(gc.conj(v), b, dim="row")
    half = v * gc.exp(w / 2)
    diagonal = gc.diag(f, "eigen", ("eigen", "other"))
    return {
        "a product of three": gc.dot(v, f, back, dim="eigen"),
        "in another order": gc.dot(back, f, v, dim="eigen"),
        "scaled vectors": gc.dot(v * f, back, dim="eigen"),
        "scaled the other way": gc.dot(back * f, v, dim="eigen"),
        "divided vectors": gc.dot(v / gc.exp(-w), back, dim="eigen"),
        "two halves": gc.dot(half, gc.conj(half).rename(row="col"), dim="eigen"),
        "a diagonal matrix": gc.dot(
            v, diagonal, back.rename(eigen="other"), dim=["eigen", "other"]
        ),
        "one after the other": gc.dot(
            gc.dot(v, diagonal, dim="eigen"), back.rename(eigen="other"), dim="other"
        ),
        "a sum": (v * f * back).sum("eigen"),
        "two factors": gc.dot(v, gc.exp(w - 1), back * np.e, dim="eigen"),
        "times a vector": gc.dot(v, f * p, dim="eigen"),
        "times a vector, divided": gc.dot(v, p / gc.exp(-w), dim="eigen"),
        "a vector in the product": gc.dot(v, f, back, b.rename(row="col"), dim=["eigen", "col"]),
        "times columns": gc.dot(
            v, f, gc.dot(back, c.rename(row="col"), dim="col"), dim="eigen"
        ),
        "a form": gc.dot(gc.conj(p), f, p, dim="eigen"),
        "a form by squares": (abs(p) ** 2 * f).sum(),
        "a form, real": gc.real(gc.conj(p) * p * f).sum(),
        "its diagonal": gc.real(v * gc.conj(v) * f).sum("eigen"),
        "its diagonal by squares": (abs(v) ** 2 * f).sum("eigen"),
        "of two": times(around(f, v), around(gc.exp(-2 * w), v)),
        "its mean": around(f, v).mean(),
        "its trace": f.sum(),
        "its trace by vectors": gc.real(v * f * gc.conj(v)).sum(),
        "divided by its trace": around(f / f.sum(), v),
        "softmax": around(gc.special.softmax(w, "eigen"), v),
        "logarithm of its trace": gc.special.logsumexp(w, "eigen"),
        "in a loop": gc.fori_loop(
            0, 2, lambda _, s: times(s, around(f, v)), gc.eye(RC, dtype=v.dtype)
        ),
        "a loop around all": gc.fori_loop(
            0, 2, lambda _, s: s + around(gc.exp(L.eigh(s + 0 * around(w, v)).values),
                                          L.eigh(s + 0 * around(w, v)).vectors), around(w, v)
        ),
    }  # fmt: skip


def of_exponential(e: T, s: T, b: T, c: T) -> dict[str, T]:
    """The same by the exponential of the matrix."""
    column, trace = b.rename(row="col"), gc.real(L.trace(e))
    applied = gc.dot(e, column, dim="col")
    form = gc.dot(gc.conj(b), applied, dim="row")
    twice = L.expm(s + L.expm(s))
    return {
        "a product of three": e,
        "scaled vectors": e,
        "divided vectors": e,
        "two halves": e,
        "a diagonal matrix": e,
        "one after the other": e,
        "a sum": e,
        "two factors": e,
        "in another order": e.transpose("col", "row"),
        "scaled the other way": e.transpose("col", "row"),
        "times a vector": applied,
        "times a vector, divided": applied,
        "a vector in the product": applied,
        "times columns": gc.dot(e, c.rename(row="col"), dim="col"),
        "a form": form,
        "a form by squares": gc.real(form),
        "a form, real": gc.real(form),
        "its diagonal": gc.real(gc.diagonal(e, dim="row")),
        "its diagonal by squares": gc.real(gc.diagonal(e, dim="row")),
        "of two": times(e, L.expm(-2 * s)),
        "its mean": e.mean(),
        "its trace": trace,
        "its trace by vectors": trace,
        "divided by its trace": e / trace,
        "softmax": e / trace,
        "logarithm of its trace": gc.log(trace),
        "in a loop": times(e, e),
        "a loop around all": s + e + twice,
    }


WAYS = list(ways(*L.eigh(gc.zeros(RC)), gc.zeros({"row": N}), gc.zeros({"row": N, "k": 2})))


@pytest.mark.parametrize("dtype", ["complex128", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WAYS)
def test_ways_of_writing(name: str, dtype: str, random: np.random.Generator) -> None:
    """Each is found, and is what the exponential of the matrix gives."""
    x, d = (gc.tensor(word, RC, dtype=dtype) for word in "xd")
    b = gc.tensor("b", {"row": N}, dtype=dtype)
    c = gc.tensor("c", {"row": N, "k": 2}, dtype=dtype)
    s = mirrored(x)
    ours = ways(*L.eigh(x), b, c)[name]
    theirs = of_exponential(L.expm(s), s, b, c)[name]

    def rnd(*shape: int) -> np.ndarray:
        real, imaginary = random.normal(size=(2, *shape))
        return real + 1j * imaginary if dtype == "complex128" else real

    def all_of(y: T) -> dict[str, T]:
        found = number(y.transpose(*ours.dims))
        return {
            "value": found,
            "gradient": gc.grad(found, x),
            "forward": gc.pushforward(found, x, d),
            "second": gc.hvp(found, x, d),
        }

    assert fired(gc.compile([x, b, c], gc.grad(number(ours), x)))
    at = UNITARY if dtype == "complex128" else TURN
    f = gc.compile([x, b, c, d], [all_of(ours), all_of(theirs)])
    for values in ((0.5, 0.5, -1, -1), (0.1, 0.7, -0.4, 0.3)):
        agree(f, (of_values(*values, turn=at), rnd(N), rnd(N, 2), rnd(N, N)), 1e-10)


def test_a_sum_over_what_is_repeated() -> None:
    """Each repetition counts."""
    x = gc.tensor("x", {"row": 2, "col": 2})
    w, v = L.eigh(x)
    back = v.rename(row="col") * gc.ones({"other": 3})
    y = gc.einsum("row eigen, eigen, col eigen other -> row col", v, gc.exp(w), back)
    found = gc.compile([x], [y, gc.grad(y.sum(), x)])(np.eye(2))
    np.testing.assert_allclose(found[0], 3 * np.e * np.eye(2), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(found[1], 3 * np.e * np.array([[1, 0], [2, 1]]), rtol=1e-14)


@pytest.mark.parametrize("at", ["one", "two pairs", "apart"])
def test_numbers_that_a_function_depends_on(at: str, random: np.random.Generator) -> None:
    """Derivatives by them, mixed ones as well; they may depend on the matrix in their turn."""
    x, d = gc.tensor("x", {"batch": 2, **RC}), gc.tensor("d", {"batch": 2, **RC})
    shift, slope = gc.tensor("shift", {}), gc.tensor("slope", {"batch": 2})
    w, v = L.eigh(x)
    s = mirrored(x)
    top = gc.sqrt((w * w).sum("eigen"))
    ours = number(around(gc.exp(slope * w / top) / (w + shift), v))
    size = gc.sqrt((gc.real(s) ** 2).sum(["row", "col"]))
    inverse = L.inv(s + shift * gc.eye(RC)).rename(row="col", col="row")
    theirs = number(times(L.expm(slope * s / size), inverse))

    def all_of(y: T) -> dict[str, Any]:
        back = gc.grad(y, [x, shift, slope])
        along = (back[0] * d).sum() + back[1] ** 2 + (back[2] * gc.cos(slope)).sum()
        forth = gc.pushforward(y, [x, shift, slope], [d, shift, slope])
        parts = {"value": y, "forward": forth}
        for i, name in enumerate(("x", "shift", "slope")):
            parts[name] = back[i]
            parts[f"second of {name}"] = gc.grad(along, [x, shift, slope])[i]
            parts[f"mixed of {name}"] = gc.grad(forth, [x, shift, slope])[i]
        return parts

    matrices = np.stack([MATRICES[at], np.eye(N)])
    given = matrices, random.normal(size=(2, N, N)), 1.7, np.array([0.3, -0.8])
    compare([x, d, shift, slope], all_of(ours), all_of(theirs), given, 1e-10)


@pytest.mark.parametrize("gap", [10.0**-k for k in range(17)])
def test_accuracy_at_every_gap(gap: float) -> None:
    """The divided difference of e^w is e^w expm1(gap) / gap, and nearly all digits are right."""
    x = gc.tensor("x", {"row": 2, "col": 2})
    f = gc.compile([x], gc.grad(exponential(x)[{"row": 0, "col": 1}], x))
    low, high = 0.7, 0.7 + gap
    slope = f(np.diag([low, high]))[1, 0]
    step = high - low
    wanted = np.exp(low) * (np.expm1(step) / step if step else 1)
    np.testing.assert_allclose(slope, wanted, rtol=2e-13)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_small_values_beside_a_large_one(scale: float, random: np.random.Generator) -> None:
    """How near each other values are depends on their own size."""
    x, d = gc.tensor("x", RC), gc.tensor("d", RC)
    s = mirrored(x)
    values = scale * np.array([1e-7, 2e-7, 2e-7 * (1 + 1e-6), 1.0])
    w, v = L.eigh(x)
    y = around(1 / w, v)
    theirs = L.inv(s).rename(row="col", col="row")

    def all_of(y: T) -> list[T]:
        forth = gc.pushforward(y, x, d)
        return [forth, gc.pushforward(forth, x, d)]

    f = gc.compile([x, d], [all_of(y), all_of(theirs)])
    a = np.diag(values)
    direction = a @ random.normal(size=(N, N)) @ a
    for found, wanted in zip(*f(a, direction), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-7)


def inverse_but_of_zero(w: np.ndarray) -> tuple[np.ndarray, ...]:
    safe = np.where(w == 0, 1, w)
    return np.where(w == 0, 0, 1 / safe), np.where(w == 0, 0, -1 / safe**2)


BENT: dict[str, tuple[Any, Any]] = {
    "relu": (lambda w: gc.maximum(w, 0), lambda w: (np.maximum(w, 0), (w > 0) + 0.5 * (w == 0))),
    "abs": (abs, lambda w: (np.abs(w), np.sign(w))),
    "pseudo-inverse": (lambda w: gc.where(abs(w) > 1e-9, 1 / w, 0), inverse_but_of_zero),
    "clip": (
        lambda w: gc.clip(w, -0.5, 1.5),
        lambda w: (np.clip(w, -0.5, 1.5), (abs(w - 0.5) < 1) * 1.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("values", [(-1.0, -1, 3, 3), (0.0, 0, 1, 1), (-2.0, -1, 1, 3)])
@pytest.mark.parametrize("name", BENT)
def test_functions_with_bends(
    name: str, values: tuple[float, ...], random: np.random.Generator
) -> None:
    """The divided difference is that of the values, however far the bend is from them."""
    if name in ("relu", "abs") and 0 in values:
        pytest.skip("bent at a value")
    ours, theirs = BENT[name]
    x, ct = gc.tensor("x", RC), gc.tensor("ct", RC)
    w, v = L.eigh(x)
    y = gc.pullback(around(ours(w), v), x, ct)
    c = random.normal(size=(N, N))
    found = gc.compile([x, ct], y)(of_values(*values), c)
    w = np.array(values)
    f, slope = theirs(w)
    gap = w[:, None] - w
    with np.errstate(all="ignore"):
        divided = np.where(gap == 0, slope, (f[:, None] - f) / gap)
    back = TURN @ (divided * (TURN.T @ c @ TURN)) @ TURN.T
    wanted = np.tril(back + back.T) - np.diag(np.diag(back))
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_what_is_not_a_function_of_the_matrix() -> None:
    """Each eigenvector in a way of its own has no derivative at equal eigenvalues."""
    x, u = gc.tensor("x", RC), gc.tensor("u", {"eigen": N})
    w, v = L.eigh(x)
    for y in (around(u * w, v), around(gc.cumsum(w, "eigen"), v), (v**3).sum()):
        f = gc.compile([x, u], gc.grad(y.sum(), x))
        assert not fired(f)
        assert np.isnan(f(np.eye(N), np.arange(N, dtype=float))).any()


def test_parts_that_count_as_constant() -> None:
    x = gc.tensor("x", RC)
    w, v = L.eigh(x)
    fixed = around(gc.exp(w), gc.stop_gradient(v))
    a = MATRICES["two pairs"]
    found, values = gc.compile([x], [gc.grad(L.trace(fixed), x), w])(a)
    vectors = np.linalg.eigh(a)[1]
    back = (vectors * np.exp(values)) @ vectors.T
    np.testing.assert_allclose(found, np.tril(2 * back) - np.diag(np.diag(back)), rtol=1e-12)
    still = gc.grad(around(gc.stop_gradient(gc.exp(w)), v).sum(), x)
    assert not np.isfinite(gc.compile([x], still)(np.eye(N))).all()


def test_derivatives_by_the_values_and_vectors() -> None:
    """They are inner tensors like others."""
    x = gc.tensor("x", RC)
    w, v = L.eigh(x)
    y = around(gc.exp(w), v).sum()
    by_w, by_v, values, vectors = gc.compile([x], [*gc.grad(y, [w, v]), w, v])(np.eye(N))
    sums = vectors.sum(0)
    np.testing.assert_allclose(by_w, np.exp(values) * sums**2)
    np.testing.assert_allclose(by_v, np.tile(2 * np.exp(values) * sums, (N, 1)))


INSIDE: dict[str, Any] = {
    "scan": lambda f, x: gc.scan(lambda c, _: (f(0.3 * c), c), x, None, dim="t", length=3)[0],
    "while_loop": lambda f, x: gc.while_loop(
        lambda c: c.sum() < 20, lambda c: c + 0.1 * f(c), x, max_steps=9
    ),
    "cond": lambda f, x: gc.cond(x.sum() > 0, lambda: f(x), lambda: x),
    "checkpoint": lambda f, x: gc.checkpoint(f)(x),
    "map": lambda f, x: gc.map(f, x * gc.constant([1.0, 2.0], "t"), "t"),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_inside_loops_and_branches(name: str, random: np.random.Generator) -> None:
    x, d = gc.tensor("x", RC), gc.tensor("d", RC)
    y, z = (number(INSIDE[name](f, x)) for f in (exponential, lambda s: L.expm(mirrored(s))))
    ours, theirs = (
        {"value": y, "gradient": gc.grad(y, x), "second of x": gc.hvp(y, x, d)} for y in (y, z)
    )
    given = MATRICES["two pairs"], random.normal(size=(N, N))
    compare([x, d], ours, theirs, given, 1e-10)


def test_widened_programs() -> None:
    """Jacobian, Hessian, vectorized and per instance, of sizes known at the call."""
    x = gc.tensor("x", {"row": "n", "col": "n"})
    many = gc.tensor("many", {"batch": None, "row": "n", "col": "n"})

    def all_of(f: Any) -> list[T]:
        y = gc.sin(f(x)).sum()
        wide = gc.vectorize(gc.grad(y, x), {x: many})
        each = gc.grad(gc.sin(f(many)).sum(["row", "col"]), many, per="batch")
        return [gc.jacobian(f(x), x), gc.hessian(y, x), wide, each]

    def theirs(x: T) -> T:
        lower, on = gc.tril(x, k=-1), x - gc.tril(x, k=-1) - gc.triu(x, k=1)
        return L.expm(lower + L.matrix_transpose(lower) + on)

    a = MATRICES["two pairs"]
    given = a, np.stack([a, np.eye(N), MATRICES["apart"]])
    ours = gc.compile([x, many], all_of(exponential))(*given)
    for found, wanted in zip(ours, gc.compile([x, many], all_of(theirs))(*given), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-11)


def test_values_alone(random: np.random.Generator) -> None:
    """Sums of functions of each eigenvalue are smooth; a single one among equal ones is not."""
    x, d = gc.tensor("x", RC), gc.tensor("d", RC)
    a, s = np.eye(N), mirrored(x)
    for w in (L.eigvalsh(x), L.eigh(x).values):
        ours = orders((w**3).sum() + gc.var(w, "eigen"), x, d)
        middle = L.trace(s) / N
        spread = L.trace(times(s, s)) / N - middle**2
        theirs = orders(L.trace(times(s, times(s, s))) + spread, x, d)
        compare([x, d], ours, theirs, (a, random.normal(size=(N, N))), 1e-12)
        single = gc.compile([x], [gc.grad(w.isel(eigen=0), x), gc.hessian(w.isel(eigen=0), x)])
        first, second = single(a)
        assert np.isfinite(first).all()
        assert not np.isfinite(second).all()


@pytest.mark.parametrize("name", ["eigh", "eig"])
def test_the_gradient_of_a_single_eigenvector_beside_equal_ones(name: str) -> None:
    """It exists in both modes; that of one of the equal ones does not."""
    values = np.array([1.0, 1, 2, 2, 3])
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    a = (turn * values) @ turn.T
    a = (a + a.T) / 2 if name == "eigh" else a
    x, v = (gc.tensor(word, {"row": 5, "col": 5}) for word in "xv")
    made = getattr(L, name)(x)
    real = gc.real(made.vectors)
    which = int(np.argmax(gc.compile([x], gc.real(made.values))(a)))
    alone = (real.isel(eigen=which) * gc.arange(5.0, dim="row")).sum()
    weighed = (real * gc.one_hot(which, 5, "eigen") * gc.arange(5.0, dim="row")).sum()
    d = np.random.default_rng(1).normal(size=(5, 5))
    outputs = []
    for y in (alone, weighed):
        outputs += [(gc.grad(y, x) * v).sum(), gc.pushforward(y, x, v)]
    back, forth, *others = gc.compile([x, v], outputs)(a, d)
    assert np.isfinite(forth)
    np.testing.assert_allclose(back, forth, rtol=1e-9)
    np.testing.assert_allclose(others[0], forth, rtol=1e-9)
    beside = gc.grad(real.isel(eigen=(which + 1) % 5).sum(), x)
    assert not np.isfinite(gc.compile([x], beside)(a)).all()
