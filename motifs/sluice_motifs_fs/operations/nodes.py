"""The files that the kernel knows: their paths by the inode of the source file, which is their number in the mount."""

from __future__ import annotations

from typing import Any, Final

import pyfuse3

#: The path of the top: the mounted folder is the working folder of the process.
TOP: Final = "."
_NO_CHILDREN: Final[dict[str, Any]] = {}


class Node:
    """One file.  Most have no children, one name, and are not open: they share empty containers.

    :param parent: the folder in which it was last seen; None for the top
    """

    __slots__ = ("_epoch", "_path", "children", "files", "inode", "lookups", "name", "others", "parent")

    def __init__(self, inode: int, parent: Node | None, name: str) -> None:
        self.inode = inode
        self.parent = parent
        self.name = name
        self.lookups = 0
        #: its other places, by hard links
        self.others: tuple[tuple[Node, str], ...] = ()
        self.children: dict[str, Node] = _NO_CHILDREN
        #: descriptors of the source file that the kernel has opened
        self.files: tuple[int, ...] = ()
        self._path: str | None = None
        self._epoch = -1


class Nodes:
    """All nodes.  Paths are cached until a folder is renamed."""

    def __init__(self) -> None:
        self.top = Node(pyfuse3.ROOT_INODE, None, TOP)
        self._nodes: dict[int, Node] = {self.top.inode: self.top}
        self._epoch = 0

    def __getitem__(self, inode: int) -> Node:
        return self._nodes[inode]

    def __contains__(self, inode: int) -> bool:
        return inode in self._nodes

    def path(self, node: Node) -> str | None:
        """From the top; None when it no longer has a name."""
        if node._epoch == self._epoch:
            return node._path
        if node is self.top:
            path: str | None = TOP
        elif node.parent is None:
            path = None
        else:
            above = self.path(node.parent)
            path = None if above is None else node.name if node.parent is self.top else f"{above}/{node.name}"
        node._path, node._epoch = path, self._epoch
        return path

    def below(self, folder: Node, name: str) -> str:
        """The path of a name in a folder.

        :raises FileNotFoundError: when the folder was deleted
        """
        if folder is self.top:
            return name
        path = self.path(folder)
        if path is None:
            raise FileNotFoundError(2, "the folder was deleted")
        return f"{path}/{name}"

    def enter(self, inode: int, parent: Node, name: str) -> Node:
        """Record that the kernel knows a file under a name."""
        node = self._nodes.get(inode)
        if node is None:
            node = self._nodes[inode] = Node(inode, parent, name)
            if parent.children is _NO_CHILDREN:
                parent.children = {}
            parent.children[name] = node
        elif parent.children.get(name) is not node:
            self.leave(parent, name)
            self._add(node, parent, name)
        node.lookups += 1
        return node

    def leave(self, parent: Node, name: str) -> None:
        """Record that no file has this name any more."""
        node = parent.children.pop(name, None)
        if node is None:
            return
        node.others = tuple(one for one in node.others if one != (parent, name))
        if node.parent is parent and node.name == name:
            (node.parent, node.name), node.others = (node.others or ((None, ""),))[0], node.others[1:]
            self._moved(node)

    def rename(self, parent: Node, name: str, to: Node, to_name: str) -> None:
        """Record that a file has another name, replacing the file with that name."""
        node = parent.children.get(name)
        self.leave(to, to_name)
        if node is not None:
            self.leave(parent, name)
            self._add(node, to, to_name)

    def forget(self, inode: int, lookups: int) -> None:
        """Record that the kernel has dropped this many look-ups of a file."""
        node = self._nodes.get(inode)
        if node is None:
            return
        node.lookups -= lookups
        if node.lookups <= 0 and node is not self.top:
            del self._nodes[inode]
            for parent, name in ((node.parent, node.name), *node.others):
                if parent is not None and parent.children.get(name) is node:
                    del parent.children[name]

    def _add(self, node: Node, parent: Node, name: str) -> None:
        if parent.children is _NO_CHILDREN:
            parent.children = {}
        parent.children[name] = node
        if node.parent is None:
            node.parent, node.name = parent, name
            self._moved(node)
        else:
            node.others += ((parent, name),)

    def _moved(self, node: Node) -> None:
        node._epoch = -1
        if node.children:
            self._epoch += 1
