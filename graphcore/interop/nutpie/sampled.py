"""A model of nutpie whose functions are C functions of ours."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from nutpie.compile_pymc import CompiledPyMCModel

import graphcore as gc
from graphcore.frontend.core.base import Tensor, refusal
from graphcore.ir.errors import GraphError, GraphTypeError

LOGP = "int logp(size_t parameter, const double *x, double *grad, double *value, void *user)"
EXPAND = "int expand(size_t parameter, size_t kept, const double *x, double *out, void *user)"
"""The functions that nutpie calls: the second computes what a trace has of a draw."""


@dataclasses.dataclass(frozen=True)
class SampledModel(CompiledPyMCModel):  # type: ignore[misc]  # nutpie is typed where it is installed
    """A model of nutpie; `change` makes it anew with other data."""

    change: Callable[[Mapping[str, Any]], SampledModel] = dataclasses.field(kw_only=True)

    def with_data(self, **updates: Any) -> SampledModel:
        """The model with other values of shared variables, by their names; it is compiled anew."""
        return self.change(updates)


def refuse(
    reason: str, *operands: Tensor, cure: str, kind: type[GraphError] = GraphTypeError
) -> GraphError:
    """The error for what nutpie cannot sample."""
    return refusal(reason, *operands, cure=cure, kind=kind, where="asked", name="to_nutpie")


def sampled(
    density: tuple[Tensor, Tensor, Tensor],
    kept: Mapping[str, Tensor],
    start: Callable[[int], Any],
    change: Callable[[Mapping[str, Any]], SampledModel],
    rules: Any = (),
    **more: Any,
) -> SampledModel:
    """The model of a vector, its log density and the gradient; `more` are other fields.

    Tensors that are `kept` are computed from the vector.
    """
    x, value, slopes = density
    # as nutpie's own functions of PyMC's models, which reject an infinite density too
    value = gc.where(gc.isfinite(value), gc.astype(value, "float64"), np.nan)
    logp = gc.compile(
        [x], {"value": value, "grad": gc.astype(slopes, "float64")}, native=True, rules=rules
    )
    out = gc.ravel([gc.astype(y, "float64") for y in kept.values()], "kept")[0]
    expand = gc.compile([x], out, native=True, rules=rules)
    info = shape_info(kept)
    fields = {
        "compiled_logp_func": logp.cfunc(LOGP),
        "compiled_expand_func": expand._c_function(EXPAND, 0, False, {}),
        "initial_point_func": start,
        "n_expanded": info[1][-1].stop,
        "shape_info": info,
        "_shapes": dict(zip(info[0], info[2], strict=True)),
        **{"_n_dim": x.shape[0], "user_data": np.zeros(1, np.uint8)},
        **{"shared_data": {}, "shared_var_keys": {}, "logp_func": logp, "expand_func": expand},
        **more,
    }
    names = {field.name for field in dataclasses.fields(CompiledPyMCModel)}
    return SampledModel(**{k: v for k, v in fields.items() if k in names}, change=change)


def shape_info(kept: Mapping[str, Tensor]) -> tuple[list[str], list[slice], list[Any]]:
    """The names of tensors that lie one behind the other, where they do, and their shapes."""
    shapes: list[Any] = [y.shape for y in kept.values()]
    ends = [*itertools.accumulate([int(np.prod(shape)) for shape in shapes], initial=0)]
    return [*kept], [*map(slice, ends, ends[1:])], shapes


def labels(shapes: Mapping[str, Any]) -> Any:
    """What nutpie calls the elements of the vector: `mu`, `eta_0`, `w_1.2`."""
    places = [
        (x, at) for x, shape in shapes.items() for at in itertools.product(*map(range, shape))
    ]
    return pd.Index([f"{x}_{'.'.join(map(str, at))}" if at else x for x, at in places])
