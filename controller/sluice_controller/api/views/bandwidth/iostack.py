"""``/bw``: IOStack's table, and its values for what each object server gives to a tenant."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, WAIT, header, in_path, operation
from sluice_controller.api.serializers.bandwidth import TABLE, ClearedSerializer, PromiseSerializer
from sluice_controller.api.serializers.policies import PolicySerializer
from sluice_controller.api.views.base import View
from sluice_controller.api.views.resources import render_entry
from sluice_controller.bandwidth import iostack, promises, services
from sluice_controller.catalog import bandwidth_report, selectors
from sluice_controller.validation.times import iso_time

MEASURED_AT: Final = "X-Sluice-Measured-At"
LEFT_OUT: Final = "X-Sluice-Left-Out"
_AT: Final = header(MEASURED_AT, "when it was measured; empty while nobody measures", 200)
_LEFT_OUT: Final = header(LEFT_OUT, "flows on devices and objects that are not shown, of a big cluster", 200)
ACCOUNT: Final = in_path("account", "a tenant: its account, or the name of its project")
POLICY: Final = in_path("policy", "a storage policy, by its name or index")
_VALUE: Final = in_path("value", "a rate with its unit, as `30MBps`; a bare number is MB/s")
_SHAPE: Final = "Of reads; rates are MB/s (10^6). Empty where nobody measures, which the header tells from idleness."
_FLOOR: Final = "It becomes a policy `FOR TENANT … DO SET bandwidth WITH node_get_bw=… ON STORAGE_NODE`."


def _table(name: str, *path: Any) -> Any:
    table = {200: OpenApiResponse(TABLE, "the table")}
    parameters = [*path, _AT, _LEFT_OUT]
    return operation("sluice:bandwidth:show", name, table, *parameters, description=_SHAPE)


def _promise(name: str, *path: Any) -> Any:
    return operation(
        "sluice:bandwidth:set",
        name,
        PromiseSerializer,
        *path,
        WAIT,
        ETAG,
        errors=(404, 409),
        takes=None,
        description=_FLOOR,
    )


def _clear(name: str, *path: Any) -> Any:
    return operation("sluice:bandwidth:clear", name, ClearedSerializer, *path, WAIT, errors=(409,), takes=None)


class TableView(View):
    """A call that shows the table."""

    def table(self, account: str = "") -> Response:
        """The table, of one account if given."""
        name = promises.read_scope(self.backend, account).target.name if account else ""
        report = bandwidth_report.current_report(self.backend)
        at = iso_time(report.at) if report else ""
        left_out = sum(report.left_out.get(one, 0) for one in ("parts", "objects")) if report else 0
        headers = {MEASURED_AT: at, LEFT_OUT: str(left_out)}
        return Response(iostack.osinfo_table(report, name), headers=headers)


class BandwidthView(TableView):
    """All accounts."""

    @_table("show_bandwidth")
    def get(self, request: Request) -> Response:
        """Show what object servers give to each tenant and storage policy, device by device.

        The table.
        """
        return self.table()


class OsinfoView(TableView):
    """The same, by its other name."""

    @_table("show_bandwidth_osinfo")
    def get(self, request: Request) -> Response:
        """Show what object servers give, with the objects that are read.

        The table.
        """
        return self.table()


class AccountBandwidthView(TableView):
    """One account."""

    @_table("show_bandwidth_of_account", ACCOUNT)
    def get(self, request: Request, account: str) -> Response:
        """Show what object servers give to one tenant.

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
