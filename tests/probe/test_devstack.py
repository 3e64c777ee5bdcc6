"""DevStack's phases with Sluice's plugin, by DevStack's own function library, in a scratch root.

Given Keystone, Swift, Redis and RabbitMQ of a machine that DevStack stacks twice, Sluice serves; then it is unstacked
and cleaned, and no file of Sluice remains. The tests run in this order.
"""

import json
import time

import pytest
from tests.support.devstack.scratch import DevStackRoot

TEXT = b"".join(b"%d: the quick brown fox jumps over the lazy dog\n" % n for n in range(20_000))
MEMBER = "devstack"
VOLUME = "11111111-2222-3333-4444-555555555555"
SERVICES = {
    ("stack", "sluice-agent"),
    ("stack", "sluice-actors"),
    ("stack", "sluice-api"),
    ("stack", "sluice-motifs"),
    ("root", "sluice-konnector"),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    with DevStackRoot(tmp_path_factory.mktemp("devstack")) as made:
        yield made


@pytest.fixture(scope="module")
def stacked(root):
    """The root after two runs, and Swift's configuration after each."""
    root.stack("stack")
    first = read_confs(root)
    root.stack("again")
    return root, first, read_confs(root)


def read_confs(root):
    """Every line of Swift's configuration, with its file."""
    return root.run("grep", "--recursive", "", "/etc/swift", "--include=*.conf", user="root").splitlines()


def sluice(root, *words, cloud="devstack-admin"):
    """The output of `openstack sluice …`."""
    return json.loads(root.run("openstack", "sluice", *words, "-f", "json", cloud=cloud))


def store(root, container):
    """The stored bytes of an object that the member uploads; a download must return the uploaded bytes."""
    (root.stack_dir / "upload").write_bytes(TEXT)
    before = set((root.stack_dir / "data" / "swift").rglob("*.data"))
    root.run("openstack", "container", "create", container, cloud=MEMBER)
    root.run("openstack", "object", "create", container, "/opt/stack/upload", "--name", "text", cloud=MEMBER)
    root.run("openstack", "object", "save", container, "text", "--file", "/opt/stack/logs/saved", cloud=MEMBER)
    assert (root.stack_dir / "logs" / "saved").read_bytes() == TEXT
    (stored,) = set((root.stack_dir / "data" / "swift").rglob("*.data")) - before
    return stored.stat().st_size


def attach(root, *words):
    """Attach a motif; a Redis without keys grants no leases for ten seconds."""
    end = time.monotonic() + 60
    while True:
        try:
            sluice(root, "motif", "attach", *words[:2], "--param", *words[2:])
            return
        except AssertionError as error:
            if "leases of motifs may be forgotten" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(1)


def konnector(root, *words):
    """A response of this machine's konnector."""
    socket = "/var/run/sluice/api.sock"
    return root.run("curl", "--silent", "--fail-with-body", "--unix-socket", socket, *words, user="root")


def our_programs(root):
    """User → Sluice's programs that run as this user."""
    found = set()
    for user, words in root.processes().values():
        found |= {(user, word.rpartition("/")[2]) for word in words[:3] if "/bin/sluice-" in word}
    return found


def test_services_run_as_the_user_stack_and_the_konnector_as_root(stacked):
    root, _, _ = stacked
    assert our_programs(root) == SERVICES
    (node,) = sluice(root, "node", "list")
    assert node["State"] == "ok", node
    assert json.loads(konnector(root, "http://konnector/health"))["status"] == "ok"


def test_a_second_run_changes_nothing_of_swifts_configuration(stacked):
    _, first, second = stacked
    assert second == first
    (pipeline,) = [line for line in second if line.startswith("/etc/swift/proxy-server.conf:pipeline = ")]
    names = pipeline.split()
    assert names.count("sluice") == names.count("sluice-reads") == 1
    assert names.index("sluice-reads") < names.index("slo") < names.index("symlink") < names.index("sluice")


def test_local_conf_changes_options_of_sluice(stacked):
    root, _, _ = stacked
    assert "log_level = debug" in root.run("cat", "/etc/sluice/api.conf")


def test_secrets_are_for_their_owner_alone(stacked):
    root, _, _ = stacked
    readable = root.run("find", "/etc/sluice", "-type", "f", "-perm", "/077", "!", "-name", "*.crt", user="root")
    assert readable == ""


def test_a_policy_made_through_keystones_catalogue_compresses_what_is_stored(stacked):
    root, _, _ = stacked
    made = sluice(root, "policy", "create", "FOR TENANT demo DO SET compression", "--wait", "30")
    assert store(root, "proxied") < len(TEXT) / 2, made


def test_a_storage_node_compresses_inside_its_disk_files(stacked):
    root, _, _ = stacked
    made = sluice(
        root, "policy", "create", "FOR CONTAINER demo/disks DO SET compression ON STORAGE_NODE", "--wait", "30"
    )
    assert store(root, "disks") < len(TEXT) / 2, made


def test_a_contracted_object_is_made_again_by_the_motif_daemon_of_the_node(stacked):
    root, _, _ = stacked
    for container in ("source", "made"):
        store(root, container)
    account = "AUTH_" + root.run("openstack", "project", "show", "demo", "-f", "value", "-c", "id").strip()
    made = f"{account}/made/text"
    attach(root, made, "concat", f"of={account}/source/text")
    root.run("openstack", "sluice", "motif", "contract", made, "--wait", "30")
    assert sluice(root, "motif", "show", made)["contracted"]
    root.run("openstack", "object", "save", "made", "text", "--file", "/opt/stack/logs/made", cloud=MEMBER)
    assert (root.stack_dir / "logs" / "made").read_bytes() == TEXT


def test_a_member_may_set_a_self_service_filter_for_a_container_of_its_own(stacked):
    root, _, _ = stacked
    sluice(root, "policy", "create", "FOR CONTAINER demo/own DO SET compression", "--wait", "30", cloud=MEMBER)


def test_horizon_finds_the_panels(stacked):
    root, _, _ = stacked
    local = root.stack_dir / "horizon" / "openstack_dashboard" / "local"
    for folder in ("enabled", "local_settings.d"):
        links = list((local / folder).glob("_*.py"))
        assert links
        for link in links:
            root.run("test", "-r", f"/opt/stack/horizon/openstack_dashboard/local/{folder}/{link.name}")


def test_unstack_detaches_volumes_and_ends_every_process_of_sluice(stacked):
    root, _, _ = stacked
    (root.stack_dir / "volume").write_bytes(bytes(16 << 20))
    connection = {"driver_volume_type": "local", "data": {"device_path": "/opt/stack/volume"}}
    attach = json.dumps({"project": "demo", "connection": connection, "export": "nbd"})
    konnector(root, "-X", "PUT", "--data", attach, f"http://konnector/volumes/{VOLUME}")
    assert [words for _, words in root.processes().values() if words[0].endswith("nbdkit")]
    root.stack("unstack")
    left = [words for _, words in root.processes().values() if "nbdkit" in words[0] or "sluice" in " ".join(words[1:])]
    assert left == []


def test_clean_leaves_swift_as_it_was_and_no_file_of_sluice(stacked):
    root, _, _ = stacked
    root.stack("clean")
    assert root.run("diff", "--recursive", "/opt/stack/swift-before", "/etc/swift") == ""
    places = ("/etc", "/var", "/run", "/usr/local", "/home", "/opt/stack/data", "/opt/stack/horizon")
    found = root.run("find", *places, "-xdev", "-name", "*sluice*", "!", "-path", "/run/units/*", user="root")
    assert found == ""
    assert root.run("redis-cli", "--scan", "--pattern", "sluice:*") == ""
