"""Programs on eight virtual devices: `python -m tests.backends.jax_backend.on_mesh mlp`.

Each function runs programs on a mesh and on one device, and asserts what it must show. It needs
JAX_NUM_CPU_DEVICES=8.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import gpt as gpt_program
from benchmarks.programs import jacobi2d, kalman, mlp
from graphcore.backends.mesh import sharding_of
from graphcore.backends.messages import Messages, messages
from graphcore.backends.targets import XLA
from graphcore.compile.compiled import Compiled

CHECKS: dict[str, Callable[[], None]] = {}
DATA, MODEL = gc.Mesh({"data": 8}), gc.Mesh({"model": 8})
BOTH = gc.Mesh({"data": 4, "model": 2})
TOLERANCE = 1e-12


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS[function.__name__] = function
    return function


def on(mesh: gc.Mesh, program: Compiled, shard: Mapping[str, str], gather: Any = "refuse") -> Any:
    """A program of the benchmarks, on a mesh."""
    target = XLA(sharding=sharding_of(mesh, shard, gather))
    forms = program._arguments, program._results
    return Compiled(program.stages["named"], *forms, asked=target)


def agree(found: Any, wanted: Any) -> None:
    """Assert that results are equal to rounding, relative to the largest element of each."""
    for a, b in zip(gc.tree.leaves(found), gc.tree.leaves(wanted), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, (a.shape, b.shape)
        scale = np.abs(b[np.isfinite(b)]).max(initial=1e-300)
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE * scale)


def compare(
    module: Any, sizes: Mapping[str, Any], mesh: gc.Mesh, shard: Mapping[str, str]
) -> Messages:
    """What is sent by a program of the benchmarks, whose results are those of one device."""
    module.SIZES["here"] = dict(sizes)
    given, program = module.inputs("here"), module.program()
    meshed = on(mesh, program, shard)
    agree(meshed(**given), program(**given))
    found: Messages = meshed.messages(**given)
    assert all(message.serves for message in found), found
    assert not any(message.kind == "all-gather" for message in found), found
    return found


def sent(found: Messages) -> list[tuple[str, int]]:
    return [(message.kind, message.bytes) for message in found]


MLP = {"batch": 32, "in": 64, "hidden": 128, "inner": 64, "class": 16}


@check
def perceptron() -> None:
    found = compare(mlp, MLP, DATA, {"batch": "data"})
    assert sent(found) == [("all-reduce", 140_936)]
    found = compare(mlp, MLP, MODEL, {"hidden": "model"})
    assert sent(found) == [("all-reduce", 16_384)]
    assert found[0].along == ("model",)
    assert "mlp.py:52" in found[0].serves[0]
    found = compare(mlp, MLP, BOTH, {"batch": "data", "hidden": "model"})
    assert sorted(sent(found)) == [("all-reduce", 4096), ("all-reduce", 74_888)]


@check
def memory() -> None:
    """The bytes of arguments on each device fall with the mesh."""
    mlp.SIZES["here"] = dict(MLP)
    given, program = mlp.inputs("here"), mlp.program()
    found = {}
    for mesh, shard in ((DATA, {}), (DATA, {"batch": "data"}), (MODEL, {"hidden": "model"})):
        meshed = on(mesh, program, shard)
        meshed(**given)
        (compiled,) = meshed._program.meshed.programs.values()
        key = next(iter(shard), "whole")
        found[key] = compiled.memory_analysis().argument_size_in_bytes
    assert found == {"whole": 161_408, "batch": 143_488, "hidden": 45_824}


@check
def attention() -> None:
    sizes = {"batch": 8, "time": 8, "embed": 8, "head": 2, "layer": 2, "vocab": 16, "spread": 0.5}
    found = compare(gpt_program, sizes, DATA, {"batch": "data"})
    assert found.bytes < 40_000
    found = compare(gpt_program, sizes, BOTH, {"batch": "data", "head": "model"})
    assert {axis for message in found for axis in message.along} == {"data", "model"}


@check
def filters() -> None:
    """A Kalman filter over series, of a number that devices divide and of one that they do not."""
    for series in (16, 13):
        sizes = {"time": 9, "series": series, "state": 4, "sensor": 2}
        assert compare(kalman, sizes, DATA, {"series": "data"}).bytes <= 1000


@check
def stencil() -> None:
    found = compare(jacobi2d, {"steps": 6, "side": 64}, DATA, {"row": "data"})
    assert {message.kind for message in found} == {"collective-permute"}


@check
def processes_of_gauss() -> None:
    """A batch of Gaussian processes: factors of matrices, each on one device."""
    x = gc.tensor("x", {"batch": None, "row": None, "feature": 2})
    y = gc.tensor("y", {"batch": None, "row": None})
    scale = gc.tensor("scale", {})
    other = x.rename({"row": "col"})
    kernel = gc.exp(-((x - other) ** 2).sum("feature") * scale)
    kernel = kernel + gc.eye({"row": x.sizes["row"], "col": x.sizes["row"]}) * 0.1
    factor = gc.linalg.cholesky(kernel, dims=("row", "col"))
    solved = gc.linalg.solve_triangular(factor, y, dims=("row", "col"), lower=True)
    loss = (solved**2).sum() + 2 * gc.log(gc.diagonal(factor)).sum()
    outputs = [loss, gc.grad(loss, scale)]
    rng = np.random.default_rng(0)
    options: dict[str, Any] = {"mesh": DATA, "shard": {"batch": "data"}, "gather": "refuse"}
    f = gc.compile([x, y, scale], outputs, target="jax", **options)
    for batch in (16, 11):
        given = rng.random((batch, 5, 2)), rng.random((batch, 5)), 0.7
        agree(f(*given), gc.compile([x, y, scale], outputs)(*given))
        assert f.messages(*given).bytes <= 100, f.messages(*given)


@check
def scan() -> None:
    """Steps of a loop whose state lies on several devices, and their derivative."""
    x = gc.tensor("x", {"time": None, "unit": None})
    w = gc.tensor("w", {"unit": None})
    start = gc.zeros_like(w)
    end, path = gc.scan(lambda s, x: (gc.tanh(s * w + x),) * 2, start, x, dim="time")
    loss = (path**2).mean() + (end**2).sum()
    outputs = [end, path, loss, gc.grad(loss, w)]
    options: dict[str, Any] = {"mesh": DATA, "shard": {"unit": "data"}, "gather": "refuse"}
    f = gc.compile([x, w], outputs, target="jax", **options)
    rng = np.random.default_rng(0)
    for units in (24, 21):
        given = rng.random((5, units)), rng.random(units)
        agree(f(*given), gc.compile([x, w], outputs)(*given))
        assert sum(message.in_loop for message in f.messages(*given)) == 0
        assert f.messages(*given).bytes <= 16, f.messages(*given)


@check
def uneven() -> None:
    """Elements beyond the end have no part in anything."""
    x = gc.tensor("x", {"batch": None, "row": 3})
    k = gc.tensor("k", {"batch": None}, dtype="int64")
    w = gc.tensor("w", {"table": None})
    taken = w.isel(table=k)
    loss = (gc.log(x).sum("row") * taken).mean()
    moved = {
        "taken": taken,
        "part": x.isel(batch=slice(1, None, 2)),
        "last": x.isel(batch=-1),
        "turned": x.isel(batch=slice(None, None, -1)),
        "joined": gc.concat([x, 1 / x], "batch"),
        "sorted": x.sort("batch"),
        "flat": x.stack(flat=("batch", "row")),
        "added": w.at[{"table": k}].add(x.sum("row")),
        "put": w.at[{"table": k}].set(x.sum("row")),
        "largest": w.at[{"table": k}].max(x.sum("row")),
        "steps": gc.scan(lambda s, x: (gc.sin(s + x), s), x.sum("batch"), x, dim="batch")[1],
    }
    reduced = {
        "loss": loss,
        "slopes": gc.grad(loss, [x, w]),
        "log": gc.log(x).sum(),
        "log max": gc.log(x).max("batch"),
        "inverse min": (-1 / x).min("batch"),
        "place": x.argmax("batch"),
        "product": x.prod("batch"),
        "spread": x.std("batch"),
        "count": (x == 0).sum(),
        "all": (x > 0).all(),
        "running": x.cumsum("batch"),
        "share": gc.special.softmax(x, "batch"),
        "square": gc.dot(x, x.rename(row="col"), dim="batch"),
    }
    rng = np.random.default_rng(0)
    outputs = {**moved, **reduced}
    one = gc.compile([x, k, w], outputs)
    for shard in ({"batch": "data"}, {"table": "data"}, {"batch": "data", "table": "model"}):
        mesh = DATA if len(shard) == 1 else BOTH
        f = gc.compile([x, k, w], outputs, target="jax", mesh=mesh, shard=shard)
        for batch, table in ((13, 5), (1, 9), (16, 8)):
            given = rng.random((batch, 3)) + 0.1, rng.integers(-5, 5, batch), rng.random(table)
            agree(f(*given), one(*given))
    assert [c.sizes for c in f.compilations] == [
        {"batch": batch, "table": table} for batch, table in ((13, 5), (1, 9), (16, 8))
    ]


@check
def failures() -> None:
    """What fails is worded as on one device: the position, the line, the step."""
    x = gc.tensor("x", {"batch": None})
    at = gc.tensor("at", {"step": None}, dtype="int64")
    _, found = gc.scan(lambda s, k: (s + x.isel(batch=k), s), 0.0, at, dim="step")
    options: dict[str, Any] = {"mesh": DATA, "shard": {"batch": "data"}}
    f = gc.compile([x, at], found, target="jax", **options)
    g = gc.compile([x, at], found)
    for wrong in (11, -12):
        given = np.arange(11.0), np.array([1, 2, wrong])
        said = []
        for program in (f, g):
            try:
                program(*given)
            except gc.GraphIndexError as error:
                said.append(str(error).replace("NumPy", ""))
        assert len(said) == 2
        assert said[0] == said[1]


@check
def gathers() -> None:
    """A large value that every device needs is said once for each program, or refused."""
    x = gc.tensor("x", {"batch": None})
    options: dict[str, Any] = {"target": "jax", "mesh": DATA, "shard": {"batch": "data"}}
    f = gc.compile([x], x.sort("batch"), **options)
    refusing = gc.compile([x], x.sort("batch"), gather="refuse", **options)
    large, small = np.arange(160_000.0)[::-1], np.arange(80.0)[::-1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for given in (small, large, large):
            agree(f(given), np.sort(given))
    (warned,) = caught
    for words in ("sort at on_mesh.py", "needs all of batch@data", "1,280,000 bytes", "cure: "):
        assert words in str(warned.message)
    agree(refusing(small), np.sort(small))
    with pytest.raises(gc.GraphError, match=r"sort at on_mesh.py"):
        refusing(large)


@check
def printed() -> None:
    """The last stage shows places, needs, and, after a call, messages."""
    x = gc.tensor("x", {"batch": None, "hidden": 16})
    y = gc.exp(x).sum("batch")
    shard = {"batch": "data", "hidden": "model"}
    f = gc.compile([x], y, target="jax", mesh=BOTH, shard=shard)
    before, after = shown(f), ""
    assert "x : f64[batch@data, hidden@model=16] = input" in before
    assert "joins batch@data" in before
    assert "f.messages(*args)" in before
    agree(f(np.ones((8, 16))), np.full(16, 8 * np.e))
    after = shown(f)
    assert "devices send, for batch=8:" in after
    assert "all-reduce" in after
    assert "f64[batch, hidden=16]" in shown(f, "optimized")


def shown(f: Compiled, stage: str = "sharded") -> str:
    out = io.StringIO()
    f.debug_print(stage, file=out)
    return out.getvalue()


@check
def arrays() -> None:
    """Results and arguments may stay on the devices, and the setting of JAX stays as it was."""
    x, w = gc.tensor("x", {"batch": None}), gc.tensor("w", {})
    new = w - (x * w).mean()
    options: dict[str, Any] = {"mesh": DATA, "shard": {"batch": "data"}, "returns": "jax"}
    f = gc.compile([x, w], [new, 2 * x], target="jax", **options)
    placed = f.place(np.arange(16.0), 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weight, twice = f(*placed)
        again, _ = f(twice, weight)
    assert isinstance(twice, jax.Array)
    assert twice.sharding.is_equivalent_to(placed[0].sharding, 1)
    assert len({shard.device for shard in twice.addressable_shards}) == 8
    agree([weight, again], [-3.25, 45.5])
    assert not jax.config.jax_enable_x64
    import pickle

    agree(
        pickle.loads(pickle.dumps(gc.compile([x], 2 * x, target="jax", mesh=DATA, shard={})))(
            np.ones(3)
        ),
        np.full(3, 2.0),
    )


@check
def inside_of_functions_that_jax_transforms() -> None:
    """A program at its places in what `jit`, `grad` and `vmap` make: equal, and as few messages."""
    x, y = gc.tensor("x", {"batch": None, "in": 4}), gc.tensor("y", {"batch": None})
    w, v = gc.tensor("w", {"in": 4, "hidden": None}), gc.tensor("v", {"hidden": None})
    made = gc.dot(gc.tanh(gc.dot(x, w, dim="in")), v, dim="hidden")
    inputs, loss = [x, y, w, v], ((made - y) ** 2).mean()
    shard = {"batch": "data", "hidden": "model"}
    f = gc.compile(inputs, [loss, made], target="jax", mesh=BOTH, shard=shard)
    one = gc.compile(inputs, [loss, made], target="jax")
    rng = np.random.default_rng(0)
    for batch, count in ((13, 15), (16, 16)):
        shapes = (batch, 4), (batch,), (4, count), (count,)
        given = [*map(rng.normal, (0,) * 4, (1,) * 4, shapes)]
        with jax.enable_x64(True):
            for made_of in TRANSFORMED.values():
                agree(made_of(f)(*given), made_of(one)(*given))
                agree(jax.jit(made_of(f))(*given), jax.jit(made_of(one))(*given))
    with jax.enable_x64(True):
        text = jax.jit(TRANSFORMED["grad"](f)).lower(*f.place(*given)).compile().as_text()
    found = messages(text, BOTH.axes)
    assert sent(found) == [("all-reduce", 2 * 4 * 8), ("all-reduce", 8 * (1 + 4 * 8 + 8))], found
    assert [message.along for message in found] == [("model",), ("data",)]
    assert all("on_mesh.py" in line for message in found for line in message.serves)


@check
def inside_without_the_dims_of_the_mesh() -> None:
    """A derivative may have none of the dims that lie along the mesh."""
    x, w = gc.tensor("x", {"batch": None}), gc.tensor("w", {"k": None})
    outputs = [gc.print((w**2).sum(), "loss"), x > 0]
    f = gc.compile([x, w], outputs, target="jax", mesh=DATA, shard={"batch": "data"})
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        slope = jax.jit(jax.grad(lambda x, w: f(x, w)[0], 1))(np.ones(16), np.arange(3.0))
        jax.effects_barrier()
    agree(slope, np.array([0.0, 2.0, 4.0]))
    assert printed.getvalue() == "loss: f64[] = 5.\n"


TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: lambda *args: [2 * y for y in f(*args)],
    "grad": lambda f: jax.value_and_grad(lambda *args: f(*args)[0], (2, 3)),
    "hessian": lambda f: jax.hessian(lambda *args: f(*args)[0], 3),
    "vmap": lambda f: lambda *args: jax.vmap(lambda k: f(*args[:3], k * args[3])[1])(np.ones(3)),
}


if __name__ == "__main__":
    assert jax.device_count() == 8
    CHECKS[sys.argv[1]]()
