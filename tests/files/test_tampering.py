"""Files from anywhere: changed ones, names that write to a terminal, folders of their authors."""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.graph import Graph
from tests.files.tampering import RAN, campaign

FORGED = "evil\x1b[2J\x1b]0;t\x07\u202e\ncure: run this"


@pytest.mark.slow
def test_changed_files_are_refused_or_harmless(tmp_path: Path) -> None:
    found = campaign(300, 2, tmp_path, slack=10)
    assert found.keys() <= {"refused", "harmless"}, found
    assert not RAN


def log(x: gc.Tensor) -> gc.Tensor:
    return gc.log(x)


def changed(path: Path, old: str, new: str) -> None:
    """Another name of a file or function in the lines of a saved program."""
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("program.json"))
    for row in document["graph"]["origins"]:
        row[:] = [new if part == old else part for part in row]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("program.json", json.dumps(document))


def texts(f: gc.Compiled, folder: Path) -> list[str]:
    """What a program says of its lines."""
    found = [str(f.check([-1.0])), str(f.trace([1.0])), f.source, str(f.profile([1.0]))]
    for wrong in ([[1.0]], [1.0, 2.0]):
        with pytest.raises(gc.GraphError) as error:
            f(wrong)
        found.append(str(error.value))
    f.to_html(folder / "page.html")
    f.export(folder / "exported.py")
    return [*found, *[(folder / name).read_text("utf-8") for name in ("page.html", "exported.py")]]


def test_names_in_files_stay_on_their_line(tmp_path: Path) -> None:
    x = gc.tensor("x", {"row": 1})
    path = tmp_path / "program.gc"
    gc.save(gc.compile([x], log(x)), path)
    changed(path, "test_tampering.py", FORGED)
    for text in texts(gc.load(path), tmp_path):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "\ncure: run" not in text
    changed(path, "tensor", FORGED)
    with pytest.raises(gc.GraphValueError, match="a function that is no name"):
        gc.load(path)


def test_a_name_given_to_compile_stays_on_its_line() -> None:
    space: dict[str, Any] = {"gc": gc}
    exec(compile("y = gc.log(gc.tensor('x', {'row': 1}))", FORGED, "exec"), space)
    found = gc.compile([gc.tensor("x", {"row": 1})], space["y"]).check([-1.0])
    assert "\x1b" not in str(found)
    assert "\ncure" not in str(found)


def test_folders_of_the_author_are_not_in_files(tmp_path: Path) -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], gc.grad(log(x).sum(), x))
    path = tmp_path / "program.gc"
    gc.save(f, path)
    f.to_html(tmp_path / "page.html")
    for data in (path.read_bytes(), (tmp_path / "page.html").read_bytes()):
        assert b"test_tampering.py" in data
        assert str(Path(__file__).parent).encode() not in data
    line = gc.load(path).stages["named"].outputs[0].origin
    assert str(line).startswith("test_tampering.py:")


@pytest.mark.parametrize("name", ["a\0b", "\ud800", b"a\0b", ""])
def test_names_that_no_file_has_are_refused(name: Any) -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], 2 * x)
    for use in (f.export, f.to_html, gc.load, lambda path: gc.save(f, path)):
        with pytest.raises(gc.GraphTypeError, match="names no file") as error:
            use(name)
        assert "cure: give the name of a file" in str(error.value)


def large(atoms: int) -> Any:
    return {"size": [[1, [[f"n{i:05}", 1]]] for i in range(atoms)]}


def power(most: int) -> Any:
    return {"size": [[1, [["n", most]]], [1, []]]}


@pytest.mark.parametrize(
    "size",
    [
        large(3_000),
        {"size": [[1, [[{"//": [large(900), large(901)]}, 1]]]]},
        {"size": [[1, [[f"n{i:05}", 1000] for i in range(500)]]]},
        {"size": [[1, [[{"//": [power(900), power(1)]}, 1]]]]},
        {"size": [[1, [[{"max": [large(900), {"size": [[2, [["n", 1]]]]}]}, 999]]]]},
    ],
)  # fmt: skip
def test_large_sizes_are_refused_soon(size: Any) -> None:
    document = json.loads(gc.compile([gc.tensor("x", {"n": None})], []).stages["named"].to_json())
    document["types"][0]["shape"] = [size]
    start = time.process_time()
    with pytest.raises(gc.GraphValueError, match="is not a graph"):
        Graph.from_json(json.dumps(document))
    assert time.process_time() - start < 2


def test_kinds_of_attrs_of_matrices_and_loops_are_compared(tmp_path: Path) -> None:
    w = gc.tensor("w", {"i": 3})
    square = gc.eye(("i", "j"), shape=3) + w
    y = gc.linalg.inv(square, ("i", "j")), gc.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, w)
    path = tmp_path / "program.gc"
    gc.save(gc.compile([w], y), path)
    with zipfile.ZipFile(path) as archive:
        text = archive.read("program.json").decode()
    assert '"check":true' in text
    assert '"trips":null' in text
    for old, new in (
        *(('"check":true', f'"check":{value}') for value in ("[]", "4", '{"float":"-inf"}')),
        ('"check":true', '"other":true'),
        ('"trips":null', '"trips":4611686018427387904'),
        ('"carries":1', '"carries":4611686018427387904'),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("program.json", text.replace(old, new))
        with pytest.raises(gc.GraphValueError, match="holds no program"):
            gc.load(path)
    assert np.isfinite(gc.compile([w], y[0])(np.ones(3))).all()
