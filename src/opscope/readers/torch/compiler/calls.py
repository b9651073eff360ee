"""What Dynamo's guards say of modules: their classes, on which lines they are called, and whose code a line is.

A guard checks one thing that the traced code used, and names the line that used it:

    TYPE_MATCH: ___check_type_id(L['self']._modules['act'], 7), type=<class 'A'>  # self.act(x)  # m.py:9 in forward
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from opscope.readers.torch.names import short_class

from .printed import Place

Path = tuple[str, ...]
_GUARD = re.compile(r"\+- (?:\w+: (?=GuardManager))?(\w+): (.*)$")
_MANAGER = re.compile(r"^source=(.{1,2000}?), (?:accessed_by=.*?)?type=<class '([\w.<>]+)'>")
_USED = re.compile(r"(?:\(| )([LG]\['\w+'\][^\s,)]*).*  # (.*?)  # (\S+):(\d{1,9}) in (\w+)")
_ROOT = re.compile(r"^[LG]\['\w+'\]")
_STEP = re.compile(r"\._modules\['([^']*)'\]|\.(\w+)|\['([^']*)'\]|\[(\d+)\]")
_CONTAINERS = ("ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
_INTO = re.compile(r"\._modules\['([^']*)'\]")
_ATTRIBUTE = re.compile(r"(?:\._parameters|\._buffers)?(?:\['(\w+)'\]|\.(\w+))")
_MOST_OWNERS = 5000


@dataclass
class Calls:
    classes: dict[str, str] = field(default_factory=dict[str, str])  # Dynamo's word -> full name of the class
    used: list[tuple[str, str, str, int, str]] = field(default_factory=list["tuple[str, str, str, int, str]"])
    # filled by `name`; `lines` are those of a function, by file and name: the class whose code they are
    modules: dict[Path, str] = field(default_factory=dict[Path, str])  # path -> full name of the class
    owners: dict[tuple[str, int], dict[Path, None]] = field(default_factory=dict["tuple[str, int]", "dict[Path, None]"])
    inside: dict[Path, list[Path]] = field(default_factory=dict[Path, "list[Path]"])  # torch's own, by what is around
    lines: dict[tuple[str, str], dict[int, str]] = field(default_factory=dict["tuple[str, str]", "dict[int, str]"])
    files: dict[str, set[str]] = field(default_factory=dict[str, "set[str]"])  # file -> classes that are written in it
    by_class: dict[str, dict[Path, None]] = field(default_factory=dict[str, "dict[Path, None]"])

    def name(self, roots: Mapping[str, Path]) -> None:
        """Sources as paths, once the names of the models are known."""
        models = {s[: s.find("]") + 1] for s in self.classes if "._modules" in s or "._parameters" in s}
        roots = {root: path for root, path in roots.items() if root in models}
        for source, name in self.classes.items():
            path = _path(source, roots)
            if path is not None:
                self.modules[path] = name
                self.by_class.setdefault(name, {})[path] = None
                self.files.setdefault(_tail(f"{name.rpartition('.')[0].replace('.', '/')}.py"), set()).add(name)
        for source, code, file, line, function in self.used:
            self.use(source, code, roots, (_tail(file), line, function))
        for path, name in self.modules.items():
            if name.startswith("torch.nn."):
                self.inside.setdefault(self.around(path[:-1]), []).append(path)

    def use(self, source: str, code: str, roots: Mapping[str, Path], where: tuple[str, int, str]) -> None:
        """A line that uses `self.act` is code of the module that has the attribute."""
        root = _ROOT.match(source)
        base = roots.get(root[0]) if root else None
        if root is None or base is None:
            return
        path, rest = base, source[root.end() :]
        at = 0
        module = base if base in self.modules else None
        while step := _INTO.match(rest, at):
            path, at = (*path, step[1]), step.end()
            if path in self.modules:
                module = path
        if module is None:
            return
        owner = module
        if at == len(rest):  # the module itself is used: the code is of the one around it
            name, owner = module[-1], self.around(module[:-1])
        else:
            attribute = _ATTRIBUTE.match(rest, at)
            name = (attribute[1] or attribute[2]) if attribute else ""
        if owner in self.modules and (name.isdigit() or re.search(rf"\.{re.escape(name)}\b", code)) and name:
            file, line, function = where
            self.owners.setdefault((file, line), {})[owner] = None
            self.lines.setdefault((file, function), {})[line] = self.modules[owner]

    def around(self, path: Path) -> Path:
        """The module whose code runs: a list of modules has none."""
        while len(path) > 1 and short_class(self.modules.get(path, "ModuleList")) in _CONTAINERS:
            path = path[:-1]
        return path

    def candidates(self, place: Place) -> list[Path]:
        """The modules whose code a line may be: all copies of one class."""
        file = _tail(place.file)
        exact = self.owners.get((file, place.line))
        if exact:
            return list(exact)[:_MOST_OWNERS]
        known = self.lines.get((file, place.function), {})
        above = max((line for line in known if line < place.line), default=None)
        below = min((line for line in known if line > place.line), default=None)
        written = self.files.get(file, set())
        if above is not None and below is not None and known[above] == known[below]:
            name = known[above]
        else:
            free = written - set(known.values())  # classes of which no line is known
            if not known and place.function != "forward":
                return []
            if not known and len(written) == 1:
                (name,) = written
            elif len(free) == 1 and place.function == "forward" and not known:
                (name,) = free
            else:
                return []
        return list(self.by_class.get(name, {}))[:_MOST_OWNERS]

    def copies(self, path: Path) -> Iterable[Path]:
        """The modules of the same class."""
        return self.by_class.get(self.modules.get(path, ""), (path,))

    def is_whole(self, path: Path) -> bool:
        """One of torch's own modules that is made of others, such as an encoder layer: no list."""
        name = self.modules.get(path, "")
        return name.startswith("torch.nn.") and "container" not in name and bool(self.inside.get(path))

    def on_lines(self, place: Place) -> Iterable[tuple[int, frozenset[Path]]]:
        """The lines of a function of which a guard says whose code they are."""
        for line, name in self.lines.get((_tail(place.file), place.function), {}).items():
            yield line, frozenset(self.by_class.get(name, ()))

    def leaves(self, place: Place, owner: Path) -> list[Path]:
        """The modules of torch itself that a line of a module calls, also inside of a `Sequential`."""
        found: list[Path] = []
        for path in self.inside.get(owner, ()):
            name = path[-1] if not path[-1].isdigit() else path[len(owner)]
            if re.search(rf"\b{re.escape(name)}\b", place.code):
                found += self.in_order(path)
        return found

    def in_order(self, path: Path, depth: int = 0) -> list[Path]:
        """A module, or those that a `Sequential` runs, also inside of another."""
        if not _is_sequence(self.modules[path]) or depth > 20:
            return [path]
        return [leaf for inner in self.inside.get(path, ()) for leaf in self.in_order(inner, depth + 1)]


def _is_sequence(name: str) -> bool:
    return name.startswith("torch.nn.modules.container.")


def calls(text: str) -> Calls:
    found = Calls()
    for line in text.split("\n"):
        guard = _GUARD.search(line)
        if guard is None:
            continue
        if guard[1] == "GuardManager":
            manager = _MANAGER.match(guard[2])
            if manager and _ROOT.match(manager[1]):
                found.classes[manager[1]] = manager[2]
        elif used := _USED.search(guard[2]):
            found.used.append((used[1], used[2], used[3], int(used[4]), used[5]))
    return found


def _path(source: str, roots: Mapping[str, Path]) -> Path | None:
    """`L['self']._modules['a']` as a path; None for what is no module."""
    root = _ROOT.match(source)
    if root is None or root[0] not in roots:
        return None
    path, rest = roots[root[0]], source[root.end() :]
    while rest:
        step = _STEP.match(rest)
        if step is None or step[1] is None:
            return None
        path, rest = (*path, step[1]), rest[step.end() :]
    return path


def _tail(file: str) -> str:
    """The end of a path: guards shorten it."""
    return "/".join(file.replace("\\", "/").split("/")[-2:])
