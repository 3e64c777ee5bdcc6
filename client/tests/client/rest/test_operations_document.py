"""Operations called by their ids, and methods made from signatures."""

import pytest

from sluice_client.errors import ClientError
from sluice_client.rest.operations_document import OperationCaller, calls, operations
from sluice_client.rest.transport import ApiResponse, Retries, Transport

pytestmark = pytest.mark.unit


class FakeTransport(Transport):
    """Keeps the last request, and answers with the given pages."""

    def __init__(self, *pages):
        super().__init__(None, Retries())
        self.pages, self.sent = list(pages), None

    def request(self, request):
        self.sent = request
        return ApiResponse(self.pages.pop(0) if self.pages else {"made": True})


class Caller(OperationCaller):
    def __init__(self, *pages):
        self._transport = FakeTransport(*pages)

    @property
    def sent(self):
        return self._transport.sent

    @calls("create_snapshot")
    def snapshot(self, volume, name="", wait=0.0):
        """A snapshot."""

    @calls("check_policies", "policies", text="policy")
    def check(self, text, replaces=""):
        """The policies that sentences would become."""

    @calls("create_volume")
    def create(self, size, **wanted):
        """A volume."""

    @calls("deploy_dependency", name="dependency")
    def deploy(self, target, name, filters=()):
        """A dependency."""

    @calls("list_nodes", list)
    def nodes(self):
        """All nodes."""


def test_parts_of_a_path_are_quoted():
    caller = Caller()
    caller.call("show_locality", account="AUTH_a", container="a b", object_name="x/y?z")
    assert (caller.sent.method, caller.sent.path) == ("GET", "/locality/AUTH_a/a%20b/x%2Fy%3Fz")


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_part_that_would_lead_elsewhere_is_refused(name):
    with pytest.raises(ClientError, match="cannot be the name of anything"):
        Caller().call("show_node", node=name)


def test_what_is_no_part_of_the_path_stands_in_query_or_body():
    caller = Caller()
    caller.call("attach_volume", volume="v", node="n", adopt=False, wait=2.0)
    assert (caller.sent.path, caller.sent.body, caller.sent.query) == (
        "/volumes/v/attach",
        {"node": "n", "adopt": False},
        {"wait": 2.0},
    )
    assert caller.sent.patience == 2.0
    caller.call("list_pools", further="value", empty="")
    assert (caller.sent.body, caller.sent.query) == (None, {"further": "value"})


def test_only_what_happens_once_by_its_key_has_one():
    caller = Caller()
    caller.call("create_volume", size=1)
    first = caller.sent.headers["Idempotency-Key"]
    caller.call("create_volume", size=1)
    assert caller.sent.headers["Idempotency-Key"] != first
    caller.call("extend_volume", volume="v", size=2, etag='"4"')
    assert caller.sent.headers == {"If-Match": '"4"'}


def test_a_list_is_fetched_page_by_page():
    caller = Caller({"nodes": [1, 2], "next_marker": "b"}, {"nodes": [3], "next_marker": None})
    found = caller.call("list_nodes", state="away")
    assert caller.sent is None
    assert list(found) == [1, 2, 3]
    assert caller.sent.query == {"state": "away", "marker": "b"}
    assert Caller({"nodes": [1], "next_marker": "b"}).call("list_nodes", one_page=True)["next_marker"] == "b"


def test_a_method_sends_what_is_not_its_default_under_the_names_of_the_operation():
    caller = Caller()
    assert caller.snapshot("v") == {"made": True}
    assert caller.sent.body == {}
    caller.snapshot("v", "weekly", wait=1.0)
    assert (caller.sent.body, caller.sent.query) == ({"name": "weekly"}, {"wait": 1.0})
    caller.create(5, tier="gold")
    assert caller.sent.body == {"size": 5, "tier": "gold"}


@pytest.mark.parametrize("filters", [(), []])
def test_an_empty_list_is_as_good_as_none(filters):
    caller = Caller()
    caller.deploy("AUTH_a", "io.jar", filters)
    assert (caller.sent.path, caller.sent.body) == ("/filters/dependencies/AUTH_a/deploy/io.jar", {})
    caller.deploy("AUTH_a", "io.jar", [*filters, "parse"])
    assert caller.sent.body == {"filters": ["parse"]}


def test_a_method_answers_with_a_field_or_what_is_made_of_the_answer():
    caller = Caller({"policies": ["checked"]})
    assert caller.check("FOR …") == ["checked"]
    assert caller.sent.body == {"policy": "FOR …"}
    assert Caller({"nodes": [1]}).nodes() == [1]


def test_arguments_are_checked_as_those_of_any_function():
    with pytest.raises(TypeError, match="missing a required argument: 'volume'"):
        Caller().snapshot()
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        Caller().snapshot("v", size=3)


def test_an_operation_that_is_not_there_is_an_error():
    with pytest.raises(KeyError):
        Caller().call("no_such_operation")


def test_every_operation_has_a_method_and_a_path():
    assert {one.method for one in operations().values()} == {"GET", "POST", "PUT", "DELETE"}
    assert all(one.path.startswith("/") for one in operations().values())
