"""An attribute is valid as long as the file was not written outside the mount."""

from types import SimpleNamespace

import pytest

from sluice_motifs_fs.storage.attributes import StoredState


@pytest.mark.parametrize(
    ("contracted", "size", "modified", "holds"),
    [
        (False, 10, 7, True),
        (False, 11, 7, False),
        (False, 10, 8, False),  # other bytes, as many
        (True, 0, 8, True),  # it has none
    ],
)
def test_a_file_that_was_written_past_us_is_another_one(contracted, size, modified, holds):
    stored = StoredState("v", 10, "digest", 7, contracted, "")
    assert stored.describes(SimpleNamespace(st_size=size, st_mtime_ns=modified)) is holds
