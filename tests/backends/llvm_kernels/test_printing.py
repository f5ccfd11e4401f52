"""`gc.print` in machine code: what the buffer holds comes out whole, in order and in time."""

from __future__ import annotations

import io
import re
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import entrance
from tests.backends.llvm_kernels.test_native_robust import resident

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)


def said(f: gc.Compiled, *args: object) -> str:
    """What a call prints."""
    out = io.StringIO()
    with redirect_stdout(out):
        f(*args)
    return out.getvalue()


def in_both(inputs: list[gc.Tensor], outputs: object, *args: object) -> str:
    """What a program prints, the same in both targets; it is one function of machine code."""
    f = gc.compile(inputs, outputs, native=True)
    assert f.source.startswith("def kernel(")
    found = said(f, *args)
    assert found == said(gc.compile(inputs, outputs, native=False), *args)
    return found


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 4), (9, 40)])
def test_every_dtype(shape: tuple[int, ...]) -> None:
    names = "ijk"[: len(shape)]
    xs = [gc.tensor(dtype, dict.fromkeys(names), dtype=dtype) for dtype in DTYPES]
    rng = np.random.default_rng(0)
    values = [(rng.normal(size=shape) * 50).astype(dtype) for dtype in DTYPES]
    ys = [gc.print(x[dict.fromkeys(names, slice(None, None, -1))], "x") for x in xs]
    in_both(xs, [*ys, *[gc.print(y == y, "equal") for y in ys]], *values)


def test_values_larger_than_the_buffer() -> None:
    x, u = gc.tensor("x", {"row": None}), gc.tensor("u", {"time": None})
    many = entrance.PRINTS // 8 + 1

    def step(s: gc.Tensor, u: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        s = gc.print(s + u, "large")
        return s, gc.print(s.sum(), "small")

    ys = gc.scan(step, gc.print(x, "x"), u, dim="time")
    text = in_both([x, u], [*ys], np.arange(float(many)), np.arange(3.0))
    labels = [line.partition(":")[0] for line in text.splitlines()]
    assert labels == ["x", *("large", "small") * 3]
    for size in range(many - 4, many + 2):  # with its sizes it just fits, or does not
        in_both([x, u], [*ys], np.arange(float(size)), np.ones(2))


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are worded at once: NumPy takes longer for many of them than all else."""

    def in_brief(label: str, dtype: str, dims: Sequence[str], x: np.ndarray) -> str:
        return f"{label}: {x.item()}\n"

    monkeypatch.setattr(entrance.printing, "lines_to_print", in_brief)


def test_more_prints_than_the_buffer_holds(briefly: None) -> None:
    u = gc.tensor("u", {"time": None})
    last, _ = gc.scan(lambda s, u: (gc.print(s + u, "s"), None), 0.0, u, dim="time")
    lines = in_both([u], last, np.ones(9_000)).splitlines()
    assert lines == [f"s: {i}.0" for i in range(1, 9_001)]


def test_sizes_that_only_a_loop_finds() -> None:
    x = gc.tensor("x", {})
    y = gc.while_loop(lambda x: x < 100, lambda x: gc.print(3 * x, "x"), x)
    text = in_both([x], [y, gc.grad(y, x)], 1.0)
    assert text.splitlines() == [f"x: f64[] = {3**i}." for i in range(1, 6)]


def test_prints_before_an_error_are_shown() -> None:
    x, u = gc.tensor("x", {"row": None}), gc.tensor("u", {"time": None}, dtype="int64")
    step = lambda s, u: (gc.print(s + x[{"row": u}], "s"), None)
    last, _ = gc.scan(step, 0.0, u, dim="time")
    f = gc.compile([x, u], last, native=True)
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(gc.GraphError, match="in step 2"):
        f(np.ones(2), np.array([0, 1, 5, 0]))
    assert out.getvalue() == "s: f64[] = 1.\ns: f64[] = 2.\n"
    assert said(f, np.ones(2), np.array([1])) == "s: f64[] = 1.\n", "nothing is left over"


class Refusing(io.StringIO):
    """A file that takes so many lines."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def write(self, text: str) -> int:
        if self.getvalue().count("\n") >= self.most:
            raise BrokenPipeError("nobody reads this")
        return super().write(text)


@pytest.mark.parametrize("steps", [3, 4_000])
def test_a_file_that_refuses_ends_the_call(steps: int, briefly: None) -> None:
    u = gc.tensor("u", {"time": None})
    last, _ = gc.scan(lambda s, u: (gc.print(s + u, "s"), None), 0.0, u, dim="time")
    f = gc.compile([u], last, native=True)
    for most in (0, 1):
        with redirect_stdout(Refusing(most)) as out:
            if most and steps == 3:
                f(np.ones(steps))  # all at once, in the end
            else:
                with pytest.raises(BrokenPipeError, match="nobody"):
                    f(np.ones(steps))
        assert (out.getvalue() == "") == (most == 0)
    assert said(f, np.ones(2)) == "s: 1.0\ns: 2.0\n"


def test_a_file_that_calls_the_program_again() -> None:
    x = gc.tensor("x", {})
    f = gc.compile([x], gc.print(x, "x") + 1, native=True)

    class Calling(io.StringIO):
        deep = 0

        def write(self, text: str) -> int:
            if self.deep < 3:
                self.deep = deep = self.deep + 1
                assert f(float(deep)) == deep + 1
            return super().write(text)

    with redirect_stdout(Calling()) as out:
        assert f(0.0) == 1
    assert sorted(out.getvalue().split("\n")) == ["", *[f"x: f64[] = {i}." for i in range(4)]]


def test_eight_threads() -> None:
    u, name = gc.tensor("u", {"time": None}), gc.tensor("name", {})
    step = lambda s, u: (gc.print(s + u, "s"), None)
    last, _ = gc.scan(step, name, u, dim="time")
    f = gc.compile([u, name], last, native=True)
    with redirect_stdout(io.StringIO()) as out:
        threads = [
            threading.Thread(target=lambda n=n: [f(np.ones(100), 1000.0 * n) for _ in range(5)])
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    numbers = [int(x) for x in re.findall(r"^s: f64\[\] = (\d+)\.$", out.getvalue(), re.MULTILINE)]
    assert len(numbers) == out.getvalue().count("\n") == 8 * 5 * 100
    for n in range(8):
        own = [x - 1000 * n for x in numbers if x // 1000 == n]
        assert own == [*range(1, 101)] * 5


def test_prints_between_numpy_calls() -> None:
    x = gc.tensor("x", {"row": 4})

    def step(s: gc.Tensor, i: gc.Tensor) -> tuple[gc.Tensor, None]:
        return gc.print(s * 2 + i, "s"), None

    total = 0.0
    for i in range(3):
        y = gc.print(x + i, f"before {i}")
        y = gc.scan(step, y, gc.arange(2.0, dim="time"), dim="time")[0]
        spectrum = gc.fft.fft(y, dim="row")
        total = total + gc.print(gc.real(spectrum).sum(), f"after {i}")
    f = gc.compile([x], total, native=True)
    text = said(f, np.ones(4))
    labels = [line.partition(":")[0] for line in text.splitlines()]
    assert labels == [x for i in range(3) for x in (f"before {i}", "s", "s", f"after {i}")]
    assert text == said(gc.compile([x], total, native=False), np.ones(4))
    assert f.source.count("= k") + f.source.count("    k") >= 3, "the loops are machine code"


def test_prints_in_long_programs() -> None:
    x = gc.tensor("x", {"row": 3})
    y = x
    for i in range(300):
        y = gc.sin(y) + i
        if i % 30 == 0:
            y = gc.print(y, str(i))
    z = gc.print(x, "last") + y
    lines = in_both([x], z, np.ones(3)).splitlines()
    labels = [line.partition(":")[0] for line in lines]
    assert labels == [*map(str, range(0, 300, 30)), "last"]


class Watched(io.StringIO):
    """A file that notes the memory of the process now and then, and forgets the text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines, self.most, self.first = 0, 0, 0

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        self.first = self.first or resident()
        self.most = max(self.most, resident())
        return len(text)


@pytest.mark.slow
def test_a_million_prints_in_flat_memory(briefly: None) -> None:
    u = gc.tensor("u", {"time": None})
    last, _ = gc.scan(lambda s, u: (gc.print(s + u), None), 0.0, u, dim="time")
    f = gc.compile([u], last, native=True)
    with redirect_stdout(Watched()) as out:
        f(np.ones(1_000_000))
    assert out.lines == 1_000_000
    assert out.most - out.first < 2**23


@pytest.fixture
def alarm() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_what_was_printed_before_a_signal_is_shown(alarm: None) -> None:
    x = gc.tensor("x", {})
    y = gc.print(x, "x")
    y = gc.while_loop(lambda s: s < 1e300, lambda s: s + 1e-300, y)
    f = gc.compile([x], gc.print(y, "never"), native=True)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with redirect_stdout(io.StringIO()) as out, pytest.raises(KeyboardInterrupt):
        f(1.0)
    assert out.getvalue() == "x: f64[] = 1.\n"


def test_a_long_call_shows_its_prints_while_it_runs() -> None:
    """A look for signals shows them, long before the buffer is full."""
    u = gc.tensor("u", {"time": None})
    seen: list[float] = []

    class Slow(io.StringIO):
        def write(self, text: str) -> int:
            seen.append(float(text.split()[-1]))
            return len(text)

    def step(s: gc.Tensor, u: gc.Tensor) -> tuple[gc.Tensor, None]:
        s = gc.fori_loop(0, 1_000_000, lambda i, s: gc.sqrt(s + 1), s)
        return gc.print(s, "s"), None

    last, _ = gc.scan(step, 0.0, u, dim="time")
    f = gc.compile([u], last, native=True)
    with redirect_stdout(Slow()):
        f(np.ones(12))
    assert len(seen) > 2
