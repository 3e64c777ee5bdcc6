"""Checks the description of uploaded code in a configuration document.

The code itself is not read: it may not be in Swift yet.  Nodes and actor hosts try it before they use it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from sluice_controller.catalog.vocabulary import filter_info
from sluice_controller.code.controllers import check_name as check_controller_name
from sluice_controller.code.filters import PYTHON
from sluice_controller.code.metrics import check_name as check_metric_name
from sluice_core.control import ControllerInfo
from sluice_core.describe import NATIVE
from sluice_core.errors import CallerError
from sluice_core.messages.bandwidth import ALLOCATED_METHODS
from sluice_core.messages.uploads import CONTROLLER_CODE, FILTER_CODE, METRIC_CODE, Upload
from sluice_metrics.native import metric_info

#: What a controller says of itself, besides its name.
_OF_CONTROLLER: Final = frozenset(one.name for one in fields(ControllerInfo)) - {"name"}


def check_manifest(upload: Upload) -> None:
    """
    :raises CallerError: when this can be no filter, metric or controller
    """
    if upload.kind == FILTER_CODE:
        _check_filter(upload)
        return
    if upload.environment != NATIVE or not upload.sha256:
        raise CallerError(f"{upload.kind} `{upload.keyword}` has no native code, expected `environment: {NATIVE}`")
    if upload.kind == METRIC_CODE:
        check_metric_name(upload.keyword)
        metric_info(upload)
    elif upload.kind == CONTROLLER_CODE:
        check_controller_name(upload.keyword)
        _check_controller(upload)


def _check_filter(upload: Upload) -> None:
    if upload.environment == NATIVE and upload.language != PYTHON:
        raise CallerError(f"`language` of filter `{upload.keyword}` is `{upload.language}`, expected `{PYTHON}`")
    if upload.environment == NATIVE and not upload.sha256:
        return  # its code has not said yet what it is
    info = filter_info(upload)
    if info.reversible != upload.reverse:
        raise CallerError(f"filter `{upload.keyword}`: `reverse` is another than what its code says, `reversible`")


def _check_controller(upload: Upload) -> None:
    unknown = sorted(set(upload.info) - _OF_CONTROLLER)
    if unknown:
        raise CallerError(f"controller `{upload.keyword}` says `{unknown[0]}`, which is nothing a controller says")
    metrics, period = upload.info.get("metrics", []), upload.info.get("period", 1.0)
    if not isinstance(metrics, list) or not all(isinstance(one, str) for one in metrics):
        raise CallerError(f"`metrics` of controller `{upload.keyword}` is no list of texts")
    if isinstance(period, bool) or not isinstance(period, int | float) or not period >= 1:
        raise CallerError(f"`period` of controller `{upload.keyword}` is `{period}`, expected at least 1 second")
    allocates = upload.info.get("allocates", [])
    if not isinstance(allocates, list) or any(method not in ALLOCATED_METHODS for method in allocates):
        said = " and ".join(ALLOCATED_METHODS)
        raise CallerError(f"`allocates` of controller `{upload.keyword}` is `{allocates}`, expected a list of {said}")
    if not isinstance(upload.info.get("bandwidth", False), bool):
        raise CallerError(f"`bandwidth` of controller `{upload.keyword}` is neither true nor false")
