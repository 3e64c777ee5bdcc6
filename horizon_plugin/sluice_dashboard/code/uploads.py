"""Uploads: Horizon stores the file in a temporary one and sends it to the API from there, never through memory.

The API stores nothing of a request that ends early.  Horizon would accept a truncated body as a shorter one; so the
form has a last field after the file (:class:`UploadForm`), and without it the API is not called.  ``upload.js``
sends the form and shows the progress.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import IO, Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.core.validators import RegexValidator
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from sluice_client import Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.code.kinds import CONTROLLERS, FILTERS, METRICS, TRIED, CodeView, Kind
from sluice_dashboard.views import ActionView

_ENVIRONMENTS = (
    ("native", _("native: inside Swift's processes, with all their rights")),
    ("process", _("process: Python, confined")),
    ("storlet", _("storlet: in a container")),
    ("wasm", _("wasm: a WebAssembly module")),
    ("nbdkit", _("nbdkit: a shared object that filters volumes")),
)
WORD = RegexValidator(r"\A[^/\\]+\Z", _("expected a name without slashes"))


class UploadForm(forms.Form):
    """A file; the page sends ``complete`` after it, so that a truncated body is detected."""

    code = forms.FileField(label=_("File"))

    def clean(self) -> dict[str, Any]:
        """Called by Django.

        :raises ValidationError: if the request ended early: the received file may be incomplete
        """
        if "complete" not in self.data:
            raise forms.ValidationError(_("The upload was cut: nothing of it is stored. Send it again."))
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        return cleaned


class CodeForm(UploadForm):
    """Another revision of code."""

    main = forms.CharField(
        label=_("Class"),
        required=False,
        help_text=_("the class to run, where the code has several"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class NewCodeForm(CodeForm):
    """A metric or a controller."""

    name = forms.CharField(
        label=_("Name"),
        validators=[WORD],
        help_text=_("the name that the code says"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    field_order = ("name", "code", "main")


class JsonField(forms.JSONField):
    """JSON that may be empty, shown as an empty field."""

    def prepare_value(self, value: Any) -> Any:
        """Called by Django for the displayed value."""
        return "" if value is None else super().prepare_value(value)


class NewFilterForm(CodeForm):
    """A filter: its description and its code."""

    keyword = forms.CharField(
        label=_("Keyword"),
        validators=[WORD],
        help_text=_("the word that policies use, in lower case"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    environment = forms.ChoiceField(
        label=_("Runs in"), choices=_ENVIRONMENTS, help_text=_("native code says itself all that follows")
    )
    language = forms.CharField(
        label=_("Language"), required=False, help_text=_("python, java or wasm, as the environment knows it")
    )
    help = forms.CharField(label=_("What it does"), required=False)
    reverse = forms.BooleanField(label=_("A GET undoes what a PUT did"), required=False)
    parameters = JsonField(
        label=_("Parameters"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_('a list in JSON, such as [{"name": "key", "type": "int", "minimum": 0, "default": 90}]'),
    )
    capabilities = JsonField(
        label=_("Capabilities"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_('an object in JSON, such as {"stage": 450, "changes_length": false}'),
    )
    self_service = forms.BooleanField(
        label=_("Self-service"), required=False, help_text=_("members of projects may use it for their own containers")
    )
    field_order = (
        "keyword", "environment", "code", "main", "language", "help", "reverse", "parameters", "capabilities",
        "self_service",
    )  # fmt: skip

    def description(self) -> dict[str, Any]:
        """The description for the API: only the filled fields, because native code must not be described here."""
        names = ("keyword", "environment", "main", "language", "help", "reverse", "parameters", "capabilities")
        said = {name: self.cleaned_data[name] for name in (*names, "self_service")}
        return {name: value for name, value in said.items() if value not in (None, "", False, [], {})}


class UploadView(ActionView):
    """A form with a file."""

    template_name = "sluice_dashboard/upload.html"
    submit_label = _("Upload")

    #: The field with the name of a new entry; empty for an existing one.
    name_field = ""

    def field_of(self, failure: api.Failure, form: forms.Form) -> str | None:
        """A message about no other field is about the file; an unreachable API is about no field.

        Many trial results name the filter; such a message is about the name only if it begins with it.
        """
        if failure.kind == api.AWAY:
            return None
        if self.name_field:
            name = f"`{form.cleaned_data[self.name_field]}`"
            if failure.kind == api.CONFLICT or failure.message.startswith((name, f"keyword {name}")):
                return self.name_field
        named = super().field_of(failure, form)
        return named if named and named != self.name_field else "code"


class NewRevisionView(CodeView, UploadView):
    """A new revision of a filter, metric or controller, or the first one of a filter."""

    page_title = _("Upload code of {{ name }}")
    form_class = CodeForm

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        old = client.collection(self.kind.path).get(self.name)
        new = client.uploads(self.kind.path).upload(self.name, opened(data["code"]), main=data["main"])
        if old["sha256"] == new["sha256"] and old["revision"] == new["revision"]:
            return str(_("This is the code that %s has; nothing is changed.") % self.name)
        return accepted(self.kind, self.name, new)

    def get_success_url(self) -> str:
        return self.kind.url("detail", self.name)


class NewFilterView(UploadView):
    """A filter with its code; if the code is refused, delete the filter again."""

    page_title = _("Upload a filter")
    form_class = NewFilterForm
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
            with contextlib.suppress(ClientError):  # the first fault is shown
                client.unregister_filter(self._name)
            raise
        return accepted(FILTERS, self._name, new)

    def get_success_url(self) -> str:
        return FILTERS.url("detail", self._name) if self._name else super().get_success_url()


class NewCodeView(UploadView):
    """A metric or a controller, stopped at first; a subclass sets the kind."""

    form_class = NewCodeForm
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
    """The message about accepted code."""
    given = {"revision": new["revision"], "name": name}
    if kind is FILTERS and new["environment"] not in TRIED:
        return str(_("Revision %(revision)d of %(name)s is stored. The nodes try it now.") % given)
    return str(_("Revision %(revision)d of %(name)s passed its trial. The nodes get it now.") % given)
