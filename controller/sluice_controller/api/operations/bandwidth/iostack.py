"""``/bw``: IOStack's overview and table, and the floors of a tenant on each object server.

IOStack's paths ``/bw/{account}…`` do not reach an account whose name is a word of this API (``/bw/flows``).
``/bw/accounts/{account}`` reaches every account.
"""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, WAIT, header, in_path, operation
from sluice_controller.api.resources import Declare, render_entry
from sluice_controller.api.serializers import bandwidth as shapes
from sluice_controller.api.serializers.policies import PolicySerializer
from sluice_controller.api.view import View
from sluice_controller.bandwidth import iostack, services
from sluice_controller.catalog import nodes
from sluice_controller.identity.rules import ADMIN, Rule
from sluice_controller.policies import selectors
from sluice_controller.validation.bodies import Body
from sluice_controller.validation.parameters import iso_time
from sluice_core.messages.bandwidth_report import BandwidthReport

MEASURED_AT: Final = "X-Sluice-Measured-At"
LEFT_OUT: Final = "X-Sluice-Left-Out"
_AT: Final = header(MEASURED_AT, "time of the measurement; empty while no host measures", 200)
_LEFT_OUT: Final = header(LEFT_OUT, "number of flows on devices and of objects that are left out in a big cluster", 200)
ACCOUNT: Final = in_path("account", "a tenant: its account, or the name of its project")
POLICY: Final = in_path("policy", "a storage policy, by its name or index")
_VALUE: Final = in_path("value", "a rate with its unit, as `30MBps`; a bare number is MB/s")
_SHAPE: Final = (
    "Downloads and uploads, each stored copy counted where it is written; rates are MB/s (10^6). Empty while no host "
    "measures; the header distinguishes that from an idle cluster."
)
_FLOOR: Final = "It becomes a policy `FOR TENANT … DO SET bandwidth WITH node_get_bw=… ON STORAGE_NODE`."
_SHORT: Final = (
    "An account whose name is a word of this API (`flows`, `slo` …) is reached only as `/bw/accounts/{account}`."
)


_SHOW: Final = Rule("sluice:bandwidth:show", ADMIN, "show the rates of tenants on object servers")
_SET: Final = Rule("sluice:bandwidth:set", ADMIN, "set the floor of a tenant on each object server")
_CLEAR: Final = Rule("sluice:bandwidth:clear", ADMIN, "remove the floors of tenants on object servers")


def _document(call: str, shape: Any, *path: Any, more: str = "") -> Declare:
    """Declare a document of current rates; ``more`` is added to its description."""
    document = {200: OpenApiResponse(shape, "the document")}
    return operation(call, _SHOW, document, *path, _AT, _LEFT_OUT, errors=(), description=f"{_SHAPE} {more}".strip())


def _promise(call: str, *path: Any, takes: Any = None, examples: Any = None, more: str = _SHORT) -> Declare:
    """Declare PUT of a value, which is in the path unless the body ``takes`` it."""
    return operation(
        call,
        _SET,
        shapes.PromiseSerializer,
        *path,
        WAIT,
        ETAG,
        takes=takes,
        examples=examples,
        description=f"{_FLOOR} {more}".strip(),
    )


def _clear(call: str, *path: Any) -> Declare:
    return operation(call, _CLEAR, shapes.ClearedSerializer, *path, WAIT, errors=(409,), takes=None)


def render_document(report: BandwidthReport | None, document: Any, *lists: str) -> Response:
    """The answer with a ``document`` that was made of these ``lists`` of ``report``."""
    at = iso_time(report.at) if report else ""
    left_out = sum(report.left_out.get(one, 0) for one in lists) if report else 0
    return Response(document, headers={MEASURED_AT: at, LEFT_OUT: str(left_out)})


def render_table(view: View, account: str = "") -> Response:
    """The table of streams, of one account if given."""
    name = services.read_scope(view.backend, account).target.name if account else ""
    report = nodes.current_report(view.backend, idle=True)
    return render_document(report, iostack.osinfo_table(report, name), "parts", "objects")


def set_floor(view: View, request: Request, account: str, policy: str, value: str) -> Response:
    """The policy of a floor on each object server."""
    where = services.read_scope(view.backend, account, policy)
    done = services.set_node_floor(view.backend, where, value, request.user.name)
    view.wait_acknowledged(done.epoch)
    found = selectors.find_policy(view.backend, done.policies[0].id)
    return render_entry({**PolicySerializer.render(found), **done.to_data()}, found.cached.version)


def clear_floors(view: View, request: Request, account: str = "", policy: str = "") -> Response:
    """The ids of the deleted policies."""
    gone = services.clear_node_floors(view.backend, account, policy, request.user.name)
    view.wait_acknowledged(view.backend.store.head().epoch)
    return Response({"policies": gone})


@_document("GET /bw", shapes.OVERVIEW)
def show_bandwidth(view: View, request: Request) -> Response:
    """Show the rate of each tenant and storage policy on each object server.

    The overview.
    """
    report = nodes.current_report(view.backend)
    return render_document(report, iostack.overview(report), "parts")


@_document("GET /bw/osinfo", shapes.TABLE)
def show_bandwidth_osinfo(view: View, request: Request) -> Response:
    """Show the streams of object servers, and the rates that their tenants are to have.

    The table.
    """
    return render_table(view)


@_document("GET /bw/<name:account>", shapes.TABLE, ACCOUNT, more=_SHORT)
def show_bandwidth_of_account_short(view: View, request: Request, account: str) -> Response:
    """Show the streams of one tenant, and the rates that it is to have.

    Its lines of the table.
    """
    return render_table(view, account)


@_document("GET /bw/accounts/<name:account>", shapes.TABLE, ACCOUNT)
def show_bandwidth_of_account(view: View, request: Request, account: str) -> Response:
    """Show the streams of one tenant, and the rates that it is to have; for any account.

    Its lines of the table.
    """
    return render_table(view, account)


@_promise(
    "PUT /bw/accounts/<name:account>", ACCOUNT, takes=shapes.NodeFloorSerializer, examples=shapes.NODE_FLOORS, more=""
)
def update_bandwidth_of_account(view: View, request: Request, account: str) -> Response:
    """Set the least rate of a tenant on each object server; for any account.

    The policy of this floor.
    """
    body = Body(request.data, "value", "storage_policy")
    return set_floor(view, request, account, body.text("storage_policy", ""), body.value("value"))


@_promise("PUT /bw/<name:account>/<rate:value>", ACCOUNT, _VALUE)
def set_bandwidth(view: View, request: Request, account: str, value: str) -> Response:
    """Set the least rate of a tenant on each object server.

    The policy of this floor.
    """
    return set_floor(view, request, account, "", value)


@_promise("PUT /bw/<name:account>/<name:policy>/<rate:value>", ACCOUNT, POLICY, _VALUE)
def set_bandwidth_of_policy(view: View, request: Request, account: str, policy: str, value: str) -> Response:
    """Set the least rate of a tenant on each object server for one storage policy.

    The policy of this floor.
    """
    return set_floor(view, request, account, policy, value)


@_clear("PUT /bw/clear")
def clear_bandwidth(view: View, request: Request) -> Response:
    """Remove all floors on object servers.

    The ids of the deleted policies.
    """
    return clear_floors(view, request)


@_clear("PUT /bw/clear/<name:account>", ACCOUNT)
def clear_bandwidth_of_account(view: View, request: Request, account: str) -> Response:
    """Remove a tenant's floors on object servers.

    The ids of the deleted policies.
    """
    return clear_floors(view, request, account)


@_clear("PUT /bw/clear/<name:account>/<name:policy>", ACCOUNT, POLICY)
def clear_bandwidth_of_policy(view: View, request: Request, account: str, policy: str) -> Response:
    """Remove a tenant's floor on object servers for one storage policy.

    The ids of the deleted policies.
    """
    return clear_floors(view, request, account, policy)
