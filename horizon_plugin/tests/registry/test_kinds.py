"""Input of the registry's forms becomes bodies of the API."""

import pytest
from django.core.exceptions import ValidationError

from sluice_dashboard.registry.kinds import LinesField, ParametersField, given


def test_a_list_is_a_line_for_each_and_empty_lines_are_nothing():
    field = LinesField(required=False)
    assert field.clean(" acme \r\n\r\nAUTH_y\r\n") == ["acme", "AUTH_y"]
    assert field.clean("") == []
    assert field.prepare_value(["acme", "AUTH_y"]) == "acme\nAUTH_y"


def test_what_was_typed_into_a_list_is_shown_again_as_it_was():
    assert LinesField().prepare_value("acme,\n\nbeta") == "acme,\n\nbeta"


def test_parameters_are_a_line_for_each_and_a_value_may_hold_the_sign():
    field = ParametersField(required=False)
    assert field.clean("engine = zstd\nquery=a=b\n") == {"engine": "zstd", "query": "a=b"}
    assert field.prepare_value({"engine": "zstd", "level": 3}) == "engine=zstd\nlevel=3"


@pytest.mark.parametrize("text", ["engine", "=zstd", "level=1\nlevel=2"])
def test_what_is_no_parameter_is_refused(text):
    with pytest.raises(ValidationError):
        ParametersField().clean(text)


def test_guards_are_no_part_of_a_body_and_no_parameters_are_not_said():
    assert given({"text": "GETS_SEC", "params": {}, "etag": '"3"', "force": True}) == {"text": "GETS_SEC"}
    assert given({"params": {"level": "3"}}) == {"params": {"level": "3"}}
