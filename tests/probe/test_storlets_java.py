"""Java storlets: Storlets' own Java daemon in Sluice's containers."""

import subprocess
from pathlib import Path

import pytest
from tests.support.sandbox.docker import Bench
from tests.support.sandbox.storlets import python_storlet, through

from sluice_filters.api import FilterError
from sluice_sandbox.docker import image
from sluice_sandbox.files import cache_folder
from sluice_sandbox.limits import Limits
from sluice_sandbox.storlets import java

SOURCE = Path(__file__).parents[2] / "filters" / "storlets" / "java" / "Identity.java"
DATA = bytes(range(256)) * 4096
MISBEHAVIOUR = {
    "throws": ('throw new StorletException("no");', "failed: it threw an exception or was killed"),
    "throws midway": (
        "try { outputs.get(0).hashCode(); ((StorletObjectOutputStream) outputs.get(0)).getStream().write(piece); }"
        ' catch (IOException error) { } throw new IllegalStateException("no");',
        "failed: it threw an exception or was killed",
    ),
    "ends the process": ("System.exit(0);", "failed: it threw an exception or was killed"),
    "loops": ("while (true) { }", "did nothing for 2 s"),
    "eats memory": ("java.util.List<byte[]> held = new ArrayList<>(); while (true) held.add(new byte[1 << 20]);", ""),
    "ends before its input": ("", "ended before its input"),
}


@pytest.fixture(scope="module")
def jars():
    return java.build(cache_folder())


@pytest.fixture(scope="module")
def bench(jars):
    with Bench.open(image.JAVA, jars) as opened:
        yield opened


@pytest.fixture(scope="module")
def team(bench):
    return bench.team(Limits(patience=2.0))


def compiled(bench, jars, folder, keyword, source):
    path, jar = folder / "Identity.java", folder / "storlet.jar"
    path.write_text(source)
    classes = folder / "classes"
    javac = ["javac", "-nowarn", "--release", java.RELEASE, "-cp", f"{jars}/*", "-d", str(classes), str(path)]
    subprocess.run(javac, check=True, capture_output=True)
    subprocess.run(["jar", "--create", "--file", str(jar), "-C", str(classes), "."], check=True, capture_output=True)
    return bench.upload(keyword, jar.read_bytes(), "sluice.Identity", "java", reverse=True)


@pytest.fixture(scope="module")
def good(bench, jars, team, tmp_path_factory):
    upload = compiled(bench, jars, tmp_path_factory.mktemp("java"), "good", SOURCE.read_text())
    return bench.filters(team, [upload])["good"]


@pytest.mark.parametrize("size", [0, 1, 100_000, len(DATA)])
def test_binary_data_come_through_a_java_storlet(good, size):
    assert through(good(), DATA[:size]) == DATA[:size]


def test_java_and_python_storlets_are_neighbours(bench, team, good):
    code = python_storlet("while data := source.read(65536): target.write(data)")
    python = bench.filters(team, [bench.upload("python", code, "storlet.Storlet", reverse=True)])["python"]
    for steps in ([good(), python()], [python(), good()], [good(), python(), good()], [good(), good()]):
        assert through(steps, DATA) == DATA


@pytest.mark.parametrize("what", MISBEHAVIOUR)
def test_a_misbehaving_java_storlet_harms_its_own_request_only(bench, jars, team, good, tmp_path, what):
    body, reason = MISBEHAVIOUR[what]
    source = SOURCE.read_text()
    begin, end = source.index("        try (InputStream in"), source.index("    }\n}")
    source = source[:begin] + f"        if (piece != null) {{ {body} }}\n" + source[end:]
    bad = bench.filters(team, [compiled(bench, jars, tmp_path, "bad", source)])["bad"]
    for _ in range(2):
        with pytest.raises(FilterError, match=f"`bad`.*{reason}"):
            through(bad(), DATA)
        assert through(good(), DATA) == DATA


def test_a_java_daemon_without_work_ends_and_the_container_after_it(bench, jars, tmp_path, eventually):
    team = bench.team(Limits(idle=0.5), node="idle")
    good = bench.filters(team, [compiled(bench, jars, tmp_path, "good", SOURCE.read_text())])["good"]
    assert through(good(), DATA) == DATA
    container = team.container("AUTH_test")

    def gone():
        with container._engine() as client:
            return not client.containers.list(all=True, sparse=True, filters={"name": container.name})

    eventually(gone, limit=60)
    assert through(good(), DATA) == DATA
