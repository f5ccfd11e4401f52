"""Large constants: operands of XLA's programs, and on the device once for all that have them."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import jax

from graphcore.ir import Node
from graphcore.ir.literal import Literal
from graphcore.ops import leaf

LARGE = 2**20
"""Constants of so many bytes are operands of XLA's program, not parts of its text."""

_on_device: WeakValueDictionary[Literal, Any] = WeakValueDictionary()


def is_large(node: Node) -> bool:
    """Whether a node is a constant that is better an operand."""
    return node.op is leaf.constant and bool(node.attrs["value"].array.nbytes >= LARGE)


def on_device(node: Node) -> Any:
    """The value of a constant as an array of JAX, also while JAX traces other values."""
    literal: Literal = node.attrs["value"]
    with jax.core.eval_context(), jax.enable_x64(True):
        found = _on_device.get(literal)
        if found is None:
            found = _on_device.setdefault(literal, jax.device_put(literal.array))
    return found
