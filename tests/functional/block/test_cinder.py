"""Cinder with Sluice's NBD driver for its users, and the exports as a consumer's machine reads and writes them."""

import contextlib
import itertools
import re
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest
import requests
from cinderclient import exceptions
from tests.support.block.cinder import (
    ELSEWHERE,
    GIB,
    HERE,
    LIMIT,
    MIB,
    attach,
    detach,
    export_process,
    login,
    read,
    run,
    size,
    wait_for,
    wait_gone,
    write,
)

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp
from sluice_core.messages.events import VOLUME_CREATED, VOLUME_EXTENDED
from sluice_core.store.events import FIRST, events_after
from sluice_core.store.store import Store

pytestmark = pytest.mark.probe

CONTENT = secrets.token_bytes(3 * MIB)


def restart_with(cluster, section, line):
    """Restart Cinder with one more option; return the earlier cinder.conf."""
    config = cluster.layout.data / "cinder" / "cinder.conf"
    before = config.read_text()
    config.write_text(before.replace(f"[{section}]", f"[{section}]\n{line}", 1))
    cluster.restart("cinder")
    return before


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        with Cluster(Layout.free(folder), {"cinder", "redis", "actors"}, setup=Setup(auth=KEYSTONE)) as running:
            # so that the log is as verbose as possible
            restart_with(running, "DEFAULT", "debug = true")
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def admin(cluster):
    return login(cluster.layout, seed.ADMIN)


@pytest.fixture(scope="module")
def cinder(cluster):
    return login(cluster.layout, "alice")


@pytest.fixture
def volumes(cinder, cluster):
    """Creates volumes, and removes them afterwards, attached or not."""
    made = []

    def create(gib=1, **options):
        volume = cinder.volumes.create(gib, **options)
        made.append(volume)
        return wait_for(cinder.volumes, volume, "available")

    yield create
    for volume in made:
        for attachment in cinder.attachments.list(search_opts={"volume_id": volume.id}):
            cinder.attachments.delete(attachment.id)
        for snapshot in cinder.volume_snapshots.list(search_opts={"volume_id": volume.id}):
            snapshot.delete()
            wait_gone(cinder.volume_snapshots, snapshot)
        wait_for(cinder.volumes, volume, "available", "error")
        volume.delete()
        wait_gone(cinder.volumes, volume)
        assert export_process(cluster.layout, volume) is None


@pytest.fixture(scope="module")
def types(admin):
    """Creates volume types of the NBD back end with further extra specs."""

    def create(name, **specs):
        made = admin.volume_types.create(name)
        made.set_keys({"volume_backend_name": "nbd"} | specs)
        return made

    return create


def volume_file(cluster, name, pool="fast"):
    return cluster.layout.data / "cinder" / "nbd" / pool / name


def name_of(volume):
    return f"volume-{volume.id}"


def capabilities(admin):
    """``backend#pool`` → the last report of its driver."""
    pools = [one.to_dict() for one in admin.pools.list(detailed=True)]
    return {one["name"].partition("@")[2]: one["capabilities"] for one in pools}


def read_detached(cinder, volume):
    attachment = attach(cinder, volume)
    found = read(attachment.connection_info, len(CONTENT)), size(attachment.connection_info)
    detach(cinder, volume, attachment)
    return found


def test_what_cinder_notifies_becomes_events(volumes, cluster, cinder, eventually):
    """First: a project may have fifty events logged at once, and other tests here cause more."""
    with contextlib.closing(Store(cluster.redis_url)) as store:
        eventually(lambda: any(host.get("cinder") for host in store.hosts().values()), limit=30)
        volume = volumes(name="data 1")
        cinder.volumes.extend(volume, 2)
        wait_for(cinder.volumes, volume, "available")

        def told():
            found = store.run(events_after(store.keys, FIRST, 1000)).events
            return {one.kind: one.text for one in found if one.subject == volume.id}

        eventually(lambda: {VOLUME_CREATED, VOLUME_EXTENDED} <= told().keys(), limit=30)
        assert told()[VOLUME_EXTENDED] == f"volume `{volume.id}` (`data 1`) was extended, 2 GiB"


def test_both_pools_report_their_space_and_their_capabilities(admin):
    pools = capabilities(admin)
    fast, slow = pools["nbd#fast"], pools["nbd#slow"]
    assert fast["storage_protocol"] == slow["storage_protocol"] == "nbd"
    assert slow["total_capacity_gb"] == 10
    assert 0 < slow["free_capacity_gb"] <= 10 < fast["total_capacity_gb"]
    assert fast["QoS_support"] is fast["thin_provisioning_support"] is True
    assert int(fast["sluice:bandwidth"]) > int(slow["sluice:bandwidth"])
    assert "nfs#nfs" in pools


def test_a_capability_in_the_extra_specs_chooses_the_pool(volumes, types, admin):
    types("slow-by-capability", **{"capabilities:sluice:bandwidth": "<= 100"})
    volume = volumes(volume_type="slow-by-capability")
    assert getattr(admin.volumes.get(volume.id), "os-vol-host-attr:host").endswith("@nbd#slow")


def test_a_reported_size_counts_what_is_promised(volumes, types, admin, eventually):
    types("in-slow", pool_name="slow")
    volumes(7, volume_type="in-slow")

    def provisioned():
        return capabilities(admin)["nbd#slow"]["provisioned_capacity_gb"] == 7

    eventually(provisioned, limit=10)


def test_a_full_pool_refuses_a_volume_and_says_why(volumes, types, cinder, admin):
    types("in-full", pool_name="slow")
    volumes(15, volume_type="in-full")  # of 10 GiB, which may be overcommitted twice
    refused = cinder.volumes.create(15, volume_type="in-full")
    wait_for(cinder.volumes, refused, "error")
    said = [one.user_message for one in cinder.messages.list() if one.resource_uuid == refused.id]
    assert any("Could not find any available weighted backend" in text for text in said), said
    refused.delete()
    wait_gone(cinder.volumes, refused)


def test_clones_and_snapshots_have_the_bytes_and_may_be_larger(volumes, cinder):
    source = volumes()
    attachment = attach(cinder, source)
    write(attachment.connection_info, CONTENT)
    snapshot = cinder.volume_snapshots.create(source.id, force=True)
    wait_for(cinder.volume_snapshots, snapshot, "available")
    write(attachment.connection_info, b"\xff" * len(CONTENT))
    detach(cinder, source, attachment)
    assert read_detached(cinder, volumes(snapshot_id=snapshot.id)) == (CONTENT, GIB)
    assert read_detached(cinder, volumes(2, snapshot_id=snapshot.id)) == (CONTENT, 2 * GIB)
    clone = volumes(3, source_volid=source.id)
    assert read_detached(cinder, clone) == (b"\xff" * len(CONTENT), 3 * GIB)


def test_volumes_occupy_what_was_written_and_their_files_are_their_users_own(volumes, cinder, cluster):
    volume = volumes()
    attachment = attach(cinder, volume)
    write(attachment.connection_info, CONTENT)
    clone = volumes(source_volid=volume.id)
    for one in (volume, clone):
        found = volume_file(cluster, name_of(one)).stat()
        assert found.st_size == GIB
        assert len(CONTENT) <= found.st_blocks * 512 < 2 * len(CONTENT)
        assert stat.S_IMODE(found.st_mode) == 0o600


def test_a_snapshot_of_a_written_volume_is_of_one_moment(volumes, cinder, cluster):
    """A writer stores each number far in the volume, then at its beginning: at no moment do they differ by two."""
    volume, far = volumes(), 160 * MIB
    attachment = attach(cinder, volume)
    uri = attachment.connection_info["uri"]
    write(attachment.connection_info, secrets.token_bytes(MIB) * (far // MIB))  # so that a copy takes time
    over, written = threading.Event(), []

    def keep_writing(stdin):
        for number in itertools.count():
            if over.is_set():
                return
            value = number % 256
            stdin.write(f"write -q -P {value} {far} 4096\nwrite -q -P {value} 0 4096\n")
            stdin.flush()
            written.append(number)

    with subprocess.Popen(
        ["qemu-io", "-f", "raw", uri], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        writer = threading.Thread(target=keep_writing, args=(process.stdin,))
        writer.start()
        try:
            snapshot = cinder.volume_snapshots.create(volume.id, force=True)
            wait_for(cinder.volume_snapshots, snapshot, "available")
        finally:
            over.set()
            writer.join()
            process.stdin.close()
    assert process.returncode == 0
    assert len(written) > 100
    with volume_file(cluster, f"snapshot-{snapshot.id}").open("rb") as file:
        near = file.read(1)[0]
        file.seek(far)
        assert (file.read(1)[0] - near) % 256 in (0, 1)


def test_a_volume_extended_while_attached_is_larger_for_new_connections(volumes, cinder):
    volume = volumes()
    attachment = attach(cinder, volume)
    cinder.volumes.extend(volume, 2)
    assert wait_for(cinder.volumes, volume, "in-use").size == 2
    assert size(attachment.connection_info) == 2 * GIB


def test_a_retype_while_attached_changes_the_type_and_not_the_export(volumes, cinder, cluster, types, admin):
    limited = types("limited")
    specs = admin.qos_specs.create("limits", {"consumer": "back-end", "total_bytes_sec": "3000000"})
    admin.qos_specs.associate(specs.id, limited.id)
    volume = volumes()
    attachment = attach(cinder, volume)
    process = export_process(cluster.layout, volume)
    cinder.volumes.retype(volume, "limited", "never")
    assert wait_for(cinder.volumes, volume, "in-use").volume_type == "limited"
    assert export_process(cluster.layout, volume) == process
    assert size(attachment.connection_info) == GIB


def test_a_second_attachment_is_refused_and_the_first_goes_on(volumes, cinder, cluster):
    volume = volumes()
    attachment = attach(cinder, volume)
    process = export_process(cluster.layout, volume)
    with pytest.raises(exceptions.BadRequest, match="must be available or downloading"):
        attach(cinder, volume, ELSEWHERE)
    # the older call reserves nothing, so the driver refuses it
    with pytest.raises(exceptions.ClientException):
        cinder.volumes.initialize_connection(volume, ELSEWHERE)
    assert "is exported for another connector until its attachment is deleted" in cluster.log("cinder")
    assert export_process(cluster.layout, volume) == process
    assert size(attachment.connection_info) == GIB


def test_asking_again_gives_the_same_export(volumes, cinder, cluster):
    volume = volumes()
    attachment = attach(cinder, volume)
    process = export_process(cluster.layout, volume)
    again = cinder.volumes.initialize_connection(volume, HERE)
    assert again["data"]["uri"] == attachment.connection_info["uri"]
    assert export_process(cluster.layout, volume) == process


def test_the_end_of_an_attachment_ends_its_process_although_a_client_is_connected(volumes, cinder, cluster):
    volume = volumes()
    attachment = attach(cinder, volume)
    process = export_process(cluster.layout, volume)
    with subprocess.Popen(
        ["qemu-io", "-f", "raw", attachment.connection_info["uri"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as client:
        client.stdin.write("write 0 4096\n")
        client.stdin.flush()
        assert any("wrote 4096" in line for line in client.stdout)
        detach(cinder, volume, attachment)
        assert not process.alive()
        client.communicate()
    assert not list((cluster.layout.run / "nbd").glob(f"{volume.id}.*"))


def test_a_read_only_attachment_takes_no_writes(volumes, cinder):
    volume = volumes()
    made = cinder.attachments.create(volume.id, None, mode="ro")
    connection = cinder.attachments.update(made["id"], HERE).connection_info
    with pytest.raises(subprocess.CalledProcessError):
        write(connection, CONTENT)
    assert read(connection, 4096) == bytes(4096)


def test_over_tcp_an_export_wants_the_key_of_its_attachment(volumes, cinder, cluster):
    volume = volumes()
    attachment = attach(cinder, volume, ELSEWHERE)
    connection = attachment.connection_info
    assert re.fullmatch(rf"nbds://{volume.id}@127\.0\.0\.1:\d+/{name_of(volume)}", connection["uri"])
    assert re.fullmatch(r"[0-9a-f]{64}", connection["auth_password"])
    write(connection, CONTENT)
    assert read(connection, len(CONTENT)) == CONTENT
    without = [connection["uri"], connection["uri"].replace("nbds://", "nbd://")]
    for uri in without:
        with pytest.raises(subprocess.CalledProcessError):
            run("nbdinfo", uri)
    with pytest.raises(subprocess.CalledProcessError):
        size(connection | {"auth_password": secrets.token_hex(32)})
    detach(cinder, volume, attachment)
    following = attach(cinder, volume, ELSEWHERE).connection_info
    assert following["auth_password"] != connection["auth_password"]
    with pytest.raises(subprocess.CalledProcessError):
        size(following | {"auth_password": connection["auth_password"]})


def test_an_option_makes_all_exports_listen_on_tcp(volumes, cinder, cluster):
    before = restart_with(cluster, "nbd", "sluice_nbd_transport = tcp")
    try:
        volume = volumes()
        connection = attach(cinder, volume, HERE).connection_info
        assert connection["uri"].startswith("nbds://")
        assert size(connection) == GIB
    finally:
        (cluster.layout.data / "cinder" / "cinder.conf").write_text(before)
        cluster.restart("cinder")


def test_an_export_that_is_killed_is_started_again_with_its_address_and_key(volumes, cinder, cluster, eventually):
    volume = volumes()
    connection = attach(cinder, volume, ELSEWHERE).connection_info
    write(connection, CONTENT)
    killed = export_process(cluster.layout, volume)
    killed.signal(signal.SIGKILL)
    eventually(lambda: export_process(cluster.layout, volume) not in (None, killed), limit=20)
    assert read(connection, len(CONTENT)) == CONTENT


def test_exports_outlive_a_killed_cinder_and_dead_ones_come_back_with_it(volumes, cinder, cluster):
    living, dead = volumes(), volumes()
    with_living, with_dead = (attach(cinder, one, ELSEWHERE) for one in (living, dead))
    living_process, dead_process = (export_process(cluster.layout, one) for one in (living, dead))
    cluster.kill("cinder")
    write(with_living.connection_info, CONTENT)
    dead_process.signal(signal.SIGKILL)
    dead_process.wait(LIMIT)
    cluster.restart("cinder")
    assert export_process(cluster.layout, living) == living_process
    assert read(with_living.connection_info, len(CONTENT)) == CONTENT
    assert size(with_dead.connection_info) == GIB
    for volume, attachment in ((living, with_living), (dead, with_dead)):
        detach(cinder, volume, attachment)
        assert export_process(cluster.layout, volume) is None


def test_a_copy_cut_short_leaves_no_volume_and_its_source_goes_on(volumes, cinder, cluster):
    source = volumes()
    connection = attach(cinder, source).connection_info
    write(connection, secrets.token_bytes(MIB) * 512)
    clone = cinder.volumes.create(1, source_volid=source.id)
    unfinished = volume_file(cluster, f".{name_of(clone)}.new")
    end = time.monotonic() + LIMIT
    while not unfinished.exists():
        assert time.monotonic() < end
    cluster.kill("cinder")
    state = Path(f"/proc/{export_process(cluster.layout, source).pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert state == "T"
    assert unfinished.exists()
    assert not volume_file(cluster, name_of(clone)).exists()
    cluster.restart("cinder")
    assert size(connection) == GIB
    wait_for(cinder.volumes, clone, "error")
    clone.delete()
    wait_gone(cinder.volumes, clone)
    assert not unfinished.exists()


def test_an_export_that_cinder_did_not_come_to_record_gives_way_to_the_next_attachment(volumes, cinder, cluster):
    volume = volumes()
    cinder.volumes.initialize_connection(volume, HERE)  # and no further call: as after a crash
    leftover = export_process(cluster.layout, volume)
    attachment = attach(cinder, volume, ELSEWHERE)
    assert not leftover.alive()
    assert size(attachment.connection_info) == GIB


def test_a_restart_ends_exports_of_volumes_that_are_not_attached(volumes, cinder, cluster):
    volume = volumes()
    cinder.volumes.initialize_connection(volume, HERE)
    leftover = export_process(cluster.layout, volume)
    cluster.restart("cinder")
    assert not leftover.alive()


def test_a_reader_may_look_and_not_create(cluster, volumes):
    volume = volumes()
    keystone = KeystoneHttp(cluster.keystone_url)
    password, project, _ = seed.PEOPLE["rita"]
    token = keystone.login("rita", password, project)
    url = f"{cluster.layout.url('cinder')}/v3/{token.project_id}/volumes"
    headers = {"X-Auth-Token": token.id}
    listed = requests.get(url, headers=headers, timeout=LIMIT)
    assert volume.id in {one["id"] for one in listed.json()["volumes"]}
    refused = requests.post(url, json={"volume": {"size": 1}}, headers=headers, timeout=LIMIT)
    assert refused.status_code == 403


def test_a_volume_on_nfs_has_a_share_that_is_mounted(volumes, cinder, cluster, admin):
    made = admin.volume_types.create("on-nfs")
    made.set_keys({"volume_backend_name": "nfs"})
    volume = volumes(volume_type="on-nfs")
    snapshot = cinder.volume_snapshots.create(volume.id)
    wait_for(cinder.volume_snapshots, snapshot, "available")
    connection = attach(cinder, volume).connection_info
    assert (connection["driver_volume_type"], connection["format"]) == ("nfs", "qcow2")
    (file,) = Path(connection["mount_point_base"]).glob(f"*/{connection['name']}")
    assert "virtual size: 1 GiB" in run("qemu-img", "info", str(file))


def test_keys_are_in_no_log_and_on_no_command_line(volumes, cinder, cluster):
    volume = volumes()
    connection = attach(cinder, volume, ELSEWHERE).connection_info
    log = cluster.log("cinder")
    assert connection["auth_username"] in log
    assert "Connection info returned from driver" in log  # with all values except the key
    assert connection["auth_password"] not in log
    shown = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [line for line in shown if connection["auth_password"].encode() in line]
    files = list((cluster.layout.run / "nbd").iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in files if path.suffix in (".psk", ".json")} == {0o600}
    assert stat.S_IMODE((cluster.layout.run / "nbd").stat().st_mode) == 0o700


def test_what_a_cluster_leaves_after_a_crash_is_undone_by_down(volumes, cinder, cluster):
    volume = volumes()
    attachment = attach(cinder, volume)
    process = export_process(cluster.layout, volume)
    cluster.kill("cinder")
    cluster.stop()
    assert not process.alive()
    assert str(cluster.layout.root) not in Path("/proc/self/mounts").read_text()
    cluster.start()
    assert export_process(cluster.layout, volume) not in (None, process)
    assert size(attachment.connection_info) == GIB
