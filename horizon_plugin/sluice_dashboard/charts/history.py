"""Values of metrics over time, as the API keeps them, for plots."""

from __future__ import annotations

from typing import Any, Final

from sluice_client import ApiError, Client
from sluice_dashboard.charts.plots import Point, Series, TimeRange

#: Column of a point of history that is its mean.
MEAN: Final = 1


def fetch_history(client: Client, metric: str, target: str, wanted: TimeRange) -> list[list[Any]]:
    """The points of a metric; none where no history of it is kept, or it is nothing that one may see.

    :param target: an account, account/container, account/volume id, node or pool; empty: the cluster
    :raises ClientError: when the API is away
    """
    query = {"from": f"{wanted.begin:.0f}", "to": f"{wanted.end:.0f}", "step": wanted.step}
    try:
        found: list[list[Any]] = client.get(f"/metrics/{metric}/history", target=target, **query)["points"]
    except ApiError as error:
        if error.status not in (403, 404):
            raise
        return []
    return found


def column(points: list[list[Any]], number: int) -> list[Point]:
    """One value of each point over time."""
    return [(point[0], point[number]) for point in points]


def mean_series(client: Client, metric: str, target: str, wanted: TimeRange, label: str, unit: str) -> Series:
    """The mean of a metric in each step."""
    return Series(label, unit, column(fetch_history(client, metric, target, wanted), MEAN))
