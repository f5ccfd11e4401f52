"""`save` and `load`: compiled programs as files that hold no code."""

from __future__ import annotations

from os import PathLike

from graphcore.files import archive
from graphcore.frontend.core.base import type_refusal
from graphcore.frontend.core.wrong_calls import reword_errors
from graphcore.inspection.json_parts import check
from graphcore.inspection.shown import file_at
from graphcore.ir.help_text import parameters
from graphcore.ir.interrupts import is_interrupt

from . import inputs
from .compiled import Compiled

__all__ = ["load", "save"]


@reword_errors
@parameters(
    program="A compiled program.",
    path="The file, which is overwritten.",
)
def save(program: Compiled, path: str | PathLike[str]) -> None:
    """Write a compiled program to a file.

    `load` makes the program from it again, for the machine that it runs on then. The file is a zip
    archive of the graph as JSON, with the user's lines, and of large constants in NumPy's format.
    Unlike a pickle it does not contain code or names of functions to call. Dataclasses and named
    tuples come back as new classes of the same names and fields.

    GraphError if the program runs a callback or has rules of your own, or if its inputs or outputs
    are in registered classes.

    >>> import graphcore as gc, tempfile, pathlib
    >>> x = gc.tensor("x", {"row": None})
    >>> file = pathlib.Path(tempfile.mkdtemp(), "twice.gc")
    >>> gc.save(gc.compile([x], 2 * x), file)
    >>> gc.load(file)([1.0, 2.0])
    array([2., 4.])
    """
    if not isinstance(program, Compiled):
        cure = "give what gc.compile returns; of a gc.function the program: f.compiled(*arguments)"
        raise type_refusal(f"{type(program).__name__} is not a compiled program", cure=cure)
    file = file_at("save", path, "program.gc")
    if program._own.rules.entries:
        cure = "save a program without rules, or pickle this one"
        raise type_refusal("a file cannot hold rules of your own, which are code", cure=cure)
    archive.write(archive.Program(*program.__reduce__()[1]), file)


@reword_errors
@parameters(path="The file.")
def load(path: str | PathLike[str]) -> Compiled:
    """The compiled program in a file of `save`.

    The file may come from anywhere: nothing in it is run or imported. A file that is damaged, or
    was made to do harm, is refused. The program gives the same bits as the one that was saved, with
    the same versions of this library and of NumPy.

    GraphError if there is no such file (then it is a `FileNotFoundError` as well), if it cannot be
    read, or if it does not contain a program. For a program compiled with `native=True`, if machine
    code is not available on this machine.

    >>> import graphcore as gc, tempfile, pathlib
    >>> x = gc.tensor("x", {"row": None})
    >>> file = pathlib.Path(tempfile.mkdtemp(), "twice.gc")
    >>> gc.save(gc.compile([x], {"twice": 2 * x}), file)
    >>> gc.load(file)
    <Compiled (x: f64[row]) -> (f64[row]): ...>
    """
    file = file_at("load", path, "program.gc")
    graph, arguments, results, returns, native, join = archive.read(file)
    try:
        absent = inputs.not_listed(graph.params)
        checked = inputs.program(graph.params, graph.outputs, absent)
        check(checked.params == graph.params, "a parameter is not an input")
        return Compiled(graph, arguments, results, returns, native, join)
    except Exception as error:  # on a graph that no one has built
        if is_interrupt(error):
            raise
        archive.refuse(file, f"{type(error).__name__}: {error}")
