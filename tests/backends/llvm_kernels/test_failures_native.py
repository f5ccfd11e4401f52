"""Failures of kernels: what is recorded where, and that the words are those of NumPy calls."""

import signal
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import elementary, entrance, machine, sharing, signals
from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, lanes
from graphcore.backends.llvm_kernels.failures import Around, Failures, report, work
from graphcore.ir.graph import Graph
from graphcore.ir.types import TensorType
from graphcore.ops import control, leaf, linalg, tensor
from tests.backends.llvm_kernels.native import worded

pytestmark = pytest.mark.skipif(
    machine.unavailable() is not None, reason=str(machine.unavailable())
)


def said(error):
    """The message without the line of the call."""
    lines = str(error).splitlines()
    return type(error), [line for line in lines if not line.startswith("  called at")]


@dataclass
class Loop:
    """A compiled program, its last graph, and the nodes of one op, with the loops around them."""

    compiled: object

    def find(self, op):
        def within(graph, loops):
            for node in graph.nodes():
                if node.op is op:
                    yield node, loops
                if "body" in node.attrs:
                    yield from within(node.attrs["body"], (*loops, node))

        return next(within(self.graph, ()))

    @property
    def graph(self):
        return self.compiled.stages["optimized"]


def check(f, op, record, known, *args, axis=0, reason=""):
    with pytest.raises(gc.GraphError) as refused:
        f(*args)
    node, loops = Loop(f).find(op)
    failures = Failures()
    for n, loop in enumerate(loops):
        failures.around.append(Around(loop, integer(n), integer(n)))
    if reason:
        index = [integer(0)] * (len(record) - 1 - len(loops))
        failures.failed(Builder(), Value("%x", "i1"), node, reason, index)
    else:
        x = integer(0)
        failures.outside(Builder(), Value("%x", "i1"), node, axis, x, x)
    assert failures.words == len(record)
    graph = Loop(f).graph
    found = report(graph, failures.sites, record, known)
    assert said(worded(found, graph)) == said(refused.value)


def test_positions_outside():
    x = gc.tensor("x", {"row": None, "col": 4})
    k = gc.tensor("k", {"at": None}, dtype="int64")
    n = gc.tensor("n", {"at": None}, dtype="uint8")
    for i in (k, n):
        f = gc.compile([x, i], gc.take(gc.exp(x), i, "row"))
        positions = np.array([0, 9], i.dtype)
        known = {"row": 3, "at": 2}
        check(f, tensor.gather, [0, 9, 3], known, np.ones((3, 4)), positions)
    f = gc.compile([x, k], gc.take(x, k, "col"))
    check(f, tensor.gather, [0, -5, 4], known, np.ones((3, 4)), [0, -5], axis=1)


def test_positions_outside_in_loops():
    x, k = gc.tensor("x", {"row": 5}), gc.tensor("k", {"t": None, "u": None}, dtype="int64")

    def outer(s, ks):
        return gc.scan(lambda s, i: (s + x.isel(row=i), None), s, ks, dim="u", reverse=True)[0]

    f = gc.compile([x, k], gc.scan(lambda s, ks: (outer(s, ks), None), 0.0, k, dim="t")[0])
    given = np.zeros((3, 4), int)
    given[1, 2] = 7
    check(f, tensor.gather, [0, 7, 5, 1, 2], {"t": 3, "u": 4}, np.ones(5), given)


def bounded(target, reverse, nested):
    """A loop that adds values at positions which no step changes, and others from a step on."""
    x = gc.tensor("x", {"row": None})
    k, late = (gc.tensor(name, {"at": None}, dtype="int64") for name in ("k", "late"))
    begin, t = gc.tensor("begin", (), dtype="int64"), gc.tensor("t", {"time": None}, dtype="int64")

    def step(s, i):
        s = s + gc.take(s, k, "row").sum("at")
        later = lambda: gc.take(s, late, "row").sum("at") * gc.ones_like(s)
        return gc.cond(gc.less(i, begin), lambda: s, later), None

    def steps(s):
        return gc.scan(step, s, t, dim="time", reverse=reverse)[0]

    y = gc.fori_loop(0, 2, lambda _, s: steps(s), x) if nested else steps(x)
    return gc.compile([x, k, late, begin, t], y, target=target)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_positions_that_no_step_changes_are_looked_at_once(reverse, nested):
    """In the first step that reads them: none may, and a branch may read them later."""
    calls = [bounded(target, reverse, nested) for target in ("numpy", "native")]
    x, t = np.arange(1.0, 4.0), np.arange(4)
    good, bad = np.array([0, 2]), np.array([1, 5])
    np.testing.assert_array_equal(*[f(x, good, good, 2, t) for f in calls])
    np.testing.assert_array_equal(*[f(x, good, bad, 4, t) for f in calls])  # never read
    np.testing.assert_array_equal(*[f(x, bad, bad, 0, t[:0]) for f in calls])
    for given in ((bad, good, 2), (good, bad, 2)):
        errors = []
        for f in calls:
            with pytest.raises(gc.GraphError) as refused:
                f(x, *given, t)
            errors.append(said(refused.value))
        assert errors[0] == errors[1]


def test_matrices_without_a_factor():
    a = gc.tensor("a", {"batch": None, "n": 2, "m": 2})
    f = gc.compile([a], gc.linalg.cholesky(a, dims=("n", "m")))
    given = np.stack([np.eye(2), -np.eye(2)])
    reason = "the matrix is not positive definite"
    check(f, linalg.cholesky, [0, 1], {"batch": 2}, given, reason=reason)


def test_no_memory():
    u, v = gc.tensor("u", {"i": None}), gc.tensor("v", {"j": None})
    f = gc.compile([u, v], gc.exp(u) * v)
    size = 2**33
    with pytest.raises(MemoryError) as refused:
        f(np.broadcast_to(1.0, size), np.broadcast_to(1.0, size))
    graph = Loop(f).graph
    found = report(graph, (), [entrance.FULL], {"i": size, "j": size})
    assert said(worded(found, graph)) == said(refused.value)


def built(write, params, *slots):
    """A kernel of what `write(builder, failures)` writes, which names words of the table."""
    b, failures = Builder(), Failures()
    write(b, failures)
    b.do("ret i64 0")
    text = elementary.module("define i64 @kernel(ptr %table, ptr %sizes, ptr %record)", b)
    code = elementary.compiled(text, "kernel")
    kernel = entrance.Kernel(machine.finished(code), params, (), (), slots, failures.words)
    made = entrance.CallableKernel(
        kernel,
        lambda args: ([np.asarray(x, np.int64) for x in args], ()),
        lambda record, known: ValueError(record),
    )
    return made.entrance()


def word(b, n):
    p = b.emit("ptr", False, f"getelementptr ptr, ptr %table, i64 {n}")
    return b.emit("ptr", False, f"load ptr, ptr {p.text}", p)


NODE = None
NUMBER = TensorType(np.dtype(np.int64), ())


@pytest.mark.parametrize("wide", [False, True])
def test_the_first_lane_and_the_steps_are_recorded(wide):
    def write(b, failures):
        limit = b.emit("i64", False, f"load i64, ptr {word(b, 0).text}")

        def step(i):
            with failures.within(NODE, i, i):
                x = b.op("mul", i, lanes(*range(8)) if wide else integer(3))
                failures.outside(b, b.op("icmp sge", x, limit), NODE, 0, x, limit)
            return ()

        b.loop(integer(0), integer(10), 1, (), step)

    f = built(write, (NUMBER,))
    assert f(1000) == []
    with pytest.raises(ValueError, match=r"\[0, 14, 14, 2\]" if wide else r"\[0, 15, 14, 5\]"):
        f(14)


def test_a_loop_of_tiny_steps_ends_at_an_interrupt():
    def write(b, failures):
        steps = b.emit("i64", False, f"load i64, ptr {word(b, 0).text}")
        routine = word(b, 1)
        b.signals.routine = lambda: routine.text

        def step(i):
            b.spend(integer(2))
            return ()

        b.loop(integer(0), steps, 1, (), step, looks=True)

    f = built(write, (NUMBER,), entrance.Address(entrance.code()["poll"]))

    def interrupt():
        time.sleep(0.1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        f(10**12)
    assert time.perf_counter() - begin < 20  # of hours
    thread.join()
    f(10)


def test_work_of_a_step():
    x = gc.tensor("x", {"row": None, "col": 4})
    f = gc.compile([x], gc.scan(lambda s, x: (gc.exp(s + x).sum(), None), 0.0, x, dim="row")[0])
    node, _ = Loop(f).find(control.scan)
    assert 12 <= work(node.attrs["body"]) <= 20


@pytest.mark.parametrize("op", [tensor.sum_, tensor.max_, tensor.any_])
def test_work_of_a_step_counts_what_reductions_read(op):
    x = leaf.param("x", TensorType(np.dtype("?" if op is tensor.any_ else "f8"), (7, 100)))
    assert work(Graph((x,), (op(x, axes=(0, 1)),))) == 701


def interrupted(f, *args):
    """How long after an interrupt a call ends."""
    sent = []

    def interrupt():
        time.sleep(0.2)
        sent.append(time.perf_counter())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        f(*args)
    took = time.perf_counter() - sent[0]
    thread.join()
    return took


def counting(step):
    """A loop of n steps."""
    n = gc.tensor("n", {}, dtype="int64")
    x = gc.tensor("x", {"i": None})
    more = lambda s: s[1] < n
    last = gc.while_loop(more, lambda s: (step(s[0], x), s[1] + 1), (x, n * 0))
    return gc.compile([x, n], last[0].sum(), native=True)


@pytest.mark.parametrize("size", [1, 3_000_000])
def test_loops_of_tiny_and_of_long_steps_end_at_an_interrupt(size):
    f = counting(lambda s, x: gc.sin(s) * x + 1)
    x = np.ones(size)
    wanted = f(x, 3)
    assert interrupted(f, x, 10**11) < 20  # of hours; how soon it ends is measured, not tested
    np.testing.assert_array_equal(f(x, 3), wanted)


def test_a_loop_of_products_ends_at_an_interrupt():
    a, n = gc.tensor("a", {"i": 400, "j": 400}), gc.tensor("n", {}, dtype="int64")

    def step(s):
        return gc.dot(s[0], a.rename(i="j", j="k"), dim="j").rename(k="j") / 400, s[1] + 1

    f = gc.compile([a, n], gc.while_loop(lambda s: s[1] < n, step, (a, n * 0))[0], native=True)
    assert interrupted(f, np.ones((400, 400)), 10**9) < 20  # of hours


def test_errors_come_out_of_loops_inside_of_loops():
    x, k = gc.tensor("x", {"row": 5}), gc.tensor("k", {"t": None, "u": None}, dtype="int64")

    def outer(s, ks):
        return gc.scan(lambda s, i: (s + x.isel(row=i), None), s, ks, dim="u", reverse=True)[0]

    total = gc.scan(lambda s, ks: (outer(s, ks), None), 0.0, k, dim="t")[0]
    given = np.zeros((300, 40), int)
    given[200, 7] = -6
    found = []
    for native in (False, True):
        f = gc.compile([x, k], total, native=native)
        with pytest.raises(gc.GraphIndexError) as refused:
            f(np.ones(5), given)
        found.append(said(refused.value))
        assert "in step 200" in str(refused.value)
        assert "in step 7" in str(refused.value)
        assert f(np.ones(5), given * 0) == 12000
    assert found[0] == found[1]


def test_a_switch_without_such_a_branch_in_a_loop():
    k = gc.tensor("k", {"t": None}, dtype="int64")
    step = lambda s, i: (gc.switch(i, [lambda: s + 1, lambda: s * 2]), None)
    total = gc.scan(step, 0.0, k, dim="t")[0]
    found = []
    for native in (False, True):
        f = gc.compile([k], total, native=native)
        with pytest.raises(gc.GraphIndexError) as refused:
            f(np.array([0, 1, 1, 2, 0]))
        found.append(said(refused.value))
    assert found[0] == found[1]


X = gc.tensor("x", {"n": None}, dtype="int8")
R = gc.tensor("r", {"a": None, "b": None}, dtype="int8")


def slow(x):
    x = x.astype("float64")
    return gc.exp(gc.sin(x) - gc.cos(x)) + gc.tanh(x)


LONG = {
    "a nest": ((10**9,), lambda: gc.compile([X], slow(X).astype("int8"), native=True)),
    "a sum": ((10**9,), lambda: gc.compile([X], slow(X).sum(), native=True)),
    "a largest value": ((10**9,), lambda: gc.compile([X], slow(X).max(), native=True)),
    "a running sum": ((10**9,), lambda: gc.compile([X], slow(X).cumsum("n").max(), native=True)),
    "short rows": ((10**8, 9), lambda: gc.compile([R], slow(R).sum("b").max(), native=True)),
    "long rows": ((9, 10**8), lambda: gc.compile([R], slow(R).sum("b"), native=True)),
    "columns": ((10**8, 9), lambda: gc.compile([R], slow(R).sum("a"), native=True)),
    "rows of nests": (
        (10**8, 9),
        lambda: gc.compile([R], slow(R).transpose("b", "a").astype("int8"), native=True),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_long_nests_end_at_an_interrupt(name):
    """Nests without any loop of the program's."""
    shape, make = LONG[name]
    f = make()
    assert interrupted(f, np.ones(shape, np.int8)) < 4  # of more than that
    f(np.ones([9] * len(shape), np.int8))


@pytest.mark.parametrize("name", LONG)
def test_nests_that_look_for_signals_compute_the_same(name, monkeypatch):
    shape, make = LONG[name]
    usual = make()
    x = np.random.default_rng(2).integers(-9, 9, [3000, 40][-len(shape) :]).astype(np.int8)
    wanted = usual(x)
    monkeypatch.setattr(entrance, "HUGE_NEST", 1)
    monkeypatch.setattr(signals, "WORK", 100)
    calls = []
    for writer, name in ((signals.Signals, "look"), (sharing.Sharing, "call")):
        monkeypatch.setattr(writer, name, counted(getattr(writer, name), calls))
    found = make()(x)
    assert calls
    np.testing.assert_array_equal(found, wanted)


def counted(function, calls):
    return lambda *args: calls.append(args) or function(*args)


def test_code_for_long_nests_has_the_table_of_the_usual_code(monkeypatch):
    """The routine for transposes is in it; where it was left out, BLAS was called in its place."""
    x = gc.tensor("x", {"step": None, "row": None, "feature": 16})
    w = gc.tensor("w", {"feature": 16, "gate": 4, "hidden": 32})
    u = gc.tensor("u", {"before": 32, "gate": 4, "hidden": 32})

    def step(h, now):
        z = gc.dot(now, w, dim="feature") + gc.dot(h.rename(hidden="before"), u, dim="before")
        new = gc.tanh(z).sum("gate")
        return new, new

    start = gc.zeros({"row": x.sizes["row"], "hidden": 32})
    _, ys = gc.scan(step, start, x, dim="step")
    slopes = gc.grad((ys**2).sum(), [w, u])
    random = np.random.default_rng(0)
    data = [0.1 * random.normal(size=size) for size in ((4, 40, 16), (16, 4, 32), (32, 4, 32))]
    wanted = gc.compile([x, w, u], slopes, native=False)(*data)
    monkeypatch.setattr(entrance, "HUGE_NEST", 1)
    for found, expected in zip(
        gc.compile([x, w, u], slopes, native=True)(*data), wanted, strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
