"""Derivatives of programs that are cut: one of each piece, joined by the chain rule.

What blocks add to the cotangent of a value that all of them share is one more sum over blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphcore.analysis.paths import of_floats
from graphcore.ir import Node, full_like, reached
from graphcore.ops import autodiff, elementwise, leaf

from .axes import axes_in, refused
from .cuts import Cuts


def derivative(cuts: Cuts, node: Node, inputs: Sequence[Node]) -> Node:
    """The values of a lazy derivative on new operands, as one node."""
    ys, wrt, moved = autodiff.group(node, inputs)
    if node.op is autodiff.pushforward:
        return leaf.tuple_(*push(cuts, node, ys, wrt, moved))
    pull = Pull(cuts, node, ys, wrt)
    return leaf.tuple_(*pull.cotangents(moved))


def depending(roots: Sequence[Node], sources: Iterable[Node]) -> list[Node]:
    """The sources from which a derivative flows to some values, cuts not looked through."""
    found = reached(
        roots,
        lambda x: (
            () if x.op is autodiff.stop_gradient else [z for z in x.inputs if of_floats(z.type)]
        ),
    )
    return [x for x in sources if x in found]


def require_sum(cuts: Cuts, cut: Node, asked: Node) -> None:
    """Refuse the derivative of a reduction that is no sum."""
    part, how, _ = cuts.cuts[cut]
    if how != "add":
        what = f"{asked.said} at {asked.origin} goes through {part.said} at {part.origin}"
        cure = "blocks have derivatives of sums and means; or give the dim one chunk"
        raise refused(f"{what}, which is over blocks", cure)


class Pull:
    """A pullback of `ys` with respect to `wrt`, in pieces."""

    def __init__(self, cuts: Cuts, node: Node, ys: Sequence[Node], wrt: Sequence[Node]) -> None:
        self.cuts, self.node, self.ys, self.wrt = cuts, node, ys, wrt
        self.moving: list[Node] = []
        """The cuts between, in the order in which they were made."""
        for cut in cuts.below(*ys):
            if depending([cuts.cuts[cut].part], [*wrt, *self.moving]):
                require_sum(cuts, cut, node)
                self.moving.append(cut)
        self.shares: dict[Node, list[Node]] = {x: [] for x in (*wrt, *self.moving)}

    def cotangents(self, cts: Sequence[Node]) -> list[Node]:
        """The cotangent of each `wrt`."""
        grids = [frozenset(axes_in(self.cuts.find(y))) for y in self.ys]
        self.piece(list(zip(self.ys, cts, grids, strict=True)))
        depths = self.depths()
        for depth in sorted(set(depths.values())):
            some = [cut for cut in self.moving if depths.get(cut) == depth]
            parts = [self.cuts.cuts[cut] for cut in some]
            rows = zip(parts, some, strict=True)
            self.piece([(part.part, self.whole(cut), part.grid) for part, cut in rows])
        return [self.whole(x) for x in self.wrt]

    def depths(self) -> dict[Node, int]:
        """How many cuts are between each cut and the results, at most."""
        found = dict.fromkeys(depending(self.ys, self.moving), 1)
        for cut in reversed(self.moving):
            if cut in found:
                for x in depending([self.cuts.cuts[cut].part], self.moving):
                    found[x] = max(found.get(x, 0), found[cut] + 1)
        return found

    def piece(self, rows: Sequence[tuple[Node, Node, frozenset[str]]]) -> None:
        """Add what flows from some values, each with its cotangent and its axes of blocks."""
        for grid in dict.fromkeys(grid for _, _, grid in rows):
            some = [(y, ct) for y, ct, own in rows if own == grid]
            roots, cts = [y for y, _ in some], [ct for _, ct in some]
            sources = depending(roots, self.shares)
            if not sources:
                continue
            made = autodiff.pull(roots, sources, cts)
            self.cuts.known[made[0].inputs[0]] = [self.cuts.find(x) for x in sources]
            for x, share in zip(sources, made, strict=True):
                own = self.cuts.find(x)
                if grid - axes_in(own):
                    share = self.cuts.cut(share, "add", grid | axes_in(own), own)
                self.shares[x].append(share)

    def whole(self, x: Node) -> Node:
        """The sum of all that flows to a value."""
        first, *more = self.shares[x] or [full_like(x, 0)]
        for share in more:
            first = elementwise.add(first, share)
        self.cuts.find(first)
        return first


def push(
    cuts: Cuts, node: Node, ys: Sequence[Node], wrt: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    """The tangent of each of `ys`: those of cuts are sums over the tangents of parts."""
    known = dict(zip(wrt, tangents, strict=True))
    for cut in cuts.below(*ys):
        part, _, grid = cuts.cuts[cut]
        if sources := depending([part], known):
            require_sum(cuts, cut, node)
            (tangent,) = autodiff.push([part], sources, [known[x] for x in sources])
            own = cuts.find(cut)
            cuts.known[tangent.inputs[0]] = [own]
            known[cut] = cuts.cut(tangent, "add", grid, own)
    sources = depending(ys, known)
    if not sources:
        return [full_like(y, 0) for y in ys]
    made = autodiff.push(ys, sources, [known[x] for x in sources])
    cuts.known[made[0].inputs[0]] = [cuts.find(y) for y in ys]
    return made
