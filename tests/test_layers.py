"""The layers of src/opscope and what each may import. A new layer gets a line in the table.

Every import counts, also one inside a function or under TYPE_CHECKING: a layer that needs to know
a higher one even for its types is in the wrong place.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "opscope"

# Folders, and the top-level modules that everyone may need. Every other top-level module, and
# `opscope` itself, is "api". A layer may always import itself.
ALLOWED = {
    "errors": "",
    "files": "errors",
    "ir": "errors",
    "wire": "errors files ir",
    "sources": "errors ir",
    "ops": "errors ir",
    "readers": "errors files ir ops wire",  # wire: the .opscope file is one of the formats
    "tracers": "errors ir ops sources readers",  # a live capture is often a reader run on a fresh dump
    "analysis": "errors ir ops",
    "export": "errors files ir ops wire analysis",
    "server": "errors files ir ops wire sources analysis export",
    "api": "errors files ir ops wire sources readers tracers analysis export server",
    "compat": "errors files ir ops wire readers tracers analysis export server api",
    "cli": "errors files ir ops wire readers tracers analysis export server api",
}

# Layers that may import only these packages, and the standard library.
ONLY = {"ir": "numpy", "errors": "", "files": ""}

# Imported inside functions only, so that `import opscope` stays fast and works without them.
# Folders of readers, tracers and compat. What is about one framework may not import what is about another, and common
# code imports neither; a tracer may use the reader of its framework.
FRAMEWORKS = "hidet jax jittor megengine paddle paddleviz torch"
SAME = {"paddleviz": "paddle"}  # a tool, and whose it is

LAZY = (
    "duckdb equinox flax hidet jax jittor megengine onnx onnx_ir paddle pandas polars py_mini_racer reportlab resvg_py "
    "tensorboard torch"
)


@dataclass(frozen=True)
class Import:
    name: str  # dotted, with the imported name at the end: `from opscope.ir import Graph` is opscope.ir.Graph
    line: int
    runs_at_import: bool  # not inside a function and not under TYPE_CHECKING


def imports(tree: ast.AST, package: str, runs_at_import: bool = True) -> Iterator[Import]:
    """Every import of a module that lies in `package` (dotted)."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, runs_at_import)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
            for alias in node.names:
                yield Import(f"{base}.{alias.name}", node.lineno, runs_at_import)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(node, package, False)
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from imports(ast.Module(node.body, []), package, False)
            yield from imports(ast.Module(node.orelse, []), package, runs_at_import)
        else:
            yield from imports(node, package, runs_at_import)


def layer_of(*path: str, is_folder: bool) -> str:
    """The layer of a place below `opscope`, such as ("ir", "graph")."""
    if not path:
        return "api"
    if path[0] == "__main__":
        return "cli"
    return path[0] if path[0] in ALLOWED or is_folder else "api"


def framework_of(path: Sequence[str]) -> str:
    """The framework that a place below `opscope` is about, such as readers/torch; "" for none."""
    named = [part for part in path[1:] if part in FRAMEWORKS.split()]
    return SAME.get(named[0], named[0]) if named and path[0] in ("readers", "tracers", "compat") else ""


def problems(text: str, where: str) -> Iterator[str]:
    """What a file imports and may not. `where` is its path below src/opscope, such as ir/graph.py."""
    *folders, _ = parts = Path(where).with_suffix("").parts
    layer = layer_of(*parts, is_folder=bool(folders))
    if layer not in ALLOWED:
        yield f"{where}:1: the layer {layer!r} has no line in the table of tests/test_layers.py"
        return
    for found in imports(ast.parse(text), ".".join(["opscope", *folders])):
        root, *rest = found.name.split(".")
        at = f"{where}:{found.line}"
        if root == "opscope":
            target = layer_of(*rest, is_folder=bool(rest) and (SOURCE / rest[0]).is_dir())
            if target != layer and target not in ALLOWED[layer].split():
                allowed = ALLOWED[layer] or "nothing"
                yield f"{at}: {layer} may not import {target} ({found.name}); it may import: {allowed}"
            elif (other := framework_of(rest)) and (own := framework_of(parts)) != other:
                who = own or f"what is not about {other}"
                if not (layer == target and Path(where).stem == "registry"):
                    yield f"{at}: {who} may not import what is about {other} ({found.name})"
        elif layer in ONLY and root not in ONLY[layer].split() and root not in sys.stdlib_module_names:
            yield f"{at}: {layer} may not import {root}; it may import the standard library {ONLY[layer]}".rstrip()
        elif found.runs_at_import and root in LAZY.split():
            yield f"{at}: {root} may only be imported inside a function"


def test_every_import_is_allowed():
    files = sorted(SOURCE.rglob("*.py"))
    assert files, f"no Python files in {SOURCE}"
    found = [
        problem for file in files for problem in problems(file.read_text("utf-8"), file.relative_to(SOURCE).as_posix())
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("where", "text", "problem"),
    [
        ("ir/graph.py", "import opscope.wire", "ir/graph.py:1: ir may not import wire (opscope.wire)"),
        ("ir/graph.py", "\nfrom opscope import wire", "ir/graph.py:2: ir may not import wire"),
        ("ir/graph.py", "from opscope.cli.info import main", "ir may not import cli"),
        ("ir/graph.py", "from ..ops import names", "ir may not import ops"),
        ("ir/__init__.py", "from ..ops import names", "ir may not import ops"),
        ("ir/deep/a.py", "from ...ops import names", "ir may not import ops"),
        ("ir/graph.py", "from .. import ops", "ir may not import ops"),
        ("ir/graph.py", "import opscope", "ir may not import api"),
        ("ir/graph.py", "from opscope import open", "ir may not import api"),
        ("ir/graph.py", "def f():\n    import rich", "ir/graph.py:2: ir may not import rich"),
        ("ir/graph.py", "if TYPE_CHECKING:\n    from opscope import export", "ir/graph.py:2: ir may not import export"),
        (
            "readers/a.py",
            "try:\n    from opscope.export import frames\nfinally:\n    pass",
            "readers may not import export",
        ),
        (
            "readers/a.py",
            "class A:\n    def f(self):\n        import opscope.tracers",
            "readers may not import tracers",
        ),
        (
            "tracers/torch/a.py",
            "from opscope.readers.jittor import dump",
            "tracers/torch/a.py:1: torch may not import what is about jittor",
        ),
        (
            "tracers/frames.py",
            "def f():\n    from .torch import words",
            "tracers/frames.py:2: what is not about torch may not import what is about torch",
        ),
        ("cli/a.py", "from opscope.readers.torch.names import op_name", "what is not about torch may not import"),
        ("server/a.py", "import opscope.cli", "server may not import cli"),
        ("tracers/a.py", "import torch.fx", "tracers/a.py:1: torch may only be imported inside a function"),
        ("tracers/a.py", "if X:\n    from torch import nn", "tracers/a.py:2: torch may only"),
        ("cli/a.py", "class A:\n    import pandas as pd", "cli/a.py:2: pandas may only"),
        ("errors.py", "from opscope.ir import Graph", "errors may not import ir"),
        ("open.py", "from opscope.cli import main", "api may not import cli"),
        ("misc/a.py", "", "misc/a.py:1: the layer 'misc' has no line in the table"),
    ],
)
def test_the_check_finds(where: str, text: str, problem: str):
    (found,) = problems(text, where)
    assert problem in found


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("ir/graph.py", "import json, numpy as np\nfrom . import pools\nfrom .pools import Pools"),
        ("ir/graph.py", "from opscope.errors import BadInput\nfrom opscope import errors"),
        ("tracers/a.py", "def f():\n    import torch"),
        ("tracers/a.py", "if TYPE_CHECKING:\n    import torch"),
        ("tracers/a.py", "from opscope.readers import registry"),
        ("compat/paddleviz/a.py", "from opscope.readers.paddle.names import op_name"),
        ("tracers/torch/a.py", "from opscope.readers.torch import names\nfrom ..frames import OWN"),
        ("cli/a.py", "import click, opscope\nfrom opscope import open, export"),
        ("__main__.py", "from opscope.cli import main"),
        ("__init__.py", "from . import ir, wire"),
    ],
)
def test_the_check_allows(where: str, text: str):
    assert list(problems(text, where)) == []
