"""Statements whose results have as many elements as values say, and reductions within groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .drawing import Scope, Skip


def settled(s: Scope, text: str) -> str:
    """A text of what is one value for all steps of a loop and all members of a batch."""
    d = s.drawing
    leaves = d.depends(text)
    if any(leaf[0] != "x" for leaf in leaves) or leaves & d.replaced:
        raise Skip
    return text


def mask(s: Scope, dims: Iterable[str] | None = None) -> str:
    """The text of a condition, along these dims only if they are given."""
    d, y = s.drawing, s.any(least=1)
    s.leave(y)
    gone = [] if dims is None else [n for n in s.value(y).dims if n not in dims]
    if len(gone) == len(s.value(y).dims):
        raise Skip
    y = f"gc.sum({y}, {gone!r})" if gone else y
    return f"{y} > {d.choice((-9.0, -0.4, 0.1, 0.1, 0.5, 9.0))}"


def place_of(s: Scope) -> tuple[str, str]:
    """A value and a dim of it."""
    x = s.any(least=1)
    return x, s.drawing.dim(x)


def integer(s: Scope) -> str:
    """The text of an integer that is computed."""
    d = s.drawing
    single = [k for k in s.values("i") if not s.value(k).dims]
    if single and d.chance(0.4):
        text = d.choice(single)
    else:
        text = f"gc.sum(gc.astype({mask(s)}, 'int64'))"
    return settled(s, d.choice(("{k}", "{k} + 1", "2 * {k}")).format(k=text))


def numbers(s: Scope, dim: str) -> str:
    """The text of an integer for each element along a dim."""
    given = [k for k in s.values("i") if s.value(k).dims == (dim,)]
    if given and s.drawing.chance(0.6):
        return s.drawing.choice(given)
    return f"gc.astype({mask(s, [dim])}, 'int64')"


def masked(s: Scope) -> None:
    d = s.drawing
    x, dim = place_of(s)
    m = mask(s, [dim])
    match d.choice(("isel", "isel", "named", "fixed", "getitem")):
        case "named":
            size = ", size='few'"
        case "fixed":
            s.emit(f"gc.isel({x}, {{{dim!r}: {m}}}, size={d.choice((1, 2, 3))})")
            return
        case "getitem":
            s.emit(f"{x}[{settled(s, m)}]")
            return
        case _:
            size = ""
    s.emit(f"gc.isel({x}, {{{dim!r}: {settled(s, m)}}}{size})")


def masked_together(s: Scope) -> None:
    """Elements along several dims."""
    x = s.any(least=2)
    s.leave(x)
    s.loosely(f"{x}[{settled(s, mask(s, s.value(x).dims))}]")


def positions(s: Scope) -> None:
    """Of what is not 0, or the elements there."""
    d = s.drawing
    x, dim = place_of(s)
    new = d.new_dim([n for n in s.value(x).dims if n != dim])
    at = settled(s, f"gc.nonzero(gc.astype({mask(s, [dim])}, 'int64'), name={new!r})")
    s.emit(at + f"[{dim!r}]" if d.chance(0.4) else f"gc.isel({x}, {at})")


def distinct(s: Scope) -> None:
    d = s.drawing
    x = s.any(least=1, kind=d.choice("fi"))
    s.leave(x)
    new = d.choice([n for n in d.pool if n not in d.frozen])
    s.emit(settled(s, f"gc.unique({x}, name={new!r})"))


def dropped(s: Scope) -> None:
    """Missing values, or where a condition holds nowhere."""
    d = s.drawing
    x, dim = place_of(s)
    s.leave(x)
    match d.choice(("any", "least", "where")):
        case "any":
            missing = settled(s, f"gc.where({mask(s, [dim])}, {x}, np.nan)")
            s.emit(f"gc.dropna({missing}, {dim!r})")
        case "least":
            left = d.choice(("how='all'", "thresh=1", "thresh=2", "thresh=0"))
            s.emit(f"gc.fillna(gc.dropna({settled(s, missing_of(s, x))}, {dim!r}, {left}), 0.5)")
        case _:
            s.emit(f"{x}.where({settled(s, mask(s))}, 0.5, drop=True)")


def missing_of(s: Scope, x: str) -> str:
    """The text of `x` with some values missing."""
    return f"gc.where({mask(s, s.value(x).dims)}, {x}, np.nan)"


def skipped(s: Scope) -> None:
    """Reductions of what is not missing."""
    d, x = s.drawing, s.any(least=1)
    s.leave(x)
    dims = s.dims(x, d.choice(range(1, len(s.value(x).dims) + 1)))
    kind = d.choice(("sum", "mean", "max", "min", "prod", "var", "median"))
    s.emit(f"gc.{kind}({missing_of(s, x)}, {dims!r}, skipna=True)")


def repeated(s: Scope) -> None:
    d = s.drawing
    x, dim = place_of(s)
    times = integer(s) if d.chance(0.3) else numbers(s, dim) + d.choice(("", " + 1"))
    s.emit(f"gc.repeat({x}, {settled(s, times)}, {dim!r})")


def created(s: Scope) -> None:
    """New dims of a size that is computed."""
    d, x, n = s.drawing, s.any(), integer(s)
    new = d.new_dim(s.value(x).dims)
    s.emit(d.choice((
        f"gc.expand_dims({x}, {{{new!r}: {n}}})", f"{x} * gc.arange({n}, dim={new!r})",
        f"{x} + gc.zeros({{{new!r}: {n}}})",
    )))  # fmt: skip


def numbered(s: Scope, x: str, dim: str, named: bool) -> str:
    """The text of `x` in groups by number, or by labels; those of a `map` have another name."""
    d = s.drawing
    new = d.new_dim([n for n in s.value(x).dims if n != dim or named])
    name = f", name={new!r}" if named or d.chance(0.5) else ""
    if d.chance(0.3):
        labels = [d.choice("uvw") for _ in range(s.value(x).sizes[dim])]
        return f"gc.groupby({x}, {labels!r}, dim={dim!r}{name})"
    size = d.choice(("2", "2", "3", f"{integer(s)} + 2"))
    if len(s.value(x).dims) > 1 and not named and d.chance(0.2):  # along two dims
        s.leave(x)
        new = d.new_dim([])
        return f"gc.groupby({x}, gc.astype({mask(s, s.value(x).dims)}, 'int64'), 2, name={new!r})"
    return f"gc.groupby({x}, {numbers(s, dim)}, {size}{name})"


METHODS = (
    "sum", "sum", "prod", "mean", "max", "min", "median", "var", "first", "last", "quantile",
    "cumsum", "argmax", "map", "-", "*",
)  # fmt: skip
MEMBERS = (
    "gc.sum(gc.fillna(m, 0.0), {dim!r})",
    "gc.where(w, m - gc.sum(gc.where(w, m, 0.0), {dim!r}), 0.0)",
    "gc.cumsum(gc.where(w, m, 0.0), {dim!r})", "gc.where(w, gc.sin(m), 0.5)",
)  # fmt: skip


def grouped(s: Scope) -> None:
    d = s.drawing
    x, dim = place_of(s)
    if d.chance(0.2):
        kind, ids = d.choice(("sum", "sum", "prod", "mean", "max", "min")), numbers(s, dim)
        s.emit(f"gc.segment_{kind}({x}, {ids}, {d.choice((2, 3))})")
        return
    kind = d.choice(METHODS)
    text = numbered(s, x, dim, kind == "map")
    match kind:
        case "quantile":
            s.loosely(f"{text}.quantile({d.choice((0.3, [0.2, 0.7]))})")
        case "map":
            most = d.choice((f"{x}.sizes[{dim!r}]", f"{x}.sizes[{dim!r}]", "2"))
            s.loosely(f"{text}.map(lambda m, w: {d.choice(MEMBERS).format(dim=dim)}, {most})")
        case "argmax":
            s.emit(f"gc.isel({x}, {{{dim!r}: {text}.argmax()}})")
        case "-" | "*":
            s.emit(f"(lambda g: g {kind} g.{d.choice(('sum', 'mean', 'max'))}())({text})")
        case "cumsum":
            s.emit(f"{text}.cumsum()")
        case _ if d.chance(0.2):
            s.emit(text.replace(x, missing_of(s, x), 1) + f".{kind}(skipna=True)")
        case _:
            s.emit(f"{text}.{kind}()")


SELECTION: tuple[tuple[int, Callable[[Scope], None]], ...] = (
    (6, masked), (2, masked_together), (3, positions), (2, distinct), (5, dropped), (3, repeated),
    (3, created), (16, grouped), (4, skipped),
)  # fmt: skip
