"""What machine code pays: the approximate costs of the places of nodes, and of memory."""

from __future__ import annotations

from dataclasses import dataclass

from graphcore.analysis.cost import TargetCosts, weight
from graphcore.ir import Node
from graphcore.ops import elementwise as e
from graphcore.ops import special as s
from graphcore.ops import tensor as t

from .arithmetic import SCALAR, emits

SIMPLE = frozenset(
    {
        *(e.add, e.subtract, e.multiply, e.negative, e.absolute, e.square, e.sign, e.maximum),
        *(e.minimum, e.equal, e.not_equal, e.less, e.less_equal, e.greater, e.greater_equal),
        *(e.logical_and, e.logical_or, e.logical_xor, e.logical_not, e.bitwise_and, e.bitwise_or),
        *(e.bitwise_xor, e.invert, e.isnan, e.isfinite, e.isinf, e.where, e.cast, e.real, e.imag),
        *(e.conjugate, e.floor, e.ceil, e.trunc, e.rint, e.copysign),
        *(t.multiply_no_nan, t.where_greater),
        *(s.sigmoid_slope, s.tanh_slope),  # their exponential is rarely needed
    }
)
DIVISIONS = frozenset({e.divide, e.sqrt, e.reciprocal})
VIEWS = {
    **{t.embed: 1, t.overwrite: 2, t.concat: 2, t.sum_: 2, t.max_: 2, t.min_: 2},
    **{t.vecdot: 4, t.matvec: 4, t.matmul: 4},
}


@dataclass(frozen=True)
class MachineCosts(TargetCosts):
    """What machine code pays, in picoseconds (ps) and in additions, for a place of a node.

    Measured: 4,000,000 values take 0.45 ns each to read and 0.8 ns to write, 40,000 of them 0.12 ns
    and 0.15 ns; an addition takes 0.03 ns, a division 0.4 ns, exp 0.9 ns, erf 4.4 ns.
    """

    elements_at_once: int = 64
    """A step of a loop costs no more for so many elements than its part of one for all."""
    bytes_in_cache: int = 2**20
    """Arrays of so many bytes are read from a cache of one core when they are read again."""
    ps_per_byte_read: tuple[int, int] = 15, 55
    """Of an array that stays in the cache, and of a larger one."""
    ps_per_byte_written: tuple[int, int] = 20, 100
    """The same."""
    ps_per_place: tuple[int, int, int, int] = 30, 400, 900, 4500
    """Of a simple op, a division or root, another function, and a special one."""
    ps_per_place_joined: int = 100
    """Of parts that are joined."""
    places_of_step: int = 16
    """A step of a loop takes as long as for so many places at least."""
    additions_per_place: tuple[int, int, int, int] = 1, 4, 14, 14
    """The same ops, where a kernel computes several together."""
    additions_again: int = 4
    """A value that costs no more is computed again rather than stored."""
    updates_stored: int = 2**18
    """So many updates of a tensor, or more, that read values at other positions are stored first.

    Of 4,000,000 updates the two reads of each took 30 ns together in the loop that makes them,
    where they wait for each other, 13 ns in one of their own. Few updates read from a cache.
    """

    def read(self, size: int) -> int:
        """The ps to read a byte of an array of so many bytes, 0 where that is not known."""
        return self.ps_per_byte_read[size > self.bytes_in_cache]

    def write(self, size: int) -> int:
        """The ps to write a byte of such an array."""
        return self.ps_per_byte_written[size > self.bytes_in_cache]

    def again(self, node: Node) -> int | None:
        """The ps to compute a place of a node again in a loop; None if it never is."""
        if node.op in SCALAR and emits(node):
            return self.ps_per_place[kind(node)]
        if node.op is t.concat:
            return self.ps_per_place_joined
        return 0 if node.op in (t.expand, t.reshape, t.transpose, t.slice_) else None


COSTS = MachineCosts()


def kind(node: Node) -> int:
    """The number of the kind of a scalar op, in the order of `ps_per_place`."""
    if node.op in SIMPLE:
        return 0
    return 1 if node.op in DIVISIONS else 2 if weight(node.op) < 50 else 3


def flops(node: Node) -> int:
    """The approximate cost of one place of a node, in additions, without its operands."""
    if node.op in SCALAR:
        return COSTS.additions_per_place[kind(node)]
    return VIEWS.get(node.op, 0)
