"""Runs a user's script under capture: `opscope trace train.py --epochs 1`.

The script runs as `python train.py` would run it. Recording starts at the moment the script has
imported a framework, whichever it is, and ends when the script does.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any

from opscope.errors import OpscopeError
from opscope.ir import Capture

from . import registry


class ScriptFailed(OpscopeError):
    """The script raised an exception. `capture` holds what was recorded until then, or None; the exception
    itself is the `__cause__`, and `report` its traceback as Python would have printed it."""

    def __init__(self, message: str, report: str, capture: Capture | None) -> None:
        super().__init__(message)
        self.report = report
        self.capture = capture


def run_script(path: str, argv: Sequence[str] = (), framework: str | None = None, how: str = "auto") -> Capture:
    """Run a script, or `package.module:callable`, and return everything that it computed."""
    script = Path(path)
    module, colon, name = path.partition(":")
    if script.is_file():
        place = script.absolute()
        return _run(lambda: _execute(place), path, argv, place.parent, framework, how)
    if colon and name.isidentifier() and all(part.isidentifier() for part in module.split(".")):
        return _run(lambda: _call(module, name), path, argv, Path(), framework, how)
    raise OpscopeError(f"{path}: no such script (a script is a file, or package.module:callable)")


def _execute(place: Path) -> ModuleType:
    """Run a file as __main__. (runpy would also set sys.argv[0], to the absolute path, which Python does not.)"""
    module = ModuleType("__main__")
    module.__file__ = str(place)
    module.__dict__["__builtins__"] = builtins
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module  # what the script pickles is found here
    try:
        exec(compile(place.read_bytes(), str(place), "exec", dont_inherit=True), module.__dict__)
    finally:
        sys.modules["__main__"] = before
    return module


def _call(module: str, name: str) -> Any:
    try:
        function = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # something that the module itself imports
        raise OpscopeError(f"{module}:{name}: there is no module {error.name}") from None
    except AttributeError:
        raise OpscopeError(f"{module}:{name}: {module} has no {name!r}") from None
    return function()


def _run(
    body: Callable[[], Any], path: str, argv: Sequence[str], folder: Path, framework: str | None, how: str
) -> Capture:
    recorder = _Recorder([framework] if framework else list(registry.FRAMEWORKS), how, sys._getframe())
    # What the script leaves behind is held until the end: what nobody holds, a lazy framework does not compute.
    held: list[Any] = []
    try:
        with _as_main(path, argv, folder), recorder.watching_imports():
            held.append(body())
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            recorder.warnings.append(f"{path} ended with exit code {leaving.code}")
        return recorder.finish(path)
    except OpscopeError:
        recorder.abort()
        raise
    except BaseException as error:
        report, where = _report(error)
        try:
            capture = recorder.finish(path)
        except Exception:  # what it recorded may not be computable: the script's own error matters more
            capture = None
        else:
            capture.warnings.append(f"{path} failed with {type(error).__name__}: this is what it did until then")
        raise ScriptFailed(f"{path} failed{where}: {type(error).__name__}: {error}", report, capture) from error
    return recorder.finish(path)


class _Recorder:
    """Starts a session for each framework as it is imported, and ends them all."""

    def __init__(self, frameworks: list[str], how: str, caller: FrameType) -> None:
        self._frameworks = frameworks
        self._how = how
        self._caller = caller
        self._sessions: dict[str, registry.Session] = {}
        self.warnings: list[str] = []

    def start(self, framework: str) -> None:
        tracer = registry.load(framework)
        registry.check_how(framework, tracer, self._how)
        self._sessions[framework] = tracer.start(how=self._how, caller=self._caller)

    @contextlib.contextmanager
    def watching_imports(self) -> Generator[None, None, None]:
        waiting: list[str] = []
        for name in self._frameworks:
            registry.load(name)
            if name in sys.modules:
                self.start(name)
            else:
                waiting.append(name)
        finder = _AfterImport(waiting, self.start)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)

    def finish(self, path: str) -> Capture:
        if not self._sessions:
            raise OpscopeError(
                f"{path} imported no framework that opscope can record ({', '.join(sorted(self._frameworks))})"
            )
        captures: dict[str, Capture] = {}
        reasons: list[str] = []
        for name, session in reversed(list(self._sessions.items())):
            try:
                captures[name] = session.finish()
            except registry.NothingRecorded as reason:
                reasons.append(str(reason))
        if not captures:
            raise registry.NothingRecorded(f"{path}: {'; '.join(reasons)}")
        first, *others = [name for name in self._sessions if name in captures]
        capture = captures[first]
        capture.warnings.extend(self.warnings)
        if others:
            capture.warnings.append(
                f"{path} also used {', '.join(others)}, which is not in this capture: choose with --framework"
            )
        return capture

    def abort(self) -> None:
        for session in reversed(list(self._sessions.values())):
            session.abort()


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls back when one of some modules has been imported."""

    def __init__(self, names: list[str], callback: Callable[[str], None]) -> None:
        self._names = names
        self._callback = callback

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._names:
            return None
        self._names.remove(fullname)  # so that the search below does not come back here
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, lambda: self._callback(fullname))
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader, then: Callable[[], None]) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module must look as if we had not been here: some read their own loader's resources.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then()


@contextlib.contextmanager
def _as_main(path: str, argv: Sequence[str], folder: Path) -> Generator[None, None, None]:
    """sys.argv and sys.path as the script would find them."""
    before = sys.argv, sys.path
    sys.argv = [path, *argv]
    sys.path = [str(folder.absolute()), *sys.path]
    try:
        yield
    finally:
        sys.argv, sys.path = before


def _report(error: BaseException) -> tuple[str, str]:
    """The traceback without opscope's own part, and where it happened (` at train.py:12`)."""
    own = str(Path(__file__).parents[1])
    start: TracebackType | None = error.__traceback__
    while start is not None and start.tb_frame.f_code.co_filename.startswith((own, "<frozen ")):
        start = start.tb_next
    text = "".join(traceback.format_exception(type(error), error, start))
    last = traceback.extract_tb(start)
    return text, f" at {last[-1].filename}:{last[-1].lineno}" if last else ""
