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
from sluice_controller.api.serializers import bandwidth as shapes
from sluice_controller.api.serializers.policies import PolicySerializer
from sluice_controller.api.views.base import View
from sluice_controller.api.views.resources import render_entry
from sluice_controller.bandwidth import iostack, promises, services
from sluice_controller.catalog import bandwidth_report, selectors
from sluice_controller.validation.bodies import Body
from sluice_controller.validation.times import iso_time
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


def _document(name: str, shape: Any, *path: Any, more: str = "") -> Any:
    """Declares GET of a document about what moves now; ``more`` is said of it."""
    document = {200: OpenApiResponse(shape, "the document")}
    description = f"{_SHAPE} {more}".strip()
    return operation("sluice:bandwidth:show", name, document, *path, _AT, _LEFT_OUT, description=description)


def _promise(name: str, *path: Any, takes: Any = None, examples: Any = None, more: str = _SHORT) -> Any:
    """Declares PUT of a value, which stands in the path unless the body ``takes`` it."""
    return operation(
        "sluice:bandwidth:set",
        name,
        shapes.PromiseSerializer,
        *path,
        WAIT,
        ETAG,
        errors=(404, 409),
        takes=takes,
        examples=examples,
        description=f"{_FLOOR} {more}".strip(),
    )


def _clear(name: str, *path: Any) -> Any:
    return operation("sluice:bandwidth:clear", name, shapes.ClearedSerializer, *path, WAIT, errors=(409,), takes=None)


class DocumentView(View):
    """A call that shows what moves now."""

    def respond(self, report: BandwidthReport | None, document: Any, *lists: str) -> Response:
        """The answer with a ``document`` that was made of these ``lists`` of ``report``."""
        at = iso_time(report.at) if report else ""
        left_out = sum(report.left_out.get(one, 0) for one in lists) if report else 0
        return Response(document, headers={MEASURED_AT: at, LEFT_OUT: str(left_out)})

    def table(self, account: str = "") -> Response:
        """The table of streams, of one account if given."""
        name = promises.read_scope(self.backend, account).target.name if account else ""
        report = bandwidth_report.current_report(self.backend, idle=True)
        return self.respond(report, iostack.osinfo_table(report, name), "parts", "objects")


class BandwidthView(DocumentView):
    """All accounts, summed up."""

    @_document("show_bandwidth", shapes.OVERVIEW)
    def get(self, request: Request) -> Response:
        """Show what each object server moves for each tenant and storage policy.

        The overview.
        """
        report = bandwidth_report.current_report(self.backend)
        return self.respond(report, iostack.overview(report), "parts")


class OsinfoView(DocumentView):
    """All streams."""

    @_document("show_bandwidth_osinfo", shapes.TABLE)
    def get(self, request: Request) -> Response:
        """Show the streams of object servers, and what their tenants asked for.

        The table.
        """
        return self.table()


class ShortAccountView(DocumentView):
    """The streams of one account, by IOStack's path."""

    @_document("show_bandwidth_of_account_short", shapes.TABLE, ACCOUNT, more=_SHORT)
    def get(self, request: Request, account: str) -> Response:
        """Show the streams of one tenant, and what it asked for.

        Its lines of the table.
        """
        return self.table(account)


class PromiseView(View):
    """A call that promises something."""

    def promise(self, request: Request, account: str, policy: str, value: str) -> Response:
        """The policy that it became."""
        where = promises.read_scope(self.backend, account, policy)
        done = services.set_node_floor(self.backend, where, value, request.user.name)
        self.wait_acknowledged(done.epoch)
        found = selectors.find_policy(self.backend, done.policies[0].id)
        return render_entry({**PolicySerializer.render(found), **done.to_data()}, found.cached.version)


class AccountBandwidthView(PromiseView, DocumentView):
    """Any account, whatever it is called."""

    @_document("show_bandwidth_of_account", shapes.TABLE, ACCOUNT)
    def get(self, request: Request, account: str) -> Response:
        """Show the streams of one tenant, and what it asked for; whatever it is called.

        Its lines of the table.
        """
        return self.table(account)

    @_promise(
        "update_bandwidth_of_account",
        ACCOUNT,
        takes=shapes.NodeFloorSerializer,
        examples=shapes.NODE_FLOORS,
        more="",
    )
    def put(self, request: Request, account: str) -> Response:
        """Let each object server give a tenant at least so much; whatever the tenant is called.

        The policy that it became.
        """
        body = Body(request.data, "value", "storage_policy")
        return self.promise(request, account, body.text("storage_policy", ""), body.value("value"))


class SetBandwidthView(PromiseView):
    """For all storage policies."""

    @_promise("set_bandwidth", ACCOUNT, _VALUE)
    def put(self, request: Request, account: str, value: str) -> Response:
        """Let each object server give a tenant at least so much.

        The policy that it became.
        """
        return self.promise(request, account, "", value)


class SetPolicyBandwidthView(PromiseView):
    """For one storage policy."""

    @_promise("set_bandwidth_of_policy", ACCOUNT, POLICY, _VALUE)
    def put(self, request: Request, account: str, policy: str, value: str) -> Response:
        """Let each object server give a tenant at least so much of what lies under a storage policy.

        The policy that it became.
        """
        return self.promise(request, account, policy, value)


class ClearBase(View):
    """A call that takes values back."""

    def clear(self, request: Request, account: str = "", policy: str = "") -> Response:
        """The ids of policies that are gone."""
        gone = services.clear_node_floors(self.backend, account, policy, request.user.name)
        self.wait_acknowledged(self.backend.store.head().epoch)
        return Response({"policies": gone})


class ClearView(ClearBase):
    """Those of everybody."""

    @_clear("clear_bandwidth")
    def put(self, request: Request) -> Response:
        """Take all values for object servers back.

        What is gone.
        """
        return self.clear(request)


class ClearAccountView(ClearBase):
    """Those of a tenant."""

    @_clear("clear_bandwidth_of_account", ACCOUNT)
    def put(self, request: Request, account: str) -> Response:
        """Take a tenant's values for object servers back.

        What is gone.
        """
        return self.clear(request, account)


class ClearPolicyView(ClearBase):
    """That of a tenant under one storage policy."""

    @_clear("clear_bandwidth_of_policy", ACCOUNT, POLICY)
    def put(self, request: Request, account: str, policy: str) -> Response:
        """Take a tenant's value for one storage policy back.

        What is gone.
        """
        return self.clear(request, account, policy)
