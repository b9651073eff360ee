"""A capture in a notebook cell: the one-file page in a frame of its own."""

from __future__ import annotations

import html

from opscope.analysis.annotate import annotate
from opscope.errors import OpscopeError
from opscope.ir import Capture

from . import page

HEIGHT = 560
LARGEST = 8 << 20  # what is shown is copied into the notebook file, and saved with it each time


def render(capture: Capture, height: int = HEIGHT) -> str:
    """The page, or, where it would make the notebook too large, what is in the capture and how to see it."""
    if not capture.stages:
        return _summary(capture, "There is nothing in it yet: it fills when the recorded block ends.")
    data = page.capture_bytes(annotate(capture))
    if len(data) > LARGEST // 4 * 3:
        return _too_large(capture, len(data))
    try:
        content = page.one_file([("capture", data)], "opscope", mode="notebook", height=height)
    except OpscopeError as error:
        return _summary(capture, str(error))
    content = content.replace("&", "&amp;").replace('"', "&quot;")
    if len(content) > LARGEST:
        return _too_large(capture, len(content))
    # Sandboxed: the page has an origin of its own, so nothing in a capture can reach the notebook around it.
    return (
        f'<iframe srcdoc="{content}" title="opscope" sandbox="allow-scripts allow-downloads allow-popups" '
        f'allow="clipboard-write" style="width: 100%; height: {height}px; border: 1px solid #8884; border-radius: 6px">'
        "</iframe>"
    )


def _too_large(capture: Capture, size: int) -> str:
    return _summary(
        capture,
        f"At {size / (1 << 20):.0f} MB it would make the notebook file large, so it is not embedded. "
        "<code>cap.show()</code> opens it in the browser, "
        '<code>cap.save("graph.html")</code> writes a standalone page.',
    )


def _summary(capture: Capture, what_to_do: str) -> str:
    origin = " ".join(part for part in (capture.origin.framework, capture.origin.version) if part)
    rows = "".join(
        f"<tr><td>{html.escape(stage.name[:80])}</td><td>{stage.graph.n_nodes:,} operators</td>"
        f"<td>{stage.graph.n_edges:,} edges</td></tr>"
        for stage in capture.stages[:20]
    )
    return f"<div><b>opscope capture</b> {html.escape(origin[:80])}<table>{rows}</table><p>{what_to_do}</p></div>"
