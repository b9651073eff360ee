"""Formats that people try and that have no reader: what they are, and which way leads to a graph."""

from __future__ import annotations

import re

from opscope.errors import BadInput
from opscope.wire.archive import open_zip

from .json_text import ONNX_RUNTIME
from .source import Source

_TRACE = "capture the model in its framework with opscope.trace(model, *inputs)"
_WEIGHTS = f"it holds weights and no graph: {_TRACE}"
_PLUGIN = "a reader can be added as a plugin (entry point group 'opscope.readers', see CONTRIBUTING.md)"

_ORT = (
    "it holds ONNX Runtime's own optimized form: open the .onnx that it was made from, or let ONNX Runtime write one: "
    "SessionOptions.optimized_model_filepath = 'model.onnx', then InferenceSession('model.ort', options)"
)

# What the file starts with -> (what it is, what to do)
_MAGIC: list[tuple[bytes, str, str]] = [
    (b"\x89HDF\r\n", "an HDF5 file (Keras weights or model)", f"opscope does not read it: {_TRACE}; {_PLUGIN}"),
    (b"PAR1", "a Parquet file", "open the .opscope file it was exported from"),
    (b"ARROW1", "an Arrow file", "open the .opscope file it comes from"),
    (b"%PDF", "a PDF", "open the .opscope file it was exported from"),
    (b"\x89PNG", "a picture", "open the .opscope file it was exported from"),
    (b"BZh", "a bzip2 file", "unpack it first (bunzip2)"),
    (b"\xfd7zXZ\0", "an xz file", "unpack it first (unxz)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip file", "unpack it first"),
]

_ENDINGS: dict[str, tuple[str, str]] = {
    ".onnx": ("an ONNX model", "its content is not one: export or copy it again"),
    ".ort": ("an ONNX Runtime model", _ORT),
    ".tflite": ("a TensorFlow Lite model", "its content is not one: convert or copy it again"),
    ".pb": ("a protocol buffer", f"neither a graph nor a SavedModel of TensorFlow; {_PLUGIN}"),
    ".mge": ("a MegEngine model", "its content is not one: dump it again"),
    ".pdmodel": ("a PaddlePaddle program", f"this version does not read it; {_PLUGIN}"),
    ".pdiparams": ("PaddlePaddle weights", _WEIGHTS),
    ".safetensors": ("safetensors weights", "their header is none: copy the file again"),
    ".gguf": ("a GGUF model", "its content is not one: copy it again"),
    ".pt2": ("a PyTorch ExportedProgram", "its content is not one: save it again with torch.export.save()"),
}

_BUNDLE = ("a zip file of a kind opscope does not know", "name the file inside it")
_LISTED = 8  # names of files


def explain(source: Source) -> BadInput:
    """Why a source that no reader takes cannot be opened, in one line."""
    what, advice = _identify(source)
    return BadInput(f"{source.name}: {what}: {advice}")


def is_bundle(source: Source) -> bool:
    """A zip file that is no format of its own: what matters is in it."""
    return source.head.startswith(b"PK\x03\x04") and _identify(source) == _BUNDLE


def _identify(source: Source) -> tuple[str, str]:
    head = source.head
    ending = re.search(r"\.[A-Za-z0-9]+$", source.name)
    by_name = _ENDINGS.get(ending[0].lower()) if ending else None
    if source.is_folder:
        if source.path is not None and str(source.path) != source.name:  # unpacked for a moment
            names = sorted(path.name for path in source.path.iterdir())
            listed = ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
            return "files that together are nothing opscope knows", f"unpack it and name one of them ({listed})"
        return "a folder without anything opscope knows", "name a file in it"
    if not head:
        return "an empty file (0 bytes)", "make or copy it again"
    for magic, what, advice in _MAGIC:
        if head.startswith(magic):
            return what, advice
    if head.startswith(b"PK\x03\x04"):
        return _zip(source, by_name)
    if head[4:8] == b"ORTM":
        return _ENDINGS[".ort"]
    if re.match(rb".{8}\{\s*\"", head, re.DOTALL) and b"dtype" in head:
        return _ENDINGS[".safetensors"]
    if ONNX_RUNTIME.match(head):
        return "a profile of ONNX Runtime", "open the model that it ran, with this as --profile"
    if head.lstrip()[:1] in (b"{", b"["):
        return "JSON of a kind opscope does not know", f"known files are listed in the README; {_PLUGIN}"
    if by_name is not None:
        return f"{by_name[0]}, by its name", by_name[1]
    return "not a format opscope knows", f"known files are listed in the README; {_PLUGIN}"


def _zip(source: Source, by_name: tuple[str, str] | None) -> tuple[str, str]:
    try:
        with source.open() as file:
            names = open_zip(file).namelist()
    except Exception:  # zipfile meets damage with many kinds
        return "a zip file that is cut off or damaged", "copy it again"
    if any(name.endswith("config.json") for name in names) and any(name.endswith(".h5") for name in names):
        return "a Keras model", f"this version does not read it; {_PLUGIN}"
    return by_name or _BUNDLE
