"""The editor of policies: checks and completes a text during typing, and shows its meaning before it is saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django import forms
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from sluice_client import ApiError, Client
from sluice_dashboard import api
from sluice_dashboard.names import ABOUT, REASONS, name_of
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import ActionView, ScriptView

#: Of the named policies, so many sentences are fetched.
_READ: Final = 5
#: Form of the name of an action in a text of the API, with its number.
_ACTION: Final = "action "
_CHECK_TEMPLATE: Final = "sluice_dashboard/policies/_check.html"
#: A sentence in an editable form.
_EXAMPLE: Final = "FOR TENANT acme WHEN PUTS_SEC > 3 DO SET compression"


def check(client: Client, text: str, replaces: str = "") -> dict[str, Any]:
    """Return the API's check of ``text``: its ``problems``, and the ``sentences`` with their meaning.

    :param replaces: the id of the policy that gets this text
    :raises ClientError: if the text is refused; see :func:`refused`
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
    """Return the same for a refused text: its problems, or another reason."""
    return {"problems": failure.problems} if failure.problems else {"failure": failure}


def explained(client: Client, checked: Mapping[str, Any]) -> dict[str, Any]:
    """A sentence as the API parsed it, with the policies that overlap it."""
    return {
        "text": checked["policy"],
        "explanation": [(_about(one["about"]), one["text"]) for one in checked["explanation"]],
        "overrides": list(_named(client, checked["overrides"])),
        "overridden_by": list(_named(client, checked["overridden_by"])),
        "more": checked["more_overridden"],
    }


def _about(word: str) -> str:
    number = word.removeprefix(_ACTION)
    return gettext("Action %s") % number if number != word else name_of(ABOUT, word)


def _named(client: Client, overridden: Sequence[Mapping[str, str]]) -> Iterator[dict[str, str]]:
    """Each of ``overridden`` with the sentence of its policy, if that is known."""
    known: dict[str, str] = {}
    for other in overridden:
        policy = other["policy"]
        if policy not in known:
            known[policy] = _sentence(client, policy) if len(known) < _READ else ""
        yield {**other, "sentence": known[policy], "reason": name_of(REASONS, other["reason"])}


def _sentence(client: Client, policy: str) -> str:
    try:
        return str(client.policy(policy)["source"])
    except ApiError:  # deleted meanwhile, or not visible to the user
        return ""


def unix_lines(text: str) -> str:
    """``text`` of a form with Unix line ends: browsers send CR LF, and errors name columns of the typed text."""
    return text.replace("\r\n", "\n")


def etag_of(version: int | None) -> str:
    """The ``ETag`` of a version in a form; empty without one."""
    return "" if version is None else f'"{version}"'


class PolicyForm(forms.Form):
    """The text; ``version`` is that of the replaced policy."""

    policy = forms.CharField(
        label=_("Policy"),
        strip=False,
        widget=forms.Textarea(
            attrs={
                "class": "form-control",
                "rows": 3,
                "spellcheck": "false",
                "autocomplete": "off",
                "autocapitalize": "off",
                "aria-autocomplete": "list",
                "aria-controls": "policy-words",
                "aria-describedby": "policy-help policy-problems",
            }
        ),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def clean_policy(self) -> str:
        """Return the text as typed."""
        return unix_lines(self.cleaned_data["policy"])


class EditorView(ActionView):
    """A page with the editor."""

    form_class = PolicyForm
    template_name = "sluice_dashboard/policies/editor.html"

    def add_failure(self, form: forms.Form, failure: api.Failure) -> None:
        """Show the faults of the text below it, with carets."""
        if failure.problems:
            errors = sum(one["severity"] == "error" for one in failure.problems)
            form.add_error("policy", ngettext("not saved: %d error", "not saved: %d errors", errors) % errors)
        else:
            super().add_failure(form, failure)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        refusal: api.Failure | None = kwargs.get("refusal")
        problems = list(refusal.problems) if refusal else []
        return {**context, "problems": problems, "replaces": self.kwargs.get("policy_id", ""), "example": _EXAMPLE}


class CreateView(EditorView):
    """A new policy, or several."""

    page_title = _("Write a policy")

    def get_success_url(self) -> str:
        return self.success_url or super().get_success_url()

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Create the policies of the text, all or none; then show the new policy, or the list if there are several."""
        made = client.create_policies(data["policy"])
        if len(made) == 1:
            self.success_url = url_in_panel(self.request, "detail", made[0]["id"])
        return str(ngettext("%d policy is saved.", "%d policies are saved.", len(made)) % len(made))


class EditView(EditorView):
    """Another text for a policy, unless the policy was changed meanwhile."""

    page_title = _("Change a policy")
    next_page = ("detail", "policy_id")

    def get_initial(self) -> dict[str, Any]:
        if self.request.method == "POST":  # the typed text counts, whatever happened to the policy
            return {}
        found = api.client(self.request).policy(self.kwargs["policy_id"])
        return {"policy": found["source"], "version": found["version"]}

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Replace the text of the policy."""
        client.update_policy(self.kwargs["policy_id"], {"policy": data["policy"]}, etag_of(data["version"]))
        return str(_("The policy is saved."))


class CheckView(ScriptView):
    """The check of a text during typing, as parts of the page; called by ``editor.js``."""

    def answer(self, client: Client, asked: Mapping[str, str]) -> HttpResponseBase:
        return self._parts(check(client, unix_lines(asked.get("policy", "")), asked.get("replaces", "")))

    def failed(self, failure: api.Failure) -> HttpResponseBase:
        return self._parts(refused(failure))

    def _parts(self, shown: Mapping[str, Any]) -> HttpResponseBase:
        return HttpResponse(render_to_string(_CHECK_TEMPLATE, shown, request=self.request))


class WordsView(ScriptView):
    """The possible words at a position of a text, as JSON; called by ``words.js``."""

    def answer(self, client: Client, asked: Mapping[str, str]) -> HttpResponseBase:
        position = asked.get("position", "")
        place = int(position) if position.isascii() and position.isdigit() and len(position) < 7 else 0
        return JsonResponse(client.complete_policy(unix_lines(asked.get("policy", "")), place))

    def failed(self, failure: api.Failure) -> HttpResponseBase:
        """Return no words: the check shows the reason."""
        return JsonResponse({"start": 0, "end": 0, "candidates": [], "more": False})
