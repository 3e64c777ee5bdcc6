"""What words of the API are called on pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

#: State of a policy → its name.
STATES: Final[Mapping[str, Any]] = {
    "active": _("active"),
    "waiting": _("waiting"),
    "failed": _("failed"),
    "disabled": _("disabled"),
}
#: What an actor did → its name.
FIRINGS: Final[Mapping[str, Any]] = {
    "set": _("set"),
    "changed": _("changed"),
    "taken_back": _("taken back"),
}
#: What an explanation is about → its name; actions are numbered.
ABOUT: Final[Mapping[str, Any]] = {
    "target": _("Applies to"),
    "kind": _("Kind"),
    "fires": _("When"),
    "order": _("Order"),
}
#: Why an action does not hold beside another one → the same in words.
REASONS: Final[Mapping[str, Any]] = {
    "newer": _("the newer of two policies for the same target wins"),
    "deleted": _("a DELETE names it"),
    "narrower": _("the policy about the narrower target wins"),
}
#: What becomes of a policy when a change is undone.
HOWS: Final[Mapping[str, Any]] = {
    "create": _("comes back"),
    "replace": _("becomes what it was before"),
    "delete": _("is deleted"),
}


def name_of(names: Mapping[str, Any], word: str) -> str:
    """The name of ``word``; a word of a newer API is shown as it is."""
    return str(names.get(word, word))
