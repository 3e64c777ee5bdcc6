"""Every command against a real API: its effect, and its output in every format."""

import csv
import io
import json
from pathlib import Path

import pytest
import yaml

from sluice_client.commands import COMMANDS
from sluice_core.messages.events import Event

SENTENCE = "FOR TENANT AUTH_a DO SET noop"
DESCRIPTION = {
    "environment": "wasm",
    "language": "wasm",
    "reverse": True,
    "capabilities": {"changes_length": False, "stage": 450},
    "help": "not a cipher",
}
CODE = b"\0asm" + bytes(range(256)) * 1000
#: The minimal arguments of each command.
WORDS = {
    "policy create": [SENTENCE],
    "policy check": [SENTENCE],
    "policy complete": ["FOR TEN"],
    "policy list": [],
    "policy show": ["POLICY"],
    "policy delete": ["POLICY"],
    "filter list": [],
    "filter show": ["scramble"],
    "filter create": ["shout", "--environment", "wasm", "--language", "wasm"],
    "filter upload": ["scramble", "CODE"],
    "filter set": ["scramble", "--help-text", "new"],
    "filter delete": ["scramble"],
    "overview show": [],
    "permission list": ["--target", "AUTH_a/logs"],
    "metric list": [],
    "term list": [],
    "event list": [],
    "node list": [],
    "node show": ["n1"],
    "history adopt": [],
    "node delete": ["n1"],
    "health show": [],
}
TEXT_ALONE = {"policy delete", "filter delete", "node delete"}
FORMATS = {
    "json": json.loads,
    "yaml": yaml.safe_load,
    "csv": lambda text: list(csv.DictReader(io.StringIO(text))),
    "value": str.splitlines,
    "table": lambda text: [line for line in text.splitlines() if line.startswith("|")][1:],
}


@pytest.fixture
def things(client, store, node, tmp_path):
    """One of each resource, and the words that identify them."""
    node("n1")
    store.append_events([Event(1.0, "error", "node_away", "node `n1` is away", "n1", node="n1")])
    made = client.create_policy("FOR TENANT AUTH_b DO SET compression")
    client.register_filter({**DESCRIPTION, "keyword": "scramble"})
    (tmp_path / "code").write_bytes(CODE)
    return {"POLICY": made["id"], "CODE": str(tmp_path / "code")}


def test_every_command_is_tried_here_or_in_a_story():
    files = (
        "rest/test_registry.py",
        "rest/test_operations.py",
        "command_base/test_code_crud.py",
        "rest/test_bandwidth.py",
        "commands/test_rewrites.py",
        "commands/test_motifs.py",
        "commands/test_volumes.py",
        "commands/test_metric_history.py",
    )
    stories = "".join((Path(__file__).parents[1] / name).read_text() for name in files)
    told = {words for words in COMMANDS if words.split()[0] in ("term", "alias", "stereotype")}
    told |= {words for words in COMMANDS if words.split()[1] == "group"}
    told |= {f"rewrite {verb}" for verb in ("pause", "resume", "cancel")}
    told |= {f"metric {verb}" for verb in ("show", "create", "set", "delete")}
    told |= {words for words in COMMANDS if ", ".join(f'"{word}"' for word in words.split()) in stories}
    assert set(COMMANDS) == set(WORDS) | told


@pytest.mark.parametrize("command", WORDS)
def test_every_command_does_what_it_says(sluice, things, command):
    words = [things.get(word, word) for word in WORDS[command]]
    said = sluice(*command.split(), *words)
    assert said.out.strip()
    assert said.err == ""


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("command", [one for one in WORDS if one.split()[-1] in ("list", "show")])
def test_every_output_can_be_read_in_every_format(sluice, things, command, form):
    words = [things.get(word, word) for word in WORDS[command]]
    long = ["--long"] if command.endswith("list") else []
    found = FORMATS[form](sluice(*command.split(), *words, *long, "-f", form).out)
    assert found
    columns = COMMANDS[command].columns
    if form == "json":
        one = found[0] if long else found
        assert list(one) == [column.title for column in columns]


@pytest.mark.parametrize("command", [one for one in WORDS if one not in TEXT_ALONE])
def test_json_is_what_the_controller_said_for_every_command(sluice, things, command):
    words = [things.get(word, word) for word in WORDS[command]]
    assert json.loads(sluice("--json", *command.split(), *words).out)


def test_a_list_is_short_unless_it_is_asked_for_more(sluice, things):
    short = json.loads(sluice("policy", "list", "-f", "json").out)[0]
    long = json.loads(sluice("policy", "list", "-f", "json", "--long").out)[0]
    assert list(short) == ["ID", "State", "Enforced", "Created At", "Policy"]
    assert {"Created By", "Epoch", "Reason"} < set(long)
    assert (short["ID"], short["Enforced"]) == (things["POLICY"], "0/1")
    assert long["Created At"].endswith("Z")


def test_values_keep_their_types_in_json_and_are_text_in_a_table(sluice, things, node):
    node("n1", refused={f"{things['POLICY']}.0": "not installed"})
    shown = json.loads(sluice("policy", "show", things["POLICY"], "-f", "json").out)
    assert shown["refused"] == [{"node": "n1", "reason": "not installed"}]
    assert (shown["dynamic"], shown["actions"][0]["keyword"]) == (False, "compression")
    table = sluice("policy", "show", things["POLICY"]).out
    assert "n1: not installed" in table
    assert "set compression" in table


def test_lists_can_be_narrowed(sluice, client):
    ids = [client.create_policy(f"FOR TENANT AUTH_{name} DO SET noop")["id"] for name in "ab"]
    assert sluice("policy", "list", "--tenant", "AUTH_b", "-f", "value", "-c", "ID").out == f"{ids[1]}\n"
    assert sluice("policy", "list", "--state", "failed", "-f", "value", "-c", "ID").out.strip() == ""
    keywords = sluice("filter", "list", "--all", "-f", "value", "-c", "Filter").out.split()
    assert set(sluice("filter", "list", "-f", "value", "-c", "Filter").out.split()) < set(keywords)


def test_a_long_list_is_fetched_page_by_page(client):
    client.create_policies("; ".join(f"FOR TENANT AUTH_{number} DO SET noop" for number in range(7)))
    assert len(list(client.policies(page=3))) == 7


def test_several_sentences_become_policies_in_their_order(sluice):
    text = f"{SENTENCE}; FOR TENANT AUTH_z DO SET compression"
    made = json.loads(sluice("policy", "create", text, "-f", "json").out)
    assert [one["Policy"] for one in made] == text.split("; ")


def test_sentences_may_come_from_standard_input(sluice, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(SENTENCE + "\n"))
    assert sluice("policy", "create", "-", "-f", "value", "-c", "Policy").out == SENTENCE + "\n"


def test_a_bad_sentence_is_shown_with_its_carets_and_changes_nothing(sluice, client):
    said = sluice("policy", "create", "FOR TENANT a DO SET compresion", status=1)
    assert "did you mean `compression`" in said.err
    assert "^^^^" in said.err
    assert "Request-ID: req-" in said.err
    assert said.out == ""
    assert list(client.policies()) == []


def test_warnings_stand_beside_the_output(sluice, client):
    client.create_policy("FOR TENANT AUTH_a DO SET encryption")
    said = sluice("policy", "check", "FOR CONTAINER AUTH_a/c DO DELETE encryption", "-f", "json")
    assert json.loads(said.out)[0]["Kind"] == "static"
    assert said.err == "" or said.err.startswith("warning: line 1")


def test_several_names_are_tried_each_and_a_failure_shows_at_the_end(sluice, client):
    ids = [client.create_policy(f"FOR TENANT AUTH_{name} DO SET noop")["id"] for name in "ab"]
    said = sluice("policy", "delete", ids[0], "nope", ids[1], status=1)
    assert said.out == f"policy {ids[0]} is deleted\npolicy {ids[1]} is deleted\n"
    assert said.err.startswith("nope: there is no policy `nope` (HTTP 404) (Request-ID: req-")
    assert said.err.endswith("sluice: 1 of 3 failed\n")
    assert list(client.policies()) == []


def test_a_filter_is_created_uploaded_changed_and_deleted(sluice, client, tmp_path):
    (tmp_path / "shout.json").write_text(json.dumps(DESCRIPTION))
    (tmp_path / "shout.wasm").write_bytes(CODE)
    words = ["--description", str(tmp_path / "shout.json"), "--no-reverse", "--capability", "stage=460"]
    parameter = '{"name": "key", "type": "str", "help": "what to mix in", "default": "x"}'
    code = ["--code", str(tmp_path / "shout.wasm"), "--parameter", parameter]
    made = json.loads(sluice("filter", "create", "shout", *words, *code, "-f", "json").out)
    assert (made["size"], made["reverse"], made["revision"]) == (len(CODE), False, 1)
    assert made["capabilities"] == {"changes_length": False, "stage": 460}
    assert [one["name"] for one in made["parameters"]] == ["key"]
    assert made["created_at"].endswith("Z")
    assert sluice("filter", "set", "shout", "--help-text", "loud", "-f", "value", "-c", "help").out == "loud\n"
    changed = sluice("filter", "set", "shout", "--self-service", "-f", "json")
    assert (made["self_service"], json.loads(changed.out)["self_service"]) == (False, True)
    (tmp_path / "shout.wasm").write_bytes(CODE + b"2")
    second = sluice("filter", "upload", "shout", str(tmp_path / "shout.wasm"), "-f", "value", "-c", "revision")
    assert second.out == "2\n"
    assert "shout" in sluice("filter", "list").out
    assert sluice("filter", "delete", "shout").out == "filter shout is deleted\n"
    assert "shout" not in [one["keyword"] for one in client.filters()]


def test_a_change_that_somebody_else_was_quicker_with_is_refused(client, things):
    _, etag = client.filter_and_etag("scramble")
    client.update_filter("scramble", {"help": "first"}, etag)
    from sluice_client import ApiError

    with pytest.raises(ApiError, match="If-Match") as caught:
        client.update_filter("scramble", {"help": "second"}, etag)
    assert caught.value.status == 412


BAD_FILTERS = {
    "no change": (["filter", "set", "scramble"], "nothing is to be changed"),
    "no json": (["filter", "set", "scramble", "--parameter", "{"], "`--parameter` is no JSON"),
    "no description": (["filter", "create", "shout", "--description", "BAD"], "is no JSON"),
    "a list": (["filter", "create", "shout", "--description", "LIST"], "holds no object"),
    "no file": (["filter", "upload", "scramble", "NONE"], "cannot be opened: No such file or directory"),
    "empty code": (["filter", "upload", "scramble", "EMPTY"], "the body is empty"),
}


@pytest.mark.parametrize("name", BAD_FILTERS)
def test_what_is_wrong_with_a_filter_is_said_in_a_line(sluice, things, tmp_path, name):
    words, reason = BAD_FILTERS[name]
    contents = {"BAD": "{", "LIST": "[]", "EMPTY": ""}
    for key, content in contents.items():
        (tmp_path / key).write_text(content)
    places = {key: str(tmp_path / key) for key in ("BAD", "LIST", "EMPTY", "NONE")}
    said = sluice(*(places.get(word, word) for word in words), status=1)
    assert reason in said.err
    assert said.err.startswith("sluice: ")
    assert len(said.err.splitlines()) == 1


def test_a_wrong_token_is_refused_and_not_repeated(sluice, api, tmp_path):
    (tmp_path / "wrong").write_text("wrong-and-secret")
    start = ["--url", api.url, "--token-file", str(tmp_path / "wrong")]
    said = sluice("policy", "list", status=1, start=start)
    assert "(HTTP 401)" in said.err
    assert "wrong-and-secret" not in said.err + said.out


NAMES = ["ä/ö?#%", "a b", 'q"uote', "*", "new\nline"]


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_arrive_as_they_are_or_are_refused_without_harm(sluice, things, name):
    said = sluice("policy", "show", name, status=1)
    assert "(HTTP 4" in said.err
    assert "Traceback" not in said.err
