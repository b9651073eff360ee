"""Over SSH there is no browser here: say how to reach the page from where the user sits."""

from __future__ import annotations

import getpass
import os
import socket


def over_ssh() -> bool:
    return bool(os.environ.get("SSH_CONNECTION"))


def forward_line(port: int) -> str:
    """The command to run on the machine with the browser.

    SSH_CONNECTION is "client port, server port": the address under which the user reached this machine.
    """
    parts = os.environ.get("SSH_CONNECTION", "").split()
    host = parts[2] if len(parts) == 4 else socket.gethostname()
    other_port = f"-p {parts[3]} " if len(parts) == 4 and parts[3] != "22" else ""
    try:
        user = f"{getpass.getuser()}@"
    except (KeyError, OSError):  # a user without a name, as in some containers
        user = ""
    return f"ssh {other_port}-N -L {port}:127.0.0.1:{port} {user}{host}"
