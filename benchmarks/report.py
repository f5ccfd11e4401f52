"""The measurements of the programs as JSON and CSV, with their ratios and means.

python -m benchmarks.report FILE.json ... --csv FILE.csv
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.metadata
import importlib.util
import json
import platform
import statistics
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import hardware, seconds
from benchmarks.programs import PEERS
from benchmarks.race import AGAIN, Result

TITLES = {
    "graphcore": "NumPy calls",
    "native": "machine code",
    "numpy": "NumPy",
    "jax": "JAX",
    "torch": "PyTorch",
    "pytensor": "PyTensor",
}
COLUMNS = {"graphcore": "numpy_calls", "native": "machine_code"}
"""What our two targets are called in CSV; peers have their names."""
RUNS = "runs.csv"
"""The file beside the others that says when, where and with which versions each was measured."""
SLOW = 1 / 1.3
"""Where a peer takes a smaller part of our time, it is said what NumPy calls spend theirs on."""
LATE = 0.5
"""First calls of more seconds are listed."""

Report = Mapping[str, Any]
"""What `as_json` returns."""
Row = Mapping[str, Any]
"""A line of CSV: text, numbers, and None where there is nothing."""


def about() -> dict[str, str]:
    """When and on what something is measured."""
    here = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    said = subprocess.run(here, capture_output=True, text=True, check=False).stdout.strip()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": today, "commit": said or "unknown", **hardware(), **versions()}


def versions() -> dict[str, str]:
    libraries = ["numpy", "scipy", "llvmlite", *[who for who in PEERS if who != "numpy"]]
    installed = [name for name in libraries if importlib.util.find_spec(name) is not None]
    found = {name: importlib.metadata.version(name) for name in installed}
    return {"python": platform.python_version(), **found}


def as_json(results: Iterable[Result], threads: str) -> dict[str, Any]:
    """All results, with the machine and the versions."""
    return {
        "about": {**about(), "threads": threads},
        "programs": [measured(result) for result in results],
    }


def measured(result: Result) -> dict[str, Any]:
    """What was measured of one program; times in seconds, memory in bytes."""
    return {
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


def merged(reports: Sequence[Report]) -> Report:
    """One report of all programs, as each was measured last, on what the first report was."""
    rows = {row["name"]: row for report in reports for row in report["programs"]}
    return {**reports[0], "programs": list(rows.values())}


def rows(report: Report) -> list[Row]:
    """A line of CSV for each program."""
    return [row_of(program) for program in report["programs"]]


def row_of(program: Report) -> Row:
    """The times of calls, of all others over ours with quartiles, first calls, and memory."""
    name = program["name"].removeprefix("further.")
    row: dict[str, Any] = {"program": name, "size": program["size"]}
    everyone, others = {**COLUMNS, **dict(zip(PEERS, PEERS))}, [*PEERS, AGAIN]
    over = {who: program["over ours"].get(who, {}) for who in others}
    for unit, scale, taken in (
        ("us", 1e6, program["medians"]),
        ("first_ms", 1e3, program["first call"]),
        ("mb", 2**-20, program["peak"]),
    ):
        row |= {
            f"{c}_{unit}": taken[w] * scale if w in taken else None for w, c in everyone.items()
        }
    row |= {f"{who}_ratio": over[who].get("median") for who in others}
    return row | {f"{w}_ratio_{end}": over[w].get(end) for w in others for end in ("low", "high")}


def write(found: Sequence[Row], path: Path, measured: Mapping[str, str]) -> None:
    """Write a CSV file, and enter its machine and versions in the list of runs beside it."""
    save(found, path)
    runs = path.with_name(RUNS)
    others = [run for run in read(runs) if run["file"] != path.name] if runs.exists() else []
    save(sorted([*others, {"file": path.name, **measured}], key=lambda run: run["file"]), runs)


def save(found: Sequence[Row], path: Path) -> None:
    columns = list(dict.fromkeys(name for row in found for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in found:
            digits = {n: f"{x:.4g}" if isinstance(x, float) else x for n, x in row.items()}
            writer.writerow(digits)


def read(path: Path) -> list[Row]:
    """The rows of a CSV file: numbers as floats, None for an empty cell."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: value_of(x) for name, x in row.items()} for row in csv.DictReader(file)]


def value_of(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text or None


def ours(row: Row, unit: str = "us") -> float | None:
    """The value of our better target: machine code where the program has it."""
    better = "numpy_calls" if row["machine_code_us"] is None else "machine_code"
    value: float | None = row[f"{better}_{unit}"]
    return value


def ratios(row: Row, peers: Sequence[str] = PEERS) -> dict[str, float]:
    """The times over ours of the peers that have a program."""
    return {who: row[f"{who}_ratio"] for who in peers if row[f"{who}_ratio"] is not None}


def best(row: Row, peers: Sequence[str] = PEERS) -> tuple[str, float]:
    """The fastest peer, and its time over ours."""
    found = ratios(row, peers)
    fastest = min(found, key=lambda who: found[who])
    return fastest, found[fastest]


def cells(row: Row) -> list[str]:
    """The program, our time, the best peer's, their ratio, our first call and its megabytes."""
    who, ratio = best(row)
    late, memory = ours(row, "first_ms"), ours(row, "mb")
    return [
        row["program"],
        seconds((ours(row) or 0) / 1e6),
        f"{TITLES[who]} {seconds(row[f'{who}_us'] / 1e6)}",
        times(ratio),
        "-" if late is None else seconds(late / 1e3),
        "-" if memory is None else f"{memory:.1f}",
    ]


def line(row: Row) -> str:
    """What is printed of a program once it is measured."""
    name, us, peer, ratio, *_ = cells(row)
    return f"{name:18}{us:>9}   {peer:20} {ratio:>6}"


def mean(found: Sequence[Row], peers: Sequence[str] = PEERS) -> float:
    """The geometric mean of the times of the best of some peers over ours."""
    return statistics.geometric_mean([best(row, peers)[1] for row in found])


def losses(found: Sequence[Row]) -> list[Row]:
    """The programs that a peer runs faster, the worst first."""
    return sorted([row for row in found if best(row)[1] < 1], key=lambda row: best(row)[1])


def times(ratio: float) -> str:
    """A ratio, of small ones two digits.

    >>> times(3.456), times(0.0123)
    ('3.46', '0.012')
    """
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def findings(report: Report) -> Iterator[str]:
    """The mean, programs that a peer runs faster, with where their NumPy calls spend the time if
    they run as such, and first calls that are late.
    """
    found = rows(report)
    yield f"best peer over ours, geometric mean of {len(found)}: {times(mean(found))}"
    lost = [f"{row['program']} {times(best(row)[1])}" for row in losses(found)]
    yield f"a peer is faster: {', '.join(lost) or 'none'}"
    for program, row in zip(report["programs"], found, strict=True):
        who, ratio = best(row)
        if program["ours"] == "graphcore" and ratio < SLOW:
            yield f"{row['program']}, {TITLES[who]} {times(ratio)}: {program['where']['said']}"
    first = {row["program"]: ours(row, "first_ms") for row in found}
    late = [f"{name} {seconds(ms / 1e3)}" for name, ms in first.items() if ms and ms > LATE * 1e3]
    yield f"first calls over {LATE} s: {', '.join(late) or 'none'}"


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report", description="CSV of what was measured."
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    parser.add_argument("--csv", type=Path, metavar="FILE.csv")
    chosen = parser.parse_args(arguments)
    found = merged([json.loads(file.read_text(encoding="utf-8")) for file in chosen.files])
    print(*map(line, rows(found)), *findings(found), sep="\n")
    if chosen.csv:
        write(rows(found), chosen.csv, found["about"])


if __name__ == "__main__":
    main()
