"""Deep blocks become functions of their own: Python allows 20 nested loops, and 100 levels.

Such a function takes the names that its block reads, and returns the names that it assigns and
later lines read. They are found in the text, where each name has one meaning.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

DEEPEST = 16
"""How many levels of blocks a function holds."""

INDENT = "    "
NAME = re.compile(r"[A-Za-z_]\w*")


class Row(NamedTuple):
    """A line of the source without its indentation, its level, and its number when written."""

    text: str
    level: int
    number: int | None

    def names(self) -> list[str]:
        """The words of a line, comments aside."""
        return NAME.findall(self.text.partition("  # ")[0])


def rows_of(lines: Iterable[str]) -> list[Row]:
    """Lines as rows, numbered from 1 on."""
    found = []
    for number, line in enumerate(lines, 1):
        text = line.lstrip(" ")
        found.append(Row(text, (len(line) - len(text)) // len(INDENT), number))
    return found


def shallow(rows: list[Row], scope: Container[str]) -> list[Row]:
    """The rows of a function, followed by those of the functions that its deep blocks become.

    The deepest blocks go first, so that the text that is parsed is never deep. All of them see
    the names of `scope`.
    """
    after: list[Row] = []
    deepest = max(row.level for row in rows if row.text != "break")
    level = (deepest - 2) // DEEPEST * DEEPEST + 1
    while level > 1:
        rows, made = split_blocks(rows, level, scope)
        after += made
        level -= DEEPEST
    return rows + after


def split_blocks(rows: list[Row], level: int, scope: Container[str]) -> tuple[list[Row], list[Row]]:
    """The rows with calls in place of blocks that begin at a level, and the rows of the blocks."""
    total = Counter(name for row in rows for name in row.names())
    seen: set[str] = set()
    kept: list[Row] = []
    functions: list[Row] = []
    made = count()
    for block in blocks(rows, level):
        names = Counter(name for row in block for name in row.names())
        if len(block) == 1 or block[1].text == "break":  # which belongs to the loop around it
            kept += block
        else:
            loaded, stored = uses(block, level)
            given = sorted(name for name in stored if total[name] > names[name])
            taken = sorted(
                name
                for name in seen & (loaded | set(given))
                if name not in scope and not hasattr(builtins, name)
            )
            call = f"block{level}_{next(made)}({', '.join(taken)})"
            kept.append(Row(f"{', '.join(given)}, = {call}" if given else call, level, None))
            functions.append(Row(f"def {call}:", 0, None))
            functions += [row._replace(level=row.level - level + 1) for row in block]
            functions.append(Row(f"return ({''.join(f'{name}, ' for name in given)})", 1, None))
        seen.update(names)
    return kept, functions


def blocks(rows: Sequence[Row], level: int) -> Iterator[Sequence[Row]]:
    """Rows by themselves, but those that begin a block at a level with the whole block."""
    at = 0
    while at < len(rows):
        end = at + 1
        while end < len(rows) and rows[at].level == level and belongs(rows[end], level):
            end += 1
        yield rows[at:end]
        at = end


def belongs(row: Row, level: int) -> bool:
    """Whether a row goes on with the block before it."""
    return row.level > level or (row.level == level and row.text.startswith(("elif ", "else:")))


def uses(block: Sequence[Row], level: int) -> tuple[set[str], set[str]]:
    """The names that a block reads, and those it assigns."""
    text = "\n".join(INDENT * (row.level - level) + row.text for row in block)
    loaded: set[str] = set()
    stored: set[str] = set()
    for part in ast.walk(ast.parse(text)):
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            loaded.add(part.target.id)
        if isinstance(part, ast.Name):
            (stored if isinstance(part.ctx, ast.Store) else loaded).add(part.id)
    return loaded, stored
