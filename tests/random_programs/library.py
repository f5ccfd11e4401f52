"""Statements of the functions that make up names: of windows, diagonals, positions, matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .drawing import Scope, Skip


def pair(s: Scope) -> tuple[str, str]:
    """Two values that align, or one and a constant made to."""
    x = s.any()
    sizes = s.value(x).sizes
    fits = [
        y for y in s.values()
        if all(sizes.get(d, n) == n for d, n in s.value(y).sizes.items())
    ]  # fmt: skip
    return x, s.drawing.choice(fits)


def viewed(s: Scope) -> None:
    d, x = s.drawing, s.any(least=1)
    dim = d.dim(x)
    new = d.new_dim(s.value(x).dims)
    stride = d.choice((1, 2))
    width = d.choice((1, 2))
    more = d.choice(("", ", dilation=2"))
    s.emit(f"gc.windows({x}, {{{dim!r}: {width}}}, {new!r}, stride={stride}{more})")


def left_out(s: Scope) -> None:
    """Logarithms of numbers of which some are 0, where these are left out."""
    d = s.drawing
    given = [d.env[i.name].base for i in d.inputs if i.kind == "zeros"]
    x = d.choice([
        n for n in s.values(least=1) if n[0] in "xp"
        and any(np.array_equal(s.value(n).base.data, x.data) and s.value(n).dims == x.names
                for x in given)
    ])  # fmt: skip
    dim = d.dim(x)
    new = d.new_dim(s.value(x).dims)
    s.emit("gc.exp({})".format(d.choice((
        f"gc.isel(gc.log({x}), {{{dim!r}: slice(None, None, 2)}})",
        f"gc.max(gc.log({x}), {dim!r})",
        f"gc.cummax(gc.log({x}), {dim!r})",
        f"gc.windows(gc.log({x}), {{{dim!r}: 1}}, {new!r}, stride=2)",
    ))))  # fmt: skip


def diagonals(s: Scope) -> None:
    d = s.drawing
    match d.choice(("diag", "diagonal", "toeplitz", "default", "default")):
        case "diag":
            x = s.any(least=1)
            dim = d.dim(x)
            rest = [n for n in s.value(x).dims if n != dim]
            a = d.new_dim(rest)
            s.emit(f"gc.diag({x}, {dim!r}, ({a!r}, {d.new_dim([*rest, a])!r}))")
        case "diagonal":
            x = s.any(least=2)
            a, b = s.dims(x, 2)
            new = d.new_dim([n for n in s.value(x).dims if n not in (a, b)])
            s.emit(f"gc.diagonal({x}, ({a!r}, {b!r}), {new!r})")
        case "toeplitz":
            x = s.any(least=1)
            dim = d.dim(x)
            new = d.new_dim(s.value(x).dims)
            s.emit(f"gc.linalg.toeplitz({x}, dim={dim!r}, new={new!r})")
        case _:
            x = d.choice([x for x in s.values(least=1) if "row" in s.value(x).dims])
            if "row" in d.frozen:
                raise Skip
            s.loosely(f"gc.linalg.toeplitz({x})")


def positions(s: Scope) -> None:
    """Integers: an input, a one-hot of it, or places along a dim."""
    d = s.drawing
    match d.choice(("input", "one_hot", "along")):
        case "input":
            if d.closed:
                raise Skip
            names = [d.choice([n for n in d.pool if n not in d.frozen])]
            name = d.input({n: d.sizes[n] for n in names}, "places", "int64")
            s.visible.append(name)
        case "one_hot":
            k = s.any(kind="i")
            new = d.new_dim(s.value(k).dims)
            s.emit(f"gc.one_hot({k}, {d.choice((2, 3))}, {new!r})")
        case "along":
            k = s.any(kind="i", least=1)
            x = s.any(least=1)
            dim = d.dim(x)
            s.emit(f"gc.take_along({x}, {k}, {dim!r})")


def found(s: Scope) -> None:
    """Places of what is not 0, along a dim named by default or from the pool."""
    d, x = s.drawing, s.any(least=1)
    dim = d.dim(x)
    own = "" if d.chance(0.6) else f", name={d.choice(d.pool)!r}"
    text = f"gc.nonzero(gc.maximum({x}, 0.0), {d.choice((1, 2))}, {dim!r}{own})[{dim!r}]"
    s.loosely(text)


def spaced(s: Scope) -> None:
    d, x = s.drawing, s.any()
    dim = d.choice([n for n in d.pool if n not in d.frozen])
    s.loosely(f"gc.linspace({x}, 1.5, {d.choice((2, 3))}, dim={dim!r})")


def matrices(s: Scope) -> None:
    d = s.drawing
    matrices = [x for x in s.values(least=2) if len(s.value(x).dims) == 2]
    singular = [x for x in matrices if set(s.value(x).base.data.flat) >= {1.0, 2.0, 4.0}]
    own = [x for x in matrices if x.startswith("p")]
    x = d.choice([x for x in own if x in singular] or own or singular or matrices)
    a, b = s.value(x).dims
    if {a, b} & d.frozen:
        raise Skip
    if d.chance(0.5):
        s.emit(f"gc.linalg.det({x}, ({a!r}, {b!r}))")
        return
    new = d.new_dim((a, b))
    part = d.choice(("upper", "lower"))
    s.emit(f"gc.linalg.lu({x}, ({a!r}, {b!r}), new={new!r}).{part}")


def pooled(s: Scope) -> None:
    d, x = s.drawing, s.any(least=1)
    dim = d.dim(x)
    s.emit(d.choice((
        f"gc.max_pool({x}, {{{dim!r}: 2}})", f"gc.tile({x}, {{{dim!r}: 2}})",
        f"gc.repeat({x}, 2, {dim!r})", f"gc.shift({x}, {{{dim!r}: 1}}, 0.5)",
        f"gc.pad({x}, {{{dim!r}: 1}}, constant_values=0.5)",
        f"gc.top_k({x}, 1, {dim!r}).values", f"gc.trapezoid({x}, dim={dim!r})",
        f"gc.cumulative_sum({x}, {dim!r}, include_initial=True)",
        f"gc.norm({x} + 3.0, {dim!r})",
        f"gc.take_along({x}, gc.argmax({x}, {dim!r}), {dim!r})",
    )))  # fmt: skip


def in_order(s: Scope) -> None:
    d, x = s.drawing, s.any(least=1)
    if d.chance(0.5):
        s.emit(f"gc.median({x}, {s.dims(x, min(2, len(s.value(x).dims)))!r})")
    else:
        s.loosely(f"gc.quantile({x}, [0.2, 0.7], {d.dim(x)!r})")


def powers(s: Scope) -> None:
    d, x = s.drawing, s.any()
    own = "" if d.chance(0.5) else f", {d.choice([n for n in d.pool if n not in d.frozen])!r}"
    s.loosely(f"gc.vander({x}, {d.choice((2, 3))}{own})")


def by_default(s: Scope) -> None:
    """Names of new dims that are not said."""
    d = s.drawing
    match d.choice(("diag", "diagonal", "one_hot", "lu", "trace")):
        case "diag":
            x = s.any(least=1)
            s.loosely(f"gc.diag({x}, {d.dim(x)!r})")
        case "diagonal":
            x = s.any(least=2)
            a, b = s.dims(x, 2)
            s.loosely(f"gc.diagonal({x}, ({a!r}, {b!r}))")
        case "one_hot":
            s.loosely(f"gc.one_hot({s.any(kind='i')}, 2)")
        case "lu":
            x = s.any(least=2)
            a, b = s.dims(x, 2)
            s.emit(f"gc.linalg.lu({x}, ({a!r}, {b!r}), new='pivot').upper")
        case _:
            x = s.any(least=2)
            a, b = s.dims(x, 2)
            s.emit(f"gc.{d.choice(('trace', 'tril'))}({x}, ({a!r}, {b!r}))")


def together(s: Scope) -> None:
    """Two operands, of which the dims of one may be named anew inside."""
    d, x = s.drawing, s.any(least=1)
    dim = d.dim(x)
    match d.choice(("conv", "conv", "cov", "outer", "solve")):
        case "conv":
            lag = d.choice([n for n in d.pool if n not in d.frozen])
            sizes = {lag: d.choice((1, 2))}
            if d.chance(0.4):
                other = d.choice([n for n in d.pool if n not in (lag, dim, *d.frozen)])
                sizes[other] = s.value(x).sizes.get(other, d.sizes[other])
            s.emit(f"gc.conv({x}, {d.constant(sizes)}, {{{dim!r}: {lag!r}}})")
        case "cov":
            y = d.choice([y for y in s.values(least=1) if dim in s.value(y).dims])
            s.emit(f"gc.cov({x}, {y}, {dim!r})")
        case "outer":
            new = d.new_dim(s.value(x).dims)
            s.emit(
                f"gc.linalg.outer({x}, gc.sin({x}), ({dim!r}, {new!r}))"
                f".transpose({new!r}, {dim!r}, ...)"
            )
        case _:
            n = s.value(x).sizes[dim]
            new = d.new_dim(s.value(x).dims)
            sizes = {dim: n, new: n}
            a = f"({d.constant(sizes)} * 0.2 + gc.eye({sizes!r}))"
            s.emit(f"gc.linalg.solve({a}, {x}, ({dim!r}, {new!r})).transpose({new!r}, ...)")


LONG_SUMS = (
    "gc.mean({t}, {d!r})", "{n} * gc.isel(gc.cumsum({t}, {d!r}), {{{d!r}: -1}})",
    "{n} * gc.dot({t}, {t}, dim={d!r})", "{n} * gc.square(gc.norm({t}, {d!r}))",
    "gc.segment_mean({t}, gc.astype(gc.arange({size}, dim={d!r}) * 0, 'int64'), 1)",
)  # fmt: skip


def exact(s: Scope) -> None:
    """One is added where a long sum in float32 is not nearly that in float64."""
    d, x = s.drawing, s.any()
    if s.value(x).base.data.size > 4:
        raise Skip
    dim, size, form = d.new_dim(s.value(x).dims), 200_000, d.choice(LONG_SUMS)
    long = f"(gc.tanh(gc.stop_gradient({x})) + 1e-7 * gc.arange({size}, dim={dim!r}))"
    wide, narrow = (
        form.format(t=t, d=dim, n=1 / size, size=size)
        for t in (long, f"gc.astype({long}, 'float32')")
    )
    error = f"gc.absolute(gc.astype({narrow}, 'float64') - {wide})"
    s.emit(f"{x} + gc.where({error} > 1e-5, 1.0, 0.0)")


SHAPES: tuple[tuple[int, Callable[[Scope], None]], ...] = (
    (3, viewed), (6, positions), (5, pooled), (6, together),
)  # fmt: skip
LIBRARY: tuple[tuple[int, Callable[[Scope], None]], ...] = (
    (5, left_out), (5, diagonals), (1, spaced), (6, matrices), (3, found), (3, in_order),
    (2, powers), (3, by_default), (6, exact),
)  # fmt: skip
