"""The properties of a machine for drivers."""

import socket

from sluice_block.konnector.connector_properties import connector_properties


def test_what_the_machine_has_is_told_and_nothing_else(tmp_path):
    assert set(connector_properties("192.0.2.7", tmp_path)) == {
        "host",
        "ip",
        "platform",
        "os_type",
        "multipath",
        "do_local_attach",
    }
    for path, text in (
        ("etc/iscsi/initiatorname.iscsi", "# a comment\nInitiatorName=iqn.1993-08.org.debian:01:7\n"),
        ("etc/nvme/hostnqn", "nqn.2014-08.org.nvmexpress:uuid:7\n"),
        ("sys/class/fc_host/host3/port_name", "0x5001\n"),
        ("sys/class/fc_host/host3/node_name", "0x5000\n"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = connector_properties("192.0.2.7", tmp_path)
    assert (found["host"], found["ip"]) == (socket.gethostname(), "192.0.2.7")
    assert found["initiator"] == "iqn.1993-08.org.debian:01:7"
    assert found["nqn"] == "nqn.2014-08.org.nvmexpress:uuid:7"
    assert (found["wwpns"], found["wwnns"]) == (["5001"], ["5000"])
