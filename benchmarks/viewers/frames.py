"""What a frame costs, and how long the page stands still: read from Chromium's own trace."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Error

from .chromium import Chromium

CATEGORIES = ["-*", "toplevel", "devtools.timeline"]
TASK, FRAME = "ThreadControllerImpl::RunTask", "Layerize"  # the second once per frame, whoever asked for it
HAND = {"pointermove", "mousemove", "wheel", "scroll"}
Event = dict[str, Any]


@dataclass(frozen=True)
class Frames:
    """CPU milliseconds of the page's main thread per drawn frame, its input events included."""

    count: int
    median: float
    p95: float
    renderer: float  # all threads of the renderer, painting included, per frame
    everything: float  # all processes of the browser, per frame


@dataclass(frozen=True)
class Standstill:
    wall: float  # milliseconds of the longest task of the main thread
    cpu: float  # what that thread worked in it: less where other programs held the machine


def traced(chromium: Chromium, work: Callable[[], object]) -> list[Event]:
    """The events of the main threads of renderers while `work` runs."""
    chromium.browser.start_tracing(page=chromium.page, categories=CATEGORIES)
    try:
        work()
    finally:
        events: list[Event] = json.loads(chromium.browser.stop_tracing())["traceEvents"]
    main = {
        (e["pid"], e["tid"]) for e in events if e.get("name") == "thread_name" and e["args"]["name"] == "CrRendererMain"
    }
    return [e for e in events if (e["pid"], e["tid"]) in main and e.get("ph") == "X"]


def frame_costs(events: list[Event]) -> list[float]:
    """A frame is what the main thread did since the one before: the events, then the task that draws and commits.

    A frame in which neither the hand moved nor the page asked to draw shows nothing new; what it took goes to the next.
    """
    costs: list[float] = []
    for pid in {e["pid"] for e in events}:
        own = sorted((e for e in events if e["pid"] == pid), key=lambda e: (e["ts"], -e.get("dur", 0)))
        total, end, framed, moving = 0.0, 0.0, False, False
        for e in own:
            if e["name"] == TASK and e["ts"] >= end:  # a task may run others inside it
                if framed and moving:
                    costs.append(total)
                    total, moving = 0.0, False
                framed, end = False, e["ts"] + e.get("dur", 0)
                total += e.get("tdur", 0) / 1000
            elif e["name"] == FRAME:
                framed = True
            elif e["name"] == "FireAnimationFrame" or (
                e["name"] == "EventDispatch" and e["args"]["data"]["type"] in HAND
            ):
                moving = True
        if framed and moving:
            costs.append(total)
    return costs


def percentile(values: list[float], part: float) -> float:
    """The smallest value that at least `part` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(len(ordered) * part * 1000) // 1000) - 1)]


def moved(chromium: Chromium, work: Callable[[], object]) -> Frames | None:
    """The cost of the frames that `work`, a user's hand, brings about. None where the page drew nothing."""
    before = chromium.now()
    try:
        events = traced(chromium, work)
    except Error:
        return None
    cost = chromium.since(before)
    frames = frame_costs(events)
    if not frames:
        return None
    each = 1000 / len(frames)
    return Frames(
        len(frames),
        statistics.median(frames),
        percentile(frames, 0.95),
        cost.seconds * each,
        cost.all_processes * each,
    )


def longest_task(events: list[Event]) -> Standstill:
    tasks = [e for e in events if e["name"] == TASK]
    longest = max(tasks, key=lambda e: e.get("dur", 0), default={})
    return Standstill(longest.get("dur", 0) / 1000, longest.get("tdur", 0) / 1000)


# -- a user's hand --------------------------------------------------------------------------------


def drag(chromium: Chromium, steps: int = 60) -> None:
    """Pan to and fro with the button held, by real mouse events; each waits until the page has taken it."""
    mouse = chromium.page.mouse
    x, y = chromium.width / 2, chromium.height / 2
    mouse.move(x, y)
    mouse.down()
    for dx, dy in _path(steps):
        mouse.move(x + dx, y + dy)
    mouse.up()


def _path(steps: int) -> Iterator[tuple[float, float]]:
    for i in range(steps):
        along = 1 - abs(1 - 2 * i / steps)  # there and back
        yield 200 * along, 120 * along


def wheel(chromium: Chromium, steps: int = 24) -> None:
    """Zoom in and out again by a mouse wheel."""
    mouse = chromium.page.mouse
    mouse.move(chromium.width / 2, chromium.height / 2)
    for i in range(steps):
        mouse.wheel(0, -120 if i < steps / 2 else 120)
        chromium.page.wait_for_timeout(30)  # a wheel event is not answered: leave time for its frame
