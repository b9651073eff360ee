"""Where a node of an exported program stands: its modules and its source lines, from the texts that torch keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from opscope.ir import Frame, Pools

from .names import short_class

_FRAME = re.compile(r'File "([^"\n]*)", line (\d{1,9})(?:, in ([^\n]*))?')
_CALL = re.compile(r"@(\d{1,6})$")
_ROOT = re.compile(r"^L(?:\['[^']*'\]|__[A-Za-z0-9]+__*)(?=$|[.\[])")  # Dynamo's spelling of `self`
_INDEX = re.compile(r"\[['\"]?([^\[\]'\"]*)['\"]?\]")
_DEEPEST = 200


class _Module(NamedTuple):
    path: tuple[str, ...]
    cls: str
    call: int


class Places:
    """Scopes and stacks by the text that names them: thousands of nodes share a few hundred."""

    def __init__(self, pools: Pools, texts: Iterable[object]) -> None:
        self.pools = pools
        self._scopes: dict[str, int] = {}
        self._stacks: dict[str, int] = {}
        self._modules: dict[str, list[_Module]] = {}
        self._classes: dict[tuple[str, ...], str] = {}  # a container that is not called where its children are
        for text in texts:
            if isinstance(text, str) and text not in self._modules:
                self._modules[text] = modules = list(_modules(text))
                for module in modules:
                    self._classes.setdefault(module.path, module.cls)

    def scope(self, text: object) -> int:
        """Of `nn_module_stack`: `L__self__,,Net;L__self__fc,fc,torch.nn.modules.linear.Linear`."""
        if not isinstance(text, str):
            return 0
        found = self._scopes.get(text)
        if found is None:
            found = self._scopes[text] = self._scope(self._modules.get(text, []))
        return found

    def _scope(self, modules: list[_Module]) -> int:
        scope, at = 0, ()
        for module in modules:
            if not module.path:  # the model itself: everything is in it
                continue
            path = module.path
            inside = path[: len(at)] == at and len(path) > len(at)
            if not inside and path != at:  # called from a place that is not its parent: shown under its full path
                at = ()
            elif path == at:  # the same path again: a wrapper and what it wraps
                scope = self.pools.scope(scope, path[-1], module.cls, module.call)
                continue
            for end in range(len(at) + 1, len(path)):
                scope = self.pools.scope(scope, path[end - 1], self._classes.get(path[:end], ""))
            scope, at = self.pools.scope(scope, path[-1], module.cls, module.call), path
        return scope

    def stack(self, text: object) -> int:
        """Of `stack_trace`: lines as a traceback has them, outermost first."""
        if not isinstance(text, str):
            return 0
        found = self._stacks.get(text)
        if found is None:
            frames = [Frame(file, int(line), function) for file, line, function in _FRAME.findall(text)]
            found = self._stacks[text] = self.pools.stack(frames)
        return found


def _modules(text: str) -> Iterator[_Module]:
    for entry in text.split(";")[:_DEEPEST]:
        module = _module(entry)
        if module is not None:
            yield module


@lru_cache(maxsize=20_000)
def _module(entry: str) -> _Module | None:
    parts = _fields(entry)
    if len(parts) < 2 or parts[1].startswith("_empty_nn_module_stack"):  # torch's word for "not known"
        return None
    call = _CALL.search(parts[0]) or _CALL.search(parts[1])
    cls = short_class(parts[2]) if len(parts) > 2 else ""
    return _Module(_path(_CALL.sub("", parts[1])), cls, int(call[1]) if call else 0)


def _fields(entry: str) -> list[str]:
    """Split at commas that are not in brackets: a class may be `Wrapped[int, str]`."""
    if "[" not in entry and "(" not in entry:
        return entry.split(",")
    parts, depth = [""], 0
    for char in entry:
        depth += (char in "[(") - (char in "])")
        if char == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _path(text: str) -> tuple[str, ...]:
    """`layer1.0.conv1`; Dynamo writes `L['self'].layer1[0]` and `L__self__.layer1`."""
    if text.startswith("L") or "[" in text:
        text = _INDEX.sub(r".\1", _ROOT.sub("", text)).replace("._modules.", ".")
    return tuple(part for part in text.split(".") if part)[:_DEEPEST]
