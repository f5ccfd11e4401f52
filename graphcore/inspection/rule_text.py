"""What a rule says: its equation or name, and where it stands."""

from __future__ import annotations

import inspect
import linecache
import re
from functools import partial
from typing import NamedTuple

from graphcore.ir.help_text import attributes
from graphcore.ir.trace import Rule, without_modules

EQUATION = re.compile(r"\((.*), lambda [^:]*: (.*?)( if .* else None)?\),?$")
ENTRY = re.compile(r"(?:[a-z]\w*\.)?(\w+): (lambda .*?),?$")


@attributes(
    name='The name of its function; "" where it has none.',
    equation="The equation or the entry of a table that it is, else the first line of its "
    "docstring.",
    file="The file in which it stands.",
    line="Its line there.",
)
class Said(NamedTuple):
    """A rule in words."""

    name: str
    equation: str
    file: str
    line: int

    @property
    def place(self) -> str:
        """`algebra.py:41`."""
        *folders, file = self.file.replace("\\", "/").split("/")
        file = f"{folders[-1]}/{file}" if folders and file == "__init__.py" else file
        return f"{file}:{self.line}" if file else "unknown"

    def __str__(self) -> str:
        return f"{self.place}  {': '.join(filter(None, [self.name, self.equation]))}"


def rule_text(rule: Rule) -> Said:
    """What a rule says, read from its source."""
    rule = inspect.unwrap(rule)
    rule = rule.func if isinstance(rule, partial) else rule
    code = getattr(rule, "__code__", None)
    name = getattr(rule, "__name__", "")
    file, line = (code.co_filename, code.co_firstlineno) if code else ("", 0)
    if name and name != "<lambda>":
        doc = (inspect.getdoc(rule) or "").partition("\n")[0]
        return Said(name, doc, file, line)
    text = without_modules(linecache.getline(file, line).strip(), file)
    if (found := EQUATION.match(text)) is not None:
        return Said("", f"{found[1]} = {found[2]}".replace("P.", ""), file, line)
    if (entry := ENTRY.match(text)) is not None:
        return Said("", f"{entry[1]}: {entry[2]}", file, line)
    return Said("", (name and text) or repr(rule), file, line)
