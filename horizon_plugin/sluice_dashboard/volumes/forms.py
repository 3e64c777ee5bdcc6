"""Forms for changes of volumes, and fields that forms of tiers and pools share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django import forms
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import api

_FABRICS: Final = ("nbd", "iscsi", "rbd", "nfs", "fc")
LONGEST_NAME: Final = 255
RATE_HELP: Final = _("with its unit, as 50MBps; a number alone is MB/s")
#: The message after an operation was submitted.
ORDERED: Final = _("It was ordered. The list of operations shows how far it is.")
#: Nodes in the choices of a field.
_OFFERED: Final = 50


class Suggesting(forms.TextInput):
    """A text field that suggests words, and accepts others."""

    words: Iterable[str] = ()

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Called by templates."""
        known = f"{name}-words"
        field = super().render(name, value, {**(attrs or {}), "list": known, "autocomplete": "off"}, renderer)
        options = format_html_join("", '<option value="{}"></option>', ((one,) for one in self.words))
        return format_html('{}<datalist id="{}">{}</datalist>', field, known, options)


def known_nodes(request: HttpRequest, client: Client) -> list[str]:
    """Nodes that the user may name: all for users who may list nodes, else nodes with volumes of the project."""
    if api.permissions(request).allow("nodes:list"):
        return [node["node"] for node in client.nodes()][:_OFFERED]
    used = (operation["data"].get("node") for operation in client.volume_operations())
    return sorted({str(node) for node in used if node})[:_OFFERED]


class DemandsForm(forms.Form):
    """Demands on a volume, or promises of a tier."""

    resiliency = forms.CharField(
        label=_("Resiliency"), required=False, help_text=_("none, raid, or the number of replicas")
    )
    bandwidth = forms.CharField(label=_("Bandwidth"), required=False, help_text=RATE_HELP)
    iops = forms.FloatField(label=_("Operations per second"), required=False, min_value=1)
    fabric = forms.ChoiceField(
        label=_("Fabric"), required=False, choices=[("", _("any")), *((one, one) for one in _FABRICS)]
    )


def given(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the filled fields of ``names``, or of all without names."""
    return {name: data[name] for name in names or data if data[name] not in (None, "")}


class TieredForm(DemandsForm):
    """A tier by its name, or by demands."""

    tier = forms.ChoiceField(label=_("Tier"), required=False)
    field_order = ("name", "size", "tier")

    def clean(self) -> dict[str, Any]:
        """Called when all fields are valid."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        demanded = given({name: data.get(name) for name in DemandsForm.base_fields})
        if data.get("tier") and demanded:
            self.add_error("tier", _("Choose a tier, or say what the volume must have, but not both."))
        return data


class CreateForm(TieredForm):
    """A new volume."""

    name = forms.CharField(label=_("Name"), required=False, max_length=LONGEST_NAME, help_text=_("need not be unique"))
    size = forms.IntegerField(label=_("Size in GiB"), min_value=1)


class RetypeForm(TieredForm):
    """Another tier of a volume."""


class SizeForm(forms.Form):
    """A larger size."""

    size = forms.IntegerField(label=_("New size in GiB"), min_value=1)


class SnapshotForm(forms.Form):
    """A new snapshot."""

    name = forms.CharField(label=_("Name"), required=False, max_length=LONGEST_NAME)


class AttachForm(forms.Form):
    """The node for a volume."""

    node = forms.CharField(label=_("Node"), widget=Suggesting, help_text=_("a machine with a konnector"))
    export = forms.ChoiceField(
        label=_("Shown there as"),
        choices=[("block", _("a block device")), ("nbd", _("an NBD socket for QEMU"))],
    )
    adopt = forms.BooleanField(
        label=_("What it holds passed no filter"),
        required=False,
        help_text=_("Sluice did not make this volume, so you have to say that"),
    )


class DetachForm(forms.Form):
    """The mode of a detachment."""

    force = forms.BooleanField(
        label=_("By force"),
        required=False,
        help_text=_("also when the konnector of its node does not answer; one that answers decides as always"),
    )
    machine_is_gone = forms.BooleanField(
        label=_("The machine is off, and will not use the volume again"),
        required=False,
        help_text=_("This is believed. If it is not true, two machines may write, and data are lost."),
    )
