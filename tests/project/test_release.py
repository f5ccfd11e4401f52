"""The files of a release agree with each other: versions, dependencies, licences, addresses."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_all_files_say_the_same_version() -> None:
    version = PROJECT["version"]
    assert metadata("graphcore")["Version"] == version
    assert re.search(r"^version: (.*)$", text("CITATION.cff"), re.MULTILINE)[1] == version
    assert re.search(r'^  version: "(.*)"$', text(".conda/recipe.yaml"), re.MULTILINE)[1] == version
    assert re.search(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)[1] == version


def test_the_recipe_asks_for_the_same_packages() -> None:
    """In the recipe a package has a space before its versions, and no platform behind them."""
    ours = {
        re.sub(r"([\w-]+)", r"\1 ", d.partition(";")[0], count=1) for d in PROJECT["dependencies"]
    }
    run = re.search(r"^  run:\n(.*?)^  \w", text(".conda/recipe.yaml"), re.MULTILINE | re.DOTALL)[1]
    theirs = {d for d in re.findall(r"^    - (.*)$", run, re.MULTILINE) if "python" not in d}
    assert theirs == {d.strip() for d in ours}
    python = re.search(r'python_min: "(.*)"', text(".conda/recipe.yaml"))[1]
    assert PROJECT["requires-python"] == f">={python}"


def test_licences_are_those_of_the_notice() -> None:
    assert f"license: {PROJECT['license']}\n" in text(".conda/recipe.yaml")
    assert all(name in text(".conda/recipe.yaml") for name in PROJECT["license-files"])
    notice = text("NOTICE")
    assert all(word in notice for word in ("MIT licence", "CC BY 4.0", "SunPro", "musl"))
    assert all(
        (ROOT / path).exists() for path in re.findall(r"^\d\. (graphcore/\S+):", notice, re.M)
    )


def test_addresses_are_those_of_the_project() -> None:
    """The project's home is said in pyproject.toml; other files repeat it or say none."""
    urls = set(PROJECT.get("urls", {}).values())
    said = re.findall(
        r"^(?:repository-code|url): \"?([^\"\n]+)", text("CITATION.cff"), re.MULTILINE
    )
    assert set(said) <= urls
