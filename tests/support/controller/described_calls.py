"""Calls from a description of the API, with a body for each, while a peer of the API is unreachable."""

import json
from urllib.parse import quote, urlencode

#: Prefixes of the paths of calls that answer 503 without a Cinder, and the same as a regular expression.
ABOUT_VOLUMES = ("/volumes", "/locality/volume")
VOLUME_PATHS = f"^({'|'.join(ABOUT_VOLUMES)})"
#: The same for calls that answer 503 without a motif daemon.
ABOUT_MOTIFS = "/motifs"
#: Values that are valid where an example is missing.
WORDS = {"target": "AUTH_x/c/o", "method": "PUT", "size": "1", "epoch": "1"}


def example_calls(schema, **words):
    """Method, path, body and its type of each call that the API describes, with an example if possible.

    :param words: parameter → its value, where the usual ones are invalid
    """
    words = WORDS | words
    for path, methods in schema["paths"].items():
        for method, described in methods.items():
            given = [one for one in described.get("parameters", ()) if one.get("required")]
            names = {one["name"]: words.get(one["name"], "x1") for one in given}
            asked = {one["name"]: names[one["name"]] for one in given if one["in"] == "query"}
            target = path
            for name, value in names.items():
                target = target.replace(f"{{{name}}}", quote(value, safe=""))
            target += f"?{urlencode(asked)}" if asked else ""
            content = described.get("requestBody", {}).get("content", {})
            kind, form = next(iter(content.items()), ("", {}))
            yield method.upper(), target, body_of(schema, kind, form) if kind else None, kind


def body_of(schema, kind, form):
    if kind != "application/json":
        return b"x"
    examples = [one["value"] for one in form.get("examples", {}).values()]
    return json.dumps(examples[0] if examples else made_up(schema, form.get("schema", {}))).encode()


def made_up(schema, wanted):
    """A value of the required form; it need not be meaningful."""
    while "$ref" in wanted:
        wanted = schema["components"]["schemas"][wanted["$ref"].rpartition("/")[2]]
    for several in ("oneOf", "anyOf", "allOf"):
        if several in wanted:
            return made_up(schema, wanted[several][0])
    if "enum" in wanted:
        return wanted["enum"][0]
    kind = wanted.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        parts = wanted.get("properties", {})
        return {name: made_up(schema, parts[name]) for name in wanted.get("required", parts)}
    plain = {"array": [], "integer": 1, "number": 1.0, "boolean": False, "null": None}
    return plain.get(kind, "FOR TENANT AUTH_x DO SET noop")


def check_unavailable(ask, calls):
    """Each of ``calls`` is 503 and says that Redis is unreachable, or refuses its body; return the methods of those
    with 503.

    :param ask: takes method, path, body and its type; returns status, headers and body of the response
    """
    wrong, away = [], set()
    for method, path, body, kind in calls:
        status, headers, text = ask(method, path, body, kind)
        if status == 503:
            away.add(method)
            said = json.loads(text)["error"]["message"]
            if int(headers["Retry-After"]) < 1 or "redis" not in said:
                wrong.append((method, path, dict(headers), said))
        elif method in ("GET", "DELETE") or not 400 <= status < 500:
            wrong.append((method, path, body, status, text[:200]))
    assert not wrong, f"{len(wrong)}: {wrong[:5]}"
    return away
