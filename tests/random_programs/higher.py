"""Statements with functions: loops, branches, derivatives, vectorize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .arranging import isel
from .control import repeated
from .drawing import Scope, Skip, attempt
from .library import matrices
from .values import Array, Value


def result_of(s: Scope, kind: str = "f") -> str:
    """What a function returns: by preference the last that it made."""
    made = [n for st in s.statements if st.block is None for n in st.targets]
    made = [n for n in made if isinstance(s.drawing.env[n], Value) and
            s.value(n).base.data.dtype.kind == kind]  # fmt: skip
    if made and s.drawing.chance(0.8):
        return made[-1]
    return s.any(kind=kind)


def carried(s: Scope, like: Sequence[str]) -> list[str]:
    """The new carries: what was made, alone or together with the old ones."""
    forms = ("{y}", "{y}", "gc.tanh({x}) * {y}", "{x} + 0.5 * gc.sin({y})", "gc.sin({x} + {y})")
    wider = ("gc.tanh({x}) * {y}", "gc.sin({y} + {x})", "{y} - 0.5 * {x}")
    made = []
    for x in like:
        if s.drawing.chance(0.15):  # perhaps with more dims than the start, and before its own
            y = s.without_others(result_of(s), x)
            made.append(s.drawing.choice(wider).format(x=x, y=y))
        else:
            made.append(s.drawing.choice(forms).format(x=x, y=s.fitted(result_of(s), x)))
        if s.drawing.chance(0.2):  # in any order
            dims = list(s.value(x).dims)
            s.drawing.rng.shuffle(dims)
            made[-1] = f"gc.transpose({made[-1]}, ..., *{dims!r})"
    return made


# ---- loops and branches


def scan(s: Scope) -> None:
    d = s.drawing
    init = [s.any() for _ in range(d.choice((1, 1, 2)))]
    dim = d.choice([n for n in d.pool if n not in d.frozen])
    walked = [x for x in s.values(least=1) if s.value(x).sizes.get(dim)]
    p = [d.name("p") for _ in init]
    params: list[Any] = [(n, s.value(x), None) for n, x in zip(p, init, strict=True)]
    if walked and d.chance(0.6):
        x = d.choice(walked)
        how, call = f"{x}, {dim!r}", "(c, e)"
        params.append((d.name("p"), isel(s.value(x), {dim: 0}), None))
    else:
        length = str(d.choice((0, 1, 2, 3)))
        ys = s.values(least=1)
        if ys and d.chance(0.3):
            y = d.choice(ys)
            length = f"{y}.sizes[{d.choice(s.value(y).dims)!r}]"
        how, call = f"None, {dim!r}, length={length}", "(c)"

    def finish(inner: Scope) -> str:
        new = carried(inner, p)
        made = new[0] if len(new) == 1 else f"({', '.join(new)})"
        return f"{made}, {result_of(inner)}"

    f = s.function(params, finish)
    if len(init) > 1:
        call = call.replace("c", "*c")
    tree = init[0] if len(init) == 1 else f"({', '.join(init)})"
    more = ", reverse=True" if d.chance(0.3) else ""
    more += d.choice(("", "", "", ", checkpoint=1", ", checkpoint=2", ", checkpoint='log'"))
    s.emit_pair(f"gc.scan(lambda c, e: {f}{call}, {tree}, {how}{more})", len(init))


def fori_loop(s: Scope) -> None:
    d = s.drawing
    x = s.any()
    start = s.value(x)
    i, p = d.name("k"), d.name("p")
    params = [(i, Array((), 1), None), (p, start, None)]
    f = s.function(params, lambda inner: carried(inner, [p])[0])
    upper = str(d.choice((0, 1, 2, 3)))
    scalars = [k for k in s.values("i") if not s.value(k).dims]
    if scalars and "step" not in d.frozen and d.chance(0.3):
        upper = f"{d.choice(scalars)} + 1"
    if d.chance(0.2) and not start.dims:
        x = "0.7"  # a number, which takes the dims of what the body makes of it
    s.emit(f"gc.fori_loop({d.choice((0, 0, 0, 1))}, {upper}, {f}, {x})")


def while_loop(s: Scope) -> None:
    """Until a level passes a limit, one for all or one for each place of a value."""
    d = s.drawing
    x, level = s.any(least=d.choice((0, 1))), s.any()
    if d.chance(0.5):
        s.leave(level)
        (level,) = s.emit(f"gc.sum({level})")
    (level,) = s.emit(f"gc.tanh({level})")
    start = s.value(x)
    p, q = d.name("p"), d.name("p")
    before = start
    if s.value(level).dims:  # all that is carried gets the dims of the predicate
        extra = {n: k for n, k in s.value(level).sizes.items() if n not in start.dims}
        if any(start.sizes.get(n, k) != k for n, k in s.value(level).sizes.items()):
            raise Skip
        before = repeated(start, extra)
    params = [(p, s.value(level), None), (q, before, None)]

    def finish(inner: Scope) -> str:
        step = d.choice(("0.7", f"0.4 + 0.5 * gc.special.sigmoid({p})"))
        return f"{p} + {step}, {carried(inner, [q])[0]}"

    f = s.function(params, finish)
    limit = d.choice((0.3, 1.1, 1.7))
    most = d.choice(("", "", f", max_steps={d.choice((1, 2, 5))}"))
    s.emit(f"gc.while_loop(lambda c: c[0] < {limit}, lambda c: {f}(*c), ({level}, {x}){most})",
           targets=2)  # fmt: skip


def mapped(s: Scope) -> None:
    d = s.drawing
    x = s.any(least=1)
    dim = d.dim(x)
    if not s.value(x).sizes[dim]:
        raise Skip
    f = s.function([(d.name("p"), isel(s.value(x), {dim: 0}), None)], result_of)
    s.emit(f"gc.map({f}, {x}, {dim!r})")


def branch(s: Scope) -> None:
    d = s.drawing
    like = s.any()
    operands = [s.any() for _ in range(d.choice((0, 1, 1)))]
    loose = d.chance(0.08)

    def finish(inner: Scope) -> str:
        if not loose:
            text = inner.fitted(result_of(inner), like)
            gone = [n for n in s.value(like).dims if n not in d.frozen and d.chance(0.1)]
            return f"gc.sum({text}, {gone!r})" if gone else text  # repeated along these again
        dim = inner.dims(like, 1)[0]
        return d.choice((like, f"gc.isel({like}, {{{dim!r}: slice(1, None)}})"))

    def one() -> str:
        params: list[Any] = [(d.name("p"), s.value(x), None) for x in operands]
        return s.function(params, finish)

    test = s.any()
    if s.value(test).dims and d.chance(0.7):
        s.leave(test)
        (test,) = s.emit(f"gc.sum({test})")
    given = "".join(f", {x}" for x in operands)
    if d.chance(0.7):
        text = f"gc.cond({test} > {d.choice((0.1, -0.2))}, {one()}, {one()}{given})"
    else:
        k = s.any(kind="i")
        text = f"gc.switch({k}, [{one()}, {one()}, {one()}]{given})"
    s.loosely(text) if loose else s.emit(text)


def checkpoint(s: Scope) -> None:
    d = s.drawing
    x = s.any()
    f = s.function([(d.name("p"), s.value(x), None)], result_of)
    s.emit(f"gc.checkpoint({f})({x})")


def custom(s: Scope) -> None:
    """A function with a pullback of its own: the true one, twice that, or a fixed point's."""
    d = s.drawing
    x = s.any()
    if d.chance(0.3):
        return fixed_point(s)
    value = s.value(x)
    was, d.closed = d.closed, True
    f = s.function([(d.name("p"), value, None)], result_of, visible=())
    d.closed = was
    apart(s, d.env[f](value), [x])
    form = d.choice(("pullback({f}, o, ct)", "[2.0 * s for s in pullback({f}, o, ct)]"))
    rule = d.name("f")
    s.define(rule, f"def {rule}(o, y, ct): return tuple({form.format(f=f)})")
    more = ""
    if d.chance(0.3):
        more = d.name("f")
        times = "2.0 * " if "2.0" in form else ""
        text = f"def {more}(o, y, ts): return {times}pushforward({f}, o, ts)"
        s.define(more, text)
        more = f", {more}"
    s.emit(f"gc.custom_pullback({f}, {rule}{more})({x})")


SOLVE = """def {f}(a):
    away = lambda z: gc.greater(gc.absolute(a * z + 1.0 - z), 1e-13)
    return gc.while_loop(away, lambda z: a * z + 1.0, a)"""
RULE = """def {g}(o, z, ct):
    (a,) = o
    away = lambda v: gc.greater(gc.absolute(ct + a * v - v), 1e-13)
    v = gc.while_loop(away, lambda v: ct + a * v, ct)
    return (v * z,)"""


def fixed_point(s: Scope) -> None:
    d = s.drawing
    (x,) = s.emit(f"0.3 * gc.tanh({s.any()})")
    f, g = d.name("f"), d.name("f")
    s.define(f, SOLVE.format(f=f))
    s.define(g, RULE.format(g=g))
    s.emit(f"gc.custom_pullback({f}, {g})({x})")


# ---- derivatives


def independent(s: Scope, xs: Sequence[str]) -> list[str]:
    """Names that do not depend on all that one of `xs` depends on."""
    leaves = s.drawing.leaves
    return [
        n for n in dict.fromkeys([*s.visible, *s.own])
        if not any(leaves[n] >= leaves[x] for x in xs)
    ]  # fmt: skip


def sources(s: Scope, most: int, among: Sequence[str] | None = None) -> list[str]:
    """What a derivative is taken by: values that do not depend on each other."""
    d = s.drawing
    found: list[str] = []
    for _ in range(d.choice(range(1, most + 1))):
        x = s.any() if among is None else d.choice(among)
        if (
            d.leaves[x]
            and x not in found
            and not any(d.leaves[x] >= d.leaves[y] or d.leaves[y] >= d.leaves[x] for y in found)
        ):
            found.append(x)
    if not found:
        raise Skip
    return found


def function_of(
    s: Scope, xs: Sequence[str], finish: Any, likely: Sequence[Callable[[Scope], None]] = ()
) -> str:
    """A function of some values that uses none that depend on them otherwise."""
    d = s.drawing
    params = [(d.name("p"), s.value(x), d.leaves[x]) for x in xs]
    likely = likely or FOLLOWED

    def end(inner: Scope) -> str:
        if inner.depth < 2 and d.chance(0.5):
            any(attempt(inner, d.choice(likely)) for _ in range(3))
        return finish(inner)

    return s.function(params, end, visible=independent(s, xs), steps=(1, 1, 2))


FOLLOWED: tuple[Callable[[Scope], None], ...] = (
    while_loop, while_loop, while_loop, fori_loop, scan, branch, checkpoint, matrices,
)  # fmt: skip
"""What derivatives often go through: bodies of their own, and matrices that may be singular."""


def number(inner: Scope) -> str:
    x = result_of(inner)
    inner.leave(x)
    return f"gc.sum({x})"


def left(inner: Scope) -> str:
    x = result_of(inner)
    inner.leave(x)
    return x


def fresh(s: Scope, sizes: dict[str, int]) -> str:
    """A value of these dims: a new input, or one made of what there is."""
    d = s.drawing
    same = [x for x in s.values() if s.value(x).sizes == sizes]
    own = [x for x in same if x.startswith("p") and x in s.own]
    if own and d.chance(0.5):
        return d.choice(own)
    if same and (d.closed or d.chance(0.5)):
        return d.choice(same)
    if d.closed or d.chance(0.3):
        (v,) = s.emit(d.constant(sizes))
        return v
    x = d.input(sizes)
    s.visible.append(x)
    return x


def measured(s: Scope) -> None:
    """A derivative beside a mean, which reads a size: maybe one called as what counts steps is."""
    d, y = s.drawing, s.own[-1]
    if d.chance(0.7):
        attempt(s, lambda s: s.emit(f"{y} * gc.mean({s.with_dim('trips')}, 'trips')"))


def grad(s: Scope) -> None:
    xs = sources(s, 2)
    f = function_of(s, xs, number)
    s.emit_list(f"grad({f}, {', '.join(xs)})", len(xs))
    measured(s)


def over_steps(inner: Scope) -> str:
    """A result that has a dim `step`, from a value beside it if need be."""
    y = result_of(inner)
    over = [x for x in inner.values() if "step" in inner.value(x).dims]
    return y if y in over or not over else f"{y} * {inner.drawing.choice(over)}"


def per(s: Scope) -> None:
    d = s.drawing
    xs = sources(s, 2)
    names = d.rng.sample(d.pool, d.choice((1, 1, 2)))
    likely, finish = FOLLOWED, result_of
    if "step" in d.pool and d.chance(0.7):  # which loops that count call a dim of their own
        names, likely, finish = ["step"], (fori_loop,), over_steps
        xs = sources(s, 2, [x for x in s.values() if "step" not in s.value(x).dims] or None)
    was, d.frozen = d.frozen, d.frozen | set(names)
    f = function_of(s, xs, finish, likely)
    d.frozen = was
    apart(s, d.env[f](*[s.value(x) for x in xs]), xs)
    s.emit_list(f"per({f}, {names!r}, {', '.join(xs)})", len(xs))


def apart(s: Scope, y: Value, xs: Sequence[str]) -> None:
    """Not drawn where a cotangent would be summed along a dim that must be left alone."""
    if any(n in y.dims and any(n not in s.value(x).dims for x in xs) for n in s.drawing.frozen):
        raise Skip


def pullback(s: Scope) -> None:
    outside = [x for x in s.values() if x not in s.own]
    xs = sources(s, 2, outside if outside and s.drawing.chance(0.5) else None)
    own = [x for x in s.values() if x in s.own and x.startswith("p") and x not in xs]
    like = s.drawing.choice(own) if own and s.drawing.chance(0.7) else None
    if like is not None and s.drawing.leaves[like] & frozenset(
        leaf for x in xs for leaf in s.drawing.leaves[x]
    ):
        like = None

    def finish(inner: Scope) -> str:
        x = result_of(inner)
        return x if like is None else inner.fitted(x, like)

    f = function_of(s, xs, finish)
    y = s.drawing.env[f](*[s.value(x) for x in xs])
    apart(s, y, xs)
    ct = fresh(s, y.sizes) if like is None else like
    s.emit_list(f"pullback({f}, [{', '.join(xs)}], {ct})", len(xs))
    measured(s)


def pushforward(s: Scope) -> None:
    xs = sources(s, 2)
    f = function_of(s, xs, result_of)
    ts = [fresh(s, s.value(x).sizes) for x in xs]
    s.emit(f"pushforward({f}, [{', '.join(xs)}], [{', '.join(ts)}])")


def jacobian(s: Scope) -> None:
    (x,) = sources(s, 1)
    s.leave(x)
    f = function_of(s, [x], left)
    s.emit(f"jacobian({f}, {x})")


def hessian(s: Scope) -> None:
    (x,) = sources(s, 1)
    s.leave(x)
    f = function_of(s, [x], number)
    s.emit(f"hessian({f}, {x})")


def hvp(s: Scope) -> None:
    (x,) = sources(s, 1)
    f = function_of(s, [x], number)
    v = fresh(s, s.value(x).sizes)
    s.emit(f"hvp({f}, {x}, {v})")


def vectorize(s: Scope) -> None:
    """A function of an input that is replaced by one with more dims, or with another size."""
    d = s.drawing
    olds = sources(s, 2)

    def finish(inner: Scope) -> str:
        if d.chance(0.5) and inner.depth < 2:  # a derivative, of which one operand is replaced
            attempt(inner, d.choice((pullback, pullback, pullback, pushforward, grad, hvp)))
        return result_of(inner)

    has = {n for x in olds for n in s.value(x).dims} | d.frozen
    new = {n: d.sizes[n] for n in d.rng.sample(d.pool, d.choice((1, 1, 2))) if n not in has}
    was, d.met = (d.met, d.replaced), d.met | set(new)
    d.replaced = d.replaced.union(*[d.leaves[x] for x in olds])
    f = function_of(s, olds, finish)
    d.met, d.replaced = was
    wides = []
    for old in olds:
        sizes = dict(s.value(old).sizes)
        more = {n: k for n, k in new.items() if not wides or d.chance(0.6)}
        if not more:
            raise Skip
        if sizes and d.chance(0.4):
            sizes[d.choice(list(sizes))] = d.choice((1, 2, 3, 4))
        both = list({**more, **sizes}.items())
        if d.chance(0.3):
            d.rng.shuffle(both)
        wides.append(fresh(s, dict(both)))
    (y,) = s.emit(f"vectorize({f}, [{', '.join(olds)}], [{', '.join(wides)}])")
    d.leaves[y] = d.leaves[f].union(*[d.leaves[x] for x in wides])  # it may be one of these itself


LOOPS: tuple[tuple[int, Callable[[Scope], None]], ...] = (
    (5, scan), (5, fori_loop), (6, while_loop), (2, mapped), (5, branch), (4, checkpoint),
    (6, custom),
)  # fmt: skip
HIGHER = (
    *LOOPS, (6, grad), (6, per), (5, pullback), (5, pushforward), (7, jacobian), (6, hessian),
    (4, hvp), (12, vectorize),
)  # fmt: skip
