"""`import opscope` stays light: what is slow or optional is imported by the call that needs it.

How long it takes is measured by benchmarks/bench_import.py; what it loads is the cause, and is checked here.
"""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {
    "what only some calls need": "arro3.io click pygments rich",
    "extras and frameworks": "duckdb hidet jittor megengine onnx onnx_ir paddle pandas polars pyarrow torch",
    "slow standard library": "asyncio http.server importlib.metadata pickletools sqlite3 webbrowser xml.etree",
    "our own": "opscope.cli opscope.compat opscope.export opscope.readers.jittor opscope.readers.pickles "
    "opscope.server opscope.tracers",
}

SCRIPT = """
import json, sys, numpy
before = set(sys.modules)
{statement}
print(json.dumps([name for name in sys.modules if name not in before]))
"""


def heavy_loaded_by(statement: str) -> list[str]:
    """Which of HEAVY a fresh Python has loaded after this statement and had not after `import numpy`."""
    script = SCRIPT.format(statement=statement)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = [f"{module}." for module in json.loads(run.stdout)]
    heavy = " ".join(HEAVY.values()).split()
    return [name for name in heavy if any(module.startswith(f"{name}.") for module in loaded)]


def test_import_opscope_loads_nothing_heavy():
    assert heavy_loaded_by("import opscope") == []


def test_the_check_finds():
    assert heavy_loaded_by("import rich.table, xml.etree.ElementTree") == ["rich", "xml.etree"]
