"""Dims split, put in order and merged, written as a pattern of names."""

from __future__ import annotations

import re
from typing import NamedTuple

from graphcore.frontend.core.arguments import SizeLike, require_dims
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.ir import Node
from graphcore.ir.help_text import parameters
from graphcore.ops.named import close_match

from .dims import stack, transpose, unstack

__all__ = ["rearrange"]

ITEM = re.compile(r"\(([^()]*)\)(?:=([^\s()=]+))?|([^\s()=]+)")
DOTS = "..."


class Item(NamedTuple):
    """A dim of one side of a pattern, and the parts that it is split into or merged from.

    A dim as it is has itself as its one part. `dim` is "" for a group that has no name yet.
    """

    dim: str
    parts: tuple[str, ...]

    @property
    def is_group(self) -> bool:
        return self.parts != (self.dim,)


@parameters(
    pattern="The dims of `x`, `->`, and those of the result. Both sides list the same dims and "
    "parts.",
    sizes="Sizes of parts. One part of each dim may be left out: its size follows.",
)
def rearrange(pattern: str, x: Operand, /, **sizes: SizeLike) -> Tensor:
    """`x` with dims split, put in order and merged, written as in einops, with names of dims.

    `(h dh)=y` on the left splits the dim `y` in row-major order, on the right it merges dims into
    `y`. Groups without a name on the left are the dims of `x` that the pattern does not name, in
    their order. A group without a name on the right gets the names of its parts, as `h_dh`. Dims
    that are not listed at all are batch: they come first in the result, or where `...` stands in
    it.

    GraphError if the pattern is not valid, or if a name does not occur once on each side. If the
    sizes of parts do not multiply to that of the dim.

    >>> x = gc.tensor("x", {"batch": None, "y": 6, "x": 4, "channel": 3})
    >>> gc.rearrange("(h dh)=y (w dw)=x channel -> h w (dh dw channel)=patch", x, dh=2, dw=2)
    <Tensor: f64[batch, h=3, w=2, patch=12]>
    >>> gc.rearrange("batch (h dh) (w dw) channel -> batch h w (dh dw channel)", x, dh=2, dw=2)
    <Tensor: f64[batch, h=3, w=2, dh_dw_channel=12]>
    """
    node = single(x)
    left, right = sides(pattern, node)
    left = named_groups(pattern, left, node)
    right = [item if item.dim else Item("_".join(item.parts), item.parts) for item in right]
    batch = [dim for dim in node.type.dims if all(dim != item.dim for item in left)]
    for listed in (left, right):
        require_once(pattern, listed, batch, node)
    parts = [part for item in left for part in item.parts if part != DOTS]
    require_same(pattern, parts, [part for item in right for part in item.parts], node)
    grouped = {part for item in left if item.is_group for part in item.parts}
    for name in [name for name in sizes if name not in grouped]:
        cure = close_match(name, tuple(parts))
        raise refusal(f"{pattern!r} splits no dim into {name!r}", node, cure=cure)

    split = {item.dim: {part: sizes.get(part) for part in item.parts} for item in left}
    split = {item.dim: split[item.dim] for item in left if item.is_group}
    apart = unstack(wrap(node), split) if split else wrap(node)
    merged = {item.dim: item.parts for item in right if item.is_group}
    together = stack(apart, merged) if merged else apart
    listed_dims = [item.dim for item in right if item.dim != DOTS]
    at = next((i for i, item in enumerate(right) if item.dim == DOTS), 0)
    return transpose(together, *listed_dims[:at], *batch, *listed_dims[at:])


def sides(pattern: str, node: Node) -> tuple[list[Item], list[Item]]:
    """The items of both sides of a pattern."""
    cure = "write gc.rearrange('(h dh)=y w -> h (dh w)=z', x, dh=2)"
    if not isinstance(pattern, str) or pattern.count("->") != 1:
        raise refusal(f"{pattern!r} is not text with one arrow", node, cure=cure)
    found = []
    for side in pattern.split("->"):
        if rest := ITEM.sub("", side).strip():
            raise refusal(f"{pattern!r}: {rest!r} is not understood", node, cure=cure)
        items = [
            Item(match[2] or "", tuple(match[1].split())) if match[3] is None
            else Item(match[3], (match[3],))
            for match in ITEM.finditer(side)
        ]  # fmt: skip
        if any(not item.parts for item in items):
            cure = "leave it out; x.expand_dims('new') adds a dim of size 1"
            raise refusal(f"{pattern!r} has an empty group", node, cure=cure)
        found.append(items)
    return found[0], found[1]


def named_groups(pattern: str, left: list[Item], node: Node) -> list[Item]:
    """The left side with names for its groups: those of the dims that are not named otherwise."""
    named = dict.fromkeys(item.dim for item in left if item.dim)
    require_dims(node, tuple(dim for dim in named if dim != DOTS))
    free = [dim for dim in node.type.dims if dim not in named]
    groups = [item for item in left if not item.dim]
    if groups and len(groups) != len(free):
        reason = (
            f"{pattern!r}: groups without a name ({len(groups)}) are not as many as the dims {free}"
        )
        raise refusal(reason, node, cure="name the dim that a group splits: '(h dh)=y'")
    left_over = iter(free)
    return [item if item.dim else Item(next(left_over), item.parts) for item in left]


def require_once(pattern: str, side: list[Item], batch: list[str], node: Node) -> None:
    """No name stands for two dims."""
    names = [*batch]
    for item in side:
        names += dict.fromkeys((item.dim, *item.parts))
    for name in names:
        if names.count(name) > 1:
            cure = f"give one of them another name: x.rename({name}='other')"
            raise refusal(f"{pattern!r} has two dims named {name!r}", node, cure=cure)


def require_same(pattern: str, left: list[str], right: list[str], node: Node) -> None:
    """Both sides list the same dims and parts."""
    for name in right:
        if name not in left and name != DOTS:
            cure = f"list {name!r} on the left; x.expand_dims({name!r}) adds a dim"
            raise refusal(f"{pattern!r} lists {name!r} on the right only", node,
                          cure=cure)  # fmt: skip
    for name in left:
        if name not in right:
            cure = f"list {name!r} on the right; x.sum({name!r}) removes a dim"
            raise refusal(f"{pattern!r} lists {name!r} on the left only", node,
                          cure=cure)  # fmt: skip
