"""Disk files while an uploaded filter is rolled out: nodes may have different revisions for a while."""

import json
import logging
from dataclasses import replace

import pytest

from sluice_core.messages.uploads import Upload
from sluice_filters.api import Hint
from sluice_filters.basic.xor import Xor
from sluice_middleware.object_server.diskfile.disk_filters import DiskFilters, Refused
from sluice_middleware.object_server.diskfile.request_context import RequestedTransform
from sluice_middleware.object_server.diskfile.stored_metadata import StoredMetadata


def wanted(keyword, version):
    return RequestedTransform(json.dumps([{"f": keyword, "v": version, "p": {}}]), None)


def revision(number):
    upload = Upload("scramble", "native", "python", "Scramble", "0" * 64, 1, revision=number)
    info = replace(Xor.info, keyword="scramble", version=number)
    return type("Scramble", (Xor,), {"info": info, "upload": upload})


@pytest.fixture
def tools():
    made = DiskFilters({}, logging.getLogger("object-server"))
    made.filters["scramble"] = revision(1)
    made.filters["xor"] = Xor
    return made


def test_a_node_stores_with_the_revision_that_it_has(tools):
    encoder = tools.encoder(wanted("scramble", 2), Hint(5))
    encoder.feed(b"hello")
    encoder.finish()
    assert [(one["f"], one["v"]) for one in encoder.records()] == [("scramble", 1)]


def test_an_installed_filter_of_an_older_version_is_not_enough(tools):
    with pytest.raises(Refused, match="filter `xor` of version 2 is wanted, installed is 1"):
        tools.encoder(wanted("xor", 2), Hint(5))


@pytest.mark.parametrize("known", [1, 0], ids=["older", "unknown"])
def test_a_newer_revision_makes_the_node_refresh_its_snapshot(tools, monkeypatch, known):
    if not known:
        del tools.filters["scramble"]
    looked = []

    def look():
        looked.append(True)
        tools.filters["scramble"] = revision(2)
        return True

    monkeypatch.setattr(tools, "refresh", look)
    record = {"f": "scramble", "v": 2, "r": {"size": 5, "key": 7}}
    assert tools.unreadable_reason(StoredMetadata(5, 0, (record,))) == ""
    assert tools.unreadable_reason(StoredMetadata(5, 0, (record,))) == ""
    assert looked == [True]


def test_a_damaged_record_is_reported_by_the_reader(tools):
    assert tools.unreadable_reason(StoredMetadata(5, 0, ({"f": 7, "v": "x"},))) == ""
