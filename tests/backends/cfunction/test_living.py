"""How long C functions live, and who may call them: threads, children, C, SciPy, numba."""

from __future__ import annotations

import ctypes
import gc as memory
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import graphcore as gc
from graphcore.backends.c_interface import FAILED
from graphcore.backends.llvm_kernels import c_entry
from tests import guards
from tests.backends.cfunction.calling import Call
from tests.backends.llvm_kernels.native import needs_machine_code

pytestmark = needs_machine_code

x, s = gc.tensor("x", {"row": None}), gc.tensor("s", {})
A = gc.tensor("A", {"i": None, "j": "i"})
DOUBLES = ctypes.POINTER(ctypes.c_double)
density = -gc.log1p(gc.cumsum(x, "row") ** 2).sum()
LOGP = "int logp(size_t row, const double *x, double *grad, double *value, void *user)"


def log_density() -> gc.Compiled:
    return gc.compile([x], {"value": density, "grad": gc.grad(density, x)}, native=True)


def data(a: np.ndarray) -> Any:
    return a.ctypes.data_as(DOUBLES)


# ---- threads, children, memory


def test_python_threads_at_once() -> None:
    """Of several sizes, more threads than workspaces are kept for, with failures among them."""
    f = gc.compile([A], gc.linalg.cholesky(A, dims=("i", "j")), native=True)
    c = f.cfunc("int f(size_t i, const double *A, double *L)")
    count, rounds = c_entry.SLOTS + 8, 40
    wrong: list[str] = []
    ready = threading.Barrier(count)

    def work(number: int) -> None:
        n = 2 + number % 5
        good, bad = np.eye(n) * 4 + number, -np.eye(n)
        expected, found = f(good), np.zeros((n, n))
        ready.wait()
        for _ in range(rounds):
            found[:] = 0
            if c.ctypes(n, data(good), data(found)) or (found != expected).any():
                wrong.append(f"thread {number}")
            if c.ctypes(n, data(bad), data(found)) != FAILED:
                wrong.append(f"thread {number} did not fail")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert "not positive definite" in str(c.failure())


def test_several_functions_of_one_program() -> None:
    f = log_density()
    one, two, fixed = f.cfunc(LOGP), f.cfunc(), f.cfunc(LOGP, row=3)
    assert len({one.address, two.address, fixed.address}) == 3
    a = np.array([0.5, -1.0, 2.0])
    for c in (one, two, fixed, one, fixed):
        value, grad = Call(f, c, a).run()
        assert value == f(a)["value"]
        np.testing.assert_array_equal(grad, f(a)["grad"])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_children() -> None:
    """A child of a fork calls what its parent made, and what it makes itself."""
    f = log_density()
    c, a = f.cfunc(LOGP), np.arange(5.0)
    expected = Call(f, c, a).run()
    child = os.fork()
    if not child:
        own = f.cfunc()
        alike = [
            (y == z).all()
            for each in (c, own)
            for y, z in zip(Call(f, each, a).run(), expected, strict=True)
        ]
        os._exit(0 if all(alike) else 1)
    assert os.waitpid(child, 0)[1] == 0
    for y, z in zip(Call(f, c, a).run(), expected, strict=True):
        np.testing.assert_array_equal(y, z)


def test_what_calls_it_keeps_it() -> None:
    """`ctypes` and `capsule` do, after the object itself and its program are gone."""

    def made(name: str) -> Any:
        return getattr(
            gc.compile([s], gc.sin(s) * 3, native=True).cfunc("double f(double s)"), name
        )

    by_ctypes, capsule = made("ctypes"), made("capsule")
    memory.collect()
    others = [
        gc.compile([s], gc.cos(s) * k, native=True).cfunc("double f(double s)") for k in range(3)
    ]
    assert by_ctypes(0.5) == 3 * np.sin(0.5)
    called = scipy.LowLevelCallable(capsule)
    del capsule
    memory.collect()
    found, _ = scipy.integrate.quad(called, 0, 1)
    assert abs(found - 3 * (1 - np.cos(1))) < 1e-14
    assert len(others) == 3


@pytest.mark.slow
def test_all_memory_comes_back() -> None:
    f = gc.compile([x], gc.cumsum(gc.sort(x, dim="row"), "row").sum(), native=True)
    a = np.ones(2_000_000)

    def used() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    before = 0
    for number in range(12):
        c = f.cfunc("double f(int row, double *x)")
        assert c.ctypes(a.size, data(a)) == f(a)
        assert c.capsule
        del c
        memory.collect()
        before = before or (used() if number == 3 else 0)
    assert used() - before < 2 * a.nbytes


def test_records_that_grow_lie_between_zones() -> None:
    """Loops remember their steps in memory of their own, which is freed."""
    n = gc.tensor("n", {}, dtype="int64")
    step = lambda c: (gc.sin(c[0]) + 1, c[1] + 1)
    last = gc.while_loop(lambda c: c[1] < n, step, (s, n * 0))[0]
    wanted = gc.compile([s, n], gc.grad(last, s), native=False)
    with guards.guarded():
        f = gc.compile([s, n], gc.grad(last, s), native=True)
        c = f.cfunc("double f(double s, int64_t n)")
        for count in (3, 500, 2):
            np.testing.assert_allclose(c.ctypes(0.3, count), wanted(0.3, count), rtol=1e-12)
        assert c._entry.layout.growing
        del c, f
        memory.collect()
        assert guards.found() == []


INTERRUPTED = """
import ctypes, os, signal, threading, time
import graphcore as gc

n = gc.tensor("n", {}, dtype="int64")
last = gc.fori_loop(0, n, lambda i, s: gc.sin(s) + 1, 0.5)
f = gc.compile([n], last, native=True)
c, found, steps = f.cfunc("int f(int64_t n, double *y)"), ctypes.c_double(), 2 * 10**7
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background a shell ignores it
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    c.ctypes(steps, found)
    time.sleep(60)
except KeyboardInterrupt:
    print(found.value == f(steps), c.failure())
"""


@pytest.mark.slow
def test_an_interrupt_comes_after_the_call() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout == "True None\n", done.stderr


# ---- SciPy, numba, C


def test_quad() -> None:
    f = gc.compile([s], gc.exp(-s * s) * gc.cos(3 * s), native=True)
    for declaration in ("double f(double s)", "double f(double s, void *user)"):
        c = f.cfunc(declaration)
        for called in (c.ctypes, c.capsule):
            found, _ = scipy.integrate.quad(scipy.LowLevelCallable(called), 0, 2)
            expected, _ = scipy.integrate.quad(lambda s: f(s), 0, 2)
            assert found == expected


def test_nquad_of_a_vector() -> None:
    f = gc.compile([x], gc.exp(-(x**2).sum()), native=True)
    c = f.cfunc("double f(int row, double *x)")
    found, _ = scipy.integrate.nquad(scipy.LowLevelCallable(c.ctypes), [[0, 1]] * 2)
    expected = (np.sqrt(np.pi) / 2 * scipy.special.erf(1)) ** 2
    assert abs(found - expected) < 1e-12


def test_generic_filter() -> None:
    f = gc.compile([x], gc.sqrt((x**2).mean()), native=True)
    c = f.cfunc(FILTER, success=1)
    image = np.random.default_rng(0).normal(size=(20, 30))
    rms = lambda a: np.sqrt(np.mean(a**2))
    expected = scipy.ndimage.generic_filter(image, rms, 3)
    for called in (c.ctypes, c.capsule):
        found = scipy.ndimage.generic_filter(image, scipy.LowLevelCallable(called), 3)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_numba() -> None:
    numba = pytest.importorskip("numba")
    c = gc.compile([s], s * s + 1, native=True).cfunc("double f(double s)")
    function = c.ctypes

    @numba.njit
    def total(n: int) -> float:
        found = 0.0
        for i in range(n):
            found += function(i)
        return found

    assert total(5) == 35.0


CALLER = """
#include <pthread.h>
#include <string.h>
#include "logp.h"

struct job { logp_function f; size_t n; const double *x, *grad; double value; long calls, wrong; };

static void *work(void *given) {
  struct job *job = given;
  double grad[64], value;
  for (long i = 0; i < job->calls; i++) {
    memset(grad, 0, sizeof grad);
    int status = job->f(job->n, job->x, grad, &value, 0);
    if (status || value != job->value) job->wrong++;
    else if (memcmp(grad, job->grad, job->n * sizeof *grad)) job->wrong++;
  }
  return 0;
}

/* How many of the calls by so many threads gave other bits. */
long calls_by_threads(logp_function f, size_t n, const double *x, const double *grad, double value,
                      int threads, long calls) {
  struct job jobs[64];
  pthread_t ids[64];
  long wrong = 0;
  for (int i = 0; i < threads; i++) {
    struct job job = {f, n, x, grad, value, calls, 0};
    jobs[i] = job;
    if (pthread_create(&ids[i], 0, work, &jobs[i])) return -1;
  }
  for (int i = 0; i < threads; i++) pthread_join(ids[i], 0), wrong += jobs[i].wrong;
  return wrong;
}
"""
INTEGRATOR = """
#include <stddef.h>
#include "rhs.h"

/* Runge and Kutta's classical method, in place, for an equation of two unknowns. */
int integrate(rhs_function f, double *y, double t, double h, long steps) {
  double k[4][2], z[2];
  const double at[4] = {0, 0.5, 0.5, 1};
  for (long i = 0; i < steps; i++, t += h) {
    for (int stage = 0; stage < 4; stage++) {
      for (int j = 0; j < 2; j++) z[j] = y[j] + (stage ? h * at[stage] * k[stage - 1][j] : 0);
      int status = f(t + h * at[stage], z, k[stage]);
      if (status) return status;
    }
    for (int j = 0; j < 2; j++) y[j] += h / 6 * (k[0][j] + 2 * k[1][j] + 2 * k[2][j] + k[3][j]);
  }
  return 0;
}
"""


def library(folder: Path, text: str, headers: dict[str, str], *options: str) -> ctypes.CDLL:
    """A C program that includes headers of C functions, without a warning."""
    compiler = next((name for name in ("cc", "gcc", "clang") if found(name)), None)
    if compiler is None:
        pytest.skip("no C compiler")
    for name, header in headers.items():
        Path(folder, f"{name}.h").write_text(header, encoding="utf-8")
    Path(folder, "caller.c").write_text(text, encoding="utf-8")
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC", *options]
    command = [compiler, *flags, "caller.c", "-o", "caller.so", "-lpthread"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "caller.so"))


def found(program: str) -> bool:
    return any(Path(folder, program).exists() for folder in os.environ["PATH"].split(os.pathsep))


@pytest.mark.parametrize("calls", [3_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_threads_of_a_c_program(tmp_path: Path, calls: int) -> None:
    f = log_density()
    c = f.cfunc(LOGP)
    a = np.linspace(-1, 1, 10)
    expected = f(a)
    run = library(tmp_path, CALLER, {"logp": c.header}).calls_by_threads
    run.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p),
        *(ctypes.c_double, ctypes.c_int, ctypes.c_long),
    ]
    run.restype = ctypes.c_long
    for threads in (1, 2, 40):
        given = c.address, a.size, a.ctypes.data, expected["grad"].ctypes.data, expected["value"]
        assert run(*given, threads, -(-calls // threads)) == 0
    assert (
        sum(word != 0 for word in c._entry.pool[c_entry.FIRST_SLOT : c_entry.FAILED_SIZES : 8]) == 0
    )


def test_an_equation_that_c_integrates(tmp_path: Path) -> None:
    t, y = gc.tensor("t", {}), gc.tensor("y", {"k": 2})
    turned = gc.stack([y[{"k": 1}], -y[{"k": 0}] * (1 + 0 * t)], "k")
    f = gc.compile([t, y], turned, native=True)
    c = f.cfunc("int rhs(double t, const double *y, double *dy)")
    integrate = library(tmp_path, INTEGRATOR, {"rhs": c.header}).integrate
    integrate.argtypes = [ctypes.c_void_p, DOUBLES, ctypes.c_double, ctypes.c_double, ctypes.c_long]
    state = np.array([0.0, 1.0])
    assert integrate(c.address, data(state), 0.0, 1e-3, 1000) == 0
    np.testing.assert_allclose(state, [np.sin(1), np.cos(1)], rtol=1e-12)


def test_headers_of_all_types_compile(tmp_path: Path) -> None:
    """Twice in one file; names of users end no comment."""
    inputs = [
        gc.tensor(f"in{number}", {"*/ int x; /*": None}, dtype=dtype)
        for number, dtype in enumerate(
            ["bool", "int8", "uint16", "int32", "uint64", "float32", "complex64", "complex128"]
        )
    ]
    c = gc.compile(inputs, inputs, native=True).cfunc(f"int {'many'}({PARAMETERS})")
    others = {
        "area": gc.compile([s], s * s, native=True).cfunc("double area(double s)"),
        "mean": gc.compile([x], x.mean(), native=True).cfunc(FILTER, success=1),
    }
    headers = {"many": c.header, **{name: each.header for name, each in others.items()}}
    text = "".join(f'#include "{name}.h"\n{name}_function {name};\n' for name in headers)
    library(tmp_path, text + '#include "many.h"\n', headers)
    assert " * Returns the result, f64[]; nan where a call fails.\n" in headers["area"]
    assert " * Returns 1; 0 where a call fails.\n" in headers["mean"]
    assert repr(others["area"]) == "<CFunction double area(double s);>"


FILTER = "int mean(double *x, npy_intp row, double *result, void *user)"
PARAMETERS = "size_t int_x, " + ", ".join(
    f"{'const ' * (side == 'in')}{kind} *{side}{number}"
    for side in ("in", "result")
    for number, kind in enumerate(
        [
            "bool",
            "signed char",
            "unsigned short",
            "int",
            "size_t",
            "float",
            "float complex",
            "double complex",
        ]
    )
)


@pytest.mark.slow
def test_in_a_process_without_the_frontend_of_others() -> None:
    """Making one imports neither xarray nor scipy's packages."""
    code = (
        "import sys, graphcore as gc\n"
        "s = gc.tensor('s', {})\n"
        "c = gc.compile([s], s * 2, native=True).cfunc('double f(double s)')\n"
        "assert c.ctypes(2.0) == 4.0\n"
        "print([m for m in ('xarray', 'pandas', 'scipy.integrate') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
