"""Products of matrices by a routine of our own, for each level of x86-64."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
from itertools import pairwise, product

import numpy as np
import pytest

from graphcore.backends.llvm_kernels import (
    dense,
    elementary,
    machine,
    packed,
    product_sums,
    storing,
)
from graphcore.backends.rounding import ADDITIONS

from .native import fenced, needs_machine_code

pytestmark = needs_machine_code

KINDS = {"f64": np.float64, "f32": np.float32}
SIZES = [
    *[(1, 1, 1), (3, 1, 2), (7, 3, 5), (8, 8, 8), (9, 300, 17), (8, 257, 24), (31, 3, 2)],
    *[
        (2, 2, 100),
        (17, 600, 70),
        (530, 30, 49),
        (545, 30, 49),
        (1085, 9, 20),
        (300, 513, 20),
        (16, 700, 60),
        (17, 16, 48),
    ],
    *[
        (1, 300, 50),
        (1, 40, 1000),
        (3, dense.LONGEST_OF_FEW_ROWS, 9),
        (3, dense.LONGEST_OF_FEW_ROWS + 1, 9),
        (17, 3500, 3),
    ],
    (2, product_sums.LONGEST_INNER + 300, 3),
]
"""(rows, inner, columns) at and beside the ends of tiles, strips and blocks."""


@pytest.fixture(autouse=True, params=machine.levels())
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both levels, as the routine takes the first that the CPU has."""
    for module in (dense, elementary, storing):
        monkeypatch.setattr(module, "levels", lambda: (request.param,))
    monkeypatch.setattr(storing, "masks_are_quick", lambda: request.param == "x86-64-v4")


@machine.cached
def code(kind: str, level: str, name: str) -> machine.Code:
    routine = packed.Packed if name == "packed" else dense.Dense
    return elementary.compiled(routine(kind, level, name).text(), name, level=level)


def multiplied(
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray | None = None,
    upper: bool = False,
    name: str = "dense",
) -> np.ndarray:
    """x y by the routine for so many rows, for matrices that are row-major or column-major."""
    packs = name == "dense" and len(x) > dense.FEW_ROWS and dense.may_pack()
    if z is None:
        z = np.full((len(x), y.shape[1]), 7, x.dtype)
    routine = "packed" if packs else name
    kind = next(kind for kind, dtype in KINDS.items() if x.dtype == dtype)
    pointers, sizes = [ctypes.c_void_p] * 5, [ctypes.c_int64] * 9
    call = ctypes.CFUNCTYPE(None, *pointers, *sizes, ctypes.c_bool)(
        code(kind, dense.levels()[0], routine)[routine]
    )
    steps = [step // x.itemsize for step in (*x.strides, *y.strides, z.strides[0])]
    part = np.full_like(z, 7, shape=(2, len(z), steps[-1]))
    scratch = np.full_like(z, 7, shape=dense.scratch_for(dense.levels()[0]))
    call(
        x.ctypes.data,
        y.ctypes.data,
        z.ctypes.data,
        part.ctypes.data,
        scratch.ctypes.data,
        *x.shape,
        y.shape[1],
        *steps,
        x.shape[1],
        upper,
    )
    assert name == "dense" or (part == 7).all()
    return z


def matrices(
    rng: np.random.Generator, sizes: tuple[int, int, int], dtype: type, turned: tuple[bool, bool]
) -> tuple[np.ndarray, np.ndarray]:
    rows, inner, columns = sizes
    given = []
    for shape, is_transposed in zip(((rows, inner), (inner, columns)), turned):
        x = rng.standard_normal(shape[::-1] if is_transposed else shape).astype(dtype)
        given.append(x.T if is_transposed else x)
    return given[0], given[1]


def additions(inner: int) -> int:
    """The most that follow each other in a sum: within a group, of groups, and of blocks."""
    return min(inner, ADDITIONS)


@pytest.mark.parametrize("turned", [*product((False, True), repeat=2)])
@pytest.mark.parametrize("kind", KINDS)
def test_products(kind: str, turned: tuple[bool, bool]) -> None:
    """Within the bound for sums one after the other; (3.5) in Higham's book of 2002."""
    rng, unit = np.random.default_rng(1), np.finfo(KINDS[kind]).eps / 2
    for sizes in SIZES:
        x, y = matrices(rng, sizes, KINDS[kind], turned)
        exact = x.astype(np.longdouble) @ y.astype(np.longdouble)
        bound = additions(sizes[1]) * unit * (np.abs(x).astype(np.longdouble) @ np.abs(y))
        assert (np.abs(multiplied(x, y) - exact) <= bound).all(), sizes


@pytest.mark.parametrize("turned", [*product((False, True), repeat=2)])
@pytest.mark.parametrize("kind", KINDS)
def test_products_that_are_removed(kind: str, turned: tuple[bool, bool]) -> None:
    """Each block of 256 places of the inner axis, as `dense` has it, one after the other."""
    rng = np.random.default_rng(3)
    for sizes in [(1, 3, 2), (17, 256, 90), (40, 300, 61), (130, 520, 33)]:
        x, y = matrices(rng, sizes, KINDS[kind], turned)
        z = rng.standard_normal((sizes[0], sizes[2])).astype(KINDS[kind])
        wanted = z.copy()
        for k in range(0, sizes[1], dense.INNER):
            wanted -= multiplied(x[:, k : k + dense.INNER], y[k : k + dense.INNER])
        np.testing.assert_array_equal(multiplied(x, y, z, name="remove"), wanted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.skipif(len(machine.levels()) < 2, reason="needs AVX-512")
def test_both_levels_give_the_same_bits(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, found = np.random.default_rng(7), []
    given = [matrices(rng, sizes, KINDS[kind], (False, False)) for sizes in SIZES]
    for level in machine.levels():
        monkeypatch.setattr(dense, "levels", lambda level=level: (level,))
        monkeypatch.setattr(storing, "masks_are_quick", lambda level=level: level[-1] == "4")
        found.append([multiplied(*pair).tobytes() for pair in given])
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_a_product_have_the_bits_of_the_whole(kind: str) -> None:
    """So that threads can share a product of few rows; columns beside are left alone."""
    rng = np.random.default_rng(8)
    for sizes in [
        (3, 700, 90),
        (16, 70, 601),
        (40, 300, 61),
        (2, product_sums.LONGEST_INNER + 9, 20),
    ]:
        x, y = matrices(rng, sizes, KINDS[kind], (False, False))
        whole, z = multiplied(x, y), np.full((sizes[0], sizes[2]), 7, KINDS[kind])
        ends = [0, 17, 18, sizes[2] - 1]
        for start, stop in pairwise(ends):
            multiplied(x, y[:, start:stop], z[:, start:stop])
        np.testing.assert_array_equal(z[:, : ends[-1]], whole[:, : ends[-1]])
        assert (z[:, -1] == 7).all()


@pytest.mark.parametrize("kind", KINDS)
def test_equal_bits_however_the_matrices_lie(kind: str) -> None:
    rng = np.random.default_rng(2)
    for sizes in SIZES:
        x, y = matrices(rng, sizes, KINDS[kind], (False, False))
        found = multiplied(x, y)
        copy = np.asfortranarray(x)
        assert multiplied(copy, y).tobytes() == found.tobytes(), sizes
        if sizes[0] > dense.FEW_ROWS or sizes[1] * sizes[2] <= product_sums.IN_CACHE:
            assert multiplied(x, np.asfortranarray(y)).tobytes() == found.tobytes(), sizes


@pytest.mark.parametrize("turned", [*product((False, True), repeat=2)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_alone_has_the_same_bits(kind: str, turned: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(8)
    for columns in (3, 20, 49, 200):
        x, y = matrices(rng, (7, 300, columns), KINDS[kind], turned)
        assert multiplied(x[:1], y).tobytes() == multiplied(x, y)[:1].tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(8, 300, 200), (16, 40, 1000), (9, 1000, 41), (20, 900, 50)])
def test_large_matrices_with_few_rows(kind: str, sizes: tuple[int, int, int]) -> None:
    """They are read along their rows, and sums of fewer products are added up."""
    for turned in product((False, True), repeat=2):
        x, y = matrices(np.random.default_rng(3), sizes, KINDS[kind], turned)
        tolerance = 1e-12 if kind == "f64" else 1e-4
        wanted = x.astype(np.float64) @ y.astype(np.float64)
        np.testing.assert_allclose(multiplied(x, y), wanted, tolerance, tolerance * sizes[1])


@pytest.mark.parametrize(("rows", "inner"), [(1, 8_000_000), (20, 1_000_000)])
def test_long_sums_of_equal_products(rows: int, inner: int) -> None:
    """All additions round in the same direction as long as the exponent stays."""
    x, y = np.full((rows, inner), 0.1, np.float32), np.full((inner, 1), 0.3, np.float32)
    exact = inner * np.float64(x[0, 0]) * np.float64(y[0, 0])
    unit = np.finfo(np.float32).eps / 2
    assert (np.abs(multiplied(x, y) - exact) <= additions(inner) * unit * exact).all()


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_nothing(kind: str) -> None:
    for rows, inner, columns in ((3, 0, 4), (0, 3, 4), (3, 5, 0), (0, 0, 0), (300, 0, 1)):
        x, y = np.ones((rows, inner), KINDS[kind]), np.ones((inner, columns), KINDS[kind])
        assert (multiplied(x, y) == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_upper_triangle(kind: str) -> None:
    """Some places below the diagonal are not computed; none above it depends on that."""
    rng = np.random.default_rng(4)
    for n in (1, 8, 23, 50, 300):
        x = rng.standard_normal((n, 90)).astype(KINDS[kind])
        whole, upper = multiplied(x, x.T), multiplied(x, x.T, upper=True)
        assert np.triu(whole).tobytes() == np.triu(upper).tobytes()
        assert n < 100 or (upper == 7).any()


@pytest.mark.parametrize("kind", KINDS)
def test_nan_and_infinities_go_where_they_belong(kind: str) -> None:
    """0 inf is nan; what lies beside a matrix has no effect on it."""
    rng = np.random.default_rng(5)
    for sizes in SIZES:
        x, y = matrices(rng, sizes, KINDS[kind], (False, False))
        x[rng.uniform(size=x.shape) < 0.02] = np.inf
        y[rng.uniform(size=y.shape) < 0.02] = 0
        x[-1, 0], y[-1, -1] = np.nan, -np.inf
        with np.errstate(invalid="ignore"):
            wanted = x @ y
        found = multiplied(x, y)
        for where in (np.isnan, np.isposinf, np.isneginf):
            np.testing.assert_array_equal(where(found), where(wanted), err_msg=str(sizes))


@pytest.mark.parametrize("behind", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_it_stays_in_its_memory(kind: str, behind: bool) -> None:
    """Matrices that begin or end at a page that nothing may access."""
    dtype = np.dtype(KINDS[kind])

    def beside_a_fence(rows: int, columns: int) -> np.ndarray:
        several = fenced(-(-rows * columns * dtype.itemsize // 8), behind).view(dtype)
        count = rows * columns
        return (several[:count] if behind else several[-count:]).reshape(rows, columns)

    rng = np.random.default_rng(6)
    for rows, inner, columns in SIZES:
        for turned in product((False, True), repeat=2):
            shapes = (rows, inner), (inner, columns)
            x, y = [
                beside_a_fence(*shape[::-1]).T if is_transposed else beside_a_fence(*shape)
                for shape, is_transposed in zip(shapes, turned)
            ]
            x[:], y[:] = rng.integers(-9, 9, x.shape), rng.integers(-9, 9, y.shape)
            found = multiplied(x, y, beside_a_fence(rows, columns))
            np.testing.assert_array_equal(found, x @ y)


def test_threads_with_small_stacks() -> None:
    x, found = np.eye(300), list[np.ndarray]()
    multiplied(x, x.T)  # so that it is compiled
    before = threading.stack_size(2**17)
    try:
        thread = threading.Thread(target=lambda: found.append(multiplied(x, x.T)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    np.testing.assert_array_equal(found[0], x)


ON_A_FULL_STACK = """
import ctypes, mmap, sys
import numpy as np
from graphcore.backends.llvm_kernels import dense, elementary

level, page, libc = sys.argv[1], mmap.PAGESIZE, ctypes.CDLL(None)
below, stack = 16 * page, (10 if level[-1] == "4" else 6) * page
memory = mmap.mmap(-1, below + page + stack)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert libc.mprotect(ctypes.c_void_p(start + below), ctypes.c_size_t(page), 0) == 0
code = elementary.compiled(dense.Dense("f64", level).text(), "dense", level=level)
pointers, sizes = [ctypes.c_void_p] * 5, [ctypes.c_int64] * 9
call = ctypes.CFUNCTYPE(None, *pointers, *sizes, ctypes.c_bool)(code["dense"])
x = np.ones((8, 8))

@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def run(_):
    z, part = np.empty((8, 8)), np.empty((2, 8, 8))
    given = [a.ctypes.data for a in (x, x, z, part, part)]
    call(*given, *[8] * 4, 1, 8, 1, 8, 8, False)

attributes, thread = (ctypes.c_char * 64)(), ctypes.c_ulong()
libc.pthread_attr_init(attributes)
place = ctypes.c_void_p(start + below + page), ctypes.c_size_t(stack)
assert libc.pthread_attr_setstack(attributes, *place) == 0
assert libc.pthread_create(ctypes.byref(thread), attributes, run, None) == 0
libc.pthread_join(thread, None)
print(np.count_nonzero(np.frombuffer(memory, np.uint8, below)), "bytes were written below")
"""


def test_a_full_stack_ends_the_process() -> None:
    """Rather than to write below the page that guards it, where other memory may lie."""
    given = [sys.executable, "-X", "faulthandler=0", "-c", ON_A_FULL_STACK, dense.levels()[0]]
    done = subprocess.run(given, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGSEGV, done.stdout + done.stderr
