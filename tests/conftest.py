"""Options and fixtures that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DATA = TESTS / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--overwrite", action="store_true", help="write the golden files anew instead of comparing")


@pytest.fixture
def overwrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--overwrite"))
