"""Meshes of eight virtual devices, and two processes: each in Python processes of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.backends.jax_backend import on_mesh
from tests.backends.jax_backend.on_processes import HEARTBEAT
from tests.docs import pages

pytestmark = pytest.mark.slow
FOLDER = "tests.backends.jax_backend"


def environment(devices: int) -> dict[str, str]:
    return os.environ | {"JAX_NUM_CPU_DEVICES": str(devices), "JAX_PLATFORMS": "cpu"}


@pytest.mark.parametrize("name", on_mesh.CHECKS)
def test_programs_on_eight_devices_are_those_on_one(name: str) -> None:
    command = [sys.executable, "-m", f"{FOLDER}.on_mesh", name]
    options: Any = {"capture_output": True, "text": True, "timeout": 600}
    run = subprocess.run(command, env=environment(8), **options)
    assert run.returncode == 0, run.stderr


PAGE = """
import importlib.util, os, pathlib, sys
from tests.docs import pages
text, blocks = pathlib.Path("docs/howto/mesh.md").read_text("utf-8"), 5
if importlib.util.find_spec("orbax") is None:
    text, blocks = text.partition("### Checkpoints")[0], 4
os.chdir(sys.argv[1])
ran = [*pages.run(text, "py")]
assert len(ran) == blocks
for snippet in ran:
    assert snippet.right, snippet.printed
"""


def test_the_page_about_meshes_prints_what_it_shows(tmp_path: Path) -> None:
    """Its checkpoints too, where Orbax is installed."""
    options: Any = {"capture_output": True, "text": True, "timeout": 600, "cwd": pages.ROOT}
    command = [sys.executable, "-c", PAGE, str(tmp_path)]
    run = subprocess.run(command, env=environment(8), **options)
    assert run.returncode == 0, run.stderr


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
    return port


def start(count: int, *more: str, script: str = "on_processes") -> list[subprocess.Popen[str]]:
    """Processes that work together, with four devices in all."""
    port = str(free_port())
    return [
        subprocess.Popen(
            [sys.executable, "-m", f"{FOLDER}.{script}", port, str(count), str(number), *more],
            env=environment(4 // count),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]


def result(run: subprocess.Popen[str]) -> list[float]:
    out, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors
    (line,) = (line for line in out.splitlines() if line.startswith("result "))
    return [*map(float, line.split()[1:])]


def test_two_processes_train_as_one() -> None:
    (alone,) = map(result, start(1))
    first, second = map(result, start(2))
    assert first == second
    assert first == pytest.approx(alone, rel=1e-13, abs=1e-15)


@pytest.mark.skipif(find_spec("orbax") is None, reason="Orbax is not installed")
@pytest.mark.parametrize("count", [1, 2])
def test_what_some_processes_save_others_restore(count: int, tmp_path: Path) -> None:
    """Each saves and reads its part of the weights."""
    run = lambda count, how: start(count, str(tmp_path / "step_5"), how, script="on_checkpoints")
    saved = [*map(result, run(count, "save"))]
    restored = [*map(result, run(3 - count, "restore"))]
    assert len(saved) + len(restored) == 3
    assert all(found == pytest.approx(saved[0], rel=1e-13) for found in saved + restored)


@pytest.mark.parametrize("dying", [0, 1], ids=["the first", "another"])
def test_a_killed_process_ends_the_other_within_the_heartbeat(dying: int) -> None:
    """Also the first process, at whose address all meet."""
    processes = start(2, str(dying))
    killed, other = processes[dying], processes[1 - dying]
    try:
        killed.communicate(timeout=120)
        assert killed.returncode == -signal.SIGKILL
        since = time.monotonic()
        _, errors = other.communicate(timeout=10 * HEARTBEAT)
        assert other.returncode not in (0, None), errors
        assert time.monotonic() - since < 4 * HEARTBEAT
    finally:
        for run in processes:
            run.kill()
            run.communicate()
