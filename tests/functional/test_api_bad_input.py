"""Every call of the API with what nobody should send: 4xx with a reason, nothing stored, nothing told.

The calls come from the description that the API gives of itself, so that new ones are tried as well.  What exists is
made first, so that bodies are really looked at; each test compares all that Redis holds before and after.
"""

import itertools
import json
import re
from dataclasses import dataclass, field
from urllib.parse import quote

import pytest

pytestmark = pytest.mark.usefixtures("unlogged")

JSON = "application/json"
ODD_NAMES = (
    *(
        "nobody",
        "ünï€",
        "a/b",
        'it\'s "it"',
        "a\nb",
        "\r\nX-Evil: 1",
        "a\x00b",
        "*",
        "a?[b]\\*",
        "..",
        ".",
        "%2e%2e",
        " ",
    ),
    *("\u202e", "😀", "{target}", "sluice:policies", "'; DROP", "x" * 1500, "a/b/c/d/e", "-1", "0", "1e9", "²", "NaN"),
)
MALFORMED = {
    "nothing but a brace": b"{",
    "two documents": b"{}{}",
    "not UTF-8": b'{"policy": "\xff\xfe"}',
    "UTF-16": '{"policy": "x"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "NaN": b'{"policy": NaN}',
    "infinity": b'{"name": -Infinity}',
    "a repeated name": b'{"policy": "a", "policy": "b"}',
    "half a surrogate pair": b'{"policy": "\\ud800"}',
    "a control character": b'{"policy": "\x01"}',
    "endless lists": b"[" * 30000,
    "endless objects": b'{"a":' * 9000,
    "a list": b"[]",
    "a list of objects": b'[{"policy": "x"}]',
    "a text": b'"policy"',
    "a number": b"5",
    "a number of a thousand digits": b"9" * 1000,
    "a number of too many digits": b"9" * 6000,
    "nothing": b"null",
    "truth": b"true",
    "an unknown field": b'{"polcy": "x", "nonsense": 1}',
    "a single quote": b"{'policy': 'x'}",
    "something else": b"FOR TENANT x DO SET noop",
}
OTHER_KINDS = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/html",
    "/",
    "",
)
#: JSON type → a value of it; what a field does not take is what it is given.
OF_TYPE = {
    "string": "x",
    "integer": 5,
    "number": 5.5,
    "boolean": True,
    "array": [[]],
    "object": {"\x00": {"*": []}},
    "null": None,
}
ACCEPTED_BY = {"number": {"integer", "number"}, "integer": {"integer"}}
BAD_VERSIONS = ("", "1", '"', '""', '"x"', 'W/"1"', '"1", "2"', '"-1"', '"' + "9" * 400 + '"', '"1"\t"', "*/*", '"é"')
BAD_LENGTHS = (
    "Content-Length: x",
    "Content-Length: -1",
    "Content-Length: +1",
    "Content-Length: 1\r\nContent-Length: 2",
    "Content-Length: 3\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: nonsense",
)
#: Type of a parameter in the query → what it cannot be.
BAD_VALUES = {
    "integer": ("", "x", "-1", "0x10", "1.5", "1e3", " 1", "1_0", "²", "٣", "9" * 400, "NaN", "null", "true", "[]"),
    "number": ("x", "-1", "nan", "inf", "-inf", "1e999", "0x10", "١٢٣x", "[]"),
    "boolean": ("", "2", "maybe", "null", "[]", "TRUE "),
}
#: What a call may be called with that is not declared for it.
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "NONSENSE")


@dataclass(frozen=True)
class Call:
    """A method on a path of the description, and what is said of it."""

    method: str
    path: str
    said: dict = field(repr=False, hash=False, compare=False)

    def __str__(self):
        return f"{self.method} {self.path}"

    @property
    def names(self):
        """Parts of the path that are names."""
        return re.findall(r"{(\w+)}", self.path)

    @property
    def kinds(self):
        """Media types of its body."""
        return tuple(self.said.get("requestBody", {}).get("content", ()))

    def parameters(self, place):
        return {one["name"]: one.get("schema", {}) for one in self.said.get("parameters", ()) if one["in"] == place}

    def at(self, **names):
        """Its path with ``names`` in it."""
        return re.sub(r"{(\w+)}", lambda match: quote(names.get(match[1], "nobody"), safe=""), self.path)


@pytest.fixture(scope="module")
def described(lone_api):
    return lone_api.ask("GET", "/schema").json()


@pytest.fixture(scope="module")
def calls(described):
    # without a Cinder those about volumes answer 503, whatever they are sent
    found = [
        Call(method.upper(), path, said)
        for path, own in described["paths"].items()
        for method, said in own.items()
        if not path.startswith("/volumes")
    ]
    assert len(found) > 90
    return found


@pytest.fixture(scope="module")
def known(lone_api):
    """One thing of each sort; part of a path → its name."""

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


def at_home(call, known):
    """Its path, about things that exist."""
    names = dict(known)
    if "gcontainers" in call.path:
        names |= {"group": known["container_group"], "member": "AUTH_bad/c"}
    if call.path.startswith("/registry/filters"):
        names["keyword"] = "noop"
    return call.at(**names)


@pytest.fixture
def unchanged(lone_api, known):
    """Whatever a test sent, Redis holds what it held, when a policy was looked at last, and which code was refused."""
    before = lone_api.dump()
    yield
    after = lone_api.dump()
    others = {name for name in (*before, *after) if name.endswith((b":watched", b":events", b":event_sources"))}
    assert {name: after[name] for name in after.keys() - others} == {
        name: before[name] for name in before.keys() - others
    }


def refused(answer, what, *statuses):
    assert 400 <= answer.status < 500, (what, answer.status, answer.body)
    assert not statuses or answer.status in statuses, (what, answer.status, answer.body)


def with_body(calls):
    return [call for call in calls if call.method in ("POST", "PUT")]


@pytest.mark.usefixtures("unchanged")
def test_odd_names_lead_nowhere(lone_api, calls):
    for call, odd in itertools.product([call for call in calls if call.names], ODD_NAMES):
        for name in call.names:
            where = call.at(**{name: odd})
            answer = lone_api.ask(call.method, where, b'{"nonsense": 1}' if call.method in ("POST", "PUT") else None)
            assert answer.status < 500, (where, answer.body)
            if call.method != "GET":
                assert answer.status >= 400 or answer.status == 204, (where, answer.body)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("fault", MALFORMED)
def test_a_body_that_is_no_object_of_known_fields_is_refused(lone_api, calls, known, fault):
    for call in with_body(calls):
        if call.kinds in ((JSON,), ()):
            refused(lone_api.ask(call.method, at_home(call, known), MALFORMED[fault]), str(call))


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


def field_types(described, call):
    """Field → JSON types that it takes, of an object that is a body."""
    schema = call.said["requestBody"]["content"][JSON].get("schema", {})
    for step in schema.get("$ref", "#").split("/")[1:]:
        schema = described[step] if step in described else schema.get(step, schema)
        described = schema
    for name, one in schema.get("properties", {}).items():
        types = one.get("type")
        if types:
            yield name, {types} if isinstance(types, str) else set(types)


@pytest.mark.usefixtures("unchanged")
def test_a_field_of_another_type_is_refused(lone_api, described, calls, known):
    tried = 0
    for call in [one for one in with_body(calls) if one.kinds == (JSON,)]:
        for name, types in field_types(described, call):
            for other, value in OF_TYPE.items():
                if not any(other in ACCEPTED_BY.get(one, {one}) for one in types):
                    refused(lone_api.ask(call.method, at_home(call, known), {name: value}), (call, name, value))
                    tried += 1
    assert tried > 200


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_a_body_of_another_kind_is_refused(lone_api, calls, known, kind):
    for call in with_body(calls):
        if "application/octet-stream" not in call.kinds:
            refused(lone_api.ask(call.method, at_home(call, known), b"policy=x", kind), (call, kind), 415, 400)


@pytest.mark.usefixtures("unchanged")
def test_a_body_that_is_too_large_is_refused_before_it_is_read(lone_api, calls, known):
    for call in calls:
        answer = raw_answer(lone_api, call.method, at_home(call, known), "Content-Length: 1000000000000")
        assert answer.status == 413, (str(call), answer.body)


@pytest.mark.usefixtures("unchanged")
def test_a_body_of_unknown_length_is_refused(lone_api, calls, known):
    for call in calls:
        answer = raw_answer(lone_api, call.method, at_home(call, known), "Transfer-Encoding: chunked", b"5\r\nab")
        assert answer.status == 411, (str(call), answer.body)


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
def test_a_version_that_is_none_is_refused(lone_api, calls, known):
    guarded = [call for call in calls if "If-Match" in call.parameters("header")]
    assert len(guarded) > 20
    for call, version in itertools.product(guarded, BAD_VERSIONS):
        kind = (call.kinds or (JSON,))[0]
        answer = lone_api.ask(call.method, at_home(call, known), b"", kind, If_Match=version.encode("latin-1"))
        refused(answer, (call, version))


@pytest.mark.usefixtures("unchanged")
def test_a_version_that_does_not_stand_is_refused(lone_api, calls, known):
    for call in [one for one in calls if one.method == "DELETE" and "If-Match" in one.parameters("header")]:
        refused(lone_api.ask(call.method, at_home(call, known), If_Match='"999999999"'), call, 412, 404)


@pytest.mark.usefixtures("unchanged")
def test_parameters_that_are_none_are_refused(lone_api, calls, known):
    tried = 0
    for call in calls:
        where = at_home(call, known)
        refused(lone_api.ask(call.method, f"{where}?nonsense=1", b"{}"), (call, "unknown"))
        for name, schema in call.parameters("query").items():
            if "enum" in schema:
                refused(lone_api.ask(call.method, f"{where}?{name}=", b"{}"), (call, name, "empty"))
                refused(lone_api.ask(call.method, f"{where}?{name}=nonsense", b"{}"), (call, name, "nonsense"))
            for value in BAD_VALUES.get(schema.get("type"), ()):
                refused(lone_api.ask(call.method, f"{where}?{name}={quote(value)}", b"{}"), (call, name, value))
                tried += 1
    assert tried > 200


@pytest.mark.usefixtures("unchanged")
def test_any_text_is_a_marker_or_a_prefix_or_is_refused(lone_api, calls, known):
    for call in [one for one in calls if one.method == "GET"]:
        texts = [name for name, schema in call.parameters("query").items() if schema.get("type") == "string"]
        for name, odd in itertools.product(texts, ODD_NAMES):
            answer = lone_api.ask("GET", f"{at_home(call, known)}?{name}={quote(odd)}")
            assert answer.status < 500, (call, name, odd, answer.body)


@pytest.mark.usefixtures("unchanged")
def test_another_method_is_405_and_says_which_work(lone_api, calls, known):
    by_path = {}
    for call in calls:
        by_path.setdefault(call.path, []).append(call)
    for several in by_path.values():
        works = {call.method for call in several}
        for method in set(METHODS) - works:
            answer = lone_api.ask(method, at_home(several[0], known), b"{}" if method in ("POST", "PUT") else None)
            refused(answer, (method, several[0].path), 405)
            allowed = set(re.split(r",\s*", answer.headers["allow"]))
            assert works <= allowed <= works | {"HEAD"}, (several[0].path, allowed)


@pytest.mark.usefixtures("unchanged")
def test_without_a_token_that_is_valid_nothing_is_done_or_told(lone_api, calls, known):
    for call, token in itertools.product(calls, (None, "", "nonsense", lone_api.token + "x", lone_api.token[:-1])):
        answer = lone_api.ask(call.method, at_home(call, known), b"{}", X_Auth_Token=token)
        if not call.said.get("security"):
            assert answer.status < 500, call
        else:
            refused(answer, call, 401)


def test_the_description_holds_no_secret(lone_api, described):
    text = json.dumps(described)
    assert not any(secret in text for secret in lone_api.secrets)


def raw_answer(lone_api, method, path, more, rest=b""):
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {JSON}\r\n"
        f"X-Auth-Token: {lone_api.token}\r\n{more}\r\n\r\n"
    )
    answer = lone_api.speak(head.encode() + rest)
    lone_api.look_at(answer, f"{method} {path}")
    return answer
