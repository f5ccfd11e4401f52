"""When a program changes from NumPy calls to machine code."""

from __future__ import annotations

import copy
import pickle
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphcore as gc
from graphcore.analysis import spending
from graphcore.analysis.spending import Spending
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import machine

needs_machine_code = pytest.mark.skipif(machine.refusal() is not None, reason="no machine code")


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch, generated_python: None) -> None:
    """Machine code is estimated to cost 50 microseconds."""
    monkeypatch.setattr(spending, "MAKING", 50e-6)
    monkeypatch.setattr(spending, "ELEMENTWISE", 0.0)
    monkeypatch.setattr(spending, "OTHER", 0.0)
    monkeypatch.setattr(spending, "FOLDED", 0.0)
    monkeypatch.setattr(spending, "SOLVED", 0.0)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The programs of which machine code has been made."""
    found: list[object] = []
    build = llvm_kernels.build

    def noted(*args: object) -> object:
        found.append(args[0])
        return build(*args)

    monkeypatch.setattr(llvm_kernels, "build", noted)
    return found


def chain() -> gc.Compiled:
    x = gc.tensor("x", {"row": None})
    return gc.compile([x], gc.tanh(x) * x + gc.exp(-x))


def root() -> gc.Compiled:
    a = gc.tensor("a", {})
    return gc.compile(
        [a], gc.while_loop(lambda r: abs(r * r - a) > 1e-9 * a, lambda r: (r + a / r) / 2, a)
    )


def changes(f: gc.Compiled, *sizes: int) -> int:
    """The number of the first call that runs as machine code, the sizes of calls in turn."""
    for number in range(1, 1000):
        f(np.linspace(0, 1, sizes[number % len(sizes)]))
        if f.native:
            return number
    raise AssertionError("machine code was never made")


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_the_call_that_changes_the_tier_depends_on_sizes_alone() -> None:
    assert changes(chain(), 10) == changes(chain(), 10) > 1
    assert changes(chain(), 1000) == changes(chain(), 1000) < changes(chain(), 10)
    assert changes(chain(), 10, 1000) == changes(chain(), 10, 1000)


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_a_first_call_that_costs_as_much_runs_as_machine_code() -> None:
    f = chain()
    assert changes(f, 100_000) == 1
    assert f._tier.written is None  # so that NumPy calls, which no call needs, are not written


@pytest.mark.parametrize("native", [None, False])
def test_numpy_calls_are_written_once_and_by_the_first_call(native: bool | None) -> None:
    f = gc.compile([x := gc.tensor("x", {"row": None})], gc.exp(x), native=native)
    assert f._tier.written is None
    f(np.ones(3))
    assert (written := f._tier.written) is not None
    f(np.ones(3))
    assert f._function is f._tier.written is written


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_steps_of_loops_count_after_they_ran() -> None:
    f, g = root(), root()
    for _ in range(3):
        f(np.array(2.0))
    assert not f.native
    g(np.array(1e300))  # some 500 steps
    assert not g.native
    assert g(np.array(2.0)) == pytest.approx(2**0.5)
    assert g.native
    assert "machine code since call 2" in repr(g)


def test_a_call_without_values_costs_its_calls_alone() -> None:
    x = gc.tensor("x", {"row": "n"})
    costs = Spending(gc.compile([x], gc.exp(x)).stages["optimized"])
    none, one, two = [costs.cost([], {"n": n})[0] for n in range(3)]
    assert none == pytest.approx(spending.CALL)
    assert one - none == pytest.approx(two - one) == pytest.approx(spending.VALUE[10])


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_a_derivative_of_a_loop_counts_with_its_steps() -> None:
    a = gc.tensor("a", {})
    y = gc.while_loop(lambda r: abs(r * r - a) > 1e-9 * a, lambda r: (r + a / r) / 2, a)
    f = gc.compile([a], gc.grad(y, a))
    costs = Spending(f.stages["optimized"])
    assert len(costs.loops) == 1
    f(np.array(1e300))
    assert f(np.array(2.0)) == pytest.approx(0.5 / 2**0.5)
    assert f.native


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_results_differ_by_rounding() -> None:
    x = np.linspace(-3, 3, 1000)
    f = chain()
    first = f(x)
    while not f.native:
        f(x)
    np.testing.assert_array_max_ulp(
        f(x),
        gc.compile([y := gc.tensor("x", {"row": None})], gc.tanh(y) * y + gc.exp(-y), native=False)(
            x
        ),
        4,
    )
    np.testing.assert_array_max_ulp(f(x), first, 4)


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_many_small_products_gain() -> None:
    a = gc.tensor("a", {"batch": None, "row": 3, "col": 3})
    f = gc.compile([a], gc.dot(a, a.rename(row="col", col="other"), dim="col"))
    x = np.random.default_rng(0).standard_normal((4000, 3, 3))
    for _ in range(30):
        np.testing.assert_allclose(f(x), x @ x, rtol=1e-12, atol=1e-12)
    assert f.native


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "outputs",
    [
        lambda x: gc.dot(x, x.rename(row="other"), dim="col"),
        lambda x: gc.sort(x, dim="col"),
        lambda x: gc.linalg.cholesky(x, dims=("row", "col")),
        lambda x: 2 * x,
        lambda x: x,
    ],
)
def test_what_gains_nothing_stays(outputs: Callable[[gc.Tensor], gc.Tensor]) -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    f = gc.compile([x], outputs(x))
    for _ in range(30):
        f(np.eye(50))
    assert not f.native
    assert repr(f).endswith(": NumPy calls: machine code would gain nothing>")


@pytest.mark.usefixtures("soon")
def test_where_there_is_no_machine_code_numpy_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_kernels, "unavailable", lambda: "this CPU has no AVX2")
    f = chain()
    for _ in range(30):
        found = f(np.linspace(0, 1, 1000))
    assert not f.native
    assert found[0] == 1
    assert f.source.startswith("def run(inputs, sizes, buffers):  # NumPy calls: this CPU has no")


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_threads_that_reach_the_limit_at_once_make_machine_code_once(made: list[object]) -> None:
    f, start, found = chain(), threading.Barrier(8), []
    x = np.linspace(0, 1, 1000)

    def work(_: int) -> None:
        start.wait()
        found.extend([f(x) for _ in range(50)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(made) == 1
    assert f.native
    assert len(found) == 400
    for y in found:
        np.testing.assert_allclose(y, found[0], rtol=1e-14)


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_an_interrupt_while_machine_code_is_made_leaves_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f, build = chain(), llvm_kernels.build
    x = np.linspace(0, 1, 100_000)

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(llvm_kernels, "build", interrupted)
    with pytest.raises(KeyboardInterrupt):
        f(x)
    assert not f.native
    monkeypatch.setattr(llvm_kernels, "build", build)
    assert f(x)[0] == 1
    assert f.native


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_what_is_pickled_or_copied_begins_anew() -> None:
    f = chain()
    changes(f, 100_000)
    for g in (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f)):
        assert not g.native
        assert changes(g, 100_000) == 1
    never = gc.compile([x := gc.tensor("x", {"row": None})], gc.tanh(x) * x, native=False)
    g = pickle.loads(pickle.dumps(never))
    assert repr(g).endswith("NumPy calls, as native=False>")


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_a_program_is_freed_without_a_collection() -> None:
    for size in (10, 100_000):
        f = chain()
        f(np.linspace(0, 1, size))
        gone = weakref.ref(f)
        del f
        assert gone() is None


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_bad_calls_are_refused_alike_in_both_tiers() -> None:
    f = chain()
    with pytest.raises(gc.GraphError) as before:
        f(np.ones((2, 2)))
    changes(f, 100_000)
    with pytest.raises(gc.GraphError) as after:
        f(np.ones((2, 2)))
    assert str(before.value).splitlines()[0] == str(after.value).splitlines()[0]


@pytest.mark.usefixtures("generated_python")
def test_the_tier_and_the_reason_are_said() -> None:
    f = chain()
    assert f.tier.startswith(
        "NumPy calls; machine code once they cost 8.15 ms by estimate (0 ms in 0"
    )
    f(np.ones(3))
    assert f.source.startswith(f"def run(inputs, sizes, buffers):  # {f.tier}\n")
    assert f.tier.endswith("in 1 calls)")


def test_costs_grow_with_sizes_and_steps() -> None:
    x = gc.tensor("x", {"time": None, "unit": None})
    last, _ = gc.scan(lambda s, x: (gc.tanh(s + x), s), x[{"time": 0}], x, dim="time")
    costs = Spending(gc.compile([x], last.sum()).stages["optimized"])
    one, ten, wide = (
        costs.cost([], {"time": time, "unit": unit})[0]
        for time, unit in ((1, 8), (10, 8), (10, 800))
    )
    assert 3 * one < ten < 15 * one
    assert wide > 2 * ten


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_parts_with_machine_code_run_as_such() -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    w, v = gc.linalg.eigh(gc.tanh(x) + gc.exp(x))
    f = gc.compile([x], (gc.exp(w) * w + 1).sum() + abs(v).sum())
    given = np.diag(np.arange(30.0) / 30)
    first = f(given)
    while not f.native:
        f(given)
    np.testing.assert_allclose(f(given), first, rtol=1e-10)
    assert "):  # machine code since call " in f.source.splitlines()[0]
    assert "k0(" in f.source
    assert "def k0(" in f.source


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_where_machine_code_cannot_be_made_numpy_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect is said once; only with `native=True` it is an error."""
    tries = []

    def broken(*args: object) -> object:
        tries.append(args)
        raise AssertionError("no rule\nfor this")

    monkeypatch.setattr(llvm_kernels, "build", broken)
    f, given = chain(), np.linspace(0, 1, 1000)
    with pytest.warns(RuntimeWarning, match="could not be made: AssertionError: no rule; the") as w:
        found = [f(given)[0] for _ in range(30)]
    assert found == [1] * 30
    assert len(tries) == len(w) == 1
    assert w[0].filename == __file__
    assert not f.native
    assert f.tier == "NumPy calls: machine code could not be made: AssertionError: no rule"
    assert f.source.startswith(
        "def run(inputs, sizes, buffers):  # NumPy calls: machine code could"
    )
    x = gc.tensor("x", {})
    with pytest.raises(AssertionError, match="no rule"):
        gc.compile([x], gc.exp(x), native=True)


@needs_machine_code
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("with_host", [False, True])
def test_where_llvm_fails_numpy_runs(monkeypatch: pytest.MonkeyPatch, with_host: bool) -> None:
    """LLVM makes the code when it is first called, which must not fail in the user's call."""

    def broken(*args: object, **named: object) -> object:
        raise RuntimeError("cannot select: an instruction")

    monkeypatch.setattr(llvm_kernels, "compiled", broken)
    x = gc.tensor("x", {"row": None, "col": None})
    y = gc.linalg.eigh(x)[0] if with_host else x * 0.75
    f = gc.compile([x], (gc.exp(y) * y + 1.0625).sum())
    given = np.diag(np.arange(30.0) / 31)
    first = f(given)
    with pytest.warns(RuntimeWarning, match="could not be made: RuntimeError: cannot select") as w:
        assert [f(given) for _ in range(30)] == [first] * 30
    assert len(w) == 1
    assert w[0].filename == __file__
    assert not f.native
    with pytest.raises(RuntimeError, match="cannot select"):
        gc.compile([x], (gc.exp(y) * y + 1.03125).sum(), native=True)(given)


@needs_machine_code
@pytest.mark.usefixtures("soon")
def test_source_has_lines_and_labels_after_the_change() -> None:
    f = chain()
    changes(f, 100_000)
    assert "for row:" in f.source
    assert "unknown:0" not in f.source
    assert "define i64 @kernel" in f.llvm
