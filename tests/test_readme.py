"""The README's snippets run, in order, and print what stands below them."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)

PLACE = re.compile(r"(  (?!model)[\w/]+\.py):\d+(?=  )")
"""A place of the library in an answer of `f.why`: its line changes with the library."""


def run_blocks(text: str) -> list[tuple[str, str | None, str]]:
    """Each snippet with the output shown for it, if any, and the output it has."""
    scope: dict[str, Any] = {}
    ran = []
    for match in BLOCK.finditer(text):
        code, shown = match.groups()
        out = io.StringIO()
        linecache.cache["model.py"] = len(code), None, code.splitlines(keepends=True), "model.py"
        with contextlib.redirect_stdout(out):
            exec(compile(code, "model.py", "exec"), scope)
        ran.append((code, shown, PLACE.sub(r"\1:…", out.getvalue())))
    return ran


def test_snippets_print_what_is_shown(request: Any) -> None:
    text = README.read_text(encoding="utf-8")
    ran = run_blocks(text)
    assert len(ran) >= 4
    if request.config.getoption("--update-golden"):
        for code, shown, got in ran:
            if shown is not None:
                block = f"```python\n{code}```\n\n```text\n"
                text = text.replace(f"{block}{shown}```\n", f"{block}{got.rstrip()}\n```\n")
        README.write_text(text, encoding="utf-8")
        return
    for code, shown, got in ran:
        if shown is not None:
            assert got.rstrip() == shown.rstrip(), code
