"""Where filters may run, the order across places, and the effect of erasure coding."""

import json
from itertools import permutations

import pytest

from sluice_core.describe import ActionInfo
from sluice_dsl.catalogue.builtin_words import BUILTIN_FILTERS
from sluice_dsl.catalogue.offline import load_catalogue
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import ExistingPolicy, PolicyErrors, compile_text
from sluice_dsl.explain import explain
from sluice_dsl.testing import make_catalogue

BOTH = ("proxy", "storage_node")
UPLOADS = (
    ActionInfo("aes", "filter", "a reversible storlet", places=BOTH, stage=510, changes_content=True, reversible=True,
               environment="storlet"),
    ActionInfo("aes_fast", "filter", "the same in a process", places=BOTH, stage=511, changes_content=True,
               reversible=True, environment="process"),
    ActionInfo("aes_wasm", "filter", "the same in WebAssembly", places=BOTH, stage=512, changes_content=True,
               reversible=True, environment="wasm"),
    ActionInfo("shrink", "filter", "pictures are stored smaller for good", places=BOTH, stage=150,
               changes_content=True, environment="storlet"),
    ActionInfo("grep", "filter", "lines that match", places=BOTH, stage=210, on_put=False, on_get=True,
               changes_content=True, environment="storlet"),
    ActionInfo("census", "filter", "a request filter for both sides", places=BOTH, stage=60, on_put=False,
               on_request=True),
    ActionInfo("redact", "filter", "a request filter that changes bodies", stage=70, on_request=True,
               changes_content=True),
    ActionInfo("translate", "filter", "another one", stage=80, on_request=True, changes_content=True),
)  # fmt: skip
CATALOGUE = make_catalogue(actions={**make_catalogue().actions, **{info.keyword: info for info in UPLOADS}})


def compiled(text, catalogue=CATALOGUE, others=()):
    earlier = [ExistingPolicy("p1", compile_text(one, catalogue)[0].plan) for one in others]
    return compile_text(text, catalogue, earlier)[0]


def refusal(text, catalogue=CATALOGUE):
    with pytest.raises(PolicyErrors) as refused:
        compile_text(text, catalogue)
    (problem,) = refused.value.problems
    return problem.message, text[problem.column - 1 : problem.column - 1 + problem.length]


def warnings(text, catalogue=CATALOGUE, others=()):
    return [one.message for one in compiled(text, catalogue, others).warnings]


REFUSED = [
    ("FOR t DO SET thumbnail ON STORAGE_NODE", "STORAGE_NODE",
     "`thumbnail` needs the whole object, and a storage node may hold only a fragment of it: expected `ON PROXY`"),
    ("FOR t DO SET aes ON STORAGE_NODE", "STORAGE_NODE",
     "`aes` runs in a Storlets container, which the disk file of a storage node cannot enter: expected `ON PROXY`"),
    ("FOR t DO SET shrink ON STORAGE_NODE", "STORAGE_NODE",
     "`shrink` changes what is stored for good, and only the proxy can tell Swift its new size and ETag:"
     " expected `ON PROXY`"),
    ("FOR t DO SET caching ON STORAGE_NODE", "STORAGE_NODE",
     "`caching` does not run ON STORAGE_NODE, expected `ON PROXY`"),
    ("FOR t DO SET encryption, compression", "compression",
     "`compression` runs before `encryption` (stages 300 and 500): write it first, since `compression` cannot"
     " work on the output of `encryption`"),
    ("FOR t DO SET xor, compression ON STORAGE_NODE", "compression",
     "`compression` runs before `xor` (stages 300 and 800): write it first, since `compression` cannot"
     " work on the output of `xor`"),
    ("FOR t DO SET grep, csv_select", "csv_select",
     "`grep` reads before `csv_select`, since GET runs the stages backwards (210 and 200): write `csv_select` first"),
    ("FOR t DO SET translate, redact", "redact",
     "`redact` runs before `translate` (stages 70 and 80): write it first, since `redact` cannot"
     " work on the output of `translate`"),
    ("FOR t DO SET compression ON STORAGE_NODE, encryption ON PROXY", "encryption ON PROXY",
     "`encryption` ON PROXY would run before `compression` ON STORAGE_NODE, whose stage is earlier, since"
     " `compression` cannot work on the output of `encryption`: expected `compression` ON PROXY or"
     " `encryption` ON STORAGE_NODE"),
    ("FOR t DO SET compression ON STORAGE_NODE, encryption", "encryption",
     "`encryption` ON PROXY would run before `compression` ON STORAGE_NODE, whose stage is earlier, since"
     " `compression` cannot work on the output of `encryption`: expected `compression` ON PROXY or"
     " `encryption` ON STORAGE_NODE"),
    ("FOR t DO SET csv_select ON STORAGE_NODE, grep ON PROXY", "grep ON PROXY",
     "`csv_select` ON STORAGE_NODE would read before `grep` ON PROXY, and GET runs the stages backwards:"
     " expected `csv_select` ON PROXY or `grep` ON STORAGE_NODE"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "marked", "message"), REFUSED)
def test_what_cannot_run_there_is_refused_with_the_reason(text, marked, message):
    assert refusal(text) == (message, marked)


@pytest.mark.parametrize(
    "text",
    [
        "FOR t DO SET compression ON STORAGE_NODE, encryption ON STORAGE_NODE",
        "FOR t DO SET compression ON PROXY, encryption ON STORAGE_NODE",
        "FOR t DO SET compression, encryption, bitrev ON STORAGE_NODE, xor ON STORAGE_NODE, checksum ON STORAGE_NODE",
        "FOR t DO SET csv_select ON STORAGE_NODE",
        "FOR t DO SET csv_select ON STORAGE_NODE, compression ON STORAGE_NODE",
        "FOR t DO SET csv_select ON PROXY, grep ON STORAGE_NODE",
        "FOR t DO SET grep ON STORAGE_NODE",
        "FOR t DO SET aes_fast ON STORAGE_NODE, aes_wasm ON STORAGE_NODE",
        "FOR t DO SET aes ON PROXY, aes_fast ON STORAGE_NODE",
        "FOR t DO SET caching, csv_select ON PROXY, compression, encryption",
        "FOR t DO SET census ON STORAGE_NODE",
    ],
)
def test_what_can_run_there_is_taken_without_a_word(text):
    assert warnings(text) == []


@pytest.mark.parametrize(
    "actions",
    [
        ("caching", "compression"),  # a request filter
        ("tagging WITH name=a value=b", "caching"),  # two of them, neither of which changes bodies
        ("noop", "compression"),  # changes nothing
        ("thumbnail", "compression"),
        ("csv_select ON PROXY", "compression"),  # the decoder runs before it
        ("shrink", "csv_select ON PROXY"),  # one changes the stored bytes, the other the bytes read
        ("caching", "noop", "csv_select ON PROXY", "compression"),
        ("redact", "compression"),
    ],
)
def test_filters_that_do_not_change_the_same_bytes_may_be_written_in_any_order(actions):
    for written in permutations(actions):
        text = f"FOR t DO SET {', '.join(written)}"
        assert warnings(text) == []
        planned = compiled(text).plan.actions
        assert [one.keyword for one in planned] == [one.split()[0] for one in written]


@pytest.mark.parametrize("written", list(permutations(["caching", "noop", "encryption", "compression"])))
def test_one_pair_that_changes_the_same_bytes_is_refused_wherever_the_others_are_written(written):
    text = f"FOR t DO SET {', '.join(written)}"
    if written.index("compression") < written.index("encryption"):
        assert warnings(text) == []
    else:
        message, marked = refusal(text)
        assert message.startswith("`compression` runs before `encryption`")
        assert marked == "compression"


def test_a_storage_node_cannot_read_what_the_proxy_has_changed():
    text = "FOR t DO SET csv_select ON STORAGE_NODE, compression ON PROXY, encryption"
    assert warnings(text) == [
        "`csv_select` ON STORAGE_NODE will run on the proxy for objects that `compression` and `encryption` ON PROXY"
        " has changed"
    ]
    assert warnings("FOR t DO SET csv_select ON PROXY, compression ON PROXY") == []


# Pipelines of several policies

TENANT, LOGS = "FOR acme DO SET ", "FOR CONTAINER acme/logs DO "
AGAINST = "run against the order of their stages, since the proxy comes before the storage node"


@pytest.mark.parametrize(
    ("text", "other", "pair"),
    [
        (LOGS + "SET compression ON STORAGE_NODE", TENANT + "encryption ON PROXY", "`compression` and `encryption`"),
        (TENANT + "encryption ON PROXY", LOGS + "SET compression ON STORAGE_NODE", "`encryption` and `compression`"),
        (TENANT + "encryption ON PROXY", TENANT + "compression ON STORAGE_NODE", "`encryption` and `compression`"),
    ],
)
def test_inherited_encryption_that_would_hinder_compression_is_warned_of(text, other, pair):
    assert warnings(text, others=[other]) == [f"{pair} of policy `p1` {AGAINST}"]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (LOGS + "SET compression ON STORAGE_NODE, DELETE encryption", TENANT + "encryption ON PROXY"),
        (LOGS + "SET compression, encryption", TENANT + "encryption ON PROXY"),
        (LOGS + "SET compression ON STORAGE_NODE", TENANT + "encryption ON STORAGE_NODE"),
        (LOGS + "SET encryption ON PROXY, DELETE compression", TENANT + "compression ON STORAGE_NODE"),
        (TENANT + "compression ON STORAGE_NODE", LOGS + "SET encryption ON PROXY"),
    ],
)
def test_what_does_not_meet_is_not_warned_of(text, other):
    assert not [one for one in warnings(text, others=[other]) if AGAINST in one]


# Erasure coding

SAVES_LITTLE = (
    "`compression` ON STORAGE_NODE saves little: each node compresses fragments, and parity does not compress"
    " (0.47 of the size is left, against 0.35); consider `ON PROXY`"
)
SOME = f"where the storage policy is erasure-coded, {SAVES_LITTLE}"
KNOWN = frozenset({"AUTH_acme/films"})
UNKNOWN = KNOWN | {"*"}


@pytest.mark.parametrize(
    ("target", "listed", "expected"),
    [
        ("acme", frozenset(), []),
        ("CONTAINER acme/films", KNOWN, [SAVES_LITTLE]),
        ("OBJECT acme/films/a/b", KNOWN, [SAVES_LITTLE]),
        ("CONTAINER acme/logs", KNOWN, []),
        ("CONTAINER acme/logs", UNKNOWN, [SOME]),
        ("acme", KNOWN, [SOME]),
        ("beta", KNOWN, []),
        ("beta", UNKNOWN, [SOME]),
        ("GROUP archive", KNOWN, [SOME]),
        ("ALL CONTAINERS", KNOWN, [SOME]),
        ("CLUSTER", frozenset("*"), [SOME]),
    ],
)
def test_compression_of_fragments_is_warned_of_where_objects_are_or_may_be_erasure_coded(target, listed, expected):
    catalogue = make_catalogue(erasure_coded=listed)
    assert warnings(f"FOR {target} DO SET compression ON STORAGE_NODE", catalogue) == expected
    for other in ("compression ON PROXY", "encryption ON STORAGE_NODE"):
        assert warnings(f"FOR {target} DO SET {other}", catalogue) == []
    assert warnings(f"FOR {target} DO DELETE compression", catalogue) == []


def test_the_place_is_marked():
    text = "FOR C1 DO SET compression WITH level=3 ON STORAGE_NODE"
    (warning,) = compiled(text, make_catalogue(erasure_coded=frozenset({"AUTH_acme/logs"}))).warnings
    assert (warning.column, warning.length) == (text.index("STORAGE_NODE") + 1, len("STORAGE_NODE"))


def test_a_filter_that_reads_whole_objects_leaves_nodes_with_fragments():
    catalogue = make_catalogue(erasure_coded=KNOWN)
    text = "FOR CONTAINER acme/films DO SET csv_select ON STORAGE_NODE"
    assert warnings(text, catalogue) == [
        "`csv_select` ON STORAGE_NODE will run on the proxy: nodes of an erasure-coded policy hold fragments of objects"
    ]
    assert warnings("FOR acme DO SET csv_select ON STORAGE_NODE", catalogue) == []


def test_a_catalogue_file_may_list_them(tmp_path):
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps({"erasure_coded": ["AUTH_acme/films", "*"]}))
    assert load_catalogue(path).erasure_coded == UNKNOWN
    path.write_text(json.dumps({"erasure_coded": "*"}))
    with pytest.raises(Exception, match="expected a list of `account/container`"):
        load_catalogue(path)


# Output of explain


def test_explain_tells_what_is_stored_from_what_is_read_and_what_goes_around():
    text = "FOR t DO SET caching, csv_select ON PROXY, grep ON STORAGE_NODE, compression, encryption ON STORAGE_NODE"
    assert explain(compiled(text), CATALOGUE).splitlines()[-1] == (
        "  order: around whole requests `caching` (the proxy, stage 50);"
        " `compression` (the proxy, stage 300), then `encryption` (the storage nodes, stage 500) on PUT;"
        " GET goes backwards;"
        " of what is read `grep` (the storage nodes, stage 210), then `csv_select` (the proxy, stage 200)"
    )


def test_every_shipped_filter_is_available_offline_and_storlets_are_once_there_are_some():
    assert [info.keyword for info in BUILTIN_FILTERS if not info.available] == ["storlets"]


@pytest.mark.parametrize("info", [info for info in BUILTIN_FILTERS if info.available], ids=lambda info: info.keyword)
def test_every_shipped_filter_may_be_set_without_a_place(info):
    samples = {"str": "a", "list": "b", "duration": "1h"}
    given = " ".join(f"{one.name}={samples[one.type]}" for one in info.parameters if one.required)
    assert warnings(f"FOR t DO SET {info.keyword} {given}", default_catalogue()) == []
