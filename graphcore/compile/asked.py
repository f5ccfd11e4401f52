"""The target of a program, as the arguments of `compile` ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from graphcore.backends.mesh import Gather
from graphcore.backends.target import Target
from graphcore.backends.targets import JAX, NATIVE, NUMPY, TARGETS
from graphcore.frontend.core.arguments import check_word
from graphcore.frontend.core.base import brief, refusal, type_refusal
from graphcore.ir import Graph

Asked: TypeAlias = "bool | str | Target | None"
"""The target that a user asks for: by name, or as `native=True` or `native=False`."""


def asked_for(native: bool | None, target: str | Target | None) -> Asked:
    """What `native` and `target` ask for together."""
    if isinstance(target, bool):
        cure = f"write native={target}, or target={(NATIVE if target else NUMPY).name!r}"
        raise refusal(f"target={target} is the name of none", cure=cure)
    if target is None or native is None:
        return native if target is None else target
    named = target if isinstance(target, str) else target.name
    if named != (NATIVE if native else NUMPY).name:
        both = f"native={native} and target={named!r}"
        raise refusal(f"{both} contradict each other", cure="give one of them")
    return target


def target_asked_for(asked: Asked) -> Target | None:
    """The target that a user asks for, which runs here; None where the rule decides."""
    if asked is None:
        return None
    if isinstance(asked, bool):
        found: Target = NATIVE if asked else NUMPY
    elif isinstance(asked, str):
        check_word("target", asked, TARGETS)
        found = TARGETS[asked]
    elif isinstance(asked, Target):
        found = asked
    else:
        cure = f"give one of {', '.join(map(repr, TARGETS))}, or a Target"
        raise type_refusal(f"{brief(asked)} is no target", cure=cure)
    if (why := found.unavailable()) is not None:
        raise refusal(f"{written(asked)}, but {why}", cure=f"leave it out: {ANYWHERE}")
    return found


Returns = Literal["numpy", "xarray", "jax"]
Sizes = Literal["exact", "buckets"]
EVERYWHERE = ("numpy", "xarray", "exact", "say")
"""The values of options that every target takes, and None."""


def with_options(asked: Asked, options: Mapping[str, Any]) -> Asked:
    """The target that a user asks for, with those of the options that not every target takes."""
    check_word("returns", options["returns"], get_args(Returns))
    check_word("sizes", options["sizes"], get_args(Sizes))
    check_word("gather", options["gather"], get_args(Gather))
    given = {
        name: value
        for name, value in options.items()
        if value is not None and not (isinstance(value, str) and value in EVERYWHERE)
    }
    if not given:
        return asked
    target = target_asked_for(asked)
    for name, value in given.items():
        if target is None or name not in target.options:
            reason = f"{name}={value!r} is an option of target={JAX.name!r}"
            raise refusal(reason, cure=f"write target={JAX.name!r} too, or leave it out")
    assert target is not None
    return target.with_options(**given)


ANYWHERE = "NumPy computes every op, on every machine"


def written(asked: Asked) -> str:
    """What a user asks for, as a call of `compile` says it."""
    if isinstance(asked, Target):
        asked = asked.name
    return f"native={asked}" if isinstance(asked, bool) else f"target={asked!r}"


def require_ops(target: Target, graph: Graph) -> None:
    """Refuse a program with an op that its target does not compute."""
    for node, why in target.lacks(graph):
        reason = f"target {target.name!r} does not compute {node.said} at {node.origin}: {why}"
        raise refusal(reason, cure=f"leave target= out: {ANYWHERE}")
