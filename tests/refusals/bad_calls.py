"""The wrong calls of tests/golden/bad_calls.txt, each with the words of its refusal.

Paragraphs of the file are a heading ("# group", with "(no operands)" where a refusal may show
none), code that the calls below it stand on (the first is for all), or calls, one a line:
">>> code  =>  words". To add one, write the code and "  =>  "; `--update-golden` fills in the
words, for you to read. Laws judge the rest of a refusal: the operands, and the user's lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import graphcore as gc

FILE = Path(__file__).parents[1] / "golden" / "bad_calls.txt"
ARROW = "  =>  "
WHERE = re.compile(
    r"  .*\b((built|called|asked) at|declared as .* at) model\.py:\d|  its result is"
)
"""A line that says where a tensor is from: laws judge it."""


class Case(NamedTuple):
    """A wrong call, as the end of a user's file model.py."""

    group: str
    setup: str
    code: str


def paragraphs() -> Iterator[tuple[str, list[Case]]]:
    """The paragraphs of the file, and the calls of each."""
    group, prelude, own = "", [], []
    ended = True
    for text in FILE.read_text("utf-8").rstrip("\n").split("\n\n"):
        calls = [line[4:].partition(ARROW)[0] for line in text.splitlines() if line[:4] == ">>> "]
        if text.startswith("# "):
            group, own = text[2:], []
        elif not group:
            prelude.append(text)
        elif not calls:
            own = [text] if ended else [*own, text]
        setup = "".join("\n\n".join(parts) + "\n" for parts in (prelude, own) if parts)
        yield text, [Case(group, setup, code) for code in calls]
        ended = bool(calls)


CASES = [case for _, cases in paragraphs() for case in cases]


def refusal(case: Case, scope: dict[str, object] | None = None) -> gc.GraphError:
    """The error of the last line of model.py; the scope keeps what the file defines."""
    scope = {} if scope is None else scope
    exec(compile(case.setup, "model.py", "exec"), scope)
    last = compile("\n" * case.setup.count("\n") + case.code, "model.py", "exec")
    try:
        exec(last, scope)
    except gc.GraphError as error:
        return error
    raise AssertionError(f"not refused: {case.code}")


def words(error: gc.GraphError) -> str:
    """The reason and the cure, in one line."""
    lines = [line for line in str(error).splitlines() if not WHERE.match(line)]
    return f"{type(error).__name__}: {' | '.join(map(str.strip, lines))}"


def text() -> str:
    """The file as it should be."""
    shown = []
    for paragraph, cases in paragraphs():
        lines = [f">>> {case.code}{ARROW}{words(refusal(case))}" for case in cases]
        shown.append("\n".join(lines) if cases else paragraph)
    return "\n\n".join(shown)
