"""What a `gc.function` is given: dims or trees of them, and arrays or tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphcore.frontend.core.base import Base
from graphcore.frontend.core.trees import Tree
from graphcore.frontend.create.inputs import tensor
from graphcore.ir import Expression
from graphcore.ir.structures import branch


def declare_inputs(path: str, given: Tree) -> Tree:
    """Inputs as they are declared: by dims, by a tensor, or a tree of these.

    Beside tensors, a tuple, list or dict of nothing is a part of the tree that holds nothing, as
    the state of an optimizer may have; elsewhere it has the dims of a number.
    """
    if isinstance(given, Base):
        return tensor(path, given.sizes, dtype=given.dtype)
    level = branch(given)
    if level is None or is_dims(given):
        return tensor(path, given)
    beside = any(isinstance(part, Base) for _, part in level)
    parts = [
        part if beside and is_empty(part) else declare_inputs(path + key, part)
        for key, part in level
    ]
    return level.with_parts(parts).build()


def is_empty(given: Any) -> bool:
    """Whether a part of a tree holds nothing."""
    return isinstance(given, list | tuple | dict) and not given


def is_dims(given: Any) -> bool:
    """Whether dims are given, and not a tree: names, or sizes by name."""
    if isinstance(given, Mapping):
        sizes = (int, np.integer, str, Expression, type(None))
        return all(isinstance(size, sizes) for size in given.values())
    plain = isinstance(given, list | tuple) and not hasattr(given, "_fields")
    return plain and all(isinstance(dim, str) for dim in given)


def holds_tensor(value: Any) -> bool:
    """Whether an argument is a tensor, or a tree that holds one."""
    kind = type(value)
    if kind is np.ndarray or kind in PLAIN:
        return False
    if isinstance(value, Base):
        return True
    if kind is dict:
        return any(map(holds_tensor, value.values()))
    level = branch(value)
    return level is not None and any(map(holds_tensor, level.parts))


PLAIN = frozenset({int, float, complex, bool, str, type(None)})
"""Classes whose objects hold nothing."""


def is_array(value: Any) -> bool:
    """Whether an argument is an array without names for its axes."""
    if isinstance(value, list | tuple):
        return True
    plain = hasattr(value, "__array__") and not hasattr(value, "dims")
    return plain and getattr(value, "ndim", 1) > 0
