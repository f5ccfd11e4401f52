"""The options of `python -m graphcore`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from . import datasets, listing

DESCRIPTION = """\
Train a small network on handwritten digits. It shows the program, its graph with the one pullback,
why a tensor is there, the training, the accuracy on digits not seen in training, and the time of a
step next to that of NumPy by hand. Other options show, copy and run more programs.
"""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; for invalid ones an error message and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m graphcore", description=DESCRIPTION)
    training = parser.add_argument_group("training")

    def number(name: str, type: Callable[[str], float], default: float, text: str) -> None:
        text = f"{text} (default: {default})"
        training.add_argument(name, type=type, default=default, metavar="N", help=text)

    number("--epochs", integer(1, 100_000), 20, "how often to see each digit")
    number("--hidden", integer(1, 4096), 64, "size of the hidden layer")
    number("--batch", integer(1, datasets.TRAINING), 32, "digits in a step")
    number("--rate", rate, 0.1, "learning rate")
    number("--seed", integer(0, 2**63), 0, "of the first weights and of the order of digits")

    output = parser.add_argument_group("output").add_argument
    output("--quiet", action="store_true", help="only accuracy and times")
    output("--no-color", action="store_false", dest="color", help="no colours and no bold text")

    more = parser.add_argument_group("programs").add_argument
    more("--example", choices=listing.EXAMPLES, help="show and run another program")
    help = "write the program of the demo, or that of --example, to a new file"
    more("--copy", type=Path, metavar="FILE", help=help)
    help = "write a page that shows all stages of the program, and open it (default: NAME.html)"
    more("--page", type=Path, nargs="?", const=Path(), metavar="FILE", help=help)
    more("--force", action="store_true", help="replace the file if it exists")
    return parser.parse_args(arguments)


def integer(least: int, most: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number in these bounds."""

    def parse_number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value:,} is not from {least:,} to {most:,}")
        return value

    parse_number.__name__ = "whole number"
    return parse_number


def rate(text: str) -> float:
    """The type of an argument that is a positive number."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value
