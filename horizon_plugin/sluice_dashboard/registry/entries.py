"""The lists of registered entries, one tab for each kind, and the forms that create, change and delete them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.registry.kinds import KINDS, DeleteForm, Kind, given
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import ActionView, ConfirmView, PageView, Section, next_query

#: Entries on a page.
PAGE: Final = 50


def shown_kinds(request: HttpRequest) -> list[Kind]:
    """The kinds that the user may list; all while that is not known."""
    known = api.permissions(request)
    return [one for one in KINDS.values() if known.allow(one.rule("list"))]


def first_kind(request: HttpRequest) -> Kind:
    """The kind that is shown at first."""
    return next(iter(shown_kinds(request)), KINDS["terms"])


def entry_row(kind: Kind, entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry as a line of the list; built-in entries have no buttons."""
    return {
        "name": entry[kind.key],
        "cells": [cell(entry) for _title, cell in kind.columns],
        "builtin": entry.get("builtin", False),
    }


def fetch_page(client: Client, request: HttpRequest, kind: str = "") -> Mapping[str, Any]:
    """Return one page of entries, by name."""
    shown = KINDS[kind] if kind else first_kind(request)
    query = {name: request.GET.get(name, "").strip() for name in ("prefix", "marker")}
    answer = client.get(shown.path, limit=PAGE, **query)
    return {
        "kind": shown,
        "update_rule": shown.rule("update"),
        "delete_rule": shown.rule("delete"),
        "rows": [entry_row(shown, one) for one in answer[shown.slug]],
        "titles": [title for title, _cell in shown.columns],
        "first": bool(query["marker"]),
        "start": urlencode({"prefix": query["prefix"]}),
        "following": next_query(answer["next_marker"], prefix=query["prefix"]),
    }


class ListView(PageView):
    """Entries of one kind; ``kind`` comes from the URL, otherwise it is the first visible one."""

    page_title = _("Registry")
    template_name = "sluice_dashboard/registry/index.html"
    sections = {"list": Section("sluice_dashboard/registry/_list.html", fetch_page, seconds=10)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        slug = self.kwargs.get("kind", "")
        kind = KINDS[slug] if slug else first_kind(self.request)
        tabs = [
            {"title": one.title, "url": url_in_panel(self.request, "list", one.slug), "active": one == kind}
            for one in shown_kinds(self.request)
        ]
        return {
            **super().get_context_data(**kwargs),
            "kind": kind,
            "tabs": tabs,
            "prefix": self.request.GET.get("prefix", ""),
            "create_rule": kind.rule("create"),
        }


class KindView(ActionView):
    """A form about entries of the kind in the URL; it leads to their list.

    A subclass may set ``kind_title``, a title with a place for the name of the kind.
    """

    kind_title: Any = ""
    next_page: ClassVar[tuple[str, ...]] = ("list", "kind")

    @property
    def kind(self) -> Kind:
        """The kind."""
        return KINDS[self.kwargs["kind"]]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        list_url = url_in_panel(self.request, "list", self.kind.slug)
        known: dict[str, Any] = {"custom_breadcrumb": [(self.kind.title, list_url)]}
        if self.kind_title:
            known["page_title"] = self.kind_title % self.kind.one
        return {**super().get_context_data(**kwargs), **known}


class CreateView(KindView):
    """A new entry."""

    kind_title = _("New %s")
    template_name = "sluice_dashboard/registry/form.html"

    def get_form_class(self) -> type[forms.Form]:
        return self.kind.form

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Register it."""
        client.collection(self.kind.path).create(given(data))
        return str(_("“%s” is registered.") % data[self.kind.key])


class EditView(KindView):
    """Other values for an entry, unless it was changed meanwhile."""

    kind_title = _("Change this %s")
    template_name = "sluice_dashboard/registry/form.html"

    def get_form_class(self) -> type[forms.Form]:
        return change_form(self.kind)

    def get_initial(self) -> dict[str, Any]:
        if self.request.method == "POST":  # the typed values count
            return {}
        found, etag = api.client(self.request).collection(self.kind.path).get_with_etag(self.kwargs["entry"])
        return {**found, "etag": etag}

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Change it."""
        name = self.kwargs["entry"]
        force = data.get("force", False)
        client.collection(self.kind.path).update(name, given(data), data["etag"], force=force)
        return str(_("“%s” is changed.") % name)


class DeleteView(KindView, ConfirmView):
    """Delete an entry."""

    kind_title = _("Delete this %s")
    form_class = DeleteForm

    def question(self) -> str:
        return str(_("Delete the %(kind)s “%(name)s”?") % {"kind": self.kind.one, "name": self.kwargs["entry"]})

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Delete it; 409 names the policies that use it."""
        name = self.kwargs["entry"]
        client.collection(self.kind.path).delete(name, force=data["force"])
        return str(_("“%s” is deleted.") % name)


def change_form(kind: Kind) -> type[forms.Form]:
    """The form that changes an entry of this kind: without fixed fields, with the version as a guard."""
    fields: dict[str, Any] = dict.fromkeys(kind.fixed)
    fields["etag"] = forms.CharField(required=False, widget=forms.HiddenInput)
    if kind.forced:
        fields["force"] = DeleteForm.base_fields["force"]
    return type("ChangeForm", (kind.form,), fields)
