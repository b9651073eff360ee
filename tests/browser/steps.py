"""What every test of the page begins with."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page


def ready(page: Page, url: str) -> None:
    """Open it, and wait until it has come to rest."""
    page.goto(url)
    page.wait_for_function("window.opscope !== undefined")
    page.evaluate("opscope.idle()")


def state(page: Page) -> dict[str, Any]:
    return page.evaluate("opscope.state()")
