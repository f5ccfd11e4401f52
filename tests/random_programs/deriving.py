"""The derivatives of a program, asked for in the program itself: both modes, and each of each."""

from __future__ import annotations

from collections.abc import Sequence

from .drawing import Block, Program, Skip, Statement
from .running import expected
from .statements import drawn
from .values import Refused, Unclear

MOST = 12
"""How many numbers a program is differentiated by, and how many it then has at most."""


def derived(seed: int, kind: str = "any") -> Program:
    """A random program whose outputs are one of its values and derivatives of this."""
    while True:
        program = drawn(seed, kind)
        try:
            return with_derivatives(program)
        except (Skip, Refused, Unclear):
            seed += 10**9


def with_derivatives(program: Program) -> Program:
    y, xs = result(program)
    given = ", ".join(xs)

    def function(name: str, made: Sequence[Statement], of: str) -> Statement:
        return Statement((name,), f"def {name}({given}):", Block(list(made), of).pruned())

    def pulled(f: str, y: str, first: int) -> Statement:
        names = tuple(f"v{first + i}" for i in range(len(xs)))
        ct = f"gc.cos(gc.stop_gradient({y}))"
        return Statement(names, f"{', '.join(names)}, = pullback({f}, [{given}], {ct})")

    def pushed(f: str, name: str, tangent: str = "cos") -> Statement:
        tangents = ", ".join(f"gc.{tangent}({x})" for x in xs)
        return Statement((name,), f"{name} = pushforward({f}, [{given}], [{tangents}])")

    back, forth = pulled("f900", "v901", 910), pushed("f900", "v902")
    slope = back.targets[program.seed % len(xs)]
    made = [
        Statement(("v901",), f"v901 = f900({given})"), back, forth,
        pulled("f903", slope, 920), pushed("f903", "v905"),
        pulled("f904", "v902", 930), pushed("f904", "v906"),
    ]  # fmt: skip
    functions = [
        function("f900", program.block.statements, y),
        function("f903", [back], slope),
        function("f904", [pushed("f900", "v902", "sin")], "v902"),
    ]
    block = Block([functions[0], *made[:3], *functions[1:], *made[3:]], "")
    outputs = [name for statement in made for name in statement.targets]
    return program._replace(block=block, outputs=outputs).pruned(outputs)


def result(program: Program) -> tuple[str, list[str]]:
    """What is differentiated, a small value of the program, and by which of its inputs."""
    found = dict(zip(program.outputs, expected(program, 0), strict=True))
    small = [n for n, y in found.items() if y.data.dtype.kind == "f" and y.data.size <= 2 * MOST]
    if not small:
        raise Skip
    xs: list[str] = []
    count = 0
    for one in program.pruned(small[-1:]).inputs:
        size = one.values(program.sizes[0], program.seed).size
        if one.dtype in ("float64", "float32") and count + size <= MOST:
            xs.append(one.name)
            count += size
    if not xs:
        raise Skip
    return small[-1], xs
