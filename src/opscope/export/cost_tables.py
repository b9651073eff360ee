"""Tables of costs as text: plain, Markdown, CSV, HTML; and the lines under them."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from opscope.analysis.costs.columns import Row, column_of
from opscope.analysis.costs.report import Report
from opscope.analysis.costs.rows import Rows
from opscope.analysis.costs.stats import GraphStats
from opscope.ir import widths

BAR = 16
_SI = ("", "k", "M", "G", "T", "P", "E")
LEFT = ("text", "bar")
_BETWEEN = "\0"  # no cell that is shown has one


# -- figures -------------------------------------------------------------------------------------------


def short(figure: float, unit: str = "") -> str:
    """Four digits and a letter: 1.814 G."""
    for letter in _SI:
        if abs(figure) < 999.95 or letter == _SI[-1]:
            digits = f"{figure:,}" if letter == "" and isinstance(figure, int) else f"{figure:.4g}"
            return f"{digits} {letter}{unit}".rstrip()
        figure = figure / 1000
    raise AssertionError


def seconds(figure: float) -> str:
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if figure >= scale:
            return f"{figure / scale:.3g} {unit}"
    return f"{figure * 1e9:.3g} ns" if figure else "0"


def share(figure: float) -> str:
    percent = 100 * figure
    return (
        ""
        if not percent
        else f"{percent:.0f} %"
        if percent >= 9.95
        else f"{percent:.1f} %"
        if percent >= 0.05
        else "· %"
    )


def cell(row: Row, column: str) -> str:
    """A figure as people read it. What is at least so much says so; nothing is an empty cell."""
    return _shower(column)(row)


def _shower(column: str) -> Callable[[Row], str]:
    """`cell` for one column; figures that come again and again are written once."""
    kind, mark = column_of(column).kind, _MARK_OF.get(column, "")
    if kind == "bar":
        return bar
    text = lru_cache(4096)(partial(_text, column, kind))

    def show(row: Row) -> str:
        figure = row.get(column)
        if figure is None:
            return ""
        if kind == "text":
            return str(figure)
        at_most = column == "causal" and bool(row.get("causal_unknown"))
        return text(figure, figure.__class__, bool(row.get(mark)), at_most)

    return show


def _text(column: str, kind: str, figure: Any, cls: type[Any], at_least: bool, at_most: bool) -> str:
    if isinstance(figure, str):
        return figure
    if kind == "number":
        return f"{figure:.4g}"
    if kind == "share":
        return share(figure)
    if kind == "seconds":
        return ("≥ " if at_least else "") + seconds(figure) if figure else ""
    if not figure and column not in ("node", "nan", "inf"):
        return "?" if at_least else ""
    if kind == "count":
        return f"{figure:,}"
    if kind == "ratio":
        return f"{figure:.3g}"
    if at_least and at_most:
        return "?"
    return ("≥ " if at_least else "≤ " if at_most else "") + short(figure, "B" if kind == "bytes" else "")


# Which figure of a row says that a column is a lower bound.
_MARK_OF = {
    "time": "time_unknown",
    **dict.fromkeys(("macs", "causal", "flops", "other", "forward", "backward"), "unknown"),
    **dict.fromkeys(("read", "written", "bytes"), "bytes_unknown"),
    **dict.fromkeys(("activations", "activation_bytes"), "memory_unknown"),
    "wire": "wire_unknown",
    **dict.fromkeys(("params", "param_bytes"), "params_unknown"),
}


def bar(row: Row) -> str:
    """█ for what runs in the module itself, ▒ for what runs in those inside it."""
    whole = row.get("share") or 0.0
    own = row.get("self") if "own" in row else whole
    full = min(round(BAR * whole), BAR)
    solid = min(round(BAR * (own or 0.0)), full)
    return "█" * solid + "▒" * (full - solid) or ("▏" if whole else "")


def name(row: Row, level: str = "  ") -> str:
    text = level * row.get("depth", 0) + str(row["name"])
    if row.get("class"):
        text += f" {row['class']}"
    return text + (f" ×{row['times']}" if row.get("times", 1) > 1 else "")


def cells(report: Report) -> tuple[list[str], list[list[str]], list[str]]:
    """Titles, rows, and the sums at the end."""
    titles, *rows, total = _lines(report)
    return titles, rows, total


def _lines(report: Report) -> Iterator[list[str]]:
    yield [report.title(column) for column in ("name", *report.columns)]
    cells_of = [_shower(column) for column in report.columns]
    for row in report.rows:
        yield [name(row), *[show(row) for show in cells_of]]
    yield ["total", *("" if column == "bar" else cell(report.total, column) for column in report.columns)]


# -- tables --------------------------------------------------------------------------------------------


def plain(report: Report, widest: int = 60) -> str:
    return "\n".join(plain_lines(report, widest))


def plain_lines(report: Report, widest: int = 60) -> Iterator[str]:
    kinds = ["text", *(column_of(column).kind for column in report.columns)]
    texts = [place for place, kind in enumerate(kinds) if kind == "text"]
    width: list[Callable[[str], int]] = [widths.width if kind == "text" else len for kind in kinds]  # of figures' signs
    fitted = [0] * len(kinds)
    table: list[str] = []  # each line as one text: there may be a million
    for line in _lines(report):
        for place in texts:
            line[place] = _clipped(line[place], widest)
        fitted = [max(most, wide(text)) for most, wide, text in zip(fitted, width, line, strict=True)]
        table.append(_BETWEEN.join(line))
    fill: list[Callable[[str, int], str]] = [
        widths.left if kind == "text" else str.ljust if kind in LEFT else str.rjust for kind in kinds
    ]

    def filled(line: str) -> str:
        cells = zip(fill, line.split(_BETWEEN), fitted, strict=True)
        return "  ".join([put(text, wide) for put, text, wide in cells]).rstrip()

    rule = "─" * (sum(fitted) + 2 * (len(fitted) - 1))
    yield filled(table[0])
    yield rule
    for number in range(1, len(table) - 1):
        line, table[number] = table[number], ""
        yield filled(line)
    if report.left_out:
        yield f"… and {report.left_out:,} more rows"
    yield rule
    yield filled(table[-1])


def markdown(report: Report) -> str:
    titles, rows, total = cells(report)
    left = [True, *(column_of(column).kind in LEFT for column in report.columns)]

    def line(texts: list[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in texts) + " |"

    named = [[name(row, "\u2003"), *texts[1:]] for row, texts in zip(report.rows, rows, strict=True)]
    rule = "|" + "|".join("---" if is_left else "---:" for is_left in left) + "|"
    strong = [f"**{text}**" if text else "" for text in total]
    return "\n".join([line(titles), rule, *map(line, named), line(strong)])


def comma_separated(report: Report) -> str:
    """Exact figures, for spreadsheets; no row of sums."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [column for column in report.columns if column != "bar"]
    tree = ["path", "class", "times", "depth"] if report.by == "module" else []
    writer.writerow(["name", *tree, *(c for c in columns if c not in tree)])
    for row in report.rows:
        figures = [row.get(column) for column in (*tree, *(c for c in columns if c not in tree))]
        writer.writerow([_safe(row["name"]), *map(_safe, figures)])
    return out.getvalue()


def _safe(figure: Any) -> Any:
    """A name in a file may hold anything; a spreadsheet takes =… for a formula."""
    return "'" + figure if isinstance(figure, str) and figure[:1] in ("=", "+", "-", "@", "\t", "\r") else figure


def html_table(report: Report, stats: GraphStats) -> str:
    titles, rows, total = cells(report)
    kinds = ["text", *(column_of(column).kind for column in report.columns)]
    head = "".join(
        f'<th style="text-align: {_align(kind)}">{html.escape(t)}</th>' for t, kind in zip(titles, kinds, strict=True)
    )
    body: list[str] = []
    for row, texts in zip(report.rows, rows, strict=True):
        found = [_html_name(row), *(_html_cell(row, t, k) for t, k in zip(texts[1:], kinds[1:], strict=True))]
        body.append(f"<tr>{''.join(found)}</tr>")
    sums = "".join(
        f'<th style="text-align: {_align(kind)}">{html.escape(t)}</th>' for t, kind in zip(total, kinds, strict=True)
    )
    more = f"<tr><td>… and {report.left_out:,} more rows</td></tr>" if report.left_out else ""
    notes = "".join(f"<div>{html.escape(line)}</div>" for line in summary(stats, report))
    return (
        f'<div class="opscope-stats"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}{more}</tbody>'
        f'<tfoot><tr>{sums}</tr></tfoot></table><div style="font-size: 90%; opacity: 0.8">{notes}</div></div>'
    )


def _align(kind: str) -> str:
    return "left" if kind in LEFT else "right"


def _html_name(row: Row) -> str:
    times = f" <b>×{row['times']}</b>" if row.get("times", 1) > 1 else ""
    cls = f' <span style="opacity: 0.6">{html.escape(row["class"])}</span>' if row.get("class") else ""
    indent = f"padding-left: {0.4 + 1.2 * row.get('depth', 0):.1f}em"
    return f'<td style="text-align: left; {indent}">{html.escape(str(row["name"]))}{cls}{times}</td>'


def _html_cell(row: Row, text: str, kind: str) -> str:
    if kind != "bar":
        return f'<td style="text-align: {_align(kind)}">{html.escape(text)}</td>'
    whole = 100 * (row.get("share") or 0.0)
    own = 100 * (row.get("self") or 0.0) if "own" in row else whole
    return (
        '<td style="min-width: 8em"><div style="height: 0.7em; background: linear-gradient(to right, '
        f'#1c7ed6 {own:.1f}%, #a5d8ff {own:.1f}% {whole:.1f}%, transparent {whole:.1f}%)"></div></td>'
    )


def _clipped(text: str, most: int) -> str:
    if text.isascii() and len(text) <= most and text.isprintable():
        return text
    clean = text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)
    return widths.cut(clean, most)


_MOST_GAPS = 12

# -- the lines under a table -----------------------------------------------------------------------------


CONVENTION = (
    "A MAC is one multiply-accumulate of a matrix product, convolution, attention or RNN; FLOPs = 2 × MACs. Other "
    "FLOPs (bias, norms, softmax, element-wise, pooling) are never added to them. Attention is dense, also under a "
    "mask. Bytes: each input read once, each output written once; views move none."
)


def summary(stats: GraphStats, report: Report | None = None) -> list[str]:
    return [" ".join(line.split()) for line in _summary(stats, report)]


def _summary(stats: GraphStats, report: Report | None) -> Iterator[str]:
    total, at_least = stats.total, "≥ " if stats.total.at_least else ""
    yield (
        f"Compute: {at_least}{short(total.macs, 'MACs')} = {at_least}{short(total.flops, 'FLOPs')}, and {at_least}"
        f"{short(total.other_flops, 'FLOPs')} of other operations{_by_phase(stats)}"
    )
    yield from _time_lines(stats)
    yield from _value_lines(stats)
    yield from _causal_lines(stats)
    each = [
        f"{at_least}{short(total.macs / count, 'MACs')} {word}"
        for count, word in ((total.samples, "per sample"), (total.tokens, "per token"))
        if count and count > 1 and total.macs
    ]
    if each:
        of = f"{total.samples} sample{'' if total.samples == 1 else 's'}" + (
            f", {total.tokens:,} tokens" if total.tokens else ""
        )
        yield f"Each: {', '.join(each)} ({of} in the first input)"
    yield from _parameter_lines(stats)
    yield from _memory_lines(stats)
    if total.bytes:
        more = "≥ " if total.bytes_at_least else ""
        intensity = f", {total.intensity:.3g} FLOPs per byte" if total.intensity else ""
        yield f"Traffic: {more}{short(total.read, 'B')} read and {more}{short(total.written, 'B')} written{intensity}"
    yield from _wire_lines(stats)
    if report is not None and report.by == "module" and _is_folded(report.rows):
        yield "×N: N modules with identical rows, shown once with their total"
    if stats.costs.inside.any():
        yield "Kernels: of operators that run in one kernel, what stays inside of it is neither read nor written"
    yield f"Convention: {CONVENTION}"
    if total.estimated:
        yield f"Estimated: the cost of {total.estimated:,} operator{'s' if total.estimated > 1 else ''}"
    unknown = stats.unknown_ops
    if unknown:
        yield (
            f"Unknown: {sum(unknown.values()):,} operators have no formula or no shapes, so totals are at least: "
            f"{_listed(unknown)}"
        )
    for gap in stats.gaps[:_MOST_GAPS]:
        yield f"Missing: {gap.sentence(stats.graph.pools)}, so totals are at least"
    if len(stats.gaps) > _MOST_GAPS:
        yield f"Missing: {len(stats.gaps) - _MOST_GAPS:,} other gaps"
    if stats.otherwise:
        listed = "; ".join(
            f"{count:,} {'are' if count > 1 else 'is'} {instead}"
            for instead, count in list(stats.otherwise.items())[:_MOST_GAPS]
        )
        yield f"Recorder: some operators run only because of it; without it, {listed}"
    for guess in stats.guesses:
        yield f"Guessed: {guess}"


def _listed(counts: Mapping[str, int]) -> str:
    listed = ", ".join(f"{name} ×{count:,}" if count > 1 else name for name, count in list(counts.items())[:12])
    return listed + (f" and {len(counts) - 12} other kinds" if len(counts) > 12 else "")


def _is_folded(rows: Sequence[Row]) -> bool:
    return bool(len(rows)) and isinstance(rows, Rows) and rows.largest("times") > 1


def _time_lines(stats: GraphStats) -> Iterator[str]:
    measured = stats.kernel_times or stats.times
    if measured is None:
        return
    known, count = int(measured.known.sum()), len(measured.known)
    what = "kernels" if measured is stats.kernel_times else "operators"
    missing = f"; {count - known:,} of {count:,} {what} were not measured" if known < count else ""
    yield f"Measured: {'≥ ' if missing else ''}{seconds(float(measured.seconds.sum()))} in {known:,} {what}{missing}"


def _value_lines(stats: GraphStats) -> Iterator[str]:
    """Where numbers went wrong first, in execution order."""
    for name, title in (("nan", "NaN"), ("inf", "Inf")):
        figure = stats.figures.get(name)
        if figure is None or not (bad := figure.known & (figure.numbers > 0)).any():
            continue
        makers = stats.graph.value_producer[bad]
        first = int(makers[makers >= 0].min()) if (makers >= 0).any() else -1
        node = stats.graph.node(first) if first >= 0 else None
        where = f", first at #{first} {node.op}{f' in {node.path}' if node.path else ''}" if node is not None else ""
        count = int(bad.sum())
        yield f"{title}: in {count:,} of {int(figure.known.sum()):,} measured tensors{where}"


def _causal_lines(stats: GraphStats) -> Iterator[str]:
    total, unknown = stats.total, int((~stats.costs.causal_known).sum())
    if total.causal_macs == total.macs and not unknown:
        return
    mark = "about " if total.at_least and unknown else "≥ " if total.at_least else "≤ " if unknown else ""
    why = f"; of {unknown:,} attention operator{'s' if unknown > 1 else ''} the mask is not known" if unknown else ""
    yield f"Causal: {mark}{short(total.causal_macs, 'MACs')} if attention computes only what causal masks show{why}"


def _wire_lines(stats: GraphStats) -> Iterator[str]:
    total = stats.total
    if not total.wire and not total.wire_at_least:
        return
    each = ", ".join(f"{short(sent, 'B')} {name}" for name, sent in stats.wire_by_dimension.items() if sent)
    missing = int((~stats.costs.wire_known).sum())
    why = f"; {missing:,} operators do not say to how many ranks they send" if missing else ""
    more = "≥ " if missing else ""
    yield f"Wire: {more}{short(total.wire, 'B')} sent to other ranks{f' ({each})' if each else ''}{why}"


def _by_phase(stats: GraphStats) -> str:
    counted = {phase: row["macs"] for phase, row in stats.phases.items() if row["macs"]}
    if len(counted) < 2:
        return ""
    return " (MACs: " + ", ".join(f"{phase} {short(macs)}" for phase, macs in counted.items()) + ")"


def _parameter_lines(stats: GraphStats) -> Iterator[str]:
    found = stats.parameters
    if not found.each:
        return
    parts = [f"{found.count:,}"]
    if found.trainable is not None and found.frozen:
        parts.append(f"{found.trainable:,} trainable, {found.frozen:,} frozen")
    elif found.trainable is not None:
        parts.append("all trainable")
    dtypes = ", ".join(f"{short(size, 'B')} {dtype}" for dtype, size in found.bytes_by_dtype.items())
    unknown = f", and {found.unknown} of unknown size" if found.unknown else ""
    yield f"Parameters: {'≥ ' if found.at_least else ''}{', '.join(parts)} ({dtypes}){unknown}"
    if found.tied:
        yield "Tied: " + "; ".join(" = ".join(names) for names in found.tied[:6])
    if found.unused:
        more = f" and {len(found.unused) - 6} more" if len(found.unused) > 6 else ""
        yield f"Unused: {', '.join(found.unused[:6])}{more}"
    if perhaps := found.perhaps_unused:
        more = f" and {len(perhaps) - 6} more" if len(perhaps) > 6 else ""
        but = "some are missing" if found.may_be_used else "the model's code takes them"
        yield f"Perhaps unused: no operator of the graph reads {', '.join(perhaps[:6])}{more}, but {but}"


def _memory_lines(stats: GraphStats) -> Iterator[str]:
    memory, total = stats.memory, stats.total
    saved = f", of which {short(total.saved_bytes, 'B')} are kept for the backward pass" if total.saved_bytes else ""
    if total.activations_at_least and not total.activations:
        yield "Activations: ? numbers, of unknown size"
    else:
        more = "≥ " if total.activations_at_least else ""
        yield (
            f"Activations: {more}{short(total.activations)} numbers, {more}{short(total.activation_bytes, 'B')}{saved}"
        )
    if not memory.peak_bytes:
        return
    classes = ", ".join(
        f"{short(size, 'B')} {cls}" for cls, size in sorted(memory.at_peak().items(), key=lambda i: -i[1])
    )
    node = stats.graph.node(memory.peak_at)
    where = f" in {node.path}" if node.path else ""
    yield f"Peak memory: at least {short(total.peak_bytes, 'B')} at #{node.index} {node.op}{where} ({classes})"
