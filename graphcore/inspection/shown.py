"""Methods that show programs as HTML; the code that makes it is loaded at the first use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from graphcore.ir.errors import GraphTypeError
from graphcore.ir.help_text import parameters


class Shown:
    """The methods of compiled programs."""

    @parameters(path="The file to write, which is replaced if there is one.")
    def to_html(self: Any, path: str | os.PathLike[str]) -> None:
        """Write a page to look into the program: one HTML file that refers to nothing outside.

        It shows the stages side by side. Point at a line: every stage marks the lines that it
        was made from, and those made from it. The page says which rules fired, the user's line and
        the estimated cost.
        Loops can be folded, lines can be searched, and everything works by keyboard. At most 2,000
        lines of a stage are printed on paper.

        Raises
        ------
        GraphError
            If `path` is not a path.
        OSError
            If the file cannot be written.

        >>> import graphcore as gc, tempfile, pathlib
        >>> x = gc.tensor("x", {"row": 3})
        >>> file = pathlib.Path(tempfile.mkdtemp(), "program.html")
        >>> gc.compile([x], gc.log(1 + gc.exp(x))).to_html(file)
        >>> file.read_text("utf-8")[:15]
        '<!doctype html>'
        """
        from .page import page

        file_at("to_html", path, "program.html").write_text(page(self), "utf-8")

    def _repr_html_(self: Any) -> str:
        """The program in a notebook: a line, and its stages folded."""
        from .page import fold_html

        return fold_html(repr(self), self.stages)


def file_at(function: str, path: object, such_as: str) -> Path:
    """The file of this path, which is refused if it is none."""
    with suppress(ValueError):  # of names that no system has, such as "\ud800"
        if (
            isinstance(path, str | os.PathLike)
            and b"\0" not in (name := os.fsencode(path))
            and name
        ):
            return Path(os.fsdecode(name))
    cure = f'give the name of a file, as "{such_as}"'
    raise GraphTypeError(f"{function}: path={path!r:.60} names no file\n  cure: {cure}")
