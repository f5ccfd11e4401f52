"""Operands that are no tensors: what NumPy 2 makes of them."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import xarray

import graphcore as gc

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float32", "float64",
          "complex64", "complex128"]  # fmt: skip
NUMBERS = [True, 1, 1.5, 1j, np.int16(1), np.float32(1.5), np.float64(1.5), np.array(1.5, "f4")]
UFUNCS = [name for name in dir(gc) if isinstance(getattr(np, name, None), np.ufunc)]


def outcome(function, *args):
    try:
        with np.errstate(all="ignore"):
            return np.dtype(function(*args).dtype)
    except TypeError:
        return TypeError


@pytest.mark.parametrize("name", UFUNCS)
def test_dtypes_of_ufuncs(name):
    """Operands of one dtype, and with numbers on either side, as NumPy resolves them."""
    ours, theirs = getattr(gc, name), getattr(np, name)
    if theirs.nout > 1:
        return
    for dtype in DTYPES:
        x, value = gc.tensor("x", {"row": 1}, dtype=dtype), np.ones(1, dtype)
        if theirs.nin == 1:
            assert outcome(ours, x) == outcome(theirs, value), dtype
            continue
        assert outcome(ours, x, x) == outcome(theirs, value, value), dtype
        for number in NUMBERS:
            assert outcome(ours, x, number) == outcome(theirs, value, number), (dtype, number)
            assert outcome(ours, number, x) == outcome(theirs, number, value), (dtype, number)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(DTYPES, DTYPES)))
def test_dtypes_of_pairs(left, right):
    x, y = gc.tensor("x", {"row": 1}, dtype=left), gc.tensor("y", {"row": 1}, dtype=right)
    a, b = np.ones(1, left), np.ones(1, right)
    for name in ("add", "divide", "less", "arctan2", "maximum"):
        assert outcome(getattr(gc, name), x, y) == outcome(getattr(np, name), a, b), name
    assert gc.where(x != 0, x, y).dtype == np.where(a != 0, a, b).dtype


def test_numbers_of_numpy_widen_and_floats_of_python_do_not():
    x = gc.tensor("x", {"row": 2}, dtype="int8")
    assert (x + np.int16(300)).dtype == np.int16
    assert (gc.tensor("f", {}, dtype="float32") + 1e300).dtype == np.float32


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64", "int64"])
@pytest.mark.parametrize("number", [-1, 300, 2**63, 2**64, -(2**70)])
@pytest.mark.parametrize(
    "name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
)
def test_comparisons_with_integers_out_of_range(dtype, number, name):
    x = gc.tensor("x", {"row": 2, "col": None}, dtype=dtype)
    bounds = np.iinfo(dtype)
    made = getattr(gc, name)(x, number), getattr(gc, name)(number, x)
    for found, args in zip(made, [(np.zeros(1, dtype), number), (number, np.zeros(1, dtype))]):
        assert (found.dtype, found.dims, found.shape) == (np.bool_, x.dims, x.shape)
        if not bounds.min <= number <= bounds.max:
            assert found is gc.full(x.sizes, bool(getattr(np, name)(*args)[0]))


def test_signed_zeros_and_kinds_stay_apart():
    x = gc.tensor("x", {})
    assert x + 0.0 is not x + -0.0
    assert gc.constant(1) is not gc.constant(True)
    z = gc.tensor("z", {}, dtype="complex128")
    assert z + complex(0, 0.0) is not z + complex(0, -0.0)
    assert x + float("nan") is x + float("nan")


def test_results_of_loops_have_their_own_dtype():
    """A number gives way to the dtype of an operand; the last value of a carry is no number."""
    last = gc.fori_loop(0, 3, lambda i, c: c + 1, 1.0)
    grown = gc.while_loop(lambda c: c < 10, lambda c: c * 2, 1.0)
    for result in (last, grown):
        assert (result * gc.tensor("x", "row", dtype="float32")).dtype == "float64"


def test_sizes_are_weak_integers():
    x = gc.tensor("x", {"batch": None}, dtype="float32")
    n = x.sizes["batch"]
    assert (x / n).dtype == np.float32
    assert (n * x).dtype == np.float32
    assert (gc.tensor("i", {}, dtype="int8") + n).dtype == np.int64
    assert gc.maximum(n, 1).dtype == np.int64


def test_arrays_with_dims_are_constants():
    x = gc.tensor("x", {"row": 2})
    array = xarray.DataArray([1.0, 2.0, 3.0], dims="col")
    assert (x * array).dims == ("row", "col")
    assert x * array is x * gc.constant([1.0, 2.0, 3.0], "col")


@pytest.mark.parametrize(
    ("value", "dtype", "cure"),
    [
        (np.float64(0.1), "float32", "float(value)"),
        (np.array(0.1), "float32", "float(value)"),
        (np.int64(3), "float32", "int(value)"),
        (np.int64(3), "int8", "int(value)"),
        (np.complex128(1j), "complex64", "complex(value)"),
        (np.float64(0.1), "int64", ".astype('int64')"),
        (np.complex128(1 + 0j), "float64", "value.real"),
        (xarray.DataArray(0.1), "float32", "float(value)"),
    ],
)
def test_a_number_of_numpy_that_an_input_cannot_hold_is_refused_with_a_cure_that_works(
    value, dtype, cure
):
    x = gc.tensor("x", {}, dtype=dtype)
    f = gc.compile([x], x)
    with pytest.raises(gc.GraphTypeError, match="would lose values") as refused:
        f(value)
    assert cure in str(refused.value)
    mended = eval(f"value{cure}" if cure.startswith(".") else cure)
    np.testing.assert_array_equal(f(mended), np.asarray(mended, dtype))


THROUGH_XARRAY = {
    "multiply": lambda array, x: array * x,
    "subtract": lambda array, x: array - x,
    "power": lambda array, x: array**x,
    "less": lambda array, x: array < x,
}


@pytest.mark.parametrize("name", THROUGH_XARRAY)
@pytest.mark.parametrize("dims", ["i", ()])
@pytest.mark.parametrize("kind", [xarray.Variable, lambda dims, a: xarray.DataArray(a, dims=dims)])
def test_an_array_of_xarray_before_a_tensor_is_refused_at_the_users_line(name, dims, kind):
    """xarray keeps the dims from us, and would wrap the result as an array of its own."""
    array, x = kind(dims, np.ones(2 if dims else ())), gc.tensor("x", {"i": None})
    with pytest.raises(gc.GraphTypeError) as refused:
        THROUGH_XARRAY[name](array, x)
    said = str(refused.value)
    assert said.startswith(f"{name}: ")
    assert f"write gc.{name}(array, x)" in said
    assert "built at test_lift.py:" in said
    assert "variable.py" not in said
    mended = getattr(gc, name)(array, x)
    assert (mended.dims, mended.node.origin.file) == (("i",), __file__)


def test_a_call_by_scipy_is_refused_at_the_users_line():
    x = gc.tensor("x", {"i": 3})
    f = gc.compile([x], (x**2).sum())
    with pytest.raises(gc.GraphValueError, match=r"has size 2(.|\n)*called at test_lift\.py:"):
        scipy.optimize.minimize(f, np.zeros(2))


def test_arrays_times_sizes():
    x = gc.tensor("x", {"row": None})
    n, values = x.sizes["row"], np.array([1.0, 2.0])
    mended = [gc.constant(values, "i") * n, gc.concat([n / 2, 2.0], "i")]
    found = gc.compile([x], mended)(np.ones(3))
    np.testing.assert_array_equal(found, [[3, 6], [1.5, 2]])


def test_what_xarray_strips_of_its_dims_is_refused_with_a_cure_for_every_operator():
    data, x = xarray.DataArray([1.0, 2.0], dims="i"), gc.tensor("x", {"i": 2})
    for wrong, name in (
        (lambda: data * x, "multiply"),
        (lambda: data - x, "subtract"),
        (lambda: data > x, "greater"),
    ):
        cure = rf"write gc.{name}\(array, x\); or put the tensor first, as in x \* array"
        with pytest.raises(gc.GraphTypeError, match=cure) as refused:
            wrong()
        assert "test_lift.py" in str(refused.value)
    found = gc.compile([x], gc.subtract(data, x))([3.0, 5.0])
    np.testing.assert_array_equal(found, [-2, -3])


def test_an_imaginary_part_counts_as_truth_and_narrows():
    z = gc.tensor("z", {"row": None}, dtype="complex128")
    f = gc.compile([z], [z.astype("bool"), z.astype("complex64")])
    truth, narrow = f(np.array([0, 1j]))
    assert (truth.tolist(), narrow.dtype) == ([False, True], np.complex64)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda x, data: x * data, "Dataset"),
        (lambda x, data: gc.constant(data), "Dataset"),
        (lambda x, data: x.isel(i=data), "Dataset"),
        (lambda x, data: gc.compile([x], x)(data), "Dataset"),
        (lambda x, data: gc.constant(np.longdouble(1)), "not supported"),
        (lambda x, data: gc.tensor("y", {"i": "(" * 9999}), "not an expression of sizes"),
    ],
)
def test_what_another_version_words_otherwise_is_refused(wrong, says):
    data = xarray.Dataset({"a": ("i", [1.0, 2.0])})
    with pytest.raises(gc.GraphError, match=says):
        wrong(gc.tensor("x", {"i": 2}), data)


def test_formulas_of_sizes():
    """Sizes known only at the call take part in arithmetic as Python's numbers do."""
    for dtype in ("float32", "float64", "complex128", "int64"):
        x = gc.tensor("x", {"row": None, "col": None}, dtype=dtype)
        rows, cols = x.sizes["row"], x.sizes["col"]

        def formulas(x, n, m):
            return [
                x / n**0.5, 0.5 * n * x, (n / 2 - 1) + x, x * (2.5 - n), n**2 * x, 2.0**n - x,
                -(n / m) * x, x * (1 / n + m * 1.5 - 0.5 / m), x ** (m / 2), 3 / (n + 0.5) * x,
                x + m // 1.5, x - 7.5 % n, (n / m) // 0.25 * x, x * +(0.5 * n % m), x - 1j * m / n,
                abs(n - 3.5) * x, x + divmod(m, 0.7)[1], 2j * n + x,
            ]  # fmt: skip

        values = np.arange(1, 7).reshape(2, 3).astype(dtype)
        found = gc.compile([x], formulas(x, rows, cols))(values)
        for ours, theirs in zip(found, formulas(values, 2, 3), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert rows**2 is rows * rows
    assert abs(rows) is rows
    assert divmod(rows, 2) == (rows // 2, rows % 2)
    both = gc.compile([x], [gc.constant(rows), gc.constant(1j * rows)])(np.ones((3, 1), int))
    assert [str(number) for number in both] == ["3", "3j"]
    with pytest.raises(TypeError, match="known only at the call"):
        bool(rows / 2)
    with pytest.raises(TypeError):
        rows * "2"
