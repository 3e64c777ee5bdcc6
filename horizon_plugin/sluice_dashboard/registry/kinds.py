"""The kinds of registry entries, which have the same pages: names in the API, columns, forms.

Fields are named as in the bodies of the API, which names them when it refuses one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

_ROWS: Final = 6
Data = Mapping[str, Any]
#: Members and patterns in a line of a list.
_SHOWN: Final = 5
STEREOTYPES: Final = "stereotypes"
_ALIAS_OF: Final[Mapping[str, Any]] = {"filter": _("filter"), "metric": _("metric"), "target": _("target")}


class LinesField(forms.CharField):
    """A list of texts, one on each line."""

    widget = forms.Textarea(attrs={"rows": _ROWS, "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) or value is None else "\n".join(value)

    def clean(self, value: Any) -> list[str]:
        """Remove empty lines."""
        return [line.strip() for line in super().clean(value).splitlines() if line.strip()]


class ParametersField(forms.CharField):
    """Parameters of a filter: ``name=value`` on each line."""

    widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return "\n".join(f"{name}={one}" for name, one in value.items())
        return value

    def clean(self, value: Any) -> dict[str, str]:
        """Return name → value, as typed."""
        parameters: dict[str, str] = {}
        for line in filter(None, (line.strip() for line in super().clean(value).splitlines())):
            name, sign, text = (part.strip() for part in line.partition("="))
            if not sign or not name:
                raise ValidationError(_("`%(line)s` is no parameter, expected `name=value`"), params={"line": line})
            if name in parameters:
                raise ValidationError(_("`%(name)s` stands there twice"), params={"name": name})
            parameters[name] = text
        return parameters


class GroupForm(forms.Form):
    """A group; the subclass has the kind of its members."""

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
    """Another word for a keyword or name."""

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
    """The question whether to force a deletion."""

    force = forms.BooleanField(
        label=_("Also when policies use it: they keep what they were written with"), required=False
    )


class MemberForm(forms.Form):
    """The new member of a group."""

    member = forms.CharField(label=_("Member"))


class TargetForm(forms.Form):
    """The target of a stereotype."""

    target = forms.CharField(
        label=_("Tenant or container"), help_text=_("The name of a project, or a container as acme/logs.")
    )


def given(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request; an alias of anything but a filter has no parameters."""
    return {name: value for name, value in data.items() if name not in ("etag", "force") and value != {}}


@dataclass(frozen=True, slots=True)
class Kind:
    """Entries at one path of the API.

    :param slug: the last part of the path, also of the page
    :param one: the name of an entry within a sentence
    :param rules: prefix of the API's operations on it
    :param columns: titles of columns beside the name, and their content
    :param form: creates one
    :param key: the field with its name
    :param fixed: fields that a change leaves
    :param members: of a group: the field with its members, which are added and removed singly; a form changes the rest
    :param forced: whether a change can be forced although policies use it
    """

    slug: str
    title: Any
    one: Any
    path: str
    rules: str
    columns: tuple[tuple[Any, Callable[[Data], str]], ...]
    form: type[forms.Form]
    key: str = "name"
    fixed: tuple[str, ...] = ("name",)
    members: str = ""
    forced: bool = False

    def rule(self, verb: str) -> str:
        """The operation of the API, as ``groups:create``."""
        return f"{self.rules}:{verb}"


def _few(found: list[str]) -> str:
    shown = ", ".join(found[:_SHOWN])
    return f"{shown} … ({len(found)})" if len(found) > _SHOWN else shown


def _members(field: str) -> Callable[[Data], str]:
    return lambda one: _few([one["labels"].get(member) or member for member in one[field]])


def _group(slug: str, field: str, title: Any, one: Any, column: Any, form: type[forms.Form]) -> Kind:
    columns = ((column, _members(field)),)
    return Kind(slug, title, one, f"/registry/{slug}", "groups", columns, form, members=field)


def _parameters(one: Data) -> str:
    return ", ".join(f"{name}={value}" for name, value in one["params"].items())


_LISTED: Final = (
    _group("gtenants", "tenants", _("Groups of tenants"), _("group of tenants"), _("Tenants"), TenantGroupForm),
    _group(
        "gcontainers",
        "containers",
        _("Groups of containers"),
        _("group of containers"),
        _("Containers"),
        ContainerGroupForm,
    ),
    _group("gvolumes", "volumes", _("Groups of volumes"), _("group of volumes"), _("Volumes"), VolumeGroupForm),
    Kind(
        "terms",
        _("Terms"),
        _("term"),
        "/registry/terms",
        "terms",
        ((_("Types"), lambda one: ", ".join(one["patterns"])),),
        TermForm,
        key="term",
        fixed=("term",),
        forced=True,
    ),
    Kind(
        "aliases",
        _("Aliases"),
        _("alias"),
        "/registry/aliases",
        "aliases",
        (
            (_("Of"), lambda one: str(_ALIAS_OF.get(one["of"], one["of"]))),
            (_("Stands for"), lambda one: str(one["text"])),
            (_("Level"), lambda one: one["level"] or "–"),
            (_("Parameters"), lambda one: _parameters(one) or "–"),
        ),
        AliasForm,
        fixed=("name", "of"),
        forced=True,
    ),
    Kind(
        STEREOTYPES,
        _("Stereotypes"),
        _("stereotype"),
        "/stereotypes",
        "stereotypes",
        ((_("What it is for"), lambda one: one["help"] or "–"), (_("Sentences"), lambda one: str(one["text"]))),
        StereotypeForm,
    ),
)
#: By slug, in the order of the tabs.
KINDS: Final = {one.slug: one for one in _LISTED}
