"""Forms that set a filter for a project, container or object, list the set filters, and undeploy them.

The form has a field for each parameter that a filter describes; values are sent as a sentence would have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.charts import rate, size
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import ActionView, ConfirmView, PageView, Section

#: Prefix of these fields, because a parameter may have the name of a field of the form.
PREFIX: Final = "param_"
#: Seconds to wait until the nodes have it.
_WAIT: Final = 5.0


def parameter_fields(parameters: Iterable[Mapping[str, Any]]) -> dict[str, forms.Field]:
    """Return name of the form's field → the field, in the order of the description."""
    return {PREFIX + one["name"]: _field(one) for one in parameters}


def parameter_values(cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given parameters by name; the filter decides about empty fields."""
    given = {name: value for name, value in cleaned.items() if name.startswith(PREFIX)}
    return {name.removeprefix(PREFIX): value for name, value in given.items() if value not in (None, "")}


def _field(parameter: Mapping[str, Any]) -> forms.Field:
    given = {"label": parameter["name"], "required": parameter["required"], "help_text": _help(parameter)}
    kind = parameter["type"]
    choices = [True, False] if kind == "bool" else parameter["choices"]
    if choices:
        offered = [(_text(one), _shown(one)) for one in choices]
        return forms.ChoiceField(choices=[("", gettext("not said")), *offered], **given)
    # if another parameter determines the range, the API checks the value
    span = {} if parameter["range_by"] else {"min_value": parameter["minimum"], "max_value": parameter["maximum"]}
    if kind == "int":
        return forms.IntegerField(**span, **given)
    if kind == "float":
        return forms.FloatField(**span, **given)
    return forms.CharField(**given)


def _help(parameter: Mapping[str, Any]) -> str:
    """Meaning, allowed values and default of a parameter."""
    parts = [parameter["help"], _example(parameter["type"]), _range(parameter)]
    parts += [
        gettext("%(by)s=%(value)s: %(range)s")
        % {"by": parameter["range_by"], "value": one["value"], "range": _span(one, parameter["type"])}
        for one in parameter["ranges"]
    ]
    if parameter["default"] not in (None, ""):
        parts.append(gettext("default: %s") % _value(parameter["default"], parameter["type"]))
    return "; ".join(filter(None, parts))


def _example(kind: str) -> str:
    examples: dict[str, str] = {
        "size": gettext("a size such as 64KiB or 10MB"),
        "rate": gettext("a rate such as 30MBps"),
        "frequency": gettext("a number per second such as 3"),
        "duration": gettext("a duration such as 30s, 5min or 2h"),
        "percent": gettext("a percentage such as 20%"),
        "list": gettext("words with commas between them"),
    }
    return examples.get(kind, "")


def _range(parameter: Mapping[str, Any]) -> str:
    return "" if parameter["range_by"] else _span(parameter, parameter["type"])


def _span(limits: Mapping[str, Any], kind: str) -> str:
    least, most = (None if one is None else _value(one, kind) for one in (limits["minimum"], limits["maximum"]))
    if least is None and most is None:
        return ""
    if least is None or most is None:
        return str(gettext("at least %s") % least if most is None else gettext("at most %s") % most)
    return str(gettext("%(least)s to %(most)s") % {"least": least, "most": most})


def _value(value: Any, kind: str) -> str:
    """A value in base units with a readable unit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _shown(value)
    shown: dict[str, str] = {
        "size": size(value),
        "rate": rate(value),
        "duration": f"{value:g} s",
        "percent": f"{value * 100:g} %",
        "frequency": f"{value:g}/s",
    }
    return shown.get(kind, f"{value:g}")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(gettext("yes") if value else gettext("no"))
    return str(value)


class DeployForm(forms.Form):
    """Target and parameters; ``described`` is the filter as in ``GET /registry/filters``."""

    target = forms.CharField(
        label=_("Project"),
        help_text=_("a project, project/container or project/container/object"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, described: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= parameter_fields(described["parameters"])
        places = {"proxy": _("proxies"), "storage_node": _("storage nodes")}
        if len(described["places"]) > 1:
            own = gettext("the filter's own choice: %s") % places.get(described["default_place"], "")
            chosen = [("", own), *((one, places.get(one, one)) for one in described["places"])]
            self.fields["place"] = forms.ChoiceField(label=_("Where it runs"), choices=chosen, required=False)


class DeployView(ActionView):
    """Set a filter for a target."""

    page_title = _("Deploy filter {{ keyword }}")
    form_class = DeployForm
    submit_label = _("Deploy")
    _deployed = ""

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """The filter, with all fields of its parameters."""
        return api.client(self.request).collection("/registry/filters").get(self.kwargs["filter"])

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "described": self.described}

    def get_initial(self) -> dict[str, Any]:
        return {**super().get_initial(), "target": self.request.GET.get("target", "")}

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        how = {"params": parameter_values(data)} | ({"place": data["place"]} if data.get("place") else {})
        keyword, self._deployed = self.kwargs["filter"], data["target"]
        done = client.deploy_filter(data["target"], keyword, how, wait=_WAIT)
        given = {"filter": keyword, "target": data["target"]}
        if not done["changed"]:
            return str(_("%(filter)s is deployed for %(target)s like that already.") % given)
        return str(_("%(filter)s is deployed for %(target)s.") % given)

    def field_of(self, failure: api.Failure, form: forms.Form) -> str | None:
        """The parameter that the message names, otherwise the target."""
        words = failure.quoted
        named = next((PREFIX + word for word in words if PREFIX + word in form.fields), None)
        target = form.cleaned_data["target"]
        about = any(word and (word == target or word in target.split("/")) for word in words)
        return named or ("target" if about else super().field_of(failure, form))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "keyword": self.kwargs["filter"]}

    def get_success_url(self) -> str:
        return deployments_url(self.request, self._deployed)


class UndeployView(ConfirmView):
    """Undeploy a filter."""

    page_title = _("Undeploy filter {{ keyword }}")
    submit_label = _("Undeploy")

    def question(self) -> str:
        given = {"filter": self.kwargs["filter"], "target": self._asked}
        return str(_("Shall %(filter)s not be set for %(target)s any more?") % given)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.undeploy_filter(self._asked, self.kwargs["filter"], wait=_WAIT)
        given = {"filter": self.kwargs["filter"], "target": self._asked}
        return str(_("%(filter)s is undeployed from %(target)s.") % given)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "keyword": self.kwargs["filter"]}

    def get_success_url(self) -> str:
        return deployments_url(self.request, self._asked)

    @property
    def _asked(self) -> str:
        return str(self.request.GET.get("target", ""))


def fetch_deployments(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return the filters that are set for exactly the target of the URL, by default the user's own project."""
    target = target_of(request)
    rows = list(client.deployments(target)) if target else []
    return {
        "target": target,
        "filters": [{**one, "may_undeploy": _may_undeploy(request, target, one)} for one in rows],
        "dependencies": list(client.deployed_dependencies(target)) if rows else [],
    }


def _may_undeploy(request: HttpRequest, target: str, row: Mapping[str, Any]) -> bool:
    """A user may remove what the user may set; filters of a policy are removed with that policy."""
    if row["origin"] != f"deploy/{row['keyword']}":
        return False
    return api.permissions(request, target, filter=row["keyword"]).allow("deployments:undeploy")


class DeploymentsView(PageView):
    """The filters of a target."""

    page_title = _("Deployed filters")
    template_name = "sluice_dashboard/code/deployments.html"
    sections = {"list": Section("sluice_dashboard/code/_deployments.html", fetch_deployments, seconds=5)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        asked = target_of(self.request)
        return {**super().get_context_data(**kwargs), "asked": asked}


def target_of(request: HttpRequest) -> str:
    """Return the target in the URL; without one the user's project."""
    return str(request.GET.get("target", "").strip() or request.user.project_name or "")


def deployments_url(request: HttpRequest, target: str) -> str:
    """The URL of the page of ``target``."""
    query = f"?{urlencode({'target': target})}" if target else ""
    return f"{url_in_panel(request, 'deployments')}{query}"
