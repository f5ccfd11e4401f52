"""Sizes: exact arithmetic, one object per value, bounds and comparisons that are never wrong."""

import copy
import gc
import operator
import pickle
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graphcore.ir import sizes
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.remembered import MOST_RESULTS, remembered
from graphcore.ir.sizes import (
    Expression,
    Size,
    code,
    count,
    evaluate,
    lower_bound,
    maximum,
    minimum,
    same,
    substitute,
    unknown,
    unknowns,
    upper_bound,
)
from tests.remembered import tables

NAMES = ("batch", "head", "a b")
batch, head, n, m = map(unknown, ("batch", "head", "n", "m"))

values = st.fixed_dictionaries({name: st.integers(0, 12) for name in NAMES})
Pair = tuple[Size, Callable[[dict[str, int]], int]]  # a size, and the same in plain integers

OPERATIONS: list[tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = [
    (operator.add, operator.add),
    (operator.sub, operator.sub),
    (operator.mul, operator.mul),
    (operator.floordiv, operator.floordiv),
    (operator.mod, operator.mod),
    (minimum, min),
    (maximum, max),
]


def leaf(name: str) -> Pair:
    return unknown(name), lambda known: known[name]


def whole(value: int) -> Pair:
    return value, lambda known: value


@st.composite
def join(draw: st.DrawFn, children: st.SearchStrategy[Pair]) -> Pair:
    symbolic, plain = draw(st.sampled_from(OPERATIONS))
    (a, a_of), (b, b_of) = draw(children), draw(children)
    assume(not (b == 0 and symbolic in (operator.floordiv, operator.mod)))
    return symbolic(a, b), lambda known: plain(a_of(known), b_of(known))


leaves = st.sampled_from(NAMES).map(leaf) | st.integers(-5, 9).map(whole)
pairs = st.recursive(leaves, join, max_leaves=8)


def value_of(plain: Callable[[dict[str, int]], int], known: dict[str, int]) -> int:
    try:
        return plain(known)
    except ZeroDivisionError:
        assume(False)
        raise


@given(pairs, values)
def test_an_expression_computes_what_integers_do(pair: Pair, known: dict[str, int]) -> None:
    size, plain = pair
    expected = value_of(plain, known)
    assert evaluate(size, known) == expected
    names = {name: f"s{index}" for index, name in enumerate(NAMES)}
    scope = {names[name]: value for name, value in known.items()}
    assert eval(code(size, names), {"min": min, "max": max}, scope) == expected
    low, high = lower_bound(size), upper_bound(size)
    assert low is None or low <= expected
    assert high is None or expected <= high


@given(pairs, values)
def test_substituting_step_by_step_is_evaluating(pair: Pair, known: dict[str, int]) -> None:
    size, plain = pair
    expected = value_of(plain, known)
    for name, value in known.items():
        size = substitute(size, {name: value})
    assert size == expected


@given(pairs, pairs, st.lists(values, min_size=5, max_size=5))
def test_same_is_never_wrong(left: Pair, right: Pair, samples: list[dict[str, int]]) -> None:
    (a, a_of), (b, b_of) = left, right
    verdict = same(a, b)
    assert verdict == same(b, a)
    for known in samples:
        if verdict is not None:
            assert (value_of(a_of, known) == value_of(b_of, known)) == verdict


@given(pairs, pairs, pairs)
def test_equal_polynomials_are_one_object(x: Pair, y: Pair, z: Pair) -> None:
    a, b, c = x[0], y[0], z[0]
    assert one(a + b, b + a)
    assert one(a * b, b * a)
    assert one((a + b) + c, a + (b + c))
    assert one((a * b) * c, a * (b * c))
    assert one(a * (b + c), a * b + a * c)
    assert one((a - b) * (a + b), a * a - b * b)
    assert one(a - (b - c), -b + c + a)
    assert one(minimum(a, b), minimum(b, a))
    assert one(maximum(a, b), maximum(b, a))


@pytest.mark.parametrize("pick", [minimum, maximum])
def test_ties_do_not_depend_on_order(pick: Callable[[Size, Size], Size]) -> None:
    assert pick(0 // batch, 0 // head) is pick(0 // head, 0 // batch)
    assert pick(0, 0 // batch) == pick(0 // batch, 0) == 0


def one(a: Size, b: Size) -> bool:
    return a is b or (isinstance(a, int) and a == b)


@given(pairs)
def test_pickling_and_copying_give_the_same_object(pair: Pair) -> None:
    size = pair[0]
    assert one(pickle.loads(pickle.dumps(size)), size)
    assert one(copy.deepcopy(size), size)


@given(pairs, st.integers(1, 6), st.integers(-9, 9))
def test_a_multiple_divides_exactly(pair: Pair, k: int, r: int) -> None:
    a = pair[0]
    assert one((k * a + r) // k, a + r // k)
    assert one((k * a + r) % k, r % k)
    assert one((k * a) // -k, -a)
    assert one((k * a + r) % -k, r % -k)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (batch, "batch"),
        (1 + batch, "batch + 1"),
        (batch - 3, "batch - 3"),
        (3 - batch, "-batch + 3"),
        (head * 2 * batch, "2*batch*head"),
        (head + batch * head + 7 + batch, "batch*head + batch + head + 7"),
        ((batch + head) * (batch - head), "batch*batch - head*head"),
        ((batch + 1) // 2, "(batch + 1)//2"),
        ((batch + 6) // 4 * 2 + head, "head + 2*((batch + 2)//4) + 2"),
        (-(batch // 2), "-(batch//2)"),
        (head - batch // 2, "head - batch//2"),
        (batch % 3 * head, "head*(batch % 3)"),
        (batch // head // n, "(batch//head)//n"),
        (7 // batch, "7//batch"),
        (-7 // (batch * head), "(-7)//(batch*head)"),
        (maximum(batch - 3, 0), "max(batch - 3, 0)"),
        (2 * minimum(3, batch) // head, "(2*min(batch, 3))//head"),
        (unknown("x" * 24), "x" * 24),
        (unknown("the_length_of_the_longest_sentence"), "the_length_…est_sentence"),
    ],
    ids=str,
)
def test_text(size: Size, text: str) -> None:
    assert str(size) == text


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (maximum(n, 0), n),
        (minimum(0, n), 0),
        (maximum(n + 1, 0), n + 1),
        (minimum(n, n + 2), n),
        (minimum(n // 2, n), n // 2),
        (maximum(n - n // 2, 0), n - n // 2),
        (maximum(n, maximum(n - 3, 0)), n),
        (maximum(maximum(n - 1, 0) - 1, 0), maximum(n - 2, 0)),
        (minimum(minimum(n, 5), 3), minimum(n, 3)),
        (((n + 1) // 2 + 1) // 2, (n + 3) // 4),
        ((2 * n + 3) // 4, (n + 1) // 2),
        ((n - 1) // 2 + 1, (n + 1) // 2),
        ((n * (m + 1)) // (m + 1), n),
        ((n * maximum(m, 1)) % maximum(m, 1), 0),
        (n // (n + 1), 0),
        ((n % 4) // 8, 0),
        (n % 4 % 8, n % 4),
        (n - n, 0),
        (count(()), 1),
        (count((n, 0, m)), 0),
    ],
    ids=str,
)
def test_folds(found: Size, expected: Size) -> None:
    assert one(found, expected)


def test_a_division_by_what_may_be_zero_stays() -> None:
    assert (n * m) // m is not n
    assert lower_bound((n * m) // m) == 0


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (3, 3, True),
        (3, 4, False),
        (n + m, m + n, True),
        (n, n + 1, False),
        (n + 1, 0, False),
        (n, 32, None),
        (n, m, None),
        (2 * n, 2 * m + 1, False),
        (maximum(n - 2, 0), n + 1, False),
    ],
    ids=str,
)
def test_same(a: Size, b: Size, verdict: bool | None) -> None:
    assert same(a, b) is verdict


def test_unknowns() -> None:
    assert unknowns(maximum(n // m, 3) + batch - batch) == {"n", "m"}
    assert unknowns(3) == frozenset()


def test_substitute_and_evaluate_name_what_is_missing() -> None:
    assert substitute((n + 1) // m, {"n": 2 * m - 1}) is (2 * m) // m
    with pytest.raises(KeyError, match="n \\+ 1 needs the size of n"):
        evaluate(n + 1, {})


def test_divisions_by_zero() -> None:
    with pytest.raises(ValueError, match="n//m divides by zero where m = 0, n = 3"):
        evaluate(n // m + 1, {"n": 3, "m": 0})
    with pytest.raises(ZeroDivisionError, match="n is divided by zero"):
        n % 0


def test_what_a_size_refuses() -> None:
    with pytest.raises(TypeError, match="batch \\+ 1 is known only at the call"):
        bool(batch + 1)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        for other in (3, 2.5, n + batch, n / 2):
            with pytest.raises(GraphTypeError, match="n is known only at the call"):
                compare(n, other)
        with pytest.raises(TypeError, match="not supported"):
            compare(n, "3")
    for convert in (float, int):
        for number in (n, n / 2):
            with pytest.raises(GraphTypeError, match="known only at the call"):
                convert(number)
    for combine in (operator.add, operator.mul, operator.sub, operator.truediv, operator.pow):
        for a, b in ((n, "2"), (n, [2])):
            with pytest.raises(TypeError):
                combine(a, b)
    with pytest.raises(AttributeError):
        n.terms = ()  # type: ignore[misc]


def test_source_never_holds_the_name_of_an_unknown() -> None:
    evil = unknown("__import__('os')")
    size = maximum(evil // (evil + 1 + n), evil % 3) * evil
    text = code(size, {"__import__('os')": "s0", "n": "s1"})
    assert "import" not in text
    assert eval(text, {"s0": 5, "s1": 0, "min": min, "max": max}) == 10


@pytest.mark.parametrize("name", ["", "//", "min", "a//b", "min(a, 3)", "'", '"', "\ud800", "0"])
def test_any_string_names_an_unknown(name: str) -> None:
    odd = unknown(name)
    assert unknowns(odd) == {name}
    assert minimum(odd, 3) + 1 - 1 is minimum(odd, 3)
    assert same(odd, unknown("a") // unknown("b")) is None
    assert one(minimum(minimum(odd, 3) + 1, 2), minimum(odd + 1, 2))


def test_interning_is_weak() -> None:
    """But for the last results of arithmetic, which are remembered."""
    gc.collect()
    before = len(sizes._table)
    for index in range(200):
        maximum((unknown(f"n{index}") + 1) // 2 - 3, 0)
    size = unknown("short-lived") * 2
    alive = weakref.ref(size)
    assert isinstance(size, Expression)
    del size
    for table in tables():
        table.clear()
    gc.collect()
    assert alive() is None
    assert len(sizes._table) <= before


def test_tables_of_results_are_bounded() -> None:
    asked: list[int] = []
    square = remembered(lambda i: asked.append(i) or i * i)
    (table,) = (cell.cell_contents for cell in square.__closure__ if cell.cell_contents == {})
    for i in range(MOST_RESULTS + 1):
        assert square(i) == square(i) == i * i
    assert asked == [*range(MOST_RESULTS + 1)]
    assert table == {(MOST_RESULTS,): MOST_RESULTS**2}


def test_threads_meet_the_same_objects() -> None:
    def build(_: int) -> list[Size]:
        return [maximum(unknown(f"t{index}") * 2 - 3, 0) // 2 for index in range(40)]

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(build, range(8))
    assert all(one(a, b) for other in others for a, b in zip(first, other, strict=True))
