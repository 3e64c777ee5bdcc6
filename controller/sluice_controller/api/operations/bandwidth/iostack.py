"""``/bw``: IOStack's overview and table, and its values for what each object server gives to a tenant.

IOStack's paths ``/bw/{account}…`` do not reach an account that is called like a word of this API (``/bw/flows``).
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
_AT: Final = header(MEASURED_AT, "when it was measured; empty while nobody measures", 200)
_LEFT_OUT: Final = header(LEFT_OUT, "flows on devices and objects that are not shown, of a big cluster", 200)
ACCOUNT: Final = in_path("account", "a tenant: its account, or the name of its project")
POLICY: Final = in_path("policy", "a storage policy, by its name or index")
_VALUE: Final = in_path("value", "a rate with its unit, as `30MBps`; a bare number is MB/s")
_SHAPE: Final = (
    "Of downloads and uploads, each copy of these where it is written; rates are MB/s (10^6). Empty where nobody "
    "measures, which the header tells from idleness."
)
_FLOOR: Final = "It becomes a policy `FOR TENANT … DO SET bandwidth WITH node_get_bw=… ON STORAGE_NODE`."
_SHORT: Final = (
    "An account that is called like a word of this API (`flows`, `slo` …) has `/bw/accounts/{account}` alone."
)


_SHOW: Final = Rule("sluice:bandwidth:show", ADMIN, "show what object servers give to tenants")
_SET: Final = Rule("sluice:bandwidth:set", ADMIN, "let each object server give a tenant so much")
_CLEAR: Final = Rule("sluice:bandwidth:clear", ADMIN, "take such values back")


def _document(call: str, shape: Any, *path: Any, more: str = "") -> Declare:
    """Declares a document about what moves now; ``more`` is said of it."""
    document = {200: OpenApiResponse(shape, "the document")}
    return operation(call, _SHOW, document, *path, _AT, _LEFT_OUT, errors=(), description=f"{_SHAPE} {more}".strip())


def _promise(call: str, *path: Any, takes: Any = None, examples: Any = None, more: str = _SHORT) -> Declare:
    """Declares PUT of a value, which stands in the path unless the body ``takes`` it."""
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
    """The policy that a value for each object server became."""
    where = services.read_scope(view.backend, account, policy)
    done = services.set_node_floor(view.backend, where, value, request.user.name)
    view.wait_acknowledged(done.epoch)
    found = selectors.find_policy(view.backend, done.policies[0].id)
    return render_entry({**PolicySerializer.render(found), **done.to_data()}, found.cached.version)


def clear_floors(view: View, request: Request, account: str = "", policy: str = "") -> Response:
    """The ids of policies that are gone."""
    gone = services.clear_node_floors(view.backend, account, policy, request.user.name)
    view.wait_acknowledged(view.backend.store.head().epoch)
    return Response({"policies": gone})


@_document("GET /bw", shapes.OVERVIEW)
def show_bandwidth(view: View, request: Request) -> Response:
    """Show what each object server moves for each tenant and storage policy.

    The overview.
    """
    report = nodes.current_report(view.backend)
    return render_document(report, iostack.overview(report), "parts")


@_document("GET /bw/osinfo", shapes.TABLE)
def show_bandwidth_osinfo(view: View, request: Request) -> Response:
    """Show the streams of object servers, and what their tenants asked for.

    The table.
    """
    return render_table(view)


@_document("GET /bw/<name:account>", shapes.TABLE, ACCOUNT, more=_SHORT)
def show_bandwidth_of_account_short(view: View, request: Request, account: str) -> Response:
    """Show the streams of one tenant, and what it asked for.

    Its lines of the table.
    """
    return render_table(view, account)


@_document("GET /bw/accounts/<name:account>", shapes.TABLE, ACCOUNT)
def show_bandwidth_of_account(view: View, request: Request, account: str) -> Response:
    """Show the streams of one tenant, and what it asked for; whatever it is called.

    Its lines of the table.
    """
    return render_table(view, account)


@_promise(
    "PUT /bw/accounts/<name:account>", ACCOUNT, takes=shapes.NodeFloorSerializer, examples=shapes.NODE_FLOORS, more=""
)
def update_bandwidth_of_account(view: View, request: Request, account: str) -> Response:
    """Let each object server give a tenant at least so much; whatever the tenant is called.

    The policy that it became.
    """
    body = Body(request.data, "value", "storage_policy")
    return set_floor(view, request, account, body.text("storage_policy", ""), body.value("value"))


@_promise("PUT /bw/<name:account>/<rate:value>", ACCOUNT, _VALUE)
def set_bandwidth(view: View, request: Request, account: str, value: str) -> Response:
    """Let each object server give a tenant at least so much.

    The policy that it became.
    """
    return set_floor(view, request, account, "", value)


@_promise("PUT /bw/<name:account>/<name:policy>/<rate:value>", ACCOUNT, POLICY, _VALUE)
def set_bandwidth_of_policy(view: View, request: Request, account: str, policy: str, value: str) -> Response:
    """Let each object server give a tenant at least so much of what lies under a storage policy.

    The policy that it became.
    """
    return set_floor(view, request, account, policy, value)


@_clear("PUT /bw/clear")
def clear_bandwidth(view: View, request: Request) -> Response:
    """Take all values for object servers back.

    What is gone.
    """
    return clear_floors(view, request)


@_clear("PUT /bw/clear/<name:account>", ACCOUNT)
def clear_bandwidth_of_account(view: View, request: Request, account: str) -> Response:
    """Take a tenant's values for object servers back.

    What is gone.
    """
    return clear_floors(view, request, account)


@_clear("PUT /bw/clear/<name:account>/<name:policy>", ACCOUNT, POLICY)
def clear_bandwidth_of_policy(view: View, request: Request, account: str, policy: str) -> Response:
    """Take a tenant's value for one storage policy back.

    What is gone.
    """
    return clear_floors(view, request, account, policy)
