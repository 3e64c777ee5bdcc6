"""Resources of named objects: pages, entries, and how these are created, changed and deleted.

A :class:`Resource` has the parts of a resource, and declares its operations, which call its ``service``; a
resource whose functions take other arguments overrides the method that calls them.
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

from sluice_controller.api.openapi import ETAG, GONE, IF_MATCH, LIST, LOCATION, operation
from sluice_controller.api.serializers.base import Serializer, page_of
from sluice_controller.api.view import View, etag
from sluice_controller.catalog import entries
from sluice_controller.identity.rules import Rule

T = TypeVar("T")
Declare = Callable[[Any], Any]


def render_page(
    given: Mapping[str, Any], field: str, known: Mapping[str, T], show: Callable[[T], dict[str, Any]], **more: Any
) -> Response:
    """The page of ``known`` that the query ``given`` selects, by name, in ``field`` of the answer."""
    found = entries.page(known, given["limit"], given["marker"], given["prefix"])
    return Response({**more, field: [show(one) for one in found.records], "next_marker": found.next_marker or None})


def render_entry(data: dict[str, Any], version: int, location: str = "") -> Response:
    """One entry; a new one if ``location`` has its path."""
    headers = {"ETag": etag(version)}
    if location:
        return Response(data, HTTPStatus.CREATED, headers={**headers, "Location": location})
    return Response(data, headers=headers)


def no_content() -> Response:
    """204."""
    return Response(status=HTTPStatus.NO_CONTENT)


def url_path(*parts: str) -> str:
    """A path made from names."""
    return "".join(f"/{quote(one, safe='')}" for one in parts)


@dataclass(frozen=True)
class Resource:
    """Named objects at one path.

    :param service: a module or an object with ``list_all``, ``create``, ``find``, ``update`` and ``delete``
    :param path: the parts of its path; the last one is also the field of a page
    :param entry: the part of an entry's path that is its name
    :param page: the description of a page of entries in the schema
    :param shape: the shape of an entry
    :param new: the shape of a body that creates or changes an entry, with ``examples`` of such bodies
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

    @property
    def url(self) -> str:
        """The path of the resource."""
        return "/" + "/".join(self.path)

    @property
    def entry_url(self) -> str:
        """The path of an entry."""
        return f"{self.url}/<name:{self.entry.name}>"

    def create(self, view: View, data: Any, by: str) -> Any:
        """Create the entry that ``data`` describes; return it with its version."""
        return self.service.create(view.backend, data, by)

    def update(self, view: View, name: str, data: Any, by: str) -> Any:
        """Change the entry to ``data``."""
        return self.service.update(view.backend, name, data, by, **view.given)

    def respond(self, view: View, found: Any) -> Response:
        """The answer about an entry."""
        return render_entry(self.shape.render(found), found.version)

    def declare_list(self, rule: Rule | str, name: str, summary: str) -> None:
        """Declare GET of a page."""

        @operation(
            f"GET {self.url}", rule, page_of(self.path[-1], self.shape, self.page), *LIST, name=name, summary=summary
        )
        def list_entries(view: View, request: Request) -> Response:
            """A page of entries."""
            known = self.service.list_all(view.backend)
            return render_page(view.given, self.path[-1], known, self.shape.render)

    def declare_create(self, rule: Rule | str, name: str, summary: str, *statuses: int) -> None:
        """Declare POST of a new entry, with the further errors ``statuses``."""

        @operation(
            f"POST {self.url}",
            rule,
            {201: self.shape},
            ETAG,
            LOCATION,
            errors=(409, *statuses),
            takes=self.new,
            examples=self.examples,
            name=name,
            summary=summary,
        )
        def create_entry(view: View, request: Request) -> Response:
            """The new entry."""
            made = self.create(view, request.data, request.user.name)
            data = self.shape.render(made)
            return render_entry(data, made.version, url_path(*self.path, data[self.name_field]))

    def declare_show(self, rule: Rule | str, name: str, summary: str) -> None:
        """Declare GET of an entry."""

        @show_operation(f"GET {self.entry_url}", rule, self.shape, self.entry, name=name, summary=summary)
        def show_entry(view: View, request: Request, **path: str) -> Response:
            """The entry."""
            return self.respond(view, self.service.find(view.backend, *path.values()))

    def declare_update(
        self,
        rule: Rule | str,
        name: str,
        summary: str,
        *query: OpenApiParameter,
        takes: type[Serializer] | None = None,
        description: str = "",
    ) -> None:
        """Declare PUT of an entry, with the body ``takes``, by default that of a new entry."""

        @update_operation(
            f"PUT {self.entry_url}",
            rule,
            self.shape,
            self.entry,
            *query,
            takes=takes or self.new,
            name=name,
            summary=summary,
            description=description,
        )
        def update_entry(view: View, request: Request, **path: str) -> Response:
            """The changed entry."""
            (name,) = path.values()
            return self.respond(view, self.update(view, name, request.data, request.user.name))

    def declare_delete(self, rule: Rule | str, name: str, summary: str, *query: OpenApiParameter) -> None:
        """Declare DELETE of an entry."""

        @delete_operation(f"DELETE {self.entry_url}", rule, self.entry, *query, name=name, summary=summary)
        def delete_entry(view: View, request: Request, **path: str) -> Response:
            """204."""
            (name,) = path.values()
            self.service.delete(view.backend, name, request.user.name, **view.given)
            return no_content()


def show_operation(call: str, rule: Rule | str, shape: Any, *path: OpenApiParameter, **more: Any) -> Declare:
    """Declare GET of one object."""
    return operation(call, rule, shape, *path, ETAG, **more)


def update_operation(call: str, rule: Rule | str, shape: Any, *parameters: OpenApiParameter, **more: Any) -> Declare:
    """Declare PUT of one existing object."""
    return operation(call, rule, shape, *parameters, IF_MATCH, **more)


def delete_operation(call: str, rule: Rule | str, *parameters: OpenApiParameter, **more: Any) -> Declare:
    """Declare DELETE of one object."""
    return operation(call, rule, GONE, *parameters, IF_MATCH, **more)
