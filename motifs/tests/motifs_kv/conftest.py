import pytest

from sluice_motifs.testing.shim_suite import ShiftedCopy
from sluice_motifs_kv.database import Database


@pytest.fixture
def open_database(tmp_path):
    """Opens the database of the test with the given arguments; all are closed at its end."""
    opened = []

    def open_database(limit=None, policy="lru", templates=(ShiftedCopy,), **options):
        database = Database(tmp_path / "db", templates, limit, policy, **options).open()
        opened.append(database)
        return database

    yield open_database
    for database in opened:
        database.close()
