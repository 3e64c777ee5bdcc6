"""What is shown of a text while it is written: what is wrong, what it means, and whom it overrides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from sluice_client import ApiError, Client
from sluice_dashboard import api
from sluice_dashboard.policies.names import ABOUT, REASONS, name_of

#: Policies whose sentences are read, of those that are named.
_READ: Final = 5
#: A text of the API about an action is called so, with its number.
_ACTION: Final = "action "


def check(client: Client, text: str, replaces: str = "") -> dict[str, Any]:
    """What the API says of ``text``: its ``problems``, and the ``sentences`` with what they mean.

    :param replaces: the id of the policy whose text it shall be
    :raises ClientError: when the text is refused; see :func:`refused`
    """
    if not text.strip():
        return {}
    checked = client.check_policy(text, replaces)
    problems = [warning for one in checked for warning in one["warnings"]]
    return {
        "problems": problems,
        "refusals": list(filter(None, (one["refusal"] for one in checked))),
        "sentences": [explained(client, one) for one in checked],
        "checked": True,
    }


def refused(failure: api.Failure) -> dict[str, Any]:
    """The same of a text that the API refuses: what is wrong in it, or why else."""
    return {"problems": failure.problems} if failure.problems else {"failure": failure}


def explained(client: Client, checked: Mapping[str, Any]) -> dict[str, Any]:
    """A sentence as the API has understood it, with the policies that it would meet."""
    return {
        "text": checked["policy"],
        "explanation": [(_about(one["about"]), one["text"]) for one in checked["explanation"]],
        "overrides": list(_named(client, checked["overrides"])),
        "overridden_by": list(_named(client, checked["overridden_by"])),
        "more": checked["more_overridden"],
    }


def _about(word: str) -> str:
    number = word.removeprefix(_ACTION)
    return _("Action %s") % number if number != word else name_of(ABOUT, word)


def _named(client: Client, overridden: Sequence[Mapping[str, str]]) -> Iterator[dict[str, str]]:
    """Each of ``overridden`` with the sentence of its policy, where that is known."""
    known: dict[str, str] = {}
    for one in overridden:
        policy = one["policy"]
        if policy not in known:
            known[policy] = _sentence(client, policy) if len(known) < _READ else ""
        yield {**one, "sentence": known[policy], "reason": name_of(REASONS, one["reason"])}


def _sentence(client: Client, policy: str) -> str:
    try:
        return str(client.policy(policy)["source"])
    except ApiError:  # deleted meanwhile, or none of one's own
        return ""
