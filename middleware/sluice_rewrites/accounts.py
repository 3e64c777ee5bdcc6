"""The accounts of the cluster, as agents that measure what is stored have found them.

Swift has no listing of accounts; their databases lie on storage nodes.  An account that is deleted stays in the list:
whoever looks at it finds no container.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, nothing

#: What the name of an account begins with that holds copies of the objects of another one.  As with other accounts of
#: Swift's own, no client reaches it, and nothing in it counts to the other one.
_COPIES: Final = ".sluice_copies_"
#: The same of an account whose containers have rows alone, which say what refers to copies.
_REFERENCES: Final = ".sluice_references_"
#: Names that are written by one command.
_CHUNK: Final = 1000


def copies_account(account: str) -> str:
    """Where copies of an account's objects lie."""
    return f"{_COPIES}{account}"


def references_account(copies: str) -> str:
    """Where references to the copies in an account lie."""
    return f"{_REFERENCES}{owner_account(copies)}"


def is_copies_account(account: str) -> bool:
    """Whether an account holds such copies."""
    return account.startswith(_COPIES)


def owner_account(account: str) -> str:
    """Whose objects lie in an account: that of which it holds copies, or itself."""
    return account.removeprefix(_COPIES)


def add_accounts(keys: Keys, names: Iterable[str]) -> Operation[None]:
    """Add accounts; those that are known already stay."""
    raw = [name.encode("utf-8", "surrogateescape") for name in names]
    commands = [
        ("ZADD", keys.accounts, *(word for name in raw[start : start + _CHUNK] for word in (0, name)))
        for start in range(0, len(raw), _CHUNK)
    ]
    return Operation(tuple(commands), nothing)


def accounts_after(keys: Keys, marker: str, limit: int) -> Operation[list[str]]:
    """Up to ``limit`` accounts behind the name ``marker``, in the order of their bytes."""
    begin = b"(" + marker.encode("utf-8", "surrogateescape") if marker else b"-"
    command = ("ZRANGEBYLEX", keys.accounts, begin, b"+", "LIMIT", 0, limit)
    return Operation((command,), lambda replies: [name.decode("utf-8", "surrogateescape") for name in replies[0]])
