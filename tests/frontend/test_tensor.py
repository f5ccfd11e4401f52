import copy
import gc as garbage
import operator
import pickle
import weakref

import numpy as np
import pytest

import graphcore as gc


@pytest.fixture
def x() -> gc.Tensor:
    return gc.tensor("x", {"batch": None, "row": 3})


def test_what_is_known(x):
    assert x.dims == ("batch", "row")
    assert (str(x.shape), str(x.sizes)) == ("(batch, 3)", "{'batch': batch, 'row': 3}")
    assert (str(x.size), x.ndim, x.dtype, x.name) == ("3*batch", 2, np.float64, "x")
    assert (x + 1).name is None
    assert repr(x) == "<Tensor x: f64[batch, row=3]>"
    assert repr(x + 1) == "<Tensor: f64[batch, row=3]>"


def test_two_builds_are_one_object(x):
    def build():
        y = gc.tensor("y", {"row": 3})
        return gc.special.softmax(x * y + 0.5, "row").sum()

    assert build() is build()
    assert gc.Tensor(x.node) is x


def test_copies_and_pickles(x):
    y = gc.exp(x)
    assert copy.copy(y) is y
    assert copy.deepcopy([y])[0] is y
    assert pickle.loads(pickle.dumps(y)) is y


def test_tensors_are_freed():
    died = weakref.ref(gc.exp(gc.tensor("only here", {"row": 2})))
    garbage.collect()
    assert died() is None


def test_all_of_a_compiled_program_is_freed():
    def program():
        x = gc.tensor("only here too", {"time": None, "row": 2})
        k = gc.constant(np.array([3.25, 7.5]), "row")
        last, _ = gc.scan(lambda c, v: (gc.sin(c * v + k),) * 2, k, x, dim="time")
        return gc.compile([x], [last, gc.grad(last.sum(), x)])

    stages = program().stages.values()
    died = [weakref.ref(node) for stage in stages for node in stage.every_node() if node.inputs]
    del stages
    garbage.collect()
    assert {ref() for ref in died} == {None}


def test_immutable(x):
    with pytest.raises(AttributeError, match="immutable"):
        x.name = "y"
    with pytest.raises(AttributeError):
        x.other = 1


def test_hash_is_identity(x):
    y = x + 1
    table = {x: "x", y: "y"}
    assert (table[x], table[x + 1]) == ("x", "y")


OPERATORS = {
    operator.add: "add", operator.sub: "subtract", operator.mul: "multiply",
    operator.truediv: "divide", operator.floordiv: "floor_divide", operator.mod: "remainder",
    operator.pow: "power", operator.eq: "equal", operator.ne: "not_equal", operator.lt: "less",
    operator.le: "less_equal", operator.gt: "greater", operator.ge: "greater_equal",
}  # fmt: skip
BITWISE = {
    operator.and_: "bitwise_and", operator.or_: "bitwise_or", operator.xor: "bitwise_xor",
    operator.lshift: "left_shift", operator.rshift: "right_shift",
}  # fmt: skip
MIRRORED = {"less": "greater", "greater": "less", "less_equal": "greater_equal"}
MIRRORED["greater_equal"] = "less_equal"


@pytest.mark.parametrize(("infix", "name"), [*OPERATORS.items(), *BITWISE.items()])
def test_operators(infix, name):
    dtype = "int64" if infix in BITWISE else "float64"
    x, y = gc.tensor("x", {"row": 3}, dtype=dtype), gc.tensor("y", {"col": 2}, dtype=dtype)
    function = getattr(gc, name)
    assert infix(x, y) is function(x, y)
    assert infix(x, 2) is function(x, 2)
    if name in MIRRORED:
        assert infix(2, x) is getattr(gc, MIRRORED[name])(x, 2)
    elif name in ("equal", "not_equal"):
        assert infix(2, x) is function(x, 2)
    else:
        assert infix(2, x) is function(2, x)
        assert infix(np.asarray(2, dtype)[()], x) is function(np.asarray(2, dtype)[()], x)


def test_other_operators(x):
    w = gc.tensor("w", {"row": 3})
    assert divmod(x, 2)[0] is x // 2
    assert divmod(2, x)[1] is 2 % x
    assert x @ w is gc.dot(x, w)
    assert -x is gc.negative(x)
    assert +x is x
    assert abs(x) is gc.absolute(x)
    assert ~(x > 0) is gc.invert(x > 0)
    assert round(x, 2) is gc.round(x, 2)
    assert x.T is gc.transpose(x, "row", "batch")
    assert x.real is x


def test_methods_are_the_functions(x):
    for name in (
        *("sum", "mean", "std", "var", "prod", "min", "max", "any", "all", "argmin", "argmax"),
        *("cumsum", "cumprod", "squeeze"),
    ):
        assert getattr(x, name)() is getattr(gc, name)(x)
    assert x.astype("float32") is gc.astype(x, "float32")
    assert x.rename(row="r") is gc.rename(x, row="r")
    assert x.isel(row=0) is gc.isel(x, row=0)
    assert x.clip(0, max=1) is gc.clip(x, 0, 1)
    assert x.where(x > 0, 0) is gc.where(x > 0, x, 0)


def test_numpy_functions_are_ours(x):
    assert np.exp(x) is gc.exp(x)
    assert np.float32(2) * x is gc.multiply(np.float32(2), x)
    assert np.rad2deg(x) is gc.rad2deg(x)
    assert np.conjugate(x) is x
    assert np.add(x, 1) is x + 1
