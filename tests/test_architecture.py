"""Imports run one way, and files stay small."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from graphcore.backends.numpy_backend.export.runtime import MODULES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "graphcore"

# A part of the package, and the other parts it may import. The parts that are not listed (the
# package itself, __main__, compile and what is made of it, demo) see everything, and no listed part
# sees them.
MAY_IMPORT = {
    "ir": set(),
    "ops": {"ir"},
    "analysis": {"ir", "ops"},
    "rewrites": {"ir", "ops", "analysis"},
    "schedule": {"ir", "ops", "analysis"},
    "backends": {"ir", "ops", "analysis", "rewrites", "schedule", "inspection"},
    "files": {"ir", "ops", "inspection"},
    "frontend": {"ir", "ops", "analysis"},
    "inspection": {"ir", "ops", "analysis", "schedule"},
    "interop": {"ir", "ops", "analysis", "backends"},
}
BRIDGES = {"interop.nutpie", "interop.pytensor"}
"""The parts of interop that make programs of another library's graphs, and compile them."""
SEES_EVERYTHING = {
    *BRIDGES,
    *(
        "__init__",
        "__main__",
        "compile",
        "demo",
    ),
}
LINKS = ("rewrites", "backends")

LAYERS = (
    *("core", "shape", "pointwise", "create", "index", "reduce", "control", "arrange", "order"),
    *("window", "statistics", "special", "nn", "linalg", "fft", "signal", "derive"),
    *("tree", "optimize", "numpy_functions", "tensor", "__init__"),
)
"""The layers of the frontend: each may import those before it, and none after it."""

DEFENDED = {
    (
        "frontend.core.base",
        "frontend.tensor",
    ): "functions return what has them as methods",
    ("ir.node", "ir.op"): "a node names its op, and ops make nodes",
    ("ir.node", "ir.graph"): "a loop's node holds the graph of its body",
    ("ir.size_text", "ir.sizes"): "sizes are shown as text, in their errors too",
}
"""Imports that close a circle of files, for types or within a function, and why they are there."""


def python_files() -> list[Path]:
    folders = (PACKAGE, ROOT / "tests", ROOT / "benchmarks")
    return sorted([*ROOT.glob("*.py"), *(file for f in folders for file in f.rglob("*.py"))])


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


IMPORT = re.compile(
    r"^ *(?:\S.*: )?(?:from (\.*)([\w.]*) )?import (\([^)]*\)|[\w., *]+?)(?: +#.*)?$", re.MULTILINE
)
"""An import: one stands in lines of its own, or after a condition. Parsing all files takes long."""


def imports(source: str, module: str) -> Iterator[tuple[int, str]]:
    """(line, absolute module) of every import in the source of `module`, wherever it stands.

    `module` ends with __init__ for a package's own file. `from m import name` counts as m.name,
    which may be a module.
    """
    for found in IMPORT.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        dots, base, names = found.groups(default="")
        above = module.split(".")[: -len(dots)] if dots else []
        for name in re.findall(r"(?:^|,)\s*([\w.*]+)", re.sub(r"#.*|[()]", "", names)):
            yield line, ".".join([*above, *filter(None, [base]), name])


def part_of(module: str) -> str | None:
    """The part of graphcore a module belongs to; None outside the package."""
    first, *rest = module.split(".")
    if first != PACKAGE.name:
        return None
    if (bridge := ".".join(rest[:2])) in BRIDGES:
        return bridge
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


def layer_of(module: str) -> str | None:
    """The layer of the frontend a module belongs to; None outside of the frontend."""
    prefix = f"{PACKAGE.name}.frontend."
    return module.removeprefix(prefix).split(".")[0] if module.startswith(prefix) else None


def out_of_order(source: str, module: str) -> list[str]:
    """The imports of a layer that stands after that of `module`, the defended ones left out."""
    own = layer_of(module)
    return [
        f"{module}:{line} imports {target}"
        for line, target in imports(source, module)
        if (other := layer_of(target)) in LAYERS
        and LAYERS.index(other) > LAYERS.index(own)
        and (short(module), short(target.rpartition(".")[0])) not in DEFENDED
    ]


def short(module: str) -> str:
    return module.removeprefix(f"{PACKAGE.name}.")


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
        (
            "graphcore.frontend.tensor",
            "if TYPE_CHECKING:\n    from graphcore.compile.compiled import Plan",
        ),
        ("graphcore.inspection.printer", "import graphcore.backends.numpy_backend"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "graphcore.__init__",
            "from .compile.compiled import compile\nfrom . import frontend, backends",
        ),
        (
            "graphcore.compile.compiled",
            "from ..rewrites import pipeline\nimport graphcore.frontend",
        ),
        ("graphcore.demo.datasets", "import graphcore as gc"),
        ("graphcore.backends.numpy_backend.emit", "from ... import ops, rewrites\nimport scipy"),
        ("graphcore.rewrites.derivatives", "from .engine import convert\nfrom ..ops import plain"),
        ("graphcore.rewrites.lower", "from graphcore.ops import named"),
        ("graphcore.ir.__init__", "from . import node\nfrom .node import Node"),
    ],
)
def test_a_right_import_passes(module: str, source: str) -> None:
    assert violations(source, module) == []


def test_every_layer_has_its_place() -> None:
    layers = {layer_of(module_of(file)) for file in (PACKAGE / "frontend").rglob("*.py")}
    assert layers == set(LAYERS)


def test_layers_import_layers_before_them() -> None:
    files = (PACKAGE / "frontend").rglob("*.py")
    assert [v for f in files for v in out_of_order(f.read_text("utf-8"), module_of(f))] == []


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("core.lift", "from graphcore.frontend.shape.dims import transpose", 1),
        ("core.lift", "from graphcore.frontend.shape import dims", 1),
        ("core.lift", "from graphcore.frontend import shape", 1),
        ("core.lift", "def f():\n    from graphcore.frontend.tensor import Tensor", 1),
        ("pointwise.complex", "from graphcore.frontend.create.inputs import zeros_like", 1),
        ("create.inputs", "from graphcore.frontend.pointwise.elementwise import astype", 0),
        ("create.inputs", "from .ranges import arange", 0),
        ("core.base", "if TYPE_CHECKING:\n    from graphcore.frontend.tensor import Tensor", 0),
    ],
)
def test_an_import_of_a_later_layer_is_found(module: str, source: str, found: int) -> None:
    assert len(out_of_order(source, f"graphcore.frontend.{module}")) == found


def test_no_circle_of_imports() -> None:
    """No files import each other in a circle, not even for types, but where it is defended."""
    files = {module_of(f).removesuffix(".__init__"): f for f in PACKAGE.rglob("*.py")}
    edges = {
        (short(module), short(target))
        for module, file in files.items()
        for _, name in imports(file.read_text("utf-8"), module_of(file))
        for target in [next((n for n in (name, name.rpartition(".")[0]) if n in files), module)]
        if target not in (module, PACKAGE.name)
    }
    assert edges >= DEFENDED.keys(), "a circle is gone: so should be its defence"
    left = edges - DEFENDED.keys()
    while ends := {a for a, _ in left} - {b for _, b in left}:
        left = {(a, b) for a, b in left if a not in ends}
    assert sorted(left) == []


def test_the_modules_in_exported_programs_are_one_module_together() -> None:
    """They import none of ours but one another, and each name of theirs means one thing."""
    meanings: dict[str, object] = {}
    for at, module in enumerate(MODULES):
        file = ROOT.joinpath(*module.split(".")).with_suffix(".py")
        for _, target in imports(file.read_text("utf-8"), module):
            if target.startswith(PACKAGE.name) and target != "graphcore.ir.provenance.user_line":
                assert target.rpartition(".")[0] in MODULES[:at]
        for name, value in vars(import_module(module)).items():
            if not name.startswith("__") and name != "user_line":
                known = meanings.setdefault(name, value)
                assert known is value or known == value, (module, name)


@pytest.mark.slow
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
