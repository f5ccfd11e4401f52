"""Functions of PyTensor run as programs, against its own Python mode."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery

import graphcore as gc
from graphcore.interop.pytensor import from_pytensor
from graphcore.interop.pytensor.linking import QUERY, GraphcoreLinker

REWRITES = RewriteDatabaseQuery(include=["minimum_compile"])


class Native(GraphcoreLinker):
    """The linker whose programs are machine code."""

    target: ClassVar[str] = "native"


class Calls(GraphcoreLinker):
    """The linker whose programs are NumPy calls."""

    target: ClassVar[str] = "numpy"


REFERENCE = Mode("py", REWRITES)
MODES = {
    "rewritten": Mode(Calls(), QUERY),
    "numpy": Mode(Calls(), REWRITES),
    "native": Mode(Native(), REWRITES),
}


def variables(arrays: Sequence[Any], static: bool) -> list[Any]:
    """A variable for each array, whose type says the sizes or leaves them open."""
    return [
        pt.tensor(
            f"x{k}",
            dtype=np.asarray(a).dtype,
            shape=np.shape(a) if static else (None,) * np.ndim(a),
        )
        for k, a in enumerate(arrays)
    ]


def exact_since(version: float) -> None:
    """Skips a comparison with slopes that earlier versions of PyTensor have wrong."""
    if float(".".join(pytensor.__version__.split(".")[:2])) < version:
        pytest.skip(f"slopes of PyTensor before {version} are not exact")


def listed(made: Any) -> list[Any]:
    return list(made) if isinstance(made, list | tuple) else [made]


def same_values(
    build: Callable[..., Any], arrays: Sequence[Any], static: bool = False, rtol: float = 1e-11
) -> None:
    """What a graph gives in each of our modes is what PyTensor gives: values, dtypes, shapes."""
    inputs = variables(arrays, static)
    outputs = listed(build(*inputs))
    values = [np.asarray(a) for a in arrays]
    wanted = pytensor.function(inputs, outputs, mode=REFERENCE, on_unused_input="ignore")(*values)
    for name, mode in MODES.items():
        found = pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")(*values)
        for y, z, v in zip(found, wanted, outputs, strict=True):
            assert np.asarray(y).dtype == v.type.dtype, name
            close(y, z, rtol, name)


def close(y: Any, z: Any, rtol: float, name: str) -> None:
    y, z = np.asarray(y), np.asarray(z)
    assert y.shape == z.shape, (name, y.shape, z.shape)
    if z.dtype in (np.float32, np.complex64):
        rtol = max(rtol, 2e-5)
    scale = np.abs(z[np.isfinite(z)]).max(initial=0.0) if z.dtype.kind in "fc" else 0
    np.testing.assert_allclose(y, z, rtol=rtol, atol=rtol * scale * 0.1, err_msg=name)


def same_slopes(
    build: Callable[..., Any], arrays: Sequence[Any], static: bool = False, rtol: float = 1e-9
) -> None:
    """Our gradient is PyTensor's, and so is its gradient graph in our mode."""
    inputs = variables(arrays, static)
    floats = [v for v in inputs if v.dtype.startswith("float")]
    total = weighed(listed(build(*inputs)))
    wrt = pytensor.grad(total, floats, disconnected_inputs="ignore")
    values = [np.asarray(a) for a in arrays]
    wanted = pytensor.function(inputs, wrt, mode=REFERENCE, on_unused_input="ignore")(*values)
    mode = MODES["rewritten"]
    found = pytensor.function(inputs, wrt, mode=mode, on_unused_input="ignore")(*values)
    own = our_slopes(inputs, floats, total, values)
    for a, b, c in zip(found, own, wanted, strict=True):
        close(a, c, rtol, "PyTensor's gradient")
        close(b, c, rtol, "our gradient")


def weighed(outputs: Sequence[Any]) -> Any:
    """One number that depends on each element in its own way."""
    total: Any = 0.0
    for k, y in enumerate(outputs):
        if y.dtype.startswith("float"):
            total = total + (y * pt.cos(pt.arange(y.size).reshape(y.shape) + k)).sum()
    return total


def our_slopes(inputs: Any, floats: Sequence[Any], total: Any, values: Sequence[Any]) -> list[Any]:
    """Our gradient of a graph of PyTensor."""
    ours, y = from_pytensor(inputs, total)
    wrt = [x for x, v in zip(ours, inputs) if v in floats]
    made: list[Any] = gc.compile(ours, gc.grad(y, wrt, disconnected="zero"))(*values)
    return made


def same_differences(build: Callable[..., Any], arrays: Sequence[Any], rtol: float = 1e-5) -> None:
    """Our gradient is what central differences say, where PyTensor has none, or another one."""
    inputs = variables(arrays, static=False)
    floats = [v for v in inputs if v.dtype.startswith("float")]
    total = weighed(listed(build(*inputs)))
    values = [np.array(a) for a in arrays]
    f = pytensor.function(inputs, total, mode=REFERENCE, on_unused_input="ignore")
    for v, found in zip(floats, our_slopes(inputs, floats, total, values), strict=True):
        x = values[inputs.index(v)]
        for at in np.ndindex(x.shape):
            here, step, ends = x[at], 1e-6 * max(1.0, abs(x[at])), []
            for moved in (here + step, here - step):
                x[at] = moved
                ends.append(f(*values))
            x[at] = here
            slope = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(found[at], slope, rtol=rtol, atol=rtol)
