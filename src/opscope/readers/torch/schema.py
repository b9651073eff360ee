"""Small parts of torch's export schema (torch/_export/serde/schema.py), as they are in the JSON.

Every argument is an object with one key that says its kind, such as `{"as_tensor": {"name": "relu"}}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from opscope.errors import BadInput
from opscope.ir.pools import Dim

from .names import EXPORT_DTYPES, EXPORT_LAYOUTS, EXPORT_MEMORY_FORMATS
from .symbols import readable

Json = Mapping[str, Any]
LARGEST_DIM = 1 << 62


def object_at(value: object, where: str) -> Json:
    if not isinstance(value, dict):
        raise BadInput(f"{where} is missing or no object; the file is damaged: save it again")
    return cast("Json", value)


def items(value: object) -> list[Json]:
    """The objects of a list; what is not an object has no meaning there."""
    if not isinstance(value, list):
        return []
    return [item for item in cast("list[Any]", value) if isinstance(item, dict)]


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def dtype(number: object) -> str:
    return EXPORT_DTYPES.get(number, "") if isinstance(number, int) else ""


def union(value: object) -> tuple[str, Any]:
    """The kind and the content of an object with one key."""
    if isinstance(value, dict):
        for key, content in cast("dict[str, Any]", value).items():
            return key, content
    return "", None


def spec_of(value: object) -> tuple[str, Json]:
    """The kind of an input or output, and what is said of it."""
    kind, content = union(value)
    return kind, cast("Json", content) if isinstance(content, dict) else {}


def flat(argument: object) -> Iterator[tuple[str, object]]:
    """The single values of an argument that may be a list."""
    kind, content = union(argument)
    if isinstance(content, list):
        for item in cast("list[object]", content):
            if isinstance(item, list):
                yield from ((kind, inner) for inner in cast("list[object]", item))
            elif isinstance(item, dict) and "as_tensor" in item:
                yield kind, cast("Json", item)["as_tensor"]
            elif isinstance(item, dict) and "as_none" in item:
                yield "as_none", item
            else:
                yield kind, item
    else:
        yield kind, content


def name_of(content: object) -> str:
    """`{"name": …}`, `{"as_name": …}`."""
    if not isinstance(content, dict):
        return ""
    entry = cast("Json", content)
    return string(entry.get("name")) or string(entry.get("as_name"))


def name_in(argument: object) -> str:
    """The name in a spec's argument, with or without the kind around it."""
    return name_of(argument) or name_of(union(argument)[1])


def dim(size: object) -> Dim:
    kind, content = union(size)
    if kind == "as_int" and type(content) is int and 0 <= content < LARGEST_DIM:
        return content
    return expression(size) or None


def expression(entry: object) -> str:
    kind, content = union(entry)
    if kind == "as_expr" and isinstance(content, dict):
        return readable(string(cast("Json", content).get("expr_str")))
    return "" if content is None or isinstance(content, dict | list) else str(content)


def plain(kind: str, content: Any) -> Any:
    """An argument that is no tensor, as plain data."""
    if kind == "as_none":
        return None
    if kind in _ENUMS:
        return _ENUMS[kind].get(content, content) if isinstance(content, int) else content
    if kind == "as_device" and isinstance(content, dict):
        entry = cast("Json", content)
        index = entry.get("index")
        return f"{entry.get('type')}:{index}" if isinstance(index, int) else string(entry.get("type"))
    if kind == "as_complex" and isinstance(content, dict):
        return f"{content.get('real')}+{content.get('imag')}j"
    return content


_ENUMS: dict[str, dict[int, str]] = {
    "as_scalar_type": EXPORT_DTYPES,
    "as_layout": EXPORT_LAYOUTS,
    "as_memory_format": EXPORT_MEMORY_FORMATS,
}
