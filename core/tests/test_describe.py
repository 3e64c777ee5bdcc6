"""Descriptions as data, and ranges that depend on another parameter."""

import json
from dataclasses import asdict

import pytest

from sluice_core.describe import ActionInfo, Parameter, Range

LEVEL = Parameter(
    "level", "int", "effort", maximum=5, range_by="engine", ranges=(Range("fast", 0, 3), Range("small", -7, 19))
)
INFO = ActionInfo("pack", "filter", "", (LEVEL, Parameter("engine", "str", "codec", default="fast")))


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ({}, (0, 3)),
        ({"engine": None}, (0, 3)),
        ({"engine": "small"}, (-7, 19)),
        ({"engine": "unknown"}, (None, 5)),  # refused by its own check
    ],
)
def test_a_range_is_that_beside_the_other_value_or_its_default(given, bounds):
    found = INFO.with_range(LEVEL, given)
    assert (found.minimum, found.maximum) == bounds


def test_a_range_by_nothing_that_there_is_is_the_parameters_own():
    alone = ActionInfo("pack", "filter", "", (LEVEL,))
    assert alone.with_range(LEVEL, {}) is LEVEL
    engine = INFO.parameter("engine")
    assert INFO.with_range(engine, {}) is engine


@pytest.mark.parametrize("parameter", [LEVEL, Parameter("mode", "str", "", choices=("a", "b"), required=True)])
def test_a_parameter_survives_json(parameter):
    assert Parameter.from_data(json.loads(json.dumps(asdict(parameter)))) == parameter


@pytest.mark.parametrize(
    "data",
    [
        {"name": "x"},
        {"name": "x", "type": "int", "help": "", "widest": 3},
        {"name": "x", "type": "int", "help": "", "ranges": [{"value": 1}]},
        {"name": "x", "type": "int", "help": "", "ranges": [3]},
    ],
)
def test_what_describes_no_parameter_is_a_type_error(data):
    with pytest.raises(TypeError):
        Parameter.from_data(data)
