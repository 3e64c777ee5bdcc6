"""The API's response to Prometheus, in a form for comparisons."""

from __future__ import annotations

from typing import Any

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


def families(api: Any, path: str) -> list[Metric]:
    """All families of a page, each with its help."""
    answer = api.get(path)
    assert (answer.status_code, answer.headers["Content-Type"].split(";")[0]) == (200, "text/plain")
    found = list(text_string_to_metric_families(answer.content.decode()))
    assert all(one.documentation for one in found)
    return found


def series(found: list[Metric]) -> dict[str, dict[Labels, float]]:
    """Name of a family → labels → value."""
    return {one.name: {labelled(**sample.labels): sample.value for sample in one.samples} for one in found}


def labelled(**labels: str) -> Labels:
    """Labels as a key."""
    return frozenset(labels.items())
