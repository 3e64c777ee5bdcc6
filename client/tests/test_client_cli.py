"""The command line, with a client that answers from memory."""

import json

import pytest

from sluice_client import ApiError, cli
from sluice_client.tables import pairs, plain, table

POLICY = {
    "id": "p1",
    "policy": "FOR TENANT a DO SET noop",
    "state": "failed",
    "reason": "no such metric",
    "created_at": "2026-01-01T00:00:00.000Z",
    "created_by": "admin",
    "epoch": 3,
    "dynamic": True,
    "enforced": {
        "nodes": 1,
        "total": 4,
        "refused": [{"node": "n2", "reason": "not installed"}],
        "waiting": ["n3"],
        "away": ["n4"],
    },
    "observed": {"window": 5, "values": {"PUTS_SEC": 7.0}},
    "firings": [{"at": "2026-01-01T00:00:01.000Z", "what": "set", "member": "", "window": 5}],
    "warnings": [],
}


UPLOAD = {
    "keyword": "",
    "environment": "wasm",
    "language": "wasm",
    "main": "",
    "reverse": False,
    "revision": 1,
    "size": 0,
    "sha256": "",
    "help": "",
    "parameters": [],
}


class FakeClient:
    """Stands in for the client: remembers how it was made and called."""

    made: list = []
    calls: list = []

    def __init__(self, *given):
        self.made.append(given)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def create_policies(self, text, wait):
        self.calls.append((text, wait))
        return [POLICY]

    def policies(self, tenant, state, page):
        return iter([POLICY])

    def policy(self, policy_id):
        if policy_id != "p1":
            raise ApiError(404, f"there is no policy `{policy_id}`")
        return POLICY

    def register_filter(self, description):
        self.calls.append(description)
        return {**UPLOAD, **description}

    def upload_filter(self, keyword, code, wait):
        self.calls.append((keyword, code, wait))
        return {**UPLOAD, "keyword": keyword, "size": len(code)}


@pytest.fixture
def run(monkeypatch, capsys):
    monkeypatch.setattr(cli, "Client", FakeClient)
    FakeClient.made.clear()
    FakeClient.calls.clear()

    def go(*words):
        status = cli.main(words)
        said = capsys.readouterr()
        return status, said.out, said.err

    return go


def test_url_and_token_come_from_the_environment(run, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    monkeypatch.setenv("SLUICE_URL", "http://there")
    monkeypatch.setenv("SLUICE_TOKEN_FILE", str(tmp_path / "token"))
    assert run("policy", "list")[0] == 0
    assert run("--url", "http://here", "--token-file", "", "policy", "list")[0] == 0
    assert FakeClient.made == [("http://there", "secret", 10.0), ("http://here", "", 10.0)]


def test_a_policy_is_shown_with_every_node_that_does_not_enforce_it(run):
    out = run("policy", "show", "p1")[1]
    assert out.splitlines() == [
        "id        p1",
        "policy    FOR TENANT a DO SET noop",
        "state     failed no such metric",
        "created   2026-01-01T00:00:00.000Z by admin",
        "epoch     3",
        "enforced  1/4",
        "refused   n2: not installed",
        "waiting   n3",
        "away      n4",
        "observed  PUTS_SEC = 7.0",
        "firing    2026-01-01T00:00:01.000Z set",
    ]


def test_json_is_what_the_controller_said(run):
    assert json.loads(run("--json", "policy", "show", "p1")[1]) == POLICY


def test_a_text_may_come_from_standard_input(run, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("FOR x"))
    assert run("policy", "create", "-", "--wait", "3")[0] == 0
    assert FakeClient.calls == [("FOR x", 3.0)]


def test_a_refusal_goes_to_standard_error_and_ends_with_one(run):
    assert run("policy", "show", "zz") == (1, "", "sluice: there is no policy `zz` (HTTP 404)\n")


def test_a_token_file_that_is_missing_is_named(run, tmp_path):
    status, _, err = run("--token-file", str(tmp_path / "none"), "policy", "list")
    assert status == 1
    assert str(tmp_path / "none") in err


@pytest.mark.parametrize("words", [[], ["policy"], ["policy", "drop"], ["policy", "list", "--state", "on"], ["x"]])
def test_a_wrong_command_line_ends_with_two(run, words):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "words", [["--help"], ["policy", "--help"], ["policy", "create", "--help"], ["node", "--help"]]
)
def test_every_level_has_help(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 0
    assert "usage: sluice" in capsys.readouterr().out


def test_columns_are_as_wide_as_their_widest_cell():
    assert table(("A", "LONG"), [("xyz", 1), ("日本", "ü")]) == "A     LONG\nxyz   1\n日本  ü"
    assert table(("A", "B"), []) == "A  B"
    assert pairs([]) == ""


def test_control_characters_never_reach_the_terminal():
    assert plain("a\x1b[31m\nb\x9b") == "a [31m b "


def test_a_filter_is_registered_and_uploaded_in_one_command(run, tmp_path):
    (tmp_path / "shout.json").write_text('{"keyword": "shout", "environment": "wasm"}')
    (tmp_path / "shout.wasm").write_bytes(b"\0asm")
    code = str(tmp_path / "shout.wasm")
    status, out, _ = run("filter", "register", str(tmp_path / "shout.json"), "--code", code, "--wait", "2")
    assert status == 0
    assert FakeClient.calls == [{"keyword": "shout", "environment": "wasm"}, ("shout", b"\0asm", 2.0)]
    assert "shout" in out
    assert run("filter", "upload", "shout", code)[0] == 0


def test_a_description_that_is_no_json_is_an_error_without_a_traceback(run, tmp_path):
    (tmp_path / "bad.json").write_text("{")
    status, _, err = run("filter", "register", str(tmp_path / "bad.json"))
    assert status == 1
    assert err.startswith("sluice: ")
    assert "Traceback" not in err
