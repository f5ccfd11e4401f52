"""Twenty more PyMC models, as the public galleries have them; data are made up here."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt


def draws() -> np.random.Generator:
    return np.random.default_rng(0)


def hierarchical_poisson() -> Any:
    """Failures of pumps: Gamma rates with a Gamma and an exponential above them."""
    r = draws()
    t = r.uniform(1, 100, 40)
    y = r.poisson(0.3 * t)
    with pm.Model() as m:
        alpha = pm.Exponential("alpha", 1)
        beta = pm.Gamma("beta", 0.1, 1)
        rate = pm.Gamma("rate", alpha, beta, shape=40)
        pm.Poisson("y", rate * t, observed=y)
    return m


def zero_inflated_negbin() -> Any:
    r = draws()
    X = r.normal(size=(300, 3))
    y = r.negative_binomial(2, 0.3, 300) * (r.uniform(size=300) < 0.7)
    with pm.Model() as m:
        b = pm.Normal("b", 0, 1, shape=3)
        c = pm.Normal("c", 0, 1, shape=3)
        alpha = pm.HalfCauchy("alpha", 2)
        pm.ZeroInflatedNegativeBinomial(
            "y", psi=pm.math.sigmoid(pt.dot(X, c)), mu=pt.exp(pt.dot(X, b)), alpha=alpha, observed=y
        )
    return m


def ordered_probit() -> Any:
    r = draws()
    x = r.normal(size=(300, 2))
    y = r.integers(0, 5, 300)
    with pm.Model() as m:
        gaps = pm.Normal(
            "cuts",
            0,
            2,
            shape=4,
            transform=pm.distributions.transforms.ordered,
            initval=[-1.5, -0.5, 0.5, 1.5],
        )
        b = pm.Normal("b", 0, 1, shape=2)
        s = pm.Exponential("s", 1)
        pm.OrderedProbit("y", eta=pt.dot(x, b), cutpoints=gaps, sigma=s, observed=y)
    return m


def cox() -> Any:
    """Survival with a hazard that is constant on intervals, as counts of a Poisson."""
    r = draws()
    n, k = 44, 60
    time, event, metastasized = r.uniform(5, 200, n), r.integers(0, 2, n), r.integers(0, 2, n)
    bounds = np.linspace(0, 200, k + 1)
    last = np.searchsorted(bounds, time) - 1
    death = np.zeros((n, k))
    death[np.arange(n), last] = event
    exposure = np.clip(time[:, None] - bounds[:-1], 0, 200 / k)
    with pm.Model() as m:
        base = pm.Gamma("base", 0.01, 0.01, shape=k, initval=np.full(k, 0.05))
        beta = pm.Normal("beta", 0, 30)
        rate = pt.outer(pt.exp(beta * metastasized), base)
        pm.Poisson("y", rate * exposure + 1e-12, observed=death)
    return m


def truncated() -> Any:
    r = draws()
    x = r.uniform(-3, 3, 400)
    y = x + r.normal(size=400)
    kept = (y > -1) & (y < 2.5)
    with pm.Model() as m:
        slope, intercept = pm.Normal("slope", 0, 1), pm.Normal("intercept", 0, 1)
        s = pm.HalfNormal("s", 1)
        line = pm.Normal.dist(slope * x[kept] + intercept, s)
        pm.Truncated("y", line, lower=-1, upper=2.5, observed=y[kept])
    return m


def hurdle() -> Any:
    r = draws()
    x = r.normal(size=300)
    y = r.poisson(2, 300) * (r.uniform(size=300) < 0.6)
    with pm.Model() as m:
        a = pm.Normal("a", 0, 1, shape=2)
        b = pm.Normal("b", 0, 1, shape=2)
        alpha = pm.Exponential("alpha", 1)
        pm.HurdleNegativeBinomial(
            "y",
            psi=pm.math.sigmoid(a[0] + b[0] * x),
            mu=pt.exp(a[1] + b[1] * x),
            alpha=alpha,
            observed=y,
        )
    return m


def dirichlet_multinomial() -> Any:
    r = draws()
    y = r.multinomial(50, r.dirichlet([4, 2, 1, 1, 2]), size=10)
    with pm.Model() as m:
        frac = pm.Dirichlet("frac", np.ones(5))
        conc = pm.LogNormal("conc", 1, 1)
        pm.DirichletMultinomial("y", n=50, a=frac * conc, shape=(10, 5), observed=y)
    return m


def hsgp() -> Any:
    """Births by day: a Gaussian process by its basis functions."""
    r = draws()
    x = np.linspace(0, 10, 300)[:, None]
    y = r.poisson(np.exp(1 + np.sin(x[:, 0])))
    with pm.Model() as m:
        ls = pm.InverseGamma("ls", 5, 5)
        eta = pm.Exponential("eta", 1)
        gp = pm.gp.HSGP(m=[25], c=1.5, cov_func=eta**2 * pm.gp.cov.Matern52(1, ls))
        pm.Poisson("y", pt.exp(1 + gp.prior("f", X=x)), observed=y)
    return m


def von_mises() -> Any:
    r = draws()
    x = r.normal(size=200)
    y = r.vonmises(2 * np.arctan(0.5 * x), 3)
    with pm.Model() as m:
        mu = pm.VonMises("mu", 0, 1)
        b = pm.Normal("b", 0, 1)
        kappa = pm.Gamma("kappa", 2, 0.5)
        pm.VonMises("y", mu + 2 * pt.arctan(b * x), kappa, observed=y)
    return m


def arma() -> Any:
    r = draws()
    y = r.normal(size=200)
    with pm.Model() as m:
        mu = pm.Normal("mu", 0, 10)
        phi = pm.Normal("phi", 0, 2)
        theta = pm.Normal("theta", 0, 2)
        s = pm.HalfCauchy("s", 2.5)

        def step(now: Any, before: Any, error: Any, mu: Any, phi: Any, theta: Any) -> Any:
            return now - (mu + phi * before + theta * error)

        errors = pytensor.scan(
            step,
            sequences=[pt.as_tensor(y[1:]), pt.as_tensor(y[:-1])],
            outputs_info=[y[0] - mu - phi * mu],
            non_sequences=[mu, phi, theta],
            return_updates=False,
        )
        pm.Potential("y", pm.logp(pm.Normal.dist(0, s), errors).sum())
    return m


def changepoint() -> Any:
    """Disasters in coal mines: the year of the change is summed out."""
    r = draws()
    n = 112
    y = np.concatenate([r.poisson(3, 40), r.poisson(1, n - 40)])
    with pm.Model() as m:
        early, late = pm.Exponential("early", 1), pm.Exponential("late", 1)
        before = pm.logp(pm.Poisson.dist(early), y).cumsum()
        after = pm.logp(pm.Poisson.dist(late), y)[::-1].cumsum()[::-1]
        pm.Potential("y", pt.logsumexp(before[:-1] + after[1:] - np.log(n - 1)))
    return m


def bym() -> Any:
    """Counts in regions: effects of neighbours and of each region, as in Scotland's lips."""
    r = draws()
    side = 7
    n = side * side
    W = np.zeros((n, n), int)
    for k in range(n):
        for j in [k + 1] * (k % side < side - 1) + [k + side] * (k + side < n):
            W[k, j] = W[j, k] = 1
    E, x, y = r.uniform(1, 20, n), r.normal(size=n), r.poisson(5, n)
    with pm.Model() as m:
        b0, b1 = pm.Normal("b0", 0, 1), pm.Normal("b1", 0, 1)
        theta = pm.Normal("theta", 0, 1, shape=n)
        phi = pm.ICAR("phi", W=W)
        s, rho = pm.HalfNormal("s", 1), pm.Beta("rho", 0.5, 0.5)
        mix = pt.sqrt(1 - rho) * theta + pt.sqrt(rho / 0.4) * phi
        pm.Poisson("y", pt.exp(np.log(E) + b0 + b1 * x + s * mix), observed=y)
    return m


def capture_recapture() -> Any:
    """Animals that are seen or not (Cormack-Jolly-Seber): the deaths are summed out."""
    r = draws()
    n, k = 60, 8
    seen = r.integers(0, 2, (n, k))
    seen[:, 0] = 1
    last = k - 1 - seen[:, ::-1].argmax(1)
    with pm.Model() as m:
        phi = pm.Uniform("phi", 0, 1, shape=k - 1)
        p = pm.Uniform("p", 0, 1, shape=k - 1)
        gone = [pt.constant(1.0)]
        for t in range(k - 2, -1, -1):
            gone.append((1 - phi[t]) + phi[t] * (1 - p[t]) * gone[-1])
        chi = pt.stack(gone[::-1])
        alive = np.arange(1, k)[None, :] <= last[:, None]
        steps = pt.log(phi) + seen[:, 1:] * pt.log(p) + (1 - seen[:, 1:]) * pt.log1p(-p)
        pm.Potential("y", (alive * steps).sum() + pt.log(chi[last]).sum())
    return m


def horseshoe() -> Any:
    """Regression with the regularised horseshoe."""
    r = draws()
    n, d = 100, 30
    X = r.normal(size=(n, d))
    y = X[:, :3] @ [1.0, -2, 3] + r.normal(size=n)
    with pm.Model() as m:
        s = pm.HalfNormal("s", 1)
        tau = pm.HalfStudentT("tau", 2, 0.1 * s)
        lam = pm.HalfStudentT("lam", 5, shape=d)
        c2 = pm.InverseGamma("c2", 1, 1)
        z = pm.Normal("z", 0, 1, shape=d)
        beta = z * tau * lam * pt.sqrt(c2 / (c2 + tau**2 * lam**2))
        pm.Normal("y", pt.dot(X, beta), s, observed=y)
    return m


def sir() -> Any:
    """An epidemic by the trapezoidal rule of Heun."""
    r = draws()
    n = 60
    cases = r.poisson(20 + 200 * np.exp(-(((np.arange(n) - 25) / 8) ** 2)))
    with pm.Model() as m:
        beta = pm.LogNormal("beta", np.log(0.5), 0.3)
        gamma = pm.LogNormal("gamma", np.log(0.2), 0.3)
        i0 = pm.LogNormal("i0", 2, 1)
        phi = pm.Exponential("phi", 0.1)
        N = 5000.0

        def slope(s: Any, i: Any, beta: Any, gamma: Any) -> Any:
            new = beta * s * i / N
            return -new, new - gamma * i

        def step(s: Any, i: Any, beta: Any, gamma: Any) -> Any:
            ds, di = slope(s, i, beta, gamma)
            es, ei = slope(s + ds, i + di, beta, gamma)
            return s + (ds + es) / 2, i + (di + ei) / 2

        S, _ = pytensor.scan(
            step,
            outputs_info=[N - i0, i0],
            non_sequences=[beta, gamma],
            n_steps=n,
            return_updates=False,
        )
        new = pt.concatenate([[N - i0], S[:-1]]) - S
        pm.NegativeBinomial("y", mu=pt.maximum(new, 1e-3), alpha=phi, observed=cases)
    return m


def factor() -> Any:
    """Two factors of six variables, with loadings that are lower triangular."""
    r = draws()
    n, d, k = 80, 6, 2
    Y = r.normal(size=(n, k)) @ r.normal(size=(k, d)) + 0.5 * r.normal(size=(n, d))
    rows, columns = np.tril_indices(d, -1, m=k)
    with pm.Model() as m:
        low = pm.Normal("low", 0, 1, shape=len(rows))
        diagonal = pm.HalfNormal("diagonal", 1, shape=k)
        W = pt.zeros((d, k))[rows, columns].set(low)
        W = W[np.arange(k), np.arange(k)].set(diagonal)
        psi = pm.HalfNormal("psi", 1, shape=d)
        cov = pt.dot(W, W.T) + pt.diag(psi**2)
        pm.MvNormal("y", np.zeros(d), cov=cov, observed=Y)
    return m


def var() -> Any:
    """A vector autoregression of two lags."""
    r = draws()
    Y = r.normal(size=(150, 3))
    with pm.Model() as m:
        intercept = pm.Normal("intercept", 0, 1, shape=3)
        A = pm.Normal("A", 0, 0.5, shape=(2, 3, 3))
        chol, _, _ = pm.LKJCholeskyCov("chol", n=3, eta=1.0, sd_dist=pm.HalfNormal.dist(1.0))
        mean = intercept + pt.dot(Y[1:-1], A[0].T) + pt.dot(Y[:-2], A[1].T)
        pm.MvNormal("y", mean, chol=chol, observed=Y[2:])
    return m


def mixture_of_regressions() -> Any:
    r = draws()
    x = r.uniform(-2, 2, 300)
    y = np.where(r.uniform(size=300) < 0.4, 2 * x + 1, -x) + 0.3 * r.normal(size=300)
    with pm.Model() as m:
        w = pm.Dirichlet("w", np.ones(2))
        a, b = pm.Normal("a", 0, 3, shape=2), pm.Normal("b", 0, 3, shape=2)
        s = pm.HalfNormal("s", 1, shape=2)
        pm.NormalMixture("y", w=w, mu=a + b * x[:, None], sigma=s, observed=y)
    return m


def dirichlet_process() -> Any:
    """Old Faithful: a mixture of normals with weights by stick breaking."""
    r = draws()
    k = 15
    y = np.concatenate([r.normal(-1, 0.3, 100), r.normal(0.7, 0.4, 170)])
    with pm.Model() as m:
        alpha = pm.Gamma("alpha", 1, 1)
        beta = pm.Beta("beta", 1, alpha, shape=k)
        w = beta * pt.concatenate([[1.0], pt.cumprod(1 - beta)[:-1]])
        tau = pm.Gamma("tau", 1, 1, shape=k)
        lam = pm.Gamma("lam", 10, 1, shape=k)
        mu = pm.Normal("mu", 0, tau=lam * tau, shape=k)
        pm.NormalMixture("y", w / w.sum(), mu, tau=lam * tau, observed=y)
    return m


def beta_regression() -> Any:
    r = draws()
    X = r.normal(size=(200, 3))
    y = r.beta(2, 5, 200)
    with pm.Model() as m:
        b = pm.Normal("b", 0, 1, shape=3)
        phi = pm.HalfCauchy("phi", 5)
        mu = pm.math.invprobit(pt.dot(X, b))
        pm.Beta("y", mu * phi, (1 - mu) * phi, observed=y)
    return m


ALL = [
    hierarchical_poisson,
    zero_inflated_negbin,
    ordered_probit,
    cox,
    truncated,
    hurdle,
    dirichlet_multinomial,
    hsgp,
    von_mises,
    arma,
    changepoint,
    bym,
    capture_recapture,
    horseshoe,
    sir,
    factor,
    var,
    mixture_of_regressions,
    dirichlet_process,
    beta_regression,
]
