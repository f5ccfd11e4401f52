"""Special functions that are one elementwise op each, under SciPy's names."""

from __future__ import annotations

from typing import Protocol

from graphcore.frontend.core.base import Tensor
from graphcore.frontend.core.lift import Operand, apply
from graphcore.frontend.pointwise.elementwise import binary, document, unary
from graphcore.ir.op import Op
from graphcore.ops import special as ops

__all__ = [
    "beta",
    "betainc",
    "betaincc",
    "betainccinv",
    "betaincinv",
    "betaln",
    "binom",
    "cosm1",
    "dawsn",
    "digamma",
    "ellipe",
    "ellipk",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "exprel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "gammasgn",
    "hyp1f1",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "ive",
    "j0",
    "j1",
    "jn",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kl_div",
    "kv",
    "kve",
    "log1mexp",
    "log_ndtr",
    "loggamma",
    "logit",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "owens_t",
    "poch",
    "psi",
    "rel_entr",
    "rgamma",
    "sigmoid",
    "softplus",
    "spence",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "yn",
    "yv",
    "zeta",
]


class Ternary(Protocol):
    """A function of three tensors or numbers."""

    __name__: str

    def __call__(self, x: Operand, y: Operand, z: Operand) -> Tensor:
        """The function of each three values."""


class Quaternary(Protocol):
    """A function of four tensors or numbers."""

    __name__: str

    def __call__(self, x: Operand, y: Operand, z: Operand, w: Operand) -> Tensor:
        """The function of each four values."""


def ternary(op: Op) -> Ternary:
    """The function of three operands that `op` computes."""

    def function(x: Operand, y: Operand, z: Operand) -> Tensor:
        return apply(op, x, y, z)

    document(function, op, "xyz", path="special.")
    return function


def quaternary(op: Op) -> Quaternary:
    """The function of four operands that `op` computes."""

    def function(x: Operand, y: Operand, z: Operand, w: Operand) -> Tensor:
        return apply(op, x, y, z, w)

    document(function, op, "xyzw", path="special.")
    return function


sigmoid = expit = unary(ops.sigmoid, path="special.")
softplus = unary(ops.softplus, path="special.")
log1mexp = unary(ops.log1mexp, path="special.")
logit = unary(ops.logit, path="special.")
xlogy = binary(ops.xlogy, path="special.")
xlog1py = binary(ops.xlog1py, path="special.")
entr = unary(ops.entr, path="special.")
rel_entr = binary(ops.rel_entr, path="special.")
kl_div = binary(ops.kl_div, path="special.")
exprel = unary(ops.exprel, path="special.")
cosm1 = unary(ops.cosm1, path="special.")

erf = unary(ops.erf, path="special.")
erfc = unary(ops.erfc, path="special.")
erfcx = unary(ops.erfcx, path="special.")
erfinv = unary(ops.erfinv, path="special.")
erfcinv = unary(ops.erfcinv, path="special.")
dawsn = unary(ops.dawsn, path="special.")
ndtr = unary(ops.ndtr, path="special.")
log_ndtr = unary(ops.log_ndtr, path="special.")
ndtri = unary(ops.ndtri, path="special.")
ndtri_exp = unary(ops.ndtri_exp, path="special.")
owens_t = binary(ops.owens_t, path="special.")

gamma = unary(ops.gamma, path="special.")
rgamma = unary(ops.rgamma, path="special.")
gammaln = unary(ops.gammaln, path="special.")
loggamma = unary(ops.loggamma, path="special.")
gammasgn = unary(ops.gammasgn, path="special.")
digamma = psi = unary(ops.digamma, path="special.")
zeta = binary(ops.zeta, path="special.")
poch = binary(ops.poch, path="special.")
binom = binary(ops.binom, path="special.")
beta = binary(ops.beta, path="special.")
betaln = binary(ops.betaln, path="special.")
gammainc = binary(ops.gammainc, path="special.")
gammaincc = binary(ops.gammaincc, path="special.")
gammaincinv = binary(ops.gammaincinv, path="special.")
gammainccinv = binary(ops.gammainccinv, path="special.")
betainc = ternary(ops.betainc)
betaincc = ternary(ops.betaincc)
betaincinv = ternary(ops.betaincinv)
betainccinv = ternary(ops.betainccinv)

j0 = unary(ops.j0, path="special.")
j1 = unary(ops.j1, path="special.")
jv = jn = binary(ops.jv, path="special.")
y0 = unary(ops.y0, path="special.")
y1 = unary(ops.y1, path="special.")
yv = yn = binary(ops.yv, path="special.")
i0 = unary(ops.i0, path="special.")
i1 = unary(ops.i1, path="special.")
iv = binary(ops.iv, path="special.")
i0e = unary(ops.i0e, path="special.")
i1e = unary(ops.i1e, path="special.")
ive = binary(ops.ive, path="special.")
k0 = unary(ops.k0, path="special.")
k1 = unary(ops.k1, path="special.")
kv = binary(ops.kv, path="special.")
k0e = unary(ops.k0e, path="special.")
k1e = unary(ops.k1e, path="special.")
kve = binary(ops.kve, path="special.")

exp1 = unary(ops.exp1, path="special.")
expi = unary(ops.expi, path="special.")
spence = unary(ops.spence, path="special.")
ellipk = unary(ops.ellipk, path="special.")
ellipe = unary(ops.ellipe, path="special.")
hyp1f1 = ternary(ops.hyp1f1)
hyp2f1 = quaternary(ops.hyp2f1)
