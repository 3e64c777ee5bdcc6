"""``sluice``: the controller on the command line, with a token or with a cloud of clouds.yaml.

The commands are those of ``openstack sluice``, run by cliff.  Options before the first word are the
application's, those after it the command's, so that both may have a ``--timeout``.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from cliff.app import App
from cliff.command import Command
from cliff.commandmanager import CommandManager
from cliff.help import HelpExit

from sluice_client.commands import COMMANDS, EARLIER
from sluice_client.completion import Complete
from sluice_client.connection import DEFAULT_URL, Settings
from sluice_client.help import USAGE, Help, help_by_topic, refuse_unknown
from sluice_client.rest.client import TIMEOUT, Client

_TEXT: Final = "Write policies for Swift and watch them work."
_MORE: Final = (
    "`sluice COMMAND --help` shows a command, `sluice policy --help` those of a thing; `source <(sluice complete)` lets"
    " bash complete words and options, and `sluice complete --shell zsh` and `fish` do so for these shells."
)
_PIPE: Final = 141
#: Seconds until a dropped interrupt is raised again.
_AGAIN: Final = 0.01


class GlobalOptions(ArgumentParser):
    """Options of the application: they end where the command begins, except for a call for help."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Called by cliff; unknown words are the command."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"`{unknown[0]}` is no option of sluice; those of a command stand behind it")
        rest: list[str] = options.rest
        if {"-h", "--help"} & set(rest):
            options.deferred_help = True
            rest = [word for word in rest if word not in ("-h", "--help")]
        return options, rest


class ClientManager:
    """The commands' ``app.client_manager``; connects at the first access."""

    def __init__(self, options: Namespace) -> None:
        self._options = options

    @cached_property
    def sluice(self) -> Client:
        """The client of the controller in the options.

        :raises ClientError: when the token or the cloud cannot be read
        """
        options = self._options
        settings = Settings.read(options.url, options.token_file, options.os_cloud, os.environ)
        return settings.connect(options.timeout)

    def close(self) -> None:
        """Close the client, if it was opened."""
        if "sluice" in self.__dict__:
            self.sluice.close()


class Sluice(App):
    """The application."""

    NAME = "sluice"
    LOG = logging.getLogger("sluice_client.cli")
    client_manager: ClientManager

    def __init__(self) -> None:
        manager = CommandManager()
        for words, command in {**COMMANDS, **EARLIER}.items():
            manager.add_command(words, command)
        super().__init__(_TEXT, _version(), manager, deferred_help=True)
        manager.add_command("help", Help)
        manager.add_command("complete", Complete)

    def build_option_parser(
        self, description: str | None, version: str | None, argparse_kwargs: dict[str, Any] | None = None
    ) -> ArgumentParser:
        """Called by cliff."""
        parser = GlobalOptions(
            prog=self.NAME, description=description, epilog=_MORE, add_help=False, allow_abbrev=False
        )
        parser.add_argument("-h", "--help", action="store_true", dest="deferred_help", help="show help and exit")
        parser.add_argument("--version", action="version", version=f"sluice {version}")
        parser.add_argument("--url", help=f"the API (SLUICE_URL); default: that of the cloud, or {DEFAULT_URL}")
        parser.add_argument("--token-file", metavar="FILE", help="file with the admin token (SLUICE_TOKEN_FILE)")
        parser.add_argument("--os-cloud", metavar="NAME", help="cloud of clouds.yaml to log in to (OS_CLOUD)")
        parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS", help="for each answer")
        parser.add_argument("--json", action="store_true", help="print the controller's JSON unchanged")
        parser.add_argument("--debug", action="store_true", help="show tracebacks")
        parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="COMMAND", help="and its arguments")
        return parser

    def configure_logging(self) -> None:
        """Called by cliff: errors go to standard error in one line, and the libraries' retry messages are dropped."""
        self.LOG.handlers.clear()
        handler = logging.StreamHandler(self.stderr)
        handler.setFormatter(logging.Formatter(f"{self.NAME}: %(message)s"))
        self.LOG.addHandler(handler)
        self.LOG.propagate = False
        logging.getLogger("urllib3").setLevel(logging.ERROR)

    def initialize_app(self, argv: list[str]) -> None:
        """Called by cliff before the command."""
        self.client_manager = ClientManager(self.options)

    def print_help_if_requested(self) -> None:
        """Called by cliff when the command line has no words of a command.

        :raises HelpExit: when help was printed
        """
        if self.options.deferred_help:
            self.stdout.write(self.help_of_all())
            raise HelpExit

    def help_of_all(self) -> str:
        """The options of the application, and all commands."""
        return f"{self.parser.format_help()}\n{help_by_topic()}"

    def clean_up(self, cmd: Command, result: int, err: BaseException | None) -> None:
        """Called by cliff after the command."""
        self.client_manager.close()

    def run_subcommand(self, argv: list[str]) -> int:
        """Called by cliff, whose own answer to unknown words has no near miss and goes to standard output."""
        try:
            self.command_manager.find_command(argv)
        except ValueError:
            return refuse_unknown(self, argv)
        return super().run_subcommand(argv)

    def interact(self) -> None:
        """Called by cliff when there is no command: there is no interactive shell."""
        self.stderr.write(self.help_of_all())
        raise SystemExit(USAGE)


def _version() -> str:
    from importlib.metadata import version

    return version("openstack-sluice")


def _interrupt(number: int, frame: object) -> None:
    """End as Python does, but without messages: half-made objects of libraries report errors when collected."""
    signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = _interrupt_again
    raise KeyboardInterrupt


def _interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise the interrupt again: Python drops exceptions that are raised while an object is collected."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)


def main(argv: Sequence[str] | None = None) -> int:
    """Return 1 when the controller refuses or does not answer, 2 for a wrong command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    status = Sluice().run(list(sys.argv[1:] if argv is None else argv))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader of the output has closed it; suppress the interpreter's message at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE
    return status
