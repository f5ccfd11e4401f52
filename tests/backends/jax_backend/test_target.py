"""`target="jax"`: what it is given, what it refuses, and what it leaves as it was."""

from __future__ import annotations

import subprocess
import sys

import jax
import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.jax_backend.sizes import Sizes
from graphcore.backends.targets import JAX
from graphcore.ir.sizes import maximum, minimum, unknown
from graphcore.ops import tensor
from graphcore.rewrites import pipeline

x = gc.tensor("x", {"row": None, "col": 3})


def test_contractions_stay_whole() -> None:
    w = gc.tensor("w", {"col": 3, "head": 2, "out": None})
    y = gc.dot(x, w, dim="col").sum("head")
    f = gc.compile([x, w], y, target="numpy")
    whole = pipeline.run(f.stages["named"], JAX.shared)[-1].graph
    assert tensor.einsum not in f.stages["optimized"].ops()
    assert tensor.einsum in whole.ops()


def test_jax_is_imported_at_its_first_use() -> None:
    code = "import graphcore, sys; assert not [x for x in sys.modules if x.startswith('jax')]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_setting_for_64_bits_is_left_alone() -> None:
    f = gc.compile([x], [x, gc.arange(3, dim="k")], target="jax")
    same, numbers = f(np.ones((2, 3)))
    assert same.dtype == np.float64
    assert numbers.dtype == np.int64
    same[0] = 2.0  # an array of the caller's own
    assert jax.numpy.ones(2).dtype == np.float32
    given = jax.numpy.ones((4, 3), np.float32)
    assert (f(given)[0] == 1).all()
    with pytest.raises(gc.GraphValueError, match="dim 'col' of input 'x' has size 2"):
        f(jax.numpy.ones((4, 2)))


def test_a_padded_size_has_room_for_the_most_elements() -> None:
    steps, batch = unknown("steps"), unknown("batch")
    sizes = Sizes({"batch": 5}, {"steps": 8})
    sizes.counts["steps"] = 3
    for size, capacity, count in (
        (steps, 8, 3),
        (2 * steps + batch, 21, 11),
        (batch - steps, 5, 2),
        (minimum(steps, batch), 5, 3),
        (maximum(steps, batch + 1), 8, 6),
        (steps // 2, 4, 1),
        (steps % 2, 1, 1),
        (batch * 2, 10, 10),
    ):
        assert (sizes.in_memory(size), int(sizes.count(size))) == (capacity, count), size


def test_a_function_takes_the_options_of_compile() -> None:
    def half(x: gc.Tensor) -> gc.Tensor:
        return x.sum() / 2

    f = gc.function(x={"row": None}, target="jax", sizes="buckets")(half)
    assert [f(np.ones(n)) for n in (5, 7)] == [2.5, 3.5]
    assert [made.sizes for made in f.compiled(np.ones(5)).compilations] == [{"row": 8}]
    mesh, shard = gc.Mesh({"data": 1}), {"row": "data"}
    g = gc.function(x={"row": None}, target="jax", mesh=mesh, shard=shard, gather="refuse")(half)
    assert g(np.ones(5)) == 2.5
    assert g.compiled(np.ones(5)).messages(np.ones(5)).bytes == 0
