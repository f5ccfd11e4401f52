"""Loops and branches as Python's own, and derivatives by dual numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .arranging import concat, expand_dims, isel, rename, total, transpose
from .values import (
    Array,
    Disconnected,
    Dual,
    Hidden,
    Refused,
    Unclear,
    Value,
    add,
    highest,
    lifted,
    linear,
    multiply,
    split,
    where,
    zero,
)  # fmt: skip

Tree = Any


def flat(tree: Tree) -> list[Value]:
    if isinstance(tree, (list, tuple)):
        return [x for part in tree for x in flat(part)]
    return [] if tree is None else [lifted(tree)]


def like(tree: Tree, leaves: Sequence[Value]) -> Tree:
    rest = iter(leaves)

    def made(tree: Tree) -> Tree:
        if isinstance(tree, (list, tuple)):
            return type(tree)(made(part) for part in tree)
        return None if tree is None else next(rest)

    return made(tree)


def arranged(new: Value, old: Value, what: str = "carried") -> Value:
    """`new` with its dims as those of `old`, which must be the same."""
    if new.sizes != old.sizes:
        raise Refused(f"{what}: {new.sizes} for {old.sizes}")
    return ordered(new, old.dims)


def settled(init: Tree, step: Any, runs: bool) -> list[Value]:
    """Start values repeated along the dims that a step adds to them, whether or not it is taken."""
    if not runs:
        return tolerated(lambda: settled(init, step, True))
    state = flat(init)
    while True:
        new = flat(step(like(init, state)))
        added = [
            [d for d in x.dims if d not in old.dims] for x, old in zip(new, state, strict=True)
        ]
        if not any(added):
            return state
        if any(len(x.dims) > 16 for x in new):
            raise Refused("the carry gets dims at each step")
        state = [repeated(old, {d: x.sizes[d] for d in more})
                 for x, old, more in zip(new, state, added, strict=True)]  # fmt: skip


def ordered(x: Value, dims: Sequence[Any]) -> Value:
    return x if x.dims == tuple(dims) else transpose(x, ..., *dims)


def stacked(parts: Sequence[Value], dim: Any) -> Value:
    """Values of the same dims along a new first dim."""
    if any(p.sizes != parts[0].sizes for p in parts):
        raise Refused("results differ")
    if dim in parts[0].dims:
        raise Refused(f"two dims would be named {dim!r}")
    return concat([ordered(p, parts[0].dims) for p in parts], dim)


def empty(x: Value, dim: Any) -> Value:
    return Array((dim, *x.dims), np.zeros((0, *x.shape)))


# ---- loops and branches

NOTES: list[str] = []
"""Why a program may be refused although it has a meaning, for the values it is given."""

APART = "branches differ in sizes"
REPLACED = "vectorize is given another size in place of an old one"


def tolerated(run: Any) -> Any:
    """What need not be computed, where it has a meaning; else a program may be refused or not."""
    try:
        return run()
    except Refused:
        raise Unclear from None


def scan(
    body: Any, init: Tree, xs: Tree = None, dim: str = "time", length: Any = None,
    reverse: bool = False, *, checkpoint: Any = None,
) -> Any:  # fmt: skip
    walked = flat(xs)
    if any(dim not in x.dims for x in walked):
        raise Refused("xs has no dim")
    lengths = {x.sizes[dim] for x in walked} | ({length} if length is not None else set())
    if len(lengths) != 1:
        raise Refused("lengths differ")
    (n,) = lengths
    some = [isel(x, {dim: 0}) if n else total(x, [dim]) for x in walked]
    started = settled(init, lambda carry: body(carry, like(xs, some))[0], n > 0)
    carry, results, made = like(init, started), [], None
    for t in range(n)[:: -1 if reverse else 1] if n else ():
        new, made = body(carry, like(xs, [isel(x, {dim: t}) for x in walked]))
        pairs = zip(flat(new), flat(carry), strict=True)
        carry = like(init, [arranged(x, old) for x, old in pairs])
        results.append(flat(made))
    if not n:
        new, made = body(carry, like(xs, [total(x, [dim]) for x in walked]))
        for x, old in zip(flat(new), flat(carry), strict=True):
            arranged(x, old)
        return carry, like(made, [empty(y, dim) for y in flat(made)])
    columns = zip(*results[:: -1 if reverse else 1], strict=True)
    return carry, like(made, [stacked(column, dim) for column in columns])


def map(function: Any, xs: Tree, dim: str, *, checkpoint: Any = None) -> Tree:
    return scan(lambda _, x: ((), function(x)), (), xs, dim)[1]


def while_loop(test: Any, body: Any, init: Tree, max_steps: Any = None) -> Tree:
    steps = 0
    most = 2000 if max_steps is None else int(lifted(max_steps).base.data)
    state = flat(init)
    going = test(init).base
    missing = {d: s for d, s in going.sizes.items() if not all(d in x.dims for x in state)}
    state = [repeated(x, missing) for x in state]

    def chosen(tree: Tree) -> Tree:
        new, old = flat(body(tree)), flat(tree)
        return [where(going, x, y) if going.names else x for x, y in zip(new, old, strict=True)]

    state = settled(like(init, state), chosen, bool(np.any(going.data)) and most > 0)

    def step() -> list[Value]:
        return [arranged(x, old) for x, old in zip(chosen(like(init, state)), state, strict=True)]

    while np.any(going.data) and steps < most:
        state = step()
        going = test(like(init, state)).base
        steps += 1
    if steps == 2000:
        raise Unclear
    if not steps:
        tolerated(step)
    return like(init, state)


def repeated(x: Value, sizes: Mapping[Any, int]) -> Value:
    """`x` along those of `sizes` that it lacks, which come last."""
    missing = {d: s for d, s in sizes.items() if d not in x.dims}
    return ordered(expand_dims(x, missing), (*x.dims, *missing)) if missing else x


def fori_loop(lower: Any, upper: Any, body: Any, init: Tree, *, checkpoint: Any = None) -> Tree:
    ends = [int(lifted(end).base.data) for end in (lower, upper)]
    carry = like(
        init, settled(init, lambda tree: body(Array((), ends[0]), tree), ends[0] < ends[1])
    )

    def step(i: int) -> Tree:
        pairs = zip(flat(body(Array((), i), carry)), flat(carry), strict=True)
        return like(init, [arranged(x, old) for x, old in pairs])

    if ends[0] >= ends[1]:
        tolerated(lambda: step(ends[0]))
    for i in range(*ends):
        carry = step(i)
    return carry


def cond(pred: Any, then: Any, otherwise: Any, *operands: Tree) -> Tree:
    test = pred.base
    if not test.names:
        return switch(Array((), 1 - int(test.data)), [then, otherwise], *operands)
    made, other = then(*operands), otherwise(*operands)
    pairs = zip(flat(made), flat(other), strict=True)
    return like(made, [where(test, x, y) for x, y in pairs])


def switch(index: Value, branches: Sequence[Any], *operands: Tree) -> Tree:
    at = index.base
    if at.data.size and not (at.data.min() >= 0 and at.data.max() < len(branches)):
        raise Unclear
    if at.names:
        made = [branch(*operands) for branch in branches]
        results = []
        for column in zip(*[flat(m) for m in made], strict=True):
            found = column[0]
            for i, y in enumerate(column[1:], 1):
                found = where(Array(at.names, at.data != i), found, y)
            results.append(found)
        return like(made[0], results)
    chosen = branches[int(at.data)](*operands)
    made = [flat(tolerated(lambda other=other: other(*operands))) for other in branches]
    results = []
    for x, column in zip(flat(chosen), zip(*made, strict=True), strict=True):
        sizes: dict[Any, int] = {}
        for y in column:
            sizes |= {d: n for d, n in y.sizes.items() if d not in sizes}
        if any(sizes[d] != n for y in column for d, n in y.sizes.items()):
            NOTES.append(APART)
        results.append(ordered(repeated(x, sizes), tuple(sizes)))
    return like(chosen, results)


def checkpoint(function: Any) -> Any:
    return function


def custom_pullback(function: Any, rule: Any, forward: Any = None) -> Any:
    """Its tangents are those of the transposed rule, asked for each place of the result.

    A pushforward of its own says the same, and is not asked.
    """

    def called(*xs: Value) -> Value:
        tag = highest(*xs)
        if not tag:
            return function(*xs)
        primals, tangents = zip(*[split(x, tag) for x in xs], strict=True)
        y = called(*primals)
        found: Value = zero(y)
        for at in np.ndindex(y.shape):
            unit = np.zeros(y.shape)
            unit[at] = 1
            ct = Array(y.dims, unit)
            for share, x, t in zip(rule(primals, y, ct), primals, tangents, strict=True):
                if share.sizes != x.sizes:
                    raise Refused("cotangents differ")
                if t is not None:
                    found = add(found, multiply(ct, total(multiply(share, t), x.dims)))
        return Dual(tag, y, found)

    return called


# ---- derivatives

serial = itertools.count(1)


def pushforward(f: Any, xs: Sequence[Value], tangents: Sequence[Value]) -> Value:
    tag = next(serial)
    moved = [Dual(tag, x, arranged(t, x, "tangent")) for x, t in zip(xs, tangents, strict=True)]
    y, tangent = split(lifted(f(*moved)), tag)
    return ordered(zero(y) if tangent is None else tangent, y.dims)


class Slopes:
    """All derivatives of one value: of each of `xs` along hidden dims, one for each of its dims."""

    def __init__(self, f: Any, xs: Sequence[Value]) -> None:
        tag, way = next(serial), Hidden()
        counts = [int(np.prod(x.shape)) for x in xs]
        ends = np.cumsum([0, *counts])
        if ends[-1] > 40:
            raise Unclear
        units = np.eye(int(ends[-1]))
        moved = [
            Dual(tag, x, Array((way, *x.dims), units[:, a:b].reshape((len(units), *x.shape))))
            for x, a, b in zip(xs, ends[:-1], ends[1:], strict=True)
        ]
        self.y, tangent = split(lifted(f(*moved)), tag)
        self.names = [{d: Hidden() for d in x.dims} for x in xs]
        self.connected = tangent is not None
        self.of: list[Value] = []
        for x, names, a, b in zip(xs, self.names, ends[:-1], ends[1:], strict=True):
            self.of.append(self.part(tangent, way, x, names, int(a), int(b)))

    def part(self, tangent: Any, way: Hidden, x: Value, names: Any, a: int, b: int) -> Value:
        if tangent is None:
            return Array((*self.y.dims, *names.values()), np.zeros((*self.y.shape, *x.shape)))

        def taken(t: Array) -> Array:
            if way not in t.names:  # nothing moves, so this is 0
                t = Array((way, *t.names), np.zeros((b, *t.data.shape)))
            data = np.moveaxis(t.data, t.names.index(way), -1)[..., a:b]
            rest = [n for n in t.names if n is not way]
            return Array([*rest, *names.values()], data.reshape((*data.shape[:-1], *x.shape)))

        return linear(taken, tangent)


def pullback(f: Any, xs: Sequence[Value], ct: Value) -> list[Value]:
    slopes = Slopes(f, xs)
    ct = arranged(lifted(ct), slopes.y, "cotangent")
    return [
        ordered(rename(total(multiply(ct, s), slopes.y.dims), back(names)), x.dims)
        for s, names, x in zip(slopes.of, slopes.names, xs, strict=True)
    ]


def back(names: Mapping[Any, Any]) -> dict[Any, Any]:
    return {hidden: dim for dim, hidden in names.items()}


def grad(f: Any, *xs: Value) -> list[Value]:
    y = lifted(f(*xs))
    if y.dims:
        raise Refused("the result has dims")
    return pullback(f, xs, Array((), 1.0))


def per(f: Any, dims: Sequence[str], *xs: Value) -> list[Value]:
    """The derivative of each instance: what the places of `dims` in the result do not share."""
    slopes = Slopes(f, xs)
    return [
        tolerated(lambda s=s, names=names, x=x: of_instances(s, slopes.y, names, x, dims))
        for s, names, x in zip(slopes.of, slopes.names, xs, strict=True)
    ]


def of_instances(s: Value, y: Value, names: Any, x: Value, dims: Sequence[str]) -> Value:
    """One of these; where instances mix, it may be refused or not."""
    for d in dims:
        if d in y.dims and d in x.dims:
            own = multiply(s, Array((d, names[d]), np.eye(x.sizes[d])))
            if not np.allclose(own.base.data, ordered(s, own.dims).base.data):
                raise Refused("instances mix")
            s = total(own, [d])
        elif d not in y.dims:
            raise Refused("the result has no such dim")
    s = total(s, [d for d in s.dims if d in y.dims and d not in dims])
    lacking = [d for d in dims if d not in x.dims]
    return ordered(rename(s, back(names)), (*lacking, *x.dims))


def jacobian(f: Any, x: Value) -> Value:
    slopes = Slopes(f, [x])
    if not slopes.connected:
        raise Disconnected
    (s,), (names,), y = slopes.of, slopes.names, slopes.y
    new: dict[str, str] = {}
    for dim in x.dims:
        name = dim
        while name in y.dims or name in new.values() or (name != dim and name in x.dims):
            name += "'"
        new[dim] = name
    return ordered(rename(s, {h: new[d] for d, h in names.items()}), (*y.dims, *new.values()))


def hessian(f: Any, x: Value) -> Value:
    slopes = Slopes(f, [x])
    if not slopes.connected:
        raise Disconnected
    return jacobian(lambda x: connected(f, x), x)


def hvp(f: Any, x: Value, v: Value) -> Value:
    return pushforward(lambda x: connected(f, x), [x], [v])


def connected(f: Any, x: Value) -> Value:
    """The gradient, refused where nothing depends on `x`."""
    if not Slopes(f, [x]).connected:
        raise Disconnected
    return grad(f, x)[0]


def vectorize(f: Any, olds: Sequence[Value], wides: Sequence[Value]) -> Value:
    sizes: dict[Any, int] = {}
    for old, wide in zip(olds, wides, strict=True):
        if not set(old.dims) <= set(wide.dims):
            raise Refused("a dim is missing")
        for d, s in wide.sizes.items():
            if d not in old.dims and sizes.setdefault(d, s) != s:
                raise Unclear
            if old.sizes.get(d, s) != s:
                NOTES.append(REPLACED)
    if any(d in old.dims for old in olds for d in sizes):
        raise Refused("a dim is not new")
    if 0 in sizes.values():
        raise Unclear

    def inner(at: dict[Any, int], rest: list[Any]) -> Value:
        if not rest:
            picked = [
                ordered(isel(w, {d: i for d, i in at.items() if d in w.dims}), old.dims)
                for old, w in zip(olds, wides, strict=True)
            ]
            return lifted(f(*picked))
        dim, *others = rest
        return stacked([inner({**at, dim: i}, others) for i in range(sizes[dim])], dim)

    return inner({}, list(sizes))
