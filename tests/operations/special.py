"""Special functions and the softmax family."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

import graphcore as gc
from tests.operations.case import Case, Input, real, two, ufunc

ORDER = Input("row batch", 0, 4, "int64")
UNIT = (0.1, 0.9)


SPECIAL: dict[str, tuple[Any, tuple[Input, ...]]] = {
    **{
        name: (getattr(sp, name), real(*bounds))
        for names, bounds in {
            "expit log_expit exprel cosm1 erf erfc erfcx dawsn ndtr log_ndtr": (-2, 2),
            "j0 j1 i0 i0e i1 i1e ellipe": (0.2, 0.9),
            "ellipk": (-2, 0.9),
            "gamma rgamma gammaln loggamma gammasgn digamma psi": (0.3, 4),
            "logit ndtri erfinv entr spence": UNIT,
            "erfcinv": (0.1, 1.9),
            "ndtri_exp": (-5, -0.1),
            "y0 y1 k0 k0e k1 k1e exp1 expi": (0.4, 3),
        }.items()
        for name in names.split()
    },
    **{
        name: (getattr(sp, name), two(*bounds))
        for names, bounds in {
            "owens_t": ((-2, 2), (-2, 2)),
            "xlogy": ((-2, 2), (0.3, 2)),
            "xlog1py": ((-2, 2), (-0.5, 2)),
            "rel_entr kl_div poch binom beta betaln": ((0.3, 2), (0.4, 2)),
            "gammainc gammaincc": ((0.4, 3), (0.1, 4)),
            "gammaincinv gammainccinv": ((0.6, 3), UNIT),
            "huber": ((0.3, 2), (-2, 2)),
        }.items()
        for name in names.split()
    },
    **{
        name: (getattr(sp, name), (ORDER, Input("col row", 0.3, 3)))
        for name in ("jv", "jn", "yv", "iv", "ive", "kv", "kve")
    },
    "yn": (sp.yv, (ORDER, Input("col row", 0.3, 3))),
    **{
        name: (getattr(sp, name), (Input("row", 0.6, 2), Input("col", 0.6, 2), Input("row", *UNIT)))
        for name in ("betainc", "betaincc", "betaincinv", "betainccinv")
    },
    "sigmoid": (sp.expit, real()),
    "softplus": (lambda x: np.logaddexp(0, x).astype(np.result_type(x, np.float32)), real()),
    "log1mexp": (lambda x: np.log1p(-np.exp(x)), real(-3, -0.2)),
    "zeta": (sp.zeta, (Input("row batch", 2, 5, "int64"), Input("col row", 0.3, 3))),
    "hyp1f1": (sp.hyp1f1, (ORDER, Input("row", 1, 4, "int64"), Input("col row"))),
    "hyp2f1": (
        sp.hyp2f1,
        (ORDER, Input("row", 1, 3, "int64"), Input("col", 1, 4, "int64"), Input("row", -2, 0.8)),
    ),
    "pseudo_huber": (sp.pseudo_huber, two((0.3, 2), (-2, 2))),
}


def formula(ours: Any, theirs: Any, *bounds: float) -> Case:
    """A function of one tensor; SciPy's may leave the dtype, or refuse nothing."""
    return Case(
        ours, ufunc(lambda x: np.asarray(theirs(x), x.dtype) if x.size else x), real(*bounds)
    )


FORMULAS: dict[str, Case] = {
    **{
        f"polygamma {n}": formula(
            lambda x, n=n: gc.special.polygamma(n, x), lambda x, n=n: sp.polygamma(n, x), 0.5, 3
        )
        for n in range(4)
    },
    **{
        f"multigammaln {d}": formula(
            lambda x, d=d: gc.special.multigammaln(x, d), lambda x, d=d: sp.multigammaln(x, d), 2, 5
        )
        for d in (1, 3)
    },
    **{
        f"expn {n}": formula(
            lambda x, n=n: gc.special.expn(n, x), lambda x, n=n: sp.expn(n, x), 0.4, 3
        )
        for n in (0, 1, 2, 5)
    },
}


def softmaxes(name: str, dims: Any) -> Case:
    """A function of the softmax family; SciPy's of an array and its axes."""

    def theirs(x: Any) -> Any:
        over = x.dims if dims is None else tuple(np.atleast_1d(dims))
        axis = tuple(x.dims.index(dim) for dim in over)
        function = getattr(sp, name)
        if name == "logsumexp":
            if not x.size:
                return x.sum(over) - x.dtype.type(np.inf)
            return x.reduce(lambda values, axis: function(values, axis=axis), over)
        return x.copy(data=function(x.values, axis=axis)) if x.size else x

    return Case(lambda x: getattr(gc.special, name)(x, dims), theirs, batch=dims is not None)


CASES: dict[str, Case] = {
    **{n: Case(getattr(gc.special, n), ufunc(f), given) for n, (f, given) in SPECIAL.items()},
    **FORMULAS,
    **{
        f"{name} {dims}": softmaxes(name, dims)
        for name in ("softmax", "log_softmax", "logsumexp")
        for dims in ("row", ["row", "col"], None)
    },
}  # fmt: skip
