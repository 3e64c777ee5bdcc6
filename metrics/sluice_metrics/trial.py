"""``python -I -m sluice_metrics.trial``: holds an uploaded metric against the contract of ``sluice_metrics.api``.

It runs in a child (``sluice_code.native_trial``), with Swift's interpreter on nodes.
"""

from __future__ import annotations

from sluice_code.code_store import BadUpload
from sluice_code.loader import load_class, refuse_failures
from sluice_code.native_trial import Trial, Verdict, serve_trial
from sluice_metrics.api import Metric
from sluice_metrics.contract import check_contract
from sluice_metrics.native import describe_metric, refusal_reason


def run_trial(trial: Trial, code: bytes) -> Verdict:
    """What a trial says of uploaded code.

    :raises BadUpload: when the code is unfit
    """
    found: type[Metric] = load_class(code, trial.sha256, Metric, trial.main)
    with refuse_failures("what it says of itself"):
        fault = refusal_reason(found, trial.keyword)
        if fault:
            raise BadUpload(fault)
        info = describe_metric(found)
    try:
        check_contract(found)
    except BadUpload as error:
        raise BadUpload(f"metric `{found.info.name}`: {error}") from error
    return Verdict("", found.__name__, info)


if __name__ == "__main__":
    serve_trial(run_trial)
