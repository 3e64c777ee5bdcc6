"""The kinds of things in the registry, which have the same pages: what the API calls them, and what is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from sluice_dashboard.registry import forms as own

Data = Mapping[str, Any]
#: Members and patterns that a line of a list shows.
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Kind:
    """Things at one path of the API.

    :param slug: the last part of the path: it is the field of a page, too
    :param one: what one is called within a sentence
    :param rules: what the API's operations about it begin with
    :param columns: titles of columns beside the name, and what stands in them
    :param form: makes one
    :param key: the field with its name
    :param fixed: fields that stay when it is changed
    :param members: of a group: the field with its members, who come and go one by one; a form changes anything else
    :param forced: whether a change can be insisted on although policies use it
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


STEREOTYPES: Final = "stereotypes"


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


_ALIAS_OF: Final[Mapping[str, Any]] = {"filter": _("filter"), "metric": _("metric"), "target": _("target")}

_LISTED: Final = (
    _group("gtenants", "tenants", _("Groups of tenants"), _("group of tenants"), _("Tenants"), own.TenantGroupForm),
    _group(
        "gcontainers",
        "containers",
        _("Groups of containers"),
        _("group of containers"),
        _("Containers"),
        own.ContainerGroupForm,
    ),
    _group("gvolumes", "volumes", _("Groups of volumes"), _("group of volumes"), _("Volumes"), own.VolumeGroupForm),
    Kind(
        "terms",
        _("Terms"),
        _("term"),
        "/registry/terms",
        "terms",
        ((_("Types"), lambda one: ", ".join(one["patterns"])),),
        own.TermForm,
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
        own.AliasForm,
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
        own.StereotypeForm,
    ),
)
#: By slug, in the order of the tabs.
KINDS: Final = {one.slug: one for one in _LISTED}
