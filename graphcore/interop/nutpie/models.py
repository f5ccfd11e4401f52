"""Models of PyMC for nutpie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from inspect import signature
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from nutpie.compile_pymc import _prepare_dims_and_coords
from pymc.initial_point import make_initial_point_fn
from pytensor.graph.rewriting.utils import rewrite_graph

import graphcore as gc
from graphcore.backends.argument_checks import join_names
from graphcore.frontend.core.base import Tensor, brief
from graphcore.interop.pytensor.programs import graph_of, inputs_like, parts, results, rewritten
from graphcore.ir.errors import GraphKeyError, GraphValueError

from .sampled import SampledModel, refuse, sampled, shape_info

Data: TypeAlias = Mapping[Any, "np.ndarray[Any, Any]"]
"""The values of shared variables of PyTensor."""


class Source:
    """A model of PyMC as graphs, which are compiled for its data or for others."""

    def __init__(self, model: Any, keep: Iterable[str] | None, start: Any) -> None:
        self.model = model
        self.variables = [model.rvs_to_values[rv] for rv in model.free_RVs]
        check_variables(model)
        self.start = Starts(model, start)
        first = self.start.by_name(0)
        self.inputs = [
            gc.tensor(v.name, dict(zip(x.dims, np.shape(first[v.name]))), dtype=x.dtype)
            for x, v in zip(inputs_like(self.variables), self.variables)
        ]
        logp = model.logp()
        if not model.check_bounds:
            logp = rewrite_graph(logp, include=["local_remove_check_parameter"])
        computed = computed_by(model, keep)
        self.names = [v.name for v in (*self.variables, *computed)]
        self.graphs = [graph_of(self.variables, outputs) for outputs in ([logp], computed)]
        for fgraph, _ in self.graphs:
            rewritten(fgraph)
        shared = dict.fromkeys(v for _, frozen in self.graphs for v in frozen)
        self.data = {v: v.get_value(borrow=False) for v in shared}

    def compiled(self, data: Data) -> SampledModel:
        """The model with these values of shared variables."""
        model = self.model
        vector, unravel = gc.ravel(self.inputs)
        x = gc.tensor("x", vector.sizes)
        pieces = unravel(x)
        values = parts(pieces, self.variables)
        (value,), more = [
            results(fgraph, [*values, *[data[v] for v in frozen]]) for fgraph, frozen in self.graphs
        ]
        kept = dict(zip(self.names, [*pieces, *more], strict=True))
        transforms = [(rv, model.rvs_to_transforms.get(rv)) for rv in model.free_RVs]
        moved = [model.rvs_to_values[rv].name for rv, how in transforms if how is not None]
        given = model, shape_info(kept), moved
        dims, coords = _prepare_dims_and_coords(
            *given[: len(signature(_prepare_dims_and_coords).parameters)]
        )
        check_sizes(kept, dims, coords)
        density = x, value, gc.grad(value, x)
        more_fields = {"dims": dims, "_coords": coords, "reparameterized_names": moved}
        return sampled(density, kept, self.start, partial(self.changed, data), **more_fields)

    def changed(self, data: Data, updates: Mapping[str, Any]) -> SampledModel:
        """The model with other values of some shared variables; sizes of dims follow theirs."""
        new = dict(data)
        for name, value in updates.items():
            variable = self.named(name)
            new[variable] = array_like(name, value, data[variable])
            for dim, n in zip(self.model.named_vars_to_dims.get(name) or (), new[variable].shape):
                if (length := self.model.dim_lengths.get(dim)) in new and dim not in updates:
                    new[length] = np.array(n, new[length].dtype)
        return self.compiled(new)

    def named(self, name: str) -> Any:
        """The shared variable of a name."""
        found = [v for v in self.data if v.name == name]
        if len(found) == 1:
            return found[0]
        many = f"{len(found)} shared variables are" if found else "no shared variable is"
        listed = ", ".join(sorted({repr(v.name) for v in self.data})) or "there are none"
        reason, cure = f"{many} named {name!r}", f"give those that it depends on: {listed}"
        raise refuse(reason, cure=cure, kind=GraphKeyError)


class Starts:
    """Where chains start: PyMC's function, whose random numbers one thread at a time may have."""

    def __init__(self, model: Any, values: Any) -> None:
        self.names = [model.rvs_to_values[rv].name for rv in model.free_RVs]
        self.lock = Lock()
        self.function = make_initial_point_fn(
            model=model,
            overrides=values,
            default_strategy="support_point",
            jitter_rvs=set(model.free_RVs),
            return_transformed=True,
        )

    def by_name(self, seed: int) -> Mapping[str, Any]:
        """The values of the variables that nutpie moves."""
        with self.lock:
            found: Mapping[str, Any] = self.function(seed)
        return found

    def __call__(self, seed: int) -> Any:
        """The values one behind the other."""
        found = self.by_name(seed)
        return np.concatenate([np.ravel(found[name]) for name in self.names]).astype("float64")


def check_variables(model: Any) -> None:
    """Refuse variables that nutpie cannot move."""
    if not model.free_RVs:
        cure = "give the model a variable that is not observed"
        raise refuse("the model has no free variables", cure=cure)
    for rv in model.free_RVs:
        if (dtype := np.dtype(model.rvs_to_values[rv].dtype)).kind != "f":
            reason = f"the variable {rv.name!r} is {dtype}, and nutpie moves in real numbers only"
            cure = "sum it out, or say pm.sample(compile_kwargs={'mode': 'GRAPHCORE'})"
            raise refuse(reason, cure=cure)


def check_sizes(kept: Mapping[str, Tensor], dims: Any, coords: Mapping[str, Any]) -> None:
    """Refuse a variable that has other sizes than the model's dims."""
    for name, y in kept.items():
        for dim, n in zip(dims.get(name) or (), y.shape):
            if len(coords.get(dim, range(n))) != n:
                reason = f"{name!r} has size {n} along {dim!r}, which has {len(coords[dim])} labels"
                cure = "say pm.set_data(..., coords=...) in the model, then to_nutpie(model)"
                raise refuse(reason, y, cure=cure, kind=GraphValueError)


def computed_by(model: Any, keep: Any) -> list[Any]:
    """The variables of the trace that are computed from those that nutpie moves."""
    moved = {model.rvs_to_values[rv].name for rv in model.free_RVs}
    every = [v for v in model.unobserved_value_vars if v.name not in moved]
    if keep is None:
        return every
    known = [*moved, *[v.name for v in every]]
    if isinstance(keep, str | Mapping) or (strange := [x for x in keep if x not in known]):
        what = brief(keep) if isinstance(keep, str | Mapping) else brief(strange[0])
        reason, cure = f"keep has {what}", f"give a list of names: {join_names(known)}"
        raise refuse(reason, cure=cure, kind=GraphKeyError)
    return [v for v in every if v.name in {*keep}]


def array_like(name: str, value: Any, like: Any) -> Any:
    """A value for a shared variable, of the dtype and number of axes that it has."""
    given = np.asarray(value)
    found = given.astype(like.dtype)
    if like.dtype.kind in "iub" and not np.array_equal(given, found):
        cure = f"give integers that {like.dtype} holds, or make the variable one of floats"
        raise refuse(f"the values for {name!r} are no {like.dtype}", cure=cure)
    if found.ndim != like.ndim:
        reason = f"the value for {name!r} has {found.ndim} axes, but the variable {like.ndim}"
        cure = f"give an array like one of shape {like.shape}"
        raise refuse(reason, cure=cure)
    return found
