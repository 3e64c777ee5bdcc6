"""``sluice-dsl check`` and the API give one result, over the whole shipped catalogue and the bounds of each parameter.

The API's catalogue loads filters as they are installed; the offline one has their descriptions and named checks.
"""

import pytest

from sluice_controller.catalog.vocabulary import build_catalogue
from sluice_core.describe import REPLICATION
from sluice_core.errors import CallerError
from sluice_dsl.catalogue.extensions import with_motifs, with_volumes
from sluice_dsl.catalogue.offline import offline_catalogue, unknown_volumes
from sluice_dsl.compile import PolicyErrors, compile_text
from sluice_dsl.syntax.ast import Action, Parameter, Sentence, Target, Word
from sluice_filters.registry import load_filters
from sluice_motifs.runtime_calls import described_templates
from sluice_motifs.templates.registry import load_templates

OFFLINE = offline_catalogue()
NATIVE = build_catalogue()
#: The catalogue of a cluster with volumes, and with a motif daemon and its templates.
API = with_motifs(
    with_volumes(NATIVE, unknown_volumes(NATIVE.account), tuple),
    {one.keyword: one.info for one in described_templates(load_templates())},
)
FILTERS = load_filters()
#: Further parameters besides the tried one.
NEEDED = {
    "tagging": {"name": "colour", "value": "blue"},
    "downsample": {"time": "t", "interval": "1h", "values": "v"},
    "upsample": {"time": "t", "interval": "1h", "values": "v"},
    "bandwidth": {"get_bw": "1MBps"},
    "replication": {"max_bw": "1MBps"},
    "motif": {"template": "duplicate_of", "source": "t/c/o"},
}
#: Values of every type, of which none and all are valid for some parameter.
ODD = (
    *(
        "",
        " ",
        "x",
        "X-Y",
        "ä",
        "a/b",
        "a b",
        "two,words",
        "a,,b",
        "a,a",
        "t",
        "v",
        '"',
        '"a',
        "'",
        "\n",
        "a\nb",
        "\u2028",
    ),
    *("0", "1", "-1", "+1", "1.5", ".5", "1e30", "-1e30", "1e-9", "9" * 5000, "5x", "20%", "64KiB", "30MBps", "5min"),
    *("true", "No", "perhaps", "none", "tab", "tabs", "default", "sha256", "x" * 64, "x" * 65, "x" * 257, "x" * 3000),
    *("age >= 18", "age >", "name LIKE 'a%' AND NOT (b IS NULL)", "(" * 100, "a = 'open", "_1", "_0"),
)
#: Parameters that are valid by themselves.
TOGETHER = [
    ("csv_select", {"columns": "name", "header": "no"}),
    ("csv_select", {"columns": "_1,_2", "header": "no"}),
    ("csv_select", {"where": "age > 3", "header": "ignore"}),
    ("csv_select", {"delimiter": ";", "quote": ";"}),
    ("csv_select", {"delimiter": "tab", "quote": "none", "multiline": "false"}),
    ("downsample", {"time": "t", "interval": "1h", "values": "t"}),
    ("downsample", {"time": "t", "interval": "1h", "values": "v", "keys": "meter,v"}),
    ("upsample", {"time": "t", "interval": "1h", "values": "v,v"}),
    ("upsample", {"time": "t", "interval": "1h", "values": "v", "delimiter": "'", "quote": "single"}),
    ("bandwidth", {"get_bw": "5MBps", "max_get_bw": "4MBps"}),
]


def sentence(keyword, params):
    target = (
        Target("cluster", "name") if API.actions[keyword].kind == REPLICATION else Target("tenant", "name", Word("t"))
    )
    written = tuple(Parameter(Word(name), Word(value)) for name, value in params.items())
    return str(Sentence(target, (Action("set", Word(keyword), written),)))


def answer(text, catalogue):
    """Plan and warnings, or all problems of the sentence."""
    try:
        (compiled,) = compile_text(text, catalogue)
    except PolicyErrors as refused:
        return refused.to_data()
    return compiled.plan, compiled.warnings


def bounds(parameter):
    """The ends of its ranges and the values next to them: the other parameter's value, and this one's."""
    ranges = [({parameter.range_by: str(one.value)}, one.minimum, one.maximum) for one in parameter.ranges]
    for beside, low, high in [*ranges, ({}, parameter.minimum, parameter.maximum)]:
        for end in (low, high):
            if end is not None:
                for value in (end, end - 1, end + 1, end * (1 + 1e-9), end * (1 - 1e-9)):
                    yield beside, repr(value).removesuffix(".0")


def tries(info, needed):
    """Parameters to try besides the needed ones: every name with every type of value, and unknown names."""
    yield {}
    yield needed
    for one in info.parameters:
        yield {name: value for name, value in needed.items() if name != one.name}
        for beside, value in [*bounds(one), *(({}, value) for value in ODD)]:
            yield {**needed, **beside, one.name: value}
            yield {one.name: value, **beside, **needed, one.name: value}
        for choice in map(str, one.choices):
            for value in (choice, choice.upper(), choice[:-1], f"{choice}x"):
                yield {**needed, one.name: value}
        for name in (one.name.upper(), one.name[:-1] or "y", f"{one.name}s"):
            yield {**needed, name: str(one.default)}
    yield {**needed, "zzz": "1"}
    yield from (params for keyword, params in TOGETHER if keyword == info.keyword)


def test_both_know_the_same_words():
    assert OFFLINE.actions == API.actions
    assert OFFLINE.metrics == API.metrics
    assert OFFLINE.templates == API.templates
    assert (OFFLINE.terms, OFFLINE.levels) == (API.terms, API.levels)


@pytest.mark.parametrize("metric", sorted(API.metrics))
def test_conditions_on_metrics_never_differ(metric):
    for target in ("TENANT t", "CONTAINER t/c", "OBJECT t/c/o", "CLUSTER", "ALL TENANTS", "ALL OBJECTS", "VOLUME v"):
        for value in ("3", "-3", "30%", "150%", "10MBps", "10MB", "500ms", "3/s", "much", "1e30"):
            text = f"FOR {target} WHEN {metric} > {value} SUSTAINED 5s DO SET noop TRANSIENT"
            assert answer(text, OFFLINE) == answer(text, API), text


def differences(keyword, info, needed):
    """Try ``keyword`` both ways; return the accepted parameters."""
    accepted, refused = [], 0
    for params in tries(info, needed):
        text = sentence(keyword, params)
        found = answer(text, OFFLINE)
        assert found == answer(text, API), text
        if isinstance(found, list):
            refused += 1
        else:
            accepted.append(found[0].actions[0].params)
    assert refused
    assert accepted
    return accepted


@pytest.mark.parametrize("keyword", sorted(keyword for keyword, info in OFFLINE.actions.items() if info.available))
def test_the_offline_check_and_the_api_never_differ(keyword):
    accepted = differences(keyword, API.actions[keyword], NEEDED.get(keyword, {}))
    for params in accepted if keyword in FILTERS else ():  # and a node can create the filter
        FILTERS[keyword](params)


@pytest.mark.parametrize("template", sorted(OFFLINE.templates))
def test_the_offline_check_and_the_api_never_differ_about_a_template(template):
    info = API.templates[template]
    needed = {one.name: "t/c/o" for one in info.parameters if one.required}
    differences("motif", info, {"template": template, **needed})


@pytest.mark.parametrize(("engine", "low", "high"), [("gzip", 0, 9), ("lz4", -65536, 12), ("zstd", -7, 19)])
def test_a_level_is_accepted_where_its_engine_has_it(engine, low, high):
    for level in (low - 1, low, -1, 0, 1, 6, 9, high, high + 1):
        text = sentence("compression", {"level": str(level), "engine": engine})
        accepted = not isinstance(answer(text, OFFLINE), list)
        assert accepted is (low <= level <= high)
        assert answer(text, API) == answer(text, OFFLINE)
        try:
            FILTERS["compression"]({"engine": engine, "level": level})
        except CallerError:
            assert not accepted
        else:
            assert accepted


@pytest.mark.parametrize(
    "text",
    [
        "FOR t DO SET compression WITH engine=gzip level=9",
        "FOR t DO SET compression WITH engine=gzip level=10",
        "FOR t DO SET csv_select WITH where='age >'",
        "FOR t DO SET compression WITH engine=gzip, SET caching WITH ttl=60s, SET noop",
        "FOR t DO SET encryption, SET compression",
    ],
)
def test_a_client_is_told_the_same(api, text):
    told = api.post("/policies/check", {"policy": text}, format="json")
    expected = answer(text, OFFLINE)
    if isinstance(expected, list):
        assert told.status_code == 400
        assert told.json()["error"]["problems"] == expected
    else:
        assert told.status_code == 200
