"""Tiers and pools: their lists, their promises and sizes, and the forms that change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.charts import Plot, Threshold, TimeRange, mean_series, rate, size
from sluice_dashboard.views import ActionView, ConfirmView, PageView, PlotView, Section
from sluice_dashboard.volumes import operations
from sluice_dashboard.volumes.forms import LONGEST_NAME, ORDERED, RATE_HELP, DemandsForm, Suggesting, given, known_nodes
from sluice_dashboard.volumes.operations import Wanted

TEMPLATES: Final = "sluice_dashboard/volumes"


@dataclass(frozen=True, slots=True)
class TierRow:
    """A tier, its promises in words, and the largest free space of its pools, in bytes (None: not known)."""

    tier: Mapping[str, Any]
    promise: str
    most_free: float | None


def fetch_tiers(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return all tiers."""
    return {"tiers": [tier_row(one) for one in client.collection("/volumes/tiers").list()]}


def tier_row(tier: Mapping[str, Any]) -> TierRow:
    """One tier."""
    known = [pool["free"] for pool in tier["pools"] if pool["free"] is not None]
    return TierRow(tier, promise_text(tier), max(known, default=None))


def promise_text(tier: Mapping[str, Any]) -> str:
    """The promises of a tier for each of its volumes, as ``2 replicas, 50 MB/s, nbd``."""
    iops = tier["iops"]
    promises = [
        resiliency_text(tier["resiliency"]),
        rate(tier["bandwidth"]) if tier["bandwidth"] else "",
        gettext("%g operations per second") % iops if iops else "",
        tier["fabric"],
    ]
    return ", ".join(filter(None, promises)) or str(gettext("nothing"))


def resiliency_text(resiliency: str) -> str:
    """``none``, ``raid`` or a number of replicas, in words."""
    if resiliency.isdigit():
        return str(ngettext("%d replica", "%d replicas", int(resiliency)) % int(resiliency))
    words = {"": "", "none": gettext("not resilient"), "raid": gettext("RAID")}
    return str(words.get(resiliency, resiliency))


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool; ``used`` is its used share in percent, None if its size is not known."""

    pool: Mapping[str, Any]
    used: int | None
    claims: str
    measured: str

    @property
    def free_text(self) -> str:
        """The free space and the size."""
        given = {"free": size(self.pool["free"]), "total": size(self.pool["total"])}
        return str(gettext("%(free)s of %(total)s") % given)


def fetch_pools(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return all pools of Cinder."""
    return {"pools": [pool_row(one) for one in client.pools()]}


def fetch_pool(client: Client, request: HttpRequest, pool: str) -> Mapping[str, Any]:
    """Return one pool, and whether a measurement runs; ``row`` is None if Cinder has no pool of that name."""
    return {
        "row": next((pool_row(one) for one in client.pools() if one["name"] == pool), None),
        "pool": pool,
        "under_way": operations.under_way(client, Wanted(pool=pool)),
        "ended": operations.ended(client, Wanted(pool=pool)),
    }


def pool_row(pool: Mapping[str, Any]) -> PoolRow:
    """Convert a pool of :meth:`Client.pools` into a row."""
    total, free = pool["total"], pool["free"]
    used = round(100 * (1 - free / total)) if total and free is not None else None
    return PoolRow(pool, used, claims_text(pool["capabilities"]), measured_text(pool["measured"]))


def claims_text(capabilities: Mapping[str, str]) -> str:
    """The figures that a pool claims in Cinder's configuration: ``bandwidth`` in MB/s."""
    units = {"bandwidth": "MB/s", "iops": "/s"}
    return ", ".join(f"{name} {value} {units.get(name, '')}".rstrip() for name, value in sorted(capabilities.items()))


def measured_text(measured: Mapping[str, Any] | None) -> str:
    """The measured figures of a pool."""
    if measured is None:
        return ""
    given = {
        "read": rate(measured["read_bw"]),
        "write": rate(measured["write_bw"]),
        "reads": f"{measured['read_iops']:.0f}",
        "writes": f"{measured['write_iops']:.0f}",
    }
    return str(gettext("reads %(read)s and %(reads)s/s, writes %(write)s and %(writes)s/s") % given)


def tier_choices(client: Client, empty: str) -> Sequence[tuple[str, str]]:
    """The choices of tiers; ``empty`` is the name of no choice."""
    rows = (tier_row(one) for one in client.collection("/volumes/tiers").list())
    return [("", empty), *((one.tier["name"], f"{one.tier['name']}: {one.promise}") for one in rows)]


class TiersView(PageView):
    """Promises of tiers, and free space."""

    page_title = _("Tiers")
    template_name = f"{TEMPLATES}/tiers.html"
    sections = {"tiers": Section(f"{TEMPLATES}/_tiers.html", fetch_tiers, seconds=10)}


class PoolsView(PageView):
    """The pools of volumes."""

    page_title = _("Pools")
    template_name = f"{TEMPLATES}/pools.html"
    sections = {"pools": Section(f"{TEMPLATES}/_pools.html", fetch_pools, seconds=5)}


class PoolView(PageView):
    """One pool."""

    page_title = _("Pool")
    template_name = f"{TEMPLATES}/pool.html"
    sections = {"pool": Section(f"{TEMPLATES}/_pool.html", fetch_pool, seconds=5)}


class PoolPlotView(PlotView):
    """The used space of one pool over time."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        name = self.kwargs["pool"]
        used = mean_series(client, "POOL_USED", name, wanted, gettext("used"), "bytes")
        total = next((pool["total"] for pool in client.pools() if pool["name"] == name), None)
        whole = [Threshold(total, gettext("all of it"))] if total else []
        return Plot([used], thresholds=whole, begin=wanted.begin, end=wanted.end)


class TierForm(DemandsForm):
    """A new tier."""

    name = forms.CharField(
        label=_("Name"), max_length=LONGEST_NAME, help_text=_("also the name of its volume type in Cinder")
    )
    cost = forms.FloatField(
        label=_("Cost"), required=False, min_value=0, help_text=_("demands get the cheapest tier that meets them")
    )
    field_order = ("name", "cost")


class MeasureForm(forms.Form):
    """The parameters of a measurement."""

    node = forms.CharField(
        label=_("Node"), widget=Suggesting, help_text=_("its konnector attaches a new volume, and fio runs there")
    )
    size = forms.IntegerField(
        label=_("Size of that volume in GiB"), min_value=1, initial=1, help_text=_("above caches it says more of disks")
    )
    seconds = forms.IntegerField(label=_("Seconds for each of the four figures"), min_value=1, initial=10)


class FiguresForm(forms.Form):
    """Measured figures of a pool, as typed."""

    read_bw = forms.CharField(label=_("Read bandwidth"), help_text=RATE_HELP)
    write_bw = forms.CharField(label=_("Write bandwidth"), help_text=RATE_HELP)
    read_iops = forms.FloatField(label=_("Reads per second"), min_value=1)
    write_iops = forms.FloatField(label=_("Writes per second"), min_value=1)


class CreateTierView(ActionView):
    """A new tier, and its volume type."""

    form_class = TierForm
    page_title = _("Create tier")
    submit_label = _("Create tier")
    next_page = ("tiers",)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        made = client.collection("/volumes/tiers").create(given(data))
        return str(gettext("Tier %s was created.") % made["name"])


class MendTierView(ConfirmView):
    """Restore Cinder's volume type from the tier."""

    page_title = _("Mend tier")
    submit_label = _("Mend")
    next_page = ("tiers",)

    def question(self) -> str:
        return str(
            gettext("Put the volume type of tier %s in Cinder back to what the tier promises?") % self.kwargs["tier"]
        )

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.mend_tier(self.kwargs["tier"])
        return str(gettext("The volume type is as the tier says."))


class DeleteTierView(ConfirmView):
    """Delete a tier without volumes."""

    page_title = _("Delete tier")
    next_page = ("tiers",)

    def question(self) -> str:
        return str(gettext("Delete tier %s, and its volume type in Cinder?") % self.kwargs["tier"])

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.collection("/volumes/tiers").delete(self.kwargs["tier"])
        return str(gettext("Tier %s was deleted.") % self.kwargs["tier"])


class MeasurePoolView(ActionView):
    """Measure it with fio, by a konnector."""

    form_class = MeasureForm
    page_title = _("Measure pool")
    submit_label = _("Measure")
    done = ORDERED
    next_page = ("pool", "pool")

    def get_form(self, form_class: Any = None) -> forms.Form:
        form = super().get_form(form_class)
        if self.request.method != "POST":
            form.fields["node"].widget.words = known_nodes(self.request, api.client(self.request))
        return form

    def act(self, client: Client, data: Mapping[str, Any]) -> None:
        client.measure_pool(self.kwargs["pool"], **data)


class FiguresView(ActionView):
    """Store measured figures."""

    form_class = FiguresForm
    page_title = _("Enter what a pool carries")
    next_page = ("pool", "pool")

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.calibrate_pool(self.kwargs["pool"], **data)
        return str(gettext("These figures count from now on."))
