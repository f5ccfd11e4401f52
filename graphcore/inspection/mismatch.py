"""Results that rules and passes of one's own change: the program is computed without them as well.

Another result counts if rounding does not explain it. How far that goes is measured: without them
the program is computed again a few times, each result of an op moved at random by as much as it is
rounded (D. S. Parker, Monte Carlo arithmetic, 1997).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphcore.ir import Array, Graph, Node, Rule
from graphcore.ir.errors import GraphError
from graphcore.ir.help_text import attributes, parameters
from graphcore.ir.provenance import Origin, described_by

from .blame import Mask, first
from .check import labels_in, place_of, plain, quoted_code, show_place, show_value
from .interpreter import Interpreter, Sizes
from .rule_text import rule_text


class Part(NamedTuple):
    """A rule or pass of one's own, and the line of the first node whose place its result took."""

    rule: Rule
    line: Origin


@attributes(
    name="How the result is written.",
    place="The first such element: its position for each dim.",
    value="Its value.",
    meant="Its value without them.",
    count="The number of such elements.",
    parts="The fewest of them that change it, each as `rule` and the user's `line` where it "
    "applied.",
)
@dataclass(frozen=True)
class Mismatch:
    """A result that is another one without rules and passes of one's own."""

    name: str
    place: Mapping[str, int]
    value: complex
    meant: complex
    count: int
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        where = f" at {show_place(self.place)}" if self.place else ""
        more = f", and at {self.count - 1:,} more," if self.count > 1 else ""
        value, meant = show_value(self.value), show_value(self.meant)
        lines = [f"{self.name} is {value}{where}{more} but {meant} without rules of your own"]
        for rule, line in self.parts:
            lines.append(f"  rule: {rule_text(rule)}")
            lines.append(f"  applied at {line._replace(via=None)}{quoted_code(line)}")
        cause = "what the rule returns" if len(self.parts) == 1 else "what one of them returns"
        lines.append(f"  cause: {cause} has not the value that it replaces")
        lines.append("  cure: mend it, or let it return None for such operands")
        return "\n".join(lines)

    __repr__ = __str__


RUNS = 3
"""How often rounding is measured."""


class Moved(Interpreter):
    """Computes with results of ops that are moved at random by as much as they are rounded."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)

    def compute(self, node: Node, arrays: Sequence[Array], sizes: Sizes) -> list[Array]:
        """The results of a plain node, moved if it has operands."""
        found = super().compute(node, arrays, sizes)
        return [*map(self.moved, found)] if node.inputs else found

    def moved(self, x: Array) -> Array:
        """x (1 + eps u), with u from -1 to 1, of floats."""
        if x.dtype.kind not in "fc":
            return x
        turn = 1 + np.finfo(x.dtype).eps * self.random.uniform(-1, 1, x.shape)
        return np.asarray(x * turn, x.dtype)


@parameters(
    graph="The user's graph.",
    arrays="The checked arguments of a call.",
    sizes="The unknown sizes.",
    names="The names of the outputs.",
    parts="The rules and passes of one's own that changed the program.",
    lower="The program of plain ops with some of them, which are given by their numbers.",
)
def find_mismatch(
    graph: Graph,
    arrays: Sequence[Array],
    sizes: Mapping[str, int],
    names: Sequence[str],
    parts: Sequence[Part],
    lower: Callable[[Sequence[int]], Graph],
) -> list[Mismatch]:
    """The first result that parts of one's own change, if there is one."""

    def results(interpreter: Interpreter, chosen: Sequence[int]) -> list[Array]:
        return interpreter.frame(lower(chosen), arrays, sizes).outputs()

    def wrong(chosen: Sequence[int]) -> tuple[int, Array, Mask] | None:
        found = results(Interpreter(), chosen)
        masks = [*map(differs, found, meant, zip(*near, strict=True))]
        return next(((i, found[i], m) for i, m in enumerate(masks) if m.any()), None)

    with described_by(graph.trace), np.errstate(all="ignore"):
        meant = results(Interpreter(), ())
        try:
            near = [results(Moved(seed), ()) for seed in range(RUNS)]
        except (GraphError, IndexError):  # as of a position that rounding decides
            return []
        kept: Sequence[int] = range(len(parts))
        if (found := wrong(kept)) is None:
            return []
        for part in kept:
            less = [other for other in kept if other != part]
            if (still := wrong(less)) is not None:
                kept, found = less, still
        i, values, mask = found
        at = first(mask)
        place = place_of(labels_in(graph, graph.outputs[i], 0), at)
        value, other = (plain(complex(x[at])) for x in (values, meant[i]))
        blamed = tuple(parts[part] for part in kept)
        return [Mismatch(names[i], place, value, other, int(mask.sum()), blamed)]


def differs(found: Array, meant: Array, near: Sequence[Array]) -> Mask:
    """Where a result is another one than what is meant, if that is finite, by more than rounding.

    That is more than a quarter of the digits worse than what is measured, as another form may lose
    some; of integers any other number. Nowhere if rounding decides the shape.
    """
    if any(x.shape != found.shape for x in (meant, *near)):
        return np.zeros(found.shape, bool)
    kind = np.complex128 if meant.dtype.kind == "c" else np.float64
    x, y, *others = (each.astype(kind) for each in (found, meant, *near))
    eps = float(np.finfo(meant.dtype).eps) if meant.dtype.kind in "fc" else 1.0
    spread = np.nan_to_num(np.max([np.abs(other - y) for other in others], 0), nan=np.inf)
    rounded = eps * np.abs(y) if eps < 1 else 0.0
    mask: Mask = np.isfinite(y) & ~(np.abs(x - y) <= eps**-0.25 * (spread + rounded))
    return mask
