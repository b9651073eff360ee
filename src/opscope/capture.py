"""Capture as users hold it: the data of `ir.Capture`, with what one wants to do with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from opscope import ir

if TYPE_CHECKING:
    import arro3.core as ac

    from opscope.analysis.diff.report import Compared
    from opscope.analysis.near import NearMiss
    from opscope.analysis.origins import Origin
    from opscope.analysis.own import Joined
    from opscope.analysis.savings import Saving
    from opscope.statistics import Stats


class Capture(ir.Capture):
    """What was captured from one model or file."""

    @classmethod
    def of(cls, data: ir.Capture) -> Capture:
        """The same capture (nothing is copied) with the methods of this class."""
        if isinstance(data, cls):
            return data
        return cls(**{field.name: getattr(data, field.name) for field in fields(ir.Capture)})

    def fill(self, other: ir.Capture) -> None:
        """Take over what a recording brought: `with opscope.record(…) as cap` gives `cap` before it is known."""
        for field in fields(ir.Capture):
            setattr(self, field.name, getattr(other, field.name))

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write to a file; its ending says the format: .opscope, .html (one page that works offline), .dot,
        .mmd, .json (Model Explorer), .parquet (a folder), .svg, .png, .pdf (docs/pictures.md)."""
        from opscope.export import registry

        registry.export(self, path, **options)

    def find(self, query: str, stage: str | None = None) -> list[ir.Node]:
        """The operators that a query finds, in execution order; docs/find.md describes the language.

        >>> cap.find("op:conv scope:layer4 phase:backward")              # doctest: +SKIP
        >>> cap.find("matmul -> * -> softmax")                           # doctest: +SKIP
        """
        from opscope.analysis.search.conditions import Measured
        from opscope.analysis.search.find import find

        chosen = self.stage(stage)
        measured = Measured.of(self, self.stages.index(chosen))
        found = find(chosen.graph, query, self.origin.framework, measured)
        return [chosen.graph.node(index) for index in found.tolist()]

    def bind(self, sizes: Mapping[str, int]) -> Capture:
        """The same capture with numbers for open sizes: symbols by their names, sizes without one by the input and its
        axis, or all of these at once as "?". What follows from them is then exact.

        >>> cap.bind({"s77": 4}).stats()                                 # doctest: +SKIP
        >>> cap.bind({"x[0]": 4}).stats()                                # doctest: +SKIP
        """
        from opscope.analysis.binding import bind

        return bind(self, sizes)

    def join(self, profile: str | os.PathLike[str]) -> Capture:
        """The same capture with the times of a measured profile of the same program: a Chrome trace of
        `torch.profiler`; or with what a snapshot of `torch.cuda.memory` says was alive at its peak. docs/profiles.md
        says how operators, kernels and memory are found, and what is left over.

        >>> cap.join("trace.json.gz").stats()                            # doctest: +SKIP
        """
        from pathlib import Path

        from opscope.analysis.joining import join
        from opscope.readers import profiles

        held = profiles.allocations_of(Path(profile))
        if held is not None:
            from opscope.analysis.joining.by_size import join_memory

            return join_memory(self, held, str(profile))
        measured = profiles.profile_of(Path(profile))
        if measured is None:
            raise profiles.not_taken(Path(profile), self.origin.format)
        return join(self, measured, str(profile))

    def stats(self, stage: str | None = None, *, sizes: Mapping[str, int] | None = None) -> Stats:
        """What it costs: parameters, FLOPs, activations, memory, bytes; docs/stats.md says how they are counted.

        >>> print(cap.stats())                                           # doctest: +SKIP
        >>> cap.stats().by_op()                                          # doctest: +SKIP
        >>> cap.stats(sizes={"s77": 4})                                  # doctest: +SKIP
        """
        from opscope.statistics import of_capture

        return of_capture(self.bind(sizes or {}), stage)

    def savings(self, device: str | None = None) -> list[Saving]:
        """Where time could be won in a measured run, most first: kernels that are far from the device's peaks, small
        ones, conversions, copies, and time in which the device waited. Without `device` (`"h200"`), it is the one that
        the profile names; docs/profiles.md has the rules.

        >>> for row in cap.join("trace.json.gz").savings()[:3]:           # doctest: +SKIP
        ...     print(row.kind, row.name, row.seconds, row.most, row.why)
        """
        from opscope.analysis.costs.devices import device as device_named
        from opscope.analysis.savings import savings

        return savings(self, device_named(device) if device is not None else None)

    def utilization(self, device: str | None = None) -> dict[str, Any] | None:
        """What a measured step made of its device: MFU, bandwidth, and the least time of the same kernels. None:
        nothing was measured on a device.

        >>> cap.join("trace.json.gz").utilization()["mfu"]                # doctest: +SKIP
        0.3782
        """
        from opscope.analysis.costs.devices import device as device_named
        from opscope.analysis.utilization import utilization

        return utilization(self, device_named(device) if device is not None else None)

    def origins(self, stage: str | None = None, *, absorbed: bool = False) -> list[Origin]:
        """Where numbers that are not finite were born, the first first: the operators that made NaN or infinite numbers
        of finite ones, and the parameters and inputs that came with them. Record with `values="stats"`. Those that
        went nowhere, because what read them made finite numbers of it, are told with `absorbed=True`.

        >>> print(cap.origins()[0])                                      # doctest: +SKIP
        nan: aten.div.Tensor in model/norm (forward) at model.py:31
        """
        from opscope.analysis.origins import origins

        return origins(self, self.stages.index(self.stage(stage)), absorbed=absorbed)

    def near_misses(self, stage: str | None = None) -> list[NearMiss]:
        """What came close: numbers near the end of their type, numbers that a type lost, gradients far larger than the
        others. Record with `values="stats"`.

        >>> print(cap.near_misses()[0])                                  # doctest: +SKIP
        overflow: aten.mul.Tensor in model/head (forward) at model.py:31: 0.4 powers of two from overflow
        """
        from opscope.analysis.near import near_misses

        return near_misses(self, self.stages.index(self.stage(stage)))

    def stage_diffs(self) -> list[Compared]:
        """What each stage changed: `before`, `after` (names of stages), `diff`, and the `seconds` that it took.

        >>> for step in cap.stage_diffs():                               # doctest: +SKIP
        ...     print(step.after, step.diff)
        """
        from opscope.diffing import along_stages

        return along_stages(self)

    def add_table(self, table: Any, name: str | None = None, stage: str | None = None) -> Joined:
        """Join figures of your own to operators and modules, to colour, sort, add up and search by.

        `table` is a CSV, TSV, Parquet or JSON file (also Model Explorer's data by node), a data frame, columns by name
        or a list of rows. A column `node` (the number of an operator), `path` (of a module) or `name` says which one a
        row is about. The answer says which rows found no place. Without `stage`, it is the one that most rows fit.

        >>> cap.add_table("latency.csv")                                 # doctest: +SKIP
        >>> cap.add_table({"path": ["layer1", "layer2"], "error": [0.1, 0.4]})   # doctest: +SKIP
        >>> cap.find("error:>0.2")                                       # doctest: +SKIP
        """
        from opscope.analysis.own import join
        from opscope.tables import columns_of

        title, columns = columns_of(table)
        number = None if stage is None else self.stages.index(self.stage(stage))
        return join(self, name or title, columns, number)

    def show(self, name: str = "capture", *, browser: bool = True) -> str:
        """Open the interactive page in the browser and return its address.

        The page is served on this machine only, from a thread, as long as Python runs. Over SSH no browser is
        opened: forward the port of the address (`ssh -L`) and open it where you sit.
        """
        from opscope.opening import from_bytes
        from opscope.server import background, over_ssh
        from opscope.tables import as_csv

        server = background(from_bytes, as_csv)
        url = server.url([server.add(name, self, local=True)])
        if browser and not over_ssh():
            import webbrowser

            webbrowser.open(url)
        return url

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """In a notebook a capture shows itself."""
        from opscope.export import notebook

        return {"text/plain": repr(self), "text/html": notebook.render(self)}

    def _repr_html_(self) -> str:
        from opscope.export import notebook

        return notebook.render(self)

    def arrow(self, table: str = "nodes", stage: str | None = None) -> ac.Table:
        """A table of the capture as Arrow: nodes, values, uses, scopes, links, groups, members, or a stored one.

        DuckDB, Polars and pandas read it through the Arrow PyCapsule interface; numbers are not copied.

        >>> import polars as pl                                          # doctest: +SKIP
        >>> pl.DataFrame(cap.arrow("nodes")).group_by("op").len()        # doctest: +SKIP
        """
        from opscope.export import frames

        return frames.to_arrow(frames.frame(self, table, stage))

    def to_pandas(self, table: str = "nodes", stage: str | None = None) -> Any:
        """The same tables as a pandas DataFrame (needs pandas: `pip install opscope[pandas]`)."""
        from opscope.export import frames

        return frames.to_pandas(frames.frame(self, table, stage))

    def text(self) -> str:
        """The readable dump that `opscope ir` prints."""
        from opscope.ir.text import dump

        return dump(self)

    def __repr__(self) -> str:
        origin = " ".join(part for part in (self.origin.framework, self.origin.version) if part)
        sizes = ", ".join(f"{stage.name}: {stage.graph.n_nodes} nodes" for stage in self.stages[:4])
        more = f", and {len(self.stages) - 4} more stages" if len(self.stages) > 4 else ""
        return f"<opscope.Capture {origin or 'unknown origin'} ({sizes or 'no stage yet'}{more})>"
