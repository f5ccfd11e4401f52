"""A headless browser, driven by the WebDriver protocol of chromedriver: no package is needed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
MISSING = "" if CHROMIUM and DRIVER else "NO BROWSER: install chromium and chromedriver to test it"
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--window-size=1600,900"),
)
KEYS = {
    **{"Enter": "\ue007", "Escape": "\ue00c", "Home": "\ue011", "End": "\ue010"},
    **{"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"},
    **{"PageDown": "\ue00f"},
}
PLACE = """
const wanted = document.querySelector(arguments[0]);
wanted.scrollIntoView({ block: "center", inline: "nearest" });
const box = wanted.getBoundingClientRect();
return [box.left + Math.min(30, box.width / 2), box.top + box.height / 2].map(Math.round)
"""


class Browser:
    """A window of a browser."""

    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}"
        self.opener = build_opener(ProxyHandler({}))
        chrome = {"binary": CHROMIUM, "args": list(OPTIONS)}
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self.post("/session", capabilities={"alwaysMatch": wanted})
        self.root += f"/session/{session['sessionId']}"

    def post(self, path: str, method: str = "POST", **data: Any) -> Any:
        """The answer to a command."""
        content = json.dumps(data).encode()
        request = Request(self.root + path, content, {"Content-Type": "application/json"})
        request.method = method
        try:
            with self.opener.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def open(self, file: Path) -> None:
        """Load a file; what the console said before is forgotten."""
        self.console()
        self.post("/url", url=file.as_uri())

    def run(self, script: str, *args: Any) -> Any:
        """What a script in the page returns."""
        return self.post("/execute/sync", script=script, args=list(args))

    def console(self) -> list[str]:
        """The warnings and errors of the console since the last call."""
        entries = self.post("/se/log", type="browser")
        return [each["message"] for each in entries if each["level"] in ("WARNING", "SEVERE")]

    def press(self, *keys: str) -> None:
        """Press keys, each a character or a name in `KEYS`."""
        each = [KEYS.get(key, key) for key in keys]
        actions = [{"type": kind, "value": x} for x in each for kind in ("keyDown", "keyUp")]
        self.post("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def point(self, css: str, click: bool = False) -> None:
        """Move the pointer to the left end of the first such element, and perhaps click."""
        x, y = self.run(PLACE, css)
        move = {"type": "pointerMove", "duration": 0, "origin": "viewport", "x": x, "y": y}
        pressed = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        actions = [move, *(pressed if click else ())]
        self.post("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": actions}])

    def chrome(self, command: str, **params: Any) -> Any:
        """The answer to a command of Chrome's own protocol."""
        return self.post("/goog/cdp/execute", cmd=command, params=params)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser for this block."""
    assert DRIVER is not None
    environment = {key: x for key, x in os.environ.items() if "proxy" not in key.lower()}
    command = [DRIVER, "--port=0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as driver:
        assert driver.stdout is not None
        try:
            lines = iter(driver.stdout.readline, "")
            found = next(
                filter(None, (re.search(r"successfully on port (\d+)", line) for line in lines))
            )
            window = Browser(int(found[1]))
            try:
                yield window
            finally:
                window.post("", method="DELETE")
        finally:
            driver.terminate()
