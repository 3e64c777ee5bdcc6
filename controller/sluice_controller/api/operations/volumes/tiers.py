"""``/volumes/tiers``: classes of volumes; ``/volumes/pools``: the pools of Cinder that store them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    GONE,
    LIST,
    LOCATION,
    QueryParameter,
    in_path,
    operation,
    query_text,
    query_word,
)
from sluice_controller.api.operations.policies.policies import REPEATED
from sluice_controller.api.operations.volumes.operations import VolumesBaseView, order_operation
from sluice_controller.api.resources import no_content, render_page, url_path
from sluice_controller.api.serializers import volumes as shapes
from sluice_controller.api.view import View
from sluice_controller.identity.rules import ADMIN, READER, Rule
from sluice_controller.policies import idempotency
from sluice_controller.volumes import calibration, tiers
from sluice_controller.volumes.tiers import MOST_GIB
from sluice_volumes.tiers import FABRICS, MOST_IOPS

_NAME: Final = in_path("tier", "the name of the tier")
_IOPS: Final = QueryParameter(
    "iops", OpenApiTypes.FLOAT, "operations per second", lambda given, name: given.number(name, 0.0, 1.0, MOST_IOPS)
)
_SIZE: Final = QueryParameter(
    "size",
    OpenApiTypes.INT,
    "GiB of free space that one pool must have",
    lambda given, name: given.integer(name, 0, 1, MOST_GIB),
)
_SHAPE: Final = shapes.TierSerializer
_POOL: Final = in_path("pool", "the pool, host@backend#pool")


@operation(
    "GET /volumes/tiers", Rule("sluice:tiers:list", READER, "list tiers of volumes"), shapes.TierPageSerializer, *LIST
)
def list_tiers(view: View, request: Request) -> Response:
    """List tiers, with the state of their types in Cinder, and the pools that meet them.

    A page of tiers.
    """
    return render_page(view.given, "tiers", tiers.list_all(view.backend), _SHAPE.render)


@operation(
    "POST /volumes/tiers",
    Rule("sluice:tiers:create", ADMIN, "create a tier and its volume type"),
    {201: _SHAPE},
    LOCATION,
    takes=shapes.NewTierSerializer,
    examples=shapes.TIERS,
)
def create_tier(view: View, request: Request) -> Response:
    """Create a tier, and its volume type in Cinder.

    A volume type of that name that Sluice did not create is not changed (409).
    """
    made = tiers.create(view.backend, request.data, request.user.name)
    headers = {"Location": url_path("volumes", "tiers", made.tier.name)}
    return Response(_SHAPE.render(made), HTTPStatus.CREATED, headers=headers)


@operation("GET /volumes/tiers/<name:tier>", Rule("sluice:tiers:show", READER, "show a tier"), _SHAPE, _NAME)
def show_tier(view: View, request: Request, tier: str) -> Response:
    """Show a tier, with the state of its type in Cinder, and the pools that meet it.

    The tier.
    """
    return Response(_SHAPE.render(tiers.find(view.backend, tier)))


@operation(
    "PUT /volumes/tiers/<name:tier>",
    Rule("sluice:tiers:update", ADMIN, "repair a tier's volume type"),
    _SHAPE,
    _NAME,
    takes=None,
)
def mend_tier(view: View, request: Request, tier: str) -> Response:
    """Repair a tier's volume type, if it was changed or deleted in Cinder.

    The tier.
    """
    return Response(_SHAPE.render(tiers.repair(view.backend, tier)))


@operation(
    "DELETE /volumes/tiers/<name:tier>",
    Rule("sluice:tiers:delete", ADMIN, "delete a tier and its volume type"),
    GONE,
    _NAME,
)
def delete_tier(view: View, request: Request, tier: str) -> Response:
    """Delete a tier without volumes, and its volume type.

    The answer has no body.
    """
    tiers.delete(view.backend, tier)
    return no_content()


@operation(
    "GET /volumes/tiers/match",
    Rule("sluice:tiers:match", READER, "find the tier that meets demands"),
    shapes.MatchSerializer,
    query_text("resiliency", "none, raid, or a number of replicas"),
    query_text("bandwidth", "a rate with its unit, as `50MBps`; a bare number is MB/s"),
    _IOPS,
    query_word("fabric", "how volumes are reached", FABRICS),
    _SIZE,
    errors=(409,),
)
def match_tier(view: View, request: Request) -> Response:
    """Find the cheapest tier that meets the demands, and has a pool for them now.

    Without one, 409 names each demand that no pool meets, and the nearest value.
    """
    return Response(shapes.MatchSerializer.render(tiers.match(view.backend, **view.given)))


@operation("GET /volumes/pools", Rule("sluice:pools:list", ADMIN, "list Cinder's pools"), shapes.PoolListSerializer)
def list_pools(view: View, request: Request) -> Response:
    """List Cinder's pools with their last reports.

    The pools, by name.
    """
    known = tiers.KnownPools.read(view.backend)
    pools = shapes.PoolSerializer.render_all(known.pools.values())
    measured = shapes.CalibrationSerializer.render_all(known.calibrations.values())
    return Response({"pools": pools, "measured": measured})


@operation(
    "PUT /volumes/pools/<name:pool>/calibration",
    Rule("sluice:pools:calibrate", ADMIN, "measure a pool, or enter measured values"),
    shapes.CalibrationSerializer,
    _POOL,
    errors=(404,),
    takes=shapes.NewCalibrationSerializer,
    examples=shapes.CALIBRATIONS,
)
def calibrate_pool(view: View, request: Request, pool: str) -> Response:
    """Enter the measured capacity of a pool: it overrides what the pool reports, and floors divide it.

    The entered values.
    """
    found = calibration.set_by_hand(view.backend, pool, request.data, request.user.name)
    return Response(shapes.CalibrationSerializer.render(found))


@order_operation(
    "POST /volumes/pools/<name:pool>/calibrate",
    "sluice:pools:calibrate",
    _POOL,
    REPEATED,
    takes=shapes.NewMeasurementSerializer,
    examples=shapes.MEASUREMENTS,
)
def measure_pool(view: VolumesBaseView, request: Request, pool: str) -> Response:
    """Measure the capacity of a pool with fio, by the konnector of a node; the result is stored like an entered value.

    The figures are in the operation's `data`, and `attached_volumes`: other volumes of the pool, which may have
    reduced them.
    """
    key = idempotency.read_key(request)
    return view.ordered(calibration.measure(view.backend, view.caller(request), pool, request.data, key))
