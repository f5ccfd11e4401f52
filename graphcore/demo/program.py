"""The demo from its arguments to its last line."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console

from graphcore.compiled import Compiled

from . import by_hand, datasets, model, terminal, training

DESCRIPTION = """\
Train a small network on handwritten digits, and show it on the way from named axes to NumPy: the
graph with its one lazy pullback, the stages of compilation, a stage as text, the training, the
accuracy on digits not seen in training, the time per step next to that of NumPy by hand.
"""


def run(arguments: Sequence[str] | None = None) -> None:
    """Everything, for these command-line arguments."""
    options = parse(arguments)
    out = terminal.console(options.color)
    talk = terminal.console(options.color, options.quiet)
    training_set, test_set = datasets.digits().split()
    talk.print(
        f"[bold]graphcore[/] learns to read handwritten digits: {len(training_set.label):,} to "
        f"train on, {len(test_set.label)} to test on.\n"
        "[dim]Images: Alpaydin and Kaynak (1998), CC BY 4.0, https://doi.org/10.24432/C50P49[/]"
    )
    network = model.Network(options.hidden)
    step = show_program(talk, network)
    weights = train(talk, step, training_set, options)

    terminal.heading(talk, 5, "On digits not seen in training")
    read = network.reader()(test_set.image, weights)
    right = np.count_nonzero(read == test_set.label)
    out.print(f"test accuracy [bold]{right / len(read):.3f}[/] ({right} of {len(read)} digits)")

    terminal.heading(talk, 6, "The same step, compiled and by hand")
    compare(out, step, weights, training_set, options)


def show_program(out: Console, network: model.Network) -> Compiled:
    """The training step, and on the way to it the graph, its stages and a smaller one as text."""
    terminal.heading(out, 1, "The loss over named axes, its gradient one lazy pullback")
    terminal.show_graph(out, [network.loss, network.gradient])

    terminal.heading(out, 2, "The training step, compiled: gradient and update in one graph")
    start = time.perf_counter()
    step = network.training_step()
    terminal.show_stages(out, step, time.perf_counter() - start)

    small = model.logistic_regression()
    terminal.heading(out, 3, "A smaller one to read: logistic regression, as written")
    terminal.show_graph(out, small, "named")
    out.print("\nIts expanded stage: stable, differentiated, axes by position\n", style="bold")
    terminal.show_graph(out, small, "expanded")
    return step


def train(
    out: Console, step: Compiled, digits: datasets.Digits, options: argparse.Namespace
) -> by_hand.Weights:
    """The weights after training, with a progress bar."""
    rng = np.random.default_rng(options.seed)
    start = training.random_weights(options.hidden, rng)
    full, rest = divmod(len(digits.label), options.batch)
    terminal.heading(out, 4, "Training")
    out.print(batches(full, options.batch, rest))
    steps = options.epochs * (full + bool(rest))
    with terminal.training_bar(out) as bar:
        task = bar.add_task("", total=steps, epoch=0, loss=0.0)
        report = lambda epoch, loss: bar.update(task, advance=1, epoch=epoch, loss=loss)
        plan = options.epochs, options.batch, options.rate
        return training.train(step, start, digits, *plan, rng, report)


def batches(full: int, size: int, rest: int) -> str:
    """The line of output that describes the batches of an epoch."""
    parts = [f"{full} of {size}"] * bool(full) + [f"one of {rest}"] * bool(rest)
    text = f"Batches of each epoch: {' and '.join(parts)} digits."
    if full and rest:
        text += " Both sizes run through the same compiled function."
    return text


def compare(
    out: Console,
    step: Compiled,
    weights: by_hand.Weights,
    digits: datasets.Digits,
    options: argparse.Namespace,
) -> None:
    """The time of one training step here and in NumPy, for a batch and for all digits at once."""
    rows = []
    for count in (min(options.batch, len(digits.label)), len(digits.label)):
        image, label = digits.image[:count], digits.label[:count]
        arguments = image, label, weights, training.at_rest(weights), options.rate
        race = training.race(step, by_hand.training_step, arguments)
        rows.append(terminal.Row(f"{count:,} digits", race))
    terminal.show_races(out, rows)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; for invalid ones an error message and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m graphcore", description=DESCRIPTION)

    def number(name: str, type: Callable[[str], float], default: float, text: str) -> None:
        text = f"{text} (default: {default})"
        parser.add_argument(name, type=type, default=default, metavar="N", help=text)

    number("--epochs", integer(1, 100_000), 20, "how often to see each digit")
    number("--hidden", integer(1, 4096), 64, "size of the hidden layer")
    number("--batch", integer(1, datasets.TRAINING), 32, "digits in a step")
    number("--rate", rate, 0.1, "learning rate")
    number("--seed", integer(0, 2**63), 0, "of the first weights and of the order of digits")
    switch = parser.add_argument
    switch("--quiet", action="store_true", help="only accuracy and times")
    switch("--no-color", action="store_false", dest="color", help="no colours and no bold text")
    return parser.parse_args(arguments)


def integer(least: int, most: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number in these bounds."""

    def parsed(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value:,} is not from {least:,} to {most:,}")
        return value

    parsed.__name__ = "whole number"
    return parsed


def rate(text: str) -> float:
    """The type of an argument that is a positive number."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value
