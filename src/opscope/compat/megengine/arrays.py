"""Input data from a pickle: numpy arrays, alone or in a dict, and nothing else."""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from opscope.errors import BadInput
from opscope.readers.source import Source

_ALLOWED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.numeric", "_frombuffer"),
    ("_codecs", "encode"),
}
_KINDS = "biuf"


def load_arrays(path: str) -> npt.NDArray[Any] | dict[str, npt.NDArray[Any]]:
    """The array in a pickle, or the arrays of a dict by name."""
    source = Source.of(path)
    data = source.read()
    try:
        # Every length is checked against the file before the unpickler takes memory for it.
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in ("LONG_BINPUT", "PUT") and int(cast("int", argument)) > len(data):
                raise ValueError(f"memo index {argument} in a file of {len(data):,} bytes")
            if opcode.name.startswith("EXT") or "PERSID" in opcode.name or opcode.name in ("INST", "OBJ"):
                raise BadInput(f"{path}: refused: this pickle holds more than arrays ({opcode.name}); nothing was run")
        found: Any = _Unpickler(io.BytesIO(data), path).load()
    except BadInput:
        raise
    except Exception as error:  # whatever a damaged pickle makes the unpickler say
        raise BadInput(f"{path}: not a readable pickle of arrays ({type(error).__name__}: {error})") from None
    if isinstance(found, dict) and all(isinstance(key, str) for key in cast("dict[Any, Any]", found)):
        arrays = cast("dict[str, Any]", found)
        return {name: _checked(array, f"{path}: {name}") for name, array in arrays.items()}
    return _checked(found, path)


def _checked(value: Any, where: str) -> npt.NDArray[Any]:
    if type(value) is not np.ndarray or value.dtype.kind not in _KINDS:
        raise BadInput(f"{where}: a numpy array of numbers is expected, or a dict of them by the names of the inputs")
    return cast("npt.NDArray[Any]", value)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, name: str) -> None:
        super().__init__(file)
        self._name = name

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) not in _ALLOWED:
            raise BadInput(
                f"{self._name}: refused: this pickle asks for {module}.{name}. Input data is a numpy array, or a "
                "dict of arrays; nothing was run"
            )
        if name == "_reconstruct":
            return _empty
        if name == "encode":
            return _latin1
        if name == "_frombuffer":
            return _from_buffer
        return {"ndarray": np.ndarray, "dtype": np.dtype}[name]


def _empty(kind: Any, shape: Any, dtype: Any) -> npt.NDArray[Any]:
    """What numpy's own makes before it is filled; the shape comes with the content, which numpy checks."""
    return np.ndarray((0,), "b")


def _latin1(text: str, encoding: str) -> bytes:
    return text.encode("latin1")


def _from_buffer(buffer: Any, dtype: Any, shape: Any, order: str) -> npt.NDArray[Any]:
    return cast("Any", np.frombuffer(buffer, dtype=dtype)).reshape(shape, order="F" if order == "F" else "C")
