"""The test lanes. `make test` runs them all; `nox -s core -- -k wire` runs one and hands `-k wire` to pytest.

Every lane has an environment of its own under .nox/. What is slow to fetch or to compile is kept outside
the clone (pip's cache, and ours under ~/.cache/opscope), so a second run or a second clone starts warm.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.tags = ["lane"]

PYPROJECT = nox.project.load_toml("pyproject.toml")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opscope"
IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

Lane = Callable[[nox.Session], None]


def requirements(*groups: str) -> tuple[str, ...]:
    return nox.project.dependency_groups(PYPROJECT, *groups)


# Interpreters


def find_python(version: str) -> str | None:
    """An interpreter of this minor version: pyenv's, or one on the path."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python")), reverse=True)
    found += filter(None, [shutil.which(f"python{version}"), sys.executable])
    return next((python for python in found if runs(python, version)), None)


def runs(python: str, version: str) -> bool:
    # Asked by running it: pyenv puts a python3.10 on the path that only says "command not found".
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.check_output([python, "-c", ask], stderr=subprocess.DEVNULL, text=True).strip() == version
    except (OSError, subprocess.CalledProcessError):
        return False


def lane(*, name: str, version: str | None = None, fresh: bool = False) -> Callable[[Lane], Lane]:
    """A session that `make test` runs, on this Python version or, without one, on the machine's python3."""

    def register(function: Lane) -> Lane:
        python = find_python(version) if version else None
        if version and not python:
            nox.session(name=name, python=False, tags=["lane"])(missing(name, version))
        else:
            nox.session(name=name, python=python, reuse_venv=not fresh, tags=["lane"])(function)
        return function

    return register


def missing(name: str, version: str) -> Lane:
    def say(session: nox.Session) -> None:
        line = f"LANE {name} DID NOT RUN: no Python {version} on the path or among pyenv's versions"
        if IN_CI:
            session.error(line)
        session.skip(line)

    return say


# Lanes, the longest first: `make test` starts them in this order.


@lane(name="jittor", version="3.10")
def jittor(session: nox.Session) -> None:
    """Live capture on real Jittor, which traces on Python 3.10 at most."""
    session.install("-e", ".", *requirements("pytest", "jittor"))
    # Only pytest gets the other HOME: pip keeps the user's own settings and cache.
    run_plainly(session, "pytest", "tests/jittor", *session.posargs, env=jittor_environment(session))


def run_plainly(session: nox.Session, module: str, *args: str, env: dict[str, str]) -> None:
    """Run a module in the lane, known by a path that needs no quotes.

    Jittor, Hidet and torch.compile write the path of their environment into compile commands as it is.
    """
    session.run(plain_python(session), "-m", module, *args, env=env, external=True)


def plain_python(session: nox.Session) -> str:
    home = Path(session.bin).resolve().parent
    if shlex.quote(str(home)) == str(home):
        return "python"
    link = CACHE / f"lane-{hashlib.sha256(str(home).encode()).hexdigest()[:8]}"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(home)
    return str(link / "bin" / "python")


def jittor_environment(session: nox.Session) -> dict[str, str]:
    # Jittor names its compile cache after the folder it is installed in and the git branch that folder is on.
    # A copy of it outside the clone, and a fixed name, let every clone use what the first one compiled.
    home = CACHE / "jittor-home"
    home.mkdir(parents=True, exist_ok=True)
    python = Path(session.run("python", "-c", "import sys; print(sys._base_executable)", silent=True).strip())
    return {
        "HOME": str(home),
        "PYTHONPATH": str(shared_jittor(session)),
        "cache_name": "opscope",
        "python_config_path": f"{python.resolve()}-config",
        "use_mkl": "0",
        "nvcc_path": "",
    }


def shared_jittor(session: nox.Session) -> Path:
    """The folder outside the clone that holds the jittor package (its dependencies are in the lane)."""
    (pin,) = [entry for entry in requirements("jittor") if entry.startswith("jittor==")]
    key = hashlib.sha256(f"{pin} {session.python}".encode()).hexdigest()[:8]
    place = CACHE / f"jittor-{key}"
    if not place.exists():
        # Made in a temporary folder and moved into place: another clone may be doing the same at this moment.
        with tempfile.TemporaryDirectory(prefix="installing-", dir=CACHE) as beside:
            session.install("--no-deps", "--target", f"{beside}/jittor", pin)
            try:
                os.rename(f"{beside}/jittor", place)
            except OSError:
                if not place.exists():
                    raise
    return place


@lane(name="torch", version="3.11")
def torch(session: nox.Session) -> None:
    """Live capture on real PyTorch."""
    # First and alone: it is a CPU build, and what comes after must not pull in another one.
    session.install(*requirements("torch"))
    session.install("-e", ".", *requirements("pytest", "torch-models"))
    workers = ("--numprocesses=2",)
    run_plainly(session, "pytest", "tests/torch", *workers, *session.posargs, env={"OMP_NUM_THREADS": "1"})


@lane(name="formats", version="3.11")
def formats(session: nox.Session) -> None:
    """Files that the real exporters write: ONNX, checkpoints, TensorFlow Lite."""
    session.install(*requirements("torch"))
    session.install("-e", ".", *requirements("pytest", "formats"))
    run_plainly(session, "pytest", "tests/formats", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@lane(name="hidet", version="3.11")
def hidet(session: nox.Session) -> None:
    """Live capture on real Hidet, on the CPU."""
    session.install(*requirements("torch"))
    session.install("--no-deps", *requirements("hidet"))
    session.install("-e", ".", *requirements("pytest", "hidet-needs"))
    run_plainly(session, "pytest", "tests/hidet", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@lane(name="megengine", version="3.10")
def megengine(session: nox.Session) -> None:
    """Live capture and statistics on real MegEngine, which has no build for Python above 3.10."""
    session.install("-e", ".", *requirements("pytest", "megengine"))
    session.run("pytest", "tests/megengine", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@lane(name="paddle", version="3.11")
def paddle(session: nox.Session) -> None:
    """Live capture on real PaddlePaddle, on the CPU, and the drop-in for paddleviz."""
    session.install("-e", ".", *requirements("pytest", "paddle"))
    session.run("pytest", "tests/paddle", *session.posargs)


@lane(name="jax", version="3.11")
def jax(session: nox.Session) -> None:
    """Live capture on real JAX, on the CPU, with Flax and Equinox."""
    session.install("-e", ".", *requirements("pytest", "jax"))
    session.run("pytest", "tests/jax", *session.posargs)


@lane(name="viewer")
def viewer(session: nox.Session) -> None:
    """The page's own tests (TypeScript); its constants and the committed bundle are what their sources give."""
    needed(session, "node", "npm")
    session.install("-e", ".")
    session.run("python", "viewer/facts.py", "--check")
    with session.chdir("viewer"):
        # Not `npm ci`: it insists on the binaries of every platform, which not every registry has.
        session.run("npm", "install", "--no-save", "--no-audit", "--no-fund", external=True, silent=True)
        session.run("npm", "run", "typecheck", external=True)
        session.run("npm", "run", "format", external=True)
        session.run("npm", "test", external=True)
        fresh = Path(session.create_tmp()).resolve() / "bundle"
        session.run("npm", "run", "build", "--", str(fresh), external=True)
    committed = Path("src/opscope/_viewer")
    stale = [
        name
        for name in ("viewer.js", "viewer.css", "engine.js")
        if (fresh / name).read_bytes() != (committed / name).read_bytes()
    ]
    if stale:
        session.error(f"src/opscope/_viewer: {' and '.join(stale)} is not what viewer/src gives: run `make viewer`")


@lane(name="browser")
def browser(session: nox.Session) -> None:
    """The page in real Chromium: the server of the real command line, and the one-file HTML."""
    if not shutil.which("chromium"):
        install_debian(session, "chromium")
    session.install("-e", ".", *requirements("browser"))
    session.run("pytest", "tests/browser", *session.posargs, env={"OPSCOPE_AXE": str(_axe(session))})


def _axe(session: nox.Session) -> Path:
    """What looks for barriers in the page, in a folder of its own: the viewer lane installs at the same time."""
    needed(session, "npm")
    wanted = json.loads(Path("viewer/package.json").read_text(encoding="utf-8"))["devDependencies"]["axe-core"]
    folder = Path(session.create_tmp()).resolve() / "axe"
    folder.mkdir(exist_ok=True)
    with session.chdir(folder):
        install = ("npm", "install", "--no-save", "--no-audit", "--no-fund", f"axe-core@{wanted}")
        session.run(*install, external=True, silent=True)
    return folder / "node_modules/axe-core/axe.min.js"


def install_debian(session: nox.Session, package: str) -> None:
    """Debian's package, where we may; Playwright's own download of a browser is not used."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        session.run("apt-get", "update", "-qq", external=True, silent=True)
        session.run("apt-get", "install", "-y", "-qq", package, external=True, silent=True)
    else:
        needed(session, package)


def needed(session: nox.Session, *programs: str) -> None:
    """Skip loudly what cannot run here; in CI that is a failure."""
    absent = [program for program in programs if not shutil.which(program)]
    if absent:
        line = f"LANE {session.name} DID NOT RUN: {' and '.join(absent)} is not installed"
        if IN_CI:
            session.error(line)
        session.skip(line)


@lane(name="core")
def core(session: nox.Session) -> None:
    """Every test that needs no framework."""
    session.install("-e", ".", "./tests/plugin_example", *requirements("test"))
    workers = ("--numprocesses=auto", "--maxprocesses=4")
    session.run("pytest", "tests", *workers, *session.posargs)  # tests/conftest.py leaves out what has its own lane


@lane(name="types")
def types(session: nox.Session) -> None:
    """pyright, strict, on src/."""
    session.install("-e", ".", *requirements("types"))
    session.run("pyright", *session.posargs)


def wheel(session: nox.Session) -> None:
    """The wheel in an empty environment, without Node."""
    dist = Path(session.create_tmp()) / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    session.run("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(dist), ".")
    (built,) = dist.glob("opscope-*.whl")
    session.install(str(built))
    with session.chdir(session.create_tmp()):  # so that nothing is picked up from the clone
        alone = {"PATH": session.bin}
        session.run("opscope", "--version", env=alone)
        session.run("opscope", "demo", "--describe", env=alone)  # in a terminal it would serve the page
        session.run("python", "-c", "import opscope", env=alone)


lane(name="wheel-3.10", version="3.10", fresh=True)(wheel)
lane(name="wheel-3.13", version="3.13", fresh=True)(wheel)


@lane(name="lint")
def lint(session: nox.Session) -> None:
    """ruff: rules and format."""
    session.install(*requirements("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


# Not a lane: figures are looked at, they do not pass or fail.


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmark of the graph model, compared with onnx_ir."""
    session.install("-e", ".", *requirements("bench"))
    session.run("python", "benchmarks/bench_ir.py", *session.posargs)
