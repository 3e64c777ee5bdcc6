"""``sluice-dsl`` on the command line."""

import io
import json
import subprocess
import sys

import pytest

from sluice_core.errors import CallerError
from sluice_dsl.catalogue.offline import load_catalogue, offline_catalogue
from sluice_dsl.catalogue.vocabulary import TERMS
from sluice_dsl.cli import main

SENTENCE = (
    "FOR TENANT acme WHEN PUTS_SEC > 3 AND OBJECT_SIZE > 4KiB SUSTAINED 5s DO SET compression WITH level=3 TRANSIENT"
)


@pytest.fixture
def write(tmp_path):
    def write(text, name="policies"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_check_says_how_many_sentences_are_fine(write, capsys):
    assert main(["check", write(f"{SENTENCE}\nFOR beta DO SET noop")]) == 0
    assert capsys.readouterr().out == "2 sentences, no errors\n"


def test_check_prints_every_problem_with_carets_and_fails(write, capsys):
    assert main(["check", write("FOR acme DO SET compresion\nFOR beta DO SET elasticity, noop TRANSIENT\n")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "error: line 1, column 17: unknown action `compresion`, did you mean `compression`\n"
        "  FOR acme DO SET compresion\n"
        "                  ^^^^^^^^^^\n"
        "error: line 2, column 17: `elasticity`: expected `target_size=…`, or `floor=…` or `weight=…`"
        " for a part of a wider space\n"
        "  FOR beta DO SET elasticity, noop TRANSIENT\n"
        "                  ^^^^^^^^^^\n"
        "warning: line 2, column 34: TRANSIENT has no effect without a metric in WHEN:"
        " the action stays until the policy is deleted\n"
        "  FOR beta DO SET elasticity, noop TRANSIENT\n"
        "                                   ^^^^^^^^^\n"
    )


def test_check_reads_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("FOR acme DO SET noop TRANSIENT"))
    assert main(["check", "-"]) == 0
    out, err = capsys.readouterr()
    assert out == "1 sentence, no errors\n"
    assert err.startswith("warning: line 1, column 22: TRANSIENT has no effect")


def test_explain_says_in_plain_words_what_a_sentence_does(capsys):
    assert main(["explain", SENTENCE]) == 0
    assert capsys.readouterr().out == (
        f"{SENTENCE}\n"
        "  target: tenant `acme`, except where a narrower policy of the same kind holds\n"
        "  kind: dynamic, an actor watches PUTS_SEC (every 1 s) per tenant\n"
        "  fires: after 5 s without a break in which PUTS_SEC > 3/s and object size > 4 KiB;"
        " a metric without a value satisfies no condition\n"
        "  action 1: sets `compression` (filter) with level=3 on the proxy;"
        " taken back after two consecutive windows in which the condition is false\n"
    )


EXPLAINED = [
    ("FOR ALL TENANTS DO SET noop, compression", [
        "all tenants, each by itself, later ones included", "static, in force on all nodes", "fires: for every request",
        "stays until the policy is deleted",
        "order: `noop` (the proxy, stage 100), then `compression` (the proxy, stage 300) on PUT; GET goes backwards",
    ]),
    ("FOR OBJECT a/b/c DO DELETE noop", ["object `a/b/c`\n", "deletes `noop` (filter), inherited or not"]),
    ("FOR CLUSTER WHEN THROUGHPUT < 10MBps OR NOT (GETS_SEC > 2 AND METHOD=PUT) DO SET noop", [
        "target: the cluster,", "watches GETS_SEC (every 1 s) and THROUGHPUT (every 1 s) per cluster",
        "as soon as in one window THROUGHPUT < 10 MB/s or GETS_SEC <= 2/s or not method PUT",
        "once triggered it stays, although the condition ends",
    ]),
    ("FOR t WHEN (PUTS_SEC > 1 OR METHOD=PUT) AND OBJECT_TYPE=pdf DO SET noop",
     ["(PUTS_SEC > 1/s or method PUT) and type pdf"]),
    ("FOR t WHEN OBJECT_TAG=hot DO SET compression WITH min_gain=5% min_size=64KiB",
     ["for each request with tag hot", "with min_gain=5%, min_size=64 KiB on the proxy"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "parts"), EXPLAINED)
def test_explain_names_kind_scope_time_place_and_order(text, parts, capsys):
    assert main(["explain", text]) == 0
    out = capsys.readouterr().out
    for part in parts:
        assert part in out


def test_explain_knows_protection_labels_and_groups_of_a_given_catalogue(write, capsys):
    path = write(json.dumps({
        "actions": [{"keyword": "encryption", "kind": "filter", "help": "", "protective": True, "stage": 500,
                     "places": ["proxy", "storage_node"], "parameters": [{"name": "key", "type": "str", "help": ""}]}],
        "metrics": [{"name": "GETS_SEC", "unit": "per_second", "help": "", "period": 5,
                     "granularities": ["container"]}],
        "aliases": {"C1": {"level": "container", "name": "AUTH_x/logs"}},
        "groups": {"gold": "container"},
        "tenants": {"acme": "AUTH_x"},
    }))  # fmt: skip
    text = "FOR C1 DO SET encryption key=k ON STORAGE_NODE; FOR gold WHEN GETS_SEC > 1 DO DELETE encryption"
    assert main(["--catalogue", path, "explain", text]) == 0
    out = capsys.readouterr().out
    assert "container `C1` (account path `AUTH_x/logs`)" in out
    assert "with key=k on the storage nodes, inherited by narrower policies until a DELETE names it" in out
    assert "the containers of group `gold`, each by itself" in out
    assert "GETS_SEC (every 5 s) per container" in out


def test_a_catalogue_file_that_lists_volumes_has_what_is_done_with_them(write, capsys):
    path = write('{"volumes": [{"id": "id-1", "account": "AUTH_x", "name": "data1"}], "tenants": {"x": "AUTH_x"}}')
    text = "FOR VOLUME x/data1 WHEN VOLUME_LATENCY_P99 > 20ms DO SET throttling WITH max_bw=3MBps TRANSIENT"
    assert main(["--catalogue", path, "explain", text]) == 0
    assert "volume `x/data1` (account path `AUTH_x/id-1`)" in capsys.readouterr().out


def test_a_cluster_that_nobody_asks_has_every_service_and_volumes_of_any_name(capsys):
    text = "FOR VOLUME acme/data1 DO SET throttling WITH max_bw=3MBps; FOR VOLUME data1 DO SET encryption"
    assert main(["explain", text]) == 0
    assert main(["explain", "FOR CONTAINER a/c WHEN FREE_SPACE < 20% DO SET elasticity WITH target_size=1GB"]) == 0
    assert main(["explain", "FOR CONTAINER a/c DO SET motif WITH template=duplicate_of source=meta:origin"]) == 0
    out, err = capsys.readouterr()
    assert "volume `acme/data1`" in out
    assert err == ""


def test_a_catalogue_file_says_of_a_cluster_what_it_has_not(write, capsys):
    path = write('{"levels": ["tenant"], "volumes": []}')
    assert main(["--catalogue", path, "explain", "FOR VOLUME data1 DO SET throttling WITH max_bw=3MBps"]) == 1
    assert "there is no volume `data1`" in capsys.readouterr().err
    path = write('{"levels": ["tenant"]}')
    assert main(["--catalogue", path, "explain", "FOR VOLUME data1 DO SET throttling WITH max_bw=3MBps"]) == 1
    assert "volumes are not available on this cluster" in capsys.readouterr().err


def test_a_storage_policy_of_an_unknown_cluster_is_doubtful(write, capsys):
    assert main(["check", write("FOR TENANT a DO SET bandwidth WITH get_bw=1MBps storage_policy=ssd")]) == 0
    assert "whether swift has a storage policy `ssd` is not known" in capsys.readouterr().err


def test_a_catalogue_file_replaces_only_the_keys_it_has(write):
    catalogue = load_catalogue(write('{"default_tenant": "acme", "levels": ["tenant"], "terms": {"pics": ["jpg"]}}'))
    assert catalogue.actions == offline_catalogue().actions
    assert (catalogue.default_tenant, catalogue.levels, catalogue.terms) == ("acme", ("tenant",), {"PICS": ("jpg",)})
    assert load_catalogue(write("{}")).terms == TERMS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected an object"),
        ("{", "cannot read catalogue"),
        ('{"filters": []}', "unknown key `filters`"),
        ('{"action": []}', "unknown key `action`, did you mean `actions`"),
        ('{"actions": [{"keyword": "x"}]}', "`actions`: "),
        ('{"metrics": 5}', "`metrics`: "),
        ('{"aliases": {"C1": "acme/logs"}}', "`aliases`: "),
    ],
)
def test_a_file_that_is_no_catalogue_is_refused_by_name(write, text, message):
    with pytest.raises(CallerError) as refused:
        load_catalogue(write(text))
    assert message in str(refused.value)


def test_what_cannot_be_read_is_another_exit_status(tmp_path, capsys):
    assert main(["check", str(tmp_path / "absent")]) == 2
    assert main(["--catalogue", str(tmp_path / "absent"), "check", "-"]) == 2
    assert capsys.readouterr().err.count("sluice-dsl: cannot read ") == 2


def test_the_module_runs_and_helps():
    shown = subprocess.run([sys.executable, "-m", "sluice_dsl", "--help"], capture_output=True, text=True, check=True,
                           env={"PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert "explain" in shown.stdout
    assert "--catalogue FILE.json" in shown.stdout
