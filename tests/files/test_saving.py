"""Saved programs give the same bits when loaded; files that no one saved are refused unrun."""

from __future__ import annotations

import io
import json
import pickle
import sys
import zipfile
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import NAMES
from tests.files.test_export import HOSTILE, Model, Registered, apart, arguments, leaves, program


def anew(names: list[str], folder: Path) -> None:
    """Programs that another process loads."""
    apart(names, folder, gc.save, f"gc.load({str(folder)!r} + '/' + name)")


def test_programs_are_loaded_in_another_process(tmp_path: Path) -> None:
    anew(["eight_schools"], tmp_path)


@pytest.mark.slow
def test_all_programs_are_loaded_in_another_process(tmp_path: Path) -> None:
    anew(NAMES, tmp_path)


def saved(f: gc.Compiled, folder: Path) -> Path:
    path = folder / "program.gc"
    gc.save(f, path)
    return path


def test_a_loaded_program_is_the_same(tmp_path: Path) -> None:
    f = program()
    g = gc.load(saved(f, tmp_path))
    wanted, found = f(*arguments()), g(*arguments())
    assert str(wanted) == str(found)
    for a, b in zip(leaves(wanted), leaves(found), strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    assert g.source == f.source
    assert g.target == f.target
    assert "test_export.py:" in str(g.stages["named"])


def test_options_and_structures_are_kept(tmp_path: Path) -> None:
    Pair = namedtuple("Pair", ["left", "right"])
    x = gc.tensor("x", {"row": None})
    outputs = {None: x, 2.5: [x], ("a", 1): (x,), True: Pair(x, {}), -0.5: []}
    f = gc.load(saved(gc.compile({"deep": [x]}, outputs, returns="xarray"), tmp_path))
    found = f({"deep": [np.ones(2)]})
    assert list(found) == list(outputs)
    assert type(found[True]).__name__ == "Pair"
    assert found[None].dims == ("row",)


def test_dataclasses_come_back_with_their_names_and_fields(tmp_path: Path) -> None:
    x = gc.tensor("x", {"row": None})
    model = Model(x, "say '{0}'", [2 * x])
    g = gc.load(saved(gc.compile([model], [model], native=False), tmp_path))
    for f in (g, gc.load(saved(g, tmp_path))):
        (found,) = f(Model([1.0], "say '{0}'", [[3.0]]))
        assert (type(found).__name__, found.w, found.kind, found.b) == ("Model", 1, model.kind, [3])
        assert f(found)[0].b == [3]  # of another class of the same fields


def test_names_may_be_any(tmp_path: Path) -> None:
    xs = [gc.tensor(name, {name: None}) for name in HOSTILE]
    f = gc.compile(xs, {name: x * 2 for name, x in zip(HOSTILE, xs, strict=True)}, native=False)
    g = gc.load(saved(f, tmp_path))
    assert [*g(*[np.ones(2)] * len(xs))] == [*HOSTILE]


def test_what_no_archive_holds_is_refused(tmp_path: Path) -> None:
    x = gc.tensor("x", {"row": None})
    for save, message in (
        (
            lambda: gc.save(gc.compile([x], gc.callback(np.sin, x)(x)), tmp_path / "a"),
            "cannot hold sin, a Python function",
        ),
        (lambda: gc.save(gc.compile([x], {object(): x}), tmp_path / "a"), "a dict has the key"),
        (lambda: gc.save(gc.compile([x], Model(x, {}, x)), tmp_path / "a"), "a static field is {}"),
        (lambda: gc.save(gc.compile([x], Registered(x)), tmp_path / "a"), "a class of yours"),
        (lambda: gc.save(x, tmp_path / "a"), "Tensor is not a compiled program"),
        (lambda: gc.save(program(), 3), "path=3 names no file"),
        (lambda: gc.load(None), "path=None names no file"),
    ):
        with pytest.raises(gc.GraphError, match=message) as error:
            save()
        assert "cure: " in str(error.value)
        assert not (tmp_path / "a").exists()
    for kind in (gc.GraphValueError, FileNotFoundError):
        with pytest.raises(kind, match=r"load: there is no file .*nothing'"):
            gc.load(tmp_path / "nothing")
    with pytest.raises(gc.GraphValueError, match="cannot be read: ") as error:
        gc.load(tmp_path)
    assert isinstance(error.value.__cause__, OSError)


# ---- damaged and hostile files

RAN: list[str] = []


class Bomb:
    """An object whose pickle would run."""

    def __reduce__(self) -> Any:
        return RAN.append, ("a pickle",)


def opened(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def closed(path: Path, members: dict[str, bytes], how: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def npy(array: np.ndarray, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def changed(path: Path, change: Callable[[Any], object]) -> None:
    """Another text of the program in an archive."""
    members = opened(path)
    document = json.loads(members["program.json"])
    change(document)
    closed(path, {**members, "program.json": json.dumps(document).encode()})


def member(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda path: closed(path, {**opened(path), name: data})


def text(change: Callable[[Any], object]) -> Callable[[Path], None]:
    return lambda path: changed(path, change)


def nodes(document: Any) -> list[Any]:
    return [node for graph in document["graph"]["graphs"] for node in graph["nodes"]]


def attr(document: Any, op: str, name: str, value: Any) -> None:
    """Another value for an attr of the first node of an op."""
    node = next(node for node in nodes(document) if node["op"] == op)
    assert name in node["attrs"]
    node["attrs"][name] = value


def callback(document: Any) -> None:
    attrs = {"function": "os.system", "dims": [[]], "made": [[]], "sizes": [], "dtypes": []}
    row = nodes(document)[-1]
    row["op"], row["attrs"] = "named.callback", {**attrs, "masked": False}


RUNS = "__import__('os').abort()"
HARM: dict[str, Callable[[Path], object]] = {
    "no zip": lambda path: path.write_bytes(b"nothing"),
    "nothing": lambda path: path.write_bytes(b""),
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Bomb())),
    "Python": lambda path: path.write_text("import os; os.abort()"),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "no program": lambda path: closed(path, {"arrays/0.npy": b""}),
    "compressed": lambda path: closed(path, opened(path), zipfile.ZIP_DEFLATED),
    "a member more": member("__main__.py", b"import os; os.abort()"),
    "a member outside": member("../evil.py", b"import os; os.abort()"),
    "an array of objects": member("arrays/0.npy", npy(np.array([Bomb()]), allow_pickle=True)),
    "an array of words": member("arrays/0.npy", npy(np.array(["a"]))),
    "an array of another size": member("arrays/0.npy", npy(np.ones(3))),
    "an array by columns": member("arrays/0.npy", npy(np.asfortranarray(np.ones((3, 100))))),
    "an array of no bytes": member("arrays/0.npy", npy(np.ones((3, 100)))[:-1]),
    "an array that claims too much": member(
        "arrays/0.npy", npy(np.ones((3, 100))).replace(b"(3, 100)", b"(3, 1" + b"0" * 14 + b")")
    ),
    "a pickle for an array": member("arrays/0.npy", pickle.dumps(Bomb())),
    "no JSON": member("program.json", b"{"),
    "deep JSON": member("program.json", b"[" * 100_000),
    "another format": text(lambda d: d.update(format="pickle")),
    "another version": text(lambda d: d.update(version=2)),
    "one more entry": text(lambda d: d.update(run=RUNS)),
    "fewer arrays": text(lambda d: d.update(arrays=0)),
    "negative arrays": text(lambda d: d.update(arrays=-1)),
    "another option": text(lambda d: d.update(returns=RUNS)),
    "native text": text(lambda d: d.update(native=RUNS)),
    "other arguments": text(lambda d: d.update(arguments=[0, 0])),
    "text for arguments": text(lambda d: d.update(arguments=[RUNS])),
    "a class": text(lambda d: d.update(results={"class": ["os", "abort"]})),
    "a named tuple that runs": text(lambda d: d.update(results={"named": ["A", [RUNS], [0]]})),
    "the name of a named tuple": text(lambda d: d.update(results={"named": [RUNS, ["a"], [0]]})),
    "a dataclass that runs": text(
        lambda d: d.update(results={"fields": ["A", [RUNS, *"bcd"], [0, 1, 2, 3], []]})
    ),
    "the name of a dataclass": text(
        lambda d: d.update(results={"fields": [RUNS, [*"abcd"], [0, 1, 2, 3], []]})
    ),
    "a field that is a part of Python": text(
        lambda d: d.update(results={"fields": ["A", [*"abc", "__class__"], [0, 1, 2, 3], []]})
    ),
    "a field twice": text(
        lambda d: d.update(results={"fields": ["A", [*"abca"], [0, 1, 2, 3], []]})
    ),
    "a key twice": text(
        lambda d: d.update(results={"dict": [["a", 0], ["a", 1], ["b", 2], ["c", 3]]})
    ),
    "a static field that is a graph": text(
        lambda d: d.update(
            results={"fields": ["A", [*"abcd"], [0, 1, 2, 3], [["e", {"graph": 0}]]]}
        )
    ),
    "deep results": text(lambda d: d.update(results=json.loads('{"list":[' * 200 + "]}" * 200))),
    "another op": text(lambda d: nodes(d)[-1].update(op="os.system")),
    "a callback": text(callback),
    "text for a flag": text(lambda d: attr(d, "named.argsort", "descending", RUNS)),
    "text for a size": text(lambda d: attr(d, "named.argsort", "size", RUNS)),
    "text for a dim": text(lambda d: attr(d, "named.norm", "dims", RUNS)),
    "a number for a dim": text(lambda d: attr(d, "named.norm", "dims", [7])),
    "text for a matrix flag": text(lambda d: attr(d, "named.inv", "check", RUNS)),
}


def victim() -> gc.Compiled:
    x = gc.tensor("x", {"row": None, "col": 3})
    table = gc.constant(np.arange(300.0).reshape(3, 100), ("col", "k"))
    size, at = gc.linalg.norm(x, dims=("row", "col")), gc.argsort(x, "row")
    inverse = gc.linalg.inv(gc.eye(("i", "j"), shape=3) + x.sum("row").rename(col="i"), ("i", "j"))
    return gc.compile([x], [gc.dot(x, table, dim="col"), size, at, inverse], native=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file that is loaded, before it is damaged."""
    path = saved(victim(), tmp_path_factory.mktemp("whole"))
    assert gc.load(path)(np.eye(3))
    return path.read_bytes()


@pytest.mark.parametrize("how", HARM)
def test_damaged_and_hostile_files_are_refused(how: str, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "program.gc"
    path.write_bytes(whole)
    before = dict(sys.modules)
    HARM[how](path)
    with pytest.raises(gc.GraphValueError, match=r"load: 'program.gc' holds no program: ") as error:
        gc.load(path)
    assert "cure: give a file that gc.save" in str(error.value)
    assert len(str(error.value)) < 700
    assert not RAN
    assert {name for name in sys.modules.keys() - before.keys() if "graphcore" not in name} == set()


def test_every_flipped_byte_is_refused_or_harmless(tmp_path: Path) -> None:
    """The zip format checks the sums of members; what it does not check is nothing that counts."""
    path = saved(victim(), tmp_path)
    data, wanted = path.read_bytes(), str(victim()(np.eye(3)))
    random = np.random.default_rng(5)
    for at in random.choice(len(data), 60, replace=False):
        flipped = data[at] ^ (1 << int(random.integers(8)))
        path.write_bytes(data[:at] + bytes([flipped]) + data[at + 1 :])
        try:
            found = gc.load(path)
        except gc.GraphValueError:
            continue
        assert str(found(np.eye(3))) == wanted
