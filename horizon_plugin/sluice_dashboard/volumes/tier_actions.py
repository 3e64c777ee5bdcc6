"""Forms that change tiers, and what is known of pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.forms import ConfirmView
from sluice_dashboard.volumes import forms as shapes
from sluice_dashboard.volumes.actions import PanelView, known_nodes, ordered


class CreateTierView(PanelView):
    """A new tier, and its volume type."""

    form_class = shapes.TierForm
    page_title = gettext_lazy("Create tier")
    submit_label = gettext_lazy("Create tier")

    def get_success_url(self) -> str:
        return self.url_of("tiers")

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        made = client.collection("/volumes/tiers").create(shapes.given(data))
        return str(_("Tier %s was created.") % made["name"])


class MendTierView(PanelView, ConfirmView):
    """Cinder's volume type as the tier says."""

    page_title = gettext_lazy("Mend tier")
    submit_label = gettext_lazy("Mend")

    def get_success_url(self) -> str:
        return self.url_of("tiers")

    def question(self) -> str:
        return str(_("Put the volume type of tier %s in Cinder back to what the tier promises?") % self.kwargs["tier"])

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.mend_tier(self.kwargs["tier"])
        return str(_("The volume type is as the tier says."))


class DeleteTierView(PanelView, ConfirmView):
    """A tier that no volume is of."""

    page_title = gettext_lazy("Delete tier")

    def get_success_url(self) -> str:
        return self.url_of("tiers")

    def question(self) -> str:
        return str(_("Delete tier %s, and its volume type in Cinder?") % self.kwargs["tier"])

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.collection("/volumes/tiers").delete(self.kwargs["tier"])
        return str(_("Tier %s was deleted.") % self.kwargs["tier"])


class MeasurePoolView(PanelView):
    """With fio, by a konnector."""

    form_class = shapes.MeasureForm
    page_title = gettext_lazy("Measure pool")
    submit_label = gettext_lazy("Measure")

    def get_success_url(self) -> str:
        return self.url_of("pool", self.kwargs["pool"])

    def get_form(self, form_class: Any = None) -> forms.Form:
        form = super().get_form(form_class)
        if self.request.method != "POST":
            form.fields["node"].widget.words = known_nodes(self.request, api.client(self.request))
        return form

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.measure_pool(self.kwargs["pool"], **data)
        return ordered()


class FiguresView(PanelView):
    """Figures that somebody measured."""

    form_class = shapes.FiguresForm
    page_title = gettext_lazy("Enter what a pool carries")

    def get_success_url(self) -> str:
        return self.url_of("pool", self.kwargs["pool"])

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.calibrate_pool(self.kwargs["pool"], **data)
        return str(_("These figures count from now on."))
