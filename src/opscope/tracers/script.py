"""Runs a user's script under capture: `opscope trace train.py --epochs 1`.

The script runs as `python train.py` would run it. Recording starts at the moment the script has
imported a framework, whichever it is, and ends when the script does.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import operator
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn, cast

from opscope.errors import OpscopeError
from opscope.ir import Capture

from . import leaving, registry
from .contract import DEVICE, Options, Part
from .failing import ended_by, report_of
from .frames import frame_at
from .imports import AfterImport
from .session import Join, NothingRecorded, Session


class ScriptFailed(OpscopeError):
    """The script raised an exception, or a signal ended it. `capture` holds what was recorded until then, or None; the
    exception itself is the `__cause__`, and `report` its traceback as Python would have printed it."""

    def __init__(self, message: str, report: str, capture: Capture | None, code: int = 2) -> None:
        super().__init__(message)
        self.report = report
        self.capture = capture
        self.code = code  # the exit code of a command


def run_script(
    path: str,
    argv: Sequence[str] = (),
    framework: str | None = None,
    how: str = "auto",
    steps: int | None = None,
    save: Callable[[Capture], None] | None = None,
    values: bool | str = False,
    until_nan: bool = False,
    part: Part | None = None,
    times: bool = False,
    join: Join | None = None,
    ends: bool = False,
    body: Callable[[], Any] | None = None,
) -> Capture:
    """Run a script, or `package.module:callable`, and return everything that it computed; with `steps`, only up to
    that many steps of the optimizers. The script runs to its end in any case. If it ends the process itself
    (`os._exit`), nothing can be returned: then `save` is called. `until_nan` ends the script after the first step of an
    optimizer that saw a NaN; of the steps before it nothing is kept. `times`: measure, with the framework's profiler
    where opscope runs it; `join` lays what that measured on the capture. `ends`: the script ends with those steps.
    `body` runs instead of a script, which `path` then only names."""
    recorder = _Recorder(framework, how, steps, values, until_nan, part, times, join, frame_at(0), ends)
    if body is not None:
        return _run(body, path, argv, Path(), recorder, save)
    if is_file(path):
        place = Path(path).absolute()
        return _run(lambda: execute(place), path, argv, place.parent, recorder, save)
    split(path)
    return _run(lambda: _call(path), path, argv, Path(), recorder, save)


def is_rank() -> tuple[int, int] | None:
    """Which rank of how many a launcher such as torchrun says that this process is; None: it is alone."""
    try:
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return None
    return (rank, world) if world > 1 and 0 <= rank < world else None


class Refused(OpscopeError):
    """The script cannot be run as it was named: none of its own code has failed."""


def is_file(path: str) -> bool:
    return Path(path).is_file()


def split(path: str) -> tuple[str, str]:
    """The module and the name of `package.module:name`."""
    module, colon, name = path.partition(":")
    if not (colon and all(part.isidentifier() for part in [*module.split("."), *name.split(".")])):
        raise OpscopeError(f"{path}: no such script (a script is a file, or package.module:callable)")
    return module, name


def execute(place: Path) -> ModuleType:
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


def look_up(path: str) -> Any:
    """What `package.module:name` names."""
    module, name = split(path)
    try:
        return operator.attrgetter(name)(importlib.import_module(module))
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # something that the module itself imports
        raise Refused(f"{path}: there is no module {error.name}") from None
    except AttributeError:
        if module not in sys.modules:
            raise  # the module itself failed
        raise Refused(f"{path}: {module} has no {name!r}") from None


def _call(path: str) -> Any:
    function = look_up(path)
    kind = cast("type[Any]", function if isinstance(function, type) else type(function))
    if registry.frameworks_of_type(kind):
        raise Refused(f"{path} is a model: say what it is called with, such as --input 1x3x224x224")
    if not callable(function):
        raise Refused(f"{path} is {registry.describe(function)}, which cannot be called")
    return function()


def _run(
    body: Callable[[], Any],
    path: str,
    argv: Sequence[str],
    folder: Path,
    recorder: _Recorder,
    save: Callable[[Capture], None] | None,
) -> Capture:
    # What the script leaves behind is held until the end: a lazy framework does not compute what is not held.
    held: list[Any] = []
    owner = os.getpid()

    def save_now(status: int) -> None:
        recorder.warnings.append(f"{path} ended itself by os._exit({status})")
        if save is not None:
            save(recorder.finish(path))

    def save_stuck(number: int) -> None:
        name = signal.Signals(number).name
        recorder.warnings.append(f"{path} was stopped by {name} while it waited in C code, such as for another rank")
        if save is not None:
            save(recorder.finish(path))

    stuck = leaving.saved_if_stuck(save_stuck) if is_rank() else contextlib.nullcontext()
    try:
        with stuck, as_main(path, argv, folder), leaving.stopped_by_signals() as begin, leaving.before_exit(save_now):
            recorder.when_started = begin
            try:
                with recorder.watching_imports():
                    held.append(body())
            except BaseException as error:
                if os.getpid() != owner:
                    _end_fork(error)
                raise
            if os.getpid() != owner:
                _end_fork(None)
    except SystemExit as left:
        if left.code not in (None, 0):
            recorder.warnings.append(f"{path} ended with exit code {left.code}")
        return recorder.finish(path)
    except BaseException as error:
        raise _failed(error, path, recorder) from error
    return recorder.finish(path)


def _failed(error: BaseException, path: str, recorder: _Recorder) -> OpscopeError:
    """What to say of a script that an exception ended, with what it did until then."""
    if isinstance(error, Refused):
        recorder.abort()
        return error
    report, where = report_of(error)
    recorder.fails()
    try:
        capture = recorder.finish(path)
    except Exception as reason:  # the script's own error matters more
        if isinstance(error, OpscopeError):
            return error
        capture = None
        why = "" if isinstance(reason, NothingRecorded) else f"; what it did until then is lost: {reason}"
    else:
        why = ""
        capture.warnings.insert(0, ended_by(error, where))
    if isinstance(error, leaving.Stopped | KeyboardInterrupt):
        number = error.number if isinstance(error, leaving.Stopped) else signal.SIGINT
        word = f"interrupted{where}" if number == signal.SIGINT else f"stopped by {error}{where}"
        return ScriptFailed(f"{path} was {word}{why}", "", capture, 128 + number)
    if isinstance(error, OpscopeError):
        return ScriptFailed(f"{path} failed{where}: {error}{why}", "", capture)
    return ScriptFailed(f"{path} failed{where}: {type(error).__name__}: {error}{why}", report, capture)


def _end_fork(error: BaseException | None) -> NoReturn:
    """End a process that the script forked as Python would have ended it. The recording is the first process's."""
    code = 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        sys.stderr.write(report_of(error)[0])
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


class _Recorder:
    """Starts a session for each framework as it is imported, and ends them all."""

    def __init__(
        self,
        framework: str | None,
        how: str,
        steps: int | None,
        values: bool | str,
        until_nan: bool,
        part: Part | None,
        times: bool,
        join: Join | None,
        caller: FrameType,
        ends: bool = False,
    ) -> None:
        able = [name for name in registry.FRAMEWORKS if how in registry.load(name).records]
        if not able:
            raise OpscopeError(
                f"--how {how} captures a model, not a script: name what makes the model, and its inputs, as in "
                f"`opscope trace package.module:make_model --input 1x3x224x224 --how {how}`"
            )
        self._frameworks = [framework] if framework else able
        self._how = how
        self._steps = steps
        self._values = values
        self._until_nan = until_nan
        self._part = part
        self._times = times
        self._join = join
        self._caller = caller
        self._ends = ends
        self._sessions: dict[str, Session] = {}
        self.when_started: Callable[[], None] = lambda: None
        self.warnings: list[str] = []

    def start(self, framework: str) -> None:
        if framework not in registry.imported():
            return
        tracer = registry.load(framework)
        after_step = (lambda: self._next(framework)) if self._until_nan else None
        times: bool | str = self._times and (DEVICE if tracer.profiles else True)
        options = Options(
            self._caller,
            how=self._how,
            steps=self._steps,
            values=self._values,
            part=self._part,
            times=times,
            after_step=after_step,
            ends=self._ends,
        )
        tracer.check(options)
        self._sessions[framework] = tracer.start(options)
        self.when_started()

    def _next(self, framework: str) -> None:
        """A step is over, and none of its numbers were NaN: the next one is recorded from the beginning."""
        self._sessions.pop(framework).abort()
        self.start(framework)

    @contextlib.contextmanager
    def watching_imports(self) -> Generator[None, None, None]:
        waiting: list[str] = []
        for name in self._frameworks:
            registry.load(name)
            if name in registry.imported():
                self.start(name)
            elif name not in sys.modules:
                waiting.append(name)
        finder = AfterImport(waiting, self.start)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)

    def abort(self) -> None:
        for session in self._sessions.values():
            session.abort()

    def fails(self) -> None:
        for session in self._sessions.values():
            session.fails()

    def finish(self, path: str) -> Capture:
        if not self._sessions:
            tops = {name.partition(".")[0] for name in sys.modules}
            if begun := sorted(tops.intersection(self._frameworks)):
                raise OpscopeError(f"{path} did not finish importing {', '.join(begun)}")
            raise OpscopeError(
                f"{path} imported no framework that opscope can record ({', '.join(sorted(self._frameworks))})"
            )
        captures: dict[str, Capture] = {}
        reasons: list[str] = []
        failures: list[str] = []
        for name, session in reversed(list(self._sessions.items())):
            try:
                capture = session.finish()
                if self._join is not None and session.measured is not None:
                    capture = self._join(capture, session.measured)
                captures[name] = capture
            except NothingRecorded as reason:
                reasons.append(str(reason))
            except Exception as error:  # ours; the other frameworks' recordings are not to be lost with it
                failures.append(f"opscope could not put together what {name} ran ({type(error).__name__}: {error})")
        if not captures and failures:
            raise OpscopeError(f"{path}: {'; '.join(failures)}")
        if not captures:
            raise NothingRecorded(f"{path}: {'; '.join(reasons)}")
        self.warnings.extend(failures)
        below = {used for name in captures for used in registry.load(name).runs_on}
        first, *others = sorted((name for name in self._sessions if name in captures), key=lambda name: name in below)
        capture = captures[first]
        capture.warnings.extend(self.warnings)
        if others:
            capture.warnings.append(
                f"{path} also used {', '.join(others)}, which is not in this capture: choose with --framework"
            )
        return capture


@contextlib.contextmanager
def as_main(path: str, argv: Sequence[str], folder: Path) -> Generator[None, None, None]:
    """sys.argv and sys.path as the script would find them."""
    before = sys.argv, sys.path
    sys.argv = [path, *argv]
    sys.path = [str(folder.absolute()), *sys.path]
    try:
        yield
    finally:
        sys.argv, sys.path = before
