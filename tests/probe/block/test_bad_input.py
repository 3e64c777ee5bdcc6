"""Invalid requests are refused with the reason and without effect, and no secret is readable for other users."""

import configparser
import contextlib
import io
import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.support.block.cinder import ELSEWHERE, LIMIT, attach, detach, login
from tests.support.block.volumes import VolumeOwner, konnector, volume_cluster

from sluice_aio.cinder.konnector import ensure_certificate, state_folder
from sluice_aio.keystone import seed
from sluice_block.datapath.records import StateFiles
from sluice_client import ApiError


@pytest.fixture(scope="module")
def cluster():
    with volume_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster, eventually):
    with VolumeOwner(cluster, seed.ADMIN) as found:
        eventually(lambda: list(found.client.pools()), limit=LIMIT)
        yield found


@pytest.fixture
def alice(cluster, admin):
    with VolumeOwner(cluster, "alice") as found:
        yield found


@pytest.fixture
def encrypted(admin, alice):
    """A volume that will be encrypted."""
    policy = admin.client.create_policy("FOR TENANT acme DO SET encryption", wait=10)["id"]
    volume = alice.create()
    alice.attach(volume)
    yield volume
    admin.client.delete_policy(policy)


def refusal(call, *given, **named):
    """Status and reason."""
    with pytest.raises(ApiError) as caught:
        call(*given, **named)
    return caught.value.status, str(caught.value)


def everything(admin):
    """All objects that a refused call may have created."""
    client, cinder = admin.client, admin.cinder
    made = [one.id for one in cinder.volumes.list(search_opts={"all_tenants": 1})]
    return made, [one["id"] for one in client.volume_operations()], [one["id"] for one in client.policies()]


@pytest.mark.parametrize(
    ("size", "wanted", "status", "reason"),
    [
        (0, {}, 400, "`size` is `0`, expected a whole number of GiB from 1"),
        (-1, {}, 400, "`size` is `-1`"),
        (10**18, {}, 400, "`size` is `1000000000000000000`"),
        (1, {"name": "x" * 256}, 400, "`name` has 256 characters"),
        (1, {"name": "data "}, 400, "`name` is `data `, expected no blanks around it"),
        (1, {"tier": "gold", "iops": 5}, 400, "both `tier` and `iops` are given, expected a tier or demands"),
        (1, {"tier": " "}, 400, "`tier` is empty"),
        (1, {"resiliency": 2, "fabric": "nbd"}, 409, "no pool meets `resiliency`"),
        (1, {"bandwidth": "fast"}, 400, "`bandwidth`"),
        (1, {"fabric": "scsi"}, 400, "`fabric` is `scsi`, expected nbd"),
    ],
)
def test_a_volume_that_makes_no_sense_is_refused_and_not_made(admin, alice, size, wanted, status, reason):
    before = everything(admin)
    found = refusal(alice.client.create_volume, size, **wanted)
    assert (found[0], reason in found[1]) == (status, True), found
    assert everything(admin) == before


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("throttling WITH max_bw=-1MBps", "max_bw"),
        ("throttling WITH max_bw=0", "max_bw"),
        ("bandwidth WITH get_bw=30MBps max_get_bw=10MBps", "max_get_bw"),
        ("tier WITH resiliency=many", "resiliency"),
    ],
)
def test_a_sentence_whose_demands_contradict_is_refused_and_not_kept(admin, alice, what, reason):
    volume = alice.create()
    before = everything(admin)
    status, message = refusal(admin.client.create_policy, f"FOR VOLUME {volume} DO SET {what}")
    assert (status, reason in message) == (400, True), message
    assert everything(admin) == before


def test_a_name_with_blanks_is_one_name_everywhere(admin, alice):
    volume = alice.create(name="my  data")
    assert alice.client.volume("my  data")["id"] == volume
    policy = admin.client.create_policy('FOR VOLUME "acme/my  data" DO SET throttling WITH max_bw=3MBps')
    assert alice.client.volume(volume)["rates"] == {"max_bw": 3e6}
    admin.client.delete_policy(policy["id"])


def test_a_volume_is_attached_once_and_stays_while_it_is_mounted(alice, tmp_path):
    volume = alice.create()
    device = alice.attach(volume)
    status, reason = refusal(alice.client.attach_volume, volume, alice.layout.node)
    assert (status, "is attached to node `node1` already" in reason) == (409, True), reason
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    subprocess.run(["mount", device, tmp_path], check=True)
    try:
        status, reason = refusal(alice.client.detach_volume, volume)
        assert (status, f"`{device}` is in use: mounted on `{tmp_path}`" in reason) == (409, True), reason
        (tmp_path / "file").write_text("still there")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_volume_in_error_is_not_attached(admin, alice):
    volume = alice.create()
    admin.cinder.volumes.reset_state(volume, "error")
    status, reason = refusal(alice.client.attach_volume, volume, alice.layout.node)
    assert (status, "the volume is `error` in cinder, expected `available`" in reason) == (409, True), reason


def test_a_tier_whose_type_was_deleted_makes_no_volumes_until_it_is_mended(admin, alice):
    made = admin.client.collection("/volumes/tiers").create({"name": "lost", "iops": 100})
    admin.cinder.volume_types.delete(made["type"])
    before = everything(admin)
    status, reason = refusal(alice.client.create_volume, 1, tier="lost")
    assert (status, "the volume type of tier `lost` is gone from cinder" in reason) == (409, True), reason
    assert everything(admin) == before
    admin.client.mend_tier("lost")
    volume = alice.create(tier="lost")
    assert alice.client.volume(volume)["tier"] == "lost"


@contextlib.contextmanager
def konnector_options(cluster, section, **options):
    """The konnector with other options while this is entered."""
    path = cluster.layout.configs / "konnector.conf"
    before = path.read_text()
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(before)
    parser[section].update(options)
    changed = io.StringIO()
    parser.write(changed)
    try:
        path.write_text(changed.getvalue())
        cluster.restart("konnector")
        yield
    finally:
        path.write_text(before)
        cluster.restart("konnector")


@pytest.fixture
def attached_or_reason(alice):
    """Attaches a volume: its device, or the status and the reason."""
    volume = alice.create()

    def ask():
        try:
            return alice.attach(volume)
        except ApiError as error:
            return f"{error.status}: {error}"

    return ask


def test_a_konnector_that_lost_its_certificate_is_not_spoken_to(cluster, attached_or_reason, tmp_path, eventually):
    certificate, key = tmp_path / "crt", tmp_path / "key"
    ensure_certificate(certificate, key)
    with konnector_options(cluster, "konnector", tls_cert=str(certificate), tls_key=str(key)):
        lost = re.compile("^503: .*has a certificate that `konnector_ca_file` does not vouch for")
        eventually(lambda: lost.search(attached_or_reason()), limit=LIMIT)
    eventually(lambda: attached_or_reason().startswith("/dev/loop"), limit=LIMIT)


def test_a_konnector_that_lost_its_password_says_so(cluster, attached_or_reason, eventually):
    with konnector_options(cluster, "keystone_authtoken", password="another"):
        lost = re.compile("^503: .*keystone does not let the konnector's user ask about tokens")
        eventually(lambda: lost.search(attached_or_reason()), limit=LIMIT)
    eventually(lambda: attached_or_reason().startswith("/dev/loop"), limit=LIMIT)


def test_an_encrypted_volume_whose_key_is_gone_is_attached_when_it_is_back(cluster, alice, encrypted, eventually):
    alice.detach(encrypted)
    keys = cluster.layout.volume_key_file
    away = keys.rename(keys.with_suffix(".away"))
    try:
        cluster.restart("api")  # values that were read stay
        status, reason = refusal(alice.client.attach_volume, encrypted, alice.layout.node)
        assert (status, f"the passphrase of volume `{encrypted}` cannot be made now" in reason) == (503, True), reason
        assert alice.client.volume(encrypted)["status"] == "available"
    finally:
        away.rename(keys)

    def attached():
        with contextlib.suppress(ApiError):
            return alice.attach(encrypted)

    eventually(attached, limit=LIMIT)


def readable_files(kind):
    """Path → content of each process's ``cmdline`` or ``environ``."""
    found = {}
    for path in Path("/proc").glob(f"[0-9]*/{kind}"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            found[str(path)] = path.read_bytes()
    return found


def test_no_secret_is_on_a_command_line_or_in_a_log(cluster, admin, alice, encrypted):
    layout = cluster.layout
    cinder = login(layout, "alice")
    other = cinder.volumes.get(alice.create())
    attachment = attach(cinder, other, ELSEWHERE)  # over TCP, with a key
    connection = attachment.connection_info
    konnector(layout).attach(other.id, {"project": "acme", "connection": connection, "attachment": attachment.id})
    (passphrase,) = [one.secret for one in StateFiles(state_folder(layout)).read_all() if one.volume == encrypted]
    keys = json.loads(layout.volume_key_file.read_text())["keys"].values()
    passwords = [path.read_text().strip() for path in (layout.data / "keystone").glob("*.password")]
    tokens = [cluster.token, admin.cinder.client.session.get_token(), cinder.client.session.get_token()]
    secrets = [passphrase, connection["auth_password"], *keys, *passwords, *tokens]
    assert len(secrets) >= 8
    assert all(len(one) > 20 for one in secrets)
    commands = readable_files("cmdline")
    assert any(encrypted.encode() in one for one in commands.values())
    logs = {str(path): path.read_bytes() for path in layout.root.rglob("*.log")}
    assert any(encrypted.encode() in one for one in logs.values())
    for place, content in (commands | readable_files("environ") | logs).items():
        shown = [number for number, one in enumerate(secrets) if one.encode() in content]
        assert not shown, f"secrets {shown} are in `{place}`"
    for place, content in logs.items():
        assert not re.search(rb"gAAAAA[\w-]{60}", content), f"a token of somebody is in `{place}`"
    konnector(layout).detach(other.id)
    detach(cinder, other, attachment)
