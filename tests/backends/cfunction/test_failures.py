"""Calls of C functions that fail: what they return, and the words of `failure`."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.c_interface import FAILED, MEMORY, NAN, OVERLAP, SIZES
from tests.backends.cfunction.calling import Call
from tests.backends.llvm_kernels.native import needs_machine_code

pytestmark = needs_machine_code

x = gc.tensor("x", {"row": None})
A = gc.tensor("A", {"i": None, "j": "i"})
L = gc.linalg.cholesky(A, dims=("i", "j"))
CHOLESKY = "int f(size_t i, const double *A, double *L)"
MEAN = "int f(int row, double *x, double *y)"


def words(error: Exception | None) -> str:
    assert isinstance(error, gc.GraphError)
    return str(error)


def message(error: Exception | None) -> str:
    """What an error says but for where it was asked."""
    return "\n".join(line for line in words(error).splitlines() if not line.startswith("  called"))


@pytest.mark.parametrize("sizes", [{}, {"i": 2}])
def test_of_values_in_the_words_of_a_call(sizes: dict[str, int]) -> None:
    f = gc.compile([A], L, native=True)
    c = f.cfunc(CHOLESKY, **sizes)
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    call = Call(f, c, indefinite)
    assert c.failure() is None
    assert [call(), call()] == [FAILED, FAILED]
    with pytest.raises(gc.GraphError) as expected:
        f(indefinite)
    assert message(c.failure()) == message(expected.value)
    assert c.failure() is None
    np.testing.assert_array_equal(Call(f, c, np.eye(2) * 4).run()[0], np.eye(2) * 2)


def test_with_the_position_and_the_step() -> None:
    index = gc.tensor("index", {"step": None}, dtype="int64")
    total = gc.scan(lambda s, i: (s + x[{"row": i}], None), 0.0, index, dim="step")[0]
    f = gc.compile([x, index], total, native=True)
    c = f.cfunc("double f(int row, double *x, int step, int64_t *index)")
    bad = np.arange(3.0), np.array([0, 2, 7])
    assert np.isnan(Call(f, c, *bad)())
    with pytest.raises(gc.GraphError) as expected:
        f(*bad)
    found = message(c.failure())
    assert found == message(expected.value)
    assert "position 7 is outside dim 'row', which has size 3" in found
    assert "in step 2 (from 0)" in found


def test_a_single_float_is_nan() -> None:
    z = gc.tensor("z", {"i": None, "j": "i"}, dtype="float32")
    f = gc.compile([z], gc.linalg.cholesky(z, dims=("i", "j")).sum(), native=True)
    c = f.cfunc("float f(int i, float *z)")
    assert np.isnan(Call(f, c, -np.eye(3, dtype="f4"))())
    assert "not positive definite" in words(c.failure())


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128", "complex64"])
def test_a_result_with_nan(dtype: str) -> None:
    """At any place, in a few floats or in many; all results are written."""
    z = gc.tensor("z", {"row": None, "col": None}, dtype=dtype)
    f = gc.compile(
        [z],
        {"twice": 2 * z, "first": z[{"row": 0}], "whole": gc.ones({"k": 3}, dtype="int32")},
        native=True,
    )
    for rows, cols in ((7, 33), (2, 3), (1, 1), (2, 0)):
        for c in (f.cfunc(), f.cfunc(row=rows, col=cols)):
            last = rows - 1, cols - 1
            for at in {None, (0, 0), last, (rows // 2, cols // 2)} if cols else {None}:
                values = np.ones((rows, cols), dtype)
                if at:
                    values[at] = complex(1, np.nan) if dtype[0] == "c" else np.nan
                call = Call(f, c, values)
                assert call() == (NAN if at else 0)
                np.testing.assert_array_equal(call.results[0], 2 * values)
                error = c.failure()
                assert (error is None) == (at is None)
                if at:
                    said = f"the result 'twice' is nan at [row={at[0]}, col={at[1]}]"
                    assert words(error).startswith(f"call: {said}\n  called at")
                    assert isinstance(error, ValueError)


def test_which_result_has_nan() -> None:
    """The first of them; infinite results are none, and neither is nan on the way."""
    f = gc.compile([x], {"value": x.sum(), "grad": 1 / x, "least": gc.min(x)}, native=True)
    c = f.cfunc("int f(size_t row, double *x, double *grad, double *value, double *least)")
    assert Call(f, c, np.array([1.0, np.inf, 0.0]))() == 0
    assert Call(f, c, np.array([np.inf, -np.inf]))() == NAN
    assert words(c.failure()).startswith("call: the result 'value' is nan\n")
    assert Call(f, c, np.array([3.0, np.nan]))() == NAN
    assert words(c.failure()).startswith("call: the result 'value' is nan\n")
    assert f.check(np.array([np.inf, -np.inf])) is not None, "the cure"
    hidden = gc.compile([x], gc.where(x > 0, gc.log(x), 0.0), native=True)
    assert Call(hidden, hidden.cfunc(), np.array([-1.0, 1.0]))() == 0


def test_nan_of_values_and_of_other_statuses_is_no_failure() -> None:
    f = gc.compile([x], x.sum(), native=True)
    for declaration, success in (("double f(int row, double *x)", 0), (MEAN, 1), (MEAN, 7)):
        c = f.cfunc(declaration, success=success)
        call = Call(f, c, np.array([1.0, np.nan]))
        assert np.isnan(call.run()[0])
    unchecked = gc.compile([A], gc.linalg.cholesky(A, dims=("i", "j"), check=False), native=True)
    c = unchecked.cfunc(CHOLESKY)
    assert Call(unchecked, c, -np.eye(2))() == NAN
    assert "the result 'L' is nan at [i=0, j=0]" in words(c.failure())


def test_success_of_another_number() -> None:
    f = gc.compile([A], L, native=True)
    for success in (1, 7):
        c = f.cfunc(CHOLESKY, success=success)
        assert Call(f, c, np.eye(2))() == success
        assert Call(f, c, -np.eye(2))() == 0
        assert "not positive definite" in words(c.failure())


def test_sizes() -> None:
    z = gc.tensor("z", {"row": "n", "col": "n - 2"})
    f = gc.compile([z], z.sum("col"), native=True)
    c = f.cfunc("int f(int n, int64_t col, double *z, double *y)")
    call = Call(f, c, np.ones((4, 2)))
    assert call() == 0
    for n, col, said in (
        (-1, 2, "the size 'n' is -1, but must be 0 or more"),
        (4, 3, "the parameter col is 3, but must be 2 = n - 2"),
        (1, -1, "dim 'col' of input 'z' has size n - 2, which is -1, but must be 0 or more"),
    ):
        call.given[:2] = n, col
        assert call() == SIZES
        error = c.failure()
        assert isinstance(error, ValueError)
        assert words(error).startswith(f"call: {said}\n  called at")


def test_what_operations_need_of_sizes() -> None:
    pair = gc.tensor("pair", {"other": None})
    f = gc.compile([x, pair], gc.dot(x, pair.rename(other="row")), native=True)
    c = f.cfunc("double f(int row, int other, double *x, double *pair)")
    assert Call(f, c, np.ones(3), np.ones(3))() == 3.0
    call = Call(f, c, np.ones(3), np.ones(3))
    call.given[1] = 2
    assert np.isnan(call())
    assert "needs row == other for dim 'row', but they are 3 and 2" in words(c.failure())
    with pytest.raises(gc.GraphValueError, match="but they are 3 and 2"):
        f.cfunc("double f(double *x, double *pair)", row=3, other=2)


def test_a_value_that_is_a_size() -> None:
    n = gc.tensor("n", {}, dtype="int64")
    f = gc.compile([x, n], x[:n], native=True)
    c = f.cfunc("int f(size_t row, double *x, int64_t n, double *y)")
    call = Call(f, c, np.arange(4.0), 2)
    assert call() == 0
    call.given[2] = -1
    assert call() == SIZES
    assert "the size 'n' is -1" in words(c.failure())


def test_a_size_that_is_divided_by_0() -> None:
    n, k = (gc.tensor(name, {}, dtype="int64") for name in "nk")
    f = gc.compile(
        [n, k], [gc.arange(n // k, dim="a"), gc.cumsum(gc.ones({"b": n % k}), "b")], native=True
    )
    outputs = "int64_t *result0, double *result1"
    for c in (f.cfunc(), f.cfunc(f"int f(const int64_t *n, int64_t *k, {outputs})")):
        for values in ((7, 2), (17, 5), (3, 4)):
            for y, z in zip(Call(f, c, *values).run(), f(*values), strict=True):
                np.testing.assert_array_equal(y, z)
        assert Call(f, c, 7, 2)() == 0
        zero = Call(f, c, 7, 2)
        zero.inputs[1][...] = 0
        zero.given[1] = 0 if isinstance(zero.given[1], int) else zero.given[1]
        assert zero() == SIZES
        assert "needs 1 <= k for dim 'a', but they are 1 and 0" in words(c.failure())
    parts = gc.tensor("parts", {"row": "n", "of": "m", "part": "n // m"})
    g = gc.compile([parts], parts.sum(), native=True)
    with pytest.raises(gc.GraphValueError, match="where m is 0, but must be 1 or more"):
        g.cfunc(n=4, m=0)
    assert g.cfunc("double f(double *parts)", n=4, m=2)


@pytest.mark.parametrize("sizes", [{}, {"row": 8}])
def test_arrays_that_share_memory(sizes: dict[str, int]) -> None:
    f = gc.compile([x], {"a": x * 2, "b": x + 1}, native=True)
    c = f.cfunc("int f(size_t row, const double *x, double *a, double *b)", **sizes)
    memory = np.arange(40.0)
    at = lambda n: ctypes.c_void_p(memory.ctypes.data + 8 * n)
    call = Call(f, c, np.arange(8.0))
    for a, b, said in (
        (0, 20, "'x' and 'a'"),
        (7, 20, "'x' and 'a'"),
        (20, 3, "'x' and 'b'"),
        (20, 13, "'a' and 'b'"),
    ):
        assert call.function(8, at(0), at(a), at(b)) == OVERLAP
        assert words(c.failure()).startswith(f"call: the arrays {said} share memory")
        np.testing.assert_array_equal(memory, np.arange(40.0))
    assert call.function(8, at(0), at(8), at(16)) == 0
    empty = f.cfunc("int f(size_t row, const double *x, double *a, double *b)")
    assert Call(f, empty, np.zeros(0)).function(0, at(0), at(0), at(0)) == 0
    assert Call(f, empty, np.zeros(0)).function(0, None, None, None) == 0


def test_without_memory() -> None:
    """As in a call, an operation is named that has no memory."""
    n = gc.tensor("n", {}, dtype="int64")
    big = gc.arange(n, dim="k") * 1.0
    f = gc.compile(
        [n],
        gc.cumsum(gc.sin(big), "k").max(),
        native=True,
    )
    for size in (2**40, 2**39):
        c = f.cfunc("double f(int64_t n)")
        assert np.isnan(c.ctypes(size))
        assert isinstance(c.failure(), MemoryError)
        status = f.cfunc("int f(int64_t n, double *y)")
        y = np.zeros(())
        assert status.ctypes(size, y.ctypes.data_as(ctypes.POINTER(ctypes.c_double))) == MEMORY
    assert c.ctypes(1000) == f(1000)
    square = gc.tensor("m", {"a": None, "b": None, "c": None, "d": None})
    g = gc.compile([square], gc.cumsum(square, "a").sum(), native=True)
    c = g.cfunc("double f(size_t a, size_t b, size_t c, size_t d, double *m)")
    far = 2**40 - 1
    assert np.isnan(c.ctypes(far, far, far, far, None)), "their product overflows"
    assert isinstance(c.failure(), MemoryError)


def test_a_failure_that_is_being_noted_for_ever() -> None:
    """As in the child of a fork where another thread did so: it is read all the same."""
    f = gc.compile([A], L, native=True)
    c = f.cfunc(CHOLESKY)
    assert Call(f, c, -np.eye(2))() == FAILED
    c._entry.pool[8] = 1
    assert Call(f, c, -np.eye(2))() == FAILED
    assert "not positive definite" in words(c.failure())
    assert c.failure() is None
    assert Call(f, c, -np.eye(2))() == FAILED
    assert c.failure() is not None


def test_failures_of_the_last_call() -> None:
    pick = gc.tensor("pick", {}, dtype="int64")
    f = gc.compile([pick], gc.constant([1.0, 2.0], "row")[{"row": pick}], native=True)
    c = f.cfunc("double f(int64_t pick)")
    for at in (5, 6, 1, 7, 0):
        c.ctypes(at)
    assert "position 7" in words(c.failure())
