"""Forms for filters, metrics and controllers besides uploads: start, stop, roll back, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.code.kinds import FILTERS, METRICS, CodeView
from sluice_dashboard.views import ConfirmView


class ForcedFilterForm(forms.Form):
    """Deleting a filter."""

    force = forms.BooleanField(
        label=_("Insist"), required=False, help_text=_("also where stored objects cannot be read any more without it")
    )


class ForcedMetricForm(forms.Form):
    """Stopping or deleting a metric."""

    force = forms.BooleanField(
        label=_("Insist"), required=False, help_text=_("also while policies watch it, which then see silence")
    )


class CodeActionView(CodeView, ConfirmView):
    """A confirmation about the code in the URL."""

    def get_success_url(self) -> str:
        return self.kind.url("detail", self.name)


class StartView(CodeActionView):
    """Start measuring a metric, or running a controller."""

    page_title = _("Start {{ name }}")
    submit_label = _("Start")

    def question(self) -> str:
        if self.kind is METRICS:
            return str(_("Shall the proxies measure %s? Policies can watch it then.") % self.name)
        return str(_("Shall an actor host run %s? What it decides is set at once.") % self.name)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.uploads(self.kind.path).start(self.name)
        return str(_("%s is started.") % self.name)


class StopView(CodeActionView):
    """Stop measuring a metric, or running a controller."""

    page_title = _("Stop {{ name }}")
    submit_label = _("Stop")

    def get_form_class(self) -> Any:
        return ForcedMetricForm if self.kind is METRICS else self.form_class

    def question(self) -> str:
        if self.kind is METRICS:
            return str(_("Shall the proxies not measure %s any more?") % self.name)
        return str(_("Shall %s not run any more? All that it has set is taken back.") % self.name)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.uploads(self.kind.path).stop(self.name, force=data.get("force", False))
        return str(_("%s is stopped.") % self.name)


class RollBackView(CodeActionView):
    """Make a new revision with the code of an earlier one."""

    page_title = _("Roll back {{ name }} to revision {{ revision }}")
    submit_label = _("Roll back")

    @property
    def _revision(self) -> int:
        return int(self.kwargs["revision"])

    def question(self) -> str:
        given = {"revision": self._revision, "name": self.name}
        return str(_("Shall %(name)s have the code of revision %(revision)d again? It becomes a new revision.") % given)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        done = client.uploads(self.kind.path).roll_back(self.name, self._revision)
        given = {"old": self._revision, "new": done["revision"], "name": self.name}
        return str(_("Revision %(new)d of %(name)s has the code of revision %(old)d.") % given)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "revision": self._revision}


class DeleteView(CodeActionView):
    """Delete it; the API says when ``force`` is needed."""

    page_title = _("Delete {{ name }}")

    def question(self) -> str:
        if self.kind is FILTERS:
            return str(_("Shall filter %s be forgotten? Policies cannot set it any more.") % self.name)
        if self.kind is METRICS:
            return str(_("Shall metric %s be forgotten? Policies cannot watch it any more.") % self.name)
        return str(_("Shall controller %s be forgotten? All that it has set is taken back.") % self.name)

    def get_form_class(self) -> Any:
        return {FILTERS.slug: ForcedFilterForm, METRICS.slug: ForcedMetricForm}.get(self.kind.slug, self.form_class)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.collection(self.kind.path).delete(self.name, force=data.get("force", False))
        return str(_("%s is deleted.") % self.name)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "cancel_url": super().get_success_url()}

    def get_success_url(self) -> str:
        return str(reverse(f"horizon:sluice:code:{'index' if self.kind is FILTERS else self.kind.slug}"))
