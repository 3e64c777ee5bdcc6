"""``motif`` and ``space``, through the real API, with a daemon over a storage in memory."""

import json
import time

import pytest

from sluice_client.commands.motifs import object_path
from sluice_client.errors import ClientError
from sluice_core.errors import NotFound, PeerError
from sluice_motif_control.messages import MotifTemplate, SpaceStatus
from sluice_motif_control.spaces import write_spaces
from sluice_motifs.templates.duplicate_of import DuplicateOf
from sluice_motifs_swift.cluster import call_server
from sluice_motifs_swift.cluster.call_server import CallServer

SHOWN = {"size": 100, "contracted": False, "opens": 1, "sources": [], "expansion_seconds": 0.0}


class FakeCalls:
    """Has one object, and keeps the requests."""

    def __init__(self):
        self.asked = []
        self.failing = set()
        self.without = set()

    def attach(self, item, template, params, identity):
        self.asked.append((template, params))
        return {**self.show(item), "motifs": [{"template": template, "params": params, "attached_by": identity}]}

    def detach(self, item, template=""):
        if item in self.without:
            raise NotFound(f"`{item}` has no motif of template `{template}`")
        self.asked.append((item, template))
        return self.show(item)

    def show(self, item):
        return {"item": item, "motifs": [], **SHOWN}

    def why(self, item):
        return {**self.show(item), "contractible": False, "reasons": ["it is a manifest"], "space": None}

    def expand(self, item):
        if item in self.failing:
            raise PeerError("its source is away")
        return self.show(item)

    def contract(self, item, verify="head"):
        self.asked.append(verify)
        return {**self.show(item), "outcome": "contracted"}

    def list_items(self, under="", marker="", limit=100):
        names = [f"AUTH_a/c/{number}" for number in range(3)]
        return [{"item": name, "size": 1500000, "contracted": True, "opens": 0} for name in names if name > marker]

    def contracted(self, under):
        return iter([(f"AUTH_a/c/{number}", 10) for number in range(3)])


@pytest.fixture
def calls(store, monkeypatch):
    monkeypatch.setattr(call_server, "_WAIT", 0.1)  # greatest duration of a stop
    calls = FakeCalls()
    template = MotifTemplate.describe(DuplicateOf.info, DuplicateOf.relation, DuplicateOf.exact)
    server = CallServer(store, calls, "n1", (template,), time.time)
    server.start()
    yield calls
    server.stop()


def test_a_motif_is_attached_shown_and_detached(sluice, calls):
    path = "AUTH_a/c/dir/one"
    attached = json.loads(
        sluice("motif", "attach", path, "duplicate_of", "--param", "source=AUTH_a/c/x", "-f", "json").out
    )
    assert attached["motifs"][0]["params"] == {"source": "AUTH_a/c/x"}
    assert path in sluice("motif", "show", path).out
    assert "it is a manifest" in sluice("motif", "explain", path).out
    assert sluice("motif", "contract", path, "--verify", "expand").out == f"object {path}: contracted\n"
    assert calls.asked[-1] == "expand"
    assert path in sluice("motif", "expand", path).out
    assert sluice("motif", "detach", path).out == f"object {path} has 0 motifs\n"


def test_motifs_of_a_template_are_detached_from_all_objects_that_have_it(sluice, calls):
    calls.without.add("AUTH_a/c/1")
    said = sluice("motif", "detach", "--all", "AUTH_a/c", "--template", "tier").out.splitlines()
    assert said == [
        "object AUTH_a/c/0 has 0 motifs",
        "object AUTH_a/c/1 has no such motif",
        "object AUTH_a/c/2 has 0 motifs",
    ]
    assert calls.asked == [("AUTH_a/c/0", "tier"), ("AUTH_a/c/2", "tier")]
    assert "has no motif of template" in sluice("motif", "detach", "AUTH_a/c/1", "--template", "tier", status=1).err
    assert "or `--all`" in sluice("motif", "detach", status=1).err


def test_objects_and_templates_are_listed(sluice, calls):
    assert "1.5 MB" in sluice("motif", "list", "AUTH_a/c").out
    assert len(json.loads(sluice("motif", "list", "-f", "json").out)) == 3
    assert "source" in sluice("motif", "template", "list").out


def test_a_motif_is_created_for_what_is_stored_from_then_on(sluice, calls):
    made = sluice(
        "motif", "create", "CONTAINER AUTH_a/c", "duplicate_of", "--param", "source=meta:origin", "-f", "json"
    )
    assert json.loads(made.out)["policy"] == (
        "FOR CONTAINER AUTH_a/c DO SET motif WITH template=duplicate_of source=meta:origin"
    )
    spaced = sluice("motif", "create", "CONTAINER AUTH_a/d", "duplicate_of", "--param", "source=a b/c", "-f", "json")
    assert '"a b/c"' in json.loads(spaced.out)["policy"]


def test_everything_is_expanded_and_how_far_it_is_shown(sluice, calls):
    found = sluice("motif", "expand", "--all", "AUTH_a/c", "-f", "json")
    ended = json.loads(found.out)
    assert (ended["state"], ended["expanded"], ended["container"]) == ("done", 3, "c")
    assert "objects expanded" in found.err
    calls.failing.add("AUTH_a/c/1")
    failed = sluice("motif", "expand", "--all", status=1)
    assert "1 objects could not be expanded: AUTH_a/c/1: its source is away" in failed.err
    ordered = json.loads(sluice("motif", "expand", "--all", "--background", "-f", "json").out)
    assert ordered["state"] == "waiting"
    assert "given without `--all`" in sluice("motif", "expand", "AUTH_a/c/1", "--background", status=1).err


def test_spaces_are_listed_and_shown(sluice, store):
    figures = {"hits": 3, "misses": 1, "parts": {"AUTH_a/c": (5, 4)}}
    why = {"state": "above", "reason": "2 are younger than min_age"}
    status = SpaceStatus("AUTH_a", "tenant", 10**7, 8 * 10**6, 5 * 10**6, policy="lru", verify="head", **figures, **why)
    store.run(write_spaces(store.keys, [status]))
    listed = sluice("space", "list").out
    assert "75.0%" in listed
    assert "10 MB" in listed
    shown = sluice("space", "show", "AUTH_a").out
    assert "2 are younger than min_age" in shown
    assert "AUTH_a/c: 4 B of 5 B" in shown
    assert "no daemon keeps a space" in sluice("space", "show", "CLUSTER", status=1).err


@pytest.mark.parametrize("text", ["", "acme", "acme/c", "acme//o", "/c/o"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(ClientError, match="expected account/container/object"):
        object_path(text)
