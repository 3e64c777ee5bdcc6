"""``/policies/complete``: the words that may follow, from the registry, for callers that may see them."""

from dataclasses import replace

import pytest
from tests.support.controller.checked_client import CheckedClient

from sluice_controller.identity.caller import IDENTITY, Identity
from sluice_core.messages.nodes import NodeReport

RITA = Identity.from_user("u-rita", "rita", "acme-id", "acme", ("reader",))


def offered(client, text, position=None):
    body = {"policy": text, "position": len(text) if position is None else position}
    answer = client.post("/policies/complete", body, format="json")
    assert answer.status_code == 200, answer.content
    return [one["text"] for one in answer.json()["candidates"]]


@pytest.fixture
def registry(api, backend):
    """A group, an alias, a metric, a filter and a node."""
    for path, body in (
        ("/registry/gtenants", {"name": "gold ones", "tenants": ["AUTH_a"]}),
        ("/registry/aliases", {"name": "logs", "of": "target", "text": "AUTH_a/logs"}),
        ("/registry/metrics", {"name": "QUEUE", "unit": "count", "help": "how many wait"}),
    ):
        assert api.post(path, body, format="json").status_code == 201
    backend.store.report(NodeReport("node1", "h", 1))


def test_words_of_the_grammar_and_of_the_registry_are_offered(api, registry):
    assert offered(api, "FOR TEN") == ["TENANT"]
    assert offered(api, "FOR GROUP ") == ['"gold ones"']
    assert offered(api, "FOR lo") == ["logs"]
    assert offered(api, "FOR CLUSTER WHEN Q") == ["QUEUE"]
    assert offered(api, "FOR CLUSTER WHEN NODE_CPU AT ") == ["node1"]
    assert offered(api, "FOR logs DO SET compression WITH eng") == ["engine="]
    assert offered(api, "FOR logs DO", 5) == ["logs"]


def test_tenants_of_policies_are_offered(api, create):
    create("FOR CONTAINER AUTH_b/c DO SET noop")
    create("FOR ALL TENANTS DO SET noop")
    assert offered(api, "FOR TENANT ") == ["AUTH_b"]


def test_a_reader_is_offered_no_names_that_it_cannot_list(config, backend, registry):
    from django.test import override_settings

    with override_settings(SLUICE=replace(config, auth="keystone")):
        rita = CheckedClient(**{IDENTITY: RITA})
        assert offered(rita, "FOR GROUP ") == []
        assert offered(rita, "FOR CLUSTER WHEN NODE_CPU AT ") == []
        assert offered(rita, "FOR TENANT ") == ["acme"]
        assert offered(rita, "FOR lo") == ["logs"]
        nobody = CheckedClient(**{IDENTITY: replace(RITA, roles=frozenset())})
        assert nobody.post("/policies/complete", {"policy": "", "position": 0}, format="json").status_code == 403


@pytest.mark.parametrize(
    "body",
    [{}, {"policy": "FOR"}, {"position": 1}, {"policy": "FOR", "position": 4}, {"policy": "FOR", "position": -1},
     {"policy": 5, "position": 0}, {"policy": "x", "position": True}, {"policy": "x", "position": 0, "y": 1}],
)  # fmt: skip
def test_a_place_that_is_none_is_refused(api, body):
    assert api.post("/policies/complete", body, format="json").status_code == 400
