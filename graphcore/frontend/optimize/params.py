"""Params of optimizers, as arrays or tensors, and options for groups of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from graphcore.frontend.core.base import Base, Tensor, type_refusal
from graphcore.frontend.core.defaults import default_dtype
from graphcore.frontend.core.lift import is_labelled
from graphcore.frontend.core.trees import Tree, flatten
from graphcore.frontend.create.inputs import constant
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.tree import map as each
from graphcore.ir.dtypes import real_of
from graphcore.ir.provenance import public_call
from graphcore.ir.structures import leaves

from .rates import Real, schedule_of

R = TypeVar("R")


def of_arrays(function: Callable[..., R]) -> Callable[..., R]:
    """`function` of trees, which gives arrays where it is given arrays, computed at once."""

    @wraps(function)
    def called(*trees: Tree) -> R:
        found = [leaf for tree in trees for _, leaf in leaves(tree, "")]
        if not any(map(has_axes, found)):
            return function(*trees)
        if any(isinstance(leaf, Base) for leaf in found):
            cure = "give arrays alone, or tensors alone: gc.evaluate(tree) has arrays"
            reason = "params, grads and state have arrays as well as tensors"
            raise type_refusal(reason, cure=cure, name=public_call("optimizer"))
        made: R = Base._complete._evaluator(function(*[each(by_axes, x) for x in trees]), None, {})
        return made

    return called


def has_axes(x: Any) -> bool:
    """Whether `x` is an array with axes that have no names."""
    return hasattr(x, "__array__") and not isinstance(x, Base) and not is_labelled(x) and x.ndim > 0


def by_axes(x: Any) -> Any:
    """An array as a constant, with dims named by their positions."""
    return constant(x, [f"axis {n}" for n in range(np.ndim(x))]) if has_axes(x) else x


def tensors(name: str, tree: Tree) -> Tree:
    """A tree of tensors."""
    found, rebuild = flatten(tree, name)
    return rebuild(found)


def like(value: Real, x: Tensor) -> Real:
    """A hyperparameter in the precision of `x`."""
    return value if type(value) in (int, float) else astype(value, real_of(x.dtype))


def check_rates(given: Any) -> None:
    """Refuse learning rates that are neither numbers, tensors nor functions."""
    for _, rate in leaves(given, "learning_rate"):
        schedule_of(rate)


def check_mask(given: Any) -> None:
    """Refuse masks that are neither True nor False, trees of these, None or functions."""
    wrong = [leaf for _, leaf in leaves(given, "mask") if not isinstance(leaf, bool | np.bool)]
    if wrong and given is not None and not callable(given):
        reason = f"mask has {wrong[0]!r:.60}, which is neither True nor False"
        cure = "give True or False in a tree like the params, or a function of the params"
        raise type_refusal(reason, cure=cure)


def rates_of(given: Any, params: Tree, step: Tensor) -> Tree:
    """The learning rate of each param in this step; those of our schedules in their precision."""
    dtypes = [real_of(p.dtype) for _, p in leaves(params, "params")]
    found = of_each("learning_rate", given, params)
    with default_dtype(np.result_type(np.float16, *dtypes)):
        now = {id(rate): schedule_of(rate)(step) for rate in found}
    return each(lambda p: now[id(found.pop(0))], params)


def of_each(what: str, given: Any, params: Tree) -> list[Any]:
    """What is given for each leaf of `params`: once for all, or in a tree of groups of them."""
    parts = leaves(given, "params")
    found = []
    for path, _ in leaves(params, "params"):
        owners = [value for start, value in parts if path[: len(start)] == start]
        if len(owners) != 1:
            reason = f"{what} has nothing for {path}"
            cure = f"give one for all params, or a tree with the keys of params: {what}={{...}}"
            raise type_refusal(reason, cure=cure)
        found += owners
    return found
