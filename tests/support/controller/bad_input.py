"""Invalid input, and the refusals of a description's calls: 4xx with a reason.

Each check takes the calls to test and their paths: call → path, about existing objects, so that bodies are
really parsed.
"""

import itertools
import re
from dataclasses import dataclass, field
from urllib.parse import quote

from tests.support.controller.lone_api import JSON

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
#: JSON type → a value of it, given to fields of another type.
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
#: Type of a parameter in the query → invalid values.
BAD_VALUES = {
    "integer": ("", "x", "-1", "0x10", "1.5", "1e3", " 1", "1_0", "²", "٣", "9" * 400, "NaN", "null", "true", "[]"),
    "number": ("x", "-1", "nan", "inf", "-inf", "1e999", "0x10", "١٢٣x", "[]"),
    "boolean": ("", "2", "maybe", "null", "[]", "TRUE "),
}
#: Query parameters that are not declared for a call.
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "NONSENSE")


@dataclass(frozen=True)
class Call:
    """A method on a path of the description, with its description."""

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


def read_calls(described):
    """All calls of a description."""
    return [
        Call(method.upper(), path, said) for path, own in described["paths"].items() for method, said in own.items()
    ]


def refused(answer, what, *statuses):
    assert 400 <= answer.status < 500, (what, answer.status, answer.body)
    assert not statuses or answer.status in statuses, (what, answer.status, answer.body)


def with_body(calls):
    return [call for call in calls if call.method in ("POST", "PUT")]


def check_odd_names(api, calls):
    """Send each name in reads, and every second one in calls that change objects."""
    named = [call for call in calls if call.names]
    tries = ((call, ODD_NAMES if call.method == "GET" else ODD_NAMES[n % 2 :: 2]) for n, call in enumerate(named))
    for call, odd in ((call, odd) for call, chosen in tries for odd in chosen):
        for name in call.names:
            where = call.at(**{name: odd})
            answer = api.ask(call.method, where, b'{"nonsense": 1}' if call.method in ("POST", "PUT") else None)
            assert answer.status < 500, (where, answer.body)
            if call.method != "GET":
                assert answer.status >= 400 or answer.status == 204, (where, answer.body)


def check_malformed_body(api, calls, lead, fault):
    for call in with_body(calls):
        if call.kinds in ((JSON,), ()):
            refused(api.ask(call.method, lead(call), MALFORMED[fault]), str(call))


def field_types(described, call):
    """Field → its JSON types, of an object that is a body."""
    schema = call.said["requestBody"]["content"][JSON].get("schema", {})
    for step in schema.get("$ref", "#").split("/")[1:]:
        schema = described[step] if step in described else schema.get(step, schema)
        described = schema
    for name, one in schema.get("properties", {}).items():
        types = one.get("type")
        if types:
            yield name, {types} if isinstance(types, str) else set(types)


def check_other_types(api, described, calls, lead):
    """Send values of other types; return the number of fields and values."""
    tried = 0
    for call in [one for one in with_body(calls) if one.kinds == (JSON,)]:
        for name, types in field_types(described, call):
            for other, value in OF_TYPE.items():
                if not any(other in ACCEPTED_BY.get(one, {one}) for one in types):
                    refused(api.ask(call.method, lead(call), {name: value}), (call, name, value))
                    tried += 1
    return tried


def check_other_kind(api, calls, lead, kind):
    for call in with_body(calls):
        if "application/octet-stream" not in call.kinds:
            refused(api.ask(call.method, lead(call), b"policy=x", kind), (call, kind), 415, 400)


def check_too_large(api, calls, lead):
    for call in calls:
        answer = raw_answer(api, call.method, lead(call), "Content-Length: 1000000000000")
        assert answer.status == 413, (str(call), answer.body)


def check_unknown_length(api, calls, lead):
    for call in calls:
        answer = raw_answer(api, call.method, lead(call), "Transfer-Encoding: chunked", b"5\r\nab")
        assert answer.status == 411, (str(call), answer.body)


def check_parameters(api, calls, lead):
    """Send invalid parameters; return the number of values."""
    tried = 0
    for call in calls:
        where = lead(call)
        refused(api.ask(call.method, f"{where}?nonsense=1", b"{}"), (call, "unknown"))
        for name, schema in call.parameters("query").items():
            if "enum" in schema:
                refused(api.ask(call.method, f"{where}?{name}=", b"{}"), (call, name, "empty"))
                refused(api.ask(call.method, f"{where}?{name}=nonsense", b"{}"), (call, name, "nonsense"))
            for value in BAD_VALUES.get(schema.get("type"), ()):
                refused(api.ask(call.method, f"{where}?{name}={quote(value)}", b"{}"), (call, name, value))
                tried += 1
    return tried


def check_texts_in_query(api, calls, lead):
    """Send every third odd name in each parameter, each starting with another one."""
    reads = [call for call in calls if call.method == "GET"]
    texts = [
        (call, name)
        for call in reads
        for name, kind in call.parameters("query").items()
        if kind.get("type") == "string"
    ]
    for place, (call, name) in enumerate(texts):
        for odd in ODD_NAMES[place % 3 :: 3]:
            answer = api.ask("GET", f"{lead(call)}?{name}={quote(odd)}")
            assert answer.status < 500, (call, name, odd, answer.body)


def check_methods(api, calls, lead):
    by_path = {}
    for call in calls:
        by_path.setdefault(call.path, []).append(call)
    for several in by_path.values():
        works = {call.method for call in several}
        for method in set(METHODS) - works:
            answer = api.ask(method, lead(several[0]), b"{}" if method in ("POST", "PUT") else None)
            refused(answer, (method, several[0].path), 405)
            allowed = set(re.split(r",\s*", answer.headers["allow"]))
            assert works <= allowed <= works | {"HEAD"}, (several[0].path, allowed)


def check_tokens(api, calls, lead):
    for call, token in itertools.product(calls, (None, "", "nonsense", api.token + "x", api.token[:-1])):
        answer = api.ask(call.method, lead(call), b"{}", X_Auth_Token=token)
        if not call.said.get("security"):
            assert answer.status < 500, call
        else:
            refused(answer, call, 401)


def raw_answer(api, method, path, more, rest=b""):
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {JSON}\r\n"
        f"X-Auth-Token: {api.token}\r\n{more}\r\n\r\n"
    )
    answer = api.speak(head.encode() + rest)
    api.look_at(answer, f"{method} {path}")
    return answer
