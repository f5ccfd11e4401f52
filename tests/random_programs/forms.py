"""Statements said by a text with places to fill in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from .drawing import Scope


def of(s: Scope, x: str, gone: Iterable[str | None] = ()) -> list[str]:
    """The dims of a value, some left out."""
    return [dim for dim in s.value(x).dims if dim not in gone]


def aligned(s: Scope, x: str) -> str:
    """A value that aligns with another."""
    sizes = s.value(x).sizes
    return s.drawing.choice([
        y for y in s.values()
        if all(sizes.get(d, n) == n for d, n in s.value(y).sizes.items())
    ])  # fmt: skip


def some(s: Scope, x: str) -> list[str]:
    free = of(s, x, s.drawing.frozen)
    return s.drawing.rng.sample(free, s.drawing.choice(range(1, len(free) + 1)))


def size(s: Scope) -> str:
    """A number, or the size of a value."""
    sources = [(y, dim) for y in s.values(least=1) for dim in s.value(y).dims]
    if not sources or s.drawing.chance(0.4):
        return str(s.drawing.choice((1, 2, 3)))
    y, dim = s.drawing.choice(sources)
    return f"{y}.sizes[{dim!r}]"


def shuffled(s: Scope, x: str) -> tuple[str, ...]:
    return tuple(s.drawing.rng.sample(s.value(x).dims, len(s.value(x).dims)))


RANGES = ("0", "-1", "slice(1, None)", "slice(None, None, -1)", "slice(None, None, 2)")
PLACES: dict[str, Callable[[Scope, Any], Any]] = {
    "y": lambda s, f: aligned(s, f["x"]),
    "k": lambda s, f: s.any(kind="i"),
    "ks": lambda s, f: s.any(kind="i", least=1),
    "a": lambda s, f: s.drawing.dim(f["x"]),
    "b": lambda s, f: s.drawing.choice(of(s, f["x"], {f["a"], *s.drawing.frozen})),
    "dims": lambda s, f: some(s, f["x"]),
    "order": lambda s, f: shuffled(s, f["x"]),
    "fresh": lambda s, f: s.drawing.new_dim(s.value(f["x"]).dims),
    "new": lambda s, f: s.drawing.new_dim(of(s, f["x"], (f.get("a"), f.get("b")))),
    "more": lambda s, f: s.drawing.new_dim([*of(s, f["x"], (f["a"],)), f["new"]]),
    "beyond": lambda s, f: s.drawing.new_dim(s.value(f["k"]).dims),
    "any": lambda s, f: s.drawing.new_dim(()),
    "size": lambda s, f: size(s),
    "n": lambda s, f: s.drawing.choice((1, 2)),
    "p": lambda s, f: s.drawing.choice((1, 2)),
    "m": lambda s, f: s.drawing.choice((2, 3)),
    "at": lambda s, f: s.drawing.choice((*RANGES, "slice(-3, 2)", "slice(3, None, -2)")),
    "part": lambda s, f: s.drawing.choice(RANGES),
    "change": lambda s, f: s.drawing.choice(("set", "add", "multiply", "max")),
}
"""What may stand in a text beside `x`, a value. `y` aligns with it; `k` and `ks` are integers, the
latter with dims; `a` and `b` are dims of `x`, `dims` some and `order` all of them. It has no dim
`fresh`, and none `new` or `more` but for `a` and `b`; `k` has no dim `beyond`; `any` is any dim."""


class Filled(dict[str, Any]):
    """What stands at the places of a text, drawn where it is first asked for."""

    def __init__(self, s: Scope, text: str) -> None:
        least = 2 if "{b!r}" in text else 1 if re.search(r"\{(a|dims)!r\}", text) else 0
        super().__init__(x=s.any(least))
        self.scope = s

    def __missing__(self, place: str) -> Any:
        self[place] = PLACES[place](self.scope, self)
        return self[place]


def form(*texts: str, loosely: bool = False) -> Callable[[Scope], None]:
    """A statement of one of these texts; `loosely` one that may have to be refused."""

    def statement(s: Scope) -> None:
        text = s.drawing.choice(texts)
        filled = text.format_map(Filled(s, text))
        s.loosely(filled) if loosely else s.emit(filled)

    return statement
