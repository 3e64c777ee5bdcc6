"""Forms that set and unset service level objectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.names import OBJECTIVES, name_of
from sluice_dashboard.views import ActionView, ConfirmView

#: Fields of the form that the query of the URL may fill.
_FILLED: Final = ("account", "name", "value", "storage_policy")


class ObjectiveForm(forms.Form):
    """Tenant or container, objective, rate and storage policy."""

    account = forms.CharField(label=_("Tenant"), help_text=_("The name of its project, or its account."))
    name = forms.ChoiceField(
        label=_("Objective"),
        choices=list(OBJECTIVES.items()),
        help_text=_("Over the whole cluster. What is promised comes first; what is bounded is never exceeded."),
    )
    value = forms.CharField(label=_("Rate"), help_text=_("With its unit, as 30MBps; a bare number is MB/s."))
    storage_policy = forms.CharField(
        label=_("Storage policy"), required=False, help_text=_("Its name; empty: under each of them.")
    )


class SetView(ActionView):
    """Set a floor or a ceiling of a tenant; the query of the URL fills the form."""

    form_class = ObjectiveForm
    page_title = _("Set an objective")
    submit_label = _("Set")

    def get_initial(self) -> dict[str, Any]:
        return {name: self.request.GET[name] for name in _FILLED if name in self.request.GET}

    def field_of(self, failure: api.Failure, form: forms.Form) -> str | None:
        """The API reports an invalid rate under the name of the objective."""
        if any(f"`{name}`" in failure.message for name in OBJECTIVES):
            return "value"
        return super().field_of(failure, form)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Set it; the message includes warnings."""
        made = client.set_slo(data["account"], data["name"], data["value"], data["storage_policy"])
        doubts = [one["message"] for one in made["warnings"]]
        return "; ".join((str(_("The objective is set.")), *doubts))


class DeleteView(ConfirmView):
    """Unset an objective."""

    page_title = _("Unset an objective")
    submit_label = _("Unset")

    def question(self) -> str:
        words = {
            "objective": name_of(OBJECTIVES, self.kwargs["objective"]),
            "account": self.kwargs["account"],
            "policy": self._storage_policy(),
        }
        if words["policy"]:
            text = _("Unset “%(objective)s” of %(account)s under the storage policy %(policy)s? Its others stay.")
        else:
            text = _("Unset “%(objective)s” of %(account)s? Its others stay.")
        return str(text) % words

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Unset it."""
        client.delete_slo(self.kwargs["account"], self.kwargs["objective"], self._storage_policy())
        return str(_("The objective is unset."))

    def _storage_policy(self) -> str:
        return str(self.request.GET.get("storage_policy", ""))
