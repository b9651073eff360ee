"""The module that an operator is in, from the `nn_module_stack` that fx, export and Dynamo keep."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from opscope.ir import Pools
from opscope.readers.torch.names import short_class

_VARIABLE = re.compile(r"^[LG]\[['\"](\w+)['\"]\]\.?(.*)$", re.DOTALL)
_PART = re.compile(r"\._modules\[['\"](.+?)['\"]\]")


class Places:
    """Scopes of one captured model. `root` is the model itself, where there is one: it knows the classes of
    containers, which are never called, and the full names of modules that Dynamo keys by identity."""

    def __init__(self, pools: Pools, root: Any = None) -> None:
        self._pools = pools
        self._classes: dict[str, str] = {}
        self._paths: dict[int, str] = {}
        self._self = ""
        if root is not None and hasattr(root, "named_modules"):
            self._self = _first_parameter(root)
            for path, module in root.named_modules(remove_duplicate=False):
                self._classes[path] = type(module).__name__
                self._paths.setdefault(id(module), path)
        self._scopes: dict[tuple[Any, ...], int] = {(): 0}
        self._calls: dict[tuple[int, str], list[str]] = {}  # (parent, name) -> its calls so far, by key

    def scope(self, stack: Mapping[str, tuple[str, Any]] | None) -> int:
        """Keys name one call (`a`, then `a@1`), values are the path and the class."""
        if not stack:
            return 0
        entries = tuple((key, path, cls) for key, (path, cls, *_) in stack.items())
        if entries not in self._scopes:
            self._scopes[entries] = self._make(entries)
        return self._scopes[entries]

    def _make(self, entries: tuple[tuple[str, str, Any], ...]) -> int:
        scope, before = 0, ""
        for key, raw, cls in entries:
            path = self.path(key, raw)
            if path == before or not path:
                continue
            inside = path[len(before) + 1 :] if before and path.startswith(f"{before}.") else path
            if inside == path:
                scope, before = 0, ""
            *containers, name = inside.split(".")
            for container in containers:  # a ModuleList: in the path, but never called
                before = f"{before}.{container}".strip(".")
                scope = self._pools.scope(scope, container, self._classes.get(before, ""))
            calls = self._calls.setdefault((scope, name), [])
            if key not in calls:
                calls.append(key)
            scope = self._pools.scope(scope, name, class_name(cls), calls.index(key))
            before = path
        return scope

    def of_path(self, path: str) -> int:
        """The scope of a module's first call, by its full name."""
        scope, before = 0, ""
        for name in path.split(".") if path else ():
            before = f"{before}.{name}".strip(".")
            scope = self._pools.scope(scope, name, self._classes.get(before, ""))
        return scope

    def path(self, key: str, raw: str) -> str:
        """The full name below the captured model: `L['self'].layer1.0` is `layer1.0`."""
        number = key.partition("@")[0]
        if number.isdigit() and int(number) in self._paths:
            return self._paths[int(number)]
        found = _VARIABLE.match(raw)
        if not found:
            return raw
        variable, rest = found.groups()
        rest = _PART.sub(r".\1", f".{rest}" if rest and rest[0] not in "._" else rest).strip(".")
        if variable == self._self:
            return rest
        return f"{variable}.{rest}".strip(".")


def class_name(cls: Any) -> str:
    return short_class(cls) if isinstance(cls, str) else str(cls.__name__)


def _first_parameter(module: Any) -> str:
    """What the model calls itself: nearly always `self`."""
    code = getattr(getattr(cast("type[Any]", type(module)), "forward", None), "__code__", None)
    return code.co_varnames[0] if code is not None and code.co_argcount else "self"
