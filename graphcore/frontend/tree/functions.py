"""`gc.tree`: nested lists, tuples, dicts and objects, whatever they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

import numpy as np

from graphcore.frontend.core.arguments import as_list
from graphcore.frontend.core.base import Base, brief, refusal, type_refusal
from graphcore.frontend.core.user_functions import callback, require_function
from graphcore.ir import structures
from graphcore.ir.help_text import parameters
from graphcore.ir.structures import Branch, Registered

__all__ = ["flatten", "leaves", "map", "register", "unflatten"]

Anything: TypeAlias = Any
"""A tree of any leaves: tensors, arrays, numbers, objects."""

K = TypeVar("K", bound=type)
Structure: TypeAlias = Branch | None
"""A tree without its leaves; that of a single leaf is None."""

BUILT_IN = (Base, list, tuple, dict, str, bytes, int, float, complex, np.ndarray, np.generic, type)
"""Classes whose objects are leaves, or structures already."""


@parameters(
    function="A function of as many leaves as there are trees.",
    tree="Nested lists, tuples, dicts, dataclasses and objects of registered classes; the result "
    "has the same structure. Everything else is a leaf: a tensor, an array, a number.",
    trees="Trees of the same structure.",
)
def map(function: Callable[..., Any], tree: Anything, *trees: Anything) -> Anything:
    """`function` of each leaf of a tree, and of the leaves of others at the same places.

    GraphError if the structures differ.

    >>> params, slopes = {"w": 1.0, "b": [2.0]}, {"w": 10.0, "b": [20.0]}
    >>> gc.tree.map(lambda p, g: p - 0.1 * g, params, slopes)
    {'w': 0.0, 'b': [0.0]}
    """
    first, structure = flatten(tree)
    others = [flatten(other) for other in trees]
    for n, (_, other) in enumerate(others):
        if other != structure:
            differing = different(tree, trees[n])
            reason = f"tree {n + 2} has another structure than the first: {differing}"
            raise type_refusal(reason, cure="give trees of one structure")
    names = [f"leaf{n}" if n else "leaf" for n in range(1 + len(others))]
    called = callback("function", function, *names)
    made = [called(*column) for column in zip(first, *(own for own, _ in others), strict=True)]
    return structures.fill(structure, iter(made))


def different(tree: Anything, other: Anything) -> str:
    """The first place at which one of two trees has a leaf and the other has none."""
    paths, others = dict(structures.leaves(tree, "tree")), dict(structures.leaves(other, "tree"))
    lone = [path for path in (*paths, *others) if (path in paths) != (path in others)]
    if not lone:
        return "they are built of other classes, or differ in static values"
    which = "the first" if lone[0] in paths else "it"
    return f"only {which} has {lone[0]}"


def flatten(tree: Anything) -> tuple[list[Any], Structure]:
    """The leaves of a tree in order, and its structure, from which `unflatten` builds it again.

    Structures are equal if the trees are built alike.

    >>> leaves, structure = gc.tree.flatten({"w": 1.0, "b": [2.0, 3.0]})
    >>> leaves
    [1.0, 2.0, 3.0]
    >>> gc.tree.unflatten(structure, [10, 20, 30])
    {'w': 10, 'b': [20, 30]}
    """
    found: list[Any] = []
    structure = structures.outline(tree, lambda leaf, path: found.append(leaf))
    return found, structure


@parameters(
    structure="A structure, as `flatten` gives it.",
    leaves="As many leaves as it has.",
)
def unflatten(structure: Structure, leaves: Iterable[Anything]) -> Anything:
    """The tree of a structure that `flatten` found, with these leaves in order.

    >>> gc.tree.unflatten(gc.tree.flatten([1, (2, 3)])[1], "abc")
    ['a', ('b', 'c')]
    """
    if not isinstance(structure, Branch | None):
        cure = "leaves, structure = gc.tree.flatten(tree)"
        raise type_refusal(f"{brief(structure)} is not a structure", cure=cure)
    found = list(leaves) if isinstance(leaves, str) else as_list("leaves", leaves)
    if len(found) != (wanted := count(structure)):
        reason = f"{len(found)} leaves for a structure of {wanted}"
        raise refusal(reason, cure="give one value for each leaf")
    return structures.fill(structure, iter(found))


def count(structure: Structure) -> int:
    """The number of leaves of a structure."""
    return 1 if structure is None else sum(count(part) for part in structure.parts)


def leaves(tree: Anything) -> list[Any]:
    """The leaves of a tree, in order.

    >>> gc.tree.leaves({"w": 1.0, "b": [2.0, 3.0]})
    [1.0, 2.0, 3.0]
    """
    return flatten(tree)[0]


@parameters(
    kind="The class; its subclasses are registered by themselves.",
    flatten="`object -> (parts, rest)`: the parts are tensors, or trees of them, and `rest` is all "
    "else, compared by `==`.",
    unflatten="`(rest, parts) -> object`.",
)
def register(
    kind: K,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, tuple[Any, ...]], Any],
) -> K:
    """Make objects of a class trees: as inputs, outputs, parameters and carries of loops.

    Dataclasses are trees without it, of all fields but those that are declared with
    `field(metadata={"static": True})`. The two functions are those of JAX's
    `register_pytree_node`.

    GraphError if objects of the class are leaves or trees already.

    >>> class Line:
    ...     def __init__(self, slope, start):
    ...         self.slope, self.start = slope, start
    >>> Line = gc.tree.register(
    ...     Line, lambda line: ((line.slope, line.start), None), lambda rest, parts: Line(*parts)
    ... )
    >>> line, x = Line(gc.tensor("slope", {}), gc.tensor("start", {})), gc.tensor("x", {})
    >>> f = gc.compile([line, x], gc.grad(line.slope * x + line.start, line))
    >>> f(Line(2.0, 1.0), 3.0).slope
    array(3.)
    """
    if not isinstance(kind, type) or issubclass(kind, BUILT_IN):
        cure = "give a class of your own, and functions that take its objects apart and build them"
        raise type_refusal(f"{brief(kind)} is not a class to register", cure=cure)
    require_function("flatten", flatten, "object")
    require_function("unflatten", unflatten, "rest, parts")

    def apart(thing: Any) -> tuple[tuple[Any, ...], Any]:
        match callback("flatten", flatten, "object")(thing):
            case (Iterable() as parts, rest):
                return tuple(parts), rest
            case made:
                cure = "return the parts, in a tuple, and all else: ((x.w, x.b), None)"
                reason = f"flatten of {kind.__name__} returns {brief(made)}, not (parts, rest)"
                raise type_refusal(reason, cure=cure, name="tree.register")

    together = callback("unflatten", unflatten, "rest", "parts")
    structures.REGISTERED[kind] = Registered(apart, together)
    return kind
