"""The README's snippets run, in order, and print what stands below them."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np

import graphcore as gc

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


CELL = re.compile(r"^\|.*?(?<!\\)\|(.*)\|$", re.MULTILINE)


def scope_of_tables() -> dict[str, Any]:
    """What the snippets in the tables speak of."""
    x, w = gc.tensor("x", {"row": 2, "col": None}), gc.tensor("w", {"row": 2})
    return {
        **{"gc": gc, "np": np, "x": x, "w": w, "loss": (x * w).sum(), "array": np.ones(2)},
        "xs": gc.tensor("xs", {"batch": None, "row": 2, "col": None}),
        "ids": gc.constant([0, 1], "row"),
        "positions": [1, 0],
    }


def test_snippets_of_the_tables_run() -> None:
    """Whatever stands in the second column and speaks of tensors is an expression."""
    text = README.read_text(encoding="utf-8")
    tables = text[text.index("## Coming from") : text.index("## Limits")]
    snippets = [
        snippet
        for row in CELL.findall(tables)
        for snippet in re.findall("`([^`]+)`", row)
        if re.match(r"(gc\.|np\.|x\b|w\b|\(x)", snippet)
    ]
    assert len(snippets) > 80
    for snippet in snippets:
        assert eval(snippet, scope_of_tables()) is not None, snippet


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


def test_programs_shown_are_those_of_the_benchmarks() -> None:
    """Each pair of excerpts stands in the files, and has as many lines as it is said to have."""
    text = README.read_text(encoding="utf-8")
    shown = re.findall(
        r"\(`(benchmarks/programs/(\w+)\.py)`\): (\d+) lines, (\d+) in JAX\.(.*?)</table>",
        text,
        re.DOTALL,
    )
    assert len(shown) == 3
    for file, name, *counts, rest in shown:
        files = (file, f"benchmarks/programs/peers/jax/{name}.py")
        excerpts = re.findall(r"```py\n(.*?)```", rest, re.DOTALL)
        for path, count, excerpt in zip(files, counts, excerpts, strict=True):
            assert excerpt in (README.parent / path).read_text(encoding="utf-8")
            assert len([line for line in excerpt.splitlines() if line.strip()]) == int(count)
