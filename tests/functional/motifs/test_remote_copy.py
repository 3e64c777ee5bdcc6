"""Values of a key-value store are contracted to a container of a real Swift, and expanded from there."""

import hashlib
import json

import pytest

from sluice_motifs.api import ExpansionError, NotContractible
from sluice_motifs.contraction.contractor import CONTRACTED
from sluice_motifs.storage.records import Motif
from sluice_motifs.templates.registry import OPTIONS, template_context
from sluice_motifs.templates.remote_copy import RemoteCopy
from sluice_motifs_kv.database import Database

CONTENT = b"".join(b"%d: a line of a log\n" % n for n in range(200_000))
COPY = Motif("remote_copy", {"remote": "other-site"})


@pytest.fixture
def database(cluster, tmp_path):
    """A database whose remote is a container of AUTH_test2."""
    (tmp_path / "remotes").write_text(
        f"[other-site]\nauth_url = {cluster.keystone_url}\nuser = test2:tester2\n"
        "password = other-site\ncontainer = motif copies ü\n"
    )
    passwords = tmp_path / "passwords"
    passwords.touch(mode=0o600)
    passwords.write_text(json.dumps({"passwords": {"other-site": "testing2"}}))
    options = {option.name: option.default for option in OPTIONS}
    context = template_context(
        options | {"motif_remotes": str(tmp_path / "remotes"), "motif_password_file": str(passwords)}
    )
    with Database(tmp_path / "values", [RemoteCopy.configured(context)]) as database:
        database.put(b"log", CONTENT)
        database.attach(b"log", COPY)
        yield database


def test_a_value_goes_to_another_swift_and_comes_back(database, plain):
    with pytest.raises(NotContractible, match="does not take the copy: 404"):
        database.contract(b"log")
    assert database.get(b"log") == CONTENT

    assert plain.request("PUT", "motif copies ü").status == 201
    name = f"motif copies ü/{hashlib.sha256(CONTENT).hexdigest()}"
    assert database.contract(b"log") == CONTRACTED
    assert plain.request("GET", name).body == CONTENT
    written = plain.request("HEAD", name).headers["x-timestamp"]
    assert database.get(b"log") == CONTENT
    assert not database.contracted(b"log")

    assert database.contract(b"log") == CONTRACTED
    assert plain.request("HEAD", name).headers["x-timestamp"] == written, "it was up to date"

    plain.request("DELETE", name)
    with pytest.raises(ExpansionError, match="does not give the copy: 404"):
        database.get(b"log")
    assert database.contracted(b"log")
    plain.request("PUT", name, CONTENT)
    assert database.get(b"log") == CONTENT
