"""``python -I -m sluice_metrics.trial``: checks an uploaded metric against the contract of ``sluice_metrics.api``.

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
    """Return the verdict of a trial of uploaded code.

    :raises BadUpload: when the code fails the trial
    """
    metric_class: type[Metric] = load_class(code, trial.sha256, Metric, trial.main)
    with refuse_failures("what it says of itself"):
        fault = refusal_reason(metric_class, trial.keyword)
        if fault:
            raise BadUpload(fault)
        info = describe_metric(metric_class)
    try:
        check_contract(metric_class)
    except BadUpload as error:
        raise BadUpload(f"metric `{metric_class.info.name}`: {error}") from error
    return Verdict("", metric_class.__name__, info)


if __name__ == "__main__":
    serve_trial(run_trial)
