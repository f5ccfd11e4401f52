"""Programs by blocks in threads, processes, and on a cluster whose workers have little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import pytest
import xarray

import graphcore as gc

SCRIPT = '''
import sys
import dask
import dask.array as da
import numpy as np
import xarray
import graphcore as gc

dask.config.set({"distributed.worker.memory.terminate": False})
x, w = gc.tensor("x", {"sample": None, "feature": None}), gc.tensor("w", {"feature": None})
t = gc.tensor("t", {"month": None, "lat": None, "lon": None})
residual = gc.dot(x, w, dim="feature") - 1
loss = (residual**2).mean()
months = t.unstack(
    month={"year": t.sizes["month"] // 12, "of": 12}
)
mean = months.mean("year")
PROGRAMS = {
    "loss": gc.compile([x, w], {"loss": loss, "dw": gc.grad(loss, w)}),
    "samples": gc.compile([x, w], (gc.grad(residual**2, w, per="sample") ** 2).sum("feature")),
    "climatology": gc.compile([t], {"mean": mean, "away": abs(months - mean).max(("year", "of"))}),
    "spread": gc.compile([t], t.std("month")),
}


def random(dims, shape, chunks):
    """Random numbers, made by the workers."""
    made = da.random.default_rng(0).normal(size=shape, chunks=chunks)
    return xarray.DataArray(made, dims=dims)


def results(size, names):
    """Lazy results, and the program and arguments of each."""
    X = random(("sample", "feature"), (size, 500), (size // 25, 500))
    dims, shape = ("month", "lat", "lon"), (120, size // 25, 100)
    T, S = random(dims, shape, (120, 40, 100)), random(dims, shape, (5, *shape[1:]))
    W = np.linspace(-1, 1, 500)
    given = {"loss": (X, W), "samples": (X, W), "climatology": (T,), "spread": (S,)}
    return {name: (PROGRAMS[name](*given[name]), given[name]) for name in names}


def known():
    """How many programs a worker has compiled, and whether it has loaded JAX."""
    from graphcore.interop.blocks.tasks import Shipped

    return len(Shipped.known), "jax" in sys.modules


def check(name, found, args):
    """What blocks computed is what the program computes of the whole."""
    (whole,) = dask.compute(args, scheduler="threads")
    expected = PROGRAMS[name](*whole)
    found, expected = (y if isinstance(y, dict) else {"y": y} for y in (found, expected))
    for key, y in found.items():
        np.testing.assert_allclose(y.values, expected[key], rtol=1e-11, atol=1e-12)
    print(name, "equal")


def main(kind, size, *names):
    made = results(int(size), names)
    lazy = {name: y for name, (y, _) in made.items()}
    if kind == "processes":
        with dask.config.set(scheduler="processes", num_workers=2):
            (found,) = dask.compute(lazy)
    else:
        from distributed import Client, LocalCluster

        with LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="400MB", dashboard_address=None
        ) as cluster, Client(cluster) as client:
            found = {name: dask.compute(y)[0] for name, y in lazy.items()}
            for programs, has_jax in client.run(known).values():
                assert 1 <= programs <= 8 and not has_jax
        assert all(max(x.nbytes for x in args) > 400e6 for _, args in made.values())
    for name, (_, args) in made.items():
        check(name, found[name], args)


if __name__ == "__main__":
    main(*sys.argv[1:])
'''


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "size", "names"),
    [
        ("processes", 1_000, ("loss", "samples", "climatology", "spread")),
        ("cluster", 110_000, ("loss", "samples")),
        ("cluster", 110_000, ("climatology", "spread")),
    ],
)
def test_other_processes(kind: str, size: int, names: tuple[str, ...], tmp_path: Path) -> None:
    """On a cluster the arrays are larger than the memory of a worker, 400 MB."""
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    command = [sys.executable, str(file), kind, str(size), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [f"{name} equal" for name in names]


def test_threads() -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], [gc.exp(x), x.sum()], native=False)
    given = xarray.DataArray(np.arange(100.0), dims="row").chunk(row=9)
    with dask.config.set(scheduler="threads", num_workers=2):
        found = dask.compute(f(given))[0]
    np.testing.assert_array_equal(found[0], np.exp(np.arange(100.0)))
    assert found[1] == 4950.0


def test_a_program_is_compiled_once_in_a_process() -> None:
    from graphcore.interop.blocks.tasks import Shipped

    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], 3 * x, native=False)
    shipped = Shipped(f)
    assert shipped.program() is f
    Shipped.known.clear()
    first = shipped.program()
    assert first is not f
    assert first(np.ones(1)) == [3.0]
    assert Shipped(first).program() is first
    assert shipped.program() is first
