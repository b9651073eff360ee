"""The HTML around the viewer: served, in one file, or in a notebook cell. The page itself is viewer.js, and engine.js
is its worker.

The page always works on the bytes of .opscope files. It reads what to open from the JSON in
`#opscope-config`: a served page fetches each capture from its `url`, one in a file has the bytes in the
element that `data` names.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from opscope import wire
from opscope.analysis.costs.devices import described as devices
from opscope.errors import OpscopeError
from opscope.ir import Capture

_LONGEST_TITLE = 200

# Nothing is loaded from anywhere else and nothing is sent anywhere: not even by what a capture smuggles in.
# Styles may be inline, because the viewer sets colours and positions on elements.
_POLICY = (
    "default-src 'none'; script-src {script}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src data:; connect-src {connect}; worker-src 'self' blob:; base-uri 'none'; form-action 'none'"
)
SERVED_POLICY = _POLICY.format(script="'self'", connect="'self'") + "; frame-ancestors 'none'"


ASSETS = ("viewer.js", "viewer.css", "engine.js")


def asset(name: str) -> bytes:
    """A file of the page, as built from viewer/."""
    file = files("opscope") / "_viewer" / name
    if not file.is_file():
        raise OpscopeError(
            f"the page's {name} is not in this installation: in a clone, run `make viewer`; "
            "otherwise install opscope again"
        )
    return file.read_bytes()


def capture_bytes(capture: Capture) -> bytes:
    """The .opscope file of an annotated capture, which is what the page works on."""
    out = io.BytesIO()
    wire.write(capture, out)
    return out.getvalue()


def served(captures: Sequence[dict[str, str]], title: str, token: str) -> str:
    """The page of the server: script, style and captures are fetched, each with the token."""
    config = {
        "mode": "server",
        "engine": f"engine.js?token={token}",
        "token": token,
        "captures": list(captures),
        "title": title,
        "devices": devices(),
    }
    return _document(
        title,
        head=f'<link rel="stylesheet" href="viewer.css?token={token}">',
        body=[_config(config), f'<script id="opscope-js" src="viewer.js?token={token}"></script>'],
    )


def one_file(
    captures: Sequence[tuple[str, bytes]],
    title: str,
    *,
    mode: Literal["file", "notebook"] = "file",
    height: int | None = None,
) -> str:
    """A page that holds everything: captures as (name, .opscope bytes), script and style."""
    script = _inline_script(asset("viewer.js").decode("utf-8"))
    style = asset("viewer.css").decode("utf-8").replace("</", "<\\/")
    config: dict[str, Any] = {
        "mode": mode,
        "captures": [{"name": name, "data": f"capture-{i}"} for i, (name, _) in enumerate(captures)],
        "title": title,
        "devices": devices(),
    }
    if height is not None:
        config["height"] = height
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = _POLICY.format(script=f"'sha256-{digest}'", connect="blob: data:")
    data = [
        f'<script id="capture-{i}" type="application/octet-stream+base64">{base64.b64encode(content).decode()}</script>'
        for i, (_, content) in enumerate(captures)
    ]
    engine = base64.b64encode(_packed(asset("engine.js"))).decode()
    data.append(f'<script id="opscope-engine" type="text/javascript+deflate+base64">{engine}</script>')
    return _document(
        title,
        head=f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>',
        body=[_config(config), *data, f'<script id="opscope-js">{script}</script>'],
    )


def _document(title: str, head: str, body: Sequence[str]) -> str:
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        '<link rel="icon" href="data:,">',  # else browsers ask for /favicon.ico
        f"<title>{html.escape(_plain(title))}</title>",
        head,
        "</head>",
        "<body>",
        '<div id="opscope"></div>',
        *body,
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _config(config: dict[str, Any]) -> str:
    return f'<script id="opscope-config" type="application/json">{escaped_json(config)}</script>'


def escaped_json(data: Any) -> str:
    """JSON that is safe in a <script>: no character in it means anything to HTML."""
    text = json.dumps(data)  # what is not ASCII becomes \uXXXX
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _packed(script: bytes) -> bytes:
    return zlib.compress(script, 9)


def _inline_script(script: str) -> str:
    """A script that HTML takes whole: these two can only occur in strings and regexes, where \\x3c is the same.

    HTML turns \\r\\n into \\n before the hash of the policy is taken.
    """
    return re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE).replace("\r\n", "\n").replace("\r", "\n")


def _plain(text: str) -> str:
    """A title on one line, not endless, and read in one direction."""
    short = text if len(text) <= _LONGEST_TITLE else text[: _LONGEST_TITLE - 1] + "…"
    return "".join(c if c.isprintable() else "�" for c in short)
