"""A table of the user's own as columns: a CSV, TSV or Parquet file, Model Explorer's data by node, a data frame."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from opscope.analysis.own import Columns
from opscope.errors import BadInput, OpscopeError

_MOST_BYTES = 1 << 30


def columns_of(source: Any) -> tuple[str, Columns]:
    """What it is called, and its columns."""
    if isinstance(source, str | os.PathLike):
        path = Path(os.fspath(source))
        return path.name, read(path)
    given: Any = source  # what the checks below leave of its type says nothing
    if isinstance(source, Mapping):
        columns = cast("Mapping[Any, Sequence[Any]]", source)
        return "table", _even("table", {str(key): list(values) for key, values in columns.items()})
    if isinstance(source, Sequence) and all(isinstance(row, Mapping) for row in cast("Sequence[Any]", source)):
        return "table", _of_rows(cast("Sequence[Mapping[str, Any]]", source))
    if hasattr(given, "__arrow_c_stream__"):
        return "table", _of_arrow(given)
    if hasattr(given, "to_dict"):  # pandas
        return "table", _even("table", {str(k): list(v) for k, v in given.to_dict(orient="list").items()})
    raise OpscopeError(
        f"{type(given).__name__} is no table: give a CSV, TSV, Parquet or JSON file, a data frame, columns by name "
        "or a list of rows"
    )


def read(path: Path) -> Columns:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadInput(f"{path}: {path.stat().st_size:,} bytes are more than a table may have ({_MOST_BYTES:,})")
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    return parse(str(path), data)


def parse(path: str, data: bytes) -> Columns:
    """The columns of a file that is called so."""
    if data[:4] == b"PAR1":
        return _parquet(path, data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path}: neither Parquet nor text in UTF-8 (byte {error.start}): a table is .csv, .tsv, .parquet or .json"
        ) from None
    return node_data(path, text) if text.lstrip()[:1] in ("{", "[") else separated(path, text)


def as_csv(name: str, data: bytes) -> str:
    """Any such file as CSV: what the page itself cannot read."""
    columns = parse(name, data)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def separated(name: str, text: str) -> Columns:
    """CSV: commas, semicolons or tabs, whichever its first line has most of."""
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
    except csv.Error as error:
        raise BadInput(f"{name}: not a table of separated values ({error})") from None
    if len(rows) < 2 or len(rows[0]) < 2:
        raise BadInput(f"{name}: a table has a line of headers, at least two columns and a row (found: {first[:80]!r})")
    headers = rows[0]
    if len(set(headers)) < len(headers):
        twice = next(header for header in headers if headers.count(header) > 1)
        raise BadInput(f"{name}: two columns are called {twice!r}")
    for number, row in enumerate(rows[1:], 2):
        if len(row) > len(headers):
            raise BadInput(f"{name}: row {number} has {len(row)} fields, the headers {len(headers)}")
    return {header: [row[i] if i < len(row) else None for row in rows[1:]] for i, header in enumerate(headers)}


def node_data(name: str, text: str) -> Columns:
    """Model Explorer's data by node: `{"results": {node: {"value": 1.5}}}`, also by graph, also a list of such; or a
    list of rows."""
    try:
        given = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadInput(f"{name}: not JSON ({error})") from None
    if isinstance(given, list) and given and all(isinstance(row, dict) and "results" not in row for row in given):  # type: ignore[reportUnknownVariableType]
        return _of_rows(cast("list[Mapping[str, Any]]", given))
    rows: dict[str, dict[str, Any]] = {}
    headers: dict[str, None] = {}
    for title, results in _results(given):
        for node, said in results.items():
            entry = cast("dict[str, Any]", said) if isinstance(said, dict) else {"value": said}
            value = entry.get("value", entry.get("strValue"))
            headers[title] = None
            rows.setdefault(node, {})[title] = value
    if not rows:
        raise BadInput(f'{name}: no data by node: Model Explorer writes {{"results": {{node: {{"value": …}}}}}}')
    found: dict[str, list[Any]] = {"key": list(rows)}
    return {**found, **{title: [row.get(title) for row in rows.values()] for title in headers}}


def _results(given: Any, title: str = "value") -> list[tuple[str, dict[str, Any]]]:
    if isinstance(given, list):
        entries = cast("list[Any]", given)
        titles = [title if not i else f"{title}_{i + 1}" for i in range(len(entries))]
        return [pair for entry, own in zip(entries, titles, strict=True) for pair in _results(entry, own)]
    if not isinstance(given, dict):
        return []
    entry = cast("dict[str, Any]", given)
    results = entry.get("results")
    if isinstance(results, dict):
        return [(str(entry.get("name") or title), cast("dict[str, Any]", results))]
    return [pair for inner in entry.values() if isinstance(inner, dict | list) for pair in _results(inner, title)]


def _parquet(path: str, data: bytes) -> Columns:
    # The end says how long the description before it is; arro3 gives up with a panic where that is not so.
    if data[-4:] != b"PAR1" or not 0 < int.from_bytes(data[-8:-4], "little") <= len(data) - 12:
        raise BadInput(f"{path}: not a whole Parquet file: its end is missing")
    from arro3.io import read_parquet

    try:
        return _of_arrow(read_parquet(io.BytesIO(data)))
    except BadInput:
        raise
    except BaseException as error:  # a panic of arro3 is none of Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise BadInput(f"{path}: not a Parquet file that can be read ({error})") from None


def _of_arrow(source: Any) -> Columns:
    import arro3.core as ac

    table = ac.Table.from_arrow(source.read_all() if hasattr(source, "read_all") else source)
    return {name: _cells(table.column(name)) for name in table.column_names}


def _cells(column: Any) -> list[Any]:
    return [cell.as_py() for cell in column]


def _of_rows(rows: Sequence[Mapping[str, Any]]) -> Columns:
    headers = dict.fromkeys(str(key) for row in rows for key in row)
    return {header: [row.get(header) for row in rows] for header in headers}


def _even(name: str, columns: dict[str, list[Any]]) -> Columns:
    lengths = {header: len(values) for header, values in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{header} has {count}" for header, count in lengths.items())
        raise OpscopeError(f"{name}: columns of different lengths ({told})")
    return columns
