"""The programs in the folder `examples`: their text, copies of them and pages about them."""

from __future__ import annotations

import sys
import webbrowser
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from graphcore.compile.compiled import Compiled

EXAMPLES = {
    "climate": "a sea temperature: mean year and trend",
    "fit": "carbon dioxide: a model fitted by SciPy",
    "sampler": "a posterior, by Hamiltonian Monte Carlo",
    "inside": "a formula on its way to code that runs",
}


class Lines(NamedTuple):
    """Some lines of a program, and the number of the first of them."""

    text: str
    first: int = 1


def path(name: str) -> Path:
    """The file of a program."""
    return Path(str(files(__package__).joinpath("examples", f"{name}.py")))


def text(name: str) -> str:
    """The text of a program."""
    return path(name).read_text(encoding="utf-8")


def first_part(name: str) -> Lines:
    """The lines of a program from its first comment of its own line to the second."""
    lines = text(name).splitlines()
    first, second, *_ = (i for i, line in enumerate(lines) if line.startswith("# "))
    return Lines("\n".join(lines[first:second]).rstrip(), first + 1)


def page_path(given: Path, name: str) -> Path:
    """The file for the page of a program: the one given, or one named after the program."""
    return given if given.name else given / f"{name}.html"


def write(target: Path, content: str, force: bool) -> None:
    """Write a file; with `force` also one that exists."""
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        sys.exit(f"{target} exists: choose another name, or add --force to replace it")
    except OSError as error:
        sys.exit(f"{target} cannot be written: {error.strerror}")


def write_page(target: Path, program: Compiled, force: bool) -> None:
    """Write the page of a compiled program, and open it if somebody looks at the output."""
    write(target, "", force)
    program.to_html(target)
    if sys.stdout.isatty():
        webbrowser.open(target.resolve().as_uri())
