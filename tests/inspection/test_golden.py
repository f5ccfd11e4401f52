"""What the compiler makes of four models, stage by stage; `--update-golden` rewrites the files."""

from __future__ import annotations

import gc as garbage
import io
from collections.abc import Callable

import pytest

import graphcore as gc
from tests.linalg.test_linalg_programs import gaussian_process


def logistic_regression() -> gc.Compiled:
    x = gc.tensor("x", {"sample": None, "feature": 4})
    w = gc.tensor("w", {"feature": 4})
    y = gc.tensor("y", {"sample": None})
    loss = gc.log(1 + gc.exp(-y * gc.dot(x, w, dim="feature"))).mean("sample")
    return gc.compile([x, w, y], [loss, gc.grad(loss, w)])


def attention() -> gc.Compiled:
    q = gc.tensor("q", {"head": 2, "query": None, "depth": 8})
    k = gc.tensor("k", {"head": 2, "key": None, "depth": 8})
    v = gc.tensor("v", {"head": 2, "key": None, "depth": 8})
    weights = gc.special.softmax(gc.dot(q, k, dim="depth") / 8**0.5, dim="key")
    out = gc.dot(weights, v, dim="key")
    return gc.compile([q, k, v], [out, *gc.grad((out * out).sum(), [q, k, v])])


def layer_norm() -> gc.Compiled:
    x = gc.tensor("x", {"batch": None, "feature": 16})
    scale = gc.tensor("scale", {"feature": 16})
    ct = gc.tensor("ct", {"batch": None, "feature": 16})
    y = (x - x.mean("feature")) / gc.sqrt(x.var("feature") + 1e-5) * scale
    return gc.compile([x, scale, ct], [y, *gc.pullback(y, [x, scale], ct)])


@pytest.mark.parametrize("model", [logistic_regression, attention, layer_norm, gaussian_process])
def test_stages(model: Callable[[], gc.Compiled], golden: Callable[[str, str], None]) -> None:
    garbage.collect()  # an equal program that was built elsewhere would lend its lines
    f = model()
    out = io.StringIO()
    f.debug_print(file=out)
    golden(model.__name__, f"{out.getvalue()}\n--- source\n{f.source}")
