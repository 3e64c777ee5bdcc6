"""Options: declared once (name, type, default, help), read at start, unknown names refused.

The same declarations read a section of ini files (agent, actor host, controller) and the flat
dictionary that paste gives a Swift middleware, and print the sample file.
"""

from __future__ import annotations

import configparser
import difflib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice_core.errors import SluiceError

log = logging.getLogger(__name__)
_TRUTH = configparser.ConfigParser.BOOLEAN_STATES


class OptionError(SluiceError):
    """Unusable configuration; the message names file, section and option."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option, of the type of its ``default`` (str, int, float, bool).

    :param is_retired: whether the option has no meaning any more: it is accepted with a warning, and has no value
    """

    name: str
    default: str | int | float | bool
    help: str
    is_retired: bool = False

    def parse(self, text: str) -> str | int | float | bool:
        """Return ``text`` in the option's type.

        :raises ValueError: when it is not of that type
        """
        if isinstance(self.default, bool):
            folded = text.strip().lower()
            if folded not in _TRUTH:
                raise ValueError(f"expected true or false, got `{text}`")
            return _TRUTH[folded]
        if isinstance(self.default, int):
            return int(text)
        if isinstance(self.default, float):
            return float(text)
        return text.strip()


def retired_option(name: str) -> Option:
    """Return an option without a user; the release after the next refuses its name."""
    return Option(name, "", "0.3 refuses it", is_retired=True)


def read_options(
    options: Iterable[Option], given: Mapping[str, str], where: str, ignored: Iterable[str] = ()
) -> dict[str, Any]:
    """Return all ``options`` with their values from ``given``, or their defaults.

    ``where`` names the source in errors; names in ``ignored`` belong to another program.

    :raises OptionError: all unknown names and bad values at once
    """
    return _read_sources(options, [(where, given)], ignored)


def read_file(options: Iterable[Option], path: str | Path, section: str) -> dict[str, Any]:
    """The options of ``[section]`` in the ini file at ``path``; a missing section means defaults.

    :raises OptionError: when the file cannot be read or an option in it cannot be used
    """
    return read_files(options, [path], section)


def read_files(
    options: Iterable[Option],
    paths: Iterable[str | Path],
    section: str,
    default_section: str = configparser.DEFAULTSECT,
) -> dict[str, Any]:
    """Return the options of ``[section]`` in several ini files, of which the later ones win; as :func:`read_file`.

    :param default_section: the section whose options apply to each section of the same file
    """
    parsed = [(path, read_ini([path], default_section)) for path in paths]
    sources = [(f"{path} [{section}]", parser[section]) for path, parser in parsed if section in parser]
    return _read_sources(options, sources)


def read_ini(paths: Iterable[str | Path], default_section: str = configparser.DEFAULTSECT) -> configparser.ConfigParser:
    """Return the sections of ini files, of which the later ones win.

    :raises OptionError: when one cannot be read
    """
    parser = configparser.ConfigParser(interpolation=None, default_section=default_section)
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                parser.read_file(file)
        except configparser.ParsingError as error:  # its text quotes the lines, which may have a password
            raise OptionError(f"cannot read `{path}`: {_misplaced(error)}") from None
        except (OSError, configparser.Error, UnicodeDecodeError) as error:
            raise OptionError(f"cannot read `{path}`: {error}") from error
    return parser


def _misplaced(error: configparser.ParsingError) -> str:
    """Return which line of an ini file is wrong, without its text."""
    if isinstance(error, configparser.MissingSectionHeaderError):
        return f"line {error.lineno} stands before any section, expected `[name]` above it"
    return f"line {error.errors[0][0]} is no option, expected `name = value`"


def _read_sources(
    options: Iterable[Option], sources: Sequence[tuple[str, Mapping[str, str]]], ignored: Iterable[str] = ()
) -> dict[str, Any]:
    """
    :param sources: the given options and the place of each source; the later ones win
    """
    known = {option.name: option for option in options}
    values: dict[str, Any] = {name: option.default for name, option in known.items() if not option.is_retired}
    faults: list[str] = []
    for where, given in sources:
        theirs = {name: text for name, text in given.items() if name in known or name not in ignored}
        values.update(_parse(known, theirs, where, faults))
    if faults:
        raise OptionError("; ".join(faults))
    return values


def _parse(
    known: Mapping[str, Option], given: Mapping[str, str], where: str, faults: list[str]
) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the given options; faults are appended to ``faults``."""
    for name, text in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f", did you mean `{near[0]}`" if near else ""
            faults.append(f"{where}: unknown option `{name}`{hint}")
        elif known[name].is_retired:
            log.warning("%s: option `%s` means nothing any more; remove it, since %s", where, name, known[name].help)
        else:
            try:
                yield name, known[name].parse(text)
            except ValueError as error:
                faults.append(f"{where}: option `{name}`: {error}")


def sample_section(section: str, options: Iterable[Option]) -> str:
    """Return a sample ini section: every option commented out, at its default, below its help."""
    lines = [f"[{section}]"]
    for option in options:
        if option.is_retired:
            continue
        value = str(option.default).lower() if isinstance(option.default, bool) else option.default
        lines += [f"# {option.help}", f"#{option.name} = {value}".rstrip(), ""]
    return "\n".join(lines)
