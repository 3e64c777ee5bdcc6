"""Building the filters: once for the same sources, completely or not at all, with reasons."""

import shutil
import threading

import pytest

from sluice_block.stack.build import FILTERS, SOURCES, BuildError, build, library


@pytest.fixture
def sources(tmp_path):
    """A copy of the sources that may be changed."""
    return shutil.copytree(SOURCES, tmp_path / "sources")


def folders(cache):
    return sorted(entry.name for entry in cache.iterdir())


def programs(folder, monkeypatch, *names):
    """Leave only these programs in the PATH."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(folder))


def test_every_filter_is_built(built):
    assert [name for name in FILTERS if not library(built, name).is_file()] == []


def test_what_was_built_is_used_again(built):
    before = library(built, "nop").stat().st_mtime_ns
    assert build(built.parent) == built
    assert library(built, "nop").stat().st_mtime_ns == before


def test_changed_sources_are_built_beside_the_old_ones(tmp_path, sources):
    first = build(tmp_path / "cache", sources)
    with open(sources / "bitrev.c", "a") as file:
        file.write("/* changed */\n")
    second = build(tmp_path / "cache", sources)
    assert folders(tmp_path / "cache") == sorted([first.name, second.name])


def test_two_that_build_at_once_get_the_same_folder(tmp_path):
    found = []
    builders = [threading.Thread(target=lambda: found.append(build(tmp_path))) for _ in range(2)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert found[0] == found[1]
    assert folders(tmp_path) == [found[0].name]


def test_a_failure_has_what_the_compiler_said_and_leaves_nothing(tmp_path, sources):
    (sources / "xor.c").write_text("int broken = undeclared;\n")
    with pytest.raises(BuildError, match="undeclared"):
        build(tmp_path / "cache", sources)
    assert folders(tmp_path / "cache") == []


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        ((), "`nbdkit` is missing.*package nbdkit$"),
        (("nbdkit", "make"), "`cc` is missing.*package gcc$"),
        (("nbdkit", "cc"), "`make` is missing.*package make$"),
    ],
)
def test_a_missing_program_is_named_with_its_package(tmp_path, monkeypatch, there, reason):
    programs(tmp_path / "bin", monkeypatch, *there)
    with pytest.raises(BuildError, match=reason):
        build(tmp_path / "cache")


def test_a_missing_header_is_named_with_its_package(tmp_path, monkeypatch):
    monkeypatch.setattr("sluice_block.stack.build.HEADER", "nbdkit-filter-that-is-away.h")
    with pytest.raises(BuildError, match="expected the Debian package nbdkit-plugin-dev"):
        build(tmp_path / "cache")
