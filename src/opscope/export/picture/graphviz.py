"""Pictures by Graphviz: the .dot file of the same capture, laid out and drawn by `dot`."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess

from opscope.errors import OpscopeError
from opscope.export import dot
from opscope.export.registry import Look, Options
from opscope.files import scratch_folder
from opscope.ir import Capture

from .size import Size

_PER_INCH = 96


def render(capture: Capture, options: Options, look: Look, size: Size) -> bytes:
    if look.phases or look.open or look.theme == "dark":
        given = "phase" if look.phases else "open" if look.open else "theme"
        raise OpscopeError(f"--engine graphviz knows no {given}: leave it out, or leave out --engine")
    program = shutil.which("dot")
    if program is None:
        raise OpscopeError(
            "graphviz: `dot` is not installed (apt install graphviz, brew install graphviz); "
            "without --engine, opscope draws the picture itself"
        )
    with scratch_folder() as folder:
        source, out = folder / "graph.dot", folder / f"graph{options.ending}"
        dot.export(capture, source, dataclasses.replace(options, depth=None if look.whole else options.depth))
        if look.direction == "right":
            text = source.read_text(encoding="utf-8")
            source.write_text(text.replace("rankdir=TB", "rankdir=LR", 1), encoding="utf-8")
        command = [program, f"-T{options.ending[1:]}", "-o", str(out), str(source)]
        if size.width is not None:
            height = size.height or size.width * 100  # the width decides
            command.insert(1, f"-Gsize={size.width / _PER_INCH:.4f},{height / _PER_INCH:.4f}!")
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode or not out.is_file():
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise OpscopeError(f"graphviz: dot failed: {said[0]}")
        return out.read_bytes()
