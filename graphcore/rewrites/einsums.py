"""Helpers for einsums, whose axes are named by letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphcore.analysis.cost import letter_sizes
from graphcore.ir import Node, Size
from graphcore.ir.sizes import count

from . import plain
from .plain import Axes


def summed_places(node: Node) -> Size:
    """The number of products that an einsum adds up for each element of its result."""
    return count(n for k, n in letter_sizes(node).items() if k not in node.attrs["result"])


def lone_places(node: Node) -> Size:
    """The number of positions on the axes over which an einsum sums and which some operand lacks.

    Where this is 0 the sum is 0, even if an operand without these axes is infinite.
    """
    result, operands = node.attrs["result"], node.attrs["operands"]
    return count(
        size
        for letter, size in letter_sizes(node).items()
        if letter not in result and not all(letter in own for own in operands)
    )


def unfold(x: Node, letters: Axes, fresh: Iterator[int]) -> list[tuple[Node, Axes]]:
    """The operands of an einsum whose axes have `letters` in another einsum, with letters there."""
    said = dict(zip(x.attrs["result"], letters, strict=True))
    for letter in letter_sizes(x):
        if letter not in said:
            said[letter] = next(fresh)
    operands = [tuple(said[letter] for letter in own) for own in x.attrs["operands"]]
    return list(zip(x.inputs, operands, strict=True))


def single(x: Node, letters: Axes, result: Axes) -> Node:
    """`x` summed over the letters not in `result`, in its order."""
    gone = [axis for axis, letter in enumerate(letters) if letter not in result]
    kept = [letter for letter in letters if letter in result]
    return plain.transpose(sum_axes(x, gone), [kept.index(letter) for letter in result])


def sum_axes(x: Node, axes: Iterable[int]) -> Node:
    """`x` summed in its own dtype, as all of a contraction is: a sum alone widens integers."""
    return plain.cast(plain.sum_over(x, axes), x.type.dtype)
