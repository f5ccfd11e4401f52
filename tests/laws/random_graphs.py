"""Random well-typed programs over named axes, drawn by hypothesis so that failures shrink.

A program is a list of steps that speak of dims by name only: it can be built again on inputs whose
dims are permuted, renamed or more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import graphcore as gc

Draw = Callable[[st.SearchStrategy[Any]], Any]

DIMS: dict[str, dict[str, int | None]] = {
    "x": {"a": 2, "b": 3},
    "y": {"b": 3, "c": None},
    "z": {"c": None},
    "w": {"d": None, "a": 2},
    "s": {},
    "h": {"b": 3},  # float32
    "i": {"c": None},  # positions, 0 or 1
}
FLOATS = ("x", "y", "z", "w", "s")
DTYPE = {"h": "float32", "i": "int64"}
SIZES = {"a": 2, "b": 3}
MOST_DIMS = 4


def inputs(rename: Callable[[str], str] = str, order: int = 1) -> dict[str, gc.Tensor]:
    """The inputs, with their dims renamed, in reverse order if `order` is -1."""
    return {
        name: gc.tensor(
            name,
            {rename(dim): size for dim, size in list(dims.items())[::order]},
            dtype=DTYPE.get(name, "float64"),
        )
        for name, dims in DIMS.items()
    }


def arrays(seed: int, c: int, d: int) -> dict[str, np.ndarray]:
    """Values for the inputs."""
    random = np.random.default_rng(seed)
    known = SIZES | {"c": c, "d": d}
    made = {
        name: np.asarray(random.normal(size=[known[dim] for dim in dims]))
        for name, dims in DIMS.items()
    }
    made["h"] = made["h"].astype("float32")
    made["i"] = random.integers(0, 2, size=c)
    return made


class Step(NamedTuple):
    """One tensor made of earlier ones; `names` maps a dim to what it is called."""

    text: str
    make: Callable[..., gc.Tensor]
    operands: tuple[int, ...]

    def __repr__(self) -> str:
        return f"{self.text}{self.operands}"


class Program(NamedTuple):
    """Steps over inputs, in the order of `DIMS`; the last is the result."""

    steps: tuple[Step, ...]

    def __call__(
        self, given: Mapping[str, gc.Tensor], names: Callable[[str], str] = str
    ) -> gc.Tensor:
        pool = [given[name] for name in DIMS]
        for step in self.steps:
            pool.append(step.make(names, *[pool[i] for i in step.operands]))
        return pool[-1]


def plus_square(x: gc.Tensor) -> gc.Tensor:
    return 1 + gc.square(x)


SMOOTH: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    **{f: getattr(gc, f) for f in ("sin", "cos", "tanh", "arctan", "arcsinh", "negative")},
    **{f: getattr(gc.special, f) for f in ("sigmoid", "softplus", "erf")},
    "exp": lambda x: gc.exp(gc.tanh(x)),
    "expm1": lambda x: gc.expm1(gc.sin(x)),
    "exp - 1": lambda x: gc.exp(gc.sin(x)) - 1,
    "log": lambda x: gc.log(plus_square(x)),
    "log1p": lambda x: gc.log1p(gc.square(x)),
    "sqrt": lambda x: gc.sqrt(plus_square(x)),
    "reciprocal": lambda x: gc.reciprocal(plus_square(x)),
    "cube": lambda x: gc.tanh(x) ** 3,
    "fourth": lambda x: gc.tanh(x) ** 4.0,
    "power": lambda x: plus_square(x) ** -0.5,
    "log exp": lambda x: gc.log(gc.exp(x)),
    "softplus by hand": lambda x: gc.log(1 + gc.exp(x)),
    "sigmoid by hand": lambda x: 1 / (1 + gc.exp(-x)),
    "log sigmoid": lambda x: gc.log(gc.special.sigmoid(x)),
    "1 - sigmoid": lambda x: 1 - gc.special.sigmoid(x),
    "gammaln": lambda x: gc.special.gammaln(plus_square(x)),
    "scaled": lambda x: 2.5 * x - 1,
    "minus": lambda x: 0 - -x * -1 / -2.0,
    "absolute": lambda x: abs(x),
    "relu": lambda x: gc.maximum(x, 0.0),
    "clip": lambda x: x.clip(-0.7, 0.7),
    "guarded": lambda x: gc.where(x > 0, gc.log(gc.where(x > 0, x, 1) + 1), x),
    "self": lambda x: x * x - x / plus_square(x),
}
JOINED: dict[str, Callable[[gc.Tensor, gc.Tensor], gc.Tensor]] = {
    **{f: getattr(gc, f) for f in ("add", "subtract", "multiply", "maximum", "minimum")},
    "divide": lambda x, y: x / plus_square(y),
    "arctan2": lambda x, y: gc.arctan2(x, plus_square(y)),
    "hypot": lambda x, y: gc.hypot(x, plus_square(y)),
    "logaddexp": gc.logaddexp,
    "power": lambda x, y: plus_square(x) ** gc.tanh(y),
    "xlogy": lambda x, y: gc.special.xlogy(x, plus_square(y)),
    "where": lambda x, y: gc.where(x > y, gc.square(x - y), 0.0),
    "add twice": lambda x, y: (x + y) * (y + x),
}
REDUCED: dict[str, Callable[[gc.Tensor, Any], gc.Tensor]] = {
    **{f: getattr(gc, f) for f in ("sum", "mean", "max", "min", "var")},
    "prod": lambda x, dims: gc.prod(gc.cos(x), dims),
    "logsumexp": gc.special.logsumexp,
    "logsumexp by hand": lambda x, dims: gc.log(gc.exp(x).sum(dims)),
    "rms": lambda x, dims: gc.sqrt(gc.square(x).mean(dims) + 1),
    "sum of squares": lambda x, dims: (x * x).sum(dims),
}
KEPT: dict[str, Callable[[gc.Tensor, Any], gc.Tensor]] = {
    "softmax": gc.special.softmax,
    "softmax by hand": lambda x, dims: gc.exp(x) / gc.exp(x).sum(dims),
    "log_softmax": gc.special.log_softmax,
    "log of softmax": lambda x, dims: gc.log(gc.special.softmax(x, dims)),
    "cumsum": gc.cumsum,
    "cumprod": lambda x, dims: gc.cumprod(gc.sin(x), dims),
    "centred": lambda x, dims: x - x.mean(dims),
    "normal": lambda x, dims: (x - x.mean(dims)) / gc.sqrt(x.var(dims) + 0.5),
}


@st.composite
def programs(draw: Draw, steps: int = 8, mixed: bool = False) -> Program:
    """Programs of up to `steps` steps; `mixed` ones use float32 as well and stop gradients."""
    given = inputs()
    pool = list(given.values())
    usable = [i for i, name in enumerate(DIMS) if name in FLOATS or (mixed and name == "h")]
    made: list[Step] = []
    for _ in range(draw(st.integers(1, steps))):
        step = draw_step(draw, pool, usable, mixed, len(made))
        pool.append(step.make(str, *[pool[i] for i in step.operands]))
        usable.append(len(pool) - 1)
        made.append(step)
    return Program(tuple(made))


def draw_step(
    draw: Draw, pool: list[gc.Tensor], usable: list[int], mixed: bool, number: int
) -> Step:
    """One step, by preference of the last values."""
    at = draw(st.sampled_from([usable[-1]] * 3 + usable if number else usable))
    x = pool[at]
    kinds = ["smooth", "joined", "shape"] + (["reduced", "kept", "dot", "index"] * bool(x.dims))
    kind = draw(st.sampled_from(kinds + ["stop"] * mixed))
    others = [i for i in usable if len({*x.dims, *pool[i].dims}) <= MOST_DIMS] or [at]
    if kind == "smooth":
        name = draw(st.sampled_from(list(SMOOTH)))
        return Step(name, lambda names, x: SMOOTH[name](x), (at,))
    if kind == "joined":
        name, other = draw(st.sampled_from(list(JOINED))), draw(st.sampled_from(others))
        return Step(name, lambda names, x, y: JOINED[name](x, y), (at, other))
    if kind in ("reduced", "kept"):
        table = REDUCED if kind == "reduced" else KEPT
        name = draw(st.sampled_from(list(table)))
        dims = draw(st.lists(st.sampled_from(x.dims), min_size=1, unique=True))
        return Step(
            f"{name}[{dims}]", lambda names, x: table[name](x, [names(d) for d in dims]), (at,)
        )
    if kind == "dot":
        also = draw(st.lists(st.sampled_from(others), min_size=1, max_size=2))
        if len({*x.dims, *(d for i in also for d in pool[i].dims)}) > MOST_DIMS + 1:
            also = also[:1]
        over = draw(st.lists(st.sampled_from(x.dims), unique=True))
        return Step(
            f"dot[{over}]",
            lambda names, *xs: gc.dot(*xs, dim=[names(d) for d in over]),
            (at, *also),
        )
    if kind == "index":
        return indexed(draw, at, x, number)
    if kind == "stop":
        return Step("stop", lambda names, x: x + gc.stop_gradient(x), (at,))
    return shaped(draw, at, x, number)


def indexed(draw: Draw, at: int, x: gc.Tensor, number: int) -> Step:
    """Places picked. A dim whose size changes gets a name of its own."""
    dim = draw(st.sampled_from(x.dims))
    new = f"n{number}"
    size = x.sizes[dim]
    forms = ["slice", "first", "last", "array", "update"]
    if isinstance(size, int) and size >= 2:
        forms += ["place", "along" if "c" in x.dims else "gather"]
    form = draw(st.sampled_from(forms))
    positions = list(DIMS).index("i")
    if form == "gather":
        return Step(f"take[{dim}]", lambda names, x, i: gc.take(x, i, names(dim)), (at, positions))
    if form == "place":
        return Step(
            f"isel[{dim}=i[0]]",
            lambda names, x, i: x.isel({names(dim): i.isel({names("c"): 0})}),
            (at, positions),
        )
    if form == "along":
        return Step(
            f"take_along[{dim}]",
            lambda names, x, i: gc.take_along(x, i, names(dim)),
            (at, positions),
        )
    if form == "update":
        change = draw(st.sampled_from(["set", "add", "multiply", "max"]))
        places = draw(st.sampled_from([0, slice(1), slice(None, None, -2), [0, -1, 0]]))
        return Step(
            f"at[{dim}={places}].{change}",
            lambda names, x: getattr(x.at[{names(dim): places}], change)(
                gc.sin(x.isel({names(dim): places}))
            ),
            (at,),
        )
    if form == "array":
        return Step(
            f"isel[{dim}=[0, -1, 0]]",
            lambda names, x: x.isel({names(dim): (names(new), [0, -1, 0])}),
            (at,),
        )
    if form == "slice":
        ends = st.one_of(st.none(), st.integers(-3, 3))
        cut = slice(draw(ends), draw(ends), draw(st.sampled_from([None, 2, -1, -2])))
        return Step(
            f"isel[{dim}={cut}]",
            lambda names, x: (
                x.isel({names(dim): cut}).rename({names(dim): names(new)}).sum(names(new))
            ),
            (at,),
        )
    where = 0 if form == "first" else -1
    return Step(f"isel[{dim}={where}]", lambda names, x: x.isel({names(dim): where}), (at,))


def shaped(draw: Draw, at: int, x: gc.Tensor, number: int) -> Step:
    """Views."""
    new = f"n{number}"
    forms = ["expand"]
    dims = draw(st.permutations(x.dims))
    if x.dims:
        forms += ["transpose", "rename", "concat", "flip", "roll"]
        if isinstance(size := x.sizes[dims[0]], int) and size >= 3:  # else none may fit
            forms.append("windows")
    if len(x.dims) > 1:
        forms += ["stack", "restack"]
    if len(x.dims) > MOST_DIMS:
        forms.remove("expand")
    form = draw(st.sampled_from(forms))
    if form == "transpose":
        return Step(
            f"transpose{dims}", lambda names, x: x.transpose(..., *[names(d) for d in dims]), (at,)
        )
    if form == "expand":
        size = draw(st.sampled_from([1, 2]))
        return Step(f"expand[{size}]", lambda names, x: x.expand_dims({names(new): size}), (at,))
    dim = dims[0]
    if form == "rename":
        return Step(f"rename[{dim}]", lambda names, x: x.rename({names(dim): names(new)}), (at,))
    if form == "concat":
        return Step(
            f"concat[{dim}]",
            lambda names, x: gc.concat([x, gc.sin(x)], names(dim)).rename({names(dim): names(new)}),
            (at,),
        )
    if form == "flip":
        return Step(
            f"flip[{dim}]", lambda names, x: x + x.isel({names(dim): slice(None, None, -1)}), (at,)
        )
    if form == "roll":
        return Step(
            f"roll[{dim}]",
            lambda names, x: (
                x
                * gc.concat(
                    [x.isel({names(dim): slice(-1, None)}), x.isel({names(dim): slice(-1)})],
                    names(dim),
                )
            ),
            (at,),
        )
    if form == "windows":
        stride, dilation = draw(st.sampled_from([(1, 1), (2, 1), (1, 2)]))
        return Step(
            f"windows[{dim} by {stride}, {dilation}]",
            lambda names, x: (
                gc.sin(gc.windows(x, {names(dim): 2}, f"{names(new)}'", stride, dilation))
                .sum(f"{names(new)}'")
                .rename({names(dim): names(new)})
            ),
            (at,),
        )
    merged = dims[:2]
    if form == "stack":
        return Step(
            f"stack{merged}",
            lambda names, x: x.stack({names(new): [names(d) for d in merged]}),
            (at,),
        )
    sizes = {d: x.sizes[d] for d in merged}
    return Step(
        f"restack{merged}",
        lambda names, x: gc.sin(x.stack({names(new): [names(d) for d in merged]})).unstack(
            {names(new): {names(d): x.sizes[names(d)] for d in sizes}}
        ),
        (at,),
    )
