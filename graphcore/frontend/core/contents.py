"""The public names by theme, in the order in which help() and the pages of the API show them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import ModuleType
from typing import Any

CONTENTS = {
    "Tensors, inputs and constants": {
        "Tensors": "Tensor",
        "Inputs and constants": "tensor inputs_like constant array default_dtype",
        "Filled": "full full_like ones ones_like zeros zeros_like",
        "Ranges": "arange linspace logspace geomspace one_hot vander",
    },
    "Elementwise": {
        "Arithmetic": """add subtract multiply divide true_divide floor_divide remainder mod fmod
            divmod negative positive absolute abs fabs sign reciprocal square sqrt cbrt power pow
            float_power hypot clip maximum minimum fmax fmin heaviside""",
        "Exponentials and logarithms": """exp exp2 expm1 log log2 log10 log1p logaddexp
            logaddexp2""",
        "Trigonometry": """sin cos tan arcsin asin arccos acos arctan atan arctan2 atan2 sinh cosh
            tanh arcsinh asinh arccosh acosh arctanh atanh sinc deg2rad radians rad2deg degrees""",
        "Rounding and parts of numbers": """round around rint floor ceil trunc fix modf frexp ldexp
            copysign signbit nextafter spacing""",
        "Comparison and choice": """equal not_equal less less_equal greater greater_equal isclose
            where select piecewise""",
        "Logic, integers and bits": """logical_and logical_or logical_xor logical_not bitwise_and
            bitwise_or bitwise_xor invert bitwise_not bitwise_invert left_shift bitwise_left_shift
            right_shift bitwise_right_shift bitwise_count gcd lcm""",
        "Missing and infinite values": """isnan isinf isfinite isposinf isneginf isnull notnull
            fillna dropna nan_to_num""",
        "Complex numbers and dtypes": """real imag conjugate conj angle isreal iscomplex astype""",
    },
    "Reductions and running": {
        "Reductions": "sum prod mean var std max min ptp all any count argmax argmin",
        "Running": """cumsum cumprod cummax cummin cumulative_sum cumulative_prod ffill bfill""",
        "Groups": "groupby segment_sum segment_prod segment_mean segment_max segment_min",
    },
    "Shape": {
        "Dims": """transpose rename swap_dims expand_dims squeeze broadcast broadcast_like stack
            unstack rearrange""",
        "Joining and splitting": "concat split unbind repeat tile",
        "Diagonals": "diag diagonal eye trace tri tril triu",
    },
    "Indexing and updates": {
        "Positions": "isel take take_along",
        "Slices and moves": "head tail thin flip roll shift",
    },
    "Order and statistics": {
        "Sorting and searching": """sort argsort top_k rank searchsorted digitize nonzero isin
            unique unique_all""",
        "Statistics": """median quantile average weighted cov corr bincount histogram interp
            interpolate_na""",
    },
    "Windows and convolution": {
        "Windows": "rolling coarsen windows overlap_add pad",
        "Convolution and pooling": "conv conv_transpose max_pool mean_pool",
        "Differences and integrals": "diff gradient trapezoid cumulative_trapezoid",
    },
    "Contraction": {"Contraction": "dot einsum cross norm"},
    "Loops and branches": {
        "Loops": "scan map fori_loop while_loop",
        "Branches": "cond switch",
        "Printing": "print",
    },
    "Derivatives": {
        "Derivatives": """grad value_and_grad pullback pushforward jacobian hessian hvp
            stop_gradient""",
        "Derivatives of your own": "custom_pullback callback checkpoint check_grads",
    },
    "Compiled programs and files": {
        "Compilation": "compile evaluate debug_print",
        "The compiled program": "Compiled",
        "Data larger than memory": "over_blocks",
        "Threads": "threads",
        "Devices": "Mesh join_processes",
        "Files": "save load",
    },
    "Functions and trees": {
        "Functions": "function Function vectorize ravel",
        "Kinds of arguments": "Operand Dim Tree",
    },
    "Errors": {"Errors": "GraphError GraphTypeError GraphValueError GraphIndexError GraphWarning"},
    "Modules": {"Modules": "special linalg fft signal nn tree optimize"},
}
"""The names of `gc` itself by theme and section. Where a value has several, the main is first."""

SPACES = {
    "special": {
        "Softmax family": "softmax log_softmax logsumexp logcumsumexp",
        "Sigmoids, entropies and losses": """expit sigmoid log_expit logit softplus log1mexp xlogy
            xlog1py entr rel_entr kl_div huber pseudo_huber exprel cosm1""",
        "Error functions and the normal distribution": """erf erfc erfcx erfinv erfcinv dawsn ndtr
            log_ndtr ndtri ndtri_exp owens_t""",
        "Gamma and beta functions": """gamma rgamma gammaln loggamma gammasgn multigammaln digamma
            psi polygamma zeta poch binom beta betaln gammainc gammaincc gammaincinv gammainccinv
            betainc betaincc betaincinv betainccinv""",
        "Bessel functions": """j0 j1 jv jn y0 y1 yv yn i0 i0e i1 i1e iv ive k0 k0e k1 k1e kv
            kve""",
        "Integrals and hypergeometric functions": """expn exp1 expi spence ellipk ellipe hyp1f1
            hyp2f1""",
    },
    "linalg": {
        "Equations": """solve solve_triangular solve_tridiagonal cho_solve lstsq polyfit inv
            pinv""",
        "Factors": "cholesky lu qr svd svdvals eig eigh eigvals eigvalsh polar",
        "Numbers of a matrix": "det slogdet norm matrix_rank trace",
        "Functions of a matrix": "matrix_power expm logm sqrtm",
        "Products and new matrices": """apply congruence cross outer kron matrix_transpose
            block_diag fill_triangular toeplitz""",
    },
    "fft": {
        "Transforms": "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn",
        "Frequencies": "fftfreq rfftfreq fftshift ifftshift",
    },
    "signal": {
        "Convolution and correlation": "convolve fftconvolve correlate",
        "Recursive filters and trends": "lfilter detrend",
        "Window functions": "hann hamming blackman bartlett",
    },
    "nn": {"Activations": "relu gelu silu", "Losses": "cross_entropy"},
    "tree": {"Trees": "map flatten unflatten leaves register"},
    "optimize": {
        "Methods": "sgd adam adamw rmsprop lion Optimizer",
        "Learning rates": "cosine_decay exponential_decay linear_warmup",
        "Gradients": "global_norm clip_by_global_norm",
    },
}
"""The names of the modules of `gc`, by section."""

HALF = 62
"""The width of a line of `describe` that shares it with another one."""


def themes(space: str = "") -> dict[str, dict[str, list[str]]]:
    """The names of `gc` by theme and section; a module of it is one theme of its own name."""
    found = {space: SPACES[space]} if space else CONTENTS
    return {
        theme: {title: names.split() for title, names in parts.items()}
        for theme, parts in found.items()
    }


def names(space: str = "") -> list[str]:
    """The public names of `gc`, or of one of its modules."""
    return [name for parts in themes(space).values() for some in parts.values() for name in some]


def group_names(listed: list[str], values: Mapping[str, Any]) -> list[list[str]]:
    """Names in order, those of one value together, the main name first."""
    groups: dict[int, list[str]] = {}
    for name in listed:
        groups.setdefault(id(values[name]), []).append(name)
    return list(groups.values())


def summary(name: str, value: object) -> str:
    """What a public name is, in one line: the first line of its docstring."""
    if name in ALIASES:
        return ALIASES[name]
    first = (inspect.getdoc(value) or "").partition("\n")[0]
    if isinstance(value, ModuleType):
        _, _, said = first.partition(": ")
        return said[:1].upper() + said[1:]
    head, elementwise, _ = first.partition(", elementwise")
    return f"{head}." if elementwise else first


ALIASES = {
    "Operand": "The type of an operand: a tensor, a number, or an array that names its axes.",
    "Dim": "One or more names of dims, or None for all.",
    "Tree": "Nested lists, tuples, dicts and dataclasses.",
}
"""Types that have no docstring of their own."""


def describe(doc: str | None, values: Mapping[str, Any], space: str = "") -> str | None:
    """The docstring of `gc`, or of one of its modules, with a line for each name."""
    if doc is None:  # python -OO drops it
        return None
    lines = [doc.rstrip()]
    for theme, parts in themes(space).items():
        sections = parts if space else {theme: list(chain.from_iterable(parts.values()))}
        for title, listed in sections.items():
            lines += ["", f"{title}:", *pair_lines(entries(listed, values))]
    return "\n".join(lines)


def entries(listed: list[str], values: Mapping[str, Any]) -> Iterator[str]:
    """A line for each name, with its other names."""
    for group in group_names(listed, values):
        said = summary(group[0], values[group[0]]).replace("`", "")
        yield f"{', '.join(group):14} {said.removesuffix('.')}"


def pair_lines(lines: Iterable[str]) -> Iterator[str]:
    """Lines, of which two short ones share one."""
    waiting = ""
    for line in lines:
        if waiting and max(len(waiting), len(line)) < HALF:
            yield f"  {waiting:{HALF}}{line}"
            waiting = ""
            continue
        if waiting:
            yield f"  {waiting}"
        waiting = line
    if waiting:
        yield f"  {waiting}"
