"""Actions on a policy besides editing: enable, disable, delete, and roll back the last change."""

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
    """The version of the policy that the question shows."""

    version = forms.IntegerField(required=False, widget=forms.HiddenInput)


class PolicyQuestionView(ConfirmView):
    """A question about one policy; a change of the policy meanwhile refuses the action."""

    form_class = VersionForm
    template_name = "sluice_dashboard/policies/confirm.html"
    next_page = ("detail", "policy_id")

    @cached_property
    def policy(self) -> Mapping[str, Any]:
        """The policy as the API returns it."""
        return api.client(self.request).policy(self.kwargs["policy_id"])

    def get_initial(self) -> dict[str, Any]:
        return {} if self.request.method == "POST" else {"version": self.policy["version"]}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "sentences": self.sentences()}

    def sentences(self) -> list[str]:
        """The policies in the question."""
        return [self.policy["source"]]


class EnableView(PolicyQuestionView):
    """Enable a disabled policy."""

    page_title = _("Enable a policy")
    submit_label = _("Enable")
    enabled = True
    done = _("The policy is enabled.")

    def question(self) -> str:
        return str(_("Enable this policy?"))

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        """Enable it."""
        client.update_policy(self.kwargs["policy_id"], {"enabled": self.enabled}, etag_of(data["version"]))


class DisableView(EnableView):
    """Remove the assignments of a policy, and keep the policy."""

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


class RollBackView(PolicyQuestionView):
    """Roll back the last change of a policy; the question shows the API's plan."""

    page_title = _("Roll back the last change")
    submit_label = _("Roll back")

    @cached_property
    def plan(self) -> Mapping[str, Any]:
        """The planned changes, and the version of the configuration for which they were planned."""
        return api.client(self.request).undo_policy(self.kwargs["policy_id"], plan=True)

    def get_initial(self) -> dict[str, Any]:
        return {} if self.request.method == "POST" else {"version": self.plan["version"]}

    def question(self) -> str:
        hows = ", ".join(name_of(HOWS, one["how"]) for one in self.plan["changes"])
        return str(_("Roll back the last change of this policy? It %s.")) % (hows or str(_("stays as it is")))

    def sentences(self) -> list[str]:
        return [(one["after"] or one["before"])["policy"] for one in self.plan["changes"]]

    def get_success_url(self) -> str:
        return f"{url_in_panel(self.request, 'index')}?changed={self.kwargs['policy_id']}"

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Roll it back, unless the configuration has changed since the plan."""
        client.undo_policy(self.kwargs["policy_id"], etag=etag_of(data["version"]))
        return str(_("The last change is rolled back."))
