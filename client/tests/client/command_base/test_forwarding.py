"""Commands that only forward name a method of the client that accepts their arguments."""

import inspect

import pytest

from sluice_client import Client
from sluice_client.command_base.arguments import WAIT_FOR_END
from sluice_client.commands import COMMANDS
from sluice_client.commands.volumes.operations import OrderCommand

FORWARDING = {words: command for words, command in COMMANDS.items() if command.calls}


@pytest.mark.parametrize("words", FORWARDING)
def test_the_method_of_the_client_takes_what_the_command_accepts(words):
    command = FORWARDING[words]
    own = (WAIT_FOR_END,) if issubclass(command, OrderCommand) else ()
    arguments = [argument for argument in command.arguments if argument not in own]
    ordered = [argument.dest for argument in arguments if not argument.is_option]
    named = {argument.dest: argument.dest for argument in arguments if argument.is_option}
    inspect.signature(getattr(Client, command.calls)).bind(None, *ordered, **named)
