"""What is done to a policy beside writing it: enable, disable, delete, and undo the last change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.names import HOWS, name_of
from sluice_dashboard.policies.editor import etag_of
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import ConfirmView


class VersionForm(forms.Form):
    """The version of what the question was about."""

    version = forms.IntegerField(required=False, widget=forms.HiddenInput)


class PolicyQuestionView(ConfirmView):
    """A question about one policy, which must not be changed while it is asked."""

    form_class = VersionForm
    template_name = "sluice_dashboard/policies/confirm.html"
    next_page = ("detail", "policy_id")

    @cached_property
    def policy(self) -> Mapping[str, Any]:
        """The policy as it is."""
        return api.client(self.request).policy(self.kwargs["policy_id"])

    def get_initial(self) -> dict[str, Any]:
        return {} if self.request.method == "POST" else {"version": self.policy["version"]}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "sentences": self.sentences()}

    def sentences(self) -> list[str]:
        """Those that the question is about."""
        return [self.policy["source"]]


class EnableView(PolicyQuestionView):
    """Let a disabled policy work again."""

    page_title = _("Enable a policy")
    submit_label = _("Enable")
    enabled = True
    done = _("The policy is enabled.")

    def question(self) -> str:
        return str(_("Enable this policy?"))

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        """Switch it."""
        client.update_policy(self.kwargs["policy_id"], {"enabled": self.enabled}, etag_of(data["version"]))


class DisableView(EnableView):
    """Take back what a policy has set, and keep the policy."""

    page_title = _("Disable a policy")
    submit_label = _("Disable")
    enabled = False
    done = _("The policy is disabled.")

    def question(self) -> str:
        return str(_("Disable this policy? What it has set is taken back; it can be enabled again."))


class DeleteView(PolicyQuestionView):
    """Delete a policy."""

    page_title = _("Delete a policy")
    submit_label = _("Delete")

    def question(self) -> str:
        return str(_("Delete this policy? What it has set is taken back."))

    def get_success_url(self) -> str:
        return f"{url_in_panel(self.request, 'index')}?changed={self.kwargs['policy_id']}"

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Delete it."""
        client.delete_policy(self.kwargs["policy_id"], version=data["version"])
        return str(_("The policy is deleted."))


class UndoView(PolicyQuestionView):
    """Undo the last change of a policy; the question is the API's plan of it."""

    page_title = _("Undo the last change")
    submit_label = _("Undo")

    @cached_property
    def plan(self) -> Mapping[str, Any]:
        """What would be changed, and the version of the configuration that it was planned for."""
        return api.client(self.request).undo_policy(self.kwargs["policy_id"], plan=True)

    def get_initial(self) -> dict[str, Any]:
        return {} if self.request.method == "POST" else {"version": self.plan["version"]}

    def question(self) -> str:
        hows = ", ".join(name_of(HOWS, one["how"]) for one in self.plan["changes"])
        return str(_("Undo the last change of this policy? It %s.")) % (hows or str(_("stays as it is")))

    def sentences(self) -> list[str]:
        return [(one["after"] or one["before"])["policy"] for one in self.plan["changes"]]

    def get_success_url(self) -> str:
        return f"{url_in_panel(self.request, 'index')}?changed={self.kwargs['policy_id']}"

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Undo it, unless something else was changed since it was planned."""
        client.undo_policy(self.kwargs["policy_id"], etag=etag_of(data["version"]))
        return str(_("The last change is undone."))
