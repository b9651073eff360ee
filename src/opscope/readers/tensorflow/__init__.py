"""TensorFlow's SavedModels, frozen graphs (.pb) and graphs as text (.pbtxt), read without TensorFlow."""

from __future__ import annotations

import re

from opscope.errors import BadInput, of_file
from opscope.ir import Capture, Origin, Pools, Stage
from opscope.ir.capture import named_apart
from opscope.ir.pools import clean
from opscope.readers.pages import mapped
from opscope.readers.protobuf import Message, Reader, begins_like
from opscope.readers.source import Options, Source

from .graph import Model
from .schema import SCHEMA
from .text import parse

NAME = "tensorflow"
_SAVED = ("saved_model.pb", "saved_model.pbtxt")
_LARGEST_TEXT = 256 << 20
_MOST_GRAPHS = 100
_TEXT = re.compile(rb'\s*(?:#[^\n]*\s+)*(?:node\s*:?\s*\{\s*name\s*:\s*["\']|saved_model_schema_version\s*:|'
                   rb"library\s*\{|versions\s*\{|meta_graphs\s*\{)")  # fmt: skip


def match(source: Source) -> bool:
    if source.is_folder:
        return _inside(source) is not None
    head = source.head
    if _TEXT.match(head):
        return True
    saved = begins_like(head, source.size, SCHEMA, "SavedModel")
    if saved and 2 in saved and 1 in saved:
        return True
    found = begins_like(head, source.size, SCHEMA, "GraphDef")
    return bool(found) and 1 in found and _is_node(source)


def _is_node(source: Source) -> bool:
    """Whether the first field is a node: a name, and an operator in capitals."""
    return (
        re.match(rb"\x0a[\x04-\xff][\x00-\x7f]{0,4}?\x0a.[\x20-\x7e]{1,200}\x12.[A-Z_>]", source.head, re.DOTALL)
        is not None
    )


def _inside(source: Source) -> Source | None:
    if source.path is None:
        return None
    for name in _SAVED:
        path = source.path / name
        if path.is_file():
            return Source.of(path)
    return None


def read(source: Source, options: Options) -> Capture:
    file = (_inside(source) if source.is_folder else source) or source
    try:
        if _TEXT.match(file.head):
            text = file.read(_LARGEST_TEXT).decode("utf-8", "replace")
            is_saved = re.match(r"\s*(?:saved_model_schema_version|meta_graphs)", text) is not None
            message = parse(text, SCHEMA, "SavedModel" if is_saved else "GraphDef")
            return _saved(None, message) if is_saved else _frozen(None, message)
        with mapped(file) as (data, size):
            reader = Reader(data, SCHEMA)
            saved = begins_like(file.head, size, SCHEMA, "SavedModel")
            if saved and 1 in saved:
                return _saved(reader, reader.message("SavedModel", 0, size))
            return _frozen(reader, reader.message("GraphDef", 0, size))
    except BadInput as error:
        raise of_file(error, source.name, "not a readable TensorFlow graph") from None


def _frozen(reader: Reader | None, raw: Message) -> Capture:
    pools = Pools()
    model = Model(reader, pools, raw.get("library", {}).get("function", ()))
    if not raw.get("node"):
        raise BadInput("it has no node. It may be cut off: export or copy it again")
    graph = model.graph(raw["node"])
    producer = raw.get("versions", {}).get("producer")
    version = f"graph version {producer}" if producer else ""
    stages = [Stage("graph", graph, warnings=tuple(model.finish()))]
    return Capture(pools, stages, origin=Origin(NAME, NAME, version, "file"))


def _saved(reader: Reader | None, raw: Message) -> Capture:
    """Every signature is a stage: what it computes, with functions in place of their calls."""
    pools = Pools()
    stages: list[Stage] = []
    version = ""
    for meta in raw.get("meta_graphs", ())[:_MOST_GRAPHS]:
        told = meta.get("meta_info_def", {})
        version = version or str(told.get("tensorflow_version", ""))
        graph_def = meta.get("graph_def", {})
        library = graph_def.get("library", {}).get("function", ())
        nodes = graph_def.get("node", ())
        tags = ", ".join(told.get("tags", ()))
        listing = _signatures(meta, tags)
        by_name = {str(node.get("name", "")): node for node in nodes}
        made = 0
        for entry in meta.get("signature_def", ())[:_MOST_GRAPHS]:
            key, signature = str(entry.get("key", "")), entry.get("value", {})
            wanted = [one.get("value", {}).get("name", "") for one in signature.get("outputs", ())]
            needed = _needed(by_name, [text.partition(":")[0] for text in wanted])
            if not needed or key.startswith("__saved_model"):
                continue
            model = Model(reader, pools, library)
            graph = model.graph([node for node in nodes if node.get("name", "") in needed])
            stages.append(Stage(clean(key)[:200], graph, listings={"native": listing}, warnings=tuple(model.finish())))
            made += 1
        if not made and nodes:
            model = Model(reader, pools, library)
            stages.append(
                Stage(clean(tags) or "graph", model.graph(nodes), listings={"native": listing},
                      warnings=tuple(model.finish()))
            )  # fmt: skip
    stages = named_apart(stages)
    if not stages:
        raise BadInput("a SavedModel without a graph. It may be cut off: save or copy it again")
    return Capture(pools, stages, origin=Origin(NAME, NAME, clean(version)[:100], "file"))


def _needed(nodes: dict[str, Message], wanted: list[str]) -> set[str]:
    """The nodes that results follow from."""
    needed: set[str] = set()
    todo = [name for name in wanted if name in nodes]
    while todo:
        name = todo.pop()
        if name in needed:
            continue
        needed.add(name)
        for text in nodes[name].get("input", ()):
            base = text.lstrip("^").partition(":")[0]
            if base in nodes:
                todo.append(base)
    return needed


def _signatures(meta: Message, tags: str) -> str:
    lines = [f"tags: {tags}"]
    for entry in meta.get("signature_def", ()):
        signature = entry.get("value", {})
        inputs, outputs = (
            ", ".join(f"{one.get('key')} = {one.get('value', {}).get('name')}" for one in signature.get(side, ()))
            for side in ("inputs", "outputs")
        )
        lines.append(f"signature {entry.get('key')}: ({inputs}) -> ({outputs})"[:2000])
    return clean("\n".join(lines))[:100_000]
