"""Forms that order something of a volume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sluice_client import Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.forms import ActionView, ConfirmView
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import shown_failure
from sluice_dashboard.volumes import forms as shapes
from sluice_dashboard.volumes.lists import tier_choices

#: Nodes that a field offers.
_OFFERED: Final = 50
_DEMANDS: Final = tuple(shapes.DemandsForm.base_fields)


def ordered() -> str:
    """What is said when an operation was ordered."""
    return str(_("It was ordered. The list of operations shows how far it is."))


def known_nodes(request: HttpRequest, client: Client) -> list[str]:
    """Nodes that one may name: all of them for those who may list nodes, else those that had volumes of the project."""
    if api.permissions(request).allow("nodes:list"):
        return [one["node"] for one in client.nodes()][:_OFFERED]
    used = (one["data"].get("node") for one in client.volume_operations())
    return sorted({str(one) for one in used if one})[:_OFFERED]


class PanelView(ActionView):
    """A form of this panel, in whichever dashboard it is."""

    def url_of(self, name: str, *parts: str) -> str:
        """The URL of another page of the panel."""
        return url_in_panel(self.request, name, *parts)

    def get_success_url(self) -> str:
        """The volume, where the form is about one; else the list."""
        volume = self.kwargs.get("volume")
        return self.url_of("detail", volume) if volume else self.url_of("index")


def tiers_of(request: HttpRequest, empty: str) -> Sequence[tuple[str, str]]:
    """What one may choose; ``empty`` is what choosing none is called.

    When the API is away, what was typed is kept: only what was chosen can be.

    :raises ClientError: when nothing was typed yet
    """
    try:
        return tier_choices(api.client(request), empty)
    except ClientError:
        if request.method != "POST":
            raise
        chosen = request.POST.get("tier", "")
        return [("", empty), (chosen, chosen)]


class CreateView(PanelView):
    """A new volume: of a tier, or of the cheapest one that meets demands, which can be looked for first."""

    form_class = shapes.CreateForm
    page_title = gettext_lazy("Create volume")
    template_name = "sluice_dashboard/volumes/create.html"
    submit_label = gettext_lazy("Create volume")

    def get_form(self, form_class: Any = None) -> forms.Form:
        form = super().get_form(form_class)
        empty = _("by what is demanded below, else Cinder's default")
        form.fields["tier"].choices = tiers_of(self.request, empty)
        return form

    def get_initial(self) -> dict[str, Any]:
        return {name: self.request.GET[name] for name in shapes.CreateForm.base_fields if name in self.request.GET}

    def form_valid(self, form: forms.Form) -> HttpResponseBase:
        """With the button *Find the tier* nothing is made, and the page says what would be."""
        if "find" not in self.request.GET:
            return super().form_valid(form)
        demands = shapes.given(form.cleaned_data, "size", *_DEMANDS)
        match, status = None, 200
        try:
            match = api.client(self.request).match_tier(**demands)
        except ClientError as error:
            failure = shown_failure(error)
            self.add_failure(form, failure)
            status = failure.status
        response: HttpResponseBase = self.render_to_response(self.get_context_data(form=form, match=match))
        response.status_code = status
        return response

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.create_volume(**shapes.given(data))
        return ordered()


class ExtendView(PanelView):
    """A larger size."""

    form_class = shapes.SizeForm
    page_title = gettext_lazy("Extend volume")
    submit_label = gettext_lazy("Extend")

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.extend_volume(self.kwargs["volume"], data["size"])
        return ordered()


class RetypeView(PanelView):
    """Another tier, where the volume lies."""

    form_class = shapes.RetypeForm
    page_title = gettext_lazy("Change tier")
    submit_label = gettext_lazy("Change tier")

    def get_form(self, form_class: Any = None) -> forms.Form:
        form = super().get_form(form_class)
        form.fields["tier"].choices = tiers_of(self.request, _("by what is demanded below"))
        return form

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.retype_volume(self.kwargs["volume"], **shapes.given(data))
        return ordered()


class AttachView(PanelView):
    """To a node."""

    form_class = shapes.AttachForm
    page_title = gettext_lazy("Attach volume")
    submit_label = gettext_lazy("Attach")

    def get_form(self, form_class: Any = None) -> forms.Form:
        form = super().get_form(form_class)
        try:
            client = api.client(self.request)
            form.fields["node"].widget.words = known_nodes(self.request, client)
            known = client.volume(self.kwargs["volume"])["known"]
        except ClientError:
            if self.request.method != "POST":
                raise
            known = "adopt" not in self.request.POST  # what was typed is kept
        if known or not api.permissions(self.request).allow("volumes:adopt"):
            del form.fields["adopt"]
        return form

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        how = {"export": data["export"], **({"adopt": True} if data.get("adopt") else {})}
        client.attach_volume(self.kwargs["volume"], data["node"], **how)
        return ordered()


class DetachView(PanelView):
    """From its node, by force where that is allowed."""

    form_class = shapes.DetachForm
    page_title = gettext_lazy("Detach volume")
    template_name = "sluice_dashboard/volumes/detach.html"
    submit_label = gettext_lazy("Detach")

    def get_form(self, form_class: Any = None) -> forms.Form:
        form = super().get_form(form_class)
        if not api.permissions(self.request).allow("volumes:force_detach"):
            form.fields.clear()
        return form

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.detach_volume(self.kwargs["volume"], **{name: True for name, said in data.items() if said})
        return ordered()


class SnapshotView(PanelView):
    """A new snapshot."""

    form_class = shapes.SnapshotForm
    page_title = gettext_lazy("Create snapshot")
    submit_label = gettext_lazy("Create snapshot")

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.create_snapshot(self.kwargs["volume"], data["name"])
        return ordered()


class DeleteView(PanelView, ConfirmView):
    """The whole volume."""

    page_title = gettext_lazy("Delete volume")

    def get_success_url(self) -> str:
        return self.url_of("index")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "cancel_url": self.url_of("detail", self.kwargs["volume"])}

    def question(self) -> str:
        return str(_("Delete volume %s? Its data are lost.") % self.kwargs["volume"])

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.delete_volume(self.kwargs["volume"])
        return ordered()


class DeleteSnapshotView(PanelView, ConfirmView):
    """One snapshot."""

    page_title = gettext_lazy("Delete snapshot")

    def question(self) -> str:
        return str(_("Delete snapshot %s?") % self.kwargs["snapshot"])

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.delete_snapshot(self.kwargs["volume"], self.kwargs["snapshot"])
        return ordered()
