"""The pictures of README and of the page on benchmarks, made from what there is.

python -m benchmarks.figures

docs/figures/stages.svg  a program and its stages, as they are printed
docs/figures/speed.svg   the times of the best peers over ours, from docs/benchmarks/programs.csv

Both are SVG of plain text and boxes; they bring a background of their own, which follows whether
light or dark colours are preferred, and so can be read on any page.
"""

from __future__ import annotations

import io
import linecache
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import graphcore as gc
from benchmarks import report
from benchmarks.programs import PEERS

DOCS = Path(__file__).parent.parent / "docs"
FIGURES = DOCS / "figures"
PROGRAMS = DOCS / "benchmarks" / "programs.csv"

WIDTH, GAP = 720, 12
COLOURS = {
    "page": ("#ffffff", "#0d1117"),
    "panel": ("#f6f8fa", "#161b22"),
    "edge": ("#d0d7de", "#3d444d"),
    "tint": ("#fff3c4", "#3b3214"),
    "ink": ("#1f2328", "#e6edf3"),
    "arrow": ("#858d96", "#858d96"),
    "soft": ("#59636e", "#9198a1"),
    "first": ("#0550ae", "#79c0ff"),
    "second": ("#b03a00", "#ffa657"),
    "numpy": ("#2f6fd0", "#6cb0ff"),
    "jax": ("#d9730d", "#f0a04b"),
    "torch": ("#8250df", "#bc8cff"),
    "pytensor": ("#1a7f37", "#57c26d"),
}
"""Each in light and in dark."""
STYLE = """text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif }
text.code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
"""


# ---- SVG


def svg(height: float, parts: Sequence[str], title: str, said: str) -> str:
    """A picture with its colours; `said` describes it for screen readers."""
    light, dark = [
        "".join([f".{name} {{ fill: {shades[shade]} }}\n" for name, shades in COLOURS.items()])
        + f".edge {{ fill: none; stroke: {COLOURS['edge'][shade]} }}\n"
        for shade in (0, 1)
    ]
    media = f"@media (prefers-color-scheme: dark) {{\n{dark}}}\n"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {number(height)}"'
    return "\n".join(
        [
            f'{head} width="{WIDTH}" height="{number(height)}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(said)}</desc>",
            f"<style>\n{STYLE}{light}{media}</style>",
            *parts,
            "</svg>\n",
        ]
    )


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def box(x: float, y: float, width: float, height: float, kind: str, round: float = 0) -> str:
    """A filled rectangle."""
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect class="{kind}" {place} rx="{number(round)}"/>'


def text(x: float, y: float, said: str, kind: str = "ink", size: float = 12, **more: str) -> str:
    """A line of text; `more` are attributes."""
    extra = "".join([f' {name.replace("_", "-")}="{value}"' for name, value in more.items()])
    place = f'x="{number(x)}" y="{number(y)}" font-size="{number(size)}"'
    return f'<text class="{kind}" {place}{extra}>{said}</text>'


# ---- A program and its stages

PROGRAM = """\
x = gc.tensor("x", ("day", "site"))
w = gc.tensor("w", ("site",))
z = gc.dot(x, w, dim="site")
loss = gc.log(1 + gc.exp(-z)).sum("day")
slope = gc.grad(loss, w)
f = gc.compile([x, w], slope, native=True)
"""
DERIVATIVE = 5
"""The line that asks for it."""
DIMS = {"day": "first", "site": "second"}
FONT, LINE, ADVANCE = 11.75, 17, 7.05
HEAD = 30


class Line(NamedTuple):
    """A line of a stage, the line of the program that it is from, and that asked for it."""

    shown: str
    place: str = ""

    @property
    def derived(self) -> bool:
        """Whether the derivative is the reason that it is there."""
        return str(DERIVATIVE) in re.findall(r"\d+", self.place)


def compiled() -> gc.Compiled:
    """The program as it is shown, from a file called model.py."""
    lines = PROGRAM.splitlines(keepends=True)
    linecache.cache["model.py"] = len(PROGRAM), None, lines, "model.py"
    scope: dict[str, Any] = {"gc": gc}
    exec(compile(PROGRAM, "model.py", "exec"), scope)
    made: gc.Compiled = scope["f"]
    return made


def program() -> list[Line]:
    """The program itself."""
    return [Line(line, f"{n}") for n, line in enumerate(PROGRAM.splitlines(), 1)]


def stage(made: gc.Compiled, name: str) -> list[Line]:
    """The nodes of a stage as they are printed, without the inputs, and places beside them."""
    out = io.StringIO()
    made.debug_print(name, file=out)
    parts = [line.partition("  model.py:") for line in out.getvalue().splitlines()]
    return [Line(shown.rstrip(), place) for shown, _, place in parts if "= input" not in shown]


def code(made: gc.Compiled) -> list[Line]:
    """The machine code as it is printed, without comments, and places beside it."""
    parts = [re.split(r"\s+# (?:.*model\.py:)?", line) for line in made.source.splitlines()]
    return [Line(shown, *[x for x in place if x[:1].isdigit()]) for shown, *place in parts if shown]


def panel(
    x: float, y: float, width: float, height: float, head: str, note: str, lines: Sequence[Line]
) -> Iterator[str]:
    """A box with a head and lines, places on the right; those of the derivative are marked."""
    yield box(x, y, width, height, "panel", 6)
    yield box(x + 0.5, y + 0.5, width - 1, height - 1, "edge", 6)
    turn, _, said = head.partition(" ")
    head = f'<tspan class="soft">{turn}</tspan> <tspan dx="4">{escape(said)}</tspan>'
    yield text(x + 12, y + 20, head, size=13, font_weight="600")
    yield text(x + width - 12, y + 20, escape(note), "soft", 11, text_anchor="end")
    for at, line in enumerate(lines):
        top = y + HEAD + LINE * at
        base, indent = top + 12.5, len(line.shown) - len(line.shown.lstrip())
        if line.derived:
            yield box(x + 1, top, width - 2, LINE, "tint")
        if line.place:
            yield text(x + width - 12, base, line.place, "soft", 11, text_anchor="end")
        yield text(
            x + 12 + indent * ADVANCE,
            base,
            coloured(line.shown.lstrip()),
            "ink code",
            FONT,
            textLength=number((len(line.shown) - indent) * ADVANCE),
            style="white-space: pre",
        )


def coloured(line: str) -> str:
    """Code in which each dim has its colour."""
    dims = r"\b(" + "|".join(DIMS) + r")\b"
    return re.sub(dims, lambda m: f'<tspan class="{DIMS[m[0]]}">{m[0]}</tspan>', escape(line))


def arrow(x: float, y: float, turn: int) -> str:
    """A small arrow head, which points right, or down if it is turned by 90."""
    place = f"translate({number(x)} {number(y)}) rotate({turn})"
    return f'<path class="arrow" d="M-3 -5 L4 0 L-3 5 Z" transform="{place}"/>'


def stages() -> str:
    """From a program over named dims to code, in four panels."""
    made, written = compiled(), program()
    named, plain, source = stage(made, "named"), stage(made, "expanded"), code(made)
    groups = (written, named), (plain,), (source,)
    high, middle, low = [HEAD + LINE * max(map(len, group)) + 8 for group in groups]
    left = 12 * 2 + 12 + ADVANCE * max(len(line.shown) for line in written)
    second, right = high + GAP, left + GAP
    third = second + middle + GAP
    sizes = "Sizes are known at the call: one compile for all of them."
    parts = [
        *panel(0, 0, left, high, "1 You write with names", "", written),
        text(12, high - 14, sizes, "soft", 11),
        *panel(right, 0, WIDTH - right, high, "2 The derivative is one node", "", named),
        *panel(0, second, WIDTH, middle, "3 Simplified first, then differentiated",
               "log(1 + exp(-z)) became a sigmoid: finite for every z", plain),
        *panel(0, third, WIDTH, low, "4 Compiled, as code that you can read",
               "each line says which lines of yours it is from", source),
        arrow(left + GAP / 2, high / 2, 0),
        arrow(WIDTH / 2, second - GAP / 2, 90),
        arrow(WIDTH / 2, third - GAP / 2, 90),
    ]  # fmt: skip
    said = "\n".join(line.shown for line in [*written, *named, *plain, *source])
    return svg(third + low, parts, "A program, its graphs and its code", said)


# ---- Speed

ROW, BAR = 16, 9
LABEL, AFTER = 112, 66
TICKS = (0.5, 1, 2, 5, 10, 20)


def bars(
    x: float, y: float, width: float, rows: Sequence[report.Row], ends: tuple[float, float]
) -> Iterator[str]:
    """A bar for each program, from 1 to the ratio, on a logarithmic scale between two ends."""
    least, most = ends

    def at(ratio: float) -> float:
        span = width - LABEL - AFTER
        return x + LABEL + span * math.log(ratio / least) / math.log(most / least)

    for tick in [tick for tick in TICKS if least <= tick <= most]:
        here, wide = number(at(tick)), 1.5 if tick == 1 else 0.5
        ends_at = f'y1="{number(y)}" y2="{number(y + ROW * len(rows))}"'
        yield f'<line class="edge" x1="{here}" x2="{here}" {ends_at} stroke-width="{wide}"/>'
        yield text(at(tick), y - 5, f"{tick:g}×", "soft", 10.5, text_anchor="middle")
    for index, row in enumerate(rows):
        who, ratio = report.best(row)
        start, end = sorted([at(1), at(ratio)])
        middle = y + ROW * (index + 0.5)
        yield text(x + LABEL - 8, middle + 4, row["program"], size=11.5, text_anchor="end")
        yield box(start, middle - BAR / 2, end - start, BAR, who, 1.5)
        said = f'{report.times(ratio)} <tspan class="soft">{report.TITLES[who]}</tspan>'
        yield text(end + 6, middle + 4, said, size=11)


def speed(rows: Sequence[report.Row]) -> str:
    """The times of the best peers over ours, in two columns, the largest first."""
    ordered = sorted(rows, key=lambda row: -report.best(row)[1])
    half = -(-len(ordered) // 2)
    top, column = 80, (WIDTH - 16) / 2
    ratios = [report.best(row)[1] for row in rows]
    ends = min(1, *ratios), max(ratios)
    height = top + ROW * half + 14
    who = [report.TITLES[peer] for peer in PEERS]
    head = f"Time of the fastest of {', '.join(who[:-1])} and {who[-1]}, divided by ours"
    wins = sum(ratio > 1 for ratio in ratios)
    note = (
        f"{len(rows)} programs on one thread. Above 1×, graphcore is faster: {wins} programs. "
        f"Geometric mean: {report.mean(rows):.1f}×"
    )
    parts = [
        box(0, 0, WIDTH, height, "panel", 6),
        box(0.5, 0.5, WIDTH - 1, height - 1, "edge", 6),
        text(16, 26, escape(head), size=14, font_weight="600"),
        text(16, 46, escape(note), "soft", 12),
        *bars(4, top, column, ordered[:half], ends),
        *bars(8 + column, top, column, ordered[half:], ends),
    ]
    said = ", ".join(f"{row['program']} {report.times(report.best(row)[1])}" for row in ordered)
    return svg(height, parts, head, said)


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    (FIGURES / "stages.svg").write_text(stages(), encoding="utf-8")
    (FIGURES / "speed.svg").write_text(speed(report.read(PROGRAMS)), encoding="utf-8")


if __name__ == "__main__":
    main()
