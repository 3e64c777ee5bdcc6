"""The OSDs of an image of Ceph, with Ceph's programs replaced by their output."""

import json

import pytest

from sluice_block.datapath.rbd_image import SAMPLE, RbdImage, find_osds
from sluice_core.errors import DecodeError

IMAGE = RbdImage("volumes", "volume-1", (("192.0.2.1", "3300"),), "cinder")
INFO = {"name": "volume-1", "objects": 4, "format": 2, "block_name_prefix": "rbd_data.5"}
NONE = 0x7FFFFFFF
TREE = {
    "nodes": [
        {"id": -1, "name": "default", "type": "root", "children": [-2, -3]},
        {"id": -2, "name": "left", "type": "host", "children": [0, 1]},
        {"id": -3, "name": "right", "type": "host", "children": [2]},
        {"id": 0, "name": "osd.0", "type": "osd"},
    ]
}


@pytest.fixture
def ceph(tmp_path, monkeypatch):
    """A function that sets the output of ``rbd`` and ``ceph``; the arguments of ``ceph`` are in the file ``asked``."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def answer(info, documents):
        texts = {"rbd": json.dumps(info), "ceph": "\n\n".join(json.dumps(one) for one in documents)}
        for name, text in texts.items():
            (tmp_path / f"{name}.json").write_text(text)
            program = tmp_path / name
            program.write_text(f"#!/bin/sh\ncat > {tmp_path}/asked\ncat {tmp_path}/{name}.json\n")
            program.chmod(0o755)
        return tmp_path / "asked"

    return answer


def placed(*acting):
    return {"acting": list(acting), "acting_primary": acting[0]}


def test_each_osd_has_the_share_of_objects_that_it_holds(ceph, tmp_path):
    asked = ceph(INFO, [placed(0, 2), placed(2, 0), placed(2, 1), placed(2, NONE), TREE])
    found = find_osds(IMAGE, tmp_path)
    shares = [(one.id, one.host, one.share, one.primary) for one in found.osds]
    assert shares == [(2, "right", 1.0, 0.75), (0, "left", 0.5, 0.25), (1, "left", 0.25, 0.0)]
    assert asked.read_text().splitlines() == [
        *(f"osd map volumes rbd_data.5.{number:016x}" for number in range(4)),
        "osd tree",
    ]


def test_of_a_large_image_a_sample_from_all_over_it_is_asked_for(ceph, tmp_path):
    info = INFO | {"objects": 1 << 20, "data_pool": "cold data"}
    asked = ceph(info, [*[placed(0)] * SAMPLE, TREE])
    found = find_osds(IMAGE, tmp_path)
    assert (found.pool, found.objects, found.sampled) == ("cold data", 1 << 20, SAMPLE)
    first, *_, last, _tree = asked.read_text().splitlines()
    assert first == "osd map 'cold data' rbd_data.5.0000000000000000"
    assert last == f"osd map 'cold data' rbd_data.5.{(SAMPLE - 1) * (1 << 20) // SAMPLE:016x}"


@pytest.mark.parametrize("documents", [["what"], [placed(0), TREE]])
def test_an_answer_that_is_not_understood_is_the_fault_of_ceph(ceph, tmp_path, documents):
    ceph(INFO, documents)
    with pytest.raises(DecodeError):
        find_osds(IMAGE, tmp_path)
