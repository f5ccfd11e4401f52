"""What statements there are: each function draws one in a scope, or raises Skip."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .drawing import Block, Drawing, Program, Scope, Skip, attempt
from .higher import HIGHER, LOOPS
from .library import LIBRARY, SHAPES, pair
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
    "gc.sum({x}, {d})", "gc.sum({x}, {d})", "gc.mean({x}, {d})", "gc.max({x}, {d})",
    "gc.min({x}, {d})", "gc.prod(gc.cos({x}), {d})", "gc.var({x}, {d})",
    "gc.special.logsumexp({x}, {d})", "gc.sum({x} * {x}, {d})", "gc.var({x} + 1e6, {d})",
    "gc.special.logsumexp({x} + 900.0, {d}) - 900.0", "gc.log(gc.sum(gc.exp({x}), {d}))",
    "gc.sqrt(gc.mean(gc.square({x}), {d}) + 1.0)",
)  # fmt: skip
KEPT = (
    "gc.cumsum({x}, {d})", "gc.cumprod(gc.sin({x}), {d})", "gc.special.softmax({x}, {d})",
    "gc.flip({x}, {d})", "gc.roll({x}, {{{d}: 1}})", "gc.cummax({x}, {d})", "gc.sort({x}, {d})",
    "gc.diff({x}, {d})", "{x} - gc.mean({x}, {d})", "gc.special.softmax({x} - 900.0, {d})",
    "gc.exp({x}) / gc.sum(gc.exp({x}), {d})", "gc.special.log_softmax({x}, {d})",
    "gc.log(gc.special.softmax({x}, {d}))",
    "({x} - gc.mean({x}, {d})) / gc.sqrt(gc.var({x}, {d}) + 0.5)",
)  # fmt: skip


def unary(s: Scope) -> None:
    s.emit(s.drawing.choice(UNARY).format(x=s.any()))


def binary(s: Scope) -> None:
    x, y = pair(s)
    s.emit(s.drawing.choice(BINARY).format(x=x, y=y))


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


def reduced(s: Scope) -> None:
    d, x = s.drawing, s.any(least=1)
    dims = [n for n in s.value(x).dims if n not in d.frozen]
    if not dims:
        raise Skip
    some = d.rng.sample(dims, d.choice(range(1, len(dims) + 1)))
    s.emit(d.choice(REDUCED).format(x=x, d=some))


def kept(s: Scope) -> None:
    x = s.any(least=1)
    s.emit(s.drawing.choice(KEPT).format(x=x, d=repr(s.drawing.dim(x))))


def dot(s: Scope) -> None:
    x, y = pair(s)
    over = s.drawing.choice([n for n in s.value(x).dims if n not in s.drawing.frozen])
    more = s.drawing.choice(("", "", f", gc.cos({y})", f", {x}"))
    s.emit(f"gc.dot({x}, {y}{more}, dim={over!r})")


def renamed(s: Scope) -> None:
    d, x = s.drawing, s.any(least=1)
    dims = list(s.value(x).dims)
    free = [n for n in dims if n not in d.frozen]
    if len(free) >= 2 and d.chance(0.4):
        a, b = s.dims(x, 2)
        s.emit(f"gc.rename({x}, {{{a!r}: {b!r}, {b!r}: {a!r}}})")
        return
    s.emit(f"gc.rename({x}, {{{d.choice(free)!r}: {d.new_dim(dims)!r}}})")


def moved(s: Scope) -> None:
    """One dim summed or picked, and another taking its name."""
    d, x = s.drawing, s.any(least=2)
    a, b = s.dims(x, 2)
    first = f"gc.sum({x}, {a!r})" if d.chance(0.5) else f"gc.isel({x}, {{{a!r}: 0}})"
    s.emit(f"gc.rename({first}, {{{b!r}: {a!r}}})")


def expanded(s: Scope) -> None:
    d, x = s.drawing, s.any()
    new = d.new_dim(s.value(x).dims)
    sources = [
        (y, n) for y in s.values(least=1) for n, k in s.value(y).sizes.items()
    ]  # fmt: skip
    size = str(d.choice((1, 2, 3)))
    if sources and d.chance(0.6):
        y, n = d.choice(sources)
        size = f"{y}.sizes[{n!r}]"
    s.emit(f"gc.expand_dims({x}, {{{new!r}: {size}}})")


def transposed(s: Scope) -> None:
    d, x = s.drawing, s.any(least=2)
    dims = list(s.value(x).dims)
    d.rng.shuffle(dims)
    s.emit(f"gc.transpose({x}, ..., *{dims!r}){d.choice(('', ' * 2.0'))}")


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


def joined(s: Scope) -> None:
    d = s.drawing
    x, y = pair(s)
    new = d.choice([n for n in d.pool if n not in d.frozen])
    s.emit(f"gc.concat([{x}, {y}], {new!r})")


PLACES = ("0", "-1", "slice(1, None)", "slice(None, None, -1)", "slice(None, None, 2)")


def picked(s: Scope) -> None:
    d, x = s.drawing, s.any(least=1)
    dim = d.dim(x)
    at = d.choice((*PLACES, "slice(None, -1)", "slice(-3, 2)", "slice(3, None, -2)", "list",
                   "place", "place", "place"))  # fmt: skip
    if at == "place":
        at = s.any(kind="i")
    elif at == "list":
        new = d.new_dim([n for n in s.value(x).dims if n != dim])
        at = f"({new!r}, [0, -1, 0])"
    y = x if d.chance(0.6) else f"({x} * 2.0)"
    s.emit(f"gc.isel({y}, {{{dim!r}: {at}}})")


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


def updated(s: Scope) -> None:
    d, x = s.drawing, s.any(least=1)
    dim = d.dim(x)
    at = d.choice(PLACES)
    value = d.choice(("0.5", f"gc.sin(gc.isel({x}, {{{dim!r}: {at}}}))"))
    if s.value(x).sizes[dim] == 0 or (value != "0.5" and at[0] == "s"):
        value = "0.5"
    how = d.choice(("set", "add", "multiply", "max"))
    s.emit(f"{x}.at[{{{dim!r}: {at}}}].{how}({value})")


def refused(s: Scope) -> None:
    """What must be refused, where it is drawn: rarely."""
    d = s.drawing
    x, y = pair(s)
    text = d.choice((f"gc.full_like({x}, {y})", f"gc.astype({x} + 1j * {y}, 'float64')"))
    if "full" in text and not s.value(y).dims:
        raise Skip
    s.loosely(text)


def shrinking(s: Scope) -> None:
    """A loop whose carry changes its size, which must be refused."""
    d, x = s.drawing, s.any(least=1)
    dim = d.dim(x)
    less = f"gc.isel(c, {{{dim!r}: slice(1, None)}})"
    s.loosely(d.choice((
        f"gc.fori_loop(0, {d.choice((1, 2))}, lambda i, c: {less}, {x})",
        f"gc.scan(lambda c, e: ({less}, c), {x}, None, 'step', length={d.choice((1, 2))})[0]",
    )))  # fmt: skip


Table = tuple[tuple[int, Callable[[Scope], None]], ...]
NAMED: Table = (
    (8, unary), (8, binary), (6, with_constant), (16, contracted_constant), (6, reduced), (5, kept),
    (4, dot), (6, renamed), (3, moved), (4, expanded), (3, transposed), (3, stacked), (3, joined),
    (6, picked), (2, seen), (3, updated), *SHAPES,
)  # fmt: skip
"""Statements that mean the same of operands with more dims."""
KINDS: dict[str, tuple[Table, Table]] = {
    "any": ((*NAMED, (1, refused), (2, shrinking), *LIBRARY, *SELECTION), HIGHER),
    "loops": ((*NAMED, *SELECTION), LOOPS),
    "plain": (NAMED, ()),
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
