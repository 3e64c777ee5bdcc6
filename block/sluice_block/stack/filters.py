"""The filters of volumes' stacks, and their arguments for nbdkit.

A stack is nbdkit's own chain: the first filter is next to the user of the volume, writes pass it in the written order
and reads in the reversed one.  Sluice's filters are in ``native/``; the others come with nbdkit.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sluice_block.stack.build import library
from sluice_core.describe import BANDWIDTH, FILTER, KONNECTOR, VOLUMES, ActionInfo, Parameter, Scalar
from sluice_core.errors import CallerError
from sluice_volumes.actions import THROTTLING
from sluice_volumes.messages import LUKS


@dataclass(frozen=True, slots=True)
class VolumeFilter:
    """A filter of volumes.

    :param native: whether it is Sluice's, of ``native/``, and not nbdkit's own
    :param arguments: parameter of the description → nbdkit's parameter
    :param changes_content: whether stored data differs from written data, so that the stack of a volume with data keeps
        it
    :param repeatable: whether a stack may have it twice; its parameters apply to the first one only
    :param takes_passphrase: whether nbdkit's parameter ``passphrase`` is for it
    :param always: further arguments for nbdkit
    """

    info: ActionInfo
    native: bool = False
    arguments: Mapping[str, str] | None = None
    changes_content: bool = False
    repeatable: bool = False
    takes_passphrase: bool = False
    always: tuple[str, ...] = ()


def _described(keyword: str, help_text: str, *parameters: Parameter) -> ActionInfo:
    info = ActionInfo(keyword, FILTER, help_text, parameters)
    return replace(info, places=(KONNECTOR,), default_place=KONNECTOR, about=(VOLUMES,))


_NOP: Final = "nop"
#: nbdkit's plugin for files and block devices.
_FILE: Final = "file"
_KEY: Final = Parameter("key", "int", "the constant", default=0x55, minimum=1, maximum=255)
_CACHE_SIZE: Final = Parameter(
    "max_size", "size", "bytes that it holds at most", default=1 << 30, minimum=16 << 20, maximum=1 << 44
)
_ALL: Final = (
    VolumeFilter(_described(_NOP, "change nothing"), native=True, repeatable=True),
    VolumeFilter(
        _described("xor", "store each byte XOR a constant; an example, no protection", _KEY),
        native=True,
        arguments={"key": "xor-key"},
        changes_content=True,
    ),
    VolumeFilter(
        _described("bitrev", "store the bits of each byte reversed; an example"), native=True, changes_content=True
    ),
    VolumeFilter(
        _described(LUKS, "encrypt with AES-XTS under a LUKS 1 header"),
        changes_content=True,
        takes_passphrase=True,
    ),
    VolumeFilter(_described("readahead", "read ahead of sequential reads")),
    VolumeFilter(
        _described("cache", "keep what was read and written in a local file; writes pass on at once", _CACHE_SIZE),
        arguments={"max_size": "cache-max-size"},
        always=("cache=writethrough", "cache-on-read=true"),
    ),
)
FILTERS: Final[Mapping[str, VolumeFilter]] = {one.info.keyword: one for one in _ALL}
#: The first filters of every stack: they count, and enforce the limits.
_ALWAYS: Final = (_NOP, "throttle")


def check_steps(steps: Sequence[tuple[str, Mapping[str, Scalar]]]) -> list[tuple[VolumeFilter, dict[str, Scalar]]]:
    """Return the filters of a stack with all their parameters.

    :raises CallerError: for an unknown filter or parameter, a value out of its range, or a filter that stands twice
    """
    checked: list[tuple[VolumeFilter, dict[str, Scalar]]] = []
    for keyword, params in steps:
        known = FILTERS.get(keyword)
        if known is None:
            raise CallerError(f"no filter `{keyword}` for volumes{_near(keyword, FILTERS)}")
        if not known.repeatable and any(one is known for one, _ in checked):
            raise CallerError(f"filter `{keyword}` stands twice in the stack, expected it once")
        checked.append((known, _check_parameters(known.info, params)))
    return checked


def changes_content(steps: Sequence[tuple[str, Mapping[str, Scalar]]]) -> list[tuple[str, dict[str, Scalar]]]:
    """Return the part of a stack that changes stored data, with its parameters."""
    return [(one.info.keyword, params) for one, params in check_steps(steps) if one.changes_content]


def is_protected(steps: Sequence[tuple[str, Mapping[str, Scalar]]]) -> bool:
    """Whether a stack needs a passphrase."""
    return any(one.takes_passphrase for one, _ in check_steps(steps))


def enforceable_actions() -> dict[str, int]:
    """Return the possible actions on volumes: limits, shares of a pool, and each filter, with their versions."""
    return {THROTTLING: 1, BANDWIDTH: 1, **{keyword: one.info.version for keyword, one in FILTERS.items()}}


def nbdkit_arguments(
    steps: Sequence[tuple[str, Mapping[str, Scalar]]],
    source: Sequence[str],
    built: Path,
    page: Path | None = None,
    log: Path | None = None,
    passphrase: int = -1,
    size: int = 0,
    keeper: Path | None = None,
) -> list[str]:
    """Return nbdkit's arguments for a stack over a source.

    :param source: the plugin and its parameters
    :param built: folder of Sluice's filters (:mod:`build`)
    :param page: the volume's page of counters and limits; without a page it has neither
    :param log: file of the log of requests
    :param passphrase: descriptor of the passphrase
    :param size: size of the export in bytes, if less than all; nbdkit refuses clients when the source has fewer.  0:
        all
    :param keeper: socket of the keeper of the FUSE device that the stack serves; without one it serves NBD clients.  If
        no filter changes the bytes of a file, large reads are answered from its pages
    :raises CallerError: as of :func:`check_steps`
    """
    checked = check_steps(steps)
    filters, given = [], []
    if keeper is not None:
        filters.append(f"--filter={library(built, 'fuse')}")
        given.append(f"fuse-keeper={keeper}")
        if source[0] == _FILE and all(one.info.keyword == _NOP for one, _ in checked):
            given.append(f"fuse-file={source[1]}")  # no layer changes its bytes, caches others, or reads ahead
    if page is not None:
        filters += [f"--filter={library(built, name)}" for name in _ALWAYS]
        given += [f"{name}-page={page}" for name in _ALWAYS]
    if log is not None:
        given.append(f"nop-log={log}")
    if size:
        filters.append("--filter=offset")
        given += ["offset=0", f"range={size}"]
    filters += [f"--filter={_path(one, built)}" for one, _ in checked]
    for kind, params in checked:
        given += [f"{name}={params[parameter]}" for parameter, name in (kind.arguments or {}).items()]
        given += kind.always
        if kind.takes_passphrase:
            given.append(f"passphrase=-{passphrase}")
    return [*filters, *source, *given]


def _path(one: VolumeFilter, built: Path) -> str:
    name = one.info.keyword
    return str(library(built, name)) if one.native else name


def _check_parameters(info: ActionInfo, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    known = {one.name: one for one in info.parameters}
    values: dict[str, Scalar] = {one.name: one.default for one in info.parameters if one.default is not None}
    for name, value in given.items():
        if name not in known:
            raise CallerError(f"filter `{info.keyword}` has no parameter `{name}`{_near(name, known)}")
        values[name] = _check_value(info.keyword, known[name], value)
    return values


def _check_value(keyword: str, parameter: Parameter, value: Scalar) -> Scalar:
    least, greatest = parameter.minimum or 0, parameter.maximum or 0
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= greatest:
        raise CallerError(
            f"parameter `{parameter.name}` of filter `{keyword}` is `{value}`, expected {least:g} to {greatest:g}"
        )
    return value


def _near(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f", did you mean `{near[0]}`" if near else f", expected one of {', '.join(sorted(known))}" if known else ""
