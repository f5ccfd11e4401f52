"""The wheel and the sdist hold the package, all of it and nothing else at the top level."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
import numpy as np, graphcore as gc
x = gc.tensor("x", {"batch": None, "feature": 3}); w = gc.tensor("w", {"feature": 3})
loss = gc.special.softplus(gc.dot(x, w, dim="feature")).mean("batch")
f = gc.compile([x, w], [loss, gc.grad(loss, w)])
value, g = f(np.ones((4, 3)), np.zeros(3))
assert abs(value - np.log(2)) < 1e-12 and np.allclose(g, 0.5)
import graphcore.rewrites, graphcore.backends
print(gc.__file__)
"""


def run(*command: object, cwd: Path, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("dist")
    run("-m", "build", "--no-isolation", "--wheel", "--sdist", "--outdir", out, ROOT, cwd=out)
    return {"wheel": next(out.glob("*.whl")), "sdist": next(out.glob("*.tar.gz"))}


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def site(
    request: pytest.FixtureRequest,
    distributions: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A site-packages folder that has only what the distribution installs."""
    target = tmp_path_factory.mktemp(f"site-{request.param}")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", target]
    run("-m", "pip", "install", *options, distributions[request.param], cwd=target)
    return target


def package_files(names: list[str]) -> set[str]:
    return {n for n in names if n.startswith("graphcore/") and "__pycache__" not in n}


def files_below(folder: Path) -> set[str]:
    files = (file for file in (folder / "graphcore").rglob("*") if file.is_file())
    return package_files([file.relative_to(folder).as_posix() for file in files])


def test_only_graphcore_is_installed(site: Path) -> None:
    package, info = sorted(path.name for path in site.iterdir())
    assert package == "graphcore"
    assert info.startswith("graphcore-")
    assert info.endswith(".dist-info")


def test_every_file_is_installed(site: Path) -> None:
    assert files_below(site) == files_below(ROOT)


def test_distributions_hold_every_file_once(distributions: dict[str, Path]) -> None:
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        in_wheel = wheel.namelist()
    with tarfile.open(distributions["sdist"]) as sdist:
        in_sdist = [name.partition("/")[2] for name in sdist.getnames()]
    for names in (in_wheel, in_sdist):
        assert len(names) == len(set(names))
        assert package_files(names) == files_below(ROOT)
    assert {"LICENSE", "README.md", "pyproject.toml", "tests/conftest.py"} <= set(in_sdist)


@pytest.mark.parametrize("own_folders", [(), ("backends", "rewrites")])
def test_a_program_runs(site: Path, tmp_path: Path, own_folders: tuple[str, ...]) -> None:
    for name in own_folders:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError(__name__)\n")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    output = run(program, cwd=tmp_path, PYTHONPATH=str(site))
    assert Path(output.strip()) == site / "graphcore" / "__init__.py"
