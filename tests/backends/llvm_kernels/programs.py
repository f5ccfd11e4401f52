"""Programs that the rules of machine code change, and others that look like these.

A program is a function of tensors whose axes are named: "b row col", or "b row=9" where the size is
known. It is called with every tuple of `sizes`, those of the unknown axes in order of their names'
first appearance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import graphcore as gc

Tensor = gc.Tensor
BOTH, DOUBLE = ("float64", "float32"), ("float64",)


class Program(NamedTuple):
    """A function of tensors, the axes of these, and the sizes it is called with."""

    make: Callable[..., Any]
    axes: tuple[str, ...]
    sizes: Sequence[tuple[int, ...]]
    dtypes: Sequence[str] = DOUBLE

    @property
    def unknown(self) -> list[str]:
        """The names of the sizes that only a call knows."""
        names = [axis for axes in self.axes for axis in axes.split() if "=" not in axis]
        return [*dict.fromkeys(names)]

    def compiled(self, dtype: str) -> gc.Compiled:
        """The program for arguments of a dtype, as calls of NumPy."""
        inputs = []
        for name, axes in zip("abcd", self.axes, strict=False):
            pairs = [axis.partition("=") for axis in axes.split()]
            sizes = {dim: int(size) if size else dim for dim, _, size in pairs}
            inputs.append(gc.tensor(name, sizes, dtype=dtype))
        return gc.compile(inputs, self.make(*inputs))

    def arguments(self, sizes: tuple[int, ...], dtype: str) -> list[np.ndarray]:
        """Arrays for a call with such sizes."""
        known, rng = dict(zip(self.unknown, sizes, strict=True)), np.random.default_rng(3)
        given = []
        for axes in self.axes:
            pairs = [axis.partition("=") for axis in axes.split()]
            x = rng.standard_normal([int(size or known.get(dim, 0)) for dim, _, size in pairs])
            given.append((9 * x if np.dtype(dtype).kind in "iub" else x).astype(dtype))
        return given


def of_each(made: Mapping[str, Callable[..., Any]], *given: Any, **options: Any) -> dict[str, Any]:
    """Programs of several functions of the same arguments."""
    return {name: Program(one, *given, **options) for name, one in made.items()}


# ---- rows and chains of rows

ROWS = [(0, 2, 5), (3, 0, 5), (1, 1, 1), (2, 3, 8), (3, 2, 17), (2, 2, 70), (1, 2, 2100)]
CUBES = "a b c", "a b c"
FLAT = [(0, 5), (3, 0), (1, 1), (31, 9), (32, 8), (33, 70), (67, 40)]
HEADS = "head query d", "head key d", "head key e"
KNOWN_HEADS = "head=2 query=129 d=5", "head=2 key=64 d=5", "head=2 key=64 e=33"
ATTENTION = [  # heads, queries, d, keys, e
    *((1, 1, 1, 1, 1), (2, 127, 3, 40, 4), (2, 129, 5, 64, 33), (1, 300, 17, 70, 9)),
    *((0, 3, 5, 4, 2), (2, 0, 5, 4, 2), (2, 300, 0, 40, 3), (2, 300, 3, 40, 0)),
]


def masked_softmax(x: Tensor, y: Tensor) -> Tensor:
    return gc.special.softmax((x * 0.5).where(y < 1.0, -np.inf), "c")


def normalised(x: Tensor, y: Tensor) -> Tensor:
    centred = x - gc.mean(x, "c")
    return centred / gc.sqrt(gc.mean(centred**2, "c") + 1e-5) * y


def beside_rows(x: Tensor, y: Tensor) -> Tensor:
    """Exponentials of other rows are read as well, so that these are stored whole."""
    z = gc.exp(x - gc.max(x, "c"))
    return z / gc.sum(z, "c") + gc.sum(z, "a") * y


def with_slopes(make: Callable[..., Tensor]) -> Callable[..., list[Tensor]]:
    """A function and its gradient."""

    def both(*inputs: Tensor) -> list[Tensor]:
        y = make(*inputs)
        return [y, *gc.grad(gc.sum(gc.sin(y)), [*inputs], disconnected="zero")]

    return both


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = gc.special.softmax(0.5 * gc.dot(q, k, dim="d"), "key")
    return gc.dot(scores, v, dim="key")


def causal(q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    """The largest value of a row is read where rows of the result have no places, too."""
    scores = gc.dot(q, k, dim="d")
    later = gc.arange(q.sizes["query"], dim="query") < gc.arange(k.sizes["key"], dim="key")
    scores = scores.where(~later, -np.inf)
    return [gc.dot(gc.special.softmax(scores, "key"), v, dim="key"), gc.max(scores, "key")]


def scores_too(q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    """The probabilities are a result as well, so that only the scores are not stored whole."""
    scores = gc.special.softmax(gc.dot(q, k, dim="d"), "key")
    return [gc.dot(scores, v, dim="key"), scores]


def other_rows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A row of the result needs all rows of the scores."""
    scores = gc.dot(q, k, dim="d")
    scores = gc.exp(scores - gc.max(scores, "key"))
    return gc.dot(scores / gc.sum(scores, "query"), v, dim="key")


def beside_each_row(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One number of each row is read by the second of two nests, after a product."""
    scores = gc.special.softmax(gc.dot(q, k, dim="d"), "key")
    total = gc.sum(gc.dot(scores, v, dim="key"), "e")
    return gc.dot(gc.special.softmax(scores * total, "key"), v, dim="key")


def numbers_of_rows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The sum of a row is read after a product, in loops over d that may have no steps."""
    scores = gc.exp(-(gc.dot(q, k, dim="d") ** 2))
    total = gc.sum(scores, "key")
    most = gc.max(abs(gc.dot(scores, v, dim="key")), "e", initial=0.0)
    return gc.sum(gc.exp(-((q * total + most) ** 2)), "d")


def turned_over(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The first row of the result needs the last of the scores."""
    scores = gc.special.softmax(gc.dot(q, k, dim="d"), "key")
    return gc.dot(gc.tanh(scores + gc.flip(scores, "query")), v, dim="key")


def two_layers(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Elementwise ops between products of matrices, without a reduction of rows."""
    return gc.dot(gc.maximum(gc.dot(q, k, dim="d"), 0.0) ** 2, v, dim="key")


CHAINS = attention, causal, scores_too, beside_each_row, numbers_of_rows, turned_over

# ---- windows


def blurred(mode: str, **strides: int) -> Callable[..., list[Tensor]]:
    """A convolution of exponentials and its gradient."""

    def both(x: Tensor, w: Tensor) -> list[Tensor]:
        y = gc.signal.convolve(gc.exp(x), w.rename(down="y", across="x"), mode=mode)
        return [y, *gc.grad((y * y).sum(), [x, w])]

    return both


def convolved(x: Tensor, w: Tensor) -> list[Tensor]:
    y = gc.conv(x, w, {"y": "ky", "x": "kx"}, contract="c", padding="same", stride=2)
    return [y, *gc.grad((y * y).sum(), [x, w])]


def convolved_in_a_loop(x: Tensor, w: Tensor) -> Any:
    def step(total: Tensor, one: Tensor) -> tuple[Tensor, Tensor]:
        y = gc.conv(one + total, w, {"y": "ky", "x": "kx"}, contract="c")
        return gc.tanh(y.mean()), y

    return gc.scan(step, 0.5, x, dim="t")


def blurred_again_and_again(x: Tensor, w: Tensor) -> list[Tensor]:
    w = w.rename(down="y", across="x")
    last = gc.fori_loop(0, 3, lambda _, x: gc.tanh(gc.signal.convolve(x, w, mode="same")), x)
    return [last, *gc.grad(last.sum(), [x, w])]


# ---- places: rolled, shifted, turned and joined values


def all_around(x: Tensor) -> Tensor:
    return x.roll(row=1) + x.roll(row=-1) + 2 * x.roll(col=1) - x.roll(col=-1) / 3


def directions(x: Tensor) -> Tensor:
    moved = [(x * k).roll(row=k % 3 - 1, col=k // 3 - 1) for k in range(9)]
    return gc.concat([one.expand_dims("of") for one in moved], "of")


SEAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "rolled": lambda x: gc.exp(x.roll(col=2)) * x,
    "rolled far": lambda x: x.roll(col=40) - x.roll(row=-3),
    "all around": all_around,
    "of computed values": lambda x: all_around(gc.sin(x)),
    "rolled twice": lambda x: x.roll(row=1, col=-1).roll(row=2, col=3) * x,
    "of a part": lambda x: x[{"col": slice(None, None, 2)}].roll(col=1) * 2,
    "padded": lambda x: gc.pad(x, {"col": (1, 2)}, constant_values=7)[{"col": slice(1, -2)}] + x,
    "padded around": lambda x: gc.pad(x.roll(col=1), {"col": (1, 1), "row": (2, 0)}) * 2,
    "shifted": lambda x: x.shift(col=1, fill_value=-1.0) + x.shift(col=-2, fill_value=5.0),
    "signs": lambda x: (x > 0).roll(col=1) & (x < 1),
    "short": lambda x: (x.astype("float32") * 3).roll(col=1) + x.astype("float32"),
}
SEAMLESS: dict[str, Callable[[Tensor], Tensor]] = {
    "directions": directions,
    "thrice, and sums": lambda x: x.roll(col=1).roll(col=2).roll(col=3).sum("row") + x.sum("row"),
    "summed along lanes": lambda x: (x * x.roll(col=1)).sum("col"),
    "turned": lambda x: (x.roll(col=1) + x).transpose("col", "row"),
    "backwards": lambda x: gc.flip(x.roll(col=1), "col") + x,
    "three of each": lambda x: x.roll(col=1) * gc.constant([1.0, 2.0, 3.0], "of"),
    "joined": lambda x: gc.concat([x, 2 * x, x.roll(col=1)], "col") + 1,
    "joined in rows": lambda x: gc.concat([x, x.roll(col=1), -x], "row"),
    "repeated along lanes": lambda x: x.roll(col=1) + x.sum("col") * gc.ones_like(x).roll(row=1),
}
AROUND = [(0, 0), (1, 0), (0, 5), (1, 1), (2, 2), (3, 7), (1, 8), (4, 9), (5, 17), (2, 33)]


def again(x: Tensor) -> Tensor:
    """A value that is stored, as two places of it are read for one."""
    y = gc.tanh(x)
    return y + y.roll(j=1)


def of_sorted(make: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """A function of a value that a routine makes."""
    return lambda x: make(gc.sort(x, "j"))


OVER: dict[str, Callable[[Tensor], Any]] = {
    "one": lambda y: again(2 * y + 1),
    "a result": lambda y: 2 * y + 1,
    "two at its place": lambda y: again(gc.exp(y) - y * y),
    "a chain": lambda y: again(again(again(2 * y) + 1) * 3) - 1,
    "integers": lambda y: gc.floor(9 * y).astype("int64"),
    "of three the last": lambda y: [2 * y, 3 - y, y * y],
}
"""Programs in which some value is stored over y."""
NOT_OVER: dict[str, Callable[[Tensor], Any]] = {
    "neighbours": lambda y: y + y.roll(j=1),
    "another row": lambda y: 2 * y + y.roll(i=3),
    "one for all": lambda y: y - y.isel(i=0),
    "the transpose": lambda y: y + y.rename(i="k").rename(j="i", k="j"),
    "read later": lambda y: [2 * y, gc.cumsum(y, "j")],
    "wider": lambda y: y.astype("complex128") + 1,
    "turned": lambda y: (y * 3).transpose("j", "i"),
    "several": lambda y: [again(2 * y), again(3 - y), y.sum("j")],
    "itself a result": lambda y: [y, y * 2 + 1],
    "in a loop": lambda y: gc.scan(
        lambda c, _: (again(3 - again(c)) + 1, None), y, length=3, dim="step"
    )[0],
}
"""Programs in which none may be: others of its places are read, it is read later, or is smaller."""

# ---- what is stored, and what is computed again


def masked(x: Tensor) -> Tensor:
    """The slope of a sum over rows of an activation, which the reverse pass reads again."""
    m = gc.where(x > 0, x, 0.1 * x)
    square = m * m
    return gc.grad((square / (1 + square.sum("col"))).sum(), x)


def shifted(x: Tensor) -> Tensor:
    y = x * x + x
    return y + gc.roll(y, {"row": 1}) * gc.roll(y, {"col": 2})


def normalised_slope(x: Tensor) -> Tensor:
    away = x - x.mean("col")
    y = away / gc.sqrt((away * away).mean("col") + 1e-5)
    return gc.grad((y**3).sum(), x)


def carried(a: Tensor, x: Tensor) -> Any:
    return lambda y, xt: ((1 - y * y) * a + xt * xt, y - a)


def inner(a: Tensor, x: Tensor) -> Any:
    def step(y: Tensor, xt: Tensor) -> Any:
        z, _ = gc.scan(lambda z, xs: ((1 - z * z) * xs + a, z), y, x, dim="time")
        return z * (1 - z), z

    return step


def branch(a: Tensor, x: Tensor) -> Any:
    def step(y: Tensor, xt: Tensor) -> Any:
        z = gc.cond(xt.sum() > 0, lambda y: y * (1 - y), lambda y: y * y - y, y)
        return z + a, (1 - z) * (1 - z)

    return step


def searching(a: Tensor, x: Tensor) -> Any:
    def step(y: Tensor, xt: Tensor) -> Any:
        z = gc.while_loop(lambda z: (z * z).sum() > 4, lambda z: z / 2, y + xt)
        return (1 - z) * a, z * (1 - z)

    return step


def each_by_itself(x: Tensor) -> list[Tensor]:
    """Loops of members that take from no step to several, and their gradients."""
    last = gc.while_loop(lambda z: abs(z) > 0.25, lambda z: z / 2 - z * z / (8 + z * z), x)
    sums = gc.while_loop(lambda z: abs(z).sum("c") > 1, lambda z: z / 2, x)
    value = (last * last * sums).sum()
    return [last, sums, value, gc.grad(value, x)]


def mixing_members(x: Tensor) -> Tensor:
    return gc.while_loop(lambda z: abs(z) > 0.25, lambda z: z / 4 + z.mean() / 4, x)


def sloping(body: Callable[..., Any]) -> Callable[..., list[Tensor]]:
    """The gradient of a loop whose steps are polynomials of its carry."""

    def made(x: Tensor, a: Tensor) -> list[Tensor]:
        last, ys = gc.scan(body(a / 4, x / 4), 0.3 * a / 4, x / 4, dim="time")
        value = (last * last).sum() + (ys * (2 - ys)).sum()
        return [value, *gc.grad(value, [x, a])]

    return made


def views_of_a_step(x: Tensor, y0: Tensor) -> Any:
    def step(y: Tensor, gates: Tensor) -> Any:
        turned = (gates * gates).transpose("row", "gate")
        return y * turned.isel(gate=1) + gates.isel(gate=2) * turned.isel(gate=0), y

    last, ys = gc.scan(step, y0, x, dim="time")
    return gc.grad((last * ys.sum("time")).sum(), [x, y0])


def joined_at_each_step(x: Tensor, y0: Tensor) -> Any:
    def step(y: Tensor, xs: Tensor) -> Any:
        y = gc.sin(y) * xs
        return y, y

    last, ys = gc.scan(step, y0, gc.concat([x, 1 - x], dim="row"), dim="time")
    return gc.grad((last * ys.sum("time")).sum(), [x, y0])


# ---- products


def with_its_transpose(x: Tensor, v: Tensor) -> list[Tensor]:
    first = gc.dot(x, v, dim="col")
    return [first, gc.dot(x, first, dim="row")]


def powers_of_a_matrix(x: Tensor, v: Tensor) -> list[Tensor]:
    def step(v: Tensor, _: None) -> tuple[Tensor, Tensor]:
        new = gc.dot(x, gc.dot(x, v, dim="col"), dim="row")
        return new / (1 + (new * new).sum() ** 0.5), new.sum()

    last, sums = gc.scan(step, v, length=4, dim="step")
    return [last, sums, gc.grad(sums.sum(), x)]


def written_into(x: Tensor, into: Tensor) -> list[Tensor]:
    """A mean of neighbours that is written over the inner places of another row, and read again."""

    def put(into: Tensor, part: Tensor) -> Tensor:
        return into.at[{"place": slice(1, -1)}].set(part)

    def mean(x: Tensor) -> Tensor:
        return (x[{"place": slice(-2)}] + x[{"place": slice(2, None)}]) / 2

    def step(_: Tensor, fields: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        x, into = fields
        into = put(into, mean(x))
        return put(x, mean(into) + into[{"place": slice(1, -1)}]), into

    y = put(into, mean(x))
    return [y, mean(y) + y[{"place": slice(1, -1)}], *gc.fori_loop(0, 5, step, (x, into))]


SQUARES = [(0, 3), (3, 0), (1, 40), (7, 9), (8, 1), (9, 6), (17, 16), (200, 33), (9, 1030)]
IN_REGISTERS = [(13, 4), (405, 20), (30, 24), (30, 25), (6, 49), (500, 50)]
"""Matrices whose rows fit into registers, and others with a few columns more."""
TABLES = [(0, 3, 2), (3, 0, 2), (1, 1, 1), (2, 31, 9), (2, 32, 8), (3, 33, 70), (1, 67, 40)]
IMAGES = [(0, 0, 2, 3), (1, 1, 1, 1), (5, 8, 2, 3), (20, 9, 2, 1), (30, 97, 6, 33)]


def reduced(x: Tensor) -> list[Tensor]:
    each = [x.sum(dims) for dims in ("a", "b", ("a", "b"))]
    each += [x.any("b"), (x * x).sum("a")]
    return [*each, x.max("b", initial=-1), x.min("b", initial=1)]


PRODUCT = Program(
    lambda x, y: gc.dot(x, y, dim="k"),
    ("i k", "k j"),
    [(0, 3, 2), (3, 0, 2), (3, 4, 5), (41, 42, 43), (2, 600, 5)],
    BOTH,
)


def along_short_axes(x: Tensor) -> list[Tensor]:
    waves = gc.tanh(x * gc.constant(np.arange(1.0, 4.0), "side"))
    return [waves * waves.sum("side"), waves.sum("row"), waves.max("side")]


def in_pieces(x: Tensor) -> list[Tensor]:
    """As gradients by a vector of several parameters: of known sizes, with parts that overlap."""
    v = gc.constant(np.linspace(0.1, 1.0, 60), "p") * x.max()
    a, b, c = (v.isel(p=slice(*ends)) for ends in ((0, 20), (20, 21), (21, 60)))
    parts = [
        gc.pad(gc.tanh(a), p=(0, 40), constant_values=0),
        gc.pad(gc.exp(b), p=(20, 39), constant_values=0),
        gc.pad(c / 3, p=(21, 0), constant_values=0),
    ]
    square = gc.pad(v.isel(p=slice(10, 30)) ** 2, p=(10, 30), constant_values=0)
    joined = gc.concat([a * 2, gc.sin(b), c], "p") + square
    return [
        parts[0] + parts[1] + parts[2],
        joined,
        joined.isel(p=slice(1, None)) * v.isel(p=slice(59)),
    ]
