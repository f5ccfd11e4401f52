"""The measurements of the programs: JSON, tables, missed targets, a plot.

python -m benchmarks.report FILE.json ...
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.measure import seconds
from benchmarks.programs import OURS, PEERS
from benchmarks.race import AGAIN, Result

TITLES = {
    "graphcore": "NumPy calls",
    "native": "machine code",
    "numpy": "NumPy",
    "jax": "JAX",
    "torch": "PyTorch",
    "pytensor": "PyTensor",
    "again": "again",
}
SLOW = 1 / 1.3
"""Where a peer takes a smaller part of our time, a program is one of those that are missed."""
LATE = 0.5
"""And where our first call takes more seconds."""

Report = Mapping[str, Any]
"""What `as_json` returns."""


def as_json(results: Iterable[Result], threads: str) -> dict[str, Any]:
    """Everything, with what it was measured on; times in seconds, memory in bytes."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "threads": threads,
        "versions": versions(),
        "programs": [
            {
                "name": result.name,
                "size": result.size,
                "medians": result.medians,
                "least": result.least,
                "ours": result.ours,
                "over ours": {w: r._asdict() for w, r in result.over_ours.items()},
                "first call": {who: one.seconds for who, one in result.alone.items()},
                "peak": {who: one.bytes for who, one in result.alone.items()},
                "where": result.where.as_json(),
            }
            for result in results
        ],
    }


def versions() -> dict[str, str]:
    libraries = ["numpy", "scipy", "llvmlite", "jax", "torch", "pytensor"]
    installed = [name for name in libraries if importlib.util.find_spec(name) is not None]
    found = {name: importlib.metadata.version(name) for name in installed}
    return {"python": platform.python_version(), **found}


def merged(reports: Sequence[Report]) -> Report:
    """One report of all programs, as each was measured last, on what the first report was."""
    rows = {row["name"]: row for report in reports for row in report["programs"]}
    return {**reports[0], "programs": list(rows.values())}


def present(report: Report) -> list[str]:
    """The peers that any program has been run by."""
    return [who for who in PEERS if any(who in row["medians"] for row in report["programs"])]


def compilers(report: Report) -> list[str]:
    """Whose first calls are shown: all that compile."""
    return [*OURS, *(who for who in present(report) if who != "numpy")]


def titles(report: Report, between: str) -> list[str]:
    peers = [TITLES[who] for who in (*present(report), AGAIN)]
    alone = [
        f"{what}{between}{TITLES[who]}" for what in ("first", "MB") for who in compilers(report)
    ]
    return ["program", *(TITLES[who] for who in OURS), *peers, *alone]


def rows(report: Report, missed: Callable[[str], str]) -> Iterator[list[str]]:
    """A row a program: our times, those of the peers over our best, first calls, memory."""
    for row in report["programs"]:
        over, first, peak = row["over ours"], row["first call"], row["peak"]
        ratios = {who: times(over[who]["median"]) for who in over}
        calls = {who: seconds(first[who]) for who in first}
        memory = {who: f"{peak[who] / 2**20:.1f}" for who in peak}
        ratios |= {who: missed(ratios[who]) for who in over if over[who]["median"] < SLOW}
        calls |= {who: missed(calls[who]) for who in OURS if first.get(who, 0) > LATE}
        ours = {who: seconds(row["medians"][who]) for who in OURS if who in row["medians"]}
        yield [
            row["name"],
            *(ours.get(who, "-") for who in OURS),
            *(ratios.get(who, "-") for who in (*present(report), AGAIN)),
            *(calls.get(who, "-") for who in compilers(report)),
            *(memory.get(who, "-") for who in compilers(report)),
        ]


def times(ratio: float) -> str:
    """A ratio, of small ones two digits.

    >>> times(3.456), times(0.0123)
    ('3.46', '0.012')
    """
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def table(report: Report) -> Table:
    """For a terminal; an exclamation mark marks a missed target."""
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles(report, "\n"):
        shown.add_column(title, justify="left" if title == "program" else "right", no_wrap=True)
    for row in rows(report, lambda text: f"[red]!{text}[/]"):
        shown.add_row(*row)
    return shown


def misses(report: Report) -> Iterator[str]:
    """Where NumPy calls spend the time of programs that run as such and are slower than a peer's;
    first calls that are late.
    """
    for row in report["programs"]:
        over = {ratio["median"]: TITLES[who] for who, ratio in row["over ours"].items()}
        if row["ours"] == "graphcore" and min(over) < SLOW:
            yield f"{row['name']}, {over[min(over)]} {times(min(over))}: {row['where']['said']}"
    first = {row["name"]: row["first call"][row["ours"]] for row in report["programs"]}
    late = [f"{name} {seconds(taken)}" for name, taken in first.items() if taken > LATE]
    yield f"first calls over {LATE} s: {', '.join(late) or 'none'}"


def markdown(report: Report) -> str:
    """The table for the README; programs that a peer runs much faster are in bold."""
    named = {"python": "Python", "scipy": "SciPy", "llvmlite": "llvmlite", **TITLES}
    versions = ", ".join(f"{named[name]} {known}" for name, known in report["versions"].items())
    torch = "torch" in present(report)
    said = (
        f"{report['date']}, {report['machine']}, {report['threads']} thread; {versions}; medians "
        "of calls in turn, by the time of the processor where there is one thread. Each library "
        "has a column with its time divided by that of machine code, or of NumPy calls where a "
        "program has no machine code; machine code itself was measured again in the same turns, "
        "to show how far equal functions are apart. In bold: a peer is faster by more than "
        f"{1 / SLOW:.2g}, or a first call of ours takes over {LATE} s. First calls are seconds of "
        "the processor; memory is their peak, in MB. "
        f"{'PyTorch is not compiled, which takes a C++ compiler.' if torch else ''}"
    ).rstrip()
    head = titles(report, ": ")
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows(report, "**{}**".format)]
    shown = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([said, "", *shown, "", *(f"- {line}" for line in misses(report)), ""])


def plot(report: Report, path: Path) -> None:
    """Times of the peers over ours, a line a program."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    over = {
        row["name"]: {who: ratio["median"] for who, ratio in row["over ours"].items()}
        for row in report["programs"]
    }
    ordered = sorted(over, key=lambda name: min(over[name].values()))
    figure, axes = pyplot.subplots(figsize=(7, 1.2 + 0.25 * len(ordered)), layout="constrained")
    for who in present(report):
        points = [(over[name][who], y) for y, name in enumerate(ordered) if who in over[name]]
        axes.plot([x for x, _ in points], [y for _, y in points], "o", label=TITLES[who])
    axes.axvline(1, color="0.5", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(ordered)), ordered)
    axes.set_xlabel("time of the peer / time of graphcore (right of 1: graphcore is faster)")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report", description="Markdown of what was measured."
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    files = parser.parse_args(arguments).files
    print(markdown(merged([json.loads(file.read_text(encoding="utf-8")) for file in files])))


if __name__ == "__main__":
    main()
