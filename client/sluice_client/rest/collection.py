"""A REST collection: list, get, create, update and delete, common to every resource of the controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from sluice_client.errors import ClientError, Unreachable
from sluice_client.rest.auth import Request
from sluice_client.rest.transport import Data, Transport


class Collection:
    """The collection at ``path``, whose pages hold the items under ``name``, by default the last part of the path.

    ``last_page`` is the last answer of :meth:`list`, for the fields beside the items.
    """

    def __init__(self, transport: Transport, path: str, name: str = "") -> None:
        self._transport = transport
        self._path = path
        self._name = name or path.rpartition("/")[2]
        self.last_page: Data = {}

    def list(self, **query: Any) -> Iterator[Data]:
        """Yield the items that match ``query``, page after page; empty values are left out.

        :raises Unreachable: when an answer is not a page, or a page repeats
        """
        query = make_query(**query)
        marker = None
        while True:
            page = self._transport.call("GET", self._path, query=query)
            if not isinstance(page, dict) or not isinstance(page.get(self._name), list):
                raise Unreachable(f"`{self._path}` is answered without `{self._name}`; is it the controller?")
            self.last_page = page
            yield from page[self._name]
            following = page.get("next_marker")
            if not following:
                return
            if following == marker:
                raise Unreachable(f"`{self._path}` leads to the page that begins at `{marker}` a second time")
            query["marker"] = marker = following

    def get(self, key: str) -> Data:
        """Return the item with this key, which is quoted for the path."""
        return self.get_with_etag(key)[0]

    def get_with_etag(self, key: str) -> tuple[Data, str]:
        """Return the item, and its ``ETag`` for :meth:`update`; empty if it has none."""
        response = self._transport.request(Request("GET", self._path_of(key)))
        return response.data, response.etag

    def create(self, body: Mapping[str, Any]) -> Data:
        """Create an item; return it as the controller created it."""
        return self._transport.call("POST", self._path, body=body)

    def update(self, key: str, changes: Mapping[str, Any], etag: str = "", **query: Any) -> Data:
        """Change some fields of an item; return the item.

        :param etag: refuse (412) when the item has another one
        """
        path, patience = self._path_of(key), query.get("wait", 0.0)
        sent = make_query(**query)
        return self._transport.call("PUT", path, body=changes, query=sent, headers=if_match(etag), patience=patience)

    def delete(self, key: str, **query: Any) -> None:
        """Delete an item; empty values of ``query`` are left out."""
        patience = query.get("wait", 0.0)
        self._transport.call("DELETE", self._path_of(key), query=make_query(**query), patience=patience)

    def _path_of(self, key: str) -> str:
        return self._path + join_path(key)


def join_path(*parts: str) -> str:
    """Return the URL path of ``parts``, each quoted.

    :raises ClientError: for an empty part, or one that would lead elsewhere
    """
    return "".join("/" + quote_part(part) for part in parts)


def quote_part(part: str) -> str:
    """Return one quoted part of a URL path.

    :raises ClientError: for a part that is empty, or would lead elsewhere
    """
    if part in ("", ".", ".."):
        raise ClientError(f"`{part}` cannot be the name of anything")
    return quote(part, safe="")


def if_match(etag: str) -> dict[str, str]:
    """Return the ``If-Match`` header for an etag; no header for an empty one."""
    return {"If-Match": etag} if etag else {}


def make_query(**values: Any) -> Data:
    """Return a query: empty values, False and 0 are left out, True is ``true``."""
    return {name: "true" if value is True else value for name, value in values.items() if value}
