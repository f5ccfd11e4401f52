"""The site in a headless browser: search finds what people look for, and nothing is cut off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.inspection.browser import MISSING, Browser, browser

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

SOUGHT = {
    "minibatch": "tutorials/training",
    "GPU": "faq",
    "random numbers": "howto/random_numbers",
    "vmap": "coming_from/jax",
    "jit": "coming_from/jax",
    "groupby": "api/reductions",
    "nan": "tools/check",
    "checkpoint": "api/derivatives",
    "save": "howto/save_load_export",
    "float32": "howto/float32",
    "einsum": "api/contraction",
    "while loop gradient": "concepts/loops",
    "Hessian": "api/derivatives",
    "dropout": "tutorials/training",
    "nutpie": "tutorials/inference",
    "pandas": "faq",
    "shape error": "howto/shapes_and_dims",
    "slow": "howto/slow_program",
    "memory": "howto/memory",
    "cite": "faq",
}
"""What people look for, and the page that is among the first three hits."""

HITS = """
return [...document.querySelectorAll("#search-results li > a")].map((x) => x.pathname)
"""
READY = """
return /matching|did not match/.test(document.getElementById("search-results").textContent)
"""
CUT_OFF = """
const content = document.querySelector(".content");
return content.scrollWidth > content.clientWidth
"""


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as found:
        yield found


def load(window: Browser, page: Path, query: str = "") -> None:
    """Show a page of the site."""
    window.post("/url", url=page.as_uri() + query)


def hits(window: Browser, site: Path, words: str) -> list[str]:
    """The pages that the search of the site finds, best first."""
    load(window, site / "search.html", f"?q={words.replace(' ', '+')}")
    until = time.monotonic() + 30
    while not window.run(READY) and time.monotonic() < until:
        time.sleep(0.05)
    found: list[str] = window.run(HITS)
    return [str(Path(x).relative_to(site).with_suffix("")) for x in found]


def test_search_finds_what_people_look_for(site: Path, window: Browser) -> None:
    found = {words: hits(window, site, words)[:3] for words in SOUGHT}
    assert {words: x for words, x in found.items() if SOUGHT[words] not in x} == {}


def test_nothing_is_cut_off_on_a_narrow_screen(site: Path, window: Browser) -> None:
    window.chrome(
        "Emulation.setDeviceMetricsOverride",
        width=390,
        height=844,
        deviceScaleFactor=1,
        mobile=True,
    )
    pages = sorted(site.rglob("*.html"))
    cut = []
    for page in pages:
        load(window, page)
        if window.run(CUT_OFF):
            cut.append(page.relative_to(site).as_posix())
    window.chrome("Emulation.clearDeviceMetricsOverride")
    assert (cut, len(pages) > 50) == ([], True)
