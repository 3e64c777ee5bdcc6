"""Names and extended attributes of a mount with motifs."""

from __future__ import annotations

import errno
import json
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyfuse3
from pyfuse3 import EntryAttributes, FUSEError, RequestContext

from sluice_core.errors import CallerError, Conflict, SluiceError
from sluice_motifs_fs.motif_files import MotifFiles
from sluice_motifs_fs.operations.folders import REPORTED, check_rename
from sluice_motifs_fs.operations.items import ItemOperations
from sluice_motifs_fs.storage.attributes import CONTRACTED, EXPANDED, MOTIF, REASON, SPACE, STATE, STORED

_OURS: Final = (MOTIF, STATE, REASON, SPACE, STORED)
_ENCODED: Final = frozenset(map(os.fsencode, _OURS))
_MOST_REASONS: Final = 256


class MotifOperations(ItemOperations):
    """The methods are described by pyfuse3."""

    def __init__(self, files: MotifFiles, mount_point: str) -> None:
        super().__init__(files, mount_point)
        self._reasons: OrderedDict[str, bytes] = OrderedDict()

    async def unlink(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        parent, text = self.nodes[parent_inode], os.fsdecode(name)
        path = self.nodes.below(parent, text)
        if not self._index.watches(path):
            await super().unlink(parent_inode, name, ctx)
            return
        await self._run(path, self._files.unlink, path)
        self.nodes.leave(parent, text)

    async def rename(
        self,
        parent_inode_old: int,
        name_old: bytes,
        parent_inode_new: int,
        name_new: bytes,
        flags: int,
        ctx: RequestContext,
    ) -> None:
        parent, text = self.nodes[parent_inode_old], os.fsdecode(name_old)
        to, to_text = self.nodes[parent_inode_new], os.fsdecode(name_new)
        path, to_path = self.nodes.below(parent, text), self.nodes.below(to, to_text)
        if not self._index.concerns(path, to_path):
            await super().rename(parent_inode_old, name_old, parent_inode_new, name_new, flags, ctx)
            return
        await self._run(path, self._rename, path, to_path, flags)
        self.nodes.rename(parent, text, to, to_text)

    def _rename(self, path: str, to: str, flags: int) -> None:
        check_rename(to, flags)
        self._files.rename(path, to)

    async def link(self, inode: int, new_parent_inode: int, new_name: bytes, ctx: RequestContext) -> EntryAttributes:
        if self.nodes.path(self.nodes[inode]) in self._index.items:
            raise FUSEError(errno.EPERM)
        return await super().link(inode, new_parent_inode, new_name, ctx)

    async def setxattr(self, inode: int, name: bytes, value: bytes, ctx: RequestContext) -> None:
        attribute = os.fsdecode(name)
        if attribute not in _OURS:
            await super().setxattr(inode, name, value, ctx)
            return
        if attribute in (REASON, STORED) or (attribute == SPACE and not self._may_change_space(inode, ctx)):
            raise FUSEError(errno.EPERM)
        path = self._named(inode)
        if attribute == SPACE:
            await self._run(path, self._files.space.change, value.decode("utf-8", "replace"))
        elif attribute == MOTIF:
            await self._run(path, self._files.attach, path, value.decode("utf-8", "replace"), ctx.uid)
            for file, node in list(self._opened.items()):
                if self._index.watches(self.nodes.path(node) or ""):
                    self.watch(file, node)
        else:
            await self._run(path, self._set_state, path, os.fsdecode(value))

    def _may_change_space(self, inode: int, ctx: RequestContext) -> bool:
        return inode == pyfuse3.ROOT_INODE and ctx.uid in (0, os.geteuid())

    def _set_state(self, path: str, state: str) -> None:
        if state == CONTRACTED:
            outcome = self._files.runtime.contract(path)
            if outcome not in (CONTRACTED, "already contracted"):
                raise Conflict(f"`{path}` is not contracted: it is {outcome}")
        elif state == EXPANDED:
            self._files.runtime.expand(path)
        else:
            raise CallerError(f"state `{state:.40}` is unknown, expected `{CONTRACTED}` or `{EXPANDED}`")

    async def getxattr(self, inode: int, name: bytes, ctx: RequestContext) -> bytes:
        if name not in _ENCODED:
            return self.read_attribute(inode, name)
        attribute = os.fsdecode(name)
        path = self._named(inode)
        if attribute == REASON and path in self._reasons:
            return self._reasons[path]
        if attribute == SPACE and inode == pyfuse3.ROOT_INODE:
            return self._files.space.describe().encode()
        if attribute == STATE and path in self._index.items:
            return (CONTRACTED if inode in self._sizes else EXPANDED).encode()
        if attribute == MOTIF and path in self._index.items:
            motifs = await self.wait_for(self._files.motifs, path)
            return json.dumps([{"template": one.template, "params": dict(one.params)} for one in motifs]).encode()
        raise FUSEError(errno.ENODATA)

    async def listxattr(self, inode: int, ctx: RequestContext) -> Sequence[bytes]:
        names = [one for one in await super().listxattr(inode, ctx) if os.fsdecode(one) != STORED]
        if self.nodes.path(self.nodes[inode]) in self._index.items:
            names += [MOTIF.encode(), STATE.encode()]
        return [*names, SPACE.encode()] if inode == pyfuse3.ROOT_INODE else names

    async def removexattr(self, inode: int, name: bytes, ctx: RequestContext) -> None:
        attribute = os.fsdecode(name)
        if attribute not in _OURS:
            await super().removexattr(inode, name, ctx)
            return
        if attribute != MOTIF:
            raise FUSEError(errno.EPERM)
        path = self._named(inode)
        await self._run(path, self._files.detach, path)

    def _named(self, inode: int) -> str:
        """The path of a file; new content may have replaced it since the name was looked up."""
        node = self.nodes[inode]
        with REPORTED:
            return self.nodes.path(node) or self._replaced.name(inode) or self.path(node)

    async def _run(self, path: str, call: Callable[..., None], *arguments: Any) -> None:
        """Run a client's request in a thread; a refusal is kept for clients that read its reason."""
        await self.wait_for(self._keep_refusal, path, call, *arguments)

    def _keep_refusal(self, path: str, call: Callable[..., None], *arguments: Any) -> None:
        try:
            call(*arguments)
        except SluiceError as error:
            self._reasons[path] = f"{error}".encode("utf-8", "surrogateescape")
            self._reasons.move_to_end(path)
            while len(self._reasons) > _MOST_REASONS:
                self._reasons.popitem(last=False)
            raise
