"""Every call of the API with invalid input: 4xx with a reason, no stored change, no secret in the response.

The calls come from the API's own description, so that new ones are tested, too.  Existing objects are created
first, so that bodies are really parsed; each test compares all data of Redis before and after.
"""

import itertools
import json

import pytest
from tests.support.controller import bad_input
from tests.support.controller.bad_input import MALFORMED, OTHER_KINDS, raw_answer, read_calls, refused
from tests.support.controller.described_calls import ABOUT_MOTIFS, ABOUT_VOLUMES
from tests.support.controller.lone_api import JSON

pytestmark = pytest.mark.usefixtures("unlogged")

BAD_VERSIONS = ("", "1", '"', '""', '"x"', 'W/"1"', '"1", "2"', '"-1"', '"' + "9" * 400 + '"', '"1"\t"', "*/*", '"é"')
BAD_LENGTHS = (
    "Content-Length: x",
    "Content-Length: -1",
    "Content-Length: +1",
    "Content-Length: 1\r\nContent-Length: 2",
    "Content-Length: 3\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: nonsense",
)


@pytest.fixture(scope="module")
def described(lone_api):
    return lone_api.ask("GET", "/schema").json()


@pytest.fixture(scope="module")
def calls(described):
    # without a Cinder, calls about volumes answer 503 for any input: ``block/test_api_bad_input.py``
    found = [call for call in read_calls(described) if not call.path.startswith(ABOUT_VOLUMES)]
    assert len(found) > 90
    return found


@pytest.fixture(scope="module")
def known(lone_api):
    """One object of each kind; part of a path → its name."""

    def make(path, body, where="Location"):
        made = lone_api.ask("POST", path, body)
        assert made.status == 201, made.body
        return made.headers[where.lower()].rpartition("/")[2]

    return {
        "policy_id": make("/policies", {"policy": "FOR TENANT AUTH_bad WHEN PUTS_SEC > 3 DO SET noop TRANSIENT"}),
        "keyword": make("/filters", {"keyword": "badcipher", "environment": "wasm", "language": "wasm"}),
        "dependency": make("/filters/dependencies", {"name": "badlib"}),
        "group": make("/registry/gtenants", {"name": "badgroup", "tenants": ["AUTH_bad"]}),
        "container_group": make("/registry/gcontainers", {"name": "badboxes", "containers": ["AUTH_bad/c"]}),
        "term": make("/registry/terms", {"term": "BADDOCS", "patterns": ["pdf"]}),
        "alias": make("/registry/aliases", {"name": "BAD1", "of": "target", "text": "AUTH_bad/c"}),
        "metric": make("/registry/metrics", {"name": "BADNESS", "granularities": ["tenant"]}),
        "stereotype": make("/stereotypes", {"name": "badtype", "text": "FOR {target} DO SET noop"}),
        "target": "AUTH_bad",
        "member": "AUTH_bad",
        "account": "AUTH_bad",
        "epoch": "1",
    }


@pytest.fixture(scope="module")
def at_home(known):
    """The path of a call about existing objects."""

    def lead(call):
        names = dict(known)
        if "gcontainers" in call.path:
            names |= {"group": known["container_group"], "member": "AUTH_bad/c"}
        if call.path.startswith("/registry/filters"):
            names["keyword"] = "noop"
        return call.at(**names)

    return lead


@pytest.fixture
def unchanged(lone_api, known):
    """No request of a test changes Redis, except when a policy was last read, and which code was refused."""
    before = lone_api.dump()
    yield
    after = lone_api.dump()
    others = {name for name in (*before, *after) if name.endswith((b":watched", b":events", b":event_sources"))}
    assert {name: after[name] for name in after.keys() - others} == {
        name: before[name] for name in before.keys() - others
    }


def answered_here(calls):
    """The calls that the API answers by itself; without a motif daemon calls about objects with motifs answer 503."""
    found = [call for call in calls if not call.path.startswith(ABOUT_MOTIFS)]
    assert len(found) < len(calls)
    return found


@pytest.mark.usefixtures("unchanged")
def test_odd_names_lead_nowhere(lone_api, calls):
    bad_input.check_odd_names(lone_api, answered_here(calls))


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("fault", MALFORMED)
def test_a_body_that_is_no_object_of_known_fields_is_refused(lone_api, calls, at_home, fault):
    bad_input.check_malformed_body(lone_api, calls, at_home, fault)


@pytest.mark.usefixtures("unchanged")
def test_a_configuration_that_is_none_is_refused(lone_api, calls):
    for call in [one for one in calls if one.kinds == ("application/yaml",)]:
        for raw in (
            *MALFORMED.values(),
            b"a: &x [*x]",
            b"!!python/name:os.system {}",
            b"\x00",
            b"- " * 5000,
            b"%YAML 9.9",
        ):
            refused(lone_api.ask(call.method, call.path, raw, "application/yaml"), (call, raw[:40]))


@pytest.mark.usefixtures("unchanged")
def test_a_field_of_another_type_is_refused(lone_api, described, calls, at_home):
    assert bad_input.check_other_types(lone_api, described, calls, at_home) > 200


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_a_body_of_another_kind_is_refused(lone_api, calls, at_home, kind):
    bad_input.check_other_kind(lone_api, calls, at_home, kind)


@pytest.mark.usefixtures("unchanged")
def test_a_body_that_is_too_large_is_refused_before_it_is_read(lone_api, calls, at_home):
    bad_input.check_too_large(lone_api, calls, at_home)


@pytest.mark.usefixtures("unchanged")
def test_a_body_of_unknown_length_is_refused(lone_api, calls, at_home):
    bad_input.check_unknown_length(lone_api, calls, at_home)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("lengths", BAD_LENGTHS)
def test_a_length_that_is_none_is_refused(lone_api, lengths):
    answer = raw_answer(lone_api, "POST", "/policies", lengths, b"abc")
    assert answer.status in (400, 411, 501), answer.body


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("body_limit", [65536])
def test_a_body_just_over_the_limit_is_413(lone_api, body_limit):
    body = b'{"policy": "' + b" " * body_limit + b'"}'
    refused(lone_api.ask("POST", "/policies", body), "too large", 413)
    refused(lone_api.ask("POST", "/policies", b'{"policy": "' + b"x" * 60000 + b'"}'), "too long", 400)


@pytest.mark.usefixtures("unchanged")
def test_a_version_that_is_none_is_refused(lone_api, calls, at_home):
    guarded = [call for call in calls if "If-Match" in call.parameters("header")]
    assert len(guarded) > 20
    for call, version in itertools.product(guarded, BAD_VERSIONS):
        kind = (call.kinds or (JSON,))[0]
        answer = lone_api.ask(call.method, at_home(call), b"", kind, If_Match=version.encode("latin-1"))
        refused(answer, (call, version))


@pytest.mark.usefixtures("unchanged")
def test_a_version_that_does_not_stand_is_refused(lone_api, calls, at_home):
    for call in [one for one in calls if one.method == "DELETE" and "If-Match" in one.parameters("header")]:
        refused(lone_api.ask(call.method, at_home(call), If_Match='"999999999"'), call, 412, 404)


@pytest.mark.usefixtures("unchanged")
def test_parameters_that_are_none_are_refused(lone_api, calls, at_home):
    assert bad_input.check_parameters(lone_api, calls, at_home) > 200


@pytest.mark.usefixtures("unchanged")
def test_any_text_is_a_marker_or_a_prefix_or_is_refused(lone_api, calls, at_home):
    bad_input.check_texts_in_query(lone_api, answered_here(calls), at_home)


@pytest.mark.usefixtures("unchanged")
def test_another_method_is_405_and_says_which_work(lone_api, calls, at_home):
    bad_input.check_methods(lone_api, calls, at_home)


@pytest.mark.usefixtures("unchanged")
def test_without_a_token_that_is_valid_nothing_is_done_or_told(lone_api, calls, at_home):
    bad_input.check_tokens(lone_api, calls, at_home)


def test_the_description_holds_no_secret(lone_api, described):
    text = json.dumps(described)
    assert not any(secret in text for secret in lone_api.secrets)
