"""Which target runs a program: decided once, by its ops and the machine, or as the user asks."""

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
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import machine, program

pytestmark = [pytest.mark.by_rule, pytest.mark.usefixtures("generated_python")]
needs_machine_code = pytest.mark.skipif(machine.unavailable() is not None, reason="no machine code")


def chain(**options: object) -> gc.Compiled:
    x = gc.tensor("x", {"row": None})
    return gc.compile([x], gc.tanh(x) * x + gc.exp(-x), **options)


def matrices(y: Callable[[gc.Tensor], object]) -> gc.Compiled:
    x = gc.tensor("x", {"row": None, "col": None})
    return gc.compile([x], y(x))


@pytest.mark.parametrize(
    "outputs",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: gc.dot(x, x.rename(row="other"), dim="col"),
        lambda x: gc.sort(x, dim="col"),
        lambda x: gc.linalg.cholesky(x, dims=("row", "col")),
        lambda x: gc.linalg.eigh(x)[1],
        lambda x: gc.concat([x, x], "row")[{"row": slice(1, None)}],
        lambda x: gc.fft.rfft(x, "row"),
        lambda x: gc.print(x, "x"),
    ],
)
def test_what_kernels_do_not_compute_stays(outputs: Callable[[gc.Tensor], gc.Tensor]) -> None:
    f = matrices(outputs)
    assert repr(f).endswith(": NumPy calls: machine code would gain nothing>")
    assert f.target.name == "numpy"
    assert not f.native


@needs_machine_code
@pytest.mark.parametrize(
    ("outputs", "op"),
    [
        (lambda x: 2 * x, "multiply"),
        (lambda x: x.sum("row"), "sum"),
        (lambda x: gc.cumsum(x, "row"), "cumsum"),
        (lambda x: gc.linalg.eigvalsh(gc.exp(x)), "exp"),
        (lambda x: gc.scan(lambda c, e: (e, c), x[{"row": 0}], x, dim="row")[0], "scan"),
    ],
)
def test_what_kernels_compute_is_machine_code(
    outputs: Callable[[gc.Tensor], gc.Tensor], op: str
) -> None:
    f = matrices(outputs)
    assert f.native
    assert f.target == ("native", "machine code", f", as kernels compute {op}")


@needs_machine_code
def test_many_small_products_are_machine_code() -> None:
    """NumPy calls BLAS for each matrix of a batch."""
    a = gc.tensor("a", {"batch": None, "row": 3, "col": 3})
    f = gc.compile([a], gc.dot(a, a.rename(row="col", col="other"), dim="col"))
    x = np.random.default_rng(0).standard_normal((400, 3, 3))
    np.testing.assert_allclose(f(x), x @ x, rtol=1e-12, atol=1e-12)
    assert f.native


@needs_machine_code
def test_a_program_on_both_targets() -> None:
    """The reason says what was asked for; results differ by rounding, refusals not at all."""
    ways = [chain(**{name: one}) for name in ("native", "target") for one in ASKED[name]]
    said = [str(f.target) for f in ways]
    assert said == [
        *("NumPy calls, as native=False", "machine code, as native=True"),
        *("NumPy calls, as target='numpy'", "machine code, as target='native'"),
    ]
    x, words = np.linspace(-3, 3, 1000), set()
    for f in ways:
        np.testing.assert_array_max_ulp(f(x), ways[0](x), 4)
        with pytest.raises(gc.GraphError) as refused:
            f(np.ones((2, 2)))
        words.add(str(refused.value))
        assert f.source.splitlines()[0].endswith(f"  # {f.target}")
    assert len(words) == 1


ASKED = {"native": (False, True), "target": ("numpy", "native")}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"native": True, "target": "numpy"}, "native=True and target='numpy' contradict each"),
        ({"native": False, "target": "native"}, "native=False and target='native' contradict"),
        ({"target": "nump"}, "did you mean 'numpy'"),
        ({"target": 3}, "cure: give one of 'numpy', 'native', 'jax', or a Target"),
    ],
)
def test_what_contradicts_or_is_unknown_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(gc.GraphError, match=words):
        chain(**options)
    with pytest.raises(gc.GraphError, match=words):
        gc.function(x=("row",), **options)(gc.tanh)(np.ones(3))


@needs_machine_code
def test_options_that_agree_are_taken() -> None:
    assert chain(native=True, target="native").native
    assert gc.function(x=("row",), target="numpy")(gc.tanh).compiled(np.ones(3)).native is False


def test_where_there_is_no_machine_code_numpy_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_kernels, "unavailable", lambda: "this CPU has no AVX2")
    f = chain()
    assert f(np.linspace(0, 1, 1000))[0] == 1
    assert f.source.startswith("def run(inputs, sizes, buffers):  # NumPy calls: this CPU has no")
    for options in ({"native": True}, {"target": "native"}):
        with pytest.raises(gc.GraphError, match=", but this CPU has no AVX2"):
            chain(**options)


@needs_machine_code
def test_equal_calls_give_equal_bits() -> None:
    """In threads, of copies, of pickles; code is made once, quickly first and with care later."""
    f, start = chain(), threading.Barrier(4)
    x = np.linspace(0, 1, 1000)
    found: list[object] = []

    def work(_: int) -> None:
        start.wait()
        found.extend([f(x).tobytes() for _ in range(100)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    for g in (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f)):
        assert g.target == f.target
        found.append(g(x).tobytes())
    assert len(set(found)) == 1
    assert f._program.prepare() is f._program.prepare()


@pytest.mark.parametrize("native", [True, False])
def test_code_is_made_by_the_first_call(native: bool) -> None:
    if native and machine.unavailable() is not None:
        pytest.skip("no machine code")
    f = chain(native=native)
    assert f._program._values is None
    f(np.ones(3))
    assert f._program._values is f._values


@needs_machine_code
def test_an_interrupt_while_code_is_made_leaves_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f, build = chain(), program.build
    x = np.linspace(0, 1, 1000)

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "build", interrupted)
    with pytest.raises(KeyboardInterrupt):
        f(x)
    monkeypatch.setattr(program, "build", build)
    assert f(x)[0] == 1


@pytest.mark.parametrize("native", [None, False])
def test_a_program_is_freed_without_a_collection(native: bool | None) -> None:
    for calls in (0, 1, 2):
        f = chain(native=native)
        for _ in range(calls):
            f(np.ones(3))
        gone = weakref.ref(f)
        del f
        assert gone() is None


@needs_machine_code
@pytest.mark.parametrize("made", ["build", "compiled"])
def test_machine_code_that_cannot_be_made_is_a_defect(
    monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    """It is not computed in another way, of other bits, unless the user says so."""

    def broken(*args: object, **named: object) -> object:
        raise RuntimeError("cannot select: an instruction")

    monkeypatch.setattr(program if made == "build" else llvm_kernels, made, broken)
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], (gc.exp(x) * x + 1.0625).sum())
    with pytest.raises(gc.GraphError, match="cannot select: an instruction") as error:
        f(np.ones(3))
    assert "cure: compile it with native=False, and please report it" in str(error.value)
