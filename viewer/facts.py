"""Write src/wire/facts.ts: what Python and the page must agree on, as opscope.ir declares it.

`make viewer` runs it; with --check, it only compares, as the viewer lane does.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# The enumerations, and what TypeScript calls a member of each.
ENUMERATIONS = {
    "PHASES": "Phase",
    "ROLES": "Role",
    "HOW": "How",
    "MEMORY_CLASSES": "MemoryClass",
    "CHANGE_CLASSES": "ChangeClass",
    "EVIDENCE": "Evidence",
    "GAP_TOUCHES": "GapTouches",
    "FAMILIES": "Family",
    "LINK_KINDS": "LinkKind",
    "GROUP_KINDS": "GroupKind",
    "LISTING_KINDS": "ListingKind",
    "EVENT_KINDS": "EventKind",
    "TRACK_KINDS": "TrackKind",
    "SAVING_KINDS": "SavingKind",
}
TARGET = HERE / "src" / "wire" / "facts.ts"


def text() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    from opscope import wire
    from opscope.ir import attributes, chains, dtypes, enumerations, facts, measurements, spellings

    yield "// What Python and the page agree on: generated from src/opscope/ir by `make viewer`. Do not edit."
    yield ""
    yield f"export const FILE_VERSION = {wire.VERSION};"
    yield ""
    yield "/** A chain of scopes that is longer than both ends together is printed as these; a label at most so long. */"
    yield f"export const CHAIN_ENDS = {chains.ENDS};"
    yield f"export const LONGEST_LABEL = {chains.LONGEST_LABEL};"
    yield ""
    yield "/** Counts of exponents: ranges of so many powers of two, from 2 to this one on. */"
    yield f"export const EXPONENTS = {{ width: {measurements.WIDTH}, lowest: {measurements.LOWEST} }};"
    for name, member in ENUMERATIONS.items():
        yield ""
        yield f"export const {name} = {_array(getattr(enumerations, name))} as const;"
        yield f"export type {member} = (typeof {name})[number];"
    yield ""
    yield "/** Bits of one element, by every spelling of a dtype in lower case; only dtypes of a fixed size. */"
    yield "export const DTYPE_BITS: Readonly<Record<string, number>> = {"
    for name, dtype in dtypes.names().items():
        if dtype.bits is not None:
            yield f"  {name}: {dtype.bits},"
    yield "};"
    yield ""
    yield "/** What a spelling may have around the name of a dtype: whose it is, `tensor(…)`, the lanes of a vector. */"
    patterns = {"prefix": dtypes.PREFIX, "around": dtypes.AROUND, "vector": dtypes.VECTOR}
    yield "export const DTYPE_PATTERNS = {"
    for name, pattern in patterns.items():
        yield f"  {name}: /{pattern.pattern}/,"
    yield "};"
    yield ""
    yield f"export const MOST_LANES = {dtypes.MOST_LANES}; // of a vector"
    yield ""
    yield "/** Measured figures of a tensor: columns of `values`, and fields of the search language. */"
    yield f"export const VALUE_FIGURES = {_array(facts.VALUE_FIGURES)} as const;"
    yield ""
    yield "/** Units of time, in seconds. */"
    yield f"export const TIME_UNITS: Readonly<Record<string, number>> = {_object(facts.TIME_UNITS)};"
    yield ""
    yield "/** Kinds of facts; a column is named as in its declaration. */"
    yield "export const FACTS = {"
    for fact in facts.FACTS.values():
        yield f"  /** {fact.doc} */"
        columns = ", ".join(f"{_key(field.name)}: {_quoted('column ' + field.name)}" for field in fact.fields)
        yield f"  {fact.name}: {{ name: {_quoted(fact.name)}, by: {_array(fact.by)}, of: {_quoted(fact.of)}, columns: {{ {columns} }} }},"
    yield "} as const;"
    yield ""
    yield "/** Headers of a user's table: those that say what a row is about, and those that are words for an operator. */"
    keys = ", ".join(f"{key}: {_array(names)}" for key, names in facts.OWN_KEYS.items())
    yield f"export const OWN_KEYS = {{ {keys} }} as const;"
    yield f"export const OWN_LABELS: readonly string[] = {_array(facts.OWN_LABELS)};"
    yield ""
    yield "/** Attributes that opscope itself writes. */"
    names = {name: value for name, value in vars(attributes).items() if name.isupper()}
    yield f"export const ATTRIBUTES = {_object(names)} as const;"

    yield ""
    yield "/** How frameworks spell what the page recognises. */"
    yield "export const SPELLINGS = {"
    for name, value in vars(spellings).items():
        if name.isupper() and not isinstance(value, tuple):
            yield f"  {name}: {_spelling(value)},"
    yield "} as const;"


def _spelling(value: Any) -> str:
    if isinstance(value, re.Pattern):
        return f"/{value.pattern}/"  # without `/` outside a class, which JavaScript would take for the end
    return _quoted(value)


def _array(names: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_quoted, names))}]"


def _object(entries: Any) -> str:
    return "{ " + ", ".join(f"{_key(key)}: {_value(value)}" for key, value in entries.items()) + " }"


def _value(value: str | float) -> str:
    return _quoted(value) if isinstance(value, str) else f"{value:g}".replace("e-0", "e-")


def _key(name: str) -> str:
    return name if name.isidentifier() else _quoted(name)


def _quoted(text: str) -> str:
    return "'" + json.dumps(text, ensure_ascii=False)[1:-1].replace("'", "\\'") + "'"


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent / "src"))
    if "--check" not in sys.argv:
        TARGET.write_text(text(), encoding="utf-8")
    elif TARGET.read_text(encoding="utf-8") != text():
        sys.exit(f"{TARGET}: not what opscope.ir declares: run `make viewer`")
