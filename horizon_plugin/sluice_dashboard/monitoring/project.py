"""The panel of projects: two metrics of the project, or of some of its containers, on one time axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import HttpRequest
from django.urls import re_path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.charts import Plot, TimeRange
from sluice_dashboard.monitoring.choices import (
    LINES,
    ChoiceForm,
    add_refusals,
    known_targets,
    metric_field,
    plot_targets,
    time_link,
    typed_targets,
)
from sluice_dashboard.names import metric_choices, metric_title
from sluice_dashboard.views import PageView, PlotView

_LEVELS: Final = frozenset({"tenant", "container"})


class ViewForm(ChoiceForm):
    """The chosen metrics and targets."""

    metric = metric_field(_("First metric"), "GETS_SEC")
    beside = metric_field(_("Second metric"), "PUTS_SEC")
    container = forms.CharField(
        label=_("Containers"),
        required=False,
        help_text=_("Names with commas between them. Empty: the whole project and each container."),
    )


def own_targets(client: Client, request: HttpRequest, form: ViewForm, metric: str) -> dict[str, str]:
    """The targets of the plot, with labels: only the user's project."""
    project, containers = own_places(client, request, metric)
    typed = typed_targets(form.value("container"))
    if typed:
        return {f"{project}/{container}": container for container in typed}
    own = {f"{project}/{container}": container for container in containers[: LINES - 1]}
    return {project: gettext("the whole project"), **own}


def own_places(client: Client, request: HttpRequest, metric: str) -> tuple[str, list[str]]:
    """The account of the user's project, and its containers with a history of ``metric``.

    The account is the project's name until the API returns one.
    """
    known = [*known_targets(client, metric, "tenant"), *known_targets(client, metric, "container")]
    paths = [one.partition("/") for one in known if one.partition("/")[0].endswith(request.user.project_id)]
    account = paths[0][0] if paths else request.user.project_name
    return account, [container for _account, _slash, container in paths if container]


class IndexView(PageView):
    """The URL has all choices, so that users can share the page."""

    page_title = _("Monitoring")
    template_name = "sluice_dashboard/monitoring/project.html"

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """Return the form, with its errors."""
        form = ViewForm(self.request.GET)
        choices = metric_choices(client.metrics(), _LEVELS)
        form.set_choices("metric", choices)
        form.set_choices("beside", choices)
        if form.is_valid() and form.value("container"):
            targets = own_targets(client, self.request, form, form.value("metric"))
            add_refusals(client, form, "container", form.value("metric"), targets)
        return {
            "form": form,
            "known": own_places(client, self.request, form.value("metric"))[1],
            "first_title": metric_title(form.value("metric")),
            "second_title": metric_title(form.value("beside")),
            **time_link(self.request.GET),
        }


class LoadPlotView(PlotView):
    """The metric in the field ``chooser`` of the form."""

    chooser = "metric"

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        """A line for each chosen target."""
        form = ViewForm(self.request.GET)
        metric = form.value(self.chooser)
        return plot_targets(client, metric, own_targets(client, self.request, form, metric), wanted)


urlpatterns = [
    re_path(r"^$", IndexView.as_view(), name="index"),
    re_path(r"^plots/first/$", LoadPlotView.as_view(chooser="metric"), name="first_plot"),
    re_path(r"^plots/second/$", LoadPlotView.as_view(chooser="beside"), name="second_plot"),
]
