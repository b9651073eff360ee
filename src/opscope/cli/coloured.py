"""A table of costs in a terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from opscope.analysis.costs.columns import Row, column_of
from opscope.analysis.costs.report import Report
from opscope.analysis.costs.stats import GraphStats
from opscope.export import cost_tables
from opscope.ir.widths import width as width_of

from .describe import clipped, console

_STYLES = {"bytes": "cyan", "text": "dim", "count": "dim"}
_GAP = 2
_NARROWEST = 24  # of the name column


def print_table(stats: GraphStats, report: Report) -> None:
    out = console()
    titles, rows, total = cost_tables.cells(report)
    widths = _fitted(report, [titles, *rows, total], out.width)
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        show_footer=True,
        header_style="bold",
        footer_style="bold",
    )
    shown = [i for i, width in enumerate(widths) if width]
    for i in shown:
        column = report.columns[i - 1] if i else "name"
        kind = column_of(column).kind
        table.add_column(
            Text(titles[i]),
            Text(total[i]),
            justify="left" if kind in cost_tables.LEFT else "right",
            style="" if column in ("name", "macs", "flops") else _STYLES.get(kind, ""),
            width=widths[i],
            no_wrap=True,
            overflow="ellipsis",
        )
    for row, texts in zip(report.rows, rows, strict=True):
        table.add_row(*(_cell(report, row, i, texts[i]) for i in shown))
    out.print(table)
    if report.left_out:
        out.print(Text(f"… and {report.left_out:,} more rows", style="dim"))
    out.print()
    for line in cost_tables.summary(stats, report):
        word, _, rest = line.partition(": ")
        is_warning = word in ("Unknown", "Missing", "Perhaps unused", "Guessed", "Estimated")
        text = Text(f"{word}: " if rest else line, style="bold yellow" if is_warning else "bold" if rest else "dim")
        text.append(clipped(rest, 2000), style="dim not bold" if word == "Convention" else "not bold")
        out.print(text)


def _fitted(report: Report, lines: list[list[str]], width: int) -> list[int]:
    """Text columns shrink before figures, which are never cut; the bar is dropped if it does not fit. 0: left out."""
    widths = [max(width_of(line[i]) for line in lines) for i in range(len(lines[0]))]
    texts = [0, *(i for i, column in enumerate(report.columns, 1) if column_of(column).kind == "text")]
    if "bar" in report.columns and _over(widths, width) > sum(max(widths[i] - _NARROWEST, 0) for i in texts):
        widths[report.columns.index("bar") + 1] = 0
    while _over(widths, width) > 0:
        widest = max(texts, key=lambda i: widths[i])
        if widths[widest] <= 8:
            break
        widths[widest] -= 1
    return widths


def _over(widths: list[int], width: int) -> int:
    return sum(w + _GAP for w in widths if w) - width


def _cell(report: Report, row: Row, i: int, text: str) -> Text:
    if not i:
        return _name(row)
    if report.columns[i - 1] == "bar":
        return _bar(text)
    found = Text(clipped(text, 200))
    if text in ("unknown", "?"):
        found.stylize("bold red")
    elif text == "estimated" or text.startswith("≥"):
        found.stylize("yellow")
    return found


def _name(row: Row) -> Text:
    text = Text("  " * row.get("depth", 0) + clipped(row["name"], 80))
    if row.get("class"):
        text.append(f" {clipped(row['class'], 40)}", style="dim")
    if row.get("times", 1) > 1:
        text.append(f" ×{row['times']}", style="bold magenta")
    return text


def _bar(text: str) -> Text:
    own = text.count("█") + text.count("▏")
    bar = Text(text.replace("▒", "█"), style="dodger_blue1")
    bar.stylize("grey50", own)
    return bar
