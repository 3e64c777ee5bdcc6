"""Keys from a key manager, with castellan's own in-memory manager."""

from __future__ import annotations

import logging
import threading
import uuid

import pytest
from castellan.common.exception import KeyManagerError
from castellan.common.objects.symmetric_key import SymmetricKey
from castellan.tests.unit.key_manager.mock_key_manager import MockKeyManager

from sluice_filters.api import Hint, HostServices
from sluice_filters.encryption.encryption import Encryption
from sluice_filters.encryption.keys.castellan import CastellanKeys
from sluice_filters.encryption.keys.options import open_keys
from sluice_filters.key_ring import MissingKey
from sluice_filters.testing import encode, run

MANAGER = "castellan.tests.unit.key_manager.mock_key_manager.MockKeyManager"


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


class Counting(MockKeyManager):
    """Castellan's manager, which counts calls and can be made unreachable."""

    away = False
    asked = 0
    silence = None

    def get(self, context, managed_object_id, **more):
        assert context.username == "sluice"
        self.asked += 1
        if self.silence is not None:
            self.silence.wait()
        if self.away:
            raise KeyManagerError(reason=f"connection refused (HTTP 401) (Request-ID: req-{self.asked})")
        uuid.UUID(managed_object_id)  # ValueError, as in Barbican's client
        return super().get(context, managed_object_id, **more)

    def add(self, secret):
        return self.store("test", SymmetricKey("AES", len(secret) * 8, secret))


class Place:
    """A configuration file, a key manager and a ring that reads both."""

    def __init__(self, tmp_path):
        self.path = tmp_path / "castellan.conf"
        self.manager = Counting()
        self.clock = Clock()
        self.one, self.two = (self.manager.add(secret * 32) for secret in (b"1", b"2"))
        self.write("k1", k1=self.one, k2=self.two)
        self.ring = CastellanKeys(self.path, lambda conf: self.manager, self.clock)

    def write(self, active, mode=0o600, **ids):
        keys = ",".join(f"{name}:{one}" for name, one in ids.items())
        new = self.path.with_suffix(".new")
        new.write_text(
            f"[key_manager]\nbackend = {MANAGER}\nauth_type = password\nusername = sluice\npassword = swordfish\n"
            f"[sluice]\nactive = {active}\nkeys = {keys}\n"
        )
        new.chmod(mode)
        new.rename(self.path)
        self.path.touch()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_keys_come_from_the_key_manager_once(place):
    for _ in range(3):
        place.clock.now += 5
        assert (place.ring.active(), place.ring.secret("k1"), place.ring.secret("k2")) == ("k1", b"1" * 32, b"2" * 32)
    assert place.manager.asked == 2
    assert place.ring.problem == ""


def test_a_line_that_was_added_is_a_rotation_and_fetches_the_new_key_only(place):
    assert place.ring.active() == "k1"
    place.write("k3", k1=place.one, k3=place.manager.add(b"3" * 32))
    place.clock.now += 1
    assert (place.ring.active(), place.ring.secret("k3"), place.manager.asked) == ("k3", b"3" * 32, 3)
    with pytest.raises(MissingKey, match="no key `k2`"):
        place.ring.secret("k2")


def test_a_key_manager_that_is_away_is_asked_again_after_a_while_and_takes_no_key_away(place):
    place.manager.away = True
    with pytest.raises(MissingKey, match="connection refused"):
        place.ring.active()
    asked = place.manager.asked
    place.manager.away = False
    place.clock.now += 5
    with pytest.raises(MissingKey):
        place.ring.secret("k1")
    assert place.manager.asked == asked
    place.clock.now += 15
    assert place.ring.active() == "k1"
    place.manager.away = True
    place.write("k1", k1=place.one, k2=place.two, k3=str(uuid.uuid4()))
    place.clock.now += 1
    assert (place.ring.active(), place.ring.secret("k2")) == ("k1", b"2" * 32)
    assert "key `k3`" in place.ring.problem


def test_a_lost_secret_affects_only_its_key(place):
    place.write("k1", k1=place.one, k2="00000000-0000-0000-0000-000000000000")
    assert place.ring.secret("k1") == b"1" * 32
    with pytest.raises(MissingKey, match="key `k2`: ManagedObjectNotFoundError"):
        place.ring.secret("k2")


def test_an_invalid_secret_id_affects_only_its_key(place):
    place.write("k1", k1=place.one, k2="no-uuid")
    assert place.ring.secret("k1") == b"1" * 32
    with pytest.raises(MissingKey, match="key `k2`: expected the id of a secret that is an AES key"):
        place.ring.secret("k2")


def test_the_same_refusal_is_logged_once_whatever_the_request_was_called(place, caplog):
    place.manager.away = True
    with caplog.at_level(logging.ERROR, "sluice_filters"):
        for _ in range(3):
            assert place.ring.identifiers() == ()
            place.clock.now += 20
    assert place.manager.asked == 6
    assert len(caplog.messages) == 1
    assert "connection refused (HTTP 401); " in caplog.messages[0]


def test_a_key_manager_that_says_nothing_is_waited_for_once_and_what_comes_late_is_used(place, monkeypatch):
    monkeypatch.setattr(CastellanKeys, "limit", 0.05)
    place.manager.silence = threading.Event()
    for _ in range(3):
        with pytest.raises(MissingKey, match=r"no answer within 0\.05 s"):
            place.ring.active()
        place.clock.now += 20
    assert place.manager.asked == 1
    place.manager.silence.set()
    place.ring._asking.join()
    assert (place.ring.active(), place.ring.secret("k2"), place.ring.problem) == ("k1", b"2" * 32, "")
    assert place.manager.asked == 2


def test_a_secret_of_another_length_is_no_key(place):
    place.write("k1", k1=place.manager.add(b"short"), k2=place.two)
    with pytest.raises(MissingKey, match="key `k1` is not of 32 bytes"):
        place.ring.secret("k1")
    with pytest.raises(MissingKey, match="active key `k1` is not among the keys"):
        place.ring.active()


def test_an_active_key_that_is_not_listed_is_said_so(place):
    place.write("k9", k1=place.one)
    with pytest.raises(MissingKey, match="active key `k9` is not among the keys"):
        place.ring.active()
    assert place.ring.secret("k1") == b"1" * 32


def test_a_configuration_that_others_may_read_is_refused_since_it_holds_a_password(place):
    place.write("k1", mode=0o644, k1=place.one)
    with pytest.raises(MissingKey, match="mode 0644"):
        place.ring.active()


@pytest.mark.parametrize("line", ["password swordfish", "[sluice]\nkeys = no colon, swordfish", "\x00swordfish"])
def test_a_configuration_that_makes_no_sense_is_named_without_its_password(place, line):
    place.path.write_text(f"[key_manager]\n{line}\n")
    with pytest.raises(MissingKey) as error:
        place.ring.active()
    assert str(place.path) in str(error.value)
    assert "swordfish" not in str(error.value) + place.ring.problem


def test_a_key_manager_that_does_not_exist_is_a_reason(place):
    text = place.path.read_text().replace(MANAGER, "no.such.Manager")
    place.path.write_text(text)
    with pytest.raises(MissingKey, match="ModuleNotFoundError"):
        open_keys({"sluice_key_manager_conf": str(place.path)}, "sluice_").active()


def test_a_hosts_option_opens_the_manager_that_the_configuration_names(place):
    """Castellan makes a manager of the named class, which has no secrets yet."""
    with pytest.raises(MissingKey, match="`k1`"):
        open_keys({"key_manager_conf": str(place.path)}).active()


def test_objects_are_encrypted_and_read_with_such_keys(place):
    bound = Encryption.bound(HostServices(place.ring))
    stored, (record,) = encode([bound()], b"some bytes", Hint(10))
    assert record["r"]["key"] == "k1"
    assert run(bound().decoder(record["r"]), [stored]) == b"some bytes"
