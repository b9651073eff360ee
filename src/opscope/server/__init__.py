"""The page, served on this machine only."""

from .serving import Server, background
from .ssh import forward_line, over_ssh

__all__ = ["Server", "background", "forward_line", "over_ssh"]
