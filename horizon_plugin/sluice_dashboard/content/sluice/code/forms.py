"""What one says when code is uploaded."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

_ENVIRONMENTS = (
    ("native", _("native: inside Swift's processes, with all their rights")),
    ("process", _("process: Python, confined")),
    ("storlet", _("storlet: in a container")),
    ("wasm", _("wasm: a WebAssembly module")),
    ("nbdkit", _("nbdkit: a shared object that filters volumes")),
)
_WORD = RegexValidator(r"\A[^/\\]+\Z", _("expected a name without slashes"))


class UploadForm(forms.Form):
    """A file; the page sends ``complete`` behind it, so that a body that was cut is known as such."""

    code = forms.FileField(label=_("File"))

    def clean(self) -> dict[str, Any]:
        """Called by Django.

        :raises ValidationError: when the request ended early: what came of the file may be a part of it
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
        validators=[_WORD],
        help_text=_("the name that the code says"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    field_order = ("name", "code", "main")


class JsonField(forms.JSONField):
    """JSON that may be left out, shown as an empty field."""

    def prepare_value(self, value: Any) -> Any:
        """Called by Django for what is shown."""
        return "" if value is None else super().prepare_value(value)


class NewFilterForm(CodeForm):
    """A filter: what it is, and its code."""

    keyword = forms.CharField(
        label=_("Keyword"),
        validators=[_WORD],
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
        """What the API is told of the filter: what was said, since native code must not be described here."""
        names = ("keyword", "environment", "main", "language", "help", "reverse", "parameters", "capabilities")
        said = {name: self.cleaned_data[name] for name in (*names, "self_service")}
        return {name: value for name, value in said.items() if value not in (None, "", False, [], {})}


class NewDependencyForm(UploadForm):
    """A file beside the code of filters."""

    name = forms.CharField(
        label=_("Name"), validators=[_WORD], help_text=_("of the file, as the filter's code looks for it")
    )
    help = forms.CharField(label=_("What it is for"), required=False)
    field_order = ("name", "code", "help")


class AttachForm(forms.Form):
    """The filters that a file is for."""

    filters = forms.MultipleChoiceField(
        label=_("Filters"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("registered filters that run as storlets; all others are one file"),
    )

    def __init__(self, *args: Any, keywords: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["filters"].choices = [(one, one) for one in keywords]


class ForcedFilterForm(forms.Form):
    """Deleting a filter."""

    force = forms.BooleanField(
        label=_("Insist"), required=False, help_text=_("also where stored objects cannot be read any more without it")
    )


class ForcedMetricForm(forms.Form):
    """Stopping or deleting a metric."""

    force = forms.BooleanField(
        label=_("Insist"), required=False, help_text=_("also while policies watch it, which then see silence")
    )
