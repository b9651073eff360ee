"""What every test of the page begins with."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page

PATIENCE = 120_000  # milliseconds until what does not come is a failure, on a machine that is busy


def ready(page: Page, url: str) -> None:
    """Open it, and wait until it has come to rest."""
    page.goto(url)
    page.wait_for_function("window.opscope !== undefined")
    page.evaluate("opscope.idle()")


def reopen(page: Page, *parts: str) -> None:
    """Open the page again by its URL, once that holds these parts: it is written a moment after the page's state."""
    page.evaluate("opscope.idle()")
    page.wait_for_url(lambda url: all(re.search(f"[#&]{re.escape(part)}", url) for part in parts))
    url = page.url
    page.goto("about:blank")
    ready(page, url)


def state(page: Page) -> dict[str, Any]:
    return page.evaluate("opscope.state()")
