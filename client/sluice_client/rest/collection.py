"""Things of one kind at one path: every resource of the controller is listed, shown and changed alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from sluice_client.errors import ClientError, Unreachable
from sluice_client.rest.auth import Request
from sluice_client.rest.transport import Transport

Data = dict[str, Any]


class Collection:
    """What is at ``path``, in whose answers a page of things stands under ``name``.

    ``said`` is the last page of :meth:`all`, for what stands beside the things.
    """

    def __init__(self, transport: Transport, path: str, name: str) -> None:
        self._transport = transport
        self._path = path
        self._name = name
        self.said: Data = {}

    def all(self, **query: Any) -> Iterator[Data]:
        """Everything that fits, page after page; empty values are not asked for.

        :raises Unreachable: when the answer is no page, or the pages go round in a circle
        """
        given = {key: value for key, value in query.items() if value}
        marker = None
        while True:
            found = self._transport.call("GET", self._path, query=given)
            if not isinstance(found, dict) or not isinstance(found.get(self._name), list):
                raise Unreachable(f"`{self._path}` is answered without `{self._name}`; is it the controller?")
            self.said = found
            yield from found[self._name]
            following = found.get("next_marker")
            if not following:
                return
            if following == marker:
                raise Unreachable(f"`{self._path}` leads to the page that begins at `{marker}` a second time")
            given["marker"] = marker = following

    def one(self, key: str) -> Data:
        """One thing."""
        return self.one_and_etag(key)[0]

    def one_and_etag(self, key: str) -> tuple[Data, str]:
        """The same, and its ``ETag`` for :meth:`update`; empty where it has none."""
        answer = self._transport.ask(Request("GET", self._at(key)))
        return answer.data, answer.etag

    def create(self, body: Mapping[str, Any]) -> Data:
        """A new thing, as the controller made it."""
        made: Data = self._transport.call("POST", self._path, body=body)
        return made

    def update(self, key: str, changes: Mapping[str, Any], etag: str = "", **query: Any) -> Data:
        """The thing with ``changes``; empty values are not asked for.

        :param etag: refuse (412) when it has another one meanwhile
        """
        asked = {name: value for name, value in query.items() if value}
        made: Data = self._transport.call("PUT", self._at(key), body=changes, query=asked, headers=expecting(etag))
        return made

    def delete(self, key: str, **query: Any) -> None:
        """Delete one; empty values are not asked for."""
        given = {name: value for name, value in query.items() if value}
        self._transport.call("DELETE", self._at(key), query=given)

    def _at(self, key: str) -> str:
        return self._path + path_of(key)


def path_of(*parts: str) -> str:
    """A path whose ``parts`` may hold any character.

    :raises ClientError: for a part that would lead elsewhere, however it is quoted
    """
    for part in parts:
        if part in ("", ".", ".."):
            raise ClientError(f"`{part}` cannot be the name of anything")
    return "".join("/" + quote(part, safe="") for part in parts)


def expecting(etag: str) -> dict[str, str]:
    """The header that names the version which must still stand; none for an empty one."""
    return {"If-Match": etag} if etag else {}
