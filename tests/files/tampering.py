"""Saved programs changed at random: none runs code, none takes long, none fails without words.

`python -m tests.files.tampering 10000` changes so many files and prints what came of them.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import io
import json
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import graphcore as gc
from graphcore.inspection import json_form, json_parts

RAN: list[str] = []
"""What text of a file has run."""
RUNS = "__import__('builtins').TAMPERED.append('it ran')"
SECONDS = 1.0
Document = dict[str, Any]


class Late(BaseException):
    """A file that takes more than a second; no library catches it."""


def programs() -> Iterator[tuple[gc.Compiled, list[Any]]]:
    """Programs with as many kinds of attrs as few programs have, and arguments."""
    x, w = gc.tensor("x", {"row": None, "col": 3}), gc.tensor("w", {"col": 3})
    n, s = gc.tensor("n", (), dtype="int64"), gc.tensor("s", {})
    X, W = np.arange(12.0).reshape(4, 3), np.array([0.5, -1.0, 2.0])
    table = gc.constant(np.arange(300.0).reshape(3, 100), ("col", "k"))
    square = gc.eye(("i", "j"), shape=3) + (w * w).rename(col="i")
    solved = gc.linalg.solve(square, w.rename(col="i"), ("i", "j"))
    back = gc.linalg.solve_triangular(square, w.rename(col="i"), ("i", "j"), lower=True)
    svd = gc.linalg.svdvals(square, ("i", "j")), gc.linalg.slogdet(square, ("i", "j"))
    inverse = gc.linalg.inv(square, ("i", "j")), gc.linalg.pinv(square, ("i", "j"))
    yield gc.compile([x, w], [gc.dot(x, table, dim="col"), gc.grad(solved.sum(), w)]), [X, W]
    yield gc.compile([w], {"solve": [solved, back], "more": (svd, inverse)}), [W]
    last, steps = gc.scan(lambda c, e: (gc.sin(c * s + e), c), w, x, dim="row")
    yield gc.compile([x, w, s], [last, steps, gc.grad(last.sum(), s)]), [X, W, 0.5]
    until = gc.while_loop(lambda c: c.sum() < 9, lambda c: c * s + 1, w)
    yield gc.compile([w, s], [until, gc.grad(until.sum(), s)]), [W, 1.5]
    count = gc.fori_loop(0, n, lambda i, c: gc.cond(c > 3, lambda: c / 2, lambda: c + i), s)
    yield gc.compile([n, s], [count, gc.arange(n, dim="t") * s]), [3, 0.5]
    order = gc.argsort(x, "row", descending=True), gc.top_k(x, 2, "row"), x.median("row")
    parts = x.isel(row=slice(1, None, 2)), x.roll(col=1), x.pad(row=(1, 2))
    view = x.stack(all=("row", "col")), gc.windows(x, {"row": 2}, {"row": "lag"}).sum("lag")
    yield gc.compile([x], [order, parts, view], returns="xarray"), [X]
    named = {"a": gc.fft.rfft(x, "row"), ("b", 1): gc.where(x > 1, x, s), 2.5: x.cumsum("row")}
    groups = gc.segment_sum(x, gc.constant([0, 1, 1], "col"), 2, "col"), x.std("row", ddof=1)
    yield gc.compile({"x": x, "s": s}, [named, groups, x.argmax("col")]), [X, 0.5]
    special = gc.special.gammainc(abs(s), abs(x)), gc.special.logsumexp(x, "row"), gc.round(x, 2)
    cast = x.astype("float32"), x.at[{"row": 1}].set(s), gc.stop_gradient(x) + gc.print(s, "s")
    yield gc.compile([x, s], [special, cast, gc.checkpoint(gc.exp)(x)], native=False), [X, 0.5]


HOSTILE: list[Callable[[random.Random], Any]] = [
    lambda r: None,
    lambda r: r.choice([True, False]),
    lambda r: r.choice([0, 1, -1, 2, 3, 7, 100, 2**31, 2**62, 2**64, -(2**63), 10**30]),
    lambda r: r.choice(["", "x", "row", "col", RUNS, "\0", "\ud800", "\x1b[2J", "a" * 1000]),
    lambda r: {"float": r.choice(["nan", "inf", "-inf", "0x1p-1074", "0x1.8p+1", RUNS])},
    lambda r: {"complex": ["inf", "nan"]},
    lambda r: {"dtype": r.choice(["<f8", "<f4", "<i8", "|b1", "<c16", "|O", "<M8[s]", RUNS])},
    lambda r: {"hidden": r.choice(["row", RUNS])},
    lambda r: {"size": [[r.choice([1, -1, 2]), [[r.choice(["row", "q", RUNS]), 1]]]]},
    lambda r: {"size": [[1, [[{"//": [{"size": [[1, [["row", 1]]]]}, r.choice([0, 2])]}, 1]]]]},
    lambda r: {"graph": r.choice([0, 1, 2, -1, 99])},
    lambda r: {"op": r.choice(["elementwise.add", "named.norm", "os.system"])},
    lambda r: {"array": r.choice([0, 1, 99])},
    lambda r: {"literal": {"dtype": "<f8", "shape": [], "bytes": "AAAAAAAA8D8="}},
    lambda r: {"list": [0]},
    lambda r: [],
    lambda r: [[], [0]],
    lambda r: [r.choice(["row", "col", 0, 1, None, True]) for _ in range(r.randint(1, 3))],
    lambda r: {},
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    todo = [value]
    while todo:
        one = todo.pop()
        inner = list(one.items() if isinstance(one, dict) else enumerate(one))
        for key, part in inner:
            yield one, key
            if isinstance(part, dict | list):
                todo.append(part)


def tamper(document: Document, r: random.Random) -> str:
    """Change one place, most often in an attr, most often to something like it; what was done."""
    some = list(places(document))
    if r.random() < 0.7:
        rows = [node for graph in document["graph"]["graphs"] for node in graph["nodes"]]
        some = [place for row in rows for place in places(row["attrs"])]
    container, key = r.choice(some)
    old, how = container[key], r.random()
    alike = [inner[at] for inner, at in some if type(inner[at]) is type(old) and inner[at] != old]
    if how < 0.05:
        del container[key]
        return f"{key!r:.30} is gone"
    if how < 0.4 and alike:
        container[key] = copy.deepcopy(r.choice(alike))
    elif how < 0.6 and isinstance(old, int):
        container[key] = not old if isinstance(old, bool) else old + r.choice([1, -1, 2, 2**62])
    elif how < 0.6 and isinstance(old, list):
        container[key] = r.choice([old[::-1], old * 2, old[1:], [*old, 0]])
    else:
        container[key] = r.choice(HOSTILE)(r)
    return f"{key!r:.30} <- {container[key]!r:.120}, was {old!r:.60}"


def uses(f: gc.Compiled, given: list[Any], folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What may be done with a program that was loaded."""
    yield "call", lambda: f(*given)
    yield "source", lambda: (f.source, repr(f))
    yield "debug_print", lambda: f.debug_print(file=io.StringIO())
    yield "export", lambda: f.export(folder / "exported.py")
    yield "check", lambda: str(f.check(*given))
    yield "save", lambda: gc.save(f, folder / "again.gc")
    yield "why", lambda: str(f.why(f.stages["named"].outputs[-1]))
    yield "to_html", lambda: f.to_html(folder / "page.html")


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Stop what takes longer, of the time of this process, as others may be at work."""

    def late(*_: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def outcome(path: Path, given: list[Any], slack: float) -> str:
    """What comes of a file: "refused", "harmless", or a fault in words."""
    what = "load"
    try:
        with within(SECONDS * slack), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f = gc.load(path)
        with within(20 * slack), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for what, use in uses(f, given, path.parent):  # noqa: B007
                with contextlib.suppress(gc.GraphError):
                    use()
    except gc.GraphValueError as error:
        return "refused" if "cure: " in str(error) else f"no cure: {error}"
    except Late:
        return "late" if what == "load" else "ran long"
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(at.filename).name}:{at.lineno}"
        return f"{what}: {type(error).__name__} at {where}: {error!s:.120}"
    return "harmless"


def check_but_types(condition: object, reason: str) -> None:
    """`check`, as if the types in a file had been changed with the rest."""
    if not condition and not re.match(r"node \d+ of graph \d+ is not ", reason):
        raise json_parts.Damaged(reason)


def campaign(count: int, seed: int, folder: Path, slack: float = 1.0) -> dict[str, list[str]]:
    """Outcomes of so many files, with what was changed; in every other one types fit the rest."""
    builtins.TAMPERED = RAN  # type: ignore[attr-defined]
    r, kept = random.Random(seed), []
    for f, given in programs():
        path = folder / "program.gc"
        gc.save(f, path)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        kept.append((members, json.loads(members["program.json"]), given))
    found: dict[str, list[str]] = {}
    for number in range(count):
        members, document, given = r.choice(kept)
        changed = copy.deepcopy(document)
        done = tamper(changed, r)
        text = json.dumps(changed).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in {**members, "program.json": text}.items():
                archive.writestr(name, data)
        lenient = patch.object(
            json_form, "check", check_but_types if number % 2 else json_parts.check
        )
        with contextlib.redirect_stdout(io.StringIO()), lenient:
            found.setdefault(outcome(path, given, slack), []).append(done)
    return found


if __name__ == "__main__":
    start, number = time.perf_counter(), int(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        results = campaign(number, int(sys.argv[2]) if sys.argv[2:] else 0, Path(name))
    for kind, changes in sorted(results.items(), key=lambda item: -len(item[1])):
        print(len(changes), kind, *([] if len(changes) > 999 else changes[:3]), sep="\n    ")  # noqa: T201
    print(f"{number} files, {len(RAN)} ran, {time.perf_counter() - start:.0f} s")  # noqa: T201
