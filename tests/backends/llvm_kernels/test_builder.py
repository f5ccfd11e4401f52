"""The builder: values move out of loops, stay in branches, and are computed once."""

import ctypes
import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphcore.backends.llvm_kernels import machine
from graphcore.backends.llvm_kernels.builder import (
    FALSE,
    TRUE,
    Builder,
    Value,
    integer,
    real,
)

pytestmark = pytest.mark.skipif(
    machine.unavailable() is not None, reason=str(machine.unavailable())
)

X, N = Value("%x", "f64"), Value("%n", "i64")


def text_of(write: Callable[[Builder], Value]) -> str:
    """A function of a double x and an integer n that returns a double."""
    b = Builder()
    result = write(b)
    lines = ["define double @f(double %x, i64 %n) #0 {", *b.lines[0], f"  ret {result.typed}", "}"]
    return "\n".join([*lines, *b.declared.values(), machine.ATTRIBUTES])


def run(write: Callable[[Builder], Value], x: float, n: int) -> float:
    code = machine.compiled(text_of(write), "f")
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(code["f"])
    return f(x, n)


def test_loop() -> None:
    def write(b: Builder) -> Value:
        (total,) = b.loop(integer(0), N, 1, [real(0.5)], lambda i, a: [b.op("fadd", a, X)])
        return total

    assert [run(write, 2.0, n) for n in (-1, 0, 1, 5)] == [0.5, 0.5, 2.5, 10.5]


def test_invariants_leave_loops_and_are_computed_once() -> None:
    def write(b: Builder) -> Value:
        def row(i: Value, a: Value) -> list[Value]:
            def column(j: Value, c: Value) -> list[Value]:
                square = b.op("fmul", X, X)
                step = b.op("fadd", square, b.convert("sitofp", i, "f64"))
                return [b.op("fadd", c, b.op("fadd", step, b.op("fmul", X, X)))]

            return b.loop(integer(0), N, 1, [a], column)

        (total,) = b.loop(integer(0), integer(3), 1, [real(0.0)], row)
        assert sum(line.count("fmul") for line in b.lines[0]) == 1
        lines = b.lines[0]
        assert lines.index("  %v3 = fmul double %x, %x") < lines.index("pre1:")
        assert lines.index("  %v4 = sitofp i64 %i1 to double") < lines.index("pre2:")
        return total

    assert run(write, 2.0, 4) == sum(i + 8.0 for i in range(3) for _ in range(4))


def test_repeat() -> None:
    def write(b: Builder) -> Value:
        _, x = b.repeat(
            [N, X],
            lambda n, x: b.op("icmp sgt", n, integer(0)),
            lambda n, x: [b.sub(n, integer(1)), b.op("fmul", x, real(2.0))],
        )
        return x

    assert run(write, 1.0, 10) == 1024.0
    assert run(write, 1.0, -1) == 1.0


def test_nothing_leaves_a_branch() -> None:
    def write(b: Builder) -> Value:
        def divide() -> list[Value]:
            return [b.convert("sitofp", b.op("sdiv", integer(12), N), "f64")]

        (x,) = b.branch(b.op("icmp ne", N, integer(0)), divide, lambda: [real(-1.0)])
        return x

    assert [run(write, 0.0, n) for n in (0, 4)] == [-1.0, 3.0]


def test_choose() -> None:
    def write(b: Builder) -> Value:
        ways = [lambda x=x: [b.op("fadd", X, real(x))] for x in (1.0, 2.0, 3.0)]
        (x,) = b.choose(N, *ways)
        return x

    assert [run(write, 0.5, n) for n in (-1, 0, 1, 2, 3)] == [3.5, 1.5, 2.5, 3.5, 3.5]


def test_complex_values_are_carried() -> None:
    def write(b: Builder) -> Value:
        def turn(i: Value, z: Value) -> list[Value]:
            x, y = b.parts(z)
            return [b.complex(b.op("fsub", real(-0.0), y), x)]

        (z,) = b.loop(integer(0), N, 1, [b.widen(b.complex(X, real(1.0)))], turn)
        x, y = b.parts(b.lane(b.select(TRUE, z, z), 3))
        return b.op("fadd", x, b.op("fmul", y, real(10.0)))

    assert [run(write, 2.0, n) for n in range(4)] == [12.0, 19.0, -12.0, -19.0]


def test_a_sum_with_a_product_is_rounded_once() -> None:
    b = Builder()
    square = b.multiply(X, X)
    b.plus(square, real(1.0))
    b.plus(real(1.0), square)
    assert [line.split()[2] for line in b.lines[0]] == ["fmul", "call"]

    def add(i: Value, a: Value) -> list[Value]:  # the product has left the loop
        return [b.plus(a, square)]

    b.loop(integer(0), N, 1, [X], add)
    assert sum(line.count("fadd double") for line in b.lines[0]) == 1


def test_lanes() -> None:
    def write(b: Builder) -> Value:
        x = b.op("fadd", b.convert("sitofp", b.numbers, "f64"), X)
        y = b.shuffle(x, [7, -1, -1, -1, -1, -1, -1, 0])
        some = b.any_lane(b.op("icmp eq", b.numbers, N))
        return b.select(some, b.op("fadd", b.lane(y, 0), b.lane(y, 7)), real(-1.0))

    assert [run(write, 0.25, n) for n in (-1, 0, 7, 8)] == [-1.0, 7.5, 7.5, -1.0]


def test_constant_integers() -> None:
    b = Builder()
    minus, five = integer(-2), integer(5)
    assert b.add(minus, five).number == 3
    assert b.sub(minus, five).number == -7
    assert b.mul(minus, five).number == -10
    assert b.mul(N, integer(0)).number == 0
    assert b.mul(N, integer(1)) is b.add(N, integer(0)) is b.sub(N, integer(0)) is N
    assert b.sub(N, N).number == 0
    assert integer(2**64 - 1, "u64").text == "-1"
    assert integer(-(2**63)).text == str(-(2**63))
    assert (b.both(TRUE, FALSE), b.neither(FALSE)) == (FALSE, TRUE)
    assert b.lines == [[]]


def test_equal_text_of_other_kinds() -> None:
    b = Builder()
    x = b.op("add", N, N)
    unsigned = N._replace(kind="u64")
    assert b.op("add", unsigned, unsigned) == x._replace(kind="u64")


def test_wrong_text_is_refused() -> None:
    with pytest.raises(RuntimeError):
        machine.to_object("define i64 @f() { ret double 1.0 }")


def test_both_levels() -> None:
    text = text_of(
        lambda b: b.lane(b.op("fmul", b.widen(X), b.convert("sitofp", b.numbers, "f64")), 3)
    )
    for level in machine.levels():
        code = machine.Code(machine.to_object(text, level), "f")
        f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(code["f"])
        assert f(1.5, 0) == 4.5


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_code_that_is_dropped_leaves_no_memory() -> None:
    image = machine.to_object(text_of(lambda b: b.op("fadd", X, real(1.0))))

    def load(times: int) -> None:
        for _ in range(times):
            machine.Code(image, "f")

    load(200)
    before, loaded = resident(), len(machine.LOADED)
    load(600)
    gc.collect()
    assert resident() - before < 2 * 2**20
    assert len(machine.LOADED) == loaded


def test_code_may_be_alive_at_exit() -> None:
    program = """
from graphcore.backends.llvm_kernels import machine
text = "define i64 @f() #0 { ret i64 1 } " + machine.ATTRIBUTES
kept = [machine.compiled(text, "f") for _ in range(70)]
kept.append(kept)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
