"""The bandwidth report that the allocating actor host puts into Redis each second.

A report (``sluice_core.messages.bandwidth_report``) is of use while it is fresh.  Nobody allocates when there is
none, or an old one alone.  ``sluice_controller.bandwidth.report_tables`` makes lists of it.
"""

from __future__ import annotations

import math

from sluice_controller.catalog.backend import Backend
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_core.store.bandwidth_reports import FRESH, RETENTION, read_idle_flows, read_report


def current_report(backend: Backend, idle: bool = False) -> BandwidthReport | None:
    """The last report; None when it is older than :data:`FRESH` seconds, or there is none.

    :param idle: with the flows that are idle, which are many and to be read besides
    :raises PeerError: when Redis is away
    """
    return report_and_age(backend, idle)[0]


def report_and_age(backend: Backend, idle: bool = False) -> tuple[BandwidthReport | None, float]:
    """The same, and how many seconds old it is: infinitely when there is none.

    :raises PeerError: when Redis is away
    """
    report, left = backend.store.run(read_report(backend.store.keys))
    if report is None:
        return None, math.inf
    # Redis' own clock says how old it is; those of two hosts may be apart
    age = RETENTION - left if left >= 0 else backend.now() - report.at
    if age > FRESH:
        return None, math.inf
    if idle and report.promises:
        report = report.with_idle(backend.store.run(read_idle_flows(backend.store.keys, report.promises)))
    return report, age


def shortfall(report: BandwidthReport | None, policy_id: str, parameter: str = "") -> dict[str, float] | None:
    """What is missing to keep the promise of a policy, or that of one ``parameter`` of it.

    None when nothing is, or nobody measures.
    """
    missing = None
    if report is not None:
        missing = report.lacking.get(policy_id, {}).get(parameter) if parameter else report.infeasible.get(policy_id)
    return {"shortfall": missing} if missing else None
