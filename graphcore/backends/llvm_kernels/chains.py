"""Plans chains of products and loop nests: some rows at a time go through all of them.

The scores of an attention block, `softmax(q k) v`, are a matrix much larger than its operands and
its result, of which a row is needed only for the same row of all that follows. Some rows of it are
computed, normalised and multiplied while they are in the cache; all of it is never stored.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphcore.analysis.cost import bytes_of
from graphcore.ir import Node, Shape
from graphcore.ir.sizes import count
from graphcore.ops import tensor as t

from . import dense
from .arithmetic import SCALAR, kind_of
from .loop_axes import is_by_parts
from .nests import Nest, Plan, Step, reduces, walked
from .products import is_own_product, operand
from .rows import Chain, Rows, reads_own_row, runs_inside

ROWS = 128
"""The most rows at a time. Measured for attention with 1024 to 4096 tokens: 32 take 5 % longer, and
so do 512 where what is stored of them leaves the cache L2."""
LARGE_BYTES = 2**22
"""From how many bytes on values are worth a chain: smaller ones stay in a cache anyway."""


def in_chains(plan: Plan) -> Plan:
    """The same plan in which products and nests of the same rows are one step where that pays."""
    steps: list[Step] = []
    number: list[int] = []
    at = 0
    while at < len(plan.steps):
        chain = chain_from(plan, at)
        number += [len(steps)] * (len(chain.steps) if chain else 1)
        steps.append(chain or plan.steps[at])
        at = len(number)
    last = {x: number[at] if at < len(number) else len(steps) for x, at in plan.last.items()}
    return plan._replace(steps=steps, last=last)


def chain_from(plan: Plan, at: int) -> Chain | None:
    """The chain that begins with a step: of it, as long as possible, something large is its own."""
    if (axes := rows_of(plan.steps[at])) is None:
        return None
    chain, end = Chain(axes), at
    for step in plan.steps[at:]:
        if (taken := in_rows_of(step, chain)) is None:
            break
        chain.steps.append(taken)
        chain.made |= dict.fromkeys(made_by(taken))
    while chain.steps:
        end = at + len(chain.steps)
        makers = {x: n for n, step in enumerate(chain.steps, at) for x in made_by(step)}
        chain.own = frozenset([x for x, n in makers.items() if n < plan.last[x] < end])
        if any(plan.last[x] == end - 1 for x in chain.own):
            break
        del chain.steps[-1]
    chain.made = {x: None for step in chain.steps for x in made_by(step)}
    products = [step for step in chain.steps if isinstance(step, Node)]
    first = any(x in chain.own for x in made_by(chain.steps[0])) if chain.steps else False
    return chain if products and first and is_large(chain.own, len(axes)) else None


def is_large(values: Iterable[Node], k: int) -> bool:
    """Whether values with long rows at k axes take much memory, or may do so."""
    rows = [(x, count(x.type.shape[k:])) for x in values]
    long = [x for x, size in rows if not isinstance(size, int) or size >= ROWS]
    known = all(isinstance(size, int) for x in long for size in x.type.shape)
    return (bool(long) and not known) or sum([bytes_of(x.type) for x in long]) >= LARGE_BYTES


def rows_of(step: Step) -> Shape | None:
    """The axes of the rows that a step computes; None if it is not of rows."""
    if isinstance(step, Rows):
        return step.axes
    if isinstance(step, Nest):
        shape = step.roots[0].type.shape
        return (shape if reduces(step.roots[0]) else shape[:-1]) or None
    return step.type.shape[:-1] if isinstance(step, Node) and step.op is t.matmul else None


def made_by(step: Node | Rows) -> Iterable[Node]:
    """The values that a step of a chain computes."""
    return [step] if isinstance(step, Node) else step.made


def in_rows_of(step: Step, chain: Chain) -> Node | Rows | None:
    """A step as one of a chain, if what it reads of that is in its own rows."""
    k = len(chain.axes)
    if rows_of(step) != chain.axes:
        return None
    if isinstance(step, Nest):
        rows = Rows(chain.axes)
        fits = all(is_row(root, k) for root in step.roots) and rows.takes(step.roots)
        found: Node | Rows | None = rows if fits else None
    elif isinstance(step, Node):
        found = step if is_product_of_rows(step, chain) else None
    else:
        found = step if isinstance(step, Rows) else None
    return found if found and all(reads_own_row(x, k, chain.made) for x in made_by(found)) else None


def is_row(root: Node, k: int) -> bool:
    """Whether a root of a nest has a row of known size, or reduces one, at each place of k axes."""
    if is_by_parts(root) or walked(root) is not root:
        return False
    if root.op in SCALAR:
        return root.type.ndim == k + 1 and isinstance(root.type.shape[-1], int)
    return root.op in (t.sum_, t.max_, t.min_) and root.type.ndim == k and runs_inside(root)


def is_product_of_rows(node: Node, chain: Chain) -> bool:
    """Whether a product by our own routine reads rows of a chain as they lie."""
    if kind_of(node) not in dense.KINDS or is_own_product(node):
        return False
    x = operand(node.inputs[0])
    lies = x.base.type.shape == node.inputs[0].type.shape and not x.transposed
    return x.base not in chain.made or lies
