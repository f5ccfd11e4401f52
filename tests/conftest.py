"""Options, profiles and fixtures of all tests."""

import difflib
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    import numpy as np

# Each worker has a core of its own: threads of BLAS that wait for each other would slow all down.
# NumPy reads this once, when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

GOLDEN = Path(__file__).parent / "golden"

# Programs for processes of their own: their ops would stay in that of the other tests.
collect_ignore = ["outside"]

# A run depends neither on chance nor on how busy the machine is: examples are drawn from the text
# of a test, none are kept between runs, and no time is measured. Random programs are large.
hypothesis.settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.data_too_large,
        hypothesis.HealthCheck.filter_too_much,
        hypothesis.HealthCheck.large_base_example,
    ],
)
hypothesis.settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/*.txt")
    parser.addoption("--poison", action="store_true", help="check who shares memory with whom")
    parser.addoption("--native", action="store_true", help="run machine code where there is some")
    parser.addoption("--checked", action="store_true", help="check what passes keep")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the tests themselves out of all searches for garbage, and search a tenth as often.

    The searches took an eighth of a run.
    """
    gc.set_threshold(10_000)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests are of values, not of a target: what says none is NumPy calls, which are made sooner.

    Examples of docs, and tests that are marked `by_rule`, get the target that users get.
    """
    from tests.machine_code import rule

    example = isinstance(item, pytest.DoctestItem)
    rule.is_on = example or item.get_closest_marker("by_rule") is not None


def wants_native(config: pytest.Config) -> bool:
    return bool(config.getoption("--native"))


def checks_places(config: pytest.Config) -> bool:
    """Whether machine code checks each place that it accesses."""
    return wants_native(config) and bool(config.getoption("--checked"))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """With `--poison`, what is compiled checks what its plan says of memory.

    With `--native`, programs run as machine code where they can, between guard zones. With
    `--checked`, each compilation is held to what passes keep, and with both, machine code to the
    memory it may access. Hooks around all tests cost nothing where none is asked for; fixtures
    would be set up for each test.
    """
    with ExitStack() as ways:
        from tests.machine_code import rule

        ways.enter_context(rule.in_force())
        if session.config.getoption("--poison"):
            from tests.poison import poisoned

            ways.enter_context(poisoned())
        if wants_native(session.config):
            from tests.checks import checked
            from tests.guards import guarded
            from tests.machine_code import native

            ways.enter_context(native())
            ways.enter_context(guarded())
            if checks_places(session.config):
                ways.enter_context(checked())
        if session.config.getoption("--checked"):
            from tests.invariants import verified

            ways.enter_context(verified())
        return (yield)


@pytest.fixture(scope="session")
def machine_code(request: pytest.FixtureRequest) -> bool:
    """Whether programs of this run are machine code, and not NumPy calls."""
    return wants_native(request.config)


@pytest.fixture
def plain_machine_code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the text of machine code as it is for AVX-512, without checks of memory."""
    if checks_places(request.config):
        pytest.skip("machine code with checks has another text")
    from graphcore.backends.llvm_kernels import storing

    monkeypatch.setattr(storing, "masks_are_quick", lambda: True)


@pytest.fixture(scope="session")
def generated_python(machine_code: bool) -> None:
    """For tests of how the Python code of NumPy calls fails and keeps memory."""
    if machine_code:
        pytest.skip("no Python code is generated for machine code")


class Zones:
    """With `--native`, nothing is written outside of what it is for; half of the tests find nan."""

    @pytest.fixture(autouse=True)
    def zones(self, request: pytest.FixtureRequest) -> Iterator[None]:
        from tests import checks, guards

        with guards.rubbish(guards.RUBBISH[len(request.node.nodeid) % 2]):
            yield
        if wrong := [*guards.found(), *checks.found()]:
            pytest.fail("\n".join(wrong))


def pytest_configure(config: pytest.Config) -> None:
    if wants_native(config):
        config.pluginmanager.register(Zones())


@pytest.fixture
def random() -> "np.random.Generator":
    """Numbers of the test's own: which it gets does not depend on the tests that ran before."""
    import numpy as np

    return np.random.default_rng(0)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: text is what tests/golden/NAME.txt says."""
    update = request.config.getoption("--update-golden")

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        found = text.rstrip("\n") + "\n"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(found, encoding="utf-8", newline="\n")
            return
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        if found != expected:
            diff = difflib.unified_diff(
                expected.splitlines(keepends=True),
                found.splitlines(keepends=True),
                f"tests/golden/{name}.txt",
                "found",
            )
            pytest.fail(f"{''.join(diff)}\n--update-golden accepts it", pytrace=False)

    return compare


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly that the page was not tested where there is no browser."""
    skipped = terminalreporter.stats.get("skipped", [])
    if missed := [report for report in skipped if "NO BROWSER" in str(report.longrepr)]:
        text = "NO BROWSER: install chromium and chromedriver"
        terminalreporter.write_line(f"{text}; {len(missed)} tests of the page skipped", red=True)
