import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
import xarray

import graphcore as gc


def test_inputs_in_all_spellings():
    x = gc.tensor("x", {"batch": None, "row": 3})
    assert x is gc.tensor("x", ("batch", "row"), shape=(None, 3))
    assert x is gc.tensor("x", ["batch", "row"], (None, np.int64(3)), "f8")
    assert gc.tensor("y", "batch") is gc.tensor("y", ("batch",))
    assert gc.tensor("y", {}).shape == ()
    n = x.sizes["batch"]
    assert gc.tensor("y", {"batch": "batch"}).shape == (n,)
    assert str(gc.tensor("y", {"sample": "n_test", "pair": 2 * n})) == (
        "<Tensor y: f64[sample=n_test, pair=2*batch]>"
    )


def test_sizes_as_text():
    """They were names, which were shown as sums that nothing checked."""
    x, y = gc.tensor("x", {"i": "n"}), gc.tensor("y", {"i": "n + 4", "j": "2*n", "k": "3"})
    n = x.sizes["i"]
    assert y is gc.tensor("y", {"i": n + 4, "j": 2 * n, "k": 3})
    for size in (n // 2 - 1, n % 3, gc.tensor("z", {"k": "max(n - 3, min(2*n, m)*4)"}).sizes["k"]):
        assert gc.tensor("z", {"k": str(size)}).sizes["k"] is size
    f = gc.compile([x, y], y.sum() + x.sum())
    assert f(np.ones(2), np.ones((6, 4, 3))) == 74
    with pytest.raises(gc.GraphValueError, match=r"has size 7, but must have n \+ 4 = 6"):
        f(np.ones(2), np.ones((7, 4, 3)))
    last, _ = gc.scan(lambda c, _: (c + 1, None), 0.0, length="n - 1", dim="t")
    assert gc.compile([x], last)(np.ones(5)) == 4


def test_names_of_dims_that_read_as_sums_are_shown_apart_from_them():
    x, n = gc.tensor("x", {"n + 4": None}), gc.tensor("y", {"n": None}).sizes["n"]
    (size,) = x.shape
    assert size is not n + 4
    assert (str(x), str(size + 1), str(n + 4)) == ("<Tensor x: f64[n + 4]>", "'n + 4' + 1", "n + 4")
    assert str(x.rename({"n + 4": "i"})) == "<Tensor: f64[i='n + 4']>"


@pytest.mark.parametrize("name", ["x); import os #", "class", "lambda", "🦙", "n" * 10_000, ""])
def test_any_string_is_a_name(name):
    x = gc.tensor(name, {name: None})
    assert (x.name, x.dims) == (name, (name,))
    assert len(repr(x.sum(name) + x)) < 200


def test_constants():
    assert gc.constant([[1.0, 2.0]], ("a", "b")).shape == (1, 2)
    array = xarray.DataArray(np.ones((1, 2)), dims=("a", "b"), coords={"b": [7, 8]})
    assert gc.constant(array) is gc.constant(array.copy())
    assert gc.constant(array) is not gc.constant(array.assign_coords(b=[7, 9]))
    assert gc.constant(array.drop_vars("b")) is gc.constant(np.ones((1, 2)), ("a", "b"))
    assert gc.constant(np.ones(3, ">f4"), "a").dtype == np.dtype("<f4")
    assert gc.constant([1, 2], "a", dtype="float32").dtype == np.float32
    assert gc.constant(1.5) is gc.full({}, 1.5)
    values = np.ones(3)
    made = gc.constant(values, "a")
    values[0] = 2
    assert gc.constant(np.ones(3), "a") is made


def test_filled():
    n = gc.tensor("x", {"batch": None}).sizes["batch"]
    assert gc.zeros({"row": 2, "batch": n}, "int32") is gc.full({"row": 2, "batch": n}, np.int32(0))
    assert gc.ones({"row": 2}) is gc.full({"row": 2}, 1.0)
    x = gc.tensor("x", {"row": 2, "col": None}, dtype="float32")
    assert gc.zeros_like(x) is gc.zeros(x.sizes, "float32")
    assert gc.ones_like(x, "bool") is gc.full(x.sizes, True)
    assert gc.full({"row": 3}, gc.tensor("y", {"col": 2})).sizes == {"row": 3, "col": 2}
    assert gc.full({"row": 3}, 1).dtype == np.int64


@pytest.mark.parametrize("args", [(5,), (2, 7), (7, 2, -2), (0.0, 1.0, 0.3), (3, 3), (5, 0)])
def test_arange_as_numpy(args):
    made, wanted = gc.arange(*args, dim="t"), np.arange(*args)
    assert (made.dims, made.shape, made.dtype) == (("t",), wanted.shape, wanted.dtype)


def test_arange_of_sizes():
    n = gc.tensor("x", {"t": None}).sizes["t"]
    made = gc.arange(n, dim="t"), gc.arange(2, n, 3, dim="t"), gc.arange(n, 0, -1, dim="t")
    assert [str(t.shape[0]) for t in made] == ["t", "t//3", "t"]
    assert all(t.dtype == np.int64 for t in made)
    assert gc.arange(n, dim="t", dtype="float32").dtype == np.float32


def test_linspace():
    assert gc.linspace(0, 1, 5, dim="t") is gc.constant(np.linspace(0, 1, 5), "t")
    n = gc.tensor("x", {"t": None}).sizes["t"]
    assert gc.linspace(0, 1, n, dim="t").shape == (n,)
    low = gc.tensor("low", {"row": 2}, dtype="float32")
    made = gc.linspace(low, 1, 5, dim="t", endpoint=False)
    assert (made.dims, made.shape, made.dtype) == (("t", "row"), (5, 2), np.float32)


def test_eye():
    assert gc.eye({"row": 3, "col": 3}) is gc.eye(("row", "col"), 3)
    assert gc.eye(("row", "col"), (2, 3), k=1).shape == (2, 3)
    assert gc.eye({"row": None, "col": "row"}).dims == ("row", "col")


RANGES = [
    (0, 1, 1),
    (2, 1, 1),
    (1, 2, 3),
    (0, 1, -1),
    (9, 1, -2),
    (9, 0, -4),
    (-3, 1, 1),
    (5, 1, 2),
]


@pytest.mark.parametrize(("start", "sizes", "step"), RANGES)
def test_ranges_between_sizes(start, sizes, step):
    """From a number to a size, and from a size to a number."""
    x = gc.tensor("x", {"row": None})
    stop = sizes * x.sizes["row"]
    ends = (start, stop, step), (stop, start, step), (stop, stop + start, step)
    f = gc.compile([x], [gc.arange(*some, dim="t") for some in ends])
    for n in (0, 1, 5, 8):
        wanted = (start, sizes * n), (sizes * n, start), (sizes * n, sizes * n + start)
        for found, some in zip(f(np.zeros(n)), wanted, strict=True):
            np.testing.assert_array_equal(found, np.arange(*some, step))
            now = gc.compile([], gc.arange(*some, step, dim="t"))()
            np.testing.assert_array_equal(now, np.arange(*some, step))


BUILT_OF_SIZES = {
    "zeros_like": gc.zeros_like,
    "ones_like": lambda x: gc.ones_like(x.sum(), dtype="float32"),
    "full_like": lambda x: gc.full_like(x, gc.tensor("v", {"c": 2}).sum()),
    "imag": gc.imag,
    "isreal": gc.isreal,
    "iscomplex": lambda x: gc.iscomplex(x).any(),
    "comparison": lambda x: x.astype("uint8") < 300,
    "comparison reversed": lambda x: gc.not_equal(-1, x.astype("uint8")),
    "of a loop": lambda x: gc.ones_like(gc.fori_loop(0, 2, lambda i, s: s + x, x)),
    "in a loop": lambda x: gc.fori_loop(0, 2, lambda i, s: s + gc.zeros_like(x), x),
}


@pytest.mark.parametrize("name", BUILT_OF_SIZES)
def test_what_is_built_of_sizes_alone_keeps_their_checks(name):
    x = gc.tensor("x", {"a": None, "b": 2})
    y = gc.tensor("y", {"a": "other"})
    build, v = BUILT_OF_SIZES[name], gc.tensor("v", {"c": 2})
    f, alone = gc.compile([x, y, v], build(x + y)), gc.compile([x, v], build(x))
    values, given = np.arange(6.0).reshape(3, 2), np.ones(2)
    found, expected = f(values, np.zeros(3), given), alone(values, given)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(gc.GraphValueError, match=r"add at .* needs .* for dim 'a'"):
        f(values, np.zeros(4), given)
    assert gc.zeros_like(x * 2).node.op.name == "full"


def unknown(name):
    return gc.tensor("elsewhere", {name: None}).sizes[name]


OF_UNKNOWN_SIZE = {
    "scan": lambda x: gc.scan(lambda c, _: (c + 1, c), 0.0, length="n")[1],
    "scan to its end": lambda x: gc.scan(lambda c, _: (c + 1, None), 0.0, length="n")[0],
    "zeros": lambda x: gc.zeros({"row": "n"}),
    "arange": lambda x: gc.arange(unknown("n"), dim="t"),
    "slice": lambda x: x[unknown("n") :],
    "number": lambda x: x * unknown("n"),
    "formula": lambda x: x / (unknown("n") // 2 + 1) ** 0.5,
    "in a body": lambda x: gc.scan(
        lambda c, e: (c + gc.zeros({"k": "n"}).sum(), None), 0.0, x, dim="a"
    )[0],
    "input": lambda x: gc.tensor("y", {"a": 2 * unknown("n")}),
}


@pytest.mark.parametrize("name", OF_UNKNOWN_SIZE)
def test_an_unknown_size_that_no_input_has_is_refused_with_a_cure_that_works(name):
    x = gc.tensor("x", {"a": None})
    y = OF_UNKNOWN_SIZE[name](x)
    inputs = [x, y] if name == "input" else [x]
    with pytest.raises(gc.GraphValueError, match="'n', which no input has on its own") as refused:
        gc.compile(inputs, y)
    (cure,) = re.findall(r"such as (gc\..*)", str(refused.value))
    f = gc.compile([*inputs, eval(cure)], y)
    given = [np.ones(6) for _ in inputs]
    assert f(*given, np.ones(3)) is not None
    assert "test_creation.py:" in str(refused.value)


LIKES = {
    "zeros": lambda **more: gc.zeros({"row": 2}, **more),
    "ones": lambda **more: gc.ones({"row": 2}, **more),
    "full": lambda **more: gc.full({"row": 2}, 1.5, **more),
    "constant": lambda **more: gc.constant([1.0, 2.0], "row", **more),
    "arange": lambda **more: gc.arange(3, dim="row", **more),
    "linspace": lambda **more: gc.linspace(0, 1, 3, dim="row", **more),
    "logspace": lambda **more: gc.logspace(0, 1, 3, dim="row", **more),
    "geomspace": lambda **more: gc.geomspace(1, 2, 3, dim="row", **more),
    "one_hot": lambda **more: gc.one_hot(gc.constant([0, 1], "row"), 2, **more),
    "eye": lambda **more: gc.eye({"row": 2, "col": 2}, **more),
    "tri": lambda **more: gc.tri({"row": 2, "col": 2}, **more),
    "hann": lambda **more: gc.signal.hann(4, dim="row", **more),
    "hamming": lambda **more: gc.signal.hamming(4, dim="row", **more),
    "blackman": lambda **more: gc.signal.blackman(4, dim="row", **more),
    "bartlett": lambda **more: gc.signal.bartlett(4, dim="row", **more),
    "fftfreq": lambda **more: gc.fft.fftfreq(4, dim="row", **more),
    "rfftfreq": lambda **more: gc.fft.rfftfreq(4, dim="row", **more),
}


@pytest.mark.parametrize("name", LIKES)
def test_new_values_have_the_dtype_given_or_that_of_a_tensor(name):
    make, x = LIKES[name], gc.tensor("x", {"row": None}, dtype="float32")
    assert make(dtype="float32").dtype == make(like=x).dtype == "float32"
    assert (make(like=x).isel(row=0) * x).dtype == "float32"
    np.testing.assert_array_equal(make(like=x).eval(), make().eval().astype("float32"))
    with pytest.raises(gc.GraphTypeError, match=f"{name}: takes a dtype, 'float32', or a tensor"):
        make(dtype="float32", like=x)
    with pytest.raises(gc.GraphTypeError, match=name):
        make(like="float32")


MADE = {
    "tensor": lambda: gc.tensor("x", {"row": None}),
    "zeros": lambda: gc.zeros({"row": 2}),
    "ones": lambda: gc.ones({"row": 2}),
    "eye": lambda: gc.eye({"row": 2, "col": 2}),
    "tri": lambda: gc.tri({"row": 2, "col": 2}),
    "one_hot": lambda: gc.one_hot(gc.constant([0, 1], "row"), 2, dim="k"),
    "hann": lambda: gc.signal.hann(3, dim="t"),
    "full": lambda: gc.full({"row": 2}, 0.1),
    "constant": lambda: gc.constant([[0.1, 2], [3, 4]], ("row", "col")),
    "a number": lambda: gc.constant(0.1),
    "array": lambda: gc.array([0.1, gc.constant(1.0)], "row"),
    "arange": lambda: gc.arange(0.1, 2, dim="t"),
    "linspace": lambda: gc.linspace(0, 1, 7, dim="t"),
    "logspace": lambda: gc.logspace(0, 1, 7, dim="t"),
    "geomspace": lambda: gc.geomspace(1, 2, 7, dim="t"),
    "an elementwise function": lambda: gc.exp(0.1),
    "a carry": lambda: gc.fori_loop(0, 2, lambda i, c: 0.1 * c, 1.0),
}


@pytest.mark.parametrize("name", MADE)
def test_the_default_dtype_is_that_of_the_block(name):
    make = MADE[name]
    assert make().dtype == "float64"
    with gc.default_dtype("float32"):
        assert make().dtype == "float32"
        with gc.default_dtype("float64"):
            assert make().dtype == "float64"
        with suppress(ZeroDivisionError), gc.default_dtype("float16"):
            raise ZeroDivisionError
        assert make().dtype == "float32"
    assert make().dtype == "float64"


def test_the_default_dtype_changes_nothing_that_has_one():
    x, n = gc.tensor("x", {"row": 2}), gc.tensor("n", {"row": 2}, dtype="int32")

    def several():
        made = [gc.zeros({"row": 2}, "int8"), gc.ones({"row": 2}, like=x), gc.constant([1], "t")]
        made += [gc.constant(np.array([1.0]), "t"), gc.constant([np.float64(1)], "t")]
        made += [gc.full({"row": 2}, np.float64(1)), gc.arange(np.float64(3), dim="t")]
        made += [gc.linspace(n.isel(row=0), 1, 3, dim="t"), gc.full({"row": 2}, 2.5, like=x)]
        return [*made, 2.5 * x, n * 2.5, n.mean(), x.weighted(n).mean(), gc.full({"row": 2}, 15)]

    with gc.default_dtype("float32"):
        inside = several()
    assert [y is z for y, z in zip(inside, several(), strict=True)] == [True] * len(inside)


def test_numbers_are_rounded_once_to_the_default_dtype():
    exact = gc.linspace(0.1, 1, 7, dim="t").eval()
    with gc.default_dtype("float32"):
        np.testing.assert_array_equal(gc.linspace(0.1, 1, 7, dim="t").eval(), np.float32(exact))
        assert gc.constant([0.1j], "t").dtype == gc.full({"t": 2}, 1j).dtype == "complex64"


def test_the_default_dtype_is_one_of_this_thread():
    with gc.default_dtype("float32"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(MADE["zeros"]).result().dtype == "float64"
