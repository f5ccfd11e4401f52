"""Statements of the functions that make up names: of windows, diagonals, positions, matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .drawing import Scope, Skip
from .forms import form

WINDOWS = (
    "gc.windows({x}, {{{a!r}: {n}}}, {fresh!r}, stride={p})",
    "gc.windows({x}, {{{a!r}: {n}}}, {fresh!r}, stride={p}, dilation=2)",
)
DIAGONALS = (
    "gc.diag({x}, {a!r}, ({new!r}, {more!r}))", "gc.diagonal({x}, ({a!r}, {b!r}), {new!r})",
    "gc.linalg.toeplitz({x}, dim={a!r}, new={fresh!r})",
)  # fmt: skip
ALONG = (
    "gc.max_pool({x}, {{{a!r}: 2}})", "gc.tile({x}, {{{a!r}: 2}})", "gc.repeat({x}, 2, {a!r})",
    "gc.shift({x}, {{{a!r}: 1}}, 0.5)", "gc.pad({x}, {{{a!r}: 1}}, constant_values=0.5)",
    "gc.top_k({x}, 1, {a!r}).values", "gc.trapezoid({x}, dim={a!r})",
    "gc.cumulative_sum({x}, {a!r}, include_initial=True)", "gc.norm({x} + 3.0, {a!r})",
    "gc.take_along({x}, gc.argmax({x}, {a!r}), {a!r})",
)  # fmt: skip
POSITIONS = ("gc.one_hot({k}, {m}, {beyond!r})", "gc.take_along({x}, {ks}, {a!r})")
SQUARES = (
    "gc.linalg.lu({x}, ({a!r}, {b!r}), new='pivot').upper", "gc.trace({x}, ({a!r}, {b!r}))",
    "gc.tril({x}, ({a!r}, {b!r}))",
)  # fmt: skip
TOGETHER = (
    "gc.cov({x}, {y}, {a!r})",
    "gc.linalg.outer({x}, gc.sin({x}), ({a!r}, {fresh!r})).transpose({fresh!r}, {a!r}, ...)",
)
CLASHING = (
    "gc.quantile({x}, [0.2, 0.7], {a!r})", "gc.linspace({x}, 1.5, {m}, dim={any!r})",
    "gc.vander({x}, {m})", "gc.vander({x}, {m}, {any!r})", "gc.diag({x}, {a!r})",
    "gc.diagonal({x}, ({a!r}, {b!r}))", "gc.one_hot({k}, 2)",
    "gc.nonzero(gc.maximum({x}, 0.0), {n}, {a!r})[{a!r}]",
    "gc.nonzero(gc.maximum({x}, 0.0), {n}, {a!r}, name={any!r})[{a!r}]",
)  # fmt: skip
"""Names of new dims that are not said, or may be there already."""


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


def together(s: Scope) -> None:
    """Two operands; the function may rename the dims of one of them."""
    d, x = s.drawing, s.any(least=1)
    dim = d.dim(x)
    if d.chance(0.7):
        lag = d.choice([n for n in d.pool if n not in d.frozen])
        sizes = {lag: d.choice((1, 2))}
        if d.chance(0.4):
            other = d.choice([n for n in d.pool if n not in (lag, dim, *d.frozen)])
            sizes[other] = s.value(x).sizes.get(other, d.sizes[other])
        s.emit(f"gc.conv({x}, {d.constant(sizes)}, {{{dim!r}: {lag!r}}})")
        return
    new = d.new_dim(s.value(x).dims)
    sizes = dict.fromkeys((dim, new), s.value(x).sizes[dim])
    a = f"({d.constant(sizes)} * 0.2 + gc.eye({sizes!r}))"
    s.emit(f"gc.linalg.solve({a}, {x}, ({dim!r}, {new!r})).transpose({new!r}, ...)")


def positions(s: Scope) -> None:
    """A new input of integers."""
    d = s.drawing
    if d.closed:
        raise Skip
    dim = d.new_dim(())
    s.visible.append(d.input({dim: d.sizes[dim]}, "places", "int64"))


def by_rows(s: Scope) -> None:
    x = s.drawing.choice([x for x in s.values(least=1) if "row" in s.value(x).dims])
    s.loosely(f"gc.linalg.toeplitz({x})")


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
    (3, form(*WINDOWS)), (2, positions), (4, form(*POSITIONS)), (5, form(*ALONG)), (3, together),
    (3, form(*TOGETHER)),
)  # fmt: skip
LIBRARY: tuple[tuple[int, Callable[[Scope], None]], ...] = (
    (5, left_out), (3, form(*DIAGONALS)), (2, by_rows), (6, matrices), (2, form(*SQUARES)),
    (2, form("gc.median({x}, {dims!r})")), (9, form(*CLASHING, loosely=True)), (6, exact),
)  # fmt: skip
