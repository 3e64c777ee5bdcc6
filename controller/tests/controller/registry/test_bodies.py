"""Any body or name gets an answer in the schema, and never a 5xx."""

from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

RESOURCES = {
    "/registry/gtenants": ("name", "tenants", "tenant"),
    "/registry/gcontainers": ("name", "containers", "container"),
    "/registry/terms": ("term", "patterns"),
    "/registry/aliases": ("name", "of", "text", "level", "params"),
    "/registry/metrics": ("name", "unit", "type", "granularities", "period", "help", "location"),
    "/registry/filters": ("keyword", "url", "undo", "timeout"),
    "/stereotypes": ("name", "text", "help"),
    "/filters/dependencies": ("name", "help"),
}
WORDS = (
    *(
        "gold",
        "noop",
        "compression",
        "filter",
        "metric",
        "target",
        "tenant",
        "GETS_SEC",
        "DOCS",
        "AUTH_a/c",
        "fraction",
    ),
    *("FOR {target} DO SET noop", "{target}", "http://127.0.0.1/{filter}", "", "/", "..", "a\nb", "*", "\x00", "ü"),
)
texts = st.one_of(st.sampled_from(WORDS), st.text(st.characters(codec="utf-8"), max_size=8))
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


def bodies(fields):
    objects = st.dictionaries(st.one_of(st.sampled_from(fields), texts), values, max_size=4)
    near = st.fixed_dictionaries(
        {}, optional={one: st.one_of(texts, st.lists(texts, max_size=2), values) for one in fields}
    )
    return st.one_of(near, near, objects, values)


RELAXED = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.mark.parametrize("path", RESOURCES)
def test_bodies_are_accepted_or_refused_and_what_was_accepted_can_be_shown(api, path):
    @RELAXED
    @given(bodies(RESOURCES[path]), texts)
    def sent(body, name):
        made = api.post(path, body, format="json")
        assert made.status_code in (201, 400, 404, 409), made.content
        if made.status_code == 201:
            here = made.headers["Location"]
            assert api.get(here).json() == {**api.get(here).json(), **made.json()}
            assert api.put(here, body, format="json").status_code < 500
            assert api.delete(f"{here}?force=true").status_code == 204
        one = f"{path}/{quote(name, safe='') or 'x'}"
        assert api.put(one, body, format="json").status_code < 500
        assert api.get(one).status_code in (200, 400, 404)

    sent()


@pytest.mark.parametrize("path", ["/filters/{}/deploy/{}", "/filters/{}/undeploy/{}", "/stereotypes/{}/tenants/{}"])
def test_targets_and_bodies_of_calls_are_done_or_refused(api, path):
    api.post("/stereotypes", {"name": "gold", "text": "FOR {target} DO SET noop"}, format="json")

    @RELAXED
    @given(bodies(("params", "place", "engine", "level")), texts, texts)
    def sent(body, first, second):
        where = path.format(quote(first or "x"), quote(second or "x"))
        assert api.put(where, body, format="json").status_code < 500
        assert api.get(where.rpartition("/")[0]).status_code < 500

    sent()
