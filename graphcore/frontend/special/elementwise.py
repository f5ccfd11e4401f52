"""Special functions that are one elementwise op each, under SciPy's names.

Every name is public but those with an underscore, so no list of names stands beside the table.
"""

import typing as _typing
from functools import partial as _partial

from graphcore.frontend.pointwise import families as _families
from graphcore.ops import special as _ops

_unary = _partial(_families.unary, path="special.")
_binary = _partial(_families.binary, path="special.")
_ternary, _quaternary = _families.ternary, _families.quaternary

sigmoid = expit = _unary(_ops.sigmoid)
softplus = _unary(_ops.softplus)
log1mexp = _unary(_ops.log1mexp)
logit = _unary(_ops.logit)
xlogy = _binary(_ops.xlogy)
xlog1py = _binary(_ops.xlog1py)
entr = _unary(_ops.entr)
rel_entr = _binary(_ops.rel_entr)
kl_div = _binary(_ops.kl_div)
exprel = _unary(_ops.exprel)
cosm1 = _unary(_ops.cosm1)

erf = _unary(_ops.erf)
erfc = _unary(_ops.erfc)
erfcx = _unary(_ops.erfcx)
erfinv = _unary(_ops.erfinv)
erfcinv = _unary(_ops.erfcinv)
dawsn = _unary(_ops.dawsn)
ndtr = _unary(_ops.ndtr)
log_ndtr = _unary(_ops.log_ndtr)
ndtri = _unary(_ops.ndtri)
ndtri_exp = _unary(_ops.ndtri_exp)
owens_t = _binary(_ops.owens_t)

gamma = _unary(_ops.gamma)
rgamma = _unary(_ops.rgamma)
gammaln = _unary(_ops.gammaln)
loggamma = _unary(_ops.loggamma)
gammasgn = _unary(_ops.gammasgn)
digamma = psi = _unary(_ops.digamma)
zeta = _binary(_ops.zeta)
poch = _binary(_ops.poch)
binom = _binary(_ops.binom)
beta = _binary(_ops.beta)
betaln = _binary(_ops.betaln)
gammainc = _binary(_ops.gammainc)
gammaincc = _binary(_ops.gammaincc)
gammaincinv = _binary(_ops.gammaincinv)
gammainccinv = _binary(_ops.gammainccinv)
betainc = _ternary(_ops.betainc)
betaincc = _ternary(_ops.betaincc)
betaincinv = _ternary(_ops.betaincinv)
betainccinv = _ternary(_ops.betainccinv)

j0 = _unary(_ops.j0)
j1 = _unary(_ops.j1)
jv = jn = _binary(_ops.jv)
y0 = _unary(_ops.y0)
y1 = _unary(_ops.y1)
yv = yn = _binary(_ops.yv)
i0 = _unary(_ops.i0)
i1 = _unary(_ops.i1)
iv = _binary(_ops.iv)
i0e = _unary(_ops.i0e)
i1e = _unary(_ops.i1e)
ive = _binary(_ops.ive)
k0 = _unary(_ops.k0)
k1 = _unary(_ops.k1)
kv = _binary(_ops.kv)
k0e = _unary(_ops.k0e)
k1e = _unary(_ops.k1e)
kve = _binary(_ops.kve)

exp1 = _unary(_ops.exp1)
expi = _unary(_ops.expi)
spence = _unary(_ops.spence)
ellipk = _unary(_ops.ellipk)
ellipe = _unary(_ops.ellipe)
hyp1f1 = _ternary(_ops.hyp1f1)
hyp2f1 = _quaternary(_ops.hyp2f1)

if not _typing.TYPE_CHECKING:  # type checkers find the public names by themselves
    __all__ = [name for name in dir() if not name.startswith("_")]
