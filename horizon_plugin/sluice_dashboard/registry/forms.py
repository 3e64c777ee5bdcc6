"""Forms of what is registered; fields are called as in the bodies of the API, which names them when it refuses one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

_ROWS: Final = 6


class LinesField(forms.CharField):
    """A list of texts, one on each line."""

    widget = forms.Textarea(attrs={"rows": _ROWS, "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) or value is None else "\n".join(value)

    def clean(self, value: Any) -> list[str]:
        """Without empty lines."""
        return [line.strip() for line in super().clean(value).splitlines() if line.strip()]


class ParametersField(forms.CharField):
    """Parameters of a filter: ``name=value`` on each line."""

    widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return "\n".join(f"{name}={one}" for name, one in value.items())
        return value

    def clean(self, value: Any) -> dict[str, str]:
        """Name → value, as they were typed."""
        found: dict[str, str] = {}
        for line in filter(None, (line.strip() for line in super().clean(value).splitlines())):
            name, sign, text = (part.strip() for part in line.partition("="))
            if not sign or not name:
                raise ValidationError(_("`%(line)s` is no parameter, expected `name=value`"), params={"line": line})
            if name in found:
                raise ValidationError(_("`%(name)s` stands there twice"), params={"name": name})
            found[name] = text
        return found


class GroupForm(forms.Form):
    """A group of a kind whose members the subclass has."""

    name = forms.CharField(label=_("Name"))


class TenantGroupForm(GroupForm):
    """A group of tenants."""

    tenants = LinesField(
        label=_("Tenants"), required=False, help_text=_("One on each line: the name of a project, or an account.")
    )


class ContainerGroupForm(GroupForm):
    """A group of containers."""

    containers = LinesField(
        label=_("Containers"), required=False, help_text=_("One on each line, as acme/logs: tenant/container.")
    )


class VolumeGroupForm(GroupForm):
    """A group of volumes."""

    volumes = LinesField(
        label=_("Volumes"),
        required=False,
        help_text=_("One on each line, as acme/data1: tenant/name or id of a volume."),
    )


class TermForm(forms.Form):
    """A word for types of objects."""

    term = forms.CharField(label=_("Term"), help_text=_("Kept in upper case, as SHEETS."))
    patterns = LinesField(
        label=_("Types"), help_text=_("One on each line: extensions and media types, as ods, text/csv or image/*.")
    )


class AliasForm(forms.Form):
    """Another word for something."""

    name = forms.CharField(label=_("Name"))
    of = forms.ChoiceField(
        label=_("Stands for"),
        choices=[("filter", _("a filter with parameters")), ("metric", _("a metric")), ("target", _("a target"))],
    )
    text = forms.CharField(
        label=_("What it stands for"),
        help_text=_("The keyword of a filter, the name of a metric, or a target as acme/logs."),
    )
    level = forms.ChoiceField(
        label=_("Level"),
        required=False,
        choices=[
            ("", _("as the sentence says")),
            ("tenant", _("tenant")),
            ("container", _("container")),
            ("object", _("object")),
            ("volume", _("volume")),
            ("cluster", _("cluster")),
        ],
        help_text=_("Of a metric: of what it is asked for. Of a volume: volume."),
    )
    params = ParametersField(
        label=_("Parameters"), required=False, help_text=_("Of a filter: name=value on each line, as engine=zstd.")
    )


class StereotypeForm(forms.Form):
    """Sentences with a placeholder for the target."""

    name = forms.CharField(label=_("Name"))
    text = forms.CharField(
        label=_("Sentences"),
        strip=False,
        widget=forms.Textarea(attrs={"rows": _ROWS, "spellcheck": "false"}),
        help_text=_("With {target} where the tenant or container will stand: FOR {target} DO SET compression."),
    )
    help = forms.CharField(label=_("What it is for"), required=False)


class DeleteForm(forms.Form):
    """The question whether to insist."""

    force = forms.BooleanField(
        label=_("Also when policies use it: they keep what they were written with"), required=False
    )


class MemberForm(forms.Form):
    """Who comes into a group."""

    member = forms.CharField(label=_("Member"))


class TargetForm(forms.Form):
    """What a stereotype is applied to."""

    target = forms.CharField(
        label=_("Tenant or container"), help_text=_("The name of a project, or a container as acme/logs.")
    )


def given(data: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request with what was typed; an alias of something else than a filter has no parameters."""
    return {name: value for name, value in data.items() if name not in ("etag", "force") and value != {}}
