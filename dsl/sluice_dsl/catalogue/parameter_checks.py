"""What refuses parameters beyond a filter's description, by entry point: the filter's own code.

A description says types, choices and ranges.  A filter whose parameters have more rules (a condition on rows must be
one, two columns must differ) names in the entry point group ``sluice.parameter_checks``, under its keyword, what takes
the parameters that are given and raises a :class:`~sluice_core.errors.CallerError`.  The API tries the filters
themselves, which run the same code.  So a check must be importable where the filters' codecs are not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from sluice_core.describe import Scalar
from sluice_core.errors import CallerError

GROUP: Final = "sluice.parameter_checks"
ParameterCheck = Callable[[Mapping[str, Scalar]], object]


def find_parameter_checks() -> dict[str, ParameterCheck]:
    """The check of each keyword that has one; its code is loaded when it is called."""
    return {entry.name: partial(_check, entry) for entry in entry_points(group=GROUP)}


def _check(entry: EntryPoint, params: Mapping[str, Scalar]) -> None:
    """
    :raises CallerError: for parameters that the filter would refuse, and when that cannot be found out
    """
    try:
        check = entry.load()
    except (ImportError, AttributeError) as error:
        raise CallerError(f"parameters cannot be checked here: `{entry.value}`: {error}") from error
    check(params)
