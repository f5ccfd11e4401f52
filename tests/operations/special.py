"""Special functions and the softmax family."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import graphcore as gc
from tests.operations.case import Case, Input, real, two, ufunc

SPECIAL: dict[str, tuple[Any, tuple[Input, ...]]] = {
    "sigmoid": (scipy.special.expit, real()),
    "expit": (scipy.special.expit, real()),
    "softplus": (lambda x: np.logaddexp(0, x).astype(np.result_type(x, np.float32)), real()),
    "erf": (scipy.special.erf, real()),
    "erfc": (scipy.special.erfc, real()),
    "gammaln": (scipy.special.gammaln, real(0.3, 4)),
    "digamma": (scipy.special.digamma, real(0.3, 4)),
    "psi": (scipy.special.psi, real(0.3, 4)),
    "xlogy": (scipy.special.xlogy, two((-2, 2), (0.3, 2))),
    "xlog1py": (scipy.special.xlog1py, two((-2, 2), (-0.5, 2))),
}


def softmaxes(name: str, dims: Any) -> Case:
    """A function of the softmax family; SciPy's of an array and its axes."""

    def theirs(x: Any) -> Any:
        over = x.dims if dims is None else tuple(np.atleast_1d(dims))
        axis = tuple(x.dims.index(dim) for dim in over)
        function = getattr(scipy.special, name)
        if name == "logsumexp":
            if not x.size:
                return x.sum(over) - x.dtype.type(np.inf)
            return x.reduce(lambda values, axis: function(values, axis=axis), over)
        return x.copy(data=function(x.values, axis=axis)) if x.size else x

    return Case(lambda x: getattr(gc.special, name)(x, dims), theirs, batch=dims is not None)


CASES: dict[str, Case] = {
    **{n: Case(getattr(gc.special, n), ufunc(f), given) for n, (f, given) in SPECIAL.items()},
    **{
        f"{name} {dims}": softmaxes(name, dims)
        for name in ("softmax", "log_softmax", "logsumexp")
        for dims in ("row", ["row", "col"], None)
    },
}  # fmt: skip
