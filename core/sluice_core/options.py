"""Options: declared once (name, type, default, help), read at start, unknown names refused.

The same declarations read an ini section (agent, actor host, controller) and the flat
dictionary that paste gives a Swift middleware, and print the sample file.  A daemon's command
line (:func:`run_daemon`) names its file, or asks for the sample.
"""

from __future__ import annotations

import argparse
import configparser
import difflib
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
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

    :param is_retired: whether it means nothing any more: it is accepted with a warning, and has no value
    """

    name: str
    default: str | int | float | bool
    help: str
    is_retired: bool = False

    def parse(self, text: str) -> str | int | float | bool:
        """``text`` in the option's type.

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
    """An option that had no user; the next release but one refuses its name."""
    return Option(name, "", "0.3 refuses it", is_retired=True)


def read_options(
    options: Iterable[Option], given: Mapping[str, str], where: str, ignored: Iterable[str] = ()
) -> dict[str, Any]:
    """All ``options`` with their values out of ``given`` or their defaults.

    ``where`` names the source in errors; names in ``ignored`` belong to somebody else.

    :raises OptionError: all unknown names and bad values at once
    """
    known = {option.name: option for option in options}
    values: dict[str, Any] = {name: option.default for name, option in known.items() if not option.is_retired}
    faults = []
    for name, text in given.items():
        if name in known and known[name].is_retired:
            log.warning("%s: option `%s` means nothing any more; remove it, since %s", where, name, known[name].help)
        elif name in known:
            try:
                values[name] = known[name].parse(text)
            except ValueError as error:
                faults.append(f"{where}: option `{name}`: {error}")
        elif name not in ignored:
            near = difflib.get_close_matches(name, known, 1)
            hint = f", did you mean `{near[0]}`" if near else ""
            faults.append(f"{where}: unknown option `{name}`{hint}")
    if faults:
        raise OptionError("; ".join(faults))
    return values


def read_file(options: Iterable[Option], path: str | Path, section: str) -> dict[str, Any]:
    """The options of ``[section]`` in the ini file at ``path``; a missing section means defaults.

    :raises OptionError: when the file cannot be read or an option in it cannot be used
    """
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read `{path}`: {error}") from error
    given = dict(parser[section]) if parser.has_section(section) else {}
    return read_options(options, given, f"{path} [{section}]")


def sample_section(section: str, options: Iterable[Option]) -> str:
    """A sample ini section: every option commented out, at its default, below its help."""
    lines = [f"[{section}]"]
    for option in options:
        if option.is_retired:
            continue
        value = str(option.default).lower() if isinstance(option.default, bool) else option.default
        lines += [f"# {option.help}", f"#{option.name} = {value}".rstrip(), ""]
    return "\n".join(lines)


def run_daemon(
    argv: Sequence[str] | None,
    run: Callable[[str], None],
    sample: Callable[[], str],
    *,
    prog: str,
    description: str | None,
    config: str,
    sample_config: str = "print all options with their defaults",
    missing: str = "--config FILE is needed, see --sample-config",
    epilog: str | None = None,
) -> int:
    """Do what the command line says; the exit status: 1 for what cannot be used, which is said on standard error.

    :param run: serves with the configuration in a file until it is told to stop
    :param sample: a sample of such a file
    :param config: the help of ``--config``
    :param missing: what is said when there is none
    """
    parser = argparse.ArgumentParser(prog=prog, description=description, epilog=epilog)
    parser.add_argument("--config", metavar="FILE", help=config)
    parser.add_argument("--sample-config", action="store_true", help=sample_config)
    given = parser.parse_args(argv)
    if given.sample_config:
        print(sample().removesuffix("\n"))
        return 0
    if given.config is None:
        parser.error(missing)
    try:
        run(given.config)
    except SluiceError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 1
    return 0
