"""`evaluate`: the values of tensors for given arrays, by NumPy, at once."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, overload

from graphcore.frontend.core.arguments import mapping
from graphcore.frontend.core.base import Base, brief, type_refusal
from graphcore.frontend.core.trees import Tree, flatten
from graphcore.frontend.core.wrong_calls import reword_errors
from graphcore.frontend.tensor import Tensor, Values
from graphcore.ir import Array, Node
from graphcore.ir.help_text import parameters

from .compiled import Compiled, K
from .inputs import inputs_by_name, program


@overload
def evaluate(tree: Tensor, values: Values | None = ...) -> Array: ...
@overload
def evaluate(tree: list[Tensor], values: Values | None = ...) -> list[Array]: ...
@overload
def evaluate(tree: dict[K, Tensor], values: Values | None = ...) -> dict[K, Array]: ...
@overload
def evaluate(tree: Tree, values: Values | None = ...) -> Any: ...
@reword_errors
@parameters(
    tree="A tensor, or nested lists, tuples and dicts of them, which the result mirrors.",
    values="An array for each input that is needed, by tensor or by name. For an inner tensor the "
    "given value takes the place of the computed one.",
)
def evaluate(tree: Tree, values: Values | None = None) -> Tree:
    """The values of tensors as arrays, for given values of the inputs.

    Everything is compiled anew, for NumPy alone: to compute the same more than once, use `compile`
    or `function`.

    GraphError if a value is missing or does not fit, or if no input has a given name.

    >>> x = gc.tensor("x", {"row": None})
    >>> h = x + 1
    >>> gc.evaluate({"h": h, "total": h.sum()}, {x: [1.0, 2.0]})
    {'h': array([2., 3.]), 'total': array(5.)}
    >>> gc.evaluate(h.sum(), {h: [10.0, 20.0]})
    array(30.)
    """
    found, mirrored = flatten(tree)
    outputs = [y.node for y in found]
    given = mapping({} if values is None else values, None, "{x: array}")
    params = [key.node if isinstance(key, Base) else input_named(key, outputs) for key in given]
    graph = program(
        params,
        outputs,
        lambda name: (
            f"needs the value of input '{name}'",
            f"give it too: gc.evaluate(y, {{{name!r}: array}}), or y.eval({name}=array)",
        ),
    )
    forms: list[Any] = list(range(len(params)))
    compiled: Compiled[Tree] = Compiled(graph, forms, mirrored.form(), asked=False)
    return compiled(*given.values())


def input_named(name: object, outputs: list[Node]) -> Node:
    """The input of this name that the outputs need."""
    inputs = inputs_by_name(outputs)
    if isinstance(name, str) and name in inputs:
        return inputs[name]
    near = get_close_matches(str(name), inputs, 1)
    needed = f"the inputs are {', '.join(map(repr, inputs))}" if inputs else "it needs no input"
    cure = f"did you mean {near[0]!r}?" if near else needed
    raise type_refusal(f"the tensors need no input {brief(name)}", cure=cure)


def value(y: Tensor, values: Values | None, named: Values) -> Any:
    """The array that a tensor becomes."""
    return evaluate(y, mapping(values, named, "{x: array}"))


Tensor._evaluator = staticmethod(value)
