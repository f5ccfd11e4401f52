"""Special functions: elementwise ops that no NumPy ufunc computes, mostly SciPy's."""

from __future__ import annotations

from graphcore.ir import Op

from .elementwise import elementwise


def special(name: str, doc: str, unknown: tuple[int, ...] = ()) -> Op:
    """An elementwise op computed by the special function of its name."""
    return elementwise(name, doc, name, unknown)


sigmoid = elementwise("sigmoid", "`1 / (1 + e ** -x)`", "expit")
softplus = special("softplus", "`log(1 + e ** x)`, without overflow")
log1mexp = special("log1mexp", "`log(1 - e ** x)` for `x` below 0, to all digits")
logit = special("logit", "`log(x / (1 - x))`, the inverse of the sigmoid")
xlogy = special("xlogy", "`x * log(y)`; 0 where `x` is 0, even if `y` is")
xlog1py = special("xlog1py", "`x * log(1 + y)`; 0 where `x` is 0")
entr = special("entr", "`-x * log(x)`; 0 at 0 and -inf below")
rel_entr = special("rel_entr", "`x * log(x / y)`; 0 where `x` is 0")
kl_div = special("kl_div", "`x * log(x / y) - x + y`; `y` where `x` is 0")
exprel = special("exprel", "`(e ** x - 1) / x`, and 1 at 0")
cosm1 = special("cosm1", "`cos(x) - 1`, accurate near 0")

erf = special("erf", "Error function of `x`")
erfc = special("erfc", "`1 - erf(x)`, accurate for large `x`")
erfcx = special("erfcx", "`e ** (x * x) * erfc(x)`, without underflow")
erfinv = special("erfinv", "The value whose `erf` is `x`")
erfcinv = special("erfcinv", "The value whose `erfc` is `x`")
dawsn = special("dawsn", "Dawson's integral of `e ** (t * t - x * x)` from `t = 0` to `x`")
ndtr = special("ndtr", "Probability that a standard normal variable is below `x`")
log_ndtr = special("log_ndtr", "`log(ndtr(x))`, accurate in both tails")
ndtri = special("ndtri", "The value whose `ndtr` is `x`")
ndtri_exp = special("ndtri_exp", "The value whose `log_ndtr` is `x`")
owens_t = special("owens_t", "Owen's T: probability that a normal `X > x` and `0 < Y < y * X`")

gamma = special("gamma", "Gamma function of `x`")
rgamma = special("rgamma", "`1 / gamma(x)`, 0 at the poles of `gamma`")
gammaln = special("gammaln", "`log |gamma(x)|`")
loggamma = special("loggamma", "`log(gamma(x))`; nan below 0")
gammasgn = special("gammasgn", "Sign of `gamma(x)`")
digamma = special("digamma", "Derivative of `gammaln` at `x`")
zeta = special("zeta", "Hurwitz zeta function of exponent `x` at `y`", unknown=(0,))
poch = special("poch", "Pochhammer symbol `gamma(x + y) / gamma(x)`")
binom = special("binom", "Binomial coefficient, `x` choose `y`, of real numbers")
beta = special("beta", "`gamma(x) * gamma(y) / gamma(x + y)`")
betaln = special("betaln", "`log |beta(x, y)|`")
gammainc = special("gammainc", "Lower incomplete gamma function of shape `x` at `y`, from 0 to 1")
gammaincc = special("gammaincc", "`1 - gammainc(x, y)`, accurate for large `y`")
gammaincinv = special("gammaincinv", "The `z` with `gammainc(x, z) = y`")
gammainccinv = special("gammainccinv", "The `z` with `gammaincc(x, z) = y`")
betainc = special(
    "betainc", "Incomplete beta function of parameters `x` and `y` at `z`, from 0 to 1"
)
betaincc = special("betaincc", "`1 - betainc(x, y, z)`, accurate for `z` near 1")
betaincinv = special("betaincinv", "The `w` with `betainc(x, y, w) = z`")
betainccinv = special("betainccinv", "The `w` with `betaincc(x, y, w) = z`")

j0 = special("j0", "Bessel function of the first kind, of order 0 at `x`")
j1 = special("j1", "Bessel function of the first kind, of order 1 at `x`")
jv = special("jv", "Bessel function of the first kind, of order `x` at `y`", unknown=(0,))
y0 = special("y0", "Bessel function of the second kind, of order 0 at `x`")
y1 = special("y1", "Bessel function of the second kind, of order 1 at `x`")
yv = special("yv", "Bessel function of the second kind, of order `x` at `y`", unknown=(0,))
i0 = special("i0", "Modified Bessel function of the first kind, of order 0 at `x`")
i1 = special("i1", "Modified Bessel function of the first kind, of order 1 at `x`")
iv = special("iv", "Modified Bessel function of the first kind, of order `x` at `y`", unknown=(0,))
i0e = special("i0e", "`i0(x) * e ** -|x|`, without overflow")
i1e = special("i1e", "`i1(x) * e ** -|x|`, without overflow")
ive = special("ive", "`iv(x, y) * e ** -|y|`, without overflow", unknown=(0,))
k0 = special("k0", "Modified Bessel function of the second kind, of order 0 at `x`")
k1 = special("k1", "Modified Bessel function of the second kind, of order 1 at `x`")
kv = special("kv", "Modified Bessel function of the second kind, of order `x` at `y`", unknown=(0,))
k0e = special("k0e", "`k0(x) * e ** x`, without underflow")
k1e = special("k1e", "`k1(x) * e ** x`, without underflow")
kve = special("kve", "`kv(x, y) * e ** y`, without underflow", unknown=(0,))

exp1 = special("exp1", "Exponential integral of `e ** -t / t` from `x` to infinity")
expi = special("expi", "Exponential integral of `e ** t / t` from -infinity to `x`")
expn = special("expn", "Exponential integral of `e ** (-y * t) / t ** x` from 1 to infinity", (0,))
spence = special("spence", "Spence's integral of `log(t) / (1 - t)` from 1 to `x`")
ellipk = special("ellipk", "Complete elliptic integral, first kind, of parameter `x = k**2`")
ellipe = special("ellipe", "Complete elliptic integral, second kind, of parameter `x = k**2`")
hyp1f1 = special(
    "hyp1f1", "Confluent hypergeometric function of parameters `x` and `y` at `z`", (0, 1)
)
hyp2f1 = special(
    "hyp2f1", "Gauss's hypergeometric function of parameters `x`, `y` and `z` at `w`", (0, 1, 2)
)
pseudo_huber = special(
    "pseudo_huber", "`x ** 2 * (sqrt(1 + (y / x) ** 2) - 1)` for `x` from 0 on, a smooth Huber loss"
)

# Slopes, kept whole until they are differentiated: their own slopes lose no digits either.
sigmoid_slope = special("sigmoid_slope", "`y * (1 - y)` for `y = sigmoid(x)`")
tanh_slope = special("tanh_slope", "`1 - y * y` for `y = tanh(x)`")
arctan_slope = special("arctan_slope", "`1 / (1 + x * x)`")
cosine = special("cosine", "`x / hypot(x, y)`, and 0 at the origin")
inversion = special("inversion", "`x / (x * x + y * y)`, and 0 at the origin")
inversion_slope = special(
    "inversion_slope", "`(y * y - x * x) / (x * x + y * y) ** 2`, and 0 at the origin"
)
square_complement = special("square_complement", "`1 - x * x`, accurate near 1")
pseudo_huber_by_delta = special("pseudo_huber_by_delta", "`(hypot(x, y) - x) ** 2 / hypot(x, y)`")
pseudo_huber_by_r = special("pseudo_huber_by_r", "`x * y / hypot(x, y)`")

# Functions that derivatives need and SciPy lacks. The first operands are constant integers: orders
# and shifts.
gamma_density = special(
    "gamma_density",
    "n-th derivative by a of z ** (a - 1) * e ** -z / gamma(a)",
    (0,),
)
digamma_step = special(
    "digamma_step",
    "n-th derivative of `digamma(z + m) - digamma(z)`, both of positive numbers",
    (0,),
)
gammainc_by = special("gammainc_by", "n-th derivative by a of gammainc(a, z)", (0,))
beta_density = special(
    "beta_density",
    "m-th derivative by a and n-th by b of "
    "z ** (a-i-1) * (1-z) ** (b-j-1) * gamma(a+b) / gamma(a-i) / gamma(b-j)",
    (0, 1, 2, 3),
)
betainc_by = special("betainc_by", "m-th derivative by a and n-th by b of betainc(a, b, z)", (0, 1))
