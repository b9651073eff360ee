"""TorchScript archives: the .pt files of `torch.jit.save`, with their module tree, their code and its source lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from opscope.errors import BadInput
from opscope.ir import Capture, Graph, Origin, Pools, Stage
from opscope.ir.pools import clean
from opscope.readers.source import Options, Source
from opscope.readers.torch.archive import TorchArchive, member_names, reading
from opscope.readers.torch.weights import Stored, statistics

from .inline import Inliner
from .objects import Pickle, Tensor, Thing
from .source import Code, CodeFile, Function, originals

NAME = "torchscript"
_LARGEST_PICKLE = 256 << 20
_LARGEST_CODE = 64 << 20
_MOST_STAGES = 50

# What the pickles of an archive may name. Nothing of it is imported: the names say what the data is.
_ALLOWED = re.compile(
    r"__torch__\..*|torch\.jit\._pickle\.\w+|torch\._utils\._rebuild_\w+|torch\.\w*Storage|torch\.storage\.\w*Storage"
    r"|collections\.OrderedDict|torch\.(?:per_\w+|device|Size|serialization\._get_layout|q?u?int\d+|float\d+|bool)"
)


def match(source: Source) -> bool:
    """An archive with a `data.pkl` and code; without code it is a checkpoint."""
    return any(name == "data.pkl" or name.endswith("/data.pkl") for name in member_names(source))


def read(source: Source, options: Options) -> Capture:
    return reading(source, "a TorchScript archive that cannot be read", lambda: _read(source, options.weights))


def _read(source: Source, with_weights: bool) -> Capture:
    with TorchArchive.of(source) as archive:
        found = Pickle(archive.read("data.pkl", _LARGEST_PICKLE), "data.pkl")
        _refuse_others(found)
        constants: Sequence[Any] = ()
        if "constants.pkl" in archive:
            held = Pickle(archive.read("constants.pkl", _LARGEST_PICKLE), "constants.pkl")
            _refuse_others(held)
            constants = cast("Sequence[Any]", held.value) if isinstance(held.value, list | tuple) else ()
        code, warnings = _code(archive)
        examples = _examples(archive)
        root = found.value
        if not isinstance(root, Thing):
            raise BadInput(f"data.pkl holds a {type(root).__name__}, not a module")
        capture, held = _capture(root, constants, code, warnings, examples)
        if with_weights:
            for stage, tensors in enumerate(held):
                _add_statistics(capture, archive, stage, tensors)
        return capture


def _add_statistics(capture: Capture, archive: TorchArchive, stage: int, tensors: Mapping[int, Tensor]) -> None:
    stored = {
        value: Stored(
            tensor.storage.replace(".pkl/", "/", 1), tensor.dtype, tensor.shape, tensor.strides, tensor.offset
        )
        for value, tensor in tensors.items()
        if tensor.shape is not None and tensor.strides is not None and tensor.storage
    }
    table, missing = statistics(archive, stage, stored)
    if table is not None:
        capture.add(table)
    if left := len(missing) + len(tensors) - len(stored):
        capture.warnings.append(f"{left} of {len(tensors)} weights have no statistics")


def _examples(archive: TorchArchive) -> dict[str, Sequence[Any]]:
    """What each method of a traced model was traced with: shapes of the inputs."""
    if "traced_inputs.pkl" not in archive:
        return {}
    try:
        found = Pickle(archive.read("traced_inputs.pkl", _LARGEST_PICKLE), "traced_inputs.pkl").value
    except BadInput:  # nice to have
        return {}
    if not isinstance(found, dict):
        return {}
    entries = cast("dict[Any, Any]", found)
    return {str(k): cast("Sequence[Any]", v) for k, v in entries.items() if isinstance(v, list | tuple)}


def _refuse_others(pickle: Pickle) -> None:
    for name in pickle.globals:
        if not _ALLOWED.fullmatch(name):
            raise BadInput(f"refused: {pickle.name} names {name[:200]!r}, as TorchScript never does; nothing was run")


def _code(archive: TorchArchive) -> tuple[Code, list[str]]:
    paths = [name for name in archive.names if name.startswith("code/") and name.endswith(".py")]
    total = sum(archive.size(name) for name in archive.names if name.startswith("code/"))
    if total > _LARGEST_CODE:
        raise BadInput(f"its code claims {total:,} bytes; {_LARGEST_CODE:,} are the most")
    code, warnings = Code(), list[str]()
    for path in paths:
        file = CodeFile(path, archive.text(path))
        debug = f"{path}.debug_pkl"
        if debug in archive:
            try:
                file.add_ranges(archive.read(debug), debug)
            except BadInput as error:  # the code itself is still good
                warnings.append(clean(f"source lines of {path} are not known: {error}"))
        code.add(path.removeprefix("code/"), file)
    return code, warnings


def _capture(
    root: Thing, constants: Sequence[Any], code: Code, warnings: list[str], examples: dict[str, Sequence[Any]]
) -> tuple[Capture, list[dict[int, Tensor]]]:
    """The capture, and of each stage which value shows which tensor of the file."""
    cls = code.classes.get(root.cls)
    if cls is None or not cls.methods:
        raise BadInput(f"its code has no class {root.cls[:200]!r} with methods")
    pools = Pools()
    stages: list[Stage] = []
    held: list[dict[int, Tensor]] = []
    reached: set[str] = set()
    order = sorted(cls.methods.values(), key=lambda method: method.node.name != "forward")
    listing = clean("".join(f"# {file.path}\n{file.text.rstrip()}\n\n" for file in code.files))
    for method in order:
        if method.name in reached or method.node.name.startswith("__") or len(stages) == _MOST_STAGES:
            continue
        inliner = Inliner(code, root, constants, pools)
        graph = inliner.build(method, examples.get(method.node.name, ()))
        stages.append(_stage(method, graph, inliner, listing if not stages else ""))
        held.append(inliner.held)
        reached |= inliner.reached
    if not stages:
        raise BadInput(f"class {root.cls[:200]!r} has no method to show")
    sources = {clean(path): clean(text) for path, text in originals(code.files).items()}
    sources |= {clean(file.path): clean(file.text) for file in code.files}
    named = {frame.file for frame in pools.frames}
    capture = Capture(
        pools=pools,
        stages=stages,
        origin=Origin(format=NAME, framework="torch", how="file"),
        sources={path: text for path, text in sources.items() if path in named or path.startswith("code/")},
        warnings=warnings,
    )
    return capture, held


def _stage(method: Function, graph: Graph, inliner: Inliner, listing: str) -> Stage:
    warnings: tuple[str, ...] = ()
    if inliner.decided:
        names = clean(", ".join(list(inliner.decided)[:8]))
        warnings += (f"branches that attributes of modules choose are shown as they were saved: {names}",)
    if inliner.unknown:
        warnings += (f"parts of the code were not understood and are left out: {', '.join(list(inliner.unknown)[:8])}",)
    return Stage(clean(method.node.name), graph, listings={"code": listing} if listing else {}, warnings=warnings)
