"""Suggestions for names that graphcore, one of its modules, or a tensor does not have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

from graphcore.ir.errors import GraphAttributeError, GraphError

from . import contents
from .base import Base, refusal
from .paths import SPACES, public, public_path

INSTEAD = {
    **dict.fromkeys(("concatenate", "append", "cat"), "gc.concat(xs, dim={0!r})"),
    **dict.fromkeys(("hstack", "vstack"), "gc.concat(xs, dim={0!r})"),
    **dict.fromkeys(("stack", "dstack", "column_stack", "block"), "gc.concat(xs, dim='new')"),
    **dict.fromkeys(("moveaxis", "swapaxes", "rollaxis"), "x.transpose({0!r}, ...)"),
    **dict.fromkeys(("transpose", "permute_dims", "permute"), "x.transpose({0!r}, ...)"),
    **dict.fromkeys(
        ("reshape", "ravel", "flatten", "view"),
        "x.stack(new=({0!r}, ...)), and x.unstack to split",
    ),
    **dict.fromkeys(("dot", "matmul", "matvec", "vecmat", "vecdot"), "gc.dot(x, y, dim={0!r})"),
    **dict.fromkeys(("inner", "tensordot", "vdot", "multi_dot"), "gc.dot(x, y, dim={0!r})"),
    "outer": "gc.linalg.outer(x, y, dims), or x * y, where dims of other names multiply out",
    "kron": "gc.linalg.kron(x, y, dims)",
    **dict.fromkeys(("broadcast_to", "broadcast_arrays", "meshgrid"), "gc.broadcast(x, y)"),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), "x.expand_dims('new')"),
    **dict.fromkeys(("newaxis", "unsqueeze"), "x.expand_dims('new')"),
    **dict.fromkeys(("array_split", "hsplit", "vsplit", "dsplit"), "gc.split(x, 2, dim={0!r})"),
    **dict.fromkeys(("fliplr", "flipud", "rot90"), "gc.flip(x, dim={0!r})"),
    **dict.fromkeys(("compress", "extract", "delete"), "x.isel({{{0!r}: positions}})"),
    **dict.fromkeys(("put", "place", "putmask", "copyto"), "x.at[{{{0!r}: positions}}].set(y)"),
    **dict.fromkeys(("array_equal", "array_equiv"), "(x == y).all()"),
    **dict.fromkeys(("partition", "argpartition"), "gc.top_k(x, k, dim={0!r})"),
    **dict.fromkeys(("argwhere", "flatnonzero"), "gc.nonzero(x, size, dim={0!r})"),
    "allclose": "gc.isclose(x, y).all()",
    "copy": "x itself: tensors never change",
    "corrcoef": "gc.corr(x, y, dim={0!r})",
    "count_nonzero": "(x != 0).sum({0!r})",
    "einsum": "gc.einsum('row col, col -> row', x, y)",
    "iscomplexobj": "x.dtype.kind == 'c'",
    "isrealobj": "x.dtype.kind != 'c'",
    "ndim": "x.ndim",
    "percentile": "gc.quantile(x, percent / 100, dim={0!r})",
    "put_along_axis": "x.at[{{{0!r}: index}}].set(y)",
    "result_type": "np.result_type(x.dtype, y.dtype)",
    "shape": "x.sizes",
    "size": "x.size",
    "take_along_axis": "gc.take_along(x, index, dim={0!r})",
    "unstack": "gc.unbind(x, dim={0!r})",
    "resample": "x.groupby(ids, size, dim={0!r}).mean(), or x.coarsen({0}=2).mean()",
    **dict.fromkeys(("asarray", "as_tensor"), "gc.constant(array, ({0!r}, ...))"),
    **dict.fromkeys(
        ("placeholder", "Variable", "Parameter", "shared", "scalar", "vector", "matrix"),
        "an input, gc.tensor(name, dims): calls take arrays for it, parameters included",
    ),
    **dict.fromkeys(("pi", "e", "inf", "nan", "euler_gamma", "finfo", "iinfo"), "NumPy's: np.{1}"),
    **dict.fromkeys(
        (
            *("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            *("float16", "float32", "float64", "complex64", "complex128"),
        ),
        "dtype='{1}', or x.astype('{1}')",
    ),
    "random": "an input, and draw its values with NumPy: np.random.default_rng(0).normal(size=3)",
    "nn": "functions of tensors as layers: gc.dot, gc.conv, gc.maximum, gc.special.softmax",
    **dict.fromkeys(("jit", "njit"), "gc.function(x=dims) above def f(x), or gc.compile(xs, ys)"),
    **dict.fromkeys(("tree_map", "tree_util"), "gc.tree.map(function, tree)"),
    **dict.fromkeys(("ravel_pytree", "flatten_util"), "gc.ravel(tree)"),
    **dict.fromkeys(("optim", "optax", "optimizers"), "gc.optimize.adam(0.001)"),
    "eval": "gc.evaluate(y, {{x: array}})",
    "vmap": "gc.vectorize(outputs, {{x: x_with_more_dims}})",
    "vjp": "gc.pullback(y, x, ct)",
    "jvp": "gc.pushforward(y, x, tangent)",
    "jacfwd": "gc.jacobian(y, x, mode='forward')",
    "jacrev": "gc.jacobian(y, x, mode='reverse')",
    **dict.fromkeys(("backward", "gradients"), "gc.grad(y, wrt)"),
    **dict.fromkeys(
        ("custom", "custom_vjp", "custom_jvp", "custom_gradient"),
        "gc.custom_pullback(function, rule)",
    ),
    **dict.fromkeys(("detach", "no_grad"), "gc.stop_gradient(x)"),
    "ifelse": "gc.where(c, x, y), or gc.cond(c, f, g) to compute one alone",
    "relu": "gc.maximum(x, 0)",
    "sigmoid": "gc.special.expit(x)",
    **dict.fromkeys(("silu", "swish"), "x * gc.special.expit(x)"),
    "gelu": "x * gc.special.ndtr(x)",
}
"""Replacements of functions of NumPy, JAX and others; {0!r} is a dim, {1} the name."""

GPU = "there is no GPU here: programs run on the CPU; leave it out"
SCIPY = (
    "SciPy has it: compile gc.value_and_grad(y, x) to a function f and call "
    "scipy.optimize.{1}(f, start, jac=True); gc.ravel makes one vector of a tree"
)
COORDINATES = (
    "tensors have names of dims, but no coordinates: compile with returns='xarray' and results "
    "have those of the arguments"
)
STATE = (
    "layers are functions of tensors, and parameters are inputs: "
    "h = gc.maximum(gc.dot(x, w, dim={0!r}) + b, 0)"
)
ELSEWHERE = {
    **dict.fromkeys(("to", "cuda", "cpu", "device", "devices", "device_put", "gpu", "mps"), GPU),
    **dict.fromkeys(("minimize", "least_squares", "root", "fmin", "basinhopping"), SCIPY),
    "curve_fit": "SciPy has it: scipy.optimize.curve_fit(f, x, y, jac=df) takes compiled programs",
    **dict.fromkeys(
        ("solve_ivp", "odeint", "ode"),
        "SciPy has it: scipy.integrate.solve_ivp(f, span, start) takes a compiled f; to "
        "differentiate a solution write its steps with gc.scan or gc.while_loop",
    ),
    **dict.fromkeys(("quad", "integrate"), "for samples: gc.trapezoid(y, x, dim={0!r})"),
    **dict.fromkeys(("coords", "attrs", "assign_coords", "indexes", "drop_vars"), COORDINATES),
    **dict.fromkeys(
        ("dropout", "Dropout"),
        "multiply by a mask that is an input and that NumPy draws: "
        "x * mask / keep, where keep is the share of ones",
    ),
    **dict.fromkeys(
        ("cross_entropy", "nll_loss", "softmax_cross_entropy"),
        "write -gc.take_along(gc.special.log_softmax(x, dim={0!r}), label, dim={0!r}).mean()",
    ),
    **dict.fromkeys(
        ("binary_cross_entropy", "bce_loss", "binary_cross_entropy_with_logits"),
        "write (gc.special.softplus(x) - y * x).mean(), where x is the logit",
    ),
    **dict.fromkeys(("mse_loss", "mse", "mean_squared_error"), "write ((x - y) ** 2).mean()"),
    **dict.fromkeys(("Linear", "Dense", "Module", "layers", "Sequential", "linear"), STATE),
    **dict.fromkeys(
        ("layer_norm", "LayerNorm", "normalize", "batch_norm"),
        "write (x - x.mean({0!r})) / gc.sqrt(x.var({0!r}) + 1e-5)",
    ),
    **dict.fromkeys(("embedding", "Embedding", "gather"), "write gc.take(x, index, dim={0!r})"),
    **dict.fromkeys(("scatter", "scatter_add", "index_add"), "write x.at[{{{0!r}: index}}].add(y)"),
    **dict.fromkeys(("rnn", "RNN", "lstm", "LSTM", "GRU"), "write its step as the body of gc.scan"),
    **dict.fromkeys(("lax", "numpy", "np", "jnp", "math", "ops"), "its functions are in gc itself"),
    **dict.fromkeys(
        ("manual_seed", "seed", "PRNGKey", "rand", "randn", "normal", "uniform", "bernoulli"),
        "draw with NumPy, np.random.default_rng(0).normal(size=3), and pass it as an input",
    ),
    **dict.fromkeys(
        ("from_numpy", "from_xarray", "from_array", "DataArray", "array", "ndarray"),
        "write gc.constant(array, dims), or pass the array to a compiled program",
    ),
    **dict.fromkeys(("Dataset", "DataLoader"), "pass its arrays: f(**dataset)"),
    "requires_grad": "leave it out: gc.grad(y, x) names what to differentiate by",
    "plot": "compute it first, y.eval(x=value), and draw the array with matplotlib",
    "apply_ufunc": "write gc.callback(function, result)(x) for a function of arrays",
    "pure_callback": "write gc.callback(function, result)(x) for a function of arrays",
    "compiled": "write gc.compile(inputs, outputs)",
    "shard_map": GPU,
    "pmap": "write gc.vectorize(outputs, {{x: x_with_more_dims}}): one CPU runs it",
}
"""Cures for names that have no single replacement here; {0!r} is a dim, {1} the name."""

VALUES = ("values", "data", "item", "tolist", "numpy", "to_numpy", "compute", "load")
"""The names that other libraries have for the values of a tensor."""

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
CUTOFF = 0.75
"""The least similarity at which one name is suggested for another."""


def instead(name: str, space: str = "", dims: tuple[str, ...] = (), axis: int | None = None) -> str:
    """The replacement for `name` of NumPy or another library, or the most similar name, or "".

    Functions of the module `space` come before others. `dims` are the dims of the tensor in
    question, `axis` is the position that was given for one of them.
    """
    return exactly(name, space, dims, axis) or nearly(name, space)


def exactly(name: str, space: str = "", dims: tuple[str, ...] = (), axis: int | None = None) -> str:
    """The replacement for `name` from the table or among our functions, or ""."""
    given = axis is not None and -len(dims) <= axis < len(dims)
    dim, *_ = dims[axis:] if given else dims or ("row",)
    if name in ELSEWHERE and name not in public(space):
        return ELSEWHERE[name].format(dim, name)
    if name in INSTEAD:
        return f"use {INSTEAD[name].format(dim, name)}"
    for candidate in sorted(("", *SPACES), key=lambda candidate: candidate != space):
        ours = public(candidate)
        if name in ours or (name.startswith("nan") and name[3:] in ours):
            more = [] if name in ours else ["skipna=True"]
            key = name if name in ours else name[3:]
            over = (dim,) if given else dims
            arguments = [*argument_texts(ours[key], dim, over), *more]
            return f"use {public_path(candidate, key)}({', '.join(arguments)})"
    return ""


def nearly(name: str, space: str = "") -> str:
    """A suggestion of the most similar public name, preferably in `space`, or ""."""
    spaces: dict[str, str] = {}
    for candidate in sorted(("", *SPACES), key=lambda candidate: candidate != space):
        for key in contents.names(candidate):
            spaces.setdefault(key, candidate)
    near = get_close_matches(name, spaces, 1, CUTOFF)
    return f"did you mean {public_path(spaces[near[0]], near[0])}?" if near else ""


def argument_texts(function: Callable[..., Any], dim: str, over: Sequence[str]) -> list[str]:
    """The required arguments of `function`, as text, with `dim`, or the dims it is `over`."""
    parameters = inspect.signature(function).parameters
    needed = [key for key, p in parameters.items() if p.default is p.empty and p.kind in POSITIONAL]
    shown = [key for key in needed if key not in ("dim", "dims")]
    if "dim" in parameters:
        return [*shown, f"dim={dim!r}"]
    if "dims" not in parameters:
        return shown
    if len(over) > 1:
        return [*shown, f"dims={tuple(over[-2:])!r}"]
    return [*shown, f"dims={dim!r}"] if "str |" in str(parameters["dims"].annotation) else shown


def absent(space: str = "") -> Callable[[str], NoReturn]:
    """The `__getattr__` of graphcore, or of one of its modules, for names that it lacks."""

    def refuse(name: str) -> NoReturn:
        if name.startswith("_"):  # a protocol that Python or a library looks for
            raise AttributeError(name)
        listed = f"dir(gc.{space})" if space else "dir(gc)"
        cure = instead(name, space) or f"{listed} lists all names"
        whole = f"graphcore.{space}" if space else "graphcore"
        raise refusal(whole, f"has no {name!r}", cure=cure, kind=GraphAttributeError)

    return refuse


def attribute(x: Base, name: str) -> GraphError:
    """The error for `x.name`, an attribute that tensors do not have."""
    known = [word for word in dir(x) if not word.startswith("_")]
    if name in VALUES:
        cure = x._way_to_evaluate()
    elif name in x.dims:
        cure = dim_cure(name)
    elif found := exactly(name, "", x.dims):
        cure = found
    elif near := get_close_matches(name, x.dims, 1, CUTOFF):
        cure = dim_cure(near[0])
    elif near := get_close_matches(name, known, 1, CUTOFF):
        cure = f"did you mean {near[0]!r}?"
    else:
        cure = nearly(name) or "dir(x) lists the methods; the functions are in dir(gc)"
    reason = f"has no attribute {name!r}"
    return refusal("Tensor", reason, x, cure=cure, kind=GraphAttributeError)


class Listing:
    """An object whose error for an unknown attribute names those that it has."""

    __slots__ = ()

    if not TYPE_CHECKING:  # as in Tensor

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            known = [word for word in dir(self) if not word.startswith("_")]
            near = get_close_matches(name, known, 1, CUTOFF)
            cure = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
            reason = f"has no attribute {name!r}"
            raise refusal(type(self).__name__, reason, cure=cure, kind=GraphAttributeError)


def dim_cure(dim: str) -> str:
    """The replacement for `x.dim`."""
    return f"{dim!r} is a dim: x.sizes[{dim!r}] is its size, x.isel({dim}=0) a part"
