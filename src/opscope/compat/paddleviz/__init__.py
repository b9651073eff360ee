"""paddleviz's `make_graph`, with true edges, parameter names and a label on every edge.

    from opscope.compat.paddleviz import make_graph

    y = model(x)
    y.sum().backward()
    make_graph(y, dpi="600").render("viz-result.gv", format="png", view=False)

`make_graph` is called after `backward()`, when it is too late to look at gradients. So importing this module makes
every backward pass from then on watched, by hooks that only look and are removed when the pass ends; `off()` ends
that, `on()` begins it again. No environment variable, no log and no other process is needed.
"""

from __future__ import annotations

from opscope.tracers.paddle.watching import off, on

from .drawing import make_graph

__all__ = ["make_graph", "off", "on"]

on()
