"""Programs of linear algebra, value and gradient, against references of their own."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import scipy.linalg

import graphcore as gc

PAIR = ("point", "point'")


def ops(f: gc.Compiled) -> Counter[str]:
    return Counter(node.op.name for node in f.stages["optimized"].every_node())


def complex_step(function: Any, *xs: Any) -> list[np.ndarray]:
    """The gradient of a real analytic function by its imaginary part (Squire & Trapp 1998)."""
    found = []
    for i, x in enumerate(xs):
        slope = np.zeros(np.shape(x))
        for at in np.ndindex(slope.shape):
            moved = np.array(x, complex)
            moved[at] += 1e-30j
            slope[at] = function(*xs[:i], moved, *xs[i + 1 :]).imag / 1e-30
        found.append(slope)
    return found


# ---- a Gaussian process


def gaussian_process() -> gc.Compiled:
    """Log marginal likelihood with a squared-exponential kernel, a length for each feature."""
    x = gc.tensor("x", {"point": None, "feature": None})
    y = gc.tensor("y", {"point": None})
    log_length = gc.tensor("log_length", {"feature": None})
    log_size, log_noise = gc.tensor("log_size", {}), gc.tensor("log_noise", {})
    z = x * gc.exp(-log_length)
    distance = gc.square(z - z.rename(point="point'")).sum("feature")
    noise = gc.exp(log_noise) * gc.eye(PAIR, x.sizes["point"])
    factor = gc.linalg.cholesky(gc.exp(log_size - 0.5 * distance) + noise, PAIR)
    white = gc.linalg.solve_triangular(factor, y, PAIR, lower=True)
    value = -0.5 * gc.square(white).sum() - gc.log(gc.diagonal(factor, PAIR)).sum()
    value = value - 0.5 * math.log(2 * math.pi) * y.count()
    params = (log_size, log_length, log_noise)
    return gc.compile([x, y, *params], [value, *gc.grad(value, params)])


def gaussian_process_by_hand(x: Any, y: Any, log_size: Any, log_length: Any, log_noise: Any) -> Any:
    """Rasmussen & Williams (2006), equations 2.30 and 5.9."""
    z = x * np.exp(-log_length)
    distance = (z[:, None] - z) ** 2
    smooth = np.exp(log_size - 0.5 * distance.sum(-1))
    k = smooth + np.exp(log_noise) * np.eye(len(y))
    inverse = np.linalg.inv(k)
    a = inverse @ y
    value = -0.5 * (y @ a + np.linalg.slogdet(k)[1] + len(y) * math.log(2 * math.pi))
    w = 0.5 * (np.outer(a, a) - inverse)
    lengths = np.einsum("ij,ijf->f", w * smooth, distance)
    return [value, (w * smooth).sum(), lengths, np.trace(w) * np.exp(log_noise)]


def test_a_gaussian_process(random: np.random.Generator) -> None:
    f = gaussian_process()
    for points in (1, 12):
        x, y = random.normal(size=(points, 3)), random.normal(size=points)
        given = (x, y, 0.1, np.array([0.3, -0.2, 0.5]), -1.0)
        for found, wanted in zip(f(*given), gaussian_process_by_hand(*given), strict=True):
            np.testing.assert_allclose(found, wanted, 1e-9, 1e-11)


def test_a_gaussian_process_is_factored_once_and_nothing_is_inverted() -> None:
    counts = ops(gaussian_process())
    assert counts["cholesky"] == 1
    assert not {"inv", "solve", "lu_factor", "det", "slogdet"} & counts.keys()


# ---- a multivariate normal


def log_density(x: gc.Tensor, mean: gc.Tensor, cov: gc.Tensor) -> gc.Tensor:
    """Of a normal variable along "row", from its covariance."""
    away = x - mean
    solved = gc.linalg.solve(cov, away).rename(col="row")
    log_volume = gc.linalg.slogdet(cov).logabsdet
    return -0.5 * (gc.dot(away, solved, dim="row") + log_volume + math.log(2 * math.pi) * 3)


def test_a_multivariate_normal(random: np.random.Generator) -> None:
    """For each of a batch of points and, by name, of several covariances."""
    x = gc.tensor("x", {"sample": None, "row": 3})
    mean = gc.tensor("mean", {"row": 3})
    cov = gc.tensor("cov", {"group": 2, "row": 3, "col": 3})
    density = log_density(x, mean, cov)
    assert density.dims == ("sample", "group")
    f = gc.compile([x, mean, cov], [density, *gc.grad(density.sum(), [x, mean, cov])])
    root = random.normal(size=(2, 3, 3))
    xs, m, covs = (
        random.normal(size=(5, 3)),
        random.normal(size=3),
        root @ root.swapaxes(1, 2) + np.eye(3),
    )
    values, by_x, by_mean, by_cov = f(xs, m, covs)
    inverse = np.linalg.inv(covs)
    away = xs - m
    for g in range(2):
        wanted = scipy.stats.multivariate_normal(m, covs[g]).logpdf(xs)
        np.testing.assert_allclose(values[:, g], wanted, 1e-10)
        a = away @ inverse[g]
        np.testing.assert_allclose(by_cov[g], 0.5 * (a.T @ a - 5 * inverse[g]), 1e-9, 1e-10)
    np.testing.assert_allclose(by_x, -np.einsum("sr,grc->sc", away, inverse), 1e-9)
    np.testing.assert_allclose(by_mean, -by_x.sum(0), 1e-9)


def test_a_multivariate_normal_shares_factors() -> None:
    x, mean = gc.tensor("x", {"row": 3}), gc.tensor("mean", {"row": 3})
    cov = gc.tensor("cov", {"row": 3, "col": 3})
    density = log_density(x, mean, cov)
    assert ops(gc.compile([x, mean, cov], [density, gc.grad(density, cov)]))["lu_factor"] == 1


# ---- a Kalman filter


def kalman() -> gc.Compiled:
    """Log likelihood of a batch of series: a filter in a scan."""
    y = gc.tensor("y", {"series": None, "time": None, "seen": 2})
    move = gc.tensor("move", {"row": 3, "col": 3})
    look = gc.tensor("look", {"seen": 2, "col": 3})
    q, r = gc.tensor("q", {}), gc.tensor("r", {})
    by_col, state = {"row": "col"}, {"row": 3, "col": 3}

    def through(a: gc.Tensor, p: gc.Tensor) -> gc.Tensor:
        """a p aᵀ"""
        left = gc.dot(a, p.rename(row="col", col="other"), dim="col")
        (out,) = set(a.dims) - {"col"}
        return gc.dot(left, a.rename({"col": "other", out: f"{out}'"}), dim="other")

    def step(carry: Any, y: gc.Tensor) -> Any:
        mean, p, total = carry
        mean = gc.dot(move, mean.rename(by_col), dim="col")
        p = through(move, p).rename({"row'": "col"}) + q * gc.eye(state)
        away = y - gc.dot(look, mean.rename(by_col), dim="col")
        s = through(look, p) + r * gc.eye(("seen", "seen'"), 2)
        cross = gc.dot(p, look, dim="col")
        solved = gc.linalg.solve(s, away, ("seen", "seen'"))
        share = gc.dot(away, solved.rename({"seen'": "seen"}), dim="seen")
        total = total - 0.5 * (share + gc.linalg.slogdet(s, ("seen", "seen'")).logabsdet)
        mean = mean + gc.dot(cross.rename(seen="seen'"), solved, dim="seen'")
        gain = gc.linalg.solve(s, cross, ("seen", "seen'"))
        p = p - gc.dot(cross.rename(seen="seen'"), gain.rename(row="col"), dim="seen'")
        return (mean, p, total), None

    series = y.sizes["series"]
    start = (gc.zeros({"series": series, "row": 3}), gc.eye(state), gc.zeros({"series": series}))
    (_, _, total), _ = gc.scan(step, start, y, dim="time")
    params = (move, look, q, r)
    return gc.compile([y, *params], [total, *gc.grad(total.sum(), params)])


def kalman_by_hand(y: Any, move: Any, look: Any, q: Any, r: Any) -> Any:
    """The sum over all series, one by one; analytic, so that complex steps differentiate it."""
    total = 0
    for series in y:
        mean, p = np.zeros(3), np.eye(3)
        for seen in series:
            mean, p = move @ mean, move @ p @ move.T + q * np.eye(3)
            away, s = seen - look @ mean, look @ p @ look.T + r * np.eye(2)
            gain = np.linalg.solve(s, look @ p).T
            total = total - 0.5 * (away @ np.linalg.solve(s, away) + np.log(np.linalg.det(s)))
            mean, p = mean + gain @ away, p - gain @ look @ p
    return total


def test_a_kalman_filter(random: np.random.Generator) -> None:
    y = random.normal(size=(3, 6, 2))
    given = (0.5 * random.normal(size=(3, 3)), random.normal(size=(2, 3)), 0.3, 0.7)
    values, *slopes = kalman()(y, *given)
    np.testing.assert_allclose(values.sum(), kalman_by_hand(y, *given), 1e-10)
    wanted = complex_step(lambda *params: kalman_by_hand(y, *params), *given)
    for found, slope in zip(slopes, wanted, strict=True):
        np.testing.assert_allclose(found, slope, 1e-8, 1e-9)


# ---- a chain of matrix exponentials


def test_a_chain_of_matrix_exponentials(random: np.random.Generator) -> None:
    """v e^(t[0] a[0]) ... e^(t[49] a[49]), as a scan; the gradient by Frechet derivatives."""
    a = gc.tensor("a", {"link": 50, "row": 3, "col": 3})
    t = gc.tensor("t", {"link": 50})
    v = gc.tensor("v", {"row": 3})

    def step(v: gc.Tensor, link: Any) -> Any:
        return gc.dot(v, link, dim="row").rename(col="row"), None

    last, _ = gc.scan(step, v, gc.linalg.expm(a * t), dim="link")
    value = gc.sin(last).sum()
    f = gc.compile([a, t, v], [value, *gc.grad(value, [a, t, v])])
    links, times, start = (
        random.normal(size=(50, 3, 3)),
        0.3 * random.normal(size=50),
        random.normal(size=3),
    )
    steps = [scipy.linalg.expm(x * s) for x, s in zip(links, times, strict=True)]
    rows = [start]
    for step_matrix in steps:
        rows.append(rows[-1] @ step_matrix)
    ct, by_a, by_t = np.cos(rows[-1]), np.zeros_like(links), np.zeros_like(times)
    for i in reversed(range(50)):
        share = np.outer(rows[i], ct)
        back = scipy.linalg.expm_frechet((links[i] * times[i]).T, share, compute_expm=False)
        by_a[i], by_t[i] = times[i] * back, (links[i] * back).sum()
        ct = steps[i] @ ct
    found = f(links, times, start)
    for ours, wanted in zip(found, (np.sin(rows[-1]).sum(), by_a, by_t, ct), strict=True):
        np.testing.assert_allclose(ours, wanted, 1e-9, 1e-9)
