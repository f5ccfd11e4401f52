"""Random expressions of matrices: what is known of each holds of its numbers, and what follows from
it gives what is found of a matrix of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.analysis.matrices import Fact, Facts, facts
from graphcore.ir.graph import Graph
from graphcore.ir.types import TensorType
from tests import interpreter

L = gc.linalg
T = gc.Tensor
N = 3
EYE = gc.eye({"row": N, "col": N})
ROW, COL = (gc.arange(N, dim=dim) for dim in ("row", "col"))
X, Y = (gc.tensor(name, {"row": N, "col": N}) for name in "xy")
Z = gc.tensor("z", {"row": N, "col": N}, dtype="complex128")
MANY = gc.tensor("many", {"batch": 2, "row": N, "col": N})
NUMBER, EACH = gc.tensor("number", {}), gc.tensor("each", {"batch": 2})
B = gc.tensor("b", {"row": N})
INPUTS = [X, Y, Z, MANY, NUMBER, EACH, B]
LEAVES = [X, Y, Z, MANY, EYE, gc.ones_like(X), gc.zeros_like(X)]


def times(a: T, b: T) -> T:
    return gc.dot(a.rename(col="inner"), b.rename(row="inner"), dim="inner")


def turned(x: T) -> T:
    return L.matrix_transpose(x)


UNARY: dict[str, Callable[[T], T]] = {
    "a aᵀ": lambda x: gc.dot(x, x.rename(row="other"), dim="col").rename(other="col"),
    "a aᴴ": lambda x: gc.dot(x, gc.conj(x).rename(row="other"), dim="col").rename(other="col"),
    "aᵀ a": lambda x: gc.dot(x, x.rename(col="other"), dim="row").rename(other="row"),
    "a aᵀ by transposing": lambda x: times(x, turned(x)),
    "a ∘ aᵀ": lambda x: x * turned(x),
    "a + aᴴ": lambda x: x + gc.conj(turned(x)),
    "aᵀ": turned,
    "conj a": gc.conj,
    "tril": gc.tril,
    "triu": gc.triu,
    "tril below": lambda x: gc.tril(x, k=-1),
    "triu above": lambda x: gc.triu(x, k=1),
    "triu and below": lambda x: gc.triu(x, k=-1),
    "row == col": lambda x: gc.where(ROW == COL, x, 0),
    "row < col": lambda x: gc.where(ROW < COL, x, 0),
    "col >= row": lambda x: gc.where(COL >= ROW, x, 0),
    "col <= row": lambda x: gc.where(COL <= ROW, x, 0),
    "rest of row > col": lambda x: gc.where(ROW > COL, 0, x),
    "row != col": lambda x: gc.where(ROW != COL, x, 0),
    "masked by values": lambda x: gc.where(gc.real(x) > -1, x, 0),
    "mask": lambda x: (gc.real(x) > 0).astype("float64"),
    "-a": lambda x: -x,
    "2 a": lambda x: 2 * x,
    "-a / 2": lambda x: -0.5 * x,
    "a / 2": lambda x: x / 2,
    "a / 3": lambda x: x / 3.0,
    "a / -3": lambda x: x / -3.0,
    "a / n": lambda x: x / x.sizes["row"],
    "a / number": lambda x: x / NUMBER,
    "i a": lambda x: 1j * x,
    "complex 2 a": lambda x: (2 + 0j) * x,
    "by a number": lambda x: x * NUMBER,
    "by a complex number": lambda x: x * (NUMBER * (1 + 1j)),
    "by each number": lambda x: x * EACH,
    "by a row": lambda x: x * B,
    "float32": lambda x: x if x.dtype.kind == "c" else x.astype("float32"),
    "int64": lambda x: gc.real(x).astype("int64"),
    "float64": lambda x: gc.real(x).astype("float64"),
    "complex128": lambda x: x.astype("complex128"),
    "real": gc.real,
    "imag": lambda x: gc.imag(x.astype("complex128")),
    "|a|": abs,
    "a²": lambda x: x * x,
    "expm": L.expm,
    "inv": lambda x: L.inv(x, check=False),
    "cholesky": lambda x: L.cholesky(x, check=False),
    "q": lambda x: L.qr(x).q.rename(rank="col"),
    "r": lambda x: L.qr(x).r.rename(rank="row"),
    "complete q": lambda x: L.qr(x, mode="complete").q.rename(rank="col"),
    "l": lambda x: L.lu(x).lower.rename(pivot="col"),
    "upper": lambda x: L.lu(x).upper.rename(pivot="row"),
    "u": lambda x: L.svd(x).u.rename(rank="col"),
    "vh": lambda x: L.svd(x).vh.rename(rank="row"),
    "eigenvectors": lambda x: L.eigh(x).vectors.rename(eigen="col"),
    "polar": lambda x: L.polar(x).unitary,
    "a + 1": lambda x: x + EYE,
    "a - 1": lambda x: x - EYE,
    "0 a + 1": lambda x: 0 * x + EYE,
    "first": lambda x: x.isel(batch=0) if "batch" in x.dims else x,
    "mean": lambda x: x.mean("batch") if "batch" in x.dims else x,
    "of each": lambda x: x + 0 * EACH,
    "backwards": lambda x: gc.flip(x, "row"),
}
BINARY: dict[str, Callable[[T, T], T]] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a ∘ b": lambda a, b: a * b,
    "a b": times,
    "a⁻¹ b": lambda a, b: times(L.inv(a, check=False), b),
    "solve": lambda a, b: L.solve(a, b.rename(col="k"), check=False).rename(col="row", k="col"),
    "a where b > 0": lambda a, b: gc.where(gc.real(b) > 0, a, 0),
}
QUESTIONS: dict[str, Callable[[T], T]] = {
    "solve": lambda k: L.solve(k, B, check=False),
    "solve transposed": lambda k: L.solve(turned(k), B, check=False),
    "solve_triangular": lambda k: L.solve_triangular(k, B, lower=True, check=False),
    "inv": lambda k: L.inv(k, check=False),
    "det": L.det,
    "logabsdet": lambda k: L.slogdet(k).logabsdet,
    "sign": lambda k: L.slogdet(k).sign,
    "inverse times": lambda k: gc.dot(L.inv(k, check=False), B, dim="row"),
    "times inverse": lambda k: gc.dot(B.rename(row="col"), L.inv(k, check=False), dim="col"),
    "inverse times a batch": lambda k: gc.dot(
        L.inv(k, check=False), MANY.rename(col="k"), dim="row"
    ),
    "inverse times single": lambda k: gc.dot(L.inv(k, check=False), B.astype("float32"), dim="row"),
    "inverse times complex": lambda k: gc.dot(Z.rename(row="k"), L.inv(k, check=False), dim="col"),
    "over both": lambda k: gc.dot(L.inv(k, check=False), Y, dim=["row", "col"]),
    "over the batch": lambda k: gc.dot(L.inv(k, check=False), MANY, dim=["batch", "row"]),
    "elementwise and summed": lambda k: gc.dot(L.inv(k, check=False), Y, dim="row"),
    "quadratic": lambda k: gc.dot(
        B, L.inv(k, check=False), B.rename(row="col"), dim=["row", "col"]
    ),
    "log of det": lambda k: gc.log(abs(L.det(k))),
    "log of complex det": lambda k: gc.log(L.det(k.astype("complex128"))),
    "cho_solve": lambda k: L.cho_solve(L.cholesky(times(k, turned(k)) + EYE, check=False), B),
}


@st.composite
def expressions(draw: Any) -> T:
    made = [draw(st.sampled_from(LEAVES))]
    for _ in range(draw(st.integers(1, 7))):
        x = made[-1] if draw(st.integers(0, 3)) else draw(st.sampled_from(made + LEAVES))
        if draw(st.integers(0, 2)):
            name = draw(st.sampled_from(sorted(UNARY)))
            made.append(UNARY[name](x))
        else:
            name = draw(st.sampled_from(sorted(BINARY)))
            other = draw(st.sampled_from(made + LEAVES))
            made.append(BINARY[name](*draw(st.permutations([x, other]))))
        note(f"{len(made) - 1}: {name}")
    return made[-1].astype(np.result_type(made[-1].dtype, "float32").name)


def values(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    found = {x.name: random.normal(size=x.shape) for x in INPUTS}
    found["z"] = found["z"] + 1j * random.normal(size=(N, N))
    return found


def holds(fact: Fact, a: np.ndarray) -> bool:
    """Whether a fact holds of numbers but for rounding."""
    inexact = max(np.finfo(a.dtype).eps, EPS)
    near = {"rtol": 0, "atol": inexact**0.5 * np.abs(a).max(initial=1e-30)}
    back = np.swapaxes(a.conj(), -1, -2)
    match fact:
        case Fact.LOWER:
            return np.allclose(a, np.tril(a), **near)
        case Fact.UPPER:
            return np.allclose(a, np.triu(a), **near)
        case Fact.UNITARY:
            return np.allclose(a @ back, np.eye(N), **near)
        case Fact.HERMITIAN:
            return np.allclose(a, back, **near)
    return bool((np.linalg.eigvalsh(a) >= -near["atol"]).all())


EPS = np.finfo(np.float32).eps  # what has come through float32 is no better, whatever it is in


def check_facts(stage: Graph, given: dict[str, np.ndarray]) -> None:
    known: dict[Any, Facts] = {
        node: made
        for node in stage.nodes()
        if isinstance(node.type, TensorType)
        and node.type.shape[-2:] == (N, N)
        and node.type.dtype.kind in "fc"
        and (made := facts(node))
    }
    try:
        found = interpreter.run(Graph(stage.params, tuple(known)), given, {})
    except (ValueError, np.linalg.LinAlgError):
        return  # SciPy's factors of what is not finite
    for node, a in zip(known, found, strict=True):
        assert a is not None
        if np.isfinite(a).all() and np.abs(a).max() < 1e3:
            for fact in known[node]:
                assert holds(fact, a), (node, fact, a)


def check(k: T, question: str, seed: int) -> None:
    given = values(seed)
    unknown = gc.tensor("unknown", dict(zip(k.dims, k.shape, strict=True)), dtype=k.dtype)
    outputs: list[T] = []
    for matrix in (k, k + unknown):
        y = QUESTIONS[question](matrix)
        weights = gc.constant(1 + np.arange(np.prod(y.shape, dtype=int)).reshape(y.shape), y.dims)
        total = (gc.real(y) * weights).sum() + (gc.imag(y.astype("complex128")) * weights).sum()
        outputs += [y, *gc.grad(total, [X, Y, Z, MANY], disconnected="zero")]
    with np.errstate(all="ignore"):
        f = gc.compile([*INPUTS, unknown], [k, *outputs])
        a, *found = f(*given.values(), np.zeros(k.shape, k.dtype))
    given["unknown"] = np.zeros(k.shape, k.dtype)
    for stage in ("lowered", "simplified", "optimized"):
        check_facts(f.stages[stage], given)
    if not np.isfinite(a).all() or np.abs(a).max() > 1e3:
        return
    condition = np.linalg.cond(np.tril(a) if question == "solve_triangular" else a).max()
    if condition > 1e4:
        return
    half = len(found) // 2
    for mine, wanted in zip(found[:half], found[half:], strict=True):
        if np.isfinite(wanted).all() and np.abs(wanted).max(initial=0) < 1e5:
            scale = max(1, np.abs(wanted).max(initial=0))
            np.testing.assert_allclose(mine, wanted, 1e-2, EPS**0.5 * scale, err_msg=question)


@settings(max_examples=60)
@given(k=expressions(), question=st.sampled_from(sorted(QUESTIONS)), seed=st.integers(0, 9))
def test_random_expressions(k: T, question: str, seed: int) -> None:
    check(k, question, seed)
