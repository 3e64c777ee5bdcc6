"""Uploads: the file goes to a temporary one in Horizon's process, and from there to the API, never into memory.

The API keeps nothing of a request that ends early.  Horizon would take a body that was cut for a shorter one; so the
form has a last field behind the file (:class:`~sluice_dashboard.content.sluice.code.forms.UploadForm`), and without
it nothing is sent to the API.  ``upload.js`` sends the form and shows how far it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cached_property
from typing import IO, Any

from django import forms as django_forms
from django.core.files.uploadedfile import UploadedFile
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from sluice_client import Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.content.sluice.code import forms
from sluice_dashboard.content.sluice.code.kinds import CONTROLLERS, FILTERS, KINDS, METRICS, TRIED, Kind
from sluice_dashboard.forms import ActionView


class UploadView(ActionView):
    """A form with a file."""

    template_name = "sluice_dashboard/upload.html"
    submit_label = _("Upload")

    #: The field with the name of something new; empty for what is there.
    name_field = ""

    def field_of(self, failure: api.Failure, form: django_forms.Form) -> str | None:
        """What is about none of the other fields is about the file; that the API is away is about no field.

        Many a verdict about the code names the filter; it is about the name only where it begins with it.
        """
        if failure.kind == api.AWAY:
            return None
        if self.name_field:
            name = f"`{form.cleaned_data[self.name_field]}`"
            if failure.kind == api.CONFLICT or failure.message.startswith((name, f"keyword {name}")):
                return self.name_field
        named = super().field_of(failure, form)
        return named if named and named != self.name_field else "code"


class NewRevisionView(UploadView):
    """Another revision of a filter, metric or controller, or the first one of a filter."""

    page_title = _("Upload code of {{ name }}")
    form_class = forms.CodeForm

    @cached_property
    def kind(self) -> Kind:
        """Of what."""
        return KINDS[self.kwargs["kind"]]

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        name = self.kind.name(self.kwargs)
        old = client.collection(self.kind.path).get(name)
        new = client.uploads(self.kind.path).upload(name, opened(data["code"]), main=data["main"])
        if old["sha256"] == new["sha256"] and old["revision"] == new["revision"]:
            return str(_("This is the code that %s has; nothing is changed.") % name)
        return accepted(self.kind, name, new)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "name": self.kind.name(self.kwargs)}

    def get_success_url(self) -> str:
        return self.kind.url("detail", self.kind.name(self.kwargs))


class NewFilterView(UploadView):
    """A filter with its code; when the code is refused, nothing stays of the filter either."""

    page_title = _("Upload a filter")
    form_class = forms.NewFilterForm
    name_field = "keyword"
    _name = ""

    def get_form(self, form_class: Any = None) -> Any:
        self._form = super().get_form(form_class)
        return self._form

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        self._name = data["keyword"]
        client.register_filter(self._form.description())
        try:
            new = client.filter_code.upload(self._name, opened(data["code"]))
        except ClientError:
            with contextlib.suppress(ClientError):  # what went wrong first is what is shown
                client.unregister_filter(self._name)
            raise
        return accepted(FILTERS, self._name, new)

    def get_success_url(self) -> str:
        return FILTERS.url("detail", self._name) if self._name else str(reverse("horizon:sluice:code:index"))


class NewCodeView(UploadView):
    """A metric or a controller, which is stopped at first; a subclass says which."""

    form_class = forms.NewCodeForm
    name_field = "name"
    kind: Kind
    _name = ""

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        new = client.uploads(self.kind.path).upload(data["name"], opened(data["code"]), main=data["main"])
        self._name = data["name"]
        return accepted(self.kind, self._name, new)

    def get_success_url(self) -> str:
        if not self._name:
            return str(reverse(f"horizon:sluice:code:{self.kind.slug}"))
        return self.kind.url("detail", self._name)


class NewMetricView(NewCodeView):
    """A metric of the proxies' workload."""

    page_title = _("Upload a metric")
    kind = METRICS


class NewControllerView(NewCodeView):
    """A global controller."""

    page_title = _("Upload a controller")
    kind = CONTROLLERS


def opened(file: UploadedFile) -> IO[bytes]:
    """The file that Django has received; the client reads it twice, piece by piece."""
    received: IO[bytes] = file.file
    received.seek(0)
    return received


def accepted(kind: Kind, name: str, new: Mapping[str, Any]) -> str:
    """The verdict about code that was taken."""
    given = {"revision": new["revision"], "name": name}
    if kind is FILTERS and new["environment"] not in TRIED:
        return str(_("Revision %(revision)d of %(name)s is stored. The nodes try it now.") % given)
    return str(_("Revision %(revision)d of %(name)s passed its trial. The nodes get it now.") % given)
