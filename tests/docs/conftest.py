"""The site, built once for the tests that look at it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import pages


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; a warning is a failure."""
    pytest.importorskip("sphinx", reason="pip install -e '.[docs]' builds the site")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", f"{out}-trees", pages.ROOT / "docs", out],
        cwd=pages.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out
