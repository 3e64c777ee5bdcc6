"""What a filter says of itself, in a few lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

Fact = tuple[str, str]


def filter_facts(found: Mapping[str, Any]) -> list[Fact]:
    """Of a filter as ``GET /filters/{keyword}`` shows it."""
    said = found["capabilities"]
    return [
        (_("What it does"), found["help"]),
        (_("Runs in"), found["environment"]),
        (_("Comes from"), _("the software of the nodes") if found["installed"] else _("an upload")),
        (_("Self-service"), yes_no(found["self_service"])),
        (_("A GET undoes it"), yes_no(found["reverse"])),
        (_("Places"), ", ".join(said.get("places", ()))),
        (_("Order"), str(said.get("stage", ""))),
    ]


def yes_no(value: bool) -> str:
    """In the language of whoever looks."""
    return str(_("yes") if value else _("no"))
