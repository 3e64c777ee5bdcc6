"""What words of the API about bandwidth are called on pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

#: Method → its name, for headings; and the same within a sentence.
METHODS: Final[Mapping[str, Any]] = {
    "GET": _("Downloads (GET)"),
    "PUT": _("Uploads (PUT)"),
    "REPLICATION": _("Replication"),
}
MOVES: Final[Mapping[str, Any]] = {
    "GET": _("downloads"),
    "PUT": _("uploads"),
    "REPLICATION": _("replication"),
}
#: Objective → its name.
OBJECTIVES: Final[Mapping[str, Any]] = {
    "get_bw": _("Downloads, at least (get_bw)"),
    "put_bw": _("Uploads, at least (put_bw)"),
    "max_get_bw": _("Downloads, at most (max_get_bw)"),
    "max_put_bw": _("Uploads, at most (max_put_bw)"),
}
#: Objective that is a floor → the method that it is about.
FLOORS: Final[Mapping[str, str]] = {"get_bw": "GET", "put_bw": "PUT"}
#: Side of a node → its name.
SIDES: Final[Mapping[str, Any]] = {"proxy": _("proxy"), "storage_node": _("storage node")}
#: How a capacity is known → the same in words.
SOURCES: Final[Mapping[str, Any]] = {
    "configured": _("configured"),
    "estimated": _("estimated"),
    "unknown": _("not known"),
}
#: What is drawn of a tenant: part of a metric's name → its name.
QUANTITIES: Final[Mapping[str, Any]] = {
    "MEASURED": _("measured"),
    "SHARE": _("share"),
    "FLOOR": _("floor"),
    "CEILING": _("ceiling"),
}


def name_of(names: Mapping[str, Any], word: str) -> str:
    """The name of ``word``; a word of a newer API is shown as it is."""
    return str(names.get(word, word))


def owner_name(row: Mapping[str, Any]) -> str:
    """Whose a flow or objective is: the tenant's name, where the API knows one, and the container."""
    return "/".join(filter(None, (row["label"] or row["account"], row.get("container"))))
