"""Twenty-one PyMC models of the kinds that the public examples show; data are made up here."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

R = lambda: np.random.default_rng(0)


def linear():
    r = R()
    X = r.normal(size=(200, 5))
    y = X @ np.arange(5) + r.normal(size=200)
    with pm.Model() as m:
        a = pm.Normal("a", 0, 10)
        b = pm.Normal("b", 0, 2, shape=5)
        s = pm.HalfNormal("s", 2)
        pm.Normal("y", a + X @ b, s, observed=y)
    return m


def logistic():
    r = R()
    X = r.normal(size=(1000, 8))
    y = (r.uniform(size=1000) < 0.4).astype(int)
    with pm.Model() as m:
        a = pm.Normal("a", 0, 2)
        b = pm.Normal("b", 0, 1, shape=8)
        pm.Bernoulli("y", logit_p=a + pt.dot(X, b), observed=y)
    return m


def eight_schools():
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    s = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    with pm.Model(coords={"school": list("ABCDEFGH")}) as m:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        z = pm.Normal("z", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("y", theta, s, observed=y, dims="school")
    return m


def radon():
    r = R()
    n, k = 919, 85
    county = r.integers(0, k, n)
    floor = r.integers(0, 2, n).astype(float)
    u = r.normal(size=k)
    y = r.normal(size=n)
    with pm.Model(coords={"county": range(k), "obs": range(n)}) as m:
        ci = pm.Data("county_idx", county, dims="obs")
        fl = pm.Data("floor", floor, dims="obs")
        g = pm.Normal("g", 0, 10, shape=2)
        sa = pm.Exponential("sa", 1)
        sb = pm.Exponential("sb", 1)
        za = pm.Normal("za", 0, 1, dims="county")
        zb = pm.Normal("zb", 0, 1, dims="county")
        mb = pm.Normal("mb", 0, 10)
        a = pm.Deterministic("a", g[0] + g[1] * u + sa * za, dims="county")
        b = pm.Deterministic("b", mb + sb * zb, dims="county")
        s = pm.Exponential("s", 1)
        pm.Normal("y", a[ci] + b[ci] * fl, s, observed=y, dims="obs")
    return m


def gp_marginal():
    r = R()
    X = np.linspace(0, 10, 60)[:, None]
    y = np.sin(X[:, 0]) + 0.1 * r.normal(size=60)
    with pm.Model() as m:
        ls = pm.Gamma("ls", 2, 1)
        eta = pm.HalfCauchy("eta", 5)
        s = pm.HalfCauchy("s", 5)
        gp = pm.gp.Marginal(cov_func=eta**2 * pm.gp.cov.Matern52(1, ls))
        gp.marginal_likelihood("y", X=X, y=y, sigma=s)
    return m


def mixture():
    r = R()
    y = np.concatenate([r.normal(-3, 1, 150), r.normal(0, 0.5, 150), r.normal(4, 1, 200)])
    with pm.Model() as m:
        w = pm.Dirichlet("w", np.ones(3))
        mu = pm.Normal(
            "mu", 0, 5, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0, 1]
        )
        s = pm.HalfNormal("s", 2, shape=3)
        pm.NormalMixture("y", w=w, mu=mu, sigma=s, observed=y)
    return m


def ar2():
    r = R()
    y = r.normal(size=300).cumsum() * 0.1
    with pm.Model() as m:
        rho = pm.Normal("rho", 0, 0.5, shape=3)
        s = pm.HalfNormal("s", 1)
        pm.AR("y", rho=rho, sigma=s, constant=True, init_dist=pm.Normal.dist(0, 5), observed=y)
    return m


def stochvol():
    r = R()
    y = r.standard_t(5, size=500) * 0.01
    with pm.Model() as m:
        step = pm.Exponential("step", 10)
        nu = pm.Exponential("nu", 0.1)
        v = pm.GaussianRandomWalk("v", sigma=step, init_dist=pm.Normal.dist(0, 100), shape=500)
        pm.StudentT("y", nu=nu, lam=pt.exp(-2 * v), observed=y)
    return m


def lkj():
    r = R()
    n, k = 500, 20
    g = r.integers(0, k, n)
    x = r.normal(size=n)
    y = r.normal(size=n)
    with pm.Model(coords={"group": range(k)}) as m:
        chol, _, _ = pm.LKJCholeskyCov(
            "chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0), compute_corr=True
        )
        mu = pm.Normal("mu", 0, 5, shape=2)
        z = pm.Normal("z", 0, 1, shape=(k, 2))
        ab = mu + pt.dot(z, chol.T)
        s = pm.Exponential("s", 1)
        pm.Normal("y", ab[g, 0] + ab[g, 1] * x, s, observed=y)
    return m


def mvnormal():
    r = R()
    y = r.normal(size=(200, 4))
    with pm.Model() as m:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=4, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0))
        mu = pm.Normal("mu", 0, 5, shape=4)
        pm.MvNormal("y", mu, chol=chol, observed=y)
    return m


def best():
    r = R()
    a = r.standard_t(4, size=47) + 1
    b = r.standard_t(4, size=42)
    with pm.Model() as m:
        m1 = pm.Normal("m1", 0, 4)
        m2 = pm.Normal("m2", 0, 4)
        s1 = pm.Uniform("s1", 0.1, 10)
        s2 = pm.Uniform("s2", 0.1, 10)
        nu = pm.Exponential("nu_", 1 / 29.0) + 1
        pm.StudentT("a", nu=nu, mu=m1, lam=s1**-2, observed=a)
        pm.StudentT("b", nu=nu, mu=m2, lam=s2**-2, observed=b)
        d = pm.Deterministic("d", m1 - m2)
        pm.Deterministic("e", d / pt.sqrt((s1**2 + s2**2) / 2))
    return m


def zip_():
    r = R()
    y = r.poisson(4, 400) * (r.uniform(size=400) < 0.7)
    x = r.normal(size=400)
    with pm.Model() as m:
        psi = pm.Beta("psi", 1, 1)
        a = pm.Normal("a", 0, 1)
        b = pm.Normal("b", 0, 1)
        pm.ZeroInflatedPoisson("y", psi=psi, mu=pt.exp(a + b * x), observed=y)
    return m


def weibull():
    r = R()
    t = r.weibull(1.5, 300) * 2
    x = r.normal(size=300)
    cens = r.uniform(size=300) < 0.3
    with pm.Model() as m:
        a = pm.Normal("alpha0", 0, 1)
        b = pm.Normal("b", 0, 1)
        k = pm.HalfNormal("k", 2)
        lam = pt.exp(a + b * x)
        pm.Weibull("obs", k, lam[~cens], observed=t[~cens])
        pm.Potential("cens", -((t[cens] / lam[cens]) ** k))
    return m


def censored():
    r = R()
    t = np.minimum(r.weibull(1.5, 300) * 2, 3.0)
    with pm.Model() as m:
        k = pm.HalfNormal("k", 2)
        b = pm.HalfNormal("b", 3)
        pm.Censored("obs", pm.Weibull.dist(k, b), lower=None, upper=3.0, observed=t)
    return m


def irt():
    r = R()
    ns, nq = 100, 20
    s = np.repeat(np.arange(ns), nq)
    q = np.tile(np.arange(nq), ns)
    y = r.integers(0, 2, ns * nq)
    with pm.Model() as m:
        th = pm.Normal("th", 0, 1, shape=ns)
        b = pm.ZeroSumNormal("b", 1, shape=nq)
        a = pm.LogNormal("a", 0, 0.5, shape=nq)
        pm.Bernoulli("y", logit_p=a[q] * (th[s] - b[q]), observed=y)
    return m


def ordinal():
    r = R()
    n = 400
    x = r.normal(size=(n, 3))
    y = r.integers(0, 5, n)
    with pm.Model() as m:
        c = pm.Normal(
            "c",
            0,
            2,
            shape=4,
            transform=pm.distributions.transforms.ordered,
            initval=np.linspace(-2, 2, 4),
        )
        b = pm.Normal("b", 0, 1, shape=3)
        pm.OrderedLogistic("y", eta=pt.dot(x, b), cutpoints=c, observed=y)
    return m


def bnn():
    r = R()
    X = r.normal(size=(500, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    with pm.Model() as m:
        w1 = pm.Normal("w1", 0, 1, shape=(2, 5))
        w2 = pm.Normal("w2", 0, 1, shape=(5, 5))
        w3 = pm.Normal("w3", 0, 1, shape=5)
        h = pt.tanh(pt.dot(X, w1))
        h = pt.tanh(pt.dot(h, w2))
        p = pm.math.sigmoid(pt.dot(h, w3))
        pm.Bernoulli("y", p, observed=y)
    return m


def softmax_reg():
    r = R()
    X = r.normal(size=(300, 4))
    y = r.integers(0, 3, 300)
    with pm.Model() as m:
        a = pm.Normal("a", 0, 2, shape=3)
        b = pm.Normal("b", 0, 2, shape=(4, 3))
        pm.Categorical("y", p=pm.math.softmax(a + pt.dot(X, b), axis=1), observed=y)
    return m


def hmm():
    r = R()
    K = 3
    y = np.concatenate([r.normal(-2, 1, 100), r.normal(2, 1, 100)])
    with pm.Model() as m:
        P = pm.Dirichlet("P", np.ones((K, K)) + 2 * np.eye(K))
        mu = pm.Normal("mu", 0, 3, shape=K, initval=[-2.0, 0, 2])
        s = pm.HalfNormal("s", 1)
        ll = pm.logp(pm.Normal.dist(mu[None, :], s), y[:, None])
        logP = pt.log(P)

        def step(new, alpha, logP):
            return new + pt.logsumexp(alpha[:, None] + logP, axis=0)

        alphas = pytensor.scan(
            step,
            sequences=[ll[1:]],
            outputs_info=[ll[0] - np.log(K)],
            non_sequences=[logP],
            return_updates=False,
        )
        pm.Potential("ll", pt.logsumexp(alphas[-1]))
    return m


def kalman():
    r = R()
    y = r.normal(size=200).cumsum() + r.normal(size=200)
    with pm.Model() as m:
        q = pm.HalfNormal("q", 1)
        s = pm.HalfNormal("s", 1)
        phi = pm.Uniform("phi", 0, 1)
        F = pt.stack([pt.stack([1.0, 1.0]), pt.stack([0.0, phi])])
        H = np.array([1.0, 0.0])
        Q = q**2 * pt.eye(2)

        def step(yt, x, P, F, Q, s):
            x = F @ x
            P = F @ P @ F.T + Q
            v = yt - H @ x
            S = H @ P @ H + s**2
            K = P @ H / S
            ll = -0.5 * (pt.log(2 * np.pi * S) + v**2 / S)
            return x + K * v, P - pt.outer(K, K) * S, ll

        _, _, ll = pytensor.scan(
            step,
            sequences=[pt.as_tensor(y)],
            outputs_info=[pt.zeros(2), 10.0 * pt.eye(2), None],
            non_sequences=[F, Q, s],
            return_updates=False,
        )
        pm.Potential("ll", ll.sum())
    return m


def scan_ar():
    r = R()
    y = r.normal(size=300)
    with pm.Model() as m:
        om = pm.HalfNormal("om", 1)
        a1 = pm.Uniform("a1", 0, 1)
        b1 = pm.Uniform("b1", 0, 1)
        pm.GARCH11("y", omega=om, alpha_1=a1, beta_1=b1 * (1 - a1), initial_vol=1.0, observed=y)
    return m


ALL = [
    linear,
    logistic,
    eight_schools,
    radon,
    gp_marginal,
    mixture,
    ar2,
    stochvol,
    lkj,
    mvnormal,
    best,
    zip_,
    weibull,
    censored,
    irt,
    ordinal,
    bnn,
    softmax_reg,
    hmm,
    kalman,
    scan_ar,
]
