"""Which reader takes a file. Readers are imported only when their turn comes.

A new format is one module with `NAME`, `match(source)` and `read(source, options)`, and one line below.
Other packages add theirs with an entry point in the group `opscope.readers`.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Protocol, cast

from opscope.errors import BadInput, OpscopeError, lacks_memory
from opscope.ir import Capture

from .bundles import inside, is_tar
from .deadline import deadline
from .source import Options, Source
from .unsupported import explain

GROUP = "opscope.readers"

# In the order they are asked: the ones that are surest of themselves first.
BUILT_IN = {
    "opscope": "opscope.readers.opscope_file",
    "pt2": "opscope.readers.torch.pt2",
    "checkpoint": "opscope.readers.checkpoints.pickled",  # archives without code, before those with code
    "torchscript": "opscope.readers.torch.torchscript",
    "chakra": "opscope.readers.torch.chakra",
    "torch-trace": "opscope.readers.torch.compiler",
    "kineto": "opscope.readers.torch.kineto",
    "nsight": "opscope.readers.torch.nsight",
    "torch-memory": "opscope.readers.torch.snapshot",
    "xla": "opscope.readers.xla",
    "megengine": "opscope.readers.megengine",
    "jittor-trace": "opscope.readers.jittor",
    "paddle-pir": "opscope.readers.paddle.pir",
    "paddle-dump": "opscope.readers.paddle.dump",
    "onnx": "opscope.readers.onnx",
    "tflite": "opscope.readers.tflite",
    "tensorflow": "opscope.readers.tensorflow",
    "safetensors": "opscope.readers.checkpoints.safetensors",
    "gguf": "opscope.readers.checkpoints.gguf",
    "numpy": "opscope.readers.checkpoints.npz",
    "hidet": "opscope.readers.hidet",
    "model-explorer": "opscope.readers.model_explorer",
    "paddle-log": "opscope.readers.paddle.glog",  # this one and the next look through the whole file, so last
    "hidet-output": "opscope.readers.hidet.output",
}


class Reader(Protocol):
    """What a reader module offers."""

    NAME: str

    def match(self, source: Source) -> bool: ...

    def read(self, source: Source, options: Options) -> Capture: ...


def readers() -> Iterator[Reader]:
    """Built-in readers, then plugins; a plugin may not take a name that is taken."""
    for name, module in BUILT_IN.items():
        yield _named(name, "opscope itself", importlib.import_module(module))
    seen = dict.fromkeys(BUILT_IN, "opscope itself")
    for entry in entry_points(group=GROUP):
        owner = entry.dist.name if entry.dist is not None else "a plugin"
        if entry.name in seen:
            raise OpscopeError(
                f"two readers are called {entry.name!r}: one from {seen[entry.name]}, one from {owner}. "
                "Uninstall one of them."
            )
        seen[entry.name] = owner
        try:
            loaded = entry.load()
        except Exception as error:
            raise OpscopeError(f"the reader plugin {entry.name!r} of {owner} cannot be loaded: {error}") from error
        yield _named(entry.name, owner, loaded)


def _named(name: str, owner: str, module: object) -> Reader:
    """The reader, if it has the name that it is listed under: captures and messages carry its own."""
    reader = cast("Reader", module)
    own = getattr(reader, "NAME", None)
    if own != name:
        raise OpscopeError(f"the reader {name!r} of {owner} has NAME = {own!r}: make the two names one")
    return reader


class Unexpected(BadInput):
    """A reader failed in a way that it did not foresee: the file is damaged, and opscope should have said how."""


_LAYERS = 3  # of packing around a graph, such as a .gz in a .zip


def read(source: Source, options: Options) -> Capture:
    """The capture in a source, by the first reader that recognises its content."""
    with _in_one_line(source.name), warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # Python's opinion of code in the file is not the user's concern
        return _read(source, options, _LAYERS)


def _read(source: Source, options: Options, layers: int) -> Capture:
    with deadline(source.name, source.size):
        source = source.unpacked()
    with deadline(source.name, source.size):
        for reader in () if is_tar(source) else readers():
            if reader.match(source):
                return reader.read(source, options)
        if not layers:
            raise BadInput(f"{source.name}: packed more than {_LAYERS} times: refused")
        with inside(source) as unpacked:
            if unpacked is not None:
                return _read(unpacked, options, layers - 1)
        raise explain(source)


@contextmanager
def _in_one_line(name: str) -> Generator[None]:
    """Whatever goes wrong is one clear error."""
    try:
        yield
    except OpscopeError:
        raise
    except RecursionError:
        raise BadInput(f"{name}: it is nested too deep to be honest") from None
    except OSError as error:
        raise BadInput(f"{name}: cannot be read ({error.strerror or error})") from None
    except Exception as error:
        if lacks_memory(error):
            raise BadInput(f"{name}: reading it takes more memory than there is") from None
        raise Unexpected(
            f"{name}: cannot be read: {type(error).__name__}: {error}. It may be damaged; if it is not, "
            "this is a mistake of opscope's: `opscope --debug` shows where"
        ) from error
