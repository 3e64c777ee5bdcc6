"""The commands of a resource from its description, for a resource that no controller has."""

import json

import pytest

from sluice_client import cli
from sluice_client.command_base.arguments import Argument
from sluice_client.command_base.crud import (
    CreateResource,
    DeleteResources,
    ListResources,
    Resource,
    ShowResource,
    UpdateResource,
)
from sluice_client.resources.columns import Column

COLUMNS = (Column.field("name"), Column.field("colour"))
PAINT = Resource(
    "paint",
    "/store/paints",
    listed=(Column.field("Name"), Column.field("Colour", long=True)),
    shown=COLUMNS,
    filters=(Argument("--shop", "only of this shop"),),
    fields=(
        Argument("--colour", "its colour"),
        Argument("--thin-with", "what makes it thinner", {"action": "append"}),
    ),
)
ANSWER = {"name": "a/b", "colour": "red"}
MISSING = {"error": {"code": 404, "title": "Not Found", "message": "there is no such paint", "problems": []}}


class ListPaints(ListResources, resource=PAINT):
    """List paints."""


class ShowPaint(ShowResource, resource=PAINT):
    """Show a paint."""


class CreatePaint(CreateResource, resource=PAINT):
    """Mix a paint."""


class SetPaint(UpdateResource, resource=PAINT):
    """Change a paint."""


class DeletePaint(DeleteResources, resource=PAINT):
    """Pour paints away."""


@pytest.fixture
def run(monkeypatch, stub, capsys):
    """A function that runs ``sluice paint …`` and returns its status and its output."""
    classes = (ListPaints, ShowPaint, CreatePaint, SetPaint, DeletePaint)
    words = ("list", "show", "create", "set", "delete")
    known = {f"paint {word}": one for word, one in zip(words, classes, strict=True)}
    monkeypatch.setattr(cli, "COMMANDS", known)

    def go(*given):
        return cli.main(["--url", stub.url, "paint", *given]), capsys.readouterr()

    return go


def test_a_list_is_narrowed_and_long_on_demand(run, stub):
    stub.enqueue(200, {"paints": [ANSWER], "next_marker": "m"}).enqueue(200, {"paints": []})
    status, said = run("list", "--shop", "x y", "--long", "-f", "json")
    assert (status, json.loads(said.out)) == (0, [{"Name": "a/b", "Colour": "red"}])
    assert stub.paths == ["/store/paints?shop=x+y", "/store/paints?shop=x+y&marker=m"]


def test_an_item_is_shown_by_a_name_with_any_characters(run, stub):
    stub.enqueue(200, ANSWER)
    assert json.loads(run("show", "a/b", "-f", "json")[1].out) == ANSWER
    assert stub.paths == ["/store/paints/a%2Fb"]


def test_an_item_is_created_from_the_options(run, stub):
    stub.enqueue(201, ANSWER)
    assert run("create", "a/b", "--thin-with", "oil", "--thin-with", "wax")[0] == 0
    (asked,) = stub.requests
    assert (asked.method, asked.path) == ("POST", "/store/paints")
    assert asked.body == {"name": "a/b", "thin_with": ["oil", "wax"]}


def test_an_item_is_changed_with_its_etag(run, stub):
    stub.enqueue(200, ANSWER, ETag='"7"').enqueue(200, ANSWER)
    assert run("set", "a/b", "--colour", "blue")[0] == 0
    asked = stub.requests[1]
    assert (asked.method, asked.path, asked.body) == ("PUT", "/store/paints/a%2Fb", {"colour": "blue"})
    assert asked.headers["If-Match"] == '"7"'


def test_an_empty_change_is_refused_without_a_request(run, stub):
    status, said = run("set", "a/b")
    assert (status, stub.requests) == (1, [])
    assert "nothing is to be changed" in said.err


def test_several_are_deleted_and_a_failure_does_not_stop_the_others(run, stub):
    stub.enqueue(204).enqueue(404, MISSING).enqueue(204)
    status, said = run("delete", "a", "b", "c", "a")
    assert (status, said.out) == (1, "paint a is deleted\npaint c is deleted\n")
    assert said.err.startswith("b: there is no such paint (HTTP 404)")
    assert stub.paths == ["/store/paints/a", "/store/paints/b", "/store/paints/c"]
