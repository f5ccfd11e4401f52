"""The rows as graphcore programs: the sizes of the run to a compiled function.

The batch is unknown until the call, as it is in most programs; the other dims have their sizes.
"""

from __future__ import annotations

import graphcore as gc

Sizes = dict[str, int]


def declare(names: str, sizes: Sizes, *dims: str) -> list[gc.Tensor]:
    """An input for each letter or word of `names`, all with the same dims, `batch` unknown."""
    declared = {dim: None if dim == "batch" else sizes[dim] for dim in dims}
    return [gc.tensor(name, declared) for name in names.split()]


def elementwise(sizes: Sizes) -> gc.Compiled:
    x, y = declare("x y", sizes, "batch")
    u = x * y + x
    v = gc.tanh(u) - 0.5 * y
    w = gc.sqrt(v * v + 1)
    return gc.compile([x, y], [w * gc.exp(-u * u) + v])


def softmax(sizes: Sizes) -> gc.Compiled:
    (x,) = declare("x", sizes, "batch", "class")
    return gc.compile([x], [gc.special.softmax(x, dim="class")])


def layer_norm(sizes: Sizes) -> gc.Compiled:
    x, ct = declare("x ct", sizes, "batch", "feature")
    scale, shift = declare("scale shift", sizes, "feature")
    centered = x - x.mean("feature")
    y = centered / gc.sqrt(x.var("feature") + 1e-5) * scale + shift
    return gc.compile([x, scale, shift, ct], [y, *gc.pullback(y, [x, scale, shift], ct)])


def logistic(sizes: Sizes) -> gc.Compiled:
    (x,) = declare("x", sizes, "batch", "feature")
    (w,) = declare("w", sizes, "feature")
    (b,) = declare("b", sizes)
    (y,) = declare("y", sizes, "batch")
    z = gc.dot(x, w, dim="feature") + b
    loss = (gc.special.softplus(z) - y * z).mean("batch")
    return gc.compile([x, w, b, y], [loss, *gc.grad(loss, [w, b])])


def mlp(sizes: Sizes) -> gc.Compiled:
    (x,) = declare("x", sizes, "batch", "feature")
    weights = [
        *declare("w1", sizes, "feature", "hidden"),
        *declare("b1", sizes, "hidden"),
        *declare("w2", sizes, "hidden", "class"),
        *declare("b2", sizes, "class"),
    ]
    w1, b1, w2, b2 = weights
    y = gc.tensor("y", {"batch": None}, dtype="int64")
    hidden = gc.tanh(gc.dot(x, w1, dim="feature") + b1)
    logits = gc.dot(hidden, w2, dim="hidden") + b2
    logp = gc.special.log_softmax(logits, dim="class")
    loss = -gc.take_along(logp, y, dim="class").mean("batch")
    return gc.compile([x, *weights, y], [loss, *gc.grad(loss, weights)])


def attention(sizes: Sizes) -> gc.Compiled:
    q, ct = declare("q ct", sizes, "batch", "head", "query", "depth")
    k, v = declare("k v", sizes, "batch", "head", "key", "depth")
    scores = gc.dot(q * sizes["depth"] ** -0.5, k, dim="depth")
    y = gc.dot(gc.special.softmax(scores, dim="key"), v, dim="key")
    return gc.compile([q, k, v, ct], [y, *gc.pullback(y, [q, k, v], ct)])
