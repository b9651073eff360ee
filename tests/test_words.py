"""What captures warn of is known to the page in Chinese: viewer/src/state/warningwords.ts has their sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "opscope"
WORDS = ROOT / "viewer" / "src" / "state" / "warningwords.ts"
HOLE = "\x00"  # what differs


def text_of(node: ast.expr) -> str | None:
    """A sentence as it is written, with holes."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or HOLE for part in node.values)
    if isinstance(node, ast.Call) and node.args:
        return text_of(node.args[0])  # clean(f"…")
    return None


def warnings() -> Iterator[tuple[str, str]]:
    for folder in ("readers", "tracers"):
        for path in sorted((SOURCE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and re.search(r"(^|\.)_?warnings\.append$", ast.unparse(node.func)):
                    said = text_of(node.args[0])
                    if said and " " in said:
                        yield f"{path.relative_to(SOURCE).as_posix()}:{node.lineno}", said


@pytest.fixture(scope="module")
def known() -> list[re.Pattern[str]]:
    pairs = re.findall(r"\[\s*(['\"])(.*?)(?<!\\)\1,\s*['\"]", WORDS.read_text(encoding="utf-8"), re.S)
    assert len(pairs) > 50
    return [re.compile(".*?".join(map(re.escape, said.split("{}"))), re.S) for _, said in pairs]


def test_warnings_have_their_chinese(known: list[re.Pattern[str]]) -> None:
    every = list(warnings())
    assert len(every) > 40
    missing = [(where, said) for where, said in every if not any(one.fullmatch(said) for one in known)]
    # A new one may be in English for a while; its line in warningwords.ts follows.
    assert len(missing) <= len(every) // 20, missing
