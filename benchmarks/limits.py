"""How close kernels of few operations a value come to what memory allows, beside their peers.

python -m benchmarks.limits [--kernels NAME ...] [--dtype float32] [--rounds N] [--csv FILE]

Each kernel is timed on operands that stay in cache and on those that do not: processor time, in
turn, least of all rounds. Its limit is the longest of three times, and its share is the limit over
its own time:

- memory: the bytes that it must read and write at least, as NumPy's addition of two arrays moves as
  many;
- exp: its exponentials, as the faster of ours and NumPy's `exp` finds as many in cache;
- products: its multiplications of matrices, as NumPy's product of matrices of 512 rows does.

NumPy's functions are as one writes them by hand; JAX and PyTorch are columns where they are
installed.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import graphcore as gc
from benchmarks import report
from benchmarks.measure import Call, hardware, interleaved, use_one_thread

Function = Callable[..., Any]
Sizes = dict[str, int]
SMALL, LARGE = {"row": 128, "col": 512}, {"row": 10_000, "col": 1_000}
MALLOPT = {-3: 1 << 30, -1: (1 << 31) - 1}
"""Blocks up to 1 GB come from the heap, which is never given back: no call pays for fresh pages."""


class Kernel(NamedTuple):
    """A computation on arrays of some dims, in graphcore and, as `theirs(m, *operands)`, elsewhere.

    `m` has the functions of NumPy, JAX or PyTorch. Where there is a `back`, the kernel is the
    gradient: its last operand is the cotangent, and `back(m, *operands)` is the gradient by hand.
    `exps` are the dims of the exponentials, `products` the number of products over all dims.
    """

    inputs: tuple[str, ...]
    ours: Function
    theirs: Function
    sizes: tuple[Sizes, ...] = (SMALL, LARGE)
    back: Function | None = None
    exps: str = ""
    products: int = 0

    def data(self, sizes: Sizes, dtype: str) -> list[Any]:
        """Random operands."""
        rng = np.random.default_rng(0)
        shapes = [[sizes[dim] for dim in dims.split()] for dims in self.inputs]
        return [rng.normal(size=shape).astype(dtype) for shape in shapes]

    def work(self, sizes: Sizes) -> tuple[int, int]:
        """The numbers of exponentials, and of operations in products of matrices."""
        exps = prod([sizes[dim] for dim in self.exps.split()]) if self.exps else 0
        return exps, 2 * self.products * prod(sizes.values())

    def compiled(self, dtype: str) -> gc.Compiled:
        """Ours, for all sizes."""
        xs = [
            gc.tensor(f"x{i}", dict.fromkeys(dims.split()), dtype=dtype)
            for i, dims in enumerate(self.inputs)
        ]
        if self.back is None:
            return gc.compile(xs, self.ours(*xs), native=True)
        *operands, ct = xs
        return gc.compile(xs, gc.pullback(self.ours(*operands), operands, ct), native=True)


def rows_of(function: Function) -> Function:
    return lambda x: function(x, dim="col")


# ---- NumPy, JAX and PyTorch: `m` has the functions, the last axis is reduced


def softmax(m: Any, x: Any) -> Any:
    e = m.exp(x - m.max(x, -1))
    return e / m.sum(e, -1)


def log_softmax(m: Any, x: Any) -> Any:
    y = x - m.max(x, -1)
    return y - m.log(m.sum(m.exp(y), -1))


def logsumexp(m: Any, x: Any) -> Any:
    most = m.max(x, -1)
    return (most + m.log(m.sum(m.exp(x - most), -1)))[:, 0]


def layer_norm(m: Any, x: Any) -> Any:
    y = x - m.mean(x, -1)
    return y / m.sqrt(m.mean(y * y, -1) + 1e-5)


def rms_norm(m: Any, x: Any) -> Any:
    return x / m.sqrt(m.mean(x * x, -1) + 1e-5)


def attention(m: Any, q: Any, k: Any, v: Any) -> Any:
    return softmax(m, q @ m.turned(k) * q.shape[-1] ** -0.5) @ v


def jacobi(m: Any, x: Any) -> Any:
    return (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1]) * 0.2


def heat(m: Any, x: Any) -> Any:
    return x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])


def chain(m: Any, x: Any, y: Any) -> Any:
    u = x * y + x
    for k in range(12):
        u = (u + 0.5) * (x - y * u) + k
    return u


def smooth(m: Any, x: Any, y: Any) -> Any:
    u = m.tanh(x * y + x) - 0.5 * y
    return m.sqrt(u * u + 1) * m.exp(-u * u) + u


def softmax_back(m: Any, x: Any, ct: Any) -> Any:
    y = softmax(m, x)
    return (ct - m.sum(ct * y, -1)) * y


def log_softmax_back(m: Any, x: Any, ct: Any) -> Any:
    return ct - softmax(m, x) * m.sum(ct, -1)


def logsumexp_back(m: Any, x: Any, ct: Any) -> Any:
    return softmax(m, x) * ct[:, None]


def layer_norm_back(m: Any, x: Any, ct: Any) -> Any:
    y = x - m.mean(x, -1)
    inverse = 1 / m.sqrt(m.mean(y * y, -1) + 1e-5)
    y = y * inverse
    return (ct - m.mean(ct, -1) - y * m.mean(ct * y, -1)) * inverse


def rms_norm_back(m: Any, x: Any, ct: Any) -> Any:
    inverse = 1 / m.sqrt(m.mean(x * x, -1) + 1e-5)
    y = x * inverse
    return (ct - y * m.mean(ct * y, -1)) * inverse


def attention_back(m: Any, q: Any, k: Any, v: Any, ct: Any) -> Any:
    scale = q.shape[-1] ** -0.5
    p = softmax(m, q @ m.turned(k) * scale)
    ct_p = ct @ m.turned(v)
    ct_s = (ct_p - m.sum(ct_p * p, -1)) * p * scale
    return ct_s @ k, m.turned(ct_s) @ q, m.turned(p) @ ct


# ---- graphcore


def our_layer_norm(x: gc.Tensor) -> gc.Tensor:
    y = x - x.mean("col")
    return y / gc.sqrt((y * y).mean("col") + 1e-5)


def our_rms_norm(x: gc.Tensor) -> gc.Tensor:
    return x / gc.sqrt((x * x).mean("col") + 1e-5)


def our_attention(q: gc.Tensor, k: gc.Tensor, v: gc.Tensor) -> gc.Tensor:
    scores = gc.dot(q, k, dim="feature") * q.sizes["feature"] ** -0.5
    return gc.dot(gc.special.softmax(scores, dim="key"), v, dim="key")


def our_jacobi(x: gc.Tensor) -> gc.Tensor:
    mid, left, right = slice(1, -1), slice(None, -2), slice(2, None)
    parts = [(mid, mid), (mid, left), (mid, right), (right, mid), (left, mid)]
    a, b, c, d, e = [x[{"row": i, "col": j}] for i, j in parts]
    return (a + b + c + d + e) * 0.2


def our_heat(x: gc.Tensor) -> gc.Tensor:
    left, mid, right = [x[{"row": i}] for i in (slice(None, -2), slice(1, -1), slice(2, None))]
    return mid + 0.1 * (right - 2 * mid + left)


SCORES = ("query feature", "key feature", "key feature")
HEADS = ("head query feature", "head key feature", "head key feature")
LENGTHS: tuple[Sizes, ...] = tuple([{"query": n, "key": n, "feature": 64} for n in (64, 256, 1024)])
BATCHES: tuple[Sizes, ...] = tuple(
    [{"head": n, "query": k, "key": k, "feature": 64} for n, k in ((64, 64), (16, 256), (8, 512))]
)
ROWS, MATRIX = ("row col",), ("row col", "col")
LINE: tuple[Sizes, ...] = ({"row": 65_536}, {"row": 10_000_000})
SQUARE: tuple[Sizes, ...] = ({"row": 256, "col": 256}, {"row": 3_000, "col": 3_000})
TALL: tuple[Sizes, ...] = (SMALL, LARGE, {"row": 100_000, "col": 20})
CUBES: tuple[Sizes, ...] = tuple(
    [dict.fromkeys(("row", "inner", "col"), n) for n in (64, 128, 256, 512, 1024)]
)
DOT = lambda a, b: gc.dot(a, b, dim="col")

KERNELS = {
    "softmax": Kernel(ROWS, rows_of(gc.special.softmax), softmax, exps="row col"),
    "log_softmax": Kernel(ROWS, rows_of(gc.special.log_softmax), log_softmax, exps="row col"),
    "logsumexp": Kernel(ROWS, rows_of(gc.special.logsumexp), logsumexp, exps="row col"),
    "layer_norm": Kernel(ROWS, our_layer_norm, layer_norm),
    "rms_norm": Kernel(ROWS, our_rms_norm, rms_norm),
    "attention": Kernel(SCORES, our_attention, attention, LENGTHS, exps="query key", products=2),
    "attention, heads": Kernel(
        HEADS, our_attention, attention, BATCHES, exps="head query key", products=2
    ),
    "matmul": Kernel(
        ("row inner", "inner col"),
        lambda a, b: gc.dot(a, b, dim="inner"),
        lambda m, a, b: a @ b,
        CUBES,
        products=1,
    ),
    "matvec": Kernel(MATRIX, DOT, lambda m, a, x: a @ x, (SQUARE[0], LARGE)),
    "matvec turned": Kernel(("col row", "col"), DOT, lambda m, a, x: a.T @ x, (SQUARE[0], LARGE)),
    "sum of rows": Kernel(ROWS, lambda x: x.sum("col"), lambda m, x: m.sum(x, -1)[:, 0]),
    "sum of columns": Kernel(ROWS, lambda x: x.sum("row"), lambda m, x: m.sum(x, 0)[0], TALL),
    "max of columns": Kernel(ROWS, lambda x: x.max("row"), lambda m, x: m.max(x, 0)[0], TALL),
    "mean and var": Kernel(
        ("row col",),
        lambda x: (x.mean("col"), x.var("col")),
        lambda m, x: (m.mean(x, -1)[:, 0], m.var(x, -1)[:, 0]),
    ),
    "heat1d": Kernel(("row",), our_heat, heat, LINE),
    "jacobi2d": Kernel(ROWS, our_jacobi, jacobi, SQUARE),
    "chain": Kernel(("row", "row"), lambda x, y: chain(gc, x, y), chain, LINE),
    "smooth chain": Kernel(("row", "row"), lambda x, y: smooth(gc, x, y), smooth, LINE),
}
BACK = {
    "softmax": softmax_back,
    "log_softmax": log_softmax_back,
    "logsumexp": logsumexp_back,
    "layer_norm": layer_norm_back,
    "rms_norm": rms_norm_back,
    "attention": attention_back,
    "attention, heads": attention_back,
}
RESULTS = {"logsumexp": "row", "attention": "query feature", "attention, heads": HEADS[0]}
"""The dims of results that differ from those of the first operand."""
for name, back in BACK.items():
    primal = KERNELS[name]
    dims = RESULTS.get(name, primal.inputs[0])
    KERNELS[f"{name} back"] = primal._replace(
        inputs=(*primal.inputs, dims), back=back, products=primal.products and 5
    )


class Library(NamedTuple):
    """The functions that kernels use, of NumPy or of a peer; reductions keep their axis."""

    exp: Function
    log: Function
    sqrt: Function
    tanh: Function
    max: Function
    sum: Function
    mean: Function
    var: Function
    turned: Function


def library(m: Any) -> Library:
    """The functions of NumPy or of JAX."""
    reductions = [
        (lambda x, axis, f=f: f(x, axis=axis, keepdims=True)) for f in (m.max, m.sum, m.mean, m.var)
    ]
    return Library(m.exp, m.log, m.sqrt, m.tanh, *reductions, lambda x: x.swapaxes(-1, -2))


def peers() -> Iterator[tuple[str, Callable[[Kernel], tuple[Function, Function]]]]:
    """The peers that are installed: each makes a function of a kernel, and operands of arrays."""
    try:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        own = library(jnp)

        def jitted(kernel: Kernel) -> tuple[Function, Function]:
            def value(*xs: Any) -> Any:
                return kernel.theirs(own, *xs)

            def gradient(*xs: Any) -> Any:
                return jax.vjp(value, *xs[:-1])[1](xs[-1])

            function = jax.jit(value if kernel.back is None else gradient)
            return (lambda *xs: jax.block_until_ready(function(*xs))), jnp.asarray

        yield "JAX", jitted
    except ImportError:
        pass
    try:
        import torch

        torch.set_num_threads(1)
        names = ("exp", "log", "sqrt", "tanh")
        reductions = [
            (lambda x, axis, f=f: f(x, dim=axis, keepdim=True))
            for f in (torch.amax, torch.sum, torch.mean, lambda x, **k: x.var(correction=0, **k))
        ]
        plain = [getattr(torch, name) for name in names]
        there = Library(*plain, *reductions, lambda x: x.mT)

        def eager(kernel: Kernel) -> tuple[Function, Function]:
            def value(*xs: Any) -> Any:
                return kernel.theirs(there, *xs)

            def gradient(*xs: Any) -> Any:
                *operands, ct = [x.detach().requires_grad_() for x in xs]
                return torch.autograd.grad(value(*operands), operands, ct)

            return (value if kernel.back is None else gradient), torch.asarray

        yield "PyTorch", eager
    except ImportError:
        pass


def added(bytes: int) -> Call:
    """The sum of two arrays, of so many bytes in all with their sum."""
    return Call(np.add, tuple([np.ones(bytes // 24) for _ in range(3)]))


def moved(operands: Sequence[Any], results: Any) -> int:
    """How many bytes must be read and written at least."""
    several = results if isinstance(results, tuple | list) else [results]
    return sum(np.asarray(x).nbytes for x in (*operands, *several))


def least(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """The least processor time of each call."""
    samples = interleaved(calls, rounds, 0.003, clock=time.process_time)
    return {who: min(times) for who, times in samples.items()}


IN_CACHE, SIDE = 16_384, 512


def rates(dtype: str, rounds: int) -> tuple[float, float]:
    """The times of one exponential, and of one operation of a product of matrices."""
    x = gc.tensor("x", {"row": None}, dtype=dtype)
    values, out = np.linspace(-4, 4, IN_CACHE, dtype=dtype), np.empty(IN_CACHE, dtype)
    matrices = [np.ones((SIDE, SIDE), dtype) for _ in range(3)]
    times = least(
        {
            "ours": Call(gc.compile([x], gc.exp(x), native=True), (values,)),
            "NumPy": Call(np.exp, (values, out)),
            "product": Call(np.matmul, matrices),
        },
        rounds,
    )
    return min(times["ours"], times["NumPy"]) / IN_CACHE, times["product"] / (2 * SIDE**3)


def run(name: str, rounds: int, dtype: str) -> Iterator[dict[str, Any]]:
    """Times of one kernel at all its sizes."""
    kernel, numpy = KERNELS[name], library(np)
    ours, by_hand = kernel.compiled(dtype), kernel.back or kernel.theirs
    others = [(who, *make(kernel)) for who, make in peers()]
    each_exp, each_flop = rates(dtype, rounds)
    near = 1e-9 if dtype == "float64" else 1e-3
    for sizes in kernel.sizes:
        data = kernel.data(sizes, dtype)
        found, wanted = ours(*data), by_hand(numpy, *data)
        for x, y in zip(*[x if isinstance(x, tuple | list) else [x] for x in (found, wanted)],
                        strict=True):  # fmt: skip
            np.testing.assert_allclose(x, y, near, near, err_msg=name)
        calls = {"ours": Call(ours, data), "NumPy": Call(by_hand, (numpy, *data))}
        for who, function, converted in others:
            calls[who] = Call(function, [converted(x) for x in data])
        bytes = moved(data, found)
        calls["sum"] = added(bytes)
        times = least(calls, rounds)
        exps, flops = kernel.work(sizes)
        bounds = {"memory": times["sum"], "exp": exps * each_exp, "products": flops * each_flop}
        if exps and flops:  # the same units of the processor do both
            bounds["products, exp"] = bounds.pop("exp") + bounds.pop("products")
        limit = max(bounds, key=lambda name: bounds[name])
        yield {
            **{"name": name, "sizes": " ".join(map(str, sizes.values()))},
            **{"dtype": dtype, "bytes": bytes, "flops": flops, "limit": limit},
            **{"share": bounds[limit] / times["ours"], **times},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", nargs="*", default=tuple(KERNELS))
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a row for each size")
    options = parser.parse_args()
    use_one_thread()
    print(*[f"{name}: {value}" for name, value in hardware().items()], sep="\n")
    for setting, value in MALLOPT.items():
        ctypes.CDLL(None).mallopt(setting, value)
    rows = []
    for name in options.kernels:
        for row in run(name, options.rounds, options.dtype):
            rows.append(row)
            who = [w for w in ("NumPy", "JAX", "PyTorch") if w in row]
            over = "".join([f"{w:>9}{row[w] / row['ours']:6.2f}" for w in who])
            times = f"{row['ours'] * 1e6:12.1f} us{row['bytes'] / row['ours'] / 1e9:7.1f} GB/s"
            print(
                f"{name:22}{row['sizes']:>14}{times}{row['share']:7.0%} {row['limit']:14}{over}",
                flush=True,
            )
    if options.csv:
        report.write(rows, options.csv, report.about())


if __name__ == "__main__":
    main()
