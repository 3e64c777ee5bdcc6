"""Resources of named things: pages of them, their entries, and how these are created, changed and deleted.

A :class:`Resource` says what a resource consists of, and declares its operations.  A :class:`CollectionView` lists the
entries of a resource and creates one, an :class:`EntryView` shows, updates and deletes one.  Both work with the
resource's ``service``; a resource whose functions take other arguments overrides the method that calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, GONE, IF_MATCH, LIST, LOCATION, operation, operations
from sluice_controller.api.serializers.base import Serializer, page_of
from sluice_controller.api.views.base import View, etag
from sluice_controller.catalog import entries

T = TypeVar("T")
Declare = Callable[[Any], Any]


def render_page(
    given: Mapping[str, Any], field: str, known: Mapping[str, T], show: Callable[[T], dict[str, Any]], **more: Any
) -> Response:
    """The page of ``known`` that the query ``given`` asks for, by name, in ``field`` of the answer."""
    found = entries.page(known, given["limit"], given["marker"], given["prefix"])
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


@dataclass(frozen=True)
class Resource:
    """Named things at one path.

    :param service: a module or an object with ``list_all``, ``create``, ``find``, ``update`` and ``delete``
    :param path: the parts of its path; the last one is also the field of a page
    :param entry: the part of an entry's path that is its name
    :param page: what the schema says of a page of entries
    :param shape: of an entry
    :param new: the shape of a body which makes or changes one, with ``examples`` of such bodies
    :param name_field: the field with an entry's name
    """

    service: Any
    path: tuple[str, ...]
    entry: OpenApiParameter
    page: str
    shape: type[Serializer]
    new: type[Serializer]
    examples: Any
    name_field: str = "name"

    def declare(self, **declarations: Declare) -> Declare:
        """A decorator of a view of this resource that declares methods of it by their names."""

        def decorate(view: Any) -> Any:
            view.resource = self
            return operations(**declarations)(view)

        return decorate

    def list_operation(self, rule: str, name: str, summary: str) -> Declare:
        """Declares GET of a page."""
        page = page_of(self.path[-1], self.shape, self.page)
        return operation(rule, name, page, *LIST, summary=summary)

    def create_operation(self, rule: str, name: str, summary: str, *statuses: int) -> Declare:
        """Declares POST of a new entry, which may be answered by the errors ``statuses`` too."""
        return operation(
            rule,
            name,
            {201: self.shape},
            ETAG,
            LOCATION,
            errors=(409, *statuses),
            takes=self.new,
            examples=self.examples,
            summary=summary,
        )

    def show_operation(self, rule: str, name: str, summary: str) -> Declare:
        """Declares GET of an entry."""
        return show_operation(rule, name, summary, self.shape, self.entry)

    def update_operation(self, rule: str, name: str, summary: str, *query: OpenApiParameter) -> Declare:
        """Declares PUT of an entry with other values."""
        return update_operation(rule, name, summary, self.shape, self.new, self.entry, *query)

    def delete_operation(self, rule: str, name: str, summary: str, *query: OpenApiParameter) -> Declare:
        """Declares DELETE of an entry."""
        return delete_operation(rule, name, summary, self.entry, *query)


def show_operation(rule: str, name: str, summary: str, shape: Any, *path: OpenApiParameter) -> Declare:
    """Declares GET of one thing."""
    return operation(rule, name, shape, *path, ETAG, errors=(404,), summary=summary)


def update_operation(
    rule: str, name: str, summary: str, shape: Any, takes: Any, *parameters: OpenApiParameter
) -> Declare:
    """Declares PUT of one thing that is there."""
    return operation(rule, name, shape, *parameters, IF_MATCH, errors=(404, 409), takes=takes, summary=summary)


def delete_operation(rule: str, name: str, summary: str, *parameters: OpenApiParameter) -> Declare:
    """Declares DELETE of one thing."""
    return operation(rule, name, GONE, *parameters, IF_MATCH, errors=(404, 409), summary=summary)


class CollectionView(View):
    """The entries of the resource that declares it."""

    resource: Resource

    def create(self, data: Any, by: str) -> Any:
        """The entry that ``data`` describes, with its version."""
        return self.resource.service.create(self.backend, data, by)

    def get(self, request: Request) -> Response:
        """A page of entries."""
        known = self.resource.service.list_all(self.backend)
        return render_page(self.given, self.resource.path[-1], known, self.resource.shape.render)

    def post(self, request: Request) -> Response:
        """The new entry."""
        made = self.create(request.data, request.user.name)
        data = self.resource.shape.render(made)
        return render_entry(data, made.version, url_path(*self.resource.path, data[self.resource.name_field]))


class EntryView(View):
    """One entry of the resource that declares it; the last part of its path is its name."""

    resource: Resource

    def update(self, name: str, data: Any, by: str, **options: Any) -> Any:
        """The entry as ``data`` describes it; ``options`` are those of :attr:`View.given`."""
        return self.resource.service.update(self.backend, name, data, by, **options)

    def respond(self, found: Any) -> Response:
        """The answer about an entry."""
        return render_entry(self.resource.shape.render(found), found.version)

    def get(self, request: Request, **path: str) -> Response:
        """The entry."""
        return self.respond(self.resource.service.find(self.backend, *path.values()))

    def put(self, request: Request, **path: str) -> Response:
        """The entry as it is now."""
        (name,) = path.values()
        return self.respond(self.update(name, request.data, request.user.name, **self.given))

    def delete(self, request: Request, **path: str) -> Response:
        """204."""
        (name,) = path.values()
        self.resource.service.delete(self.backend, name, request.user.name, **self.given)
        return no_content()
