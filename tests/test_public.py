"""What users may rely on: the public names with their parameters, and every name that README, docs and examples use."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import golden
import opscope

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("README*.md"), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]

# Documented names below the face of the package: moving or renaming one breaks a user's script, too.
DEEP = {
    "opscope.analysis.annotate.annotate",
    "opscope.compat.hidet",
    "opscope.compat.hidet.dump",
    "opscope.compat.megengine",
    "opscope.compat.megengine.network_visualize",
    "opscope.compat.paddleviz",
    "opscope.compat.paddleviz.off",
    "opscope.compat.paddleviz.run",
    "opscope.ops.Cost",
    "opscope.readers.megengine.weights.statistics",
    "opscope.tracers.torch.graphs.CannotCapture",
    "opscope.worlds.as_one",
}


def test_the_public_names_and_their_parameters(overwrite: bool) -> None:
    assert opscope.__all__ == sorted(opscope.__all__)
    text = "\n".join(line for name in opscope.__all__ for line in _described(name, getattr(opscope, name)))
    golden.unchanged(f"{text}\n", "public_api.txt", overwrite)


def test_names_outside_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'opscope' has no attribute 'nope'"):
        opscope.nope  # noqa: B018


def _described(name: str, thing: Any) -> Iterator[str]:
    """A function with its parameters; a class with its bases and public members."""
    if not inspect.isclass(thing):
        yield f"{name}{inspect.signature(thing)}"
        return
    yield f"class {name}({', '.join(base.__name__ for base in thing.__bases__)})"
    fields = {field.name for field in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else set[str]()
    for member in sorted({*dir(thing), *fields} - set(dir(Exception))):
        if not member.startswith("_"):
            found = inspect.getattr_static(thing, member, None)
            function = found.__func__ if isinstance(found, classmethod | staticmethod) else found
            yield f"  {member}{inspect.signature(function) if inspect.isfunction(function) else ''}"


# -- what the documentation uses --------------------------------------------------------------------


def _used(page: Path) -> dict[str, list[str]]:
    """Dotted name -> the calls of it that can be parsed, on one page."""
    text = page.read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for match in re.finditer(r"(?<![\w./-])opscope(?:\.[A-Za-z_]\w*)+", text):
        calls = found.setdefault(match[0], [])
        if call := _call(text, match):
            calls.append(call)
    return found


def _call(text: str, name: re.Match[str]) -> str:
    """The text of the call that begins at a name, up to the parenthesis that ends it."""
    depth = 0
    for at in range(name.end(), min(name.end() + 500, len(text))):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return text[name.start() : at + 1] if at > name.end() else ""
    return ""


FILES = {".html", ".json", ".md", ".opscope", ".pkl", ".readers", ".exporters"}  # file names and entry point groups


def _documented() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for name, calls in _used(page).items():
            if Path(name).suffix not in FILES:
                found.setdefault(name, []).extend(calls)
    return found


DOCUMENTED = _documented()
DROP_INS = sorted(name for name in DOCUMENTED if name.startswith("opscope.compat."))


@pytest.mark.parametrize("name", sorted(set(DOCUMENTED) - set(DROP_INS)))
def test_a_documented_name_is_public_and_takes_the_arguments(name: str) -> None:
    thing = pkgutil.resolve_name(name)
    first = name.split(".")[1]
    assert first in opscope.__all__ or name in DEEP, f"{name} is documented: add it to opscope.__all__ or to DEEP"
    for call in DOCUMENTED[name]:
        problem = wrong_argument(thing, call)
        assert not problem, f"{call}: {problem}"


def test_the_documented_drop_ins_are_there() -> None:
    """In a Python of their own: importing one may begin to watch its framework."""
    assert set(DROP_INS) <= DEEP
    script = "import pkgutil, sys; [pkgutil.resolve_name(name) for name in sys.argv[1:]]"
    subprocess.run([sys.executable, "-c", script, *DROP_INS], check=True)


def test_every_deep_name_is_documented() -> None:
    assert set(DOCUMENTED) >= DEEP


def wrong_argument(function: Callable[..., Any], call: str) -> str:
    """What is wrong with the arguments of a call, as Python would say it; "" where it fits or is only a sketch."""
    try:
        parsed = ast.parse(call, mode="eval").body
    except SyntaxError:  # such as record(…)
        return ""
    assert isinstance(parsed, ast.Call)
    if not parsed.args and not parsed.keywords:  # `trace()` in a sentence is a name
        return ""
    positional = [None for arg in parsed.args if not isinstance(arg, ast.Starred)]
    named = {keyword.arg: None for keyword in parsed.keywords if keyword.arg}
    try:
        inspect.signature(function).bind_partial(*positional, **named)
    except TypeError as error:
        return str(error)
    return ""


def test_the_check_of_arguments_finds() -> None:
    assert not wrong_argument(opscope.open, "opscope.open('x', sources=['y'])")
    assert "unexpected keyword argument 'source'" in wrong_argument(opscope.open, "opscope.open('x', source='y')")
    assert "too many positional" in wrong_argument(opscope.open, "opscope.open('x', 'y', 'z', 'a')")
