"""``/volumes/tiers``: classes of volumes; ``/volumes/pools``: what they lie in."""

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
from sluice_controller.api.serializers import volumes as shapes
from sluice_controller.api.views.base import View
from sluice_controller.api.views.policies.policies import REPEATED
from sluice_controller.api.views.resources import no_content, render_page, url_path
from sluice_controller.api.views.volumes.base import OPERATION_LOCATION, ORDERED, WAIT, VolumesBaseView
from sluice_controller.policies import idempotency
from sluice_controller.volumes import calibration, tiers
from sluice_controller.volumes.demands import MOST_GIB, MOST_IOPS
from sluice_volumes.tiers import FABRICS

_NAME: Final = in_path("tier", "the name of the tier")
_IOPS: Final = QueryParameter(
    "iops",
    OpenApiTypes.FLOAT,
    "operations per second",
    lambda given, name: given.number(name, 0.0, 1.0, MOST_IOPS),
)
_SIZE: Final = QueryParameter(
    "size",
    OpenApiTypes.INT,
    "GiB that one pool must have free",
    lambda given, name: given.integer(name, 0, 1, MOST_GIB),
)
_SHAPE: Final = shapes.TierSerializer
_POOL: Final = in_path("pool", "the pool, host@backend#pool")


class TiersView(View):
    """All tiers."""

    @operation("sluice:tiers:list", "list_tiers", shapes.TierPageSerializer, *LIST)
    def get(self, request: Request) -> Response:
        """List tiers, what Cinder has of their types, and the pools that meet them.

        A page of tiers.
        """
        return render_page(self.given, "tiers", tiers.list_all(self.backend), _SHAPE.render)

    @operation(
        "sluice:tiers:create",
        "create_tier",
        {201: _SHAPE},
        LOCATION,
        errors=(409,),
        takes=shapes.NewTierSerializer,
        examples=shapes.TIERS,
    )
    def post(self, request: Request) -> Response:
        """Make a tier, and its volume type in Cinder.

        A volume type of that name that Sluice did not make is left alone (409).
        """
        made = tiers.create(self.backend, request.data, request.user.name)
        headers = {"Location": url_path("volumes", "tiers", made.tier.name)}
        return Response(_SHAPE.render(made), HTTPStatus.CREATED, headers=headers)


class TierView(View):
    """One tier."""

    @operation("sluice:tiers:show", "show_tier", _SHAPE, _NAME, errors=(404,))
    def get(self, request: Request, tier: str) -> Response:
        """Show a tier, what Cinder has of its type, and the pools that meet it.

        The tier.
        """
        return Response(_SHAPE.render(tiers.find(self.backend, tier)))

    @operation("sluice:tiers:update", "mend_tier", _SHAPE, _NAME, errors=(404, 409), takes=None)
    def put(self, request: Request, tier: str) -> Response:
        """Put a tier's volume type back to what the tier says, when it was changed or deleted in Cinder.

        The tier.
        """
        return Response(_SHAPE.render(tiers.repair(self.backend, tier)))

    @operation("sluice:tiers:delete", "delete_tier", GONE, _NAME, errors=(404, 409))
    def delete(self, request: Request, tier: str) -> Response:
        """Delete a tier that no volume is of, and its volume type.

        204.
        """
        tiers.delete(self.backend, tier)
        return no_content()


class TierMatchView(View):
    """The tier for demands."""

    @operation(
        "sluice:tiers:match",
        "match_tier",
        shapes.MatchSerializer,
        query_text("resiliency", "none, raid, or a number of replicas"),
        query_text("bandwidth", "a rate with its unit, as `50MBps`; a bare number is MB/s"),
        _IOPS,
        query_word("fabric", "how volumes are reached", FABRICS),
        _SIZE,
        errors=(409,),
    )
    def get(self, request: Request) -> Response:
        """Find the cheapest tier that promises what is demanded, and has a pool for it now.

        Without one, 409 names each demand that no pool meets, and the nearest value.
        """
        return Response(shapes.MatchSerializer.render(tiers.match(self.backend, **self.given)))


class PoolsView(View):
    """All pools."""

    @operation("sluice:pools:list", "list_pools", shapes.PoolListSerializer)
    def get(self, request: Request) -> Response:
        """List Cinder's pools as they reported themselves last.

        The pools, by name.
        """
        known = tiers.KnownPools.read(self.backend)
        pools = shapes.PoolSerializer.render_all(known.pools.values())
        measured = shapes.CalibrationSerializer.render_all(known.calibrations.values())
        return Response({"pools": pools, "measured": measured})


class CalibrationView(View):
    """What is said of a pool."""

    @operation(
        "sluice:pools:calibrate",
        "calibrate_pool",
        shapes.CalibrationSerializer,
        _POOL,
        errors=(404,),
        takes=shapes.NewCalibrationSerializer,
        examples=shapes.CALIBRATIONS,
    )
    def put(self, request: Request, pool: str) -> Response:
        """Say what a pool carries, as you measured it: it counts before what the pool claims, and floors divide it.

        What was said.
        """
        found = calibration.set_by_hand(self.backend, pool, request.data, request.user.name)
        return Response(shapes.CalibrationSerializer.render(found))


class MeasurementView(VolumesBaseView):
    """Measuring a pool."""

    @operation(
        "sluice:pools:calibrate",
        "measure_pool",
        ORDERED,
        _POOL,
        WAIT,
        REPEATED,
        OPERATION_LOCATION,
        errors=(404, 409),
        takes=shapes.NewMeasurementSerializer,
        examples=shapes.MEASUREMENTS,
    )
    def post(self, request: Request, pool: str) -> Response:
        """Have the konnector of a node measure with fio what a pool carries: it is kept as if it had been said.

        The figures are in the operation's `data`, and `attached_volumes`: other volumes of the pool, which may have
        made them smaller.
        """
        key = idempotency.read_key(request)
        return self.ordered(calibration.measure(self.backend, self.caller(request), pool, request.data, key))
