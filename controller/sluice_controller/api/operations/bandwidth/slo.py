"""``/bw/slo``: Crystal's service level objectives, the objectives of tenants over the whole cluster."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, GONE, LIST, WAIT, operation, query_text, query_word
from sluice_controller.api.operations.bandwidth.iostack import ACCOUNT, POLICY
from sluice_controller.api.permissions import authorize, thing_target, visible_accounts
from sluice_controller.api.resources import no_content, render_entry, render_page
from sluice_controller.api.serializers import bandwidth as shapes
from sluice_controller.api.view import View
from sluice_controller.bandwidth import services
from sluice_controller.bandwidth.services import NAMES, Objective
from sluice_controller.catalog import nodes
from sluice_controller.identity.rules import ADMIN, READS_OWN, THING, Rule
from sluice_controller.validation.bodies import Body
from sluice_core.messages.bandwidth_report import BandwidthReport

_NAME: Final = OpenApiParameter(
    "name", OpenApiTypes.STR, OpenApiParameter.PATH, description="the objective", enum=NAMES
)
_TOGETHER: Final = (
    "The objectives of a tenant under one storage policy (without one: under all) are one policy of origin "
    "`slo/…`, which this call creates or changes."
)


def objective_data(objective: Objective, report: BandwidthReport | None) -> dict[str, Any]:
    """An objective."""
    infeasible = nodes.shortfall(report, objective.policy.policy.id, objective.name)
    return shapes.ObjectiveSerializer.render(objective, infeasible=infeasible)


@operation(
    "GET /bw/slo",
    Rule(
        "sluice:slos:list",
        READS_OWN,
        "list service level objectives",
        everybody="list the service level objectives of all projects",
    ),
    shapes.ObjectivePageSerializer,
    query_text("account", "only of this account"),
    query_word("name", "only of this name", NAMES),
    *LIST,
)
def list_slo(view: View, request: Request) -> Response:
    """List the service level objectives of tenants.

    Only those that were set by this call; the objectives of other policies are among the policies.
    """
    account, name = view.given["account"], view.given["name"]
    accounts = visible_accounts(request, view.rule)
    known = {
        " ".join((one.account, one.name, one.storage_policy, one.policy.policy.id)): one
        for one in services.list_objectives(view.backend.policy_cache.contents())
        if account in ("", one.account) and name in ("", one.name) and (accounts is None or one.account in accounts)
    }
    report = nodes.current_report(view.backend)
    return render_page(view.given, "slos", known, lambda one: objective_data(one, report))


def _declare_objective(suffix: str, scope: str, *path: OpenApiParameter) -> None:
    """Declare the operations on an objective, for the storage policies that the words ``scope`` name."""
    url = "/bw/slo/" + "/".join(f"<name:{one.name}>" for one in path)

    @operation(
        f"GET {url}",
        Rule("sluice:slos:show", READS_OWN, "show a service level objective", about=THING),
        shapes.ObjectiveSerializer,
        *path,
        ETAG,
        name=f"show_slo{suffix}",
        summary=f"Show an objective of a tenant{scope}",
    )
    def show_slo(view: View, request: Request, account: str, name: str, policy: str = "") -> Response:
        """The objective."""
        where = services.read_scope(view.backend, account, policy)
        authorize(request, view.rule, thing_target(where.target.level, where.target.name))
        found = services.find_objective(view.backend.policy_cache.contents(), where, name)
        return render_entry(objective_data(found, nodes.current_report(view.backend)), found.policy.version)

    @operation(
        f"PUT {url}",
        Rule("sluice:slos:set", ADMIN, "set a floor or ceiling of a tenant"),
        shapes.ObjectiveResultSerializer,
        *path,
        WAIT,
        ETAG,
        takes=shapes.ObjectiveValueSerializer,
        examples=shapes.VALUES,
        name=f"update_slo{suffix}",
        summary=f"Set a floor or ceiling of a tenant over the whole cluster{scope}",
        description=_TOGETHER,
    )
    def update_slo(view: View, request: Request, account: str, name: str, policy: str = "") -> Response:
        value = Body(request.data, "value").value("value")
        where = services.read_scope(view.backend, account, policy)
        done = services.set_objective(view.backend, where, name, value, request.user.name)
        view.wait_acknowledged(done.epoch)
        found = services.find_objective(view.backend.policy_cache.contents(), where, name)
        data = objective_data(found, nodes.current_report(view.backend))
        return render_entry({**data, **done.to_data()}, found.policy.version)

    @operation(
        f"DELETE {url}",
        Rule("sluice:slos:delete", ADMIN, "delete a service level objective"),
        GONE,
        *path,
        WAIT,
        name=f"delete_slo{suffix}",
        summary=f"Delete an objective of a tenant{scope}",
    )
    def delete_slo(view: View, request: Request, account: str, name: str, policy: str = "") -> Response:
        """204."""
        where = services.read_scope(view.backend, account, policy)
        done = services.delete_objective(view.backend, where, name, request.user.name)
        view.wait_acknowledged(done.epoch)
        return no_content()


_declare_objective("", "", ACCOUNT, _NAME)
_declare_objective("_of_policy", " under a storage policy", ACCOUNT, _NAME, POLICY)
