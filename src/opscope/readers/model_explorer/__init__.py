"""Model Explorer's graph JSON: `{graphs}` or `{graphCollections}`.

Each graph is a stage, but one that a single node names in `subgraphIds` is the body of that node.
Namespaces become scopes, edges become uses of the outputs that they name. What has no place in our model
(styles, metadata that we do not know) is kept in the attribute `modelExplorer` of its node.
"""

from __future__ import annotations

import re

from opscope.errors import BadInput
from opscope.ir import Capture, Origin
from opscope.readers import json_text
from opscope.readers.source import Options, Source

from .graph import capture
from .raw import graphs
from .texts import number

NAME = "model-explorer"

_STARTS = re.compile(rb'"(graphs|graphCollections)"\s*:\s*\[')
_BARE = re.compile(rb'"(incomingEdges|namespace|outputsMetadata)"\s*:')


def match(source: Source) -> bool:
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] not in (b"{", b"["):
        return False
    if b'"arguments"' in head:  # Hidet writes {"graphs": [{"inputs": [{"arguments": … for its own viewer
        return False
    return _STARTS.search(head) is not None or (_BARE.search(head) is not None and b'"nodes"' in head)


def read(source: Source, options: Options) -> Capture:
    try:
        raws, ours = graphs(json_text.parse(source.read(json_text.LARGEST), parse_int=number))
        return capture(raws, ours, Origin(format=NAME, how="file"))
    except BadInput as error:
        raise error.named(source.name, "not a Model Explorer graph") from None
