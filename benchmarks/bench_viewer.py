"""The page beside Netron and Model Explorer, and its layout beside dagre, ELK and Graphviz, in one run.

    python benchmarks/bench_viewer.py                      # all of it, an hour; writes its section of RESULTS.md
    python benchmarks/bench_viewer.py --only first,expand  # first expand memory pan stall group layout size
    python benchmarks/bench_viewer.py --quick              # small graphs, a few minutes; writes nothing

Needed: chromium, node (`npm install` in viewer/) and Graphviz's dot on the path; netron, ai-edge-model-explorer, onnx
and playwright in the environment. A viewer that is not installed is left out, and a line says so.

CPU seconds are those of Chromium's renderer processes (page and workers) from the moment before the page is opened to
two frames after the viewer has its picture, headless, software rendering. The page says once when that is; nothing
asks it before. What a page of two nodes takes in the same tool is taken off. Best of three runs, or the only one where
it takes more than 20 s.
"""

from __future__ import annotations

import argparse
import base64
import importlib.metadata
import itertools
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import opscope
from calibrate import calibrate, is_there, need
from corpus import WIDE, make, write

need("playwright")

from viewers import frames, layouts  # noqa: E402
from viewers.chromium import Chromium, Cost, Failed, Moment  # noqa: E402
from viewers.frames import Frames, Standstill  # noqa: E402
from viewers.report import Block, Check, update  # noqa: E402
from viewers.tools import TOOLS, Opscope, Tool  # noqa: E402

HERE = Path(__file__).parent
PARTS = ["first", "expand", "memory", "pan", "stall", "group", "layout", "size"]
LARGEST = "syn-1M"
LEAST = 0.01  # CPU is counted in hundredths of a second


@dataclass
class Plan:
    """Which graphs each part takes. `-flat` is the same graph without modules."""

    viewed: list[str] = field(default_factory=lambda: ["syn-1k", "syn-5k", "syn-5k-flat", "train-5k", "syn-100k"])
    alone: list[str] = field(default_factory=lambda: ["syn-20k-flat", "syn-1M"])  # too large for the others
    flat: str = "syn-5k-flat"
    small: str = "syn-1k"
    large: str = "syn-100k"
    panned: list[str] = field(default_factory=lambda: ["syn-100k", "syn-1M"])
    panned_beside: str = "syn-1k"
    opened: list[str] = field(default_factory=lambda: ["syn-100k", "syn-1M", "syn-1M-flat"])
    wide: str = "wide-100k"
    compared: list[str] = field(
        default_factory=lambda: [
            "gpt2", "llama32", "resnet152", "syn-500", "syn-1k", "loc-500", "loc-1k", "moe-500", "moe-1k",
        ]
    )  # fmt: skip
    timed: dict[str, float] = field(
        default_factory=lambda: {
            "syn-20k": 0.1, "loc-20k": 0.1, "moe-20k": 0.1, "train-20k": 0.1,
            "syn-100k": 0.5, "loc-100k": 0.5, "moe-100k": 0.5, "train-100k": 0.5, "syn-1M": 6.0,
        }
    )  # fmt: skip


QUICK = Plan(
    viewed=["syn-1k", "syn-1k-flat", "syn-2k"],
    alone=["syn-20k"],
    flat="syn-1k-flat",
    large="syn-2k",
    panned=["syn-20k"],
    opened=["syn-20k"],
    wide="wide-20k",
    compared=["gpt2", "syn-500"],
    timed={"syn-20k": 0.1},
)


@dataclass
class Visit:
    """One viewer on one graph. What it did not reach is None, and `failed` says why."""

    first: Cost | None = None
    expand: Cost | None = None
    boxes: int = 0
    memory: float = 0.0
    failed: str = ""


class Bench:
    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.plan = QUICK if args.quick else Plan()
        self.runs: int = args.runs
        self.limit: float = args.limit
        self.parts: list[str] = args.only
        self.folder = folder
        self.tools = [tool for tool in TOOLS if tool.name.lower() in args.tools and installed(tool)]
        self.visits: dict[tuple[str, str], Visit] = {}
        self.counts: dict[str, int] = {}

    def run(self, part: str) -> Block:
        return getattr(self, part)()

    # -- graphs and visits ----------------------------------------------------------------------------

    def file(self, name: str, ending: str) -> Path:
        flat = name.endswith("-flat")
        path = self.folder / f"{name}{ending}"
        if not path.exists() or name not in self.counts:
            model = make(name.removesuffix("-flat"))
            self.counts[name] = len(model.nodes)
            write(model, self.folder, flat, (ending,))
        return path

    def visit(self, tool: Tool, name: str) -> Visit:
        """Open it, expand it all; the best of some runs. Each graph is opened once for all parts."""
        key = (tool.name, name)
        if key not in self.visits:
            file = self.file(name, tool.ending)
            best = self._once(tool, file)
            for _ in range(self.runs - 1):
                if best.failed or best.first is None or best.first.seconds > 20:
                    break
                other = self._once(tool, file)
                best = replace(
                    best,
                    first=_less(best.first, other.first),
                    expand=_less(best.expand, other.expand),
                    memory=max(best.memory, other.memory),
                )
            self.visits[key] = best
            said = f"first {_seconds(best.first)}, expand all {_seconds(best.expand)}, {best.memory:,.0f} MB"
            log(f"{name:14} {tool.name:15} {best.failed or said}")
        return self.visits[key]

    def _once(self, tool: Tool, file: Path) -> Visit:
        seen = Visit()
        with tool.served(file) as url, Chromium(webgl=tool.webgl) as chromium:
            tool.prepare(chromium)
            try:
                start = chromium.open(url)
                seen.first = chromium.wait("first", start, self.limit)
                if tool.name == "opscope":
                    seen.boxes = chromium.page.evaluate("opscope.state().boxCount")
                if tool.expands and file.stem != "empty" and self.wants("expand", "memory"):
                    seen.expand = self.expand_all(tool, chromium)
            except Failed as failed:
                seen.failed = str(failed) if seen.first is None else f"expand all: {failed}"
            seen.memory = chromium.peak
        return seen

    def expand_all(self, tool: Tool, chromium: Chromium) -> Cost:
        chromium.settle()
        start = chromium.now()
        tool.expand(chromium)
        return chromium.wait("expanded", start, self.limit)

    def wants(self, *parts: str) -> bool:
        return any(part in self.parts for part in parts)

    def start_up(self, tool: Tool) -> float:
        """CPU seconds of the page with two nodes, median of five."""
        key = (tool.name, "empty")
        if key not in self.visits:
            file = self.file("empty", tool.ending)
            tries = [self._once(tool, file) for _ in range(5)]
            costs = [visit.first for visit in tries if visit.first is not None]
            middle = sorted(costs, key=lambda cost: cost.seconds)[len(costs) // 2]
            self.visits[key] = Visit(first=middle, memory=statistics.median(visit.memory for visit in tries))
            all_tries = ", ".join(f"{cost.seconds:.2f}" for cost in costs)
            log(f"{'two nodes':14} {tool.name:15} first {middle.seconds:.2f} s (of {all_tries})")
        first = self.visits[key].first
        assert first is not None
        return first.seconds

    def first_of(self, tool: Tool, name: str) -> float | None:
        """CPU seconds of the first picture with the start-up taken off."""
        first = self.visit(tool, name).first
        return None if first is None else max(LEAST, first.seconds - self.start_up(tool))

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    @cached_property
    def ours(self) -> Opscope:
        return next(tool for tool in TOOLS if isinstance(tool, Opscope))

    def each(self, cell: Callable[[Tool, str], str]) -> list[list[str]]:
        rows = []
        for name in [*self.plan.viewed, *self.plan.alone]:
            alone = name in self.plan.alone
            cells = [cell(tool, name) if not alone or tool is self.ours else "" for tool in self.tools]
            rows.append([name, f"{self.counts.get(name, 0):,}", *cells])
        return rows

    # -- parts ------------------------------------------------------------------------------------------

    def first(self) -> Block:
        started = ", ".join(f"{tool.name} {self.start_up(tool):.2f} s" for tool in self.tools)
        block = Block(
            "first",
            "First picture",
            "CPU seconds of the renderer, two nodes' taken off (" + started + "); in brackets all of the browser's "
            "processes with nothing taken off, and time on the clock.",
        )

        def cell(tool: Tool, name: str) -> str:
            seconds, visit = self.first_of(tool, name), self.visit(tool, name)
            if seconds is None or visit.first is None:
                return visit.failed
            return f"{seconds:.2f} ({visit.first.all_processes:.1f}; {visit.first.wall:.1f})"

        block.table(["graph", "nodes", *(tool.name for tool in self.tools)], self.each(cell))
        own, netron, explorer = self.ours, self.tool("Netron"), self.tool("Model Explorer")
        plan = self.plan
        if netron:
            block.checks.append(self.times_faster(f"{plan.flat}: faster than Netron", netron, plan.flat, 100))
            for name in plan.viewed:
                failed = self.visit(netron, name).failed
                if failed:
                    boxes = self.visit(own, name).boxes
                    block.checks.append(
                        Check(
                            f"{name}: a picture (Netron: {failed})", f"{boxes:,} boxes", "≥ 1", float(boxes), boxes > 0
                        )
                    )
        if explorer:
            block.checks.append(
                self.times_faster(f"{plan.large}: faster than Model Explorer", explorer, plan.large, 20)
            )
        small, large = self.visit(own, plan.small).first, self.visit(own, plan.large).first
        transfer = self.transfer(plan.large)
        log(f"transfer of {plan.large}: {transfer:.2f} s")
        if small and large:
            block.checks.append(
                Check.at_most(
                    f"{plan.large} at most 1.5 × {plan.small} + transfer of its file ({transfer:.2f} s)",
                    large.seconds, 1.5 * small.seconds + transfer, "s",
                )
            )  # fmt: skip
            start = self.start_up(own)
            block.checks.append(
                Check.at_most(
                    "the same with the start-up taken off all (differences of 0.05 s are noise)",
                    max(LEAST, large.seconds - start), 1.5 * max(LEAST, small.seconds - start) + transfer, "s",
                )
            )  # fmt: skip
        return block

    def times_faster(self, what: str, rival: Tool, name: str, limit: float, expand: bool = False) -> Check:
        visits = self.visit(self.ours, name), self.visit(rival, name)
        if expand:
            own, other = (visit.expand.seconds if visit.expand else None for visit in visits)
        else:
            own, other = self.first_of(self.ours, name), self.first_of(rival, name)
        if own is None:
            return Check(what, f"none: {visits[0].failed}", f"≥ {limit:.0f} ×", 0.0, False)
        if other is None:  # it took at least the limit, or died on the way
            return Check(what, f"{rival.name} {visits[1].failed}", f"≥ {limit:.0f} ×", float("inf"), True)
        own = max(own, LEAST)
        return Check.at_least(what, other / own, limit, "×", f" ({other:.2f} / {own:.2f} s)")

    def transfer(self, name: str) -> float:
        """CPU seconds to hand the bytes of a capture to a worker from a page that does nothing else."""
        data = base64.b64encode(self.file(name, ".opscope").read_bytes()).decode()
        costs = []
        for text in (data, ""):
            page = self.folder / "transfer.html"
            page.write_text(
                f"<!doctype html><script type='text/plain' id='data'>{text}</script><script>"
                "const decode = 'onmessage = ({ data }) => { const t = atob(data), b = new Uint8Array(t.length); "
                "for (let i = 0; i < b.length; i++) b[i] = t.charCodeAt(i); postMessage(b.length); }';"
                "const worker = new Worker(URL.createObjectURL(new Blob([decode])));"
                "worker.onmessage = () => __picture('first');"
                "worker.postMessage(document.getElementById('data').textContent);</script>"
            )
            tries = []
            for _ in range(3):
                with Chromium() as chromium:
                    tries.append(chromium.wait("first", chromium.open(page.as_uri()), self.limit).seconds)
            costs.append(min(tries))
        return max(0.0, costs[0] - costs[1])

    def expand(self) -> Block:
        block = Block("expand", "Expand all", "CPU seconds of the renderer from the call to the drawn picture.")

        def cell(tool: Tool, name: str) -> str:
            visit = self.visit(tool, name)
            return _seconds(visit.expand) if visit.expand else visit.failed if tool.expands else "has no modules"

        block.table(["graph", "nodes", *(tool.name for tool in self.tools)], self.each(cell))
        explorer = self.tool("Model Explorer")
        if explorer:
            what = f"{self.plan.large}: faster than Model Explorer"
            block.checks.append(self.times_faster(what, explorer, self.plan.large, 20, expand=True))
        seen = self.visit(self.ours, LARGEST) if LARGEST in self.plan.alone else None
        if seen and seen.expand:
            block.checks.append(Check.at_most(f"{LARGEST}: all of it", seen.expand.seconds, 5, "s"))
            block.checks.append(Check.at_most(f"{LARGEST}: memory while all of it is shown", seen.memory, 1200, "MB"))
        return block

    def memory(self) -> Block:
        for tool in self.tools:
            self.start_up(tool)
        empty = ", ".join(f"{tool.name} {self.visits[tool.name, 'empty'].memory:,.0f}" for tool in self.tools)
        block = Block(
            "memory",
            "Memory",
            f"MB of the largest renderer process at its peak, first picture and expand all (two nodes: {empty}).",
        )

        def cell(tool: Tool, name: str) -> str:
            visit = self.visit(tool, name)
            return f"{visit.memory:,.0f}" + (f" ({visit.failed})" if visit.failed else "")

        block.table(["graph", "nodes", *(tool.name for tool in self.tools)], self.each(cell))
        return block

    def pan(self) -> Block:
        block = Block(
            "pan",
            "Frames while panning and zooming",
            "CPU milliseconds of the main thread per drawn frame, by Chromium's trace, while a mouse drags (60 steps) "
            "and a wheel turns (24 steps): median / 95th percentile; in brackets all threads of the renderer and, "
            "after it, all processes of the browser. Everything is expanded.",
        )
        rows = []
        for name in self.plan.panned:
            found = self.own_frames(name)
            for where, moves in found.items():
                rows.append([f"{name}, {where}", "opscope", *(_frames(moves[way]) for way in ("drag", "wheel"))])
            worst = [f for moves in found.values() for f in moves.values() if f]
            for what, limit in (("median", 17), ("p95", 34)):
                figure = max(getattr(f, what) for f in worst)
                block.checks.append(Check.at_most(f"{name}: {what}, the worst of all rows", figure, limit, "ms"))
        for tool in self.tools:
            name = self.plan.panned_beside
            moves = self.frames_beside(tool, name)
            if moves:
                rows.append(
                    [f"{name}, as it opens", tool.name, *(_frames(moves.get(way)) for way in ("drag", "wheel"))]
                )
        block.table(["graph", "", "drag", "wheel"], rows)
        return block

    def own_frames(self, name: str) -> dict[str, dict[str, Frames | None]]:
        found: dict[str, dict[str, Frames | None]] = {}
        with self.ours.served(self.file(name, ".opscope")) as url, Chromium() as chromium:
            self.ours.prepare(chromium)
            chromium.wait("first", chromium.open(url), self.limit)
            self.expand_all(self.ours, chromium)
            # a box in the middle of the graph, so that there is something to see from near
            middle = chromium.page.evaluate(
                """() => { const { boxes, view } = opscope.state();
                    const box = boxes[boxes.length >> 1]; return { ...view, bx: box.x, by: box.y }; }"""
            )
            for where, zoom in (("whole", None), ("zoom 0.05", 0.05), ("zoom 0.3", 0.3), ("zoom 1", 1.0)):
                x, y = (middle["x"], middle["y"]) if zoom is None else (middle["bx"], middle["by"])
                at = [x, y, zoom or middle["zoom"]]
                found[where] = {}
                for way, work in (("drag", frames.drag), ("wheel", frames.wheel)):
                    chromium.page.evaluate("(at) => opscope.view(...at)", at)
                    chromium.settle()
                    found[where][way] = frames.moved(chromium, lambda work=work: work(chromium))
                log(f"{name:14} {where:10} " + "; ".join(f"{w}: {_frames(f)}" for w, f in found[where].items()))
        return found

    def frames_beside(self, tool: Tool, name: str) -> dict[str, Frames | None]:
        found: dict[str, Frames | None] = {}
        with tool.served(self.file(name, tool.ending)) as url, Chromium(webgl=tool.webgl) as chromium:
            tool.prepare(chromium)
            try:
                chromium.wait("first", chromium.open(url), self.limit)
                if tool.expands:
                    self.expand_all(tool, chromium)
            except Failed as failed:
                log(f"{name:14} {tool.name}: {failed}")
                return found
            for way, work in (("drag", frames.drag), ("wheel", frames.wheel)):
                chromium.settle()
                steps = 20 if tool.webgl else 60 if way == "drag" else 24  # SwiftShader takes seconds for each
                found[way] = frames.moved(chromium, lambda work=work, steps=steps: work(chromium, steps))
            log(f"{name:14} {tool.name:10} " + "; ".join(f"{w}: {_frames(f)}" for w, f in found.items()))
        return found

    def stall(self) -> Block:
        block = Block(
            "stall",
            "Standstills",
            "The longest task of the page's main thread, by Chromium's trace: milliseconds on the clock (CPU of that "
            "thread).",
        )
        rows = []
        ways = {"one file": Opscope.served, "opscope view": Opscope.viewed}
        for name, way in itertools.product(self.plan.opened, ways):
            opening, expanding = [], []
            for _ in range(self.runs):
                with ways[way](self.ours, self.file(name, ".opscope")) as url, Chromium() as chromium:
                    self.ours.prepare(chromium)
                    opening.append(self.longest(chromium, "first", lambda chromium, url=url: chromium.open(url)))
                    if not expanding and way == "one file" and not name.endswith("-flat"):
                        chromium.settle()
                        expanding.append(self.longest(chromium, "expanded", self.ours.expand))
            best = min(opening, key=lambda still: still.wall)
            all_runs = ", ".join(map(_still, opening))
            rows.append([f"{name}, {way}", _still(best), all_runs, *map(_still, expanding)])
            log(f"{name:14} {way}: opening {all_runs}; expanding all {', '.join(map(_still, expanding))}")
            block.checks.append(Check.at_most(f"{name} opens ({way}): longest standstill", best.wall, 100, "ms"))
        block.table(["graph", "opening, best", "all runs", "expanding all"], rows)
        return block

    def longest(self, chromium: Chromium, word: str, work: Callable[[Chromium], object]) -> Standstill:
        def until_drawn() -> None:
            start: Moment = chromium.now()
            work(chromium)
            chromium.wait(word, start, self.limit)

        return frames.longest_task(frames.traced(chromium, until_drawn))

    def group(self) -> Block:
        name = self.plan.wide
        block = Block(
            "group",
            "Expanding and collapsing a group",
            f"A group of {WIDE:,} operators in a capture of {name.partition('-')[2]}: CPU seconds of the renderer, all "
            "threads, from the call until the page rests (time on the clock). Cold is the first group in a fresh page, "
            "then the second and the third, then the first once more.",
        )
        rows: dict[str, list[Cost]] = {}
        for _ in range(self.runs):
            with self.ours.served(self.file(name, ".opscope")) as url, Chromium() as chromium:
                self.ours.prepare(chromium)
                chromium.wait("first", chromium.open(url), self.limit)
                order = {"cold": "part2", "second": "part1", "third": "part3", "again": "part2"}
                for how, part in order.items():
                    for call in ("expand", "collapse"):
                        before = chromium.page.evaluate("opscope.state().boxCount")
                        chromium.settle()
                        start = chromium.now()
                        chromium.page.evaluate(
                            f"() => {{ opscope.{call}('model/{part}').then(() => __picture('done')); }}"
                        )
                        rows.setdefault(f"{call}, {how}", []).append(chromium.wait("done", start, self.limit))
                        after = chromium.page.evaluate("opscope.state().boxCount")
                        # Constants are drawn inside what reads them, so there are fewer boxes than operators.
                        assert abs(after - before) > WIDE / 2, f"{call} model/{part}: {before} boxes, then {after}"
        best = {what: min(costs, key=lambda cost: cost.seconds) for what, costs in rows.items()}
        block.table(
            ["", "best", "all runs"],
            [[what, _seconds(best[what]), ", ".join(_seconds(cost) for cost in costs)] for what, costs in rows.items()],
        )
        for what, cost in best.items():
            log(f"{name:14} {what:16} {_seconds(cost)}")
            block.checks.append(Check.at_most(what, cost.seconds, 0.15, "s"))
        return block

    def layout(self) -> Block:
        block = Block(
            "layout",
            "Layout beside dagre, ELK and Graphviz",
            "The same boxes and gaps. Crossings / edges through boxes / total length in thousands, counted on the "
            "drawn lines (curves flattened, shared pieces once), and CPU seconds of one core (ours best of 5).",
        )
        rows = []
        limit = min(self.limit, 20.0) if self.plan is QUICK else self.limit
        for name in self.plan.compared:
            file = self.file(name, ".plain.json")
            found = {engine: layouts.lay_out(engine, file, limit) for engine in layouts.ENGINES}
            rows.append([name, f"{self.counts[name]:,}", *(_drawing(found[engine]) for engine in layouts.ENGINES)])
            log(f"{name:14} " + "; ".join(f"{layouts.ENGINES[e]}: {_drawing(f)}" for e, f in found.items()))
            rivals = [found[engine] for engine in ("dagre", "elk") if "failed" not in found[engine]]
            if "failed" in found["ours"] or not rivals:
                block.checks.append(
                    Check(f"{name}: any drawing to compare", "none", "", 0.0, "failed" not in found["ours"])
                )
                continue
            factor = 1.3 if name.startswith("moe") else 1.0
            for what in ("crossings", "through", "length"):
                best = min(rival[what] for rival in rivals)
                times = f" ({factor} × {best:,})" if factor != 1 else ""
                label = f"{name}: {what}, the better of dagre and ELK{times}"
                block.checks.append(Check.at_most(label, found["ours"][what], factor * best, ""))
        block.table(["graph", "nodes", *layouts.ENGINES.values()], rows)
        timed = []
        for name, most in self.plan.timed.items():
            answer = layouts.lay_out("ours", self.file(name, ".plain.json"), self.limit, measured=False)
            log(f"{name:14} layout {answer.get('seconds')} s (first {answer.get('first')})")
            if "failed" in answer:
                block.checks.append(Check(f"{name}: layout", answer["failed"], f"≤ {most} s", float("inf"), False))
                continue
            timed.append([name, f"{self.counts[name]:,}", f"{answer['seconds']:.3f}", f"{answer['first']:.3f}"])
            block.checks.append(
                Check.at_most(
                    f"{name}, flat: layout", answer["seconds"], most, "s", f" (first run {answer['first']:.2f})"
                )
            )
        block.lines.append("\nTime alone, flat, CPU seconds:")
        block.table(["graph", "nodes", "best of 5", "first run"], timed)
        return block

    def size(self) -> Block:
        block = Block("size", "Size of the one-file page", "`opscope export … -o page.html`")
        page = self.folder / "resnet_train.html"
        opscope.open(HERE.parent / "tests" / "data" / "jittor" / "resnet_train.pkl").save(page)
        block.checks.append(Check.at_most("resnet_train.pkl", page.stat().st_size / 1e6, 1.5, "MB"))
        return block


# -- words ----------------------------------------------------------------------------------------


def _less(a: Cost | None, b: Cost | None) -> Cost | None:
    return min((cost for cost in (a, b) if cost), key=lambda cost: cost.seconds, default=None)


def _seconds(cost: Cost | None) -> str:
    return f"{cost.seconds:.2f} ({cost.wall:.2f})" if cost else "–"


def _frames(found: Frames | None) -> str:
    if not found:
        return "no frames"
    return f"{found.median:.1f} / {found.p95:.1f} ({found.renderer:.0f}; {found.everything:.0f})"


def _still(found: Standstill) -> str:
    return f"{found.wall:.0f} ({found.cpu:.0f})"


def _drawing(found: dict) -> str:
    if "failed" in found:
        return found["failed"]
    return f"{found['crossings']:,} / {found['through']} / {found['length'] / 1000:,.0f}k, {found['seconds']:.2f} s"


def log(text: str) -> None:
    print(f"  {time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


def installed(tool: Tool) -> bool:
    try:
        tool.version()
    except importlib.metadata.PackageNotFoundError:
        log(f"{tool.name} is not installed in {sys.prefix}: left out")
        return False
    return True


def versions(tools: list[Tool]) -> Block:
    found = {tool.name: tool.version() for tool in tools}
    if shutil.which("chromium"):
        answer = subprocess.run(["chromium", "--version"], capture_output=True, text=True).stdout
        found["Chromium"] = answer.split()[1]
    found |= layouts.versions()
    found["Python"] = sys.version.split()[0]
    listed = ", ".join(f"{name} {version}" for name, version in found.items())
    about = f"{__doc__.strip().splitlines()[0]} Calibration loop {calibrate():.3f} s. {listed}."
    block = Block("versions", "What was run", about)
    block.lines = ["", " ".join(__doc__.strip().rpartition("\n\n")[2].split())]
    return block


def can_run(part: str) -> bool:
    """Pages need a browser, layouts need Node."""
    needed = {"layout": "node", "size": "python3"}.get(part, "chromium")
    return is_there(needed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), default=PARTS, help="parts, with commas")
    names = [tool.name.lower() for tool in TOOLS]
    parser.add_argument(
        "--tools", type=lambda text: text.lower().split(","), default=names, help="viewers, with commas"
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120, help="CPU seconds for one picture or layout")
    parser.add_argument("--quick", action="store_true", help="small graphs; the limits then say little")
    parser.add_argument("--no-write", action="store_true", help="leave RESULTS.md as it is")
    args = parser.parse_args()
    unknown = [part for part in args.only if part not in PARTS] + [tool for tool in args.tools if tool not in names]
    if unknown:
        parser.error(f"no part or viewer: {', '.join(unknown)} (there are {', '.join(PARTS + names)})")
    wanted = [part for part in PARTS if part in args.only and can_run(part)]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        blocks = [versions(bench.tools)]
        for part in PARTS:
            if part in wanted:
                log(f"-- {part}")
                blocks.append(bench.run(part))
                if not (args.quick or args.no_write):  # at once: a later part may be stopped
                    update(HERE / "RESULTS.md", blocks, ["versions", *PARTS])
    print("\n\n".join(block.text() for block in blocks))
    checks = [check for block in blocks for check in block.checks]
    missed = [check for check in checks if not check.good]
    if args.quick:
        print("\nQuick: the limits are for larger graphs than these, and what is missed here says little.")
    print(f"\n{len(checks) - len(missed)} of {len(checks)} as they must be")
    for check in missed:
        print(f"  not: {check.what}: {check.figure} (must be {check.limit})")


if __name__ == "__main__":
    main()
