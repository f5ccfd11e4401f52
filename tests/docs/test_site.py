"""The site is built without warnings, links to what is there, and loads nothing from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from graphcore.frontend.core import contents
from graphcore.frontend.core.contents import SPACES
from tests.docs import pages

pytestmark = pytest.mark.slow

LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
    ("object", "data"),
    ("use", "href"),
    ("form", "action"),
}
"""Elements and attributes that make a browser load something, besides links in the head."""
LINKED = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "search"}
"""The links of a head that make a browser load something."""


class Reader(HTMLParser):
    """What a page loads, what it links to, and its ids."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and LINKED & set(given.get("rel", "").split()):
            self.loads.append(given["href"])
        self.loads += [value for key, value in given.items() if (tag, key) in LOADED]
        self.loads += re.findall(r"url\(([^)]*)\)", given.get("style", ""))


def read(site: Path) -> Iterator[tuple[Path, Reader]]:
    """Every page of the site."""
    for file in sorted(site.rglob("*.html")):
        reader = Reader()
        reader.feed(file.read_text(encoding="utf-8"))
        yield file, reader


def outside(address: str) -> bool:
    """Whether an address is on another machine."""
    return bool(urlsplit(address).netloc) and not address.startswith("data:")


def test_the_site_loads_nothing_from_outside(site: Path) -> None:
    for file, page in read(site):
        assert [x for x in page.loads if outside(x)] == [], file
    for style in site.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", style.read_text(encoding="utf-8"), flags=re.DOTALL)
        loaded = re.findall(r"(?:url\(|@import\s+)[\"']?([^\"')]+)", text)
        assert [x for x in loaded if outside(x)] == [], style


def test_links_within_the_site_lead_somewhere(site: Path) -> None:
    found = dict(read(site))
    for file, page in found.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{file}: {link}"
            if parts.fragment and target in found:
                assert unquote(parts.fragment) in found[target].ids, f"{file}: {link}"


def test_every_public_name_has_one_entry(site: Path) -> None:
    ids = [name for _, page in read(site) for name in page.ids if name.startswith("graphcore.")]
    for space in ("", *SPACES):
        for name in contents.names(space):
            path = f"graphcore.{space}.{name}" if space else f"graphcore.{name}"
            anchors = [x for x in ids if x == path or x == f"module-{path}"]
            assert len(anchors) == (0 if not space and name in SPACES else 1), path


def test_search_finds_pages_and_names(site: Path) -> None:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    written = {
        page.relative_to(pages.ROOT / "docs").with_suffix("").as_posix()
        for page in pages.PAGES
        if page.is_relative_to(pages.ROOT / "docs")
    }
    assert set(index["docnames"]) == written
    names = {
        f"{prefix}.{entry[4]}" for prefix, found in index["objects"].items() for entry in found
    }
    for space in ("", *SPACES):
        prefix = f"graphcore.{space}" if space else "graphcore"
        wanted = {f"{prefix}.{name}" for name in contents.names(space)}
        assert wanted <= names | {f"graphcore.{x}" for x in SPACES}
    for word in ("cumsum", "gradient", "minibatch", "xarray"):
        assert any(term.startswith(word[:6]) for term in index["terms"]), word
