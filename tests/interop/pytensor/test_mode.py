"""The mode "GRAPHCORE": shared variables, updates, random numbers, errors, examples."""

import doctest
import pickle
import pkgutil
from importlib import import_module, reload
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytensor", minversion="3.0")

import pytensor
import pytensor.tensor as pt
from pytensor.raise_op import Assert

import graphcore as gc
import graphcore.interop.pytensor
from graphcore.interop.pytensor import UntranslatedError, from_pytensor, rule
from graphcore.interop.pytensor.rules import RULES

pytestmark = pytest.mark.filterwarnings("ignore")

MODE = "GRAPHCORE"
R = np.random.default_rng(5)
V, M = R.normal(size=4), R.normal(size=(3, 4))


def test_shared_variables_and_updates() -> None:
    x, total = pt.vector("x"), pytensor.shared(np.zeros(4), "total")
    f = pytensor.function([x], (x * total).sum(), updates={total: total + x}, mode=MODE)
    assert [float(f(V)), float(f(V))] == [0.0, float((V * V).sum())]
    np.testing.assert_array_equal(total.get_value(), 2 * V)
    total.set_value(np.ones(3))  # another size, without compiling again
    assert float(f(V[:3])) == float(V[:3].sum())


def test_results_share_no_memory_with_arguments() -> None:
    x = pt.vector("x")
    f = pytensor.function([x], [x, x[1:], 2 * x], mode=MODE)
    for y in f(V):
        assert not np.shares_memory(y, V)


def test_functions_of_nothing() -> None:
    x = pt.vector("x")
    assert pytensor.function([], pt.constant(3.0) + 1, mode=MODE)() == 4.0
    assert pytensor.function([x], [], mode=MODE, on_unused_input="ignore")(V) == []
    state = pytensor.shared(1.0)
    pytensor.function([], [], updates={state: state * 2}, mode=MODE)()
    assert state.get_value() == 2.0


def test_givens_and_inputs_in_the_middle() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    z = pt.exp(x)
    f = pytensor.function([y], z.sum(), givens={x: 2 * y}, mode=MODE)
    np.testing.assert_allclose(f(V), np.exp(2 * V).sum())
    np.testing.assert_allclose(z.sum().eval({x: V}, mode=MODE), np.exp(V).sum())


def test_inputs_of_one_name() -> None:
    x, y = pt.vector("x"), pt.vector("x")
    f = pytensor.function([x, y], x - 2 * y, mode=MODE)
    np.testing.assert_array_equal(f(V, V[::-1]), V - 2 * V[::-1])


def test_types_of_results() -> None:
    x = pt.fvector("x")
    y = pytensor.function([x], [x.sum(), x > 0, x.shape[0], pt.cast(x, "int8")], mode=MODE)(
        V.astype("float32")
    )
    assert [z.dtype.name for z in y] == ["float32", "bool", "int64", "int8"]
    assert all(isinstance(z, np.ndarray) for z in y)


def random_function(mode: str) -> Any:
    x = pt.vector("x")
    rng = pytensor.shared(np.random.default_rng(1))
    new, z = pt.random.normal(x.mean(), pt.exp(x[0]), size=(4,), rng=rng).owner.outputs
    newer, k = pt.random.categorical(pt.special.softmax(z), rng=new).owner.outputs
    return pytensor.function([x], [pt.exp(z).sum(), z, k], updates={rng: newer}, mode=mode)


def test_random_numbers_are_those_of_pytensor() -> None:
    f, g = (random_function(mode) for mode in (MODE, "FAST_COMPILE"))
    for _ in range(2):
        for y, z in zip(f(V), g(V), strict=True):
            np.testing.assert_allclose(y, z, rtol=1e-14)


def test_random_numbers_in_a_loop() -> None:
    def build(mode: str) -> Any:
        rng = pytensor.shared(np.random.default_rng(3))

        def step(s: Any, rng: Any) -> Any:
            new, z = pt.random.normal(s, 1.0, rng=rng).owner.outputs
            return z * 0.5, {rng: new}

        start = pt.constant(np.float64(0))
        y, updates = pytensor.scan(step, outputs_info=[start], non_sequences=[rng], n_steps=5)
        return pytensor.function([], [pt.exp(y), y.sum()], updates=updates, mode=mode)

    f, g = (build(mode) for mode in (MODE, "FAST_COMPILE"))
    for _ in range(2):
        for y, z in zip(f(), g(), strict=True):
            np.testing.assert_allclose(y, z, rtol=1e-14)


def test_checks_raise_the_errors_of_the_user() -> None:
    x = pt.vector("x")
    f = pytensor.function([x], Assert("no good")(x.sum(), pt.all(x > 0)), mode=MODE)
    assert f([1.0, 2.0]) == 3.0
    with pytest.raises(AssertionError, match="no good"):
        f([-1.0])


def test_a_check_does_not_change_a_slope() -> None:
    x = pt.vector("x")
    y = (Assert("no good")(x, pt.all(x > -9)) ** 2).sum()
    inputs, total = from_pytensor([x], y)
    np.testing.assert_array_equal(gc.compile(inputs, gc.grad(total, inputs[0]))(V), 2 * V)


def test_sizes_are_checked_at_the_call() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    f = pytensor.function([x, y], x + y, mode=MODE)
    with pytest.raises(ValueError, match=r"x d0.*y d0|y d0.*x d0"):
        f(V, V[:2])


class Cubed(pytensor.graph.op.Op):
    """An op of a user's own."""

    __props__ = ()

    def make_node(self, x: Any) -> Any:
        return pytensor.graph.basic.Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0] ** 3


def test_an_unknown_op_is_refused_until_it_has_a_rule() -> None:
    x = pt.vector("x")
    y = Cubed()(x)
    words = r'(?s)Cubed of PyTensor.*made at test_mode.*pytensor.rule\("Cubed"\)'
    with pytest.raises(UntranslatedError, match=words):
        pytensor.function([x], y, mode=MODE)
    try:
        rule("Cubed")(lambda node, x: x**3)
        np.testing.assert_allclose(pytensor.function([x], y, mode=MODE)(V), V**3)
    finally:
        del RULES["Cubed"]


def test_values_that_are_no_tensors_are_refused() -> None:
    import pytensor.sparse as sparse
    import pytensor.typed_list as lists

    x, rows = pt.vector("x"), lists.TypedListType(pt.vector().type)("rows")
    matrix = sparse.csr_matrix("matrix")
    words = r"(?s){}.*made at test_mode.*cure: {}"
    for inputs, y, what, cure in [
        ([rows], rows[0], "input rows: lists of tensors", "stack"),
        ([x], lists.make_list([x, x])[0], "MakeList of PyTensor: lists of tensors", "stack"),
        ([matrix], sparse.dense_from_sparse(matrix), "input .*: sparse", "write the matrix"),
    ]:
        with pytest.raises(UntranslatedError, match=words.format(what, cure)):
            pytensor.function(inputs, y, mode=MODE)


def test_complex_values_of_a_real_type_are_refused() -> None:
    """PyTensor's type of the vectors of a complex matrix is real."""
    from pytensor.tensor import linalg

    x = pt.zmatrix("x")
    vectors = linalg.eigh(x)[1]
    if vectors.dtype == "float64":
        with pytest.raises(UntranslatedError, match=r"(?s)values are complex.*cure"):
            pytensor.function([x], vectors, mode=MODE)


def test_an_old_version_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.38.0")
    with pytest.raises(ImportError, match=r"2\.38\.0 is too old.*graphcore\[pytensor\]"):
        reload(graphcore.interop.pytensor)


def test_lines_of_the_user() -> None:
    """What is built has the line that made the node in PyTensor."""
    x = pt.matrix("x")
    y = pt.exp(x)
    inputs, z = from_pytensor([x], y, rewrite=False)
    assert "test_mode.py" in str(z.node.origin)
    assert inputs[0].dims == ("d0", "d1")


def test_constants_of_narrow_integers_are_exact() -> None:
    """PyTensor's log of int8 is float32, NumPy's would be float16."""
    x = pt.vector("x")
    y = x - pt.log(pt.constant(np.int8(10)))
    f, g = (pytensor.function([x], y, mode=mode) for mode in (MODE, "FAST_COMPILE"))
    np.testing.assert_allclose(f(V), g(V), rtol=1e-15)


def test_the_raw_graph_is_made_stable_first() -> None:
    """cholesky(L Lᵀ) is L: else no digit is left where L is badly conditioned."""
    chol = pt.matrix("chol")
    chol.tag.lower_triangular = True  # as PyMC says it
    inputs, y = from_pytensor([chol], pt.linalg.cholesky(chol @ chol.T))
    bad = np.array([[1.0, 0.0], [1e12, 1e-7]])
    np.testing.assert_allclose(gc.compile(inputs, y)(bad), bad)


def test_frozen_shared_variables() -> None:
    x, s = pt.vector("x"), pytensor.shared(3.0)
    inputs, y = from_pytensor([x], x * s)
    s.set_value(5.0)
    np.testing.assert_array_equal(gc.compile(inputs, y)(V), 3 * V)


def test_functions_can_be_pickled() -> None:
    x = pt.vector("x")
    f = pytensor.function([x], pt.exp(x), mode=MODE)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(V), f(V))


def test_examples() -> None:
    package = graphcore.interop.pytensor
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    for name in names:
        module = import_module(f"{package.__name__}.{name}")
        assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0
