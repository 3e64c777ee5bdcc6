"""Forms that submit operations on a volume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sluice_client import Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.views import ActionView, ConfirmView, shown_failure
from sluice_dashboard.volumes.forms import (
    ORDERED,
    AttachForm,
    CreateForm,
    DemandsForm,
    DetachForm,
    RetypeForm,
    SizeForm,
    SnapshotForm,
    given,
    known_nodes,
)
from sluice_dashboard.volumes.tiers import tier_choices

_DEMANDS: Final = tuple(DemandsForm.base_fields)


class OrderView(ActionView):
    """A form that submits an operation on the volume in the URL."""

    next_page: ClassVar[tuple[str, ...]] = ("detail", "volume")
    done = ORDERED


def tiers_of(request: HttpRequest, empty: str) -> Sequence[tuple[str, str]]:
    """The choices of tiers; ``empty`` is the name of no choice.

    If the API is unreachable, the form keeps its input: only the chosen tier is a choice.

    :raises ClientError: if the form is still empty
    """
    try:
        return tier_choices(api.client(request), empty)
    except ClientError:
        if request.method != "POST":
            raise
        chosen = request.POST.get("tier", "")
        return [("", empty), (chosen, chosen)]


class CreateView(OrderView):
    """A new volume: of a tier, or of the cheapest one that meets demands, which can be searched first."""

    form_class = CreateForm
    page_title = _("Create volume")
    template_name = "sluice_dashboard/volumes/create.html"
    submit_label = _("Create volume")
    next_page = ("index",)

    def get_form(self, form_class: Any = None) -> forms.Form:
        form = super().get_form(form_class)
        empty = gettext("by what is demanded below, else Cinder's default")
        form.fields["tier"].choices = tiers_of(self.request, empty)
        return form

    def get_initial(self) -> dict[str, Any]:
        return {name: self.request.GET[name] for name in CreateForm.base_fields if name in self.request.GET}

    def form_valid(self, form: forms.Form) -> HttpResponseBase:
        """The button *Find the tier* creates nothing; the page shows the result of the search."""
        if "find" not in self.request.GET:
            return super().form_valid(form)
        demands = given(form.cleaned_data, "size", *_DEMANDS)
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

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        client.create_volume(**given(data))


class ExtendView(OrderView):
    """A larger size."""

    form_class = SizeForm
    page_title = _("Extend volume")
    submit_label = _("Extend")

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        client.extend_volume(self.kwargs["volume"], data["size"])


class RetypeView(OrderView):
    """Another tier for the volume."""

    form_class = RetypeForm
    page_title = _("Change tier")
    submit_label = _("Change tier")

    def get_form(self, form_class: Any = None) -> forms.Form:
        form = super().get_form(form_class)
        form.fields["tier"].choices = tiers_of(self.request, gettext("by what is demanded below"))
        return form

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        client.retype_volume(self.kwargs["volume"], **given(data))


class AttachView(OrderView):
    """Attach it to a node."""

    form_class = AttachForm
    page_title = _("Attach volume")
    submit_label = _("Attach")

    def get_form(self, form_class: Any = None) -> forms.Form:
        form = super().get_form(form_class)
        try:
            client = api.client(self.request)
            form.fields["node"].widget.words = known_nodes(self.request, client)
            known = client.volume(self.kwargs["volume"])["known"]
        except ClientError:
            if self.request.method != "POST":
                raise
            known = "adopt" not in self.request.POST  # the input is kept
        if known or not api.permissions(self.request).allow("volumes:adopt"):
            del form.fields["adopt"]
        return form

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        how = {"export": data["export"], **({"adopt": True} if data.get("adopt") else {})}
        client.attach_volume(self.kwargs["volume"], data["node"], **how)


class DetachView(OrderView):
    """Detach it from its node, by force where that is allowed."""

    form_class = DetachForm
    page_title = _("Detach volume")
    template_name = "sluice_dashboard/volumes/detach.html"
    submit_label = _("Detach")

    def get_form(self, form_class: Any = None) -> forms.Form:
        form = super().get_form(form_class)
        if not api.permissions(self.request).allow("volumes:force_detach"):
            form.fields.clear()
        return form

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        client.detach_volume(self.kwargs["volume"], **{name: True for name, said in data.items() if said})


class SnapshotView(OrderView):
    """Create a snapshot."""

    form_class = SnapshotForm
    page_title = _("Create snapshot")
    submit_label = _("Create snapshot")

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        client.create_snapshot(self.kwargs["volume"], data["name"])


class DeleteView(OrderView, ConfirmView):
    """Delete the volume."""

    page_title = _("Delete volume")
    next_page = ("index",)
    cancel_page = ("detail", "volume")

    def question(self) -> str:
        return str(gettext("Delete volume %s? Its data are lost.") % self.kwargs["volume"])

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        client.delete_volume(self.kwargs["volume"])


class DeleteSnapshotView(OrderView, ConfirmView):
    """Delete one snapshot."""

    page_title = _("Delete snapshot")

    def question(self) -> str:
        return str(gettext("Delete snapshot %s?") % self.kwargs["snapshot"])

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        client.delete_snapshot(self.kwargs["volume"], self.kwargs["snapshot"])
