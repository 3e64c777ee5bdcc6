"""An item with the content of a URL: a mirror of a resource on the Web.

Without ``max_age`` the item keeps the bytes with which it was stored: other bytes at the URL are an error, and the
item cannot be read until another motif makes it, or a client writes it.  With ``max_age`` the URL decides: its content
is the new content, whenever the item is made, and after that many seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sluice_core.connections.url_allowlist import http_host
from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_filters.api import BadParameter
from sluice_motifs.api import NETWORK, ExpansionError, Source, Template, TemplateCall
from sluice_motifs.templates.http_fetch import Answer, Timeouts, open_url

#: Seconds for all bytes, and for the answer to a HEAD.
GET_SECONDS: Final = 3600.0
HEAD_SECONDS: Final = 30.0
#: The prefix of a source that names a key of the item's user metadata; the URL there replaces it at the attachment.
METADATA: Final = "meta:"


class Url(Template):
    """Reads a URL of a listed host; a HEAD of it, without cookies or credentials, verifies that it exists."""

    info = ActionInfo(
        "url",
        MOTIF,
        "what a URL gives",
        (
            Parameter("source", "str", "the URL, or meta: and the name of the user metadata with it", required=True),
            Parameter("max_age", "duration", "how long it is used; 0: always, and it must not change", 0.0, minimum=0),
        ),
    )
    resource = NETWORK

    def check(self) -> None:
        if self._url().startswith(METADATA):
            raise BadParameter(f"source `{self._url()}` was not replaced by the URL that it stands for")
        self.context.hosts.check(http_host(self._url()))

    def sources(self, item: str) -> Sequence[Source]:
        return [Source(str(self.params["source"]), external=True, max_age=self._max_age)]

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        with open_url("GET", self._url(), self.context.hosts, Timeouts(GET_SECONDS), call.check) as answer:
            self._check_size(call, answer)
            yield from answer.pieces

    def verify(self, call: TemplateCall) -> None:
        with open_url("HEAD", self._url(), self.context.hosts, Timeouts(HEAD_SECONDS), call.check) as answer:
            self._check_size(call, answer)

    @property
    def _max_age(self) -> float:
        return float(self.params.get("max_age", 0.0))

    def _url(self) -> str:
        return str(self.params["source"])

    def _check_size(self, call: TemplateCall, answer: Answer) -> None:
        """Detect another number of bytes before any of them is passed on, so that another motif may be tried."""
        known = call.digest and not self._max_age
        if known and answer.size not in (None, call.size):
            raise ExpansionError(f"`{answer.place}` has {answer.size} bytes, expected {call.size}")
