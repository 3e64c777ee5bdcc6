"""Changes and differences of the configuration, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

#: What a change names of each kind before it counts the rest.
_NAMED: Final = 3

_KINDS: Final = {
    "policies": gettext_lazy("policy %s"),
    "filters": gettext_lazy("filter %s"),
    "metrics": gettext_lazy("metric %s"),
    "controllers": gettext_lazy("controller %s"),
    "entries": gettext_lazy("registry: %s"),
}
_WHATS: Final = {
    "policy": gettext_lazy("policy"),
    "filter": gettext_lazy("filter"),
    "metric": gettext_lazy("metric"),
    "controller": gettext_lazy("controller"),
    "dependency": gettext_lazy("dependency"),
    "entry": gettext_lazy("registry entry"),
}
_HOWS: Final = {
    "create": gettext_lazy("created"),
    "replace": gettext_lazy("changed"),
    "delete": gettext_lazy("deleted"),
}


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change as it is listed; ``about`` are the things that it names."""

    change: Mapping[str, Any]
    about: tuple[str, ...]
    assignments: str


def change_row(change: Mapping[str, Any]) -> ChangeRow:
    """``change`` as the API answers it, in words."""
    about = []
    for kind, text in _KINDS.items():
        names = change[kind]
        about += [str(text) % name for name in names[:_NAMED]]
        if len(names) > _NAMED:
            about.append(_("and %d more") % (len(names) - _NAMED))
    counts = []
    if change["set"]:
        counts.append(ngettext("%d assignment set", "%d assignments set", change["set"]) % change["set"])
    if change["taken_back"]:
        number = change["taken_back"]
        counts.append(ngettext("%d taken back", "%d taken back", number) % number)
    return ChangeRow(change, tuple(about), ", ".join(counts))


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """Something that is another than before; ``before`` and ``after`` are text, empty where there is nothing."""

    what: str
    name: str
    how: str
    before: str
    after: str


def difference_row(difference: Mapping[str, Any]) -> DifferenceRow:
    """``difference`` as the API answers it, in words."""
    what, how = difference["what"], difference["how"]
    return DifferenceRow(
        str(_WHATS.get(what, what)),
        difference["name"],
        str(_HOWS.get(how, how)),
        document_text(difference["before"]),
        document_text(difference["after"]),
    )


def document_text(document: Mapping[str, Any] | None) -> str:
    """A policy's sentence, or what else stands there as JSON."""
    if document is None:
        return ""
    if "policy" in document:
        text = str(document["policy"])
        return text if document.get("enabled", True) else _("%s (disabled)") % text
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
