"""The parts of docs/benchmarks/index.md that come from the CSV files beside it.

python -m benchmarks.page

Writes them anew, each between a comment with its name and `<!-- end -->`.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from benchmarks.figures import DOCS
from benchmarks.measure import seconds
from benchmarks.programs import PEERS
from benchmarks.report import RUNS, TITLES, Row, best, cells, losses, mean, read, times

FOLDER = DOCS / "benchmarks"
PAGE = FOLDER / "index.md"
BLOCK = re.compile(r"(<!-- (?!end)(\w+) -->\n)(?:(?!<!--).)*(<!-- end -->)", re.DOTALL)
HEAD = ["program", "ours", "best peer", "ratio", "first call", "MB"]
ALONE = {"programs_tiny": "At the tiny sizes", "programs_avx2": "With AVX2 alone"}
"""The files of runs without PyTensor, and how a sentence on each begins."""


def rows(name: str) -> list[Row]:
    """The lines of a CSV file."""
    return read(FOLDER / f"{name}.csv")


def run(name: str) -> Row:
    """When and on what a file was measured."""
    return next(row for row in read(FOLDER / RUNS) if row["file"] == f"{name}.csv")


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table whose first column alone is text."""
    under = ["---", *["---:"] * (len(head) - 1)]
    return "".join([f"| {' | '.join(line)} |\n" for line in (head, under, *lines)])


def programs(name: str) -> str:
    """The table of six columns; in bold where a peer is faster."""
    found = rows(name)
    lost = [row["program"] for row in losses(found)]
    lines = [cells(row) for row in found]
    return table(HEAD, [[*x[:3], f"**{x[3]}**" if x[0] in lost else x[3], *x[4:]] for x in lines])


def listed(items: Sequence[str], last: str = "and") -> str:
    """Some words with commas.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *some, end = items
    return f"{', '.join(some)} {last} {end}" if some else end


def names(found: Sequence[Row]) -> str:
    """Programs, each with the peer that is the fastest and its part of our time."""
    return listed([f"{row['program']} ({TITLES[who]} {times(r)})" for row, (who, r) in
                   ((row, best(row)) for row in found)])  # fmt: skip


def means(found: Sequence[Row]) -> dict[str, float]:
    """The geometric mean of each peer's time over ours, where the peer has the program."""
    ratios = {who: [x for row in found if (x := row[f"{who}_ratio"]) is not None] for who in PEERS}
    return {TITLES[who]: statistics.geometric_mean(xs) for who, xs in ratios.items() if xs}


def summary() -> str:
    """What the measurements come to."""
    small, further = rows("programs"), rows("further")
    each = listed([f"{who} {times(ratio)}" for who, ratio in means(small).items()])
    lines = [
        f"{len(small) - len(losses(small))} of {len(small)} programs take less time with graphcore "
        "than with any of the four others.",
        f"The fastest of the four takes {mean(small):.1f} times our time, in the geometric mean.",
        f"Times of each library alone, divided by ours: {each}.",
        *[
            f"{begins} the fastest of NumPy, JAX and PyTorch takes {mean(rows(name)):.1f} times "
            "our time."
            for name, begins in ALONE.items()
        ],
        f"For the {len(further)} further programs the faster of NumPy and JAX takes "
        f"{mean(further):.1f} times our time.",
    ]
    return "".join([f"- {line}\n" for line in lines])


def lost() -> str:
    """Every program that a peer runs faster."""
    places = {"programs": "At the small sizes", **ALONE, "further": "Of the further programs"}
    lines = []
    for name, begins in places.items():
        found = losses(rows(name))
        said = f"{len(found)}: {names(found)}" if found else "none"
        lines.append(f"- {begins}, {said}.\n")
    near = sorted(rows("programs"), key=lambda row: best(row)[1])[:3]
    return "".join([*lines, f"- Least ahead at the small sizes: {names(near)}.\n"])


def first_calls() -> str:
    """What first calls take, in the median, and how often PyTorch is quicker."""
    small = rows("programs")
    columns = {"ours": "machine_code", **{TITLES[w]: w for w in ("jax", "torch", "pytensor")}}
    found = {who: [x for row in small if (x := row[f"{column}_first_ms"]) is not None]
             for who, column in columns.items()}  # fmt: skip
    middle = {who: seconds(statistics.median(ms) / 1e3) for who, ms in found.items()}
    torch = [row for row in small if row["torch_first_ms"] is not None]
    quicker = sum(row["torch_first_ms"] < row["machine_code_first_ms"] for row in torch)
    return (
        f"- Our first call takes {middle.pop('ours')} in the median and "
        f"{seconds(max(found['ours']) / 1e3)} at most.\n"
        f"- The others, in the median: {listed([f'{who} {x}' for who, x in middle.items()])}.\n"
        f"- PyTorch compiles nothing here. Its first call is quicker than ours in {quicker} of "
        f"{len(torch)} programs.\n"
    )


def machine() -> str:
    """What the programs were measured on."""
    found, held = run("programs"), run("programs_avx2")
    numbers = {name: str(found[name]) for name in ("python", "numpy", "scipy", "llvmlite")}
    said = {"python": "Python", "scipy": "SciPy", "llvmlite": "llvmlite", **TITLES}
    numbers |= {who: found[who] for who in PEERS if found.get(who)}
    versions = listed([f"{said[name]} {number}" for name, number in numbers.items()])
    lines = [
        f"{found['date']}, commit {found['commit']}, {found['threads']} thread.",
        f"{found['system']}, {found['cpu']}. CPU flags: {found['flags']}.",
        f"Our machine code is for {found['machine code']}. NumPy uses {found['numpy uses']}.",
        f"BLAS of NumPy: {found['blas of numpy']}. BLAS of SciPy: {found['blas of scipy']}.",
        f"{versions}.",
        f"With AVX2 alone: our machine code is for {held['machine code']}. "
        f"BLAS of NumPy: {held['blas of numpy']}.",
    ]
    return "".join([f"- {line}\n" for line in lines])


def memory() -> str:
    """What is planned and what the process takes, for the programs that need the most."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows("memory"):
        if row["size"] == "small":
            found.setdefault(row["name"], {})[row["way"]] = row
    head = ["program", "planned", "JAX", "process", "JAX"]
    each = [(col, way) for col in ("planned_mb", "calls_mb") for way in ("machine code", "JAX")]
    lines = [[name, *[f"{at[way][col]:.1f}" for col, way in each]] for name, at in found.items()]
    return table(head, lines)


def checkpoints() -> str:
    """Planned memory and the time of a call, by what the loops save."""
    found: dict[str, dict[str, str]] = {}
    for row in rows("memory"):
        if row["size"] == "longer":
            who = row["name"] + (" in JAX" if row["way"] == "JAX" else "")
            said = f"{row['planned_mb']:.1f} MB, {seconds(row['us'] / 1e6)}"
            found.setdefault(row["checkpoint"], {})[who] = said
    head = list(dict.fromkeys(who for saved in found.values() for who in saved))
    lines = [[saved, *[at.get(who, "") for who in head]] for saved, at in found.items()]
    return table(["checkpoint", *head], lines)


def products() -> str:
    """Products of square matrices, and the kernels that NumPy runs."""
    who = "NumPy", "JAX", "PyTorch"
    lines = [
        [
            row["sizes"].replace(" ", " × "),
            seconds(row["ours"]),
            f"{row['flops'] / row['ours'] / 1e9:.0f}",
            f"{row['flops'] / row['NumPy'] / 1e9:.0f}",
            *[times(row[name] / row["ours"]) for name in who],
        ]
        for row in rows("products")
    ]
    on = run("products")
    said = f"NumPy runs {on['blas of numpy']}. Our machine code is for {on['machine code']}."
    head = ["sizes", "ours", "Gflop/s", "NumPy's Gflop/s", *who]
    return f"{said}\n\n{table(head, lines)}"


def came() -> str:
    """How the further programs did before anything was changed after them."""
    found = rows("further_as_they_came")
    better = [min(row["numpy_ratio"], row["jax_ratio"]) for row in found]
    behind = [
        f"{row['program']} ({times(ratio)})" for row, ratio in zip(found, better) if ratio < 1
    ]
    return (
        f"The faster of NumPy and JAX took {statistics.geometric_mean(better):.1f} "
        f"times our time. {len(behind)} of the {len(found)} programs were slower than it: "
        f"{listed(behind)}.\n"
    )


BLOCKS: dict[str, Callable[[], str]] = {
    "summary": summary,
    "programs": partial(programs, "programs"),
    "losses": lost,
    "first_calls": first_calls,
    "machine": machine,
    "further": partial(programs, "further"),
    "as_they_came": came,
    "memory": memory,
    "checkpoints": checkpoints,
    "products": products,
}


def updated(text: str) -> str:
    """A page whose parts are what the files say."""
    return BLOCK.sub(lambda m: f"{m[1]}\n{BLOCKS[m[2]]()}\n{m[3]}", text)


def main() -> None:
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
