"""The time of content that a motif made anew: clients are shown it, and conditions are judged by it.

An object server judges by the time of the data file, which is that of a client's upload before: it says 304 where the
content has changed since, and lets If-Unmodified-Since pass.  Both show in its answer, so objects without motifs cost
nothing.
"""

from __future__ import annotations

import math
from email.utils import formatdate
from typing import Final

from sluice_middleware.swift.proxy_api import Request, close_if_possible
from sluice_middleware.wsgi.response import Env, UpstreamResponse
from sluice_middleware.wsgi.stored_object import StoredObject

_MODIFIED_SINCE: Final = "HTTP_IF_MODIFIED_SINCE"
_OF_A_BODY: Final = frozenset(("content-length", "content-range"))


def is_modified(env: Env, stored: StoredObject, answer: UpstreamResponse) -> bool:
    """Whether a 304 is to be asked for again, without If-Modified-Since, which is taken out of the request."""
    if not stored.made or answer.code != 304 or _MODIFIED_SINCE not in env:
        return False
    since = Request(env).if_modified_since
    if since is None or _shown(stored) <= since.timestamp():
        return False
    del env[_MODIFIED_SINCE]
    return True


def judged(env: Env, stored: StoredObject, answer: UpstreamResponse) -> UpstreamResponse:
    """The answer with the time that clients see; 412 where they asked for nothing as late as that."""
    if not stored.made:
        return answer
    times = {"last-modified": formatdate(_shown(stored), usegmt=True), "x-timestamp": f"{stored.modified:016.05f}"}
    answer.headers = [(name, times.get(name.lower(), value)) for name, value in answer.headers]
    until = Request(env).if_unmodified_since
    if answer.code not in (200, 206) or until is None or _shown(stored) <= until.timestamp():
        return answer
    close_if_possible(answer.body)
    headers = [(name, value) for name, value in answer.headers if name.lower() not in _OF_A_BODY]
    return UpstreamResponse.build("412 Precondition Failed", [*headers, ("Content-Length", "0")], [b""])


def _shown(stored: StoredObject) -> int:
    """Seconds since 1970, rounded as Swift does."""
    return math.ceil(stored.modified)
