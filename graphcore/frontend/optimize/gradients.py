"""The norm of gradients, and gradients of a limited norm."""

from __future__ import annotations

from graphcore.frontend.core.base import Tensor
from graphcore.frontend.core.trees import T, Tree, flatten
from graphcore.frontend.create.inputs import constant
from graphcore.frontend.pointwise.casting import as_float
from graphcore.frontend.pointwise.elementwise import absolute
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.reduce.masking import root
from graphcore.ir.help_text import parameters

from .params import like
from .rates import Real, check_hyperparameters

__all__ = ["clip_by_global_norm", "global_norm"]


def global_norm(tree: Tree) -> Tensor:
    """The Euclidean norm of all elements of all tensors of a tree together.

    Its derivative at 0 is 0.

    >>> gc.optimize.global_norm({"w": gc.constant([3.0, 0.0], "row"), "b": 4.0}).eval()
    array(5.)
    """
    found, _ = flatten(tree)
    if not found:
        return constant(0.0)
    squares = [(absolute(as_float(x)) ** 2).sum() for x in found]
    return root(sum(squares[1:], squares[0]))


@parameters(
    tree="Tensors, such as gradients, in any structure, which the result has.",
    max_norm="The largest norm.",
)
def clip_by_global_norm(tree: T, max_norm: Real) -> T:
    """A tree scaled down to a global norm of `max_norm`, where it is larger.

    Source: Pascanu, Mikolov and Bengio 2013, "On the difficulty of training recurrent neural
    networks".

    >>> grads = {"w": gc.constant([3.0, 0.0], "row"), "b": gc.constant(4.0)}
    >>> gc.evaluate(gc.optimize.clip_by_global_norm(grads, 1.0))
    {'w': array([0.6, 0. ]), 'b': array(0.8)}
    """
    check_hyperparameters(max_norm=max_norm)
    found, rebuild = flatten(tree)
    norm = global_norm(found)
    scale = where(norm <= max_norm, 1.0, max_norm / norm)  # nan if the norm is
    clipped: T = rebuild([x * like(scale, x) for x in found])
    return clipped
