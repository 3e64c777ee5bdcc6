"""An open of an item gets bytes and a size of the same content, even if new content replaces the item meanwhile."""

import os
from types import SimpleNamespace

import pyfuse3
import pytest
import trio

from sluice_motifs.templates.registry import load_templates
from sluice_motifs_fs.motif_files import MotifFiles
from sluice_motifs_fs.operations.motifs import MotifOperations
from sluice_motifs_fs.storage.attributes import CONTRACTED, STATE
from sluice_motifs_fs.storage.paths import SourceFolder

OPENER = SimpleNamespace(pid=1, uid=0, gid=0, umask=0)


class Mounted:
    """The operations of a mount of the working folder, without a kernel."""

    def __init__(self):
        self._folder = SourceFolder(".")
        self.files = MotifFiles(self._folder, load_templates())
        self.files.start()
        self._operations = MotifOperations(self.files, "unmounted")

    def read(self, name):
        """The bytes that an opener reads, and the size that it sees; it looks a name up again once, as Linux does."""

        async def read():
            for last in (False, True):
                found = await self._operations.lookup(pyfuse3.ROOT_INODE, name.encode(), OPENER)
                try:
                    opened = await self._operations.open(found.st_ino, os.O_RDONLY, OPENER)
                except pyfuse3.FUSEError:
                    if last:
                        raise
                else:
                    break
            content = await self._operations.read(opened.fh, 0, 1 << 20)
            await self._operations.release(opened.fh)
            return content, found.st_size

        return trio.run(read)

    def look_up(self, name):
        """The inode and the size that a name shows."""
        found = trio.run(self._operations.lookup, pyfuse3.ROOT_INODE, name.encode(), OPENER)
        return found.st_ino, found.st_size

    def size(self, inode):
        """The size that an inode shows."""
        return trio.run(self._operations.getattr, inode, OPENER).st_size

    def contract(self, inode):
        """Contract a file after looking up its name."""
        trio.run(self._operations.setxattr, inode, STATE.encode(), CONTRACTED.encode(), OPENER)

    def close(self):
        self.files.stop()
        self._folder.close()


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mounted = Mounted()
    yield mounted
    mounted.close()


@pytest.fixture
def item(mounted, tmp_path):
    """The name of an item that is made from ``source``."""
    (tmp_path / "source").write_bytes(b"old content")
    (tmp_path / "item").write_bytes(b"old content")
    mounted.files.attach("item", '{"template": "concat", "params": {"of": "source"}}', 0)
    return "item"


def test_later_content_that_takes_the_place_of_an_expansion_is_opened_instead(mounted, item, tmp_path, monkeypatch):
    assert mounted.files.runtime.contract(item) == "contracted"
    open_as_it_is = mounted.files.runtime.open

    def open_before_later_content(name, chain=()):
        """Start an expansion, before the source changes and another opener has later content made."""
        monkeypatch.setattr(mounted.files.runtime, "open", open_as_it_is)
        opened = open_as_it_is(name, chain)
        assert opened.same()
        mounted.files.runtime.wait(opened)
        (tmp_path / "source").write_bytes(b"later content, which is longer")
        mounted.files.runtime.expand(name)
        return opened

    monkeypatch.setattr(mounted.files.runtime, "open", open_before_later_content)
    assert mounted.read(item) == (b"later content, which is longer", 30)


def test_what_was_replaced_shows_its_own_size(mounted, item, tmp_path):
    inode, size = mounted.look_up(item)
    (tmp_path / "source").write_bytes(b"later content, which is longer")
    mounted.files.runtime.expand(item)
    assert mounted.size(inode) == size
    assert mounted.look_up(item) != (inode, size)


def test_what_was_replaced_is_contracted_under_its_name(mounted, item, tmp_path, monkeypatch):
    soon = SimpleNamespace(run_sync_soon=lambda call, *arguments: call(*arguments))
    monkeypatch.setattr(pyfuse3, "trio_token", soon, raising=False)
    monkeypatch.setattr(pyfuse3, "invalidate_entry_async", lambda *_, **__: None)
    inode, _ = mounted.look_up(item)
    (tmp_path / "source").write_bytes(b"later content, which is longer")
    mounted.files.runtime.expand(item)
    mounted.contract(inode)
    assert (tmp_path / item).stat().st_size == 0
    assert mounted.read(item) == (b"later content, which is longer", 30)


def test_an_expansion_that_ends_while_a_size_is_looked_at_shows_no_bytes_too_few(mounted, item, monkeypatch):
    assert mounted.files.runtime.contract(item) == "contracted"
    look = os.lstat

    def look_before_it_is_expanded(path):
        found = look(path)
        monkeypatch.setattr(os, "lstat", look)
        mounted.files.runtime.expand(item)
        return found

    monkeypatch.setattr(os, "lstat", look_before_it_is_expanded)
    assert mounted.look_up(item)[1] == len(b"old content")
