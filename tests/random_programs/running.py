"""A drawn program run twice: by graphcore, and by the eager reference."""

from __future__ import annotations

import gc as memory
import inspect
import re
import signal
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels.passes import pieces
from tests.remembered import tables

from . import prelude
from .control import APART, NOTES, REPLACED, lifted
from .drawing import EAGER, Block, Program
from .joining import given, join_of, joined
from .values import Array, Refused, Unclear

DISCONNECTED = re.compile(
    "the result (does not depend on it through float values|is not computed from it|"
    "depends on it only through)"
)
TOGETHER = re.compile("members along .* together, so that those that take no part")
"""A loop that might never end; those of the programs all do."""
RTOL, ATOL = 1e-7, 1e-8


class Outcome(NamedTuple):
    """What came of a program: "same", "unclear", "refused", "differs", "accepted" or "error"."""

    kind: str
    reason: str = ""

    @property
    def bad(self) -> bool:
        return self.kind not in ("same", "unclear", "both refuse")


class TooLong(BaseException):
    """A program that takes too long; no error of a call, which the library would word."""


def expected(program: Program, call: int) -> list[Array]:
    env: dict[str, Any] = dict(EAGER)
    arguments = joined(program, given(program, call))
    for one, value in zip(program.inputs, arguments, strict=True):
        env[one.name] = Array(tuple(one.declared), value)
    with np.errstate(all="ignore"):
        exec(program.text(), env)
    return [lifted(env[name]).base for name in program.outputs]


def tensors(program: Program) -> dict[str, gc.Tensor]:
    """The inputs of a program by name."""
    return {one.name: one.tensor() for one in program.inputs}


def results(program: Program, given: Mapping[str, gc.Tensor]) -> list[gc.Tensor]:
    """What graphcore makes of a program."""
    env: dict[str, Any] = {**vars(prelude), "gc": gc, "np": np, **given}
    exec(compile(program.text(), f"<program {program.seed}>", "exec"), env)
    return [env[name] for name in program.outputs]


def built(
    program: Program, targets: Iterable[bool | None]
) -> tuple[list[Any], list[tuple[str, ...]]]:
    """The program compiled for each target (`native=`), and the dims of its outputs."""
    given = tensors(program)
    inputs, outputs = list(given.values()), results(program, given)
    with pytest.MonkeyPatch.context() as patch:
        if program.seed % 2:  # as if its graph were long
            patch.setattr(pieces, "LONG_GRAPH", 60)
        join = join_of(program)
        compiled = [gc.compile(inputs, outputs, native=native, join=join) for native in targets]
    return compiled, [y.dims for y in outputs]


def arguments(program: Program) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Arrays by name for each second program of other sizes than it was drawn for, if they fit."""
    call = program.seed % 2
    try:
        expected(program, call)
    except (Refused, Unclear, ValueError, IndexError, ZeroDivisionError):
        call = 0
    return program.values(call), program.sizes[call]


def agrees(found: Any, dims: tuple[str, ...], wanted: Array) -> str:
    """Where a result is not as it should be, or nothing."""
    if dims != wanted.names:
        return f"dims {dims}, expected {wanted.names}"
    if np.shape(found) != wanted.data.shape:
        return f"shape {np.shape(found)}, expected {wanted.data.shape}"
    scale = max(1.0, float(np.abs(wanted.data).max(initial=0)))
    if not np.allclose(found, wanted.data, rtol=RTOL, atol=ATOL * scale):
        return f"{np.asarray(found).tolist()}, expected {wanted.data.tolist()}"
    return ""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Stop what takes more than so many seconds of the processor."""

    def stop(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


SIZES_ONLY = (
    (r"(gc\.broadcast_like\(.*?), [vpx]\d+\)", r"\1)"),
    (r"[vpx]\d+\.sizes", "sizes"),
    (r"(vectorize\(f\d+), \[[^\]]*\]", r"\1"),
)
"""What is read of operands whose values do not matter."""


def values_only(block: Block) -> Block:
    """A block without what is used for its sizes only, which need not be computed."""

    def shorter(text: str) -> str:
        for pattern, rest in SIZES_ONLY:
            while (new := re.sub(pattern, rest, text)) != text:
                text = new
        return text

    return block.mapped(shorter)


def needed(program: Program, error: Exception) -> bool:
    """Whether what failed is computed for its values."""
    lines = program.text().splitlines()
    at = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == "<string>"]
    whole = values_only(program.block)
    kept = {line.strip() for line in whole.pruned(program.outputs).lines()}
    failed = {lines[n - 1].strip(): new.strip() for n, new in zip(
        range(1, len(lines) + 1), whole.lines(), strict=True)}  # fmt: skip
    return all(failed[lines[n - 1].strip()] in kept for n in at if n)


def forget() -> None:
    """Let go of earlier programs: as long as a loop's number of steps lives, others go on."""
    for table in tables():
        table.clear()
    memory.collect()


def numbered(program: Program) -> bool:
    """Whether sizes of the program are called as those that the library counts steps by."""
    declared = [name for i in program.inputs for name in (*i.declared, *i.declared.values())]
    return "trips" in declared and "while_loop" in program.text()


def outcome(program: Program, targets: Sequence[bool | None] = (None,)) -> Outcome:
    """What comes of a program with the sizes it was drawn for, and with others.

    `targets` are the values of `native=` it is compiled with.
    """
    if numbered(program):
        forget()
    wanted: list[list[Array] | str] = []
    loose: list[tuple[str, ...]] = []
    for call in range(len(program.sizes)):
        NOTES.clear()
        try:
            wanted.append(expected(program, call))
        except Refused as refusal:
            wanted.append(f"refused: {refusal}" if needed(program, refusal) else "unclear")
        except Unclear:
            wanted.append("unclear")
        except (ValueError, IndexError, ZeroDivisionError):  # of what is empty
            if not call:
                raise
            wanted.append("unclear")
        loose.append(tuple(NOTES))
    if wanted[0] == "unclear":
        return Outcome("unclear")
    try:
        compiled, dims = built(program, targets)
    except gc.GraphError as error:
        if isinstance(wanted[0], str) or any(loose):
            return Outcome("both refuse")
        if DISCONNECTED.search(said(error)) or TOGETHER.search(said(error)):
            return Outcome("unclear")  # known sizes may show that all values are replaced
        return Outcome("refused", f"build: {said(error)}")
    except Exception as error:
        return Outcome("error", f"build: {type(error).__name__}: {said(error)}")
    for function in compiled:
        for call, values in enumerate(wanted):
            if values == "unclear" or (call and not isinstance(values, str) and odd(values)):
                continue
            if wrong := called(program, function, call, values, loose[call], dims):
                return wrong
    return Outcome("both refuse" if isinstance(wanted[0], str) else "same")


def called(
    program: Program,
    function: Any,
    call: int,
    values: list[Array] | str,
    loose: tuple[str, ...],
    dims: list[tuple[str, ...]],
) -> Outcome | None:
    """What is wrong with one call, whose values or refusal are known."""
    try:
        found = function(*given(program, call))
    except (gc.GraphError, gc.GraphIndexError) as error:
        if isinstance(values, str) or loose:
            return None
        return Outcome("refused", f"call {call}: {said(error)}")
    except Exception as error:
        return Outcome("error", f"call {call}: {type(error).__name__}: {said(error)}")
    if REPLACED in loose and asks_sizes(program):
        return None  # an old size may be asked for that nothing but the replaced tensor gives
    if APART in loose:
        return None  # it was not refused, so that only the size of a branch is asked for
    if isinstance(values, str):
        return Outcome("accepted", f"call {call}: {values}")
    for i, (y, names, value) in enumerate(zip(found, dims, values, strict=True)):
        wrong = agrees(np.asarray(y), names, value)
        if wrong and not is_amplified(program, function, call, i, np.asarray(y), value):
            where = f"call {call}, {function.target.name}: {program.outputs[i]}"
            return Outcome("differs", f"{where}: {wrong}")
    return None


def is_amplified(
    program: Program, function: Any, call: int, i: int, found: np.ndarray, wanted: Array
) -> bool:
    """Whether inputs scaled by a rounding change result `i` by as much as it is away from `wanted`.

    Loops may make so much of rounding that no result has these digits. One factor for all inputs
    leaves zeros and equal values what they are, so that a wrong limit there is not let pass.
    """
    if found.shape != wanted.data.shape:
        return False
    away, inputs = np.abs(found - wanted.data).max(initial=0), given(program, call)
    for factor in 1 + np.finfo(float).eps * np.array([-2, -1, 1, 2]):
        scaled = [x * factor if np.asarray(x).dtype.kind == "f" else x for x in inputs]
        if np.abs(np.asarray(function(*scaled)[i]) - found).max(initial=0) >= away:
            return True
    return False


def asks_sizes(program: Program) -> bool:
    """Whether sizes are asked for, as they are where a vectorized function is vectorized."""
    text = program.text()
    return ".sizes[" in text or text.count("vectorize(") > 1


def odd(values: list[Array]) -> bool:
    """Whether other sizes led to values that no reference should judge."""
    return any(v.data.dtype.kind == "f" and not (np.abs(v.data) < 1e4).all() for v in values)


def said(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def kind_of(reason: str) -> str:
    """A reason without what differs from program to program."""
    return re.sub(
        r"\b[vpxkf]\d+\b|\d+", "N", re.sub(r"\{.*?\}|\"[^\"]*\"|'[^']*'+|<[^>]*>", "_", reason)
    )[:90]


def standalone(program: Program, result: Outcome) -> str:
    """The program as a script that needs nothing but graphcore."""
    helpers = inspect.getsource(prelude).split("Function = ")[1].split("\n", 2)[2]
    used = re.findall(r"def (\w+)\((?:.|\n)*?(?=\n\n\ndef |\Z)", helpers)
    text = program.text()
    parts = re.split(r"\n\n\n(?=def )", helpers.strip())
    needed = [p for n, p in zip(used, parts, strict=False) if re.search(rf"\b{n}\(", text)]
    needed = [p.replace(": Function", "") for p in needed]
    call = int(m[1]) if (m := re.match(r"call (\d)", result.reason)) else 0
    arguments = [f"np.array({a.tolist()!r})" for a in joined(program, given(program, call))]
    try:
        wanted = [f"# {n}: {v.names} {v.data.tolist()}" for n, v in
                  zip(program.outputs, expected(program, call), strict=True)]  # fmt: skip
    except (Refused, Unclear) as error:
        wanted = [f"# expected to be refused: {error}"]
    lines = [
        "from __future__ import annotations",
        "import numpy as np",
        "import graphcore as gc",
        *needed,
        *(i.line() for i in program.inputs),
        text,
        f"f = gc.compile([{', '.join(i.name for i in program.inputs)}], "
        f"[{', '.join(program.outputs)}])",
        f"print(f({', '.join(arguments)}))",
        *wanted,
        f"# seed {program.seed}, join={join_of(program)!r}: {result.kind}: {result.reason}",
    ]
    return "\n".join(lines)
