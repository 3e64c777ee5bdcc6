"""Things are registered, changed and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.forms import ActionView, ConfirmView
from sluice_dashboard.registry.forms import DeleteForm, given
from sluice_dashboard.registry.kinds import KINDS, Kind
from sluice_dashboard.templatetags.sluice import url_in_panel


class KindView(ActionView):
    """A form about things of the kind that the URL says; afterwards one is at their list.

    A subclass may say ``kind_title``, a title with a place for what one of the kind is called.
    """

    kind_title: Any = ""

    @property
    def kind(self) -> Kind:
        """That kind."""
        return KINDS[self.kwargs["kind"]]

    def list_url(self) -> str:
        """The URL of their list."""
        return url_in_panel(self.request, "list", self.kind.slug)

    def get_success_url(self) -> str:
        return self.list_url()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        known: dict[str, Any] = {"entry": self.kwargs.get("entry", "")}
        known["custom_breadcrumb"] = [(self.kind.title, self.list_url())]
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
    template_name = "sluice_dashboard/confirm.html"
    submit_label = _("Delete")

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
