"""Every rule keeps the value: equations are instantiated from their own left-hand sides, the rules
that are functions from a table of examples that leaves none out.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from graphcore.ir.errors import Refusal
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import unknown
from graphcore.ops import elementwise as e
from graphcore.ops import leaf, special
from graphcore.rewrites.algebra import algebra
from graphcore.rewrites.contraction import contraction
from graphcore.rewrites.engine import Equation
from graphcore.rewrites.motion import motion
from graphcore.rewrites.pattern import Pattern
from graphcore.rewrites.plain import full
from graphcore.rewrites.powers import EXACT, POWERS, powers
from graphcore.rewrites.stabilise import stabilise
from tests import interpreter
from tests.rewrites.examples import DECLINED, EXAMPLES, given

DTYPES = ["bool", "int8", "uint8", "int64", "float32", "float64", "complex128"]
WILD = [
    *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.7, -7.3, 12.5, 1e-12, 40.0),
    *(-40.0, 1e30, -1e30, 1e-30, 700.0, -700.0),
]
TAME = [0.3, -0.7, 1.9, -2.6, 5.1, 1.0, 17.0]


def values(dtype: str, pool: list[float] = WILD) -> np.ndarray:
    match np.dtype(dtype).kind:
        case "b":
            return np.array([False, True])
        case "i" | "u":
            info = np.iinfo(dtype)
            return np.array([0, 1, 2, 7, info.max, info.min, info.max - 1], dtype)
        case "c":
            parts = np.array(TAME)
            return (parts[:, None] + 1j * parts).ravel().astype(dtype)
    return np.array(pool, dtype)


BOTH = np.array([False, True])


def grid(pools: list[np.ndarray]) -> list[np.ndarray]:
    """All combinations of values, one flat array a variable."""
    axes = np.meshgrid(*pools, indexing="ij") if pools else []
    return [axis.ravel() for axis in axes]


def instances(pattern: Pattern, dtype: str, shape: Any) -> Iterator[tuple[Node, list[str]]]:
    """The node a pattern spells, of inputs named as its variables; a condition may be bool too."""
    names: list[str] = []

    def build(p: Pattern, dtype: str) -> Node:
        if p.value is not None:
            return full(p.value, np.dtype(dtype), shape)
        if p.op is None:
            if p.name not in names:
                names.append(p.name)
            return given(p.name, *shape, dtype=dtype)
        kinds = [dtype] * len(p.inputs)
        if p.op is e.where:
            kinds[0] = "bool"
        operands = [build(x, k) for x, k in zip(p.inputs, kinds, strict=True)]
        if p.op is not e.where and p.op in e.UFUNC:  # lowering has cast operands as computed
            have = [x.type.dtype for x in operands]
            if tuple(have) != e.compute_dtypes(p.op, *have)[:-1]:
                raise TypeError
        return p.op(*operands)

    try:
        yield build(pattern, dtype), names
    except (TypeError, OverflowError, ValueError, Refusal):  # not defined for this dtype
        return


def run(node: Node, arrays: dict[str, np.ndarray], sizes: dict[str, int] | None = None) -> Any:
    found = interpreter.run(Graph((), (node,)), arrays, sizes or {})[0]
    assert found is not None
    return found


def equations(rules: Any) -> list[Any]:
    found = [rule for rule in rules.rules() if isinstance(rule, Equation)]
    return [pytest.param(rule, id=repr(rule)) for rule in found]


def same_bits(found: np.ndarray, wanted: np.ndarray) -> None:
    """Equal, the sign of zero included; any nan is nan."""
    np.testing.assert_array_equal(found, wanted)
    for part in ("real", "imag"):
        ours, theirs = getattr(found, part), getattr(wanted, part)
        zero = (theirs == 0) & (wanted.dtype.kind in "fc")
        np.testing.assert_array_equal(np.signbit(ours[zero]), np.signbit(theirs[zero]))


@pytest.mark.parametrize("rule", equations(algebra))
def test_algebra_is_exact(rule: Equation) -> None:
    fired = False
    for dtype in DTYPES:
        for node, names in instances(rule.left, dtype, (unknown("n"),)):
            new = rule(node)
            if new is None:
                continue
            fired = True
            chosen = "where" in repr(rule)  # by a condition c
            columns = grid([*(BOTH if chosen and x == "c" else values(dtype, WILD) for x in names)])
            arrays = dict(zip(names, columns, strict=True))
            n = {"n": len(columns[0])}
            with np.errstate(all="ignore"):
                found, wanted = run(new, arrays, n), run(node, arrays, n)
            assert found.dtype == wanted.dtype
            if dtype == "complex128":  # signs of zeros in products of complex numbers are noise
                np.testing.assert_allclose(found, wanted, rtol=1e-14)
            else:
                same_bits(found, wanted)
    assert fired


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("exponent", POWERS)
def test_small_powers_as_numpy(exponent: float, dtype: str) -> None:
    """Bit by bit where NumPy has the same form, else within two units in the last place."""
    tiny, huge = np.finfo(dtype).tiny, np.finfo(dtype).max
    scales = [1e19, 1e-19, 1e9, 1e-9, tiny**0.4, tiny**0.6, huge**0.4, huge**0.6, tiny, huge]
    base = np.concatenate([
        *(sign * np.array([0.0, np.inf, 1.0, *scales]) for sign in (1.0, -1.0)),
        [np.nan],
        np.random.default_rng(0).uniform(-9, 9, 500),
    ]).astype(dtype)  # fmt: skip
    x = leaf.input_(name="x", dtype=np.dtype(dtype), shape=(len(base),), dims=None)
    node = x ** full(exponent, np.dtype(dtype), (len(base),))
    step = powers.step(node)
    assert step is not None
    with np.errstate(all="ignore"):
        found, wanted = (
            run(step[1], {"x": base}, {}),
            np.power(base, np.dtype(dtype).type(exponent)),
        )
    assert found.dtype == wanted.dtype
    if exponent in EXACT:
        same_bits(found, wanted)
    else:
        same_bits(found[~np.isfinite(wanted)], wanted[~np.isfinite(wanted)])
        np.testing.assert_allclose(found, wanted, rtol=2 * np.finfo(dtype).eps, atol=tiny)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


PRECISE = Context(prec=420, Emin=-999999, Emax=999999, traps=[])


def softplus(x: Decimal) -> Decimal:
    return ln(1 + exp(x))


def exp(x: Decimal) -> Decimal:
    return PRECISE.exp(x)


def ln(x: Decimal) -> Decimal:
    return PRECISE.ln(x)


DECIMAL: dict[Any, Any] = {
    e.add: lambda x, y: x + y,
    e.subtract: lambda x, y: x - y,
    e.multiply: lambda x, y: x * y,
    e.divide: lambda x, y: x / y,
    e.negative: lambda x: -x,
    e.square: lambda x: x * x,
    e.sqrt: lambda x: PRECISE.sqrt(x),
    e.absolute: abs,
    e.sign: lambda x: x if x.is_nan() or not x else Decimal(1).copy_sign(x),
    e.exp: exp,
    e.log: ln,
    e.log1p: lambda x: ln(1 + x),
    e.expm1: lambda x: exp(x) - 1,
    special.sigmoid: lambda x: 1 / (1 + exp(-x)),
    special.softplus: softplus,
    special.log1mexp: lambda x: ln(1 - exp(x)),
}


def precisely(node: Node, x: Decimal) -> Decimal:
    """The value of a function of x in 420 digits, which neither overflow nor cancel here."""
    if node.op is leaf.input_:
        return x
    if node.op is leaf.full:
        return Decimal(node.attrs["value"].item())
    assert node.op in DECIMAL, f"{node.op} stands in a stable form: enter it in DECIMAL"
    return DECIMAL[node.op](*[precisely(operand, x) for operand in node.inputs])


BOUNDED = [x for x in WILD if not abs(x) > 750] + TAME + [1e-300, -1e-17]


def agrees_with_decimals(node: Node, new: Node, arrays: dict[str, np.ndarray]) -> None:
    """The right side is what the left means, to a few ulp."""
    found = run(new, arrays, {"n": len(arrays["x"])})
    with localcontext(PRECISE):
        exact = [precisely(node, Decimal(float(x))) for x in arrays["x"]]
    with np.errstate(all="ignore"):
        wanted = np.array([float(value) for value in exact]).astype(found.dtype)
    info = np.finfo(found.dtype)
    np.testing.assert_allclose(found, wanted, rtol=16 * info.eps, atol=info.tiny)


@pytest.mark.parametrize("rule", equations(stabilise))
def test_stable_forms_are_what_they_replace(rule: Equation) -> None:
    fired = 0
    for dtype in ("float32", "float64", "complex128"):
        for node, _ in instances(rule.left, dtype, (unknown("n"),)):
            new = rule(node)
            if new is None:
                continue
            fired += 1
            if dtype == "complex128":
                x = values(dtype) / 9
                sized = {"n": len(x)}
                found, wanted = run(new, {"x": x}, sized), run(node, {"x": x}, sized)
                np.testing.assert_allclose(found, wanted, rtol=1e-13)
            else:
                agrees_with_decimals(node, new, {"x": values(dtype, BOUNDED)})
    assert fired >= 2


@pytest.mark.parametrize("n", POWERS)
def test_powers_of_exponentials_by_products_stay(n: complex) -> None:
    """They are quicker than another exponential."""
    x = given("x", 3)
    assert stabilise.step(e.exp(x) ** full(n, x.type.dtype, (3,))) is None


REASSOCIATED = {
    *("einsum_of_view", "scalars_outside", "log_of_sum_of_exponentials", "log_of_softmax"),
    *("quotient_of_exponentials", "exponential_of_log_softmax", "less_logsumexp"),
    *("einsum_of_outer", "quotient_of_outer"),
}
"""Rules tried on finite values alone: inf - inf depends on the order, e**1e30 overflows."""

SETS = (stabilise, algebra, powers, motion, contraction)
ALL_RULES = {
    rule.__name__: rule
    for rules in SETS
    for rule in rules.rules()
    if not isinstance(rule, Equation)
}


def test_no_rule_is_without_example() -> None:
    assert set(ALL_RULES) - set(EXAMPLES) == set()


@pytest.mark.parametrize("node", DECLINED, ids=repr)
def test_near_misses(node: Node) -> None:
    assert [found for rules in SETS if (found := rules.step(node))] == []


def fill(node: Node, seed: int, sizes: dict[str, int], wild: bool) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    arrays = {}
    for x in Graph((), (node,)).nodes():
        if x.op is leaf.input_:
            shape = [s if isinstance(s, int) else sizes["n"] for s in x.type.shape]
            dtype = x.type.dtype
            pool = np.array(TAME + [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30] * wild)
            if dtype.kind == "i":
                pool = np.array([0, 1, -3, 2**53 + 1, 2**62 + 1, -(2**54) - 1])
            if dtype.kind == "u":  # positions
                pool = np.array([0, 1, 2])
            chosen = random.choice(pool, size=shape)
            if dtype.kind == "c":
                chosen = chosen + 1j * random.normal(size=shape)
            arrays[x.attrs["name"]] = chosen.astype(dtype)
    return arrays


@pytest.mark.parametrize(
    ("name", "node"),
    [(name, node) for name, nodes in EXAMPLES.items() for node in nodes],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rules_keep_the_value(name: str, node: Node) -> None:
    if name not in ALL_RULES:
        pytest.skip("the rule is gone")
    fired = [found for rules in SETS if (found := rules.step(node))]
    (new,) = [new for rule, new in fired if rule.__name__ == name]
    for n in (4, 1, 0):
        for seed in range(12):
            wild = name not in REASSOCIATED and seed % 2 == 0
            sizes = {"n": n}
            arrays = fill(node, seed, sizes, wild and node.type.dtype.kind == "f")
            if name == "small_powers" and wild:  # NumPy has its own forms for scalar exponents
                base, exponent = node.inputs[0], node.inputs[1].attrs["value"].item()
                with np.errstate(all="ignore"):
                    wanted = np.power(arrays[base.attrs["name"]], exponent)
                np.testing.assert_allclose(run(new, arrays, sizes), wanted, rtol=1e-12)
                continue
            found, wanted = run(new, arrays, sizes), run(node, arrays, sizes)
            assert found.dtype == wanted.dtype
            if wanted.dtype.kind in "biu":
                np.testing.assert_array_equal(found, wanted)
            else:
                np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
