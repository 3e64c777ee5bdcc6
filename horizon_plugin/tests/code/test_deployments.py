import pytest
from django import forms

from sluice_dashboard.code.deployments import parameter_fields, parameter_values


def parameter(name, kind, **more):
    """A parameter as ``GET /registry/filters`` shows it."""
    blank = {"help": "", "default": None, "choices": [], "minimum": None, "maximum": None, "required": False}
    return {"name": name, "type": kind, **blank, "range_by": "", "ranges": [], **more}


ENGINE = parameter("engine", "str", help="codec", default="zstd", choices=["zstd", "lz4"])
LEVEL = parameter(
    "level",
    "int",
    range_by="engine",
    ranges=[{"value": "zstd", "minimum": 1, "maximum": 19}, {"value": "lz4", "minimum": 0, "maximum": 12}],
)
SIZE = parameter("max_size", "size", default=16_000_000, minimum=1)
STRICT = parameter("strict", "bool", default=True)
WORD = parameter("word", "str", required=True)
AHEAD = parameter("ahead", "int", minimum=1, maximum=64)


def form(*parameters, **typed):
    """The form of these, with a user's input."""
    kind = type("TypedForm", (forms.Form,), parameter_fields(parameters))
    return kind({f"param_{name}": value for name, value in typed.items()})


def test_what_is_left_empty_is_not_sent():
    filled = form(ENGINE, LEVEL, STRICT, SIZE, engine="", level="3", strict="", max_size="")
    assert filled.is_valid()
    assert parameter_values(filled.cleaned_data) == {"level": 3}


def test_values_are_sent_as_a_sentence_has_them():
    filled = form(STRICT, SIZE, ENGINE, strict="false", max_size="10MB", engine="lz4")
    assert filled.is_valid()
    assert parameter_values(filled.cleaned_data) == {"strict": "false", "max_size": "10MB", "engine": "lz4"}


@pytest.mark.parametrize(
    ("described", "typed"), [(WORD, ""), (AHEAD, "65"), (AHEAD, "many"), (ENGINE, "gzip"), (STRICT, "perhaps")]
)
def test_what_the_description_excludes_is_refused_at_its_field(described, typed):
    assert list(form(described, **{described["name"]: typed}).errors) == [f"param_{described['name']}"]


def test_a_range_that_another_parameter_decides_is_left_to_the_api_and_told():
    field = parameter_fields([LEVEL])["param_level"]
    assert form(LEVEL, level="99").is_valid()
    assert field.help_text == "engine=zstd: 1 to 19; engine=lz4: 0 to 12"


@pytest.mark.parametrize(
    ("described", "text"),
    [
        (ENGINE, "codec; default: zstd"),
        (SIZE, "a size such as 64KiB or 10MB; at least 1 B; default: 16 MB"),
        (STRICT, "default: yes"),
        (parameter("wait", "duration", maximum=60), "a duration such as 30s, 5min or 2h; at most 60 s"),
        (parameter("part", "percent", default=0.25), "a percentage such as 20%; default: 25 %"),
    ],
)
def test_help_says_limits_and_defaults_with_units(described, text):
    (field,) = parameter_fields([described]).values()
    assert field.help_text == text


def test_a_parameter_may_be_called_like_a_field_of_the_form():
    assert list(parameter_fields([parameter("target", "str")])) == ["param_target"]
