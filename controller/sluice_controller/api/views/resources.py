"""Resources of named things: pages of them, their entries, and how these are created, changed and deleted.

A :class:`CollectionView` lists the entries of a resource and creates one, an :class:`EntryView` shows, updates and
deletes one.  Both work with a ``service``, a module with ``list_all``, ``create``, ``find``, ``update`` and ``delete``;
a resource whose functions take other arguments overrides the method that calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.serializers.base import Serializer
from sluice_controller.api.views.base import View, etag, expected_version
from sluice_controller.catalog import entries

T = TypeVar("T")


def render_page(
    view: View,
    request: Request,
    field: str,
    known: Mapping[str, T],
    show: Callable[[T], dict[str, Any]],
    *filters: str,
    **more: Any,
) -> Response:
    """One page of ``known``, by name, in ``field`` of the answer; ``filters`` are what else the query may say."""
    given = view.query(request, "limit", "marker", "prefix", *filters)
    limit = given.integer("limit", 100, 1, entries.LARGEST_PAGE)
    found = entries.page(known, limit, given.text("marker"), given.text("prefix"))
    return Response({**more, field: [show(one) for one in found.records], "next_marker": found.next_marker or None})


def render_entry(data: dict[str, Any], version: int, location: str = "") -> Response:
    """One entry; it is new when ``location`` says where it is."""
    headers = {"ETag": etag(version)}
    if location:
        return Response(data, HTTPStatus.CREATED, headers={**headers, "Location": location})
    return Response(data, headers=headers)


def no_content() -> Response:
    """204."""
    return Response(status=HTTPStatus.NO_CONTENT)


def url_path(*parts: str) -> str:
    """A path out of names."""
    return "".join(f"/{quote(one, safe='')}" for one in parts)


class CollectionView(View):
    """The entries of a resource."""

    service: Any
    serializer: type[Serializer]
    #: the parts of the resource's path; the last one is also the field of a page
    path: tuple[str, ...]
    #: the field with an entry's name
    name_field: str = "name"

    def list_all(self) -> Mapping[str, Any]:
        """All entries by name."""
        found: Mapping[str, Any] = self.service.list_all(self.backend)
        return found

    def create(self, data: Any, by: str) -> Any:
        """The entry that ``data`` describes, with its version."""
        return self.service.create(self.backend, data, by)

    def get(self, request: Request) -> Response:
        """A page of entries."""
        return render_page(self, request, self.path[-1], self.list_all(), self.serializer.render)

    def post(self, request: Request) -> Response:
        """The new entry."""
        self.query(request)
        made = self.create(request.data, request.user.name)
        data = self.serializer.render(made)
        return render_entry(data, made.version, url_path(*self.path, data[self.name_field]))


class EntryView(View):
    """One entry of a resource; the last part of its path is its name."""

    service: Any
    serializer: type[Serializer]
    #: the methods that change it even while policies use it, with ``force``
    forced: tuple[str, ...] = ("delete",)

    def find(self, name: str) -> Any:
        """The entry with its version."""
        return self.service.find(self.backend, name)

    def update(self, name: str, data: Any, by: str, **options: Any) -> Any:
        """The entry as ``data`` describes it; ``options`` are ``expected``, a version, and perhaps ``force``."""
        return self.service.update(self.backend, name, data, by, **options)

    def delete_entry(self, name: str, by: str, **options: Any) -> None:
        """Take the entry out; ``options`` as of :meth:`update`."""
        self.service.delete(self.backend, name, by, **options)

    def respond(self, found: Any) -> Response:
        """The answer about an entry."""
        return render_entry(self.serializer.render(found), found.version)

    def get(self, request: Request, **path: str) -> Response:
        """The entry."""
        self.query(request)
        (name,) = path.values()
        return self.respond(self.find(name))

    def put(self, request: Request, **path: str) -> Response:
        """The entry as it is now."""
        (name,) = path.values()
        return self.respond(self.update(name, request.data, request.user.name, **self._options(request, "put")))

    def delete(self, request: Request, **path: str) -> Response:
        """204."""
        (name,) = path.values()
        self.delete_entry(name, request.user.name, **self._options(request, "delete"))
        return no_content()

    def _options(self, request: Request, method: str) -> dict[str, Any]:
        """What the query and ``If-Match`` say."""
        if method not in self.forced:
            self.query(request)
            return {"expected": expected_version(request)}
        force = self.query(request, "force").flag("force")
        return {"force": force, "expected": expected_version(request)}
