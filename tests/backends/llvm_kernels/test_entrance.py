"""The entrance of machine code: what it takes, what it hands on to Python, threads, signals."""

import gc
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from unittest.mock import Mock

import numpy as np
import pytest

from graphcore.backends.llvm_kernels import arena, entrance, machine
from graphcore.ir.sizes import unknown
from graphcore.ir.types import TensorType

pytestmark = pytest.mark.skipif(
    machine.unavailable() is not None, reason=str(machine.unavailable())
)

F64, I64 = np.dtype(np.float64), np.dtype(np.int64)
N = unknown("n")
ADD = """
define i64 @kernel(ptr %table, ptr %sizes, ptr %record) {
entry:
  %n = load i64, ptr %sizes
  %x = load ptr, ptr %table
  %s.at = getelementptr ptr, ptr %table, i64 1
  %s = load ptr, ptr %s.at
  %y.at = getelementptr ptr, ptr %table, i64 2
  %y = load ptr, ptr %y.at
  %more = load double, ptr %s
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %go = icmp slt i64 %i, %n
  br i1 %go, label %body, label %end
body:
  %from = getelementptr double, ptr %x, i64 %i
  %to = getelementptr double, ptr %y, i64 %i
  %a = load double, ptr %from
  %b = fadd double %a, %more
  store double %b, ptr %to
  %next = add i64 %i, 1
  br label %head
end:
  ret i64 0
}
"""
SPIN = """
define i64 @kernel(ptr %table, ptr %sizes, ptr %record) {
entry:
  %poll.at = getelementptr ptr, ptr %table, i64 1
  %poll = load ptr, ptr %poll.at
  %x = load ptr, ptr %table
  %steps = load i64, ptr %x
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %on]
  %go = icmp slt i64 %i, %steps
  br i1 %go, label %body, label %end
body:
  %status = call i64 %poll(ptr %record)
  %stop = icmp ne i64 %status, 0
  %next = add i64 %i, 1
  br i1 %stop, label %stopped, label %on
on:
  br label %head
end:
  ret i64 0
stopped:
  ret i64 %status
}
"""
FAIL = """
define i64 @kernel(ptr %table, ptr %sizes, ptr %record) {
  store i64 7, ptr %record
  %second = getelementptr i64, ptr %record, i64 1
  store i64 11, ptr %second
  ret i64 1
}
"""


def program(text, params, results, bind, *slots, record=2):
    code = machine.compiled(text, "kernel")
    kernel = entrance.Kernel(machine.finished(code), params, results, ("n",), slots, record)
    return entrance.CallableKernel(kernel, bind, lambda found, known: ValueError(found, known))


def adder():
    """x + s, and the list of the arguments that came to Python."""
    met = []

    def bind(args):
        met.append(args)
        x, s = (np.asarray(a, F64) for a in args)
        return [x, s], x.shape

    params = (TensorType(F64, (N,)), TensorType(F64, ()))
    made = program(ADD, params, (TensorType(F64, (N,)),), bind)
    return made.entrance(), met, made


def spinner():
    def bind(args):
        return [np.asarray(args[0], I64)], (0,)

    params = (TensorType(I64, ()),)
    poll = entrance.Address(entrance.code()["poll"])
    return program(SPIN, params, (), bind, poll).entrance()


def test_this_python_is_understood():
    assert entrance.unavailable() is None


def staged(seconds, made):
    """x + s, or x - s once the code is made with care: the same bits would not show which runs."""
    texts = {machine.QUICKLY: ADD, machine.WITH_CARE: ADD.replace("fadd", "fsub")}

    def make(effort):
        made.append(effort)
        return machine.compiled(texts[effort], "kernel", effort=effort)

    return machine.Stages(make, seconds)


def staged_adder(seconds, made, **kinds):
    params = (TensorType(F64, (N,)), TensorType(F64, ()))
    stages = staged(seconds, made)
    kernel = entrance.Kernel(stages, params, params[:1], ("n",), (), 2, **kinds)
    bind = lambda args: ([np.asarray(a, F64) for a in args], np.shape(args[0]))
    return entrance.CallableKernel(
        kernel, bind, lambda found, known: ValueError(found, known)
    ), stages


def test_code_is_made_with_care_once_calls_have_taken_as_long():
    made = []
    program, _ = staged_adder(0.02, made)
    f, x = program.entrance(), np.ones(100_000)
    f(np.ones(3), 1.0)
    while (f(x, 1.0)[0] == 2).all():
        assert made == [machine.QUICKLY]
    assert made == [machine.QUICKLY, machine.WITH_CARE]
    np.testing.assert_array_equal(f(np.ones(3), 1.0)[0], np.zeros(3))  # other sizes as well
    np.testing.assert_array_equal(f(np.ones(5), 1.0)[0], np.zeros(5))
    assert made == [machine.QUICKLY, machine.WITH_CARE]


def test_an_interrupt_puts_better_code_off_to_the_next_call(monkeypatch):
    made = []
    program, stages = staged_adder(0.0, made)
    f = program.entrance()
    assert f(np.ones(3), 1.0)[0][0] == 2.0
    with monkeypatch.context() as patch:
        patch.setattr(stages, "_make", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            f(np.ones(3), 1.0)
    assert f(np.ones(3), 1.0)[0][0] == 0.0


def test_workspaces_in_use_get_the_better_code():
    made = []
    program, _ = staged_adder(0.0, made)
    words, *_ = program.prepare(np.ones(3), 1.0)  # a call in flight, of another thread
    f = program.entrance()
    assert [f(np.ones(3), 1.0)[0][0] for _ in range(3)] == [2.0, 0.0, 0.0]
    program.idle[:] = [words]
    assert f(np.ones(3), 1.0)[0][0] == 0.0


def test_two_programs_share_the_code_that_one_has_made():
    made = []
    first, stages = staged_adder(0.0, made)
    second = entrance.CallableKernel(first.kernel, first.bind, first.report)
    f, g = first.entrance(), second.entrance()
    assert [f(np.ones(3), 1.0)[0][0] for _ in range(2)] == [2.0, 0.0]
    assert stages.is_last
    assert g(np.ones(3), 1.0)[0][0] == 0.0
    assert made == [machine.QUICKLY, machine.WITH_CARE]


def test_patient_code_is_made_in_two_stages_as_well():
    made, patiently = [], []
    patient = machine.cached(lambda: staged(0.0, patiently))
    program, _ = staged_adder(1e9, made, counts=(N,), patient=patient)
    f, x = program.entrance(), np.ones(entrance.HUGE_NEST)
    assert [f(x, 1.0)[0][0] for _ in range(2)] == [2.0, 0.0]
    assert made == []  # no call has needed it
    assert [f(np.ones(3), 1.0)[0][0] for _ in range(3)] == [2.0] * 3  # short calls have time left
    assert (made, patiently) == ([machine.QUICKLY], [machine.QUICKLY, machine.WITH_CARE])


@pytest.mark.parametrize("s", [2.0, np.float64(2.0), np.array(2.0)], ids=["float", "f64", "array"])
def test_only_the_first_call_of_its_sizes_reaches_python(s):
    f, met, _ = adder()
    for n in (3, 0, 17):
        x = np.arange(float(n))
        for _ in range(3):
            (y,) = f(x, s)
            assert type(y) is np.ndarray
            np.testing.assert_array_equal(y, x + 2)
    assert len(met) == 3


def strange():
    whole = np.arange(40.0)
    readonly = np.arange(5.0)
    readonly.flags.writeable = False
    unaligned = np.frombuffer(b"\0" + np.arange(5.0).tobytes(), F64, offset=1)
    tagged = np.arange(5.0).view(np.dtype(F64, metadata={"unit": "m"}))
    swapped = np.arange(5.0).astype(">f8")
    return {
        "reversed": whole[:5][::-1],
        "strided": whole[::8],
        "readonly": readonly,
        "unaligned": unaligned,
        "tagged": tagged,
        "swapped": swapped,
        "integers": np.arange(5),
        "list": [0.0, 1.0, 2.0, 3.0, 4.0],
        "matrix row": whole.reshape(5, 8)[:, 1],
        "masked": np.ma.masked_array(np.arange(5.0)),
    }


@pytest.mark.parametrize("kind", strange())
def test_other_arguments_are_converted(kind):
    f, met, _ = adder()
    f(np.arange(5.0), 1.0)
    for s in (1.0, 1, np.float32(1), np.array([1.0, 2.0])[:1].reshape(())):
        x = strange()[kind]
        (y,) = f(x, s)
        assert type(y) is np.ndarray
        np.testing.assert_array_equal(y, np.asarray(x, F64) + 1)
    assert (kind == "readonly") == (len(met) == 3)


@pytest.mark.parametrize("args", [(), (1.0,), (1.0, 2.0, 3.0), ("a", 2.0), (object(), None)])
def test_what_does_not_fit_is_refused_by_bind(args):
    f, met, _ = adder()
    with pytest.raises((ValueError, TypeError)):
        f(*args)
    assert met == [args]


def test_keywords_are_refused():
    f, _, _ = adder()
    with pytest.raises(TypeError, match="keyword"):
        f(x=1)


def test_idle_workspaces_are_few_and_used_again():
    f, met, made = adder()
    for n in range(50):
        f(np.zeros(n), 0.0)
    assert len(made.idle) == entrance.IDLE_KEPT
    for n in range(46, 50):
        f(np.zeros(2 * n)[::2], 0.0)
    assert len(made.idle) == entrance.IDLE_KEPT
    assert len(met) == 54


def test_a_failure_is_reported_and_the_next_call_works():
    params = (TensorType(F64, (N,)),)
    f = program(FAIL, params, params, lambda args: (list(args), args[0].shape)).entrance()
    for _ in range(3):
        with pytest.raises(ValueError, match=r"\(\[7, 11\], \{'n': 4\}\)"):
            f(np.zeros(4))


def test_results_that_no_memory_could_hold_are_reported():
    huge = TensorType(F64, (N * 2**40,))

    f = program(ADD, (TensorType(F64, (N,)),), (huge,), lambda args: (list(args), (4000,)))
    with pytest.raises(ValueError, match=r"\(\[-1\], "):
        f.entrance()(np.zeros(4000))


def test_grown_memory_is_freed_with_its_workspace(monkeypatch):
    freed = []
    monkeypatch.setattr(arena, "libc", lambda: type("", (), {"free": freed.append}))
    params = (TensorType(F64, (N,)), TensorType(F64, ()))
    slots = (entrance.Scratch(N * 8), entrance.Growing(), entrance.Cell())
    made = program(ADD, params, params[:1], None, *slots)
    words = made.workspace([5], (5,))
    at = made.places.end - 2
    assert words[at] == 0
    words[at] = 4711
    assert (words[at - 1] - words.ctypes.data) % entrance.LINE == 0
    del words
    assert freed == [4711]


def test_references_are_kept_and_dropped():
    f, met, made = adder()
    x, s = np.arange(100.0), np.array(1.0)
    strided = x[::2]
    f(x, s), f(strided, s)
    met.clear()
    gc.collect()  # of arrays that tests before have left
    before = [sys.getrefcount(a) for a in (x, s, strided, F64, made.idle)]
    for _ in range(1000):
        f(x, s)
        f(strided, s)
        with pytest.raises(ValueError, match="could not convert"):
            f(x, "a")
    met.clear()
    assert [sys.getrefcount(a) for a in (x, s, strided, F64, made.idle)] == before


def test_programs_vanish_without_the_collector():
    gc.disable()
    try:
        f, _, made = adder()
        f(np.zeros(3), 1.0)
        number = len(machine.LOADED)
        del f, made
        assert len(machine.LOADED) == number - 1
    finally:
        gc.enable()


def test_threads_have_workspaces_of_their_own():
    f, _, _ = adder()
    wrong = []

    def work(k):
        for n in range(300):
            x = np.full(n % 7 + 100 * (n % 2) * k, float(k))
            (y,) = f(x, float(n))
            if not np.array_equal(y, x + n):
                wrong.append((k, n))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not wrong


def test_a_long_call_lets_other_threads_run():
    spin = spinner()
    thread = threading.Thread(target=spin, args=(20_000_000,))
    spin(0)
    spin(0)
    thread.start()
    ticks = 0
    while thread.is_alive():
        time.sleep(0.001)
        ticks += 1
    assert ticks > 5


def test_an_interrupt_ends_a_long_loop_and_the_next_call_works():
    spin = spinner()
    for _ in range(3):
        sent = []

        def interrupt(sent=sent):
            time.sleep(0.1)
            sent.append(time.perf_counter())
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            spin(10**11)
        took = time.perf_counter() - sent[0]
        thread.join()
        assert took < 20  # of hours; how soon it ends is measured, not tested
        assert spin(1000) == []


def test_a_signal_handler_may_call_the_same_program():
    spin = spinner()
    found = []
    before = signal.signal(signal.SIGALRM, lambda *_: found.append(spin(10)))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert spin(30_000_000) == []
    finally:
        signal.signal(signal.SIGALRM, before)
    assert found == [[]]


@pytest.mark.slow
def test_the_interpreter_may_end_while_a_thread_runs():
    script = dedent("""
        import importlib.util, threading, time, sys
        spec = importlib.util.spec_from_file_location("test_entrance", sys.argv[1])
        tests = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tests)
        spin = tests.spinner()
        threading.Thread(target=spin, args=(10**12,), daemon=True).start()
        time.sleep(0.2)
        print("end", flush=True)
    """)
    ran = subprocess.run(
        [sys.executable, "-c", script, __file__], capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.returncode) == ("end\n", 0), ran.stderr


def resident():
    """How many megabytes the process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20


@pytest.mark.slow
def test_memory_stays_flat_over_calls_sizes_threads_and_programs():
    f, met, _ = adder()
    x = np.arange(100.0)

    def work():
        for n in range(20_000):
            f(np.zeros(n % 50), 1.0)
            met.clear()

    def calls():
        for _ in range(1_000_000):
            f(x, 1.0)
        for n in range(20_000):
            f(np.zeros(n % 5000), 1.0)
            met.clear()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _ in range(100):
            adder()[0](x, 2.0)

    calls()
    before = resident()
    calls()
    assert resident() <= before + 2


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes(start):
    script = dedent(f"""
        import importlib.util, multiprocessing, sys
        import numpy as np

        def tests():
            spec = importlib.util.spec_from_file_location("test_entrance", {__file__!r})
            found = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(found)
            return found

        def total(n):
            return float(tests().adder()[0](np.zeros(3), float(n))[0].sum())

        if __name__ == "__main__":
            assert total(1) == 3
            with multiprocessing.get_context({start!r}).Pool(2) as pool:
                print(pool.map(total, range(4)))
    """)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "processes.py")
        file.write_text(script)
        ran = subprocess.run(
            [sys.executable, file], capture_output=True, text=True, timeout=120, check=False
        )
    assert ran.stdout == "[0.0, 3.0, 6.0, 9.0]\n", ran.stderr
