"""Options and fixtures that all tests share."""

from __future__ import annotations

import importlib.util
import signal
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DATA = TESTS / "data"
NEEDED_BY = {
    "browser": "playwright",
    "formats": "onnxscript",
    "hidet": "hidet",
    "jax": "flax",
    "jittor": "jittor",
    "megengine": "megengine",
    "paddle": "paddle",
    "torch": "torch",
}


# What a shell starts in the background ignores Ctrl-C, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def installed(package: str) -> bool:
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None  # without an origin: our folder of that name


if installed("hypothesis"):
    from hypothesis import HealthCheck, settings

    # No example may fail because the machine is busy.
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")

ABSENT = {folder: package for folder, package in NEEDED_BY.items() if not installed(package)}
collect_ignore = list(ABSENT)


def pytest_report_header() -> list[str]:
    return [
        f"tests/{folder}: left out, {package} is not installed (make test LANES={folder})"
        for folder, package in ABSENT.items()
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Run by hand in an environment that lacks something, say where there is one that has it all."""
    problems = [*terminalreporter.getreports("error"), *terminalreporter.getreports("failed")]
    if any("No module named" in report.longreprtext for report in problems):
        terminalreporter.write_line(
            "A package that the tests need is missing. `make test LANES=core` makes .nox/core, which has them all; "
            "from then on: .nox/core/bin/pytest tests/test_readers.py"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--overwrite", action="store_true", help="write the golden files instead of comparing")


@pytest.fixture
def overwrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--overwrite"))
