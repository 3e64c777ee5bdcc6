"""Connections of drivers as QEMU's block nodes."""

import pytest

from sluice_block.datapath.source import file_nodes
from sluice_core.errors import CallerError


def test_the_format_of_a_file_is_never_guessed(tmp_path):
    with pytest.raises(CallerError, match="`format` is `vmdk`, expected raw or qcow2"):
        file_nodes(tmp_path / "image", "vmdk")
    assert [one["driver"] for one in file_nodes(tmp_path / "image", "raw")] == ["file", "raw"]
