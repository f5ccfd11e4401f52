"""`to_nutpie`: models of PyMC, or programs, for the sampler nutpie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from graphcore.compile.compiled import Compiled
from graphcore.frontend.core.base import Tensor, brief

from .programs import of_program
from .sampled import SampledModel, refuse

Start: TypeAlias = "Mapping[Any, Any] | np.ndarray[Any, Any] | Callable[[int], Any] | None"


def to_nutpie(
    model: Any,
    keep: Iterable[str] | Mapping[str, Tensor] | None = None,
    *,
    start: Start = None,
    coords: Mapping[str, Any] | None = None,
) -> SampledModel:
    """What `nutpie.sample` takes, with log density and gradient by a C function.

    Parameters
    ----------
    model
        A model of PyMC. Or a compiled program that gives a log density, then the gradient for each
        input, as `gc.value_and_grad` does; its inputs have known sizes.
    keep
        What the trace has. Of a model of PyMC the names of variables, by default all. Of a program
        tensors by name, which are computed from its inputs; by default the inputs.
    start
        Where chains start. Of a model of PyMC values of variables by name, which nutpie jitters,
        as it does by default. Of a program a vector of all inputs, one behind the other, or a
        function from a seed to one; by default numbers between -2 and 2.
    coords
        The labels of a program's dims. A model of PyMC has its own.

    The trace of a model of PyMC is that of `nutpie.compile_pymc_model`. `with_data` of the result
    takes other values for shared variables. Steps where the density is nan or infinite, or where
    the program fails, diverge.

    GraphError for discrete variables, for a model without free variables, and for programs that
    are no C functions.

    Examples
    --------
    >>> import graphcore as gc, nutpie
    >>> x = gc.tensor("x", {"row": 2})
    >>> f = gc.compile([x], gc.value_and_grad(-(x**2).sum() / 2, x))
    >>> model = gc.interop.to_nutpie(f, coords={"row": ["a", "b"]})
    >>> trace = nutpie.sample(model, draws=50, tune=100, chains=1, progress_bar=False)
    >>> trace.posterior["x"].dims
    ('chain', 'draw', 'row')
    """
    if isinstance(model, Compiled):
        return of_program(model, keep, start, coords)
    if is_model(model):
        from .models import Source

        if coords is not None:
            cure = "leave coords= out: give them to pm.Model(coords=...)"
            raise refuse("a model of PyMC has coords of its own", cure=cure)
        source = Source(model, keep, start)
        return source.compiled(source.data)
    cure = "give a pm.Model, or gc.compile(inputs, gc.value_and_grad(log_density, inputs))"
    reason = f"{brief(model)} is neither a model of PyMC nor a compiled program"
    raise refuse(reason, cure=cure)


def is_model(x: object) -> bool:
    """Whether it is a model of PyMC, which is not imported to know that."""
    return any(k.__module__.startswith("pymc.") and k.__name__ == "Model" for k in type(x).__mro__)
