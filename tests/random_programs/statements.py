"""What statements there are: each function draws one in a scope, or raises Skip."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .drawing import Block, Drawing, Program, Scope, Skip, attempt
from .forms import form
from .higher import HIGHER, LOOPS
from .library import ALONG, LIBRARY, SHAPES
from .selection import SELECTION
from .values import Value

UNARY = (
    "gc.sin({x})", "gc.cos({x})", "gc.tanh({x})", "gc.exp(gc.sin({x}))", "{x} * {x}",
    "0.5 * {x} - 1.0", "-{x}", "gc.sqrt(1.0 + {x} * {x})", "gc.special.sigmoid({x})", "abs({x})",
    "gc.log(1.0 + {x} * {x})", "1.0 / (1.0 + gc.exp(-{x}))", "{x} + 1.0", "gc.arctan({x})",
    "gc.arcsinh({x})", "gc.special.erf({x})", "gc.special.softplus({x})", "gc.expm1(gc.sin({x}))",
    "gc.log1p({x} * {x})", "gc.exp(gc.sin({x})) - 1.0", "gc.log(1.0 + gc.exp({x}))",
    "gc.log(gc.special.sigmoid({x}))", "1.0 - gc.special.sigmoid({x})", "gc.log(gc.exp({x}))",
    "gc.special.gammaln(1.0 + {x} * {x})", "gc.tanh({x}) ** 3", "gc.tanh({x}) ** 4.0",
    "(1.0 + {x} * {x}) ** -0.5", "0.0 - -{x} * -1.0 / -2.0", "gc.clip({x}, -0.7, 0.7)",
    "gc.maximum({x}, 0.0)", "{x} * {x} - {x} / (1.0 + {x} * {x})",
    "gc.where({x} > 0, gc.log(gc.where({x} > 0, {x}, 1.0) + 1.0), {x})",
)  # fmt: skip
BINARY = (
    "{x} * {y}", "{x} * {y}", "{x} + {y}", "{x} - {y}", "{x} / (1.0 + {y} * {y})",
    "gc.maximum({x}, {y})", "gc.where({x} > {y}, {x}, gc.sin({y}))", "{x} * gc.tanh({y})",
    "{x} * gc.stop_gradient({y})", "gc.minimum({x}, {y})", "gc.arctan2({x}, 1.0 + {y} * {y})",
    "gc.hypot({x}, 1.0 + {y} * {y})", "gc.logaddexp({x}, {y})", "({x} + {y}) * ({y} + {x})",
    "(1.0 + {x} * {x}) ** gc.tanh({y})", "gc.special.xlogy({x}, 1.0 + {y} * {y})",
    "gc.where({x} > {y}, gc.square({x} - {y}), 0.0)",
)  # fmt: skip
REDUCED = (
    "gc.sum({x}, {dims!r})", "gc.sum({x}, {dims!r})", "gc.mean({x}, {dims!r})",
    "gc.max({x}, {dims!r})", "gc.min({x}, {dims!r})", "gc.prod(gc.cos({x}), {dims!r})",
    "gc.var({x}, {dims!r})", "gc.special.logsumexp({x}, {dims!r})", "gc.sum({x} * {x}, {dims!r})",
    "gc.var({x} + 1e6, {dims!r})", "gc.special.logsumexp({x} + 900.0, {dims!r}) - 900.0",
    "gc.log(gc.sum(gc.exp({x}), {dims!r}))", "gc.sqrt(gc.mean(gc.square({x}), {dims!r}) + 1.0)",
)  # fmt: skip
KEPT = (
    "gc.cumsum({x}, {a!r})", "gc.cumprod(gc.sin({x}), {a!r})", "gc.special.softmax({x}, {a!r})",
    "gc.flip({x}, {a!r})", "gc.roll({x}, {{{a!r}: 1}})", "gc.cummax({x}, {a!r})",
    "gc.sort({x}, {a!r})", "gc.diff({x}, {a!r})", "{x} - gc.mean({x}, {a!r})",
    "gc.special.softmax({x} - 900.0, {a!r})", "gc.exp({x}) / gc.sum(gc.exp({x}), {a!r})",
    "gc.special.log_softmax({x}, {a!r})", "gc.log(gc.special.softmax({x}, {a!r}))",
    "({x} - gc.mean({x}, {a!r})) / gc.sqrt(gc.var({x}, {a!r}) + 0.5)",
)  # fmt: skip
DOTS = (
    "gc.dot({x}, {y}, dim={a!r})", "gc.dot({x}, {y}, dim={a!r})",
    "gc.dot({x}, {y}, gc.cos({y}), dim={a!r})", "gc.dot({x}, {y}, {x}, dim={a!r})",
)  # fmt: skip
RENAMED = (
    "gc.rename({x}, {{{a!r}: {b!r}, {b!r}: {a!r}}})", "gc.rename({x}, {{{a!r}: {fresh!r}}})",
    "gc.rename({x}, {{{a!r}: {fresh!r}}})",
)  # fmt: skip
MOVED = (
    "gc.rename(gc.sum({x}, {a!r}), {{{b!r}: {a!r}}})",
    "gc.rename(gc.isel({x}, {{{a!r}: 0}}), {{{b!r}: {a!r}}})",
)
"""One dim summed or picked, and another taking its name."""
PICKED = (
    "gc.isel({x}, {{{a!r}: {at}}})", "gc.isel({x} * 2.0, {{{a!r}: {at}}})",
    "gc.isel({x}, {{{a!r}: {k}}})", "gc.isel({x} * 2.0, {{{a!r}: {k}}})",
    "gc.isel({x}, {{{a!r}: ({new!r}, [0, -1, 0])}})",
)  # fmt: skip
UPDATED = (
    "{x}.at[{{{a!r}: {part}}}].{change}(0.5)",
    "{x}.at[{{{a!r}: -1}}].{change}(gc.sin(gc.isel({x}, {{{a!r}: -1}})))",
)
REFUSED = (
    "gc.full_like({x}, gc.flip({x}, {a!r}))", "gc.astype({x} + 1j * {y}, 'float64')",
    *["gc.fori_loop(0, {n}, lambda i, c: gc.isel(c, {{{a!r}: slice(1, None)}}), {x})"] * 2,
    *["gc.scan(lambda c, e: (gc.isel(c, {{{a!r}: slice(1, None)}}), c), {x}, None, 'step', "
      "length={n})[0]"] * 2,
)  # fmt: skip
"""What must be refused: a value that is no number, and a carry that changes its size."""


def with_constant(s: Scope) -> None:
    """A value and a constant, of which one dim may be new."""
    d, x = s.drawing, s.any()
    sizes = {n: k for n, k in s.value(x).sizes.items() if d.chance(0.6)}
    names = [n for n in d.pool if n not in s.value(x).dims and n not in d.frozen]
    if names and d.chance(0.7):
        name = d.choice(names)
        sizes[name] = d.sizes[name]
    text = d.constant(sizes)
    s.emit(d.choice(("{x} * {c}", "{x} + {c}", "{c} * {x}")).format(x=x, c=text))


def contracted_constant(s: Scope) -> None:
    """The sum of a product with a constant, whose dims need not be seen outside."""
    d, x = s.drawing, s.any()
    sizes = dict(s.value(x).sizes)
    name = d.choice([n for n in d.pool if n not in d.frozen])
    c = {n: sizes.get(n, d.sizes[n]) for n in d.rng.sample(d.pool, d.choice((1, 2)))}
    c[name] = sizes.get(name, d.sizes[name])
    over = d.choice([n for n in c if n not in d.frozen])
    # Derivatives name the dims of their second axes with primes.
    primed = [f"{n}'" for n in sizes if f"{n}'" in d.pool and f"{n}'" not in d.frozen]
    likely = sorted(d.met - d.frozen) or primed
    if likely and d.chance(0.7):
        over = d.choice(likely)
        c[over] = sizes.get(over, d.sizes[over])
    form = d.choice(("gc.sum({x} * {c}, {d!r})", "gc.dot({x}, {c}, dim={d!r})"))
    s.emit(form.format(x=x, c=d.constant(c), d=over))


def stacked(s: Scope) -> None:
    d, x = s.drawing, s.any(least=2)
    a, b = s.dims(x, 2)
    new = d.new_dim([n for n in s.value(x).dims if n not in (a, b)])
    (y,) = s.emit(f"gc.stack({x}, {{{new!r}: ({a!r}, {b!r})}})")
    if d.chance(0.5):
        rest = [n for n in s.value(y).dims if n != new]
        p = d.new_dim(rest)
        q = d.new_dim([*rest, p])
        s.emit(
            f"gc.unstack({y}, {{{new!r}: {{{p!r}: {x}.sizes[{a!r}], {q!r}: {x}.sizes[{b!r}]}}}})"
        )


def seen(s: Scope) -> None:
    """A turned value, one place of it, and something else made of it."""
    d, x = s.drawing, s.any(least=2)
    dims = s.value(x).dims[::-1]
    (v,) = s.emit(f"gc.transpose({x}, ..., *{dims!r}) * 2.0")
    at = d.choice(s.values("i"))
    if s.value(at).dims:
        raise Skip
    s.emit(f"gc.isel({v}, {{{d.dim(v)!r}: {at}}})")
    s.emit(d.choice(("{v} + 1.0", "gc.cos({v})", "gc.exp(gc.sin({v}))")).format(v=v))


Table = tuple[tuple[int, Callable[[Scope], None]], ...]
NAMED: Table = (
    (8, form(*UNARY)), (8, form(*BINARY)), (6, form(*REDUCED)), (5, form(*KEPT)),
    (6, with_constant), (16, contracted_constant), (4, form(*DOTS)), (6, form(*RENAMED)),
    (3, form(*MOVED)), (4, form("gc.expand_dims({x}, {{{fresh!r}: {size}}})")),
    (3, form("gc.transpose({x}, ..., *{order!r})", "gc.transpose({x}, ..., *{order!r}) * 2.0")),
    (3, stacked), (3, form("gc.concat([{x}, {y}], {any!r})")), (6, form(*PICKED)), (2, seen),
    (3, form(*UPDATED)), *SHAPES,
)  # fmt: skip
"""Statements that mean the same of operands with more dims."""
KINDS: dict[str, tuple[Table, Table]] = {
    "any": ((*NAMED, (3, form(*REFUSED, loosely=True)), *LIBRARY, *SELECTION), HIGHER),
    "loops": ((*NAMED, *SELECTION), LOOPS),
    "plain": ((*NAMED, (20, form(*KEPT)), (10, form(*REDUCED)), (10, form(*ALONG))), ()),
}
"""Statements of one operation, and those with functions, of each kind of programs."""


def draw(s: Scope, kind: str = "any") -> None:
    """One statement, or none where nothing fits in some tries."""
    d: Drawing = s.drawing
    plain, higher = KINDS[kind]
    for _ in range(12):
        table = higher if higher and s.depth < 2 and d.chance((0.6, 0.45)[s.depth]) else plain
        weights, functions = zip(*table, strict=True)
        (function,) = d.rng.choices(
            functions, [w * d.favour[f] for w, f in zip(weights, functions, strict=True)]
        )
        if attempt(s, function):
            return


def drawn(seed: int, kind: str = "any") -> Program:
    """A program."""
    drawing = Drawing(seed, partial(draw, kind=kind))
    first = [drawing.some_input() for _ in range(drawing.choice((2, 3)))]
    if kind == "plain" and drawing.chance(0.3):
        first.append(drawing.some_input("float32"))
    integer = drawing.input({}, "places", "int64")
    scope = Scope(drawing, [], [*first, integer])
    for _ in range(drawing.choice((2, 3, 4, 5))):
        drawing.draw(scope)
        if drawing.ended:
            break
    made = [n for s in scope.statements if s.block is None for n in s.targets]
    made = [n for n in made if n == drawing.ended or isinstance(drawing.env[n], Value)]
    if not made or (kind == "loops" and all(s.block is None for s in scope.statements)):
        return drawn(seed + 10**9, kind)
    outputs = [n for n in made if drawing.chance(0.6)] or made[-1:]
    if made[-1] not in outputs:
        outputs.append(made[-1])
    other = {n: drawing.choice((0, 1, 1, 2, 2, 3, 3, 4, 4)) for n in drawing.pool}
    program = Program(seed, drawing.inputs, Block(scope.statements, ""), outputs,
                      [drawing.sizes, other])  # fmt: skip
    return program.pruned(outputs)
