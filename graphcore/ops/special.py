"""Special functions: elementwise ops that no NumPy ufunc computes, mostly SciPy's."""

from __future__ import annotations

from .elementwise import elementwise

sigmoid = elementwise("sigmoid", "expit", "1 / (1 + e ** -x)")
softplus = elementwise("softplus", "softplus", "log(1 + e ** x), without overflow")
log1mexp = elementwise("log1mexp", "log1mexp", "log(1 - e ** x) for x below 0, to all digits")
logit = elementwise("logit", "logit", "log(x / (1 - x)), the inverse of the sigmoid")
xlogy = elementwise("xlogy", "xlogy", "x * log(y); 0 where x is 0, even if y is")
xlog1py = elementwise("xlog1py", "xlog1py", "x * log(1 + y); 0 where x is 0")
entr = elementwise("entr", "entr", "-x * log(x); 0 at 0 and -inf below")
rel_entr = elementwise("rel_entr", "rel_entr", "x * log(x / y); 0 where x is 0")
kl_div = elementwise("kl_div", "kl_div", "x * log(x / y) - x + y; y where x is 0")
exprel = elementwise("exprel", "exprel", "(e ** x - 1) / x, and 1 at 0")
cosm1 = elementwise("cosm1", "cosm1", "cos(x) - 1, accurate near 0")

erf = elementwise("erf", "erf", "error function of x")
erfc = elementwise("erfc", "erfc", "1 - erf(x), accurate for large x")
erfcx = elementwise("erfcx", "erfcx", "e ** (x * x) * erfc(x), without underflow")
erfinv = elementwise("erfinv", "erfinv", "the value whose erf is x")
erfcinv = elementwise("erfcinv", "erfcinv", "the value whose erfc is x")
dawsn = elementwise("dawsn", "dawsn", "Dawson's integral of e ** (t * t - x * x) from t = 0 to x")
ndtr = elementwise("ndtr", "ndtr", "probability that a standard normal variable is below x")
log_ndtr = elementwise("log_ndtr", "log_ndtr", "log(ndtr(x)), accurate in both tails")
ndtri = elementwise("ndtri", "ndtri", "the value whose ndtr is x")
ndtri_exp = elementwise("ndtri_exp", "ndtri_exp", "the value whose log_ndtr is x")
owens_t = elementwise(
    "owens_t", "owens_t", "Owen's T: probability that a normal X > x and 0 < Y < y * X"
)

gamma = elementwise("gamma", "gamma", "gamma function of x")
rgamma = elementwise("rgamma", "rgamma", "1 / gamma(x), 0 at the poles of gamma")
gammaln = elementwise("gammaln", "gammaln", "log |gamma(x)|")
loggamma = elementwise("loggamma", "loggamma", "log(gamma(x)); nan below 0")
gammasgn = elementwise("gammasgn", "gammasgn", "sign of gamma(x)")
digamma = elementwise("digamma", "digamma", "derivative of gammaln at x")
zeta = elementwise("zeta", "zeta", "Hurwitz zeta function of exponent x at y", unknown=(0,))
poch = elementwise("poch", "poch", "Pochhammer symbol gamma(x + y) / gamma(x)")
binom = elementwise("binom", "binom", "binomial coefficient, x choose y, of real numbers")
beta = elementwise("beta", "beta", "gamma(x) * gamma(y) / gamma(x + y)")
betaln = elementwise("betaln", "betaln", "log |beta(x, y)|")
gammainc = elementwise(
    "gammainc", "gammainc", "lower incomplete gamma function of shape x at y, from 0 to 1"
)
gammaincc = elementwise("gammaincc", "gammaincc", "1 - gammainc(x, y), accurate for large y")
gammaincinv = elementwise("gammaincinv", "gammaincinv", "the z with gammainc(x, z) = y")
gammainccinv = elementwise("gammainccinv", "gammainccinv", "the z with gammaincc(x, z) = y")
betainc = elementwise(
    "betainc", "betainc", "incomplete beta function of parameters x and y at z, from 0 to 1"
)
betaincc = elementwise("betaincc", "betaincc", "1 - betainc(x, y, z), accurate for z near 1")
betaincinv = elementwise("betaincinv", "betaincinv", "the w with betainc(x, y, w) = z")
betainccinv = elementwise("betainccinv", "betainccinv", "the w with betaincc(x, y, w) = z")

j0 = elementwise("j0", "j0", "Bessel function of the first kind, of order 0 at x")
j1 = elementwise("j1", "j1", "Bessel function of the first kind, of order 1 at x")
jv = elementwise("jv", "jv", "Bessel function of the first kind, of order x at y", unknown=(0,))
y0 = elementwise("y0", "y0", "Bessel function of the second kind, of order 0 at x")
y1 = elementwise("y1", "y1", "Bessel function of the second kind, of order 1 at x")
yv = elementwise("yv", "yv", "Bessel function of the second kind, of order x at y", unknown=(0,))
i0 = elementwise("i0", "i0", "modified Bessel function of the first kind, of order 0 at x")
i1 = elementwise("i1", "i1", "modified Bessel function of the first kind, of order 1 at x")
iv = elementwise(
    "iv", "iv", "modified Bessel function of the first kind, of order x at y", unknown=(0,)
)
i0e = elementwise("i0e", "i0e", "i0(x) * e ** -|x|, without overflow")
i1e = elementwise("i1e", "i1e", "i1(x) * e ** -|x|, without overflow")
ive = elementwise("ive", "ive", "iv(x, y) * e ** -|y|, without overflow", unknown=(0,))
k0 = elementwise("k0", "k0", "modified Bessel function of the second kind, of order 0 at x")
k1 = elementwise("k1", "k1", "modified Bessel function of the second kind, of order 1 at x")
kv = elementwise(
    "kv", "kv", "modified Bessel function of the second kind, of order x at y", unknown=(0,)
)
k0e = elementwise("k0e", "k0e", "k0(x) * e ** x, without underflow")
k1e = elementwise("k1e", "k1e", "k1(x) * e ** x, without underflow")
kve = elementwise("kve", "kve", "kv(x, y) * e ** y, without underflow", unknown=(0,))

exp1 = elementwise("exp1", "exp1", "exponential integral of e ** -t / t from x to infinity")
expi = elementwise("expi", "expi", "exponential integral of e ** t / t from -infinity to x")
expn = elementwise(
    "expn", "expn", "exponential integral of e ** (-y * t) / t ** x from 1 to infinity", (0,)
)
spence = elementwise("spence", "spence", "Spence's integral of log(t) / (1 - t) from 1 to x")
ellipk = elementwise("ellipk", "ellipk", "complete elliptic integral, first kind, parameter x")
ellipe = elementwise("ellipe", "ellipe", "complete elliptic integral, second kind, parameter x")
hyp1f1 = elementwise(
    "hyp1f1", "hyp1f1", "confluent hypergeometric function of parameters x and y at z", (0, 1)
)
hyp2f1 = elementwise(
    "hyp2f1", "hyp2f1", "Gauss's hypergeometric function of parameters x, y and z at w", (0, 1, 2)
)

# What derivatives need beyond SciPy. The first operands are orders and shifts: integers, constant.
gamma_density = elementwise(
    "gamma_density",
    "gamma_density",
    "n-th derivative by a of z ** (a - 1) * e ** -z / gamma(a)",
    (0,),
)
gammainc_by = elementwise(
    "gammainc_by", "gammainc_by", "n-th derivative by a of gammainc(a, z)", (0,)
)
beta_density = elementwise(
    "beta_density",
    "beta_density",
    "m-th derivative by a and n-th by b of "
    "z ** (a-i-1) * (1-z) ** (b-j-1) * gamma(a+b) / gamma(a-i) / gamma(b-j)",
    (0, 1, 2, 3),
)
betainc_by = elementwise(
    "betainc_by", "betainc_by", "m-th derivative by a and n-th by b of betainc(a, b, z)", (0, 1)
)
