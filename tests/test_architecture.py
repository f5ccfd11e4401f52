"""Imports run one way, and files stay small."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "graphcore"

# A part of the package, and the other parts it may import. The parts that are not listed (the
# package itself, __main__, compile, demo) see everything, and no listed part sees them.
MAY_IMPORT = {
    "ir": set(),
    "ops": {"ir"},
    "rewrites": {"ir", "ops"},
    "schedule": {"ir", "ops"},
    "backends": {"ir", "ops", "rewrites", "schedule"},
    "frontend": {"ir", "ops"},
    "inspection": {"ir", "ops"},
    "interop": {"ir", "ops"},
}
SEES_EVERYTHING = {"__init__", "__main__", "compile", "demo"}
LINKS = ("rewrites", "backends")


def python_files() -> list[Path]:
    folders = (PACKAGE, ROOT / "tests", ROOT / "benchmarks")
    return sorted([*ROOT.glob("*.py"), *(file for f in folders for file in f.rglob("*.py"))])


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def imports(source: str, module: str) -> Iterator[tuple[int, str]]:
    """(line, absolute module) of every import in the source of `module`, wherever it stands.

    `module` ends with __init__ for a package's own file. `from m import name` counts as m.name,
    which may be a module.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def part_of(module: str) -> str | None:
    """The part of graphcore a module belongs to; None outside the package."""
    first, *rest = module.split(".")
    if first != PACKAGE.name:
        return None
    return rest[0] if rest else "__init__"


def violations(source: str, module: str) -> list[str]:
    """What the source of `module` imports against the rules."""
    part = part_of(module)
    found = []
    for line, target in imports(source, module):
        other = part_of(target)
        inward = other is None or part in SEES_EVERYTHING or other in {part, *MAY_IMPORT[part]}
        named_rule = module.startswith("graphcore.rewrites.derivatives") and (
            f"{target}.".startswith("graphcore.ops.named.")
        )
        if not inward or named_rule:
            found.append(f"{module}:{line} imports {target}")
    return found


def test_every_part_has_its_place() -> None:
    parts = {part_of(module_of(file)) for file in PACKAGE.rglob("*.py")}
    assert parts <= MAY_IMPORT.keys() | SEES_EVERYTHING, "say in MAY_IMPORT what the new part sees"


def test_imports_run_one_way() -> None:
    files = PACKAGE.rglob("*.py")
    assert [v for f in files for v in violations(f.read_text("utf-8"), module_of(f))] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("graphcore.ir.node", "import graphcore.ops"),
        ("graphcore.ir.node", "import graphcore as gc"),
        ("graphcore.ir.node", "from graphcore import tensor"),
        ("graphcore.ir.node", "from .. import rewrites"),
        ("graphcore.ir.__init__", "from ..ops.named import total"),
        ("graphcore.ops.named", "def f():\n    from graphcore import frontend"),
        ("graphcore.rewrites.lower", "from graphcore.frontend.tensor import Tensor"),
        ("graphcore.rewrites.derivatives", "from ..ops.named import total"),
        ("graphcore.rewrites.derivatives.linear", "from graphcore.ops import named"),
        ("graphcore.backends.numpy_backend.emit", "from ...frontend import Tensor"),
        ("graphcore.schedule.buffers", "from graphcore.backends import numpy_backend"),
        ("graphcore.frontend.tensor", "if TYPE_CHECKING:\n    from graphcore.compile import Plan"),
        ("graphcore.inspection.printer", "import graphcore.backends.numpy_backend"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("graphcore.__init__", "from .compile import compile\nfrom . import frontend, backends"),
        ("graphcore.compile", "from .rewrites import pipeline\nimport graphcore.frontend"),
        ("graphcore.demo.digits", "import graphcore as gc"),
        ("graphcore.backends.numpy_backend.emit", "from ... import ops, rewrites\nimport scipy"),
        ("graphcore.rewrites.derivatives", "from .engine import convert\nfrom ..ops import plain"),
        ("graphcore.rewrites.lower", "from graphcore.ops import named"),
        ("graphcore.ir.__init__", "from . import node\nfrom .node import Node"),
    ],
)
def test_a_right_import_passes(module: str, source: str) -> None:
    assert violations(source, module) == []


def test_nothing_imports_the_links() -> None:
    """`import rewrites` would work beside the links and fail where the wheel is installed."""
    found = [
        f"{module_of(file)}:{line}"
        for file in python_files()
        for line, target in imports(file.read_text("utf-8"), module_of(file))
        if target.split(".")[0] in LINKS
    ]
    assert found == []


@pytest.mark.parametrize("name", LINKS)
def test_links_lead_into_the_package(name: str) -> None:
    link = ROOT / name
    if not link.is_symlink():
        pytest.skip("an sdist, or a checkout without symbolic links")
    assert link.resolve() == PACKAGE / name


def test_no_file_is_over_500_lines() -> None:
    lines = {module_of(file): len(file.read_text("utf-8").splitlines()) for file in python_files()}
    assert {module: n for module, n in lines.items() if n > 500} == {}
