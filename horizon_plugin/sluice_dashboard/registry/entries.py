"""The lists of what is registered, one for each kind, as tabs; things are registered, changed and deleted."""

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

#: Things on a page.
PAGE: Final = 50


def shown_kinds(request: HttpRequest) -> list[Kind]:
    """Those that the user may list; all while that is not known."""
    known = api.permissions(request)
    return [one for one in KINDS.values() if known.allow(one.rule("list"))]


def first_kind(request: HttpRequest) -> Kind:
    """The one that is shown at first."""
    return next(iter(shown_kinds(request)), KINDS["terms"])


def entry_row(kind: Kind, entry: Mapping[str, Any]) -> dict[str, Any]:
    """What a line of a list shows; what came with the software has no buttons."""
    return {
        "name": entry[kind.key],
        "cells": [cell(entry) for _title, cell in kind.columns],
        "builtin": entry.get("builtin", False),
    }


def fetch_page(client: Client, request: HttpRequest, kind: str = "") -> Mapping[str, Any]:
    """One page of things, by name."""
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
    """Things of one kind; ``kind`` comes from the URL, else it is the first one that may be seen."""

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
    """A form about things of the kind that the URL says; afterwards one is at their list.

    A subclass may say ``kind_title``, a title with a place for what one of the kind is called.
    """

    kind_title: Any = ""
    next_page: ClassVar[tuple[str, ...]] = ("list", "kind")

    @property
    def kind(self) -> Kind:
        """That kind."""
        return KINDS[self.kwargs["kind"]]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        list_url = url_in_panel(self.request, "list", self.kind.slug)
        known: dict[str, Any] = {"custom_breadcrumb": [(self.kind.title, list_url)]}
        if self.kind_title:
            known["page_title"] = self.kind_title % self.kind.one
        return {**super().get_context_data(**kwargs), **known}


class CreateView(KindView):
    """Something new."""

    kind_title = _("New %s")
    template_name = "sluice_dashboard/registry/form.html"

    def get_form_class(self) -> type[forms.Form]:
        return self.kind.form

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Register it."""
        client.collection(self.kind.path).create(given(data))
        return str(_("“%s” is registered.") % data[self.kind.key])


class EditView(KindView):
    """Other values for something, unless somebody changed it meanwhile."""

    kind_title = _("Change this %s")
    template_name = "sluice_dashboard/registry/form.html"

    def get_form_class(self) -> type[forms.Form]:
        return change_form(self.kind)

    def get_initial(self) -> dict[str, Any]:
        if self.request.method == "POST":  # what was typed counts
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
    """Something is forgotten."""

    kind_title = _("Delete this %s")
    form_class = DeleteForm

    def question(self) -> str:
        return str(_("Delete the %(kind)s “%(name)s”?") % {"kind": self.kind.one, "name": self.kwargs["entry"]})

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Forget it; 409 names the policies that use it."""
        name = self.kwargs["entry"]
        client.collection(self.kind.path).delete(name, force=data["force"])
        return str(_("“%s” is deleted.") % name)


def change_form(kind: Kind) -> type[forms.Form]:
    """The form that changes something of this kind: without what stays, with what guards it against other changes."""
    fields: dict[str, Any] = dict.fromkeys(kind.fixed)
    fields["etag"] = forms.CharField(required=False, widget=forms.HiddenInput)
    if kind.forced:
        fields["force"] = DeleteForm.base_fields["force"]
    return type("ChangeForm", (kind.form,), fields)
