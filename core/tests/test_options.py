"""Options: declared once, unknown names refused, the sample reads back."""

import pytest

from sluice_core.options import Option, OptionError, read_file, read_files, read_options, retired_option, sample_section

OPTIONS = (
    Option("name", "here", "a word"),
    Option("count", 3, "a number"),
    Option("pause", 0.5, "seconds"),
    Option("quiet", False, "say less"),
)
DEFAULTS = {"name": "here", "count": 3, "pause": 0.5, "quiet": False}


def test_what_is_not_given_has_its_default():
    assert read_options(OPTIONS, {}, "test") == DEFAULTS


def test_an_option_that_is_retired_is_accepted_with_a_warning_and_has_no_value(caplog):
    options = (*OPTIONS, retired_option("old"))
    assert read_options(options, {}, "test") == DEFAULTS
    assert not caplog.records
    assert read_options(options, {"old": "any", "count": "4"}, "test") == {**DEFAULTS, "count": 4}
    (record,) = caplog.records
    assert record.getMessage() == "test: option `old` means nothing any more; remove it, since 0.3 refuses it"
    assert "old" not in sample_section("s", options)


def test_values_have_the_type_of_their_default():
    given = {"name": " there ", "count": "7", "pause": "2", "quiet": "Yes"}
    assert read_options(OPTIONS, given, "test") == {"name": "there", "count": 7, "pause": 2.0, "quiet": True}


@pytest.mark.parametrize(
    ("given", "complaints"),
    [
        ({"cuont": "1"}, ["test: unknown option `cuont`, did you mean `count`"]),
        ({"zzz": "1"}, ["test: unknown option `zzz`"]),
        ({"count": "many"}, ["test: option `count`"]),
        ({"quiet": "perhaps"}, ["expected true or false, got `perhaps`"]),
        ({"count": "x", "pause": "y", "zzz": ""}, ["`count`", "`pause`", "`zzz`"]),
    ],
)
def test_all_faults_are_named_at_once(given, complaints):
    with pytest.raises(OptionError) as caught:
        read_options(OPTIONS, given, "test")
    for complaint in complaints:
        assert complaint in str(caught.value)


def test_names_of_somebody_else_are_left_alone():
    assert read_options(OPTIONS, {"use": "egg:x", "count": "4"}, "test", ignored=("use",))["count"] == 4


def test_the_sample_is_a_file_of_defaults(tmp_path):
    path = tmp_path / "sample.conf"
    path.write_text(sample_section("here", OPTIONS))
    assert read_file(OPTIONS, path, "here") == DEFAULTS
    path.write_text(sample_section("here", OPTIONS).replace("\n#", "\n").replace("\n ", "\n; "))
    assert read_file(OPTIONS, path, "here") == DEFAULTS
    assert "a number" in path.read_text()


def test_a_missing_section_means_defaults_and_a_missing_file_is_told(tmp_path):
    path = tmp_path / "other.conf"
    path.write_text("[elsewhere]\nx = 1\n")
    assert read_file(OPTIONS, path, "here") == DEFAULTS
    with pytest.raises(OptionError, match="cannot read"):
        read_file(OPTIONS, tmp_path / "none.conf", "here")
    path.write_text("no section = here\n")
    with pytest.raises(OptionError, match="cannot read"):
        read_file(OPTIONS, path, "here")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("url = redis://:geheim@h\n", "line 1 stands before any section, expected `[name]` above it"),
        ("[here]\nname = a\npassword geheim\n", "line 3 is no option, expected `name = value`"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_not_quoted(tmp_path, text, fault):
    path = tmp_path / "wrong.conf"
    path.write_text(text)
    with pytest.raises(OptionError) as caught:
        read_file(OPTIONS, path, "here")
    assert str(caught.value) == f"cannot read `{path}`: {fault}"
    assert caught.value.__cause__ is None, "a traceback would quote the line"


def test_a_percent_sign_is_only_that(tmp_path):
    path = tmp_path / "percent.conf"
    path.write_text("[here]\nname = amqp://h/%2F\n")
    assert read_file(OPTIONS, path, "here")["name"] == "amqp://h/%2F"


def test_of_several_files_the_later_one_wins_and_each_fault_names_its_own(tmp_path):
    first, second, third = (tmp_path / f"{number}.conf" for number in range(3))
    first.write_text("[here]\nname = first\ncount = 1\n")
    second.write_text("[elsewhere]\ncount = 9\n")
    third.write_text("[here]\ncount = 3\nquiet = yes\n")
    assert read_files(OPTIONS, (first, second, third), "here") == {
        "name": "first",
        "count": 3,
        "pause": 0.5,
        "quiet": True,
    }
    assert read_files(OPTIONS, (), "here") == DEFAULTS
    first.write_text("[here]\ncuont = 1\n")
    third.write_text("[here]\npause = long\n")
    with pytest.raises(OptionError) as caught:
        read_files(OPTIONS, (first, second, third), "here")
    assert f"{first} [here]: unknown option `cuont`" in str(caught.value)
    assert f"{third} [here]: option `pause`" in str(caught.value)
