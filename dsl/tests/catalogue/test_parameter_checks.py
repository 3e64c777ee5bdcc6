"""Parameters that a filter's own code refuses, found by entry point."""

import json
from importlib.metadata import EntryPoint

import pytest

from sluice_dsl.catalogue import vocabulary
from sluice_dsl.catalogue.offline import load_catalogue
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.cli import main
from sluice_dsl.compile import PolicyErrors, compile_text


def messages(text, catalogue):
    with pytest.raises(PolicyErrors) as refused:
        compile_text(text, catalogue)
    return [(one.message, text[one.column - 1 : one.column - 1 + one.length]) for one in refused.value.problems]


@pytest.mark.parametrize(
    ("action", "marked", "message"),
    [
        ("csv_select WITH where='age >'", "where='age >'", "`csv_select`: `where`: at character "),
        ('csv_select WITH columns="a\\nb"', 'columns="a\\nb"', "`csv_select`: `columns` is `a"),
        ("csv_select WITH columns=name header=no", "columns=name header=no", "`csv_select`: `header` is `no`, so"),
        ("encryption WITH key='two words'", "key='two words'", "`encryption`: `key` is `two words`, expected up to 64"),
        ("tagging WITH name=a_b value=x", "name=a_b value=x", "`tagging`: `name` is `a_b`, expected up to 100 letters"),
        ("delete_guard WITH bin=a/b", "bin=a/b", "`delete_guard`: `bin` is `a/b`, expected the name of a container"),
        (
            "downsample WITH time=t interval=1h values=t",
            "time=t interval=1h values=t",
            "is named twice in `time`, `keys`",
        ),
    ],
)
def test_what_a_filter_would_refuse_is_refused_offline(action, marked, message):
    ((found, where),) = messages(f"FOR t DO SET {action}", default_catalogue())
    assert message in found
    assert where == marked


def test_a_missing_parameter_is_reported_once():
    ((found, where),) = messages("FOR t DO SET tagging WITH name=a_b", default_catalogue())
    assert (found, where) == ("`tagging` needs parameter `value`: expected `WITH value=…`", "tagging")


def test_another_filter_of_that_keyword_is_checked_by_its_description_alone(tmp_path):
    path = tmp_path / "catalogue.json"
    described = {"keyword": "tagging", "kind": "filter", "help": "", "parameters": [
        {"name": "name", "type": "str", "help": ""}]}  # fmt: skip
    path.write_text(json.dumps({"actions": [described]}))
    assert compile_text("FOR t DO SET tagging WITH name=a_b", load_catalogue(path))
    path.write_text(json.dumps({"default_tenant": "t"}))
    assert messages("FOR t DO SET tagging WITH name=a_b value=x", load_catalogue(path))


def test_a_check_that_cannot_be_loaded_refuses_rather_than_passes(monkeypatch):
    entries = [
        EntryPoint("csv_select", "sluice_absent.module:check", vocabulary.GROUP),
        EntryPoint("caching", "sluice_core.describe:absent", vocabulary.GROUP),
    ]
    monkeypatch.setattr(vocabulary, "installed_entry_points", lambda group: entries)
    for action, name in (
        ("csv_select WITH header=no", "sluice_absent"),
        ("caching WITH ttl=5s", "sluice_core.describe"),
    ):
        ((found, _),) = messages(f"FOR t DO SET {action}", default_catalogue())
        assert f"parameters cannot be checked here: `{name}" in found


def test_the_command_checks_levels_and_conditions(tmp_path, capsys):
    path = tmp_path / "policies"
    levels = [("gzip", 1), ("gzip", 6), ("gzip", 9), ("zstd", -7), ("zstd", 19), ("lz4", -1), ("lz4", 12)]
    good = [f"FOR t{n} DO SET compression WITH engine={one} level={level}" for n, (one, level) in enumerate(levels)]
    path.write_text("\n".join(good))
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == f"{len(levels)} sentences, no errors\n"
    path.write_text("FOR t DO SET compression WITH engine=gzip level=10\nFOR u DO SET csv_select WITH where=1")
    assert main(["check", str(path)]) == 1
    shown = capsys.readouterr().err
    assert "with engine=gzip: expected 0 to 9, got `10`" in shown
    assert "error: line 2, column 30: `csv_select`: `where`: " in shown
