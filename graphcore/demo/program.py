"""The demo from its arguments to its last line."""

from __future__ import annotations

import argparse
import os
import runpy
from collections.abc import Sequence

import numpy as np
from rich.console import Console

from graphcore.compile.compiled import Compiled

from . import datasets, listing, terminal, timing
from .by_hand import Weights
from .examples import digits
from .listing import Lines
from .options import parse

INTRODUCTION = (
    "[bold]graphcore[/] compiles formulas over named axes, and their derivatives. Here a small "
    "network learns to read handwritten digits: {:,} to train on, {:,} to test on.\n"
    "[dim]Images: Alpaydin and Kaynak (1998), CC BY 4.0, https://doi.org/10.24432/C50P49[/]"
)
GRAPH = (
    "\nA line is a tensor: its dims, how it is computed, and the line of the program that says so. "
    "The pullback computes the derivatives by all weights together, and project takes out one of "
    "them."
)
QUESTION = (
    "You can ask where any tensor comes from, which rules changed it and which code computes it. "
    "This is [bold]print(step.why(logp))[/]. The rule is a formula that cannot overflow: m is the "
    "maximum of x.\n"
)
MEASURED = "Processor time, one thread for both, medians of samples taken in turn."

COPY = "write it to a file, to run and change"
PAGE = "show all its stages in your browser"
COMMANDS = [
    ("--copy digits.py", COPY),
    ("--page", PAGE),
    *((f"--example {name}", text) for name, text in listing.EXAMPLES.items()),
    ("--help", "all options, also those of the examples"),
]


def run(arguments: Sequence[str] | None = None) -> None:
    """What the options ask for."""
    options = parse(arguments)
    out = terminal.console(options.color)
    if not options.color:
        os.environ["NO_COLOR"] = "1"  # for graphs that examples print
    name = options.example or "digits"
    if options.copy:
        listing.write(options.copy, listing.text(name), options.force)
        out.print(f"Wrote {options.copy}. Run it: python {options.copy}", soft_wrap=True)
    elif options.example:
        program = run_example(out, name)
        if options.page:
            page(out, program, options)
    elif options.page:
        page(out, digits.step, options)
    else:
        demo(out, options)


def page(out: Console, program: Compiled, options: argparse.Namespace) -> None:
    """Write the page of a program and say where it is."""
    target = listing.page_path(options.page, options.example or "digits")
    listing.write_page(target, program, options.force)
    out.print(f"Wrote {target}. Open it in a browser.", soft_wrap=True)


def run_example(out: Console, name: str) -> Compiled:
    """Show a program, then run it; the compiled function that it calls `f`."""
    path = str(listing.path(name))
    terminal.heading(out, f"The program {name}.py")
    terminal.show_program(out, Lines(listing.text(name)))
    terminal.heading(out, "What it prints")
    program: Compiled = runpy.run_path(path, run_name="__main__")["f"]
    terminal.heading(out, "Now you")
    out.print(f"The program is [bold]{path}[/]\n", soft_wrap=True)
    chosen = f"--example {name}"
    terminal.show_commands(out, [(f"{chosen} --copy {name}.py", COPY), (f"{chosen} --page", PAGE)])
    return program


def demo(out: Console, options: argparse.Namespace) -> None:
    """All that is shown without other options."""
    talk = terminal.console(options.color, options.quiet)
    training, test = datasets.digits().split()
    talk.print(INTRODUCTION.format(len(training.label), len(test.label)))
    show_program(talk)

    terminal.heading(talk, "Training", 4)
    weights = train(talk, training, options)

    terminal.heading(talk, "Digits not seen in training", 5)
    right = np.count_nonzero(digits.read(test.image, weights) == test.label)
    count = len(test.label)
    out.print(f"test accuracy [bold]{right / count:.3f}[/] ({right} of {count} digits)")

    terminal.heading(talk, "A step of training, and the same step by hand in NumPy", 6)
    talk.print(MEASURED)
    terminal.show_races(out, timing.races([options.batch, len(training.label)], options.hidden))

    terminal.heading(talk, "Now you", 7)
    talk.print(f"The program above is [bold]{listing.path('digits')}[/]", soft_wrap=True)
    talk.print("More to run:\n")
    terminal.show_commands(talk, COMMANDS)


def show_program(out: Console) -> None:
    """The program, its graph, and what became of one tensor."""
    terminal.heading(out, "The program", 1)
    terminal.show_program(out, listing.first_part("digits"))

    terminal.heading(out, "Its graph: one pullback for the gradients of all weights", 2)
    terminal.show_graph(out, [digits.loss, digits.gradient])
    out.print(GRAPH)

    terminal.heading(out, "Why is a tensor there?", 3)
    out.print(QUESTION)
    terminal.show_columns(out, digits.step.why(digits.logp).text(width=None))


def train(out: Console, training: datasets.Digits, options: argparse.Namespace) -> Weights:
    """The weights after training, with a progress bar."""
    weights: Weights = {}
    plan = options.epochs, options.hidden, options.batch, options.rate, options.seed
    out.print(batches(len(training.label), options.batch))
    with terminal.training_bar(out) as bar:
        task = bar.add_task("", total=options.epochs, loss=0.0)
        for _, loss, weights in digits.train(*training, *plan):
            bar.update(task, advance=1, loss=loss)
    return weights


def batches(count: int, size: int) -> str:
    """The line of output that describes the batches of an epoch."""
    full, rest = divmod(count, size)
    parts = [f"{full} of {size}"] * bool(full) + [f"one of {rest}"] * bool(rest)
    text = f"Batches of each epoch: {' and '.join(parts)} digits."
    if full and rest:
        text += " One compiled program takes both sizes."
    return text
