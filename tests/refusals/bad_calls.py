"""The wrong calls of tests/golden/bad_calls.txt, each with its refusal in full.

Paragraphs of the file are a heading ("# group"), code that the calls below it stand on (the first
is for all), or a call (">>> code", with "... " before its further lines) and its refusal. A new
call is a line there: `--update-golden` writes what becomes of it, for you to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import graphcore as gc

FILE = Path(__file__).parents[1] / "golden" / "bad_calls.txt"


class Case(NamedTuple):
    """A wrong call, as the end of a user's file model.py."""

    group: str
    setup: str
    code: str


def paragraphs() -> Iterator[tuple[str, Case | None]]:
    """The paragraphs of the file, without what follows a call, and the call if it is one."""
    group, prelude, own = "", [], []
    waiting = True
    for text in FILE.read_text("utf-8").rstrip("\n").split("\n\n"):
        if text.startswith(">>> "):
            lines = text.splitlines()
            end = 1 + sum(line.startswith("... ") for line in lines)
            code = "\n".join(line[4:] for line in lines[:end])
            setup = "".join("\n\n".join(parts) + "\n" for parts in (prelude, own) if parts)
            yield "\n".join(lines[:end]), Case(group, setup, code)
            waiting = False
            continue
        if text.startswith("# "):
            group, own = text[2:], []
        elif not group:
            prelude.append(text)
        else:
            own = [*own, text] if waiting else [text]
        waiting = True
        yield text, None


CASES = [case for _, case in paragraphs() if case]


def refusal(case: Case, scope: dict[str, object] | None = None) -> gc.GraphError:
    """The error of the last lines of model.py; the scope keeps what the file defines."""
    scope = {} if scope is None else scope
    exec(compile(case.setup, "model.py", "exec"), scope)
    last = compile("\n" * case.setup.count("\n") + case.code, "model.py", "exec")
    try:
        exec(last, scope)
    except gc.GraphError as error:
        return error
    raise AssertionError(f"not refused: {case.code}")


def text() -> str:
    """The file as it should be."""
    shown = []
    for paragraph, case in paragraphs():
        if case:
            error = refusal(case)
            paragraph += f"\n{type(error).__name__}: {error}"
        shown.append(paragraph)
    return "\n\n".join(shown)
