"""Programs of loops and their derivatives, against the same by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc


def close(found: Any, wanted: Any, rtol: float = 1e-12) -> None:
    wanted = np.asarray(wanted)
    scale = np.abs(wanted).max(initial=0)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale)


# ---- to convergence


def test_newton_square_root() -> None:
    x = gc.tensor("x", {"place": None})
    root = gc.while_loop(
        lambda r: abs(r * r - x) > 1e-13 * x, lambda r: (r + x / r) / 2, (1 + x) / 2
    )
    slope = gc.grad(root.sum(), x)
    values = np.array([4.0, 2.0, 1e-3, 7e5])
    found = gc.compile([x], [root, slope, gc.grad(slope.sum(), x)])(values)
    for got, wanted in zip(found, [values**0.5, values**-0.5 / 2, -(values**-1.5) / 4]):
        close(got / wanted, np.ones(4), 1e-9)


def test_power_iteration() -> None:
    """The largest eigenvalue, its gradient v vᵀ and its second derivative along a direction."""
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.normal(size=(5, 5)))[0]
    matrix = basis * [4.0, 2.0, -1.0, 0.5, 0.1] @ basis.T
    along = random.normal(size=(5, 5))
    along += along.T
    a, e = (gc.tensor(name, {"row": 5, "col": 5}) for name in "ae")

    def multiplied(v: gc.Tensor) -> gc.Tensor:
        return gc.dot(a, v.rename(row="col"), dim="col")

    def step(state: Any) -> Any:
        v = multiplied(state[0])
        return v / gc.sqrt((v * v).sum()), state[0]

    start = gc.constant(random.normal(size=5), "row")
    v, _ = gc.while_loop(lambda s: abs(s[0] - s[1]).max() > 1e-14, step, (start, 0 * start))
    value = (v * multiplied(v)).sum()
    found = gc.compile([a, e], [value, gc.grad(value, a), gc.hvp(value, a, e)])(matrix, along)
    u = basis[:, 0]
    close(found[0], 4.0)
    close(found[1], np.outer(u, u), 1e-9)
    others = [(basis[:, j] @ along @ u, 4.0 - w) for j, w in enumerate([2.0, -1.0, 0.5, 0.1], 1)]
    turn = sum(p / gap * basis[:, j] for j, (p, gap) in enumerate(others, 1))
    close(found[2], np.outer(turn, u) + np.outer(u, turn), 1e-9)


# ---- programs with references of their own


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(x: np.ndarray, w: np.ndarray, u: np.ndarray) -> tuple[float, np.ndarray, Any]:
    """Sum of squares of all hidden states, and its gradients by w and u, by hand."""
    size = u.shape[0]
    h, c, kept, loss = np.zeros(size), np.zeros(size), [], 0.0
    for xt in x:
        z = xt @ w + h @ u
        i, f, o = (sigmoid(z[k * size : (k + 1) * size]) for k in range(3))
        g = np.tanh(z[3 * size :])
        before = h, c
        c = f * c + i * g
        h = o * np.tanh(c)
        kept.append((xt, *before, i, f, o, g, c, h))
        loss += (h**2).sum()
    dw, du, dh, dc = np.zeros_like(w), np.zeros_like(u), np.zeros(size), np.zeros(size)
    for xt, h0, c0, i, f, o, g, c, h in reversed(kept):
        dh = dh + 2 * h
        dc = dc + dh * o * (1 - np.tanh(c) ** 2)
        parts = [
            dc * g * i * (1 - i), dc * c0 * f * (1 - f), dh * np.tanh(c) * o * (1 - o),
            dc * i * (1 - g * g),
        ]  # fmt: skip
        dz = np.concatenate(parts)
        dw, du = dw + np.outer(xt, dz), du + np.outer(h0, dz)
        dh, dc = u @ dz, dc * f
    return loss, dw, du


def test_lstm_over_a_thousand_steps() -> None:
    size, features = 4, 3
    x = gc.tensor("x", {"time": None, "feature": features})
    w = gc.tensor("w", {"feature": features, "gate": 4, "hidden": size})
    u = gc.tensor("u", {"before": size, "gate": 4, "hidden": size})

    def step(carry: dict[str, gc.Tensor], xt: gc.Tensor) -> Any:
        before = carry["h"].rename(hidden="before")
        z = gc.dot(xt, w, dim="feature") + gc.dot(before, u, dim="before")
        i, f, o = (gc.special.sigmoid(z.isel(gate=k)) for k in range(3))
        c = f * carry["c"] + i * gc.tanh(z.isel(gate=3))
        h = o * gc.tanh(c)
        return {"h": h, "c": c}, h

    zeros = gc.zeros({"hidden": size})
    _, hs = gc.scan(step, {"h": zeros, "c": zeros}, x)
    loss = (hs * hs).sum()
    random = np.random.default_rng(1)
    data = random.normal(size=(1000, features))
    weights = [random.normal(size=v.shape) * 0.5 for v in (w, u)]
    found = gc.compile([x, w, u], [loss, *gc.grad(loss, [w, u])])(data, *weights)
    wanted = lstm_by_hand(data, *[v.reshape(len(v), -1) for v in weights])
    for got, want in zip(found, wanted, strict=True):
        close(np.reshape(got, np.shape(want)), want, 1e-10)


def normal_log_likelihood(theta: Any, y: np.ndarray) -> Any:
    """Of a state x' = F x + noise seen as x[0] + noise, from the covariance of all of `y` at once.

    Of a complex `theta` as well, so that the derivative is exact: Im f(theta + i h) / h.
    """
    a, b, q, r = theta
    f = np.array([[a, b], [-b, a]])
    steps, p = len(y), np.eye(2, dtype=np.result_type(f))
    cov = np.zeros((steps, steps), p.dtype)
    for s in range(steps):
        p = f @ p @ f.T + q * np.eye(2)
        moved = p
        for t in range(s, steps):
            cov[s, t] = cov[t, s] = moved[0, 0]
            moved = f @ moved
        cov[s, s] += r
    quadratic = y @ np.linalg.solve(cov, y)
    return -0.5 * (quadratic + np.log(np.linalg.det(cov)) + steps * np.log(2 * np.pi))


def test_kalman_filter() -> None:
    y, theta = gc.tensor("y", {"time": None}), gc.tensor("theta", {"parameter": 4})
    a, b, q, r = (theta.isel(parameter=i) for i in range(4))
    eye = gc.eye({"row": 2, "col": 2})
    turn = gc.constant([[0.0, 1.0], [-1.0, 0.0]], ("row", "col"))
    f = a * eye + b * turn
    seen = gc.constant([1.0, 0.0], "row")

    def times(m: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
        return gc.dot(m.rename(col="k"), n.rename(row="k"), dim="k")

    def step(carry: Any, yt: gc.Tensor) -> Any:
        mean, p = carry
        mean = gc.dot(f, mean.rename(row="col"), dim="col")
        p = times(times(f, p), f.rename(row="col", col="row")) + q * eye
        gain = gc.dot(p, seen.rename(row="col"), dim="col")
        s = gc.dot(gain, seen, dim="row") + r
        error = yt - gc.dot(seen, mean, dim="row")
        new = mean + gain / s * error, p - gain * gain.rename(row="col") / s
        return new, -0.5 * (error * error / s + gc.log(2 * np.pi * s))

    _, terms = gc.scan(step, (gc.zeros({"row": 2}), eye), y)
    value = terms.sum()
    slope = gc.grad(value, theta)
    direction = gc.constant([0.3, -0.5, 0.2, 1.0], "parameter")
    curve = gc.pushforward(slope, theta, direction)
    data, at = np.random.default_rng(2).normal(size=60), np.array([0.8, 0.3, 0.4, 0.5])
    found = gc.compile([y, theta], [value, slope, curve])(data, at)

    def gradient(at: Any) -> np.ndarray:
        bumps = 1e-30j * np.eye(4)
        return np.array([normal_log_likelihood(at + bump, data).imag for bump in bumps]) / 1e-30

    close(found[0], normal_log_likelihood(at, data), 1e-10)
    close(found[1], gradient(at), 1e-9)
    step_ = 1e-5 * np.array([0.3, -0.5, 0.2, 1.0])
    close(found[2], (gradient(at + step_) - gradient(at - step_)) / 2e-5, 1e-7)


@pytest.mark.parametrize("checkpoint", [None, 100, "log"])
def test_adjoint_of_runge_kutta(checkpoint: Any) -> None:
    """Logistic growth y' = r y (1 - y / k) over 10,000 steps, against the exact solution."""
    y0, r, k = (gc.tensor(name, {}) for name in ("y0", "r", "k"))
    h = 3.0 / 10_000

    def slope(y: gc.Tensor) -> gc.Tensor:
        return r * y * (1 - y / k)

    def step(y: gc.Tensor, _: None) -> Any:
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    last, _ = gc.scan(step, y0, length=10_000, checkpoint=checkpoint)
    found = gc.compile([y0, r, k], [last, *gc.grad(last, [y0, r, k])])(0.2, 0.9, 1.5)

    def exact(y0: complex, r: complex, k: complex) -> complex:
        return k / (1 + (k / y0 - 1) * np.exp(-3 * r))

    at = np.array([0.2, 0.9, 1.5])
    wanted = [exact(*at), *[exact(*(at + bump)).imag / 1e-30 for bump in 1e-30j * np.eye(3)]]
    close(found, wanted, 1e-11)


# ---- derivatives with a say of one's own, and inside of bodies


def test_deep_equilibrium() -> None:
    """z = tanh(w z + x), by the implicit function theorem, as through the steps of the solver."""
    n = 4
    w, x = gc.tensor("w", {"row": n, "col": n}), gc.tensor("x", {"row": n})
    zeros = gc.zeros({"row": n})

    def layer(w: gc.Tensor, x: gc.Tensor, z: gc.Tensor) -> gc.Tensor:
        return gc.tanh(gc.dot(w, z.rename(row="col"), dim="col") + x)

    def fixed_point(step: Any, start: gc.Tensor) -> gc.Tensor:
        return gc.while_loop(lambda z: abs(step(z) - z).max() > 1e-15, step, start, max_steps=500)

    def solve(w: gc.Tensor, x: gc.Tensor) -> gc.Tensor:
        return fixed_point(lambda z: layer(w, x, z), zeros)

    def implicit(operands: Any, z: gc.Tensor, ct: gc.Tensor) -> Any:
        """The cotangent v = ct + v dlayer/dz of the layer, pulled back to its weights."""
        w, x = operands
        free = z * 1.0
        y = layer(w, x, free)
        v, _ = gc.scan(lambda v, _: (ct + gc.pullback(y, free, v), None), ct, length=80)
        return tuple(gc.pullback(y, [w, x], v))

    def asked(z: gc.Tensor) -> list[gc.Tensor]:
        loss = (z * z * z).sum()
        first = gc.grad(loss, [w, x])
        return [loss, *first, *gc.grad((first[0] ** 2).sum() + gc.sin(first[1]).sum(), [w, x]),
                gc.pushforward(loss, [w, x], [w * w, x])]  # fmt: skip

    unrolled, _ = gc.scan(lambda z, _: (layer(w, x, z), None), zeros, length=80)
    random = np.random.default_rng(4)
    values = 0.25 * random.normal(size=(n, n)), random.normal(size=n)
    found = gc.compile([w, x], asked(gc.custom_pullback(solve, implicit)(w, x)))(*values)
    wanted = gc.compile([w, x], asked(unrolled))(*values)
    for got, want in zip(found, wanted, strict=True):
        close(got, want, 1e-10)


def test_gradient_descent_differentiated() -> None:
    """Steps of gradient descent on a quadratic, by the learning rate and by the data."""
    a, b = gc.tensor("a", {"row": 6, "col": 3}), gc.tensor("b", {"row": 6})
    rate = gc.tensor("rate", {})

    def loss(theta: gc.Tensor) -> gc.Tensor:
        return ((gc.dot(a, theta, dim="col") - b) ** 2).mean()

    def step(theta: gc.Tensor, _: None) -> Any:
        return theta - rate * gc.grad(loss(theta), theta), loss(theta)

    theta, losses = gc.scan(step, gc.zeros({"col": 3}), length=20)
    score = (theta**2).sum() + losses.sum()
    first = gc.grad(score, [rate, b, a])
    outputs = [score, *first, gc.grad(first[0], rate)]

    def by_hand(rate: Any, a: Any, b: Any) -> Any:
        theta, total = np.zeros(3), 0.0
        for _ in range(20):
            error = a @ theta - b
            total = total + (error**2).mean()
            theta = theta - rate * 2 / 6 * a.T @ error
        return (theta**2).sum() + total

    random = np.random.default_rng(5)
    at = 0.13, random.normal(size=(6, 3)), random.normal(size=6)
    found = gc.compile([rate, a, b], outputs)(*at)
    tiny = 1e-30j
    close(found[0], by_hand(*at))
    close(found[1], by_hand(at[0] + tiny, *at[1:]).imag / 1e-30, 1e-11)
    bumps = tiny * np.eye(6)
    close(found[2], [by_hand(*at[:2], at[2] + bump).imag / 1e-30 for bump in bumps], 1e-11)
    bumps = tiny * np.eye(18).reshape(18, 6, 3)
    by_a = [by_hand(at[0], at[1] + bump, at[2]).imag / 1e-30 for bump in bumps]
    close(found[3], np.reshape(by_a, (6, 3)), 1e-11)
    rates = [by_hand(at[0] + d + tiny, *at[1:]).imag / 1e-30 for d in (1e-5, -1e-5)]
    close(found[4], (rates[0] - rates[1]) / 2e-5, 1e-8)


@pytest.mark.parametrize("steps", [100, 10**6, None])
def test_nested_checkpoints_grow_with_their_depth(steps: int | None) -> None:
    """However many steps there are, one loop holds the body, so that no copies multiply."""
    x, xs = gc.tensor("x", {}), gc.tensor("xs", {"time": steps})

    def nested(c: gc.Tensor, depth: int) -> gc.Tensor:
        if not depth:
            return gc.sin(c) * 0.5 + c
        step = lambda i, s: nested(s, depth - 1)
        return gc.fori_loop(0, xs.sizes["time"], step, c, checkpoint="log")

    programs = [
        gc.compile([x, xs], gc.grad(nested(x, depth), x), native=False) for depth in (1, 2, 3)
    ]
    one, two, three = [len(f.source.splitlines()) for f in programs]
    assert three - two <= 1.2 * (two - one)
    assert two <= 2.1 * one


def chunked(checkpoint: Any, reverse: bool, depth: int) -> list[gc.Tensor]:
    """Values, derivatives in both modes and second ones of loops along a time of any length."""
    x, w = gc.tensor("x", {"time": None}), gc.tensor("w", {})

    def nested(c: gc.Tensor, depth: int) -> gc.Tensor:
        def step(c: gc.Tensor, here: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
            inner = nested(c * w, depth - 1) if depth > 1 else gc.sin(c * w)
            new = inner + 0.3 * here * c
            return new, new * here

        last, ys = gc.scan(step, c, x, reverse=reverse, checkpoint=checkpoint)
        return last + gc.sin(ys).sum() * 0.1

    alone = gc.map(lambda here: gc.sin(here * w), x, "time", checkpoint=checkpoint)
    y = nested(gc.constant(0.5), depth) + alone.sum()
    slope = gc.pushforward(y, w, 1.0)
    return [y, *gc.grad(y, [x, w]), slope, gc.grad(slope, w)]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(
    ("checkpoint", "reverse", "depth", "lengths"),
    [
        pytest.param(3, True, 1, (0, 1, 2, 3, 4, 7, 12)),
        pytest.param("log", False, 1, (0, 1, 2, 31, 33, 97, 1031, 32779), marks=pytest.mark.slow),
        pytest.param("log", True, 2, (0, 1, 2, 3, 8, 33), marks=pytest.mark.slow),
        pytest.param(3, True, 3, (0, 1, 2, 5, 7), marks=pytest.mark.slow),
    ],
)
def test_chunks_of_an_unknown_number_of_steps(
    native: bool, checkpoint: Any, reverse: bool, depth: int, lengths: tuple[int, ...]
) -> None:
    """Values and derivatives of a checkpointed loop are those of the plain one."""
    inputs = [gc.tensor("x", {"time": None}), gc.tensor("w", {})]
    plain, chunks = [
        gc.compile(inputs, chunked(how, reverse, depth), native=native)
        for how in (None, checkpoint)
    ]
    for length in lengths:
        xs = np.random.default_rng(length).normal(size=length) * 0.5
        for found, wanted in zip(chunks(xs, 0.7), plain(xs, 0.7), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-13)
