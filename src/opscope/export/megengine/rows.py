"""MegEngine's tables of statistics: rows of plain dicts with sums, shares and bars, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from opscope.ir import dtypes

Row = dict[str, Any]


class _Totals(NamedTuple):
    param_size: int
    param_dims: int
    flops: int
    act_size: int
    act_dims: int


class TotalStats(_Totals):
    """Sizes are in bytes, `dims` are numbers of elements. The five are MegEngine's own."""

    fused_flops: int = 0  # of modules that are fused for quantization, which MegEngine does not count


class ModuleStats(NamedTuple):
    """Lists of rows; the last one of each is the total."""

    params: list[Row]
    flops: list[Row]
    activations: list[Row]


# The names that MegEngine's own have.
TotalStats.__name__ = TotalStats.__qualname__ = "total_stats"
ModuleStats.__name__ = ModuleStats.__qualname__ = "module_stats"

PARAMS = ("name", "dtype", "shape", "mean", "std", "param_dim", "nbits", "size", "size_cum", "percentage", "size_bar")
FLOPS = ("name", "class_name", "input_shapes", "output_shapes", "flops", "flops_cum", "percentage", "bar")
SEEN = ("receptive_field", "stride")
ACTIVATIONS = ("name", "class_name", "dtype", "shape", "nbits", "act_dim", "size", "size_cum", "percentage", "size_bar")


def sizeof_fmt(number: float, suffix: str = "B") -> str:
    """
    >>> sizeof_fmt(1780), sizeof_fmt(9541, "OPs"), sizeof_fmt(445, "")
    ('1.738 KiB', '9.541 KOPs', '445.000 ')
    """
    scale = 1024.0 if suffix == "B" else 1000.0
    units = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi") if suffix == "B" else tuple(" KMGTPEZY")
    for unit in units:
        if abs(number) < scale or unit == units[-1]:
            return f"{number:3.3f} {unit.strip()}{suffix}"
        number /= scale
    raise AssertionError("not reached")


def param_row(name: str, dtype: Any, shape: Sequence[int], count: int, mean: str, std: str) -> Row:
    nbits = dtypes.bits_of(str(dtype)) or 0
    return {
        "dtype": dtype,
        "shape": tuple(shape),
        "mean": mean,
        "std": std,
        "param_dim": count,
        "nbits": nbits,
        "size": count * nbits // 8,
        "name": name,
    }


def activation_row(name: str, class_name: str, dtype: Any, shape: Sequence[int], count: int) -> Row:
    nbits = dtypes.bits_of(str(dtype)) or 0
    return {
        "dtype": dtype,
        "shape": tuple(shape),
        "act_dim": count,
        "nbits": nbits,
        "size": count * nbits // 8,
        "name": name,
        "class_name": class_name,
    }


def sum_sizes(rows: list[Row], dims: str, bar_length_max: int) -> tuple[int, int]:
    """(elements, bytes) of all rows; each gets what it adds up to and its share, and a total comes at the end."""
    most = max([row["size"] for row in rows], default=0)
    total_dims = total = 0
    for row in rows:
        total_dims += int(row[dims])
        total += int(row["size"])
        row["size_cum"] = sizeof_fmt(total)
    for row in rows:
        _share(row, row["size"], total, most, bar_length_max, "size_bar")
        row["size"] = sizeof_fmt(row["size"])
    rows.append({"name": "total", dims: total_dims, "size": sizeof_fmt(total)})
    return total_dims, total


def sum_flops(rows: list[Row], bar_length_max: int) -> int:
    most = max([row["flops_num"] for row in rows], default=0)
    total = 0
    for row in rows:
        total += int(row["flops_num"])
        row["flops_cum"] = sizeof_fmt(total, "OPs")
    for row in rows:
        _share(row, row["flops_num"], total, most, bar_length_max, "bar")
        row["flops"] = sizeof_fmt(row["flops_num"], "OPs")
    channels = sum(shape[1] if len(shape) > 1 else 0 for row in rows for shape in row["output_shapes"])
    rows.append({"name": "total", "flops": sizeof_fmt(total, "OPs"), "output_shapes": channels})
    return total


def _share(row: Row, part: float, total: float, most: float, longest: int, bar: str) -> None:
    row["ratio"] = part / total if total else 0.0
    row["percentage"] = f"{row['ratio'] * 100:.2f}%"
    row[bar] = "#" * (int(part / most * longest) if most else 0)


def finished(
    params: list[Row],
    flops: list[Row],
    activations: list[Row],
    *,
    which: tuple[bool, bool, bool],
    bar_length_max: int,
    logging: bool,
    has_input: bool,
    receptive_field: bool = False,
    ops: int | None = None,
    fused: int = 0,
) -> tuple[TotalStats, ModuleStats]:
    """Sums, and what is printed: the tables that were asked for, and a summary."""
    items: dict[str, Any] = {} if ops is None else {"#ops": ops}
    items["#params"] = len(params)
    param_dims = param_size = total_flops = act_dims = act_size = 0
    seen = SEEN if receptive_field else ()
    if which[0]:
        param_dims, param_size = sum_sizes(params, "param_dim", bar_length_max)
        if logging:
            known = any(row.get("mean") for row in params)
            print_table("param stats", params, [column for column in PARAMS if known or column not in ("mean", "std")])
    if which[1]:
        total_flops = sum_flops(flops, bar_length_max)
        if logging:
            print_table("flops stats", flops, (*FLOPS[:4], *seen, *FLOPS[4:]))
    if which[2]:
        act_dims, act_size = sum_sizes(activations, "act_dim", bar_length_max)
        if logging:
            columns = (*ACTIVATIONS[:4], "mean", "std", *ACTIVATIONS[4:]) if has_input else ACTIVATIONS
            print_table("activations stats", activations, columns)
    total = TotalStats(param_size, param_dims, total_flops, act_size, act_dims)
    total.fused_flops = fused
    if logging:
        print("summary")
        print(table([("item", "value"), *{**items, **summary(total, which)}.items()]))
    return total, ModuleStats(params, flops, activations)


def summary(total: TotalStats, which: tuple[bool, bool, bool] = (True, True, True)) -> Row:
    """The sums that were asked for, as they are printed."""
    found: Row = {}
    if which[0]:
        found["total_param_dims"] = sizeof_fmt(total.param_dims, "")
        found["total_param_size"] = sizeof_fmt(total.param_size)
    if which[1]:
        found["total_flops"] = sizeof_fmt(total.flops, "OPs")
        if total.fused_flops:
            note = "fused for quantization included: in total_flops, MegEngine counts them as nothing"
            found["total_flops, all modules"] = f"{sizeof_fmt(total.flops + total.fused_flops, 'OPs')} ({note})"
    if which[2]:
        found["total_act_dims"] = sizeof_fmt(total.act_dims, "")
        found["total_act_size"] = sizeof_fmt(total.act_size)
    if which[0] and which[1] and total.param_size:
        found["flops/param_size"] = f"{total.flops / total.param_size:3.3f}"
    return found


def print_table(title: str, rows: list[Row], columns: Sequence[str]) -> None:
    print(f"{title}:")
    print(table([columns, *([row.get(column, "") for column in columns] for row in rows)]))


def table(rows: Sequence[Sequence[Any]]) -> str:
    """Columns side by side between two lines, as MegEngine prints them."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = "  ".join("-" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([rule, *lines, rule])
