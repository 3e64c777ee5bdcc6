"""The contract of motif templates.

A *template* is code that makes the bytes of an item again; a *motif* is a template with parameters that is attached to
one item (``records``).  Carillon (SYSTOR'16, section 3) calls both motifs.

* ``expand`` yields the bytes of the item, in pieces of any size.  It reads other items through ``call.read``, which
  gives their plain bytes and expands them first where that is needed.
* ``sources`` names what ``expand`` reads.  What is not named there cannot be read.
* An *exact* template makes the very same bytes again, which the item's digest proves; another one makes an item that is
  as good (a thumbnail by a newer library), and what it makes takes the place of the old bytes.
* A *derived* item is computed from its sources, and is out of date when one of them changes.  A *preserving* item holds
  what was stored under its own name.  Its bytes go only once a copy of them is kept that no client can change, so its
  template is exact and ``keeps_copy``.
* ``contract`` is called before the bytes go, for templates that have to bring something up to date first.  It changes
  no other item.
* ``keep_copy`` is called before that, for templates that read a copy which the storage keeps for them alone.

A template keeps nothing between calls; one instance belongs to one motif.  What it needs of the node's configuration
(hosts that may be called, other clusters) is in ``context``.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol, Self

from sluice_core.connections.swift_account import SwiftAccount
from sluice_core.connections.url_allowlist import UrlAllowlist
from sluice_core.describe import ActionInfo, Scalar
from sluice_core.errors import CallerError, SluiceError
from sluice_filters.api import Filter

log = logging.getLogger(__name__)

#: How an item relates to its sources.
DERIVED: Final = "derived"
PRESERVING: Final = "preserving"
RELATIONS: Final = (DERIVED, PRESERVING)

#: The resource that a template mostly waits for.
CPU: Final = "cpu"
NETWORK: Final = "network"
DISK: Final = "disk"
RESOURCES: Final = (CPU, NETWORK, DISK)

#: The template that only keeps a copy.
TIER: Final = "tier"

#: The parameter that ``Template.keep_copy`` adds: the name of a copy of the bytes that the item has.  No description
#: has it, so users cannot set it.
COPY: Final = "copy"

#: An uploaded filter by its keyword and the SHA-256 of its code; None when none was uploaded under that keyword.
#: Raises ``SluiceError`` when it cannot be had with that code.
UploadedFilter = Callable[[str, str], type[Filter] | None]


def no_filter(keyword: str, sha256: str) -> None:
    """For hosts that have no uploaded filters."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A container of another Swift, which exists."""

    account: SwiftAccount
    container: str


@dataclass(frozen=True, slots=True)
class TemplateContext:
    """What the configuration of a node gives to templates that reach outside of the storage.

    It is bound to the classes of templates when they are loaded (``templates.registry``), so that a motif holds only a
    keyword and parameters, and code that makes a template knows neither hosts nor secrets.

    :param hosts: those that may be called over HTTP
    :param remotes: by name
    :param uploaded_filter: finds filters that are not installed
    """

    hosts: UrlAllowlist = field(default_factory=UrlAllowlist)
    remotes: Mapping[str, Remote] = field(default_factory=dict)
    uploaded_filter: UploadedFilter = no_filter


class ExpansionError(SluiceError):
    """A motif could not make its item; another one may, or the same one later."""

    status = 503


class SourceGone(ExpansionError):
    """A source does not exist any more: the motif will never make its item again."""

    def __init__(self, source: str) -> None:
        super().__init__(f"source `{source}` does not exist any more")
        self.source = source


class NotContractible(CallerError):
    """The bytes of the item must stay; the message says why."""

    status = 409


class TooDeep(CallerError):
    """Making the item again would take too long a chain of items, one made from the other."""

    status = 409


@dataclass(frozen=True, slots=True)
class Source:
    """A source that a template reads.

    :param external: whether it lies outside of the store (a URL, another cluster): it is no item, and not watched
    :param owned: whether it is a copy that the storage keeps for the runtime alone, which no client can see or change
    :param max_age: seconds after which an item that was made of an external source is out of date; 0 for never
    """

    name: str
    external: bool = False
    owned: bool = False
    max_age: float = 0.0


class TemplateCall(Protocol):
    """The arguments of a template for one expansion or contraction of ``item``."""

    @property
    def item(self) -> str:
        """The name of the item."""

    @property
    def size(self) -> int:
        """Number of plain bytes that the item had."""

    @property
    def digest(self) -> str:
        """Digest of the plain bytes that the item had, as ``algorithm:hexadecimal``; empty before it is made first."""

    @property
    def identity(self) -> str:
        """The user who attached the motif."""

    def read(self, source: str) -> Iterator[bytes]:
        """Yields the plain bytes of a source that ``Template.sources`` names; expands it when it is contracted.

        :raises SourceGone: when it does not exist
        :raises ExpansionError: when it cannot be read now, was not named, or is too deep
        """

    def own_bytes(self) -> Iterator[bytes]:
        """Yields the bytes of the item itself while they are there; the last ones once its digest has proven them."""

    def keep_copy(self, placement: str = "", pieces: Iterator[bytes] | None = None) -> str:
        """Store bytes where only the runtime finds them; returns the name of the copy.

        A copy is named by the SHA-256 of its bytes, and all items of an account that have these bytes share it.

        :param placement: a place of the storage, in Swift a storage policy; empty for that of the item
        :param pieces: the bytes to store; those of the item by default
        :raises ExpansionError: when the storage keeps no copies, or none in that place
        """

    def check(self) -> None:
        """Renew the lease; a template calls this now and then while it computes without reading or yielding."""


class Template(ABC):
    """Base of all templates."""

    #: Keyword, parameters and help, as of filters.
    info: ClassVar[ActionInfo]
    relation: ClassVar[str] = DERIVED
    #: The resource that it mostly waits for, one of ``RESOURCES``: the busier that is, the dearer the template.
    resource: ClassVar[str] = CPU
    #: Whether ``expand`` makes the same bytes each time while its sources stay the same; sources with a ``max_age`` may
    #: not, so that what is made of them is never taken for exact.
    exact: ClassVar[bool] = True
    #: Whether it makes the item from a copy that ``keep_copy`` stores, and before that cannot make it.
    keeps_copy: ClassVar[bool] = False
    #: Whether that copy has the bytes of the item, so that nothing is left to prove.
    copy_is_item: ClassVar[bool] = False
    #: The configuration of the node; ``configured`` binds another one.
    context: ClassVar[TemplateContext] = TemplateContext()

    def __init__(self, params: Mapping[str, Scalar]) -> None:
        """
        :param params: as ``info`` describes them, checked
        """
        self.params = params

    @classmethod
    def configured(cls, context: TemplateContext) -> type[Self]:
        """Returns this template bound to the configuration of a node."""
        return type(cls.__name__, (cls,), {"context": context, "__module__": cls.__module__, "__doc__": cls.__doc__})

    def check(self) -> None:  # noqa: B027  not abstract: for most their description says all
        """Refuse parameters that cannot work although their description admits them; called before a motif is attached.

        :raises CallerError: with the reason
        """

    def is_exact(self) -> bool:
        """Whether ``exact`` holds with these parameters."""
        return self.exact

    @abstractmethod
    def sources(self, item: str) -> Sequence[Source]:
        """The sources that are read to make ``item``; they depend on its name and the parameters alone."""

    @abstractmethod
    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        """Yields the bytes of the item.

        :raises ExpansionError: when they cannot be made now
        """

    def verify(self, call: TemplateCall) -> None:  # noqa: B027  not abstract: many need nothing from outside
        """Check whether ``expand`` would find what it needs outside of the store, at the price of a HEAD.

        :raises ExpansionError: when it would not
        """

    def keep_copy(self, call: TemplateCall) -> Mapping[str, Scalar]:
        """Have a copy kept from which the item can be made; returns parameters to be kept with the motif.

        :raises ExpansionError: when it cannot be done, so that the bytes stay
        """
        return {}

    def shares_copy_with(self) -> str:
        """An item that may have the bytes of the copy and can give up its own to it; empty when there is none."""
        return ""

    def contract(self, call: TemplateCall) -> None:  # noqa: B027  not abstract: few have something to do
        """Do what must be done before the bytes may go; ``call.own_bytes`` reads them.

        :raises ExpansionError: when it cannot be done, so that the bytes stay
        """


@contextmanager
def contained(keyword: str) -> Iterator[None]:
    """While a template's code runs, translates whatever it raises to ``ExpansionError``, and logs its faults."""
    try:
        yield
    except ExpansionError:
        raise
    except SluiceError as error:
        raise ExpansionError(f"{error}") from error
    except Exception as error:  # a template may be anybody's code and raise anything
        log.exception("template `%s` failed", keyword)
        raise ExpansionError("the template failed") from error
