"""Programs of linear algebra, value and gradient, by us and by JAX: graphs, first calls, times.

python -m benchmarks.linalg [--size SIZE] [--rounds N]

A graph counts by the nodes that are computed, or by the equations of JAX's jaxpr, bodies included.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks import race
from benchmarks.measure import Spread, seconds, settle_allocator, use_one_thread
from benchmarks.programs import Program

NAMES = ("gp", "kalman", "mvn", "expm_chain")
LEAVES = {"input", "full", "constant", "project", "tuple"}
HEAD = (
    f"{'value and gradient':20}{'nodes':>8}{'JAX':>6}{'first call':>13}{'JAX':>10}"
    f"{'a call':>11}{'JAX':>10}  JAX over ours"
)


class Row(NamedTuple):
    """The results for one program, by our best target and by JAX where it is installed."""

    name: str
    ours: str
    nodes: int
    equations: int | None
    first: dict[str, float]
    medians: dict[str, float]
    ratio: Spread | None

    def __str__(self) -> str:
        equations = "-" if self.equations is None else str(self.equations)
        first, medians = (
            [seconds(times[who]) if who in times else "-" for who in (self.ours, "jax")]
            for times in (self.first, self.medians)
        )
        return (
            f"{self.name:20}{self.nodes:>8}{equations:>6}{first[0]:>13}{first[1]:>10}"
            f"{medians[0]:>11}{medians[1]:>10}  {self.ratio or '-'}"
        )


def run(name: str, size: str, rounds: int) -> Row:
    """One program: all results are compared with the reference before anything is timed."""
    program = Program(name)
    result = race.run(program, size, rounds)
    return Row(
        name,
        result.ours,
        nodes(program.make("graphcore")),
        equations(program, size),
        {who: alone.seconds for who, alone in result.alone.items()},
        result.medians,
        result.over_ours.get("jax"),
    )


def nodes(compiled: Any) -> int:
    """How many nodes of the optimized stage are computed."""
    return sum(node.op.name not in LEAVES for node in compiled.stages["optimized"].every_node())


def equations(program: Program, size: str) -> int | None:
    """How many equations JAX has for it."""
    function: Any = program.make("jax")
    if function is None:
        return None
    return sum(1 for _ in every_equation(function.trace(**program.module.inputs(size)).jaxpr.jaxpr))


def every_equation(jaxpr: Any) -> Iterator[Any]:
    """Those that compute: what only calls another jaxpr stands for the equations of that."""
    for equation in jaxpr.eqns:
        inner = [value for value in equation.params.values() if hasattr(value, "jaxpr")]
        if not inner:
            yield equation
        for value in inner:
            yield from every_equation(value.jaxpr)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.linalg",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--size", choices=["tiny", "small"], default="small")
    parser.add_argument("--rounds", type=int, default=9, help="samples of each (default 9)")
    options = parser.parse_args()
    use_one_thread()
    settle_allocator()
    print(HEAD)
    for name in NAMES:
        print(run(name, options.size, options.rounds), flush=True)


if __name__ == "__main__":
    main()
