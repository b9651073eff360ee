"""Who may ask: only those with the token, and only under a name of this machine.

The Host check stops DNS rebinding (a foreign site whose name suddenly means 127.0.0.1); the token stops
other programs and other users of this machine. What changes something needs the token in a header, which
no other site can make a browser send.
"""

from __future__ import annotations

import hmac
import re
import secrets
from email.message import Message
from http.cookies import CookieError, SimpleCookie

# Any port: over `ssh -L` the browser names the port of the other machine.
_HOSTS = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE | re.ASCII)


def new_token() -> str:
    return secrets.token_urlsafe(24)


def own_host(headers: Message) -> bool:
    hosts = headers.get_all("Host", [])
    return len(hosts) == 1 and _HOSTS.fullmatch(hosts[0].strip()) is not None


def own_origin(headers: Message) -> bool:
    """A browser says which page a request comes from; it must be ours."""
    origins = headers.get_all("Origin", [])
    return not origins or origins == [f"http://{headers.get('Host', '')}"]


def has_token(token: str, headers: Message, query: dict[str, list[str]], cookie: str, *, header_only: bool) -> bool:
    offered = headers.get_all("Authorization", [])
    given = [line[7:].strip() for line in offered if line[:7].lower() == "bearer "]
    if not header_only:
        given += query.get("token", [])[:1]
        given += _cookies(headers, cookie)
    return any(hmac.compare_digest(text.encode("utf-8", "replace"), token.encode()) for text in given)


def _cookies(headers: Message, name: str) -> list[str]:
    try:
        found = SimpleCookie(headers.get("Cookie", "")).get(name)
    except CookieError:
        return []
    return [] if found is None else [found.value]
