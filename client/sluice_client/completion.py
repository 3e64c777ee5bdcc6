"""``sluice complete``: scripts with which a shell completes words and options of commands.

The candidates are written into the script, so that the shell starts no process at completion.
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from typing import Final

from cliff.command import Command

from sluice_client.commands import COMMANDS

_BASH: Final = """\
declare -gA _sluice_candidates=(
{rows}
)
_sluice() {{
    local at=sluice word cur="${{COMP_WORDS[COMP_CWORD]}}"
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        [[ -n ${{_sluice_candidates["$at $word"]-}} ]] && at="$at $word"
    done
    local found="${{_sluice_candidates["$at"]}}"
    COMPREPLY=()
    [[ $found == -* && $cur != -* ]] || mapfile -t COMPREPLY < <(compgen -W "$found" -- "$cur")
}}
complete -o default -F _sluice sluice
"""
_ZSH: Final = """\
#compdef sluice
typeset -gA _sluice_candidates
_sluice_candidates=(
{rows}
)
_sluice() {{
    local at=sluice word
    for word in ${{words[2,CURRENT-1]}}; do
        (( ${{+_sluice_candidates[$at $word]}} )) && at="$at $word"
    done
    local -a found
    found=(${{=_sluice_candidates[$at]}})
    if [[ $found[1] == -* && $words[CURRENT] != -* ]]; then
        _files
    else
        compadd -- $found
    fi
}}
if [[ $funcstack[1] == _sluice ]]; then
    _sluice
else
    compdef _sluice sluice
fi
"""
_FISH: Final = """\
function __sluice_candidates
    switch "$argv"
{rows}
    end
end
function __sluice_complete
    set -l at sluice
    for word in (commandline -opc)[2..-1]
        if count (__sluice_candidates $at $word) >/dev/null
            set -a at $word
        end
    end
    set -l found (__sluice_candidates $at)
    if string match -q -- '-*' $found[1]; and not string match -q -- '-*' (commandline -ct)
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
complete -c sluice -f -a '(__sluice_complete)'
"""


def candidates(global_options: list[str]) -> dict[str, list[str]]:
    """Return the words behind ``sluice`` → possible next words, or the options of a command."""
    found: dict[str, set[str]] = {"sluice": {"complete", "help", *global_options}}
    for words, command in COMMANDS.items():
        typed = "sluice"
        for word in words.split():
            found.setdefault(typed, set()).add(word)
            typed += f" {word}"
        found[typed] = set(command.flags())
    # words first, so that a script recognises a list of options by its first entry
    return {typed: sorted(after, key=lambda word: (word.startswith("-"), word)) for typed, after in found.items()}


def script(shell: str, rows: dict[str, list[str]]) -> str:
    """Return the script for ``bash``, ``zsh`` or ``fish``, which the shell reads at its start."""
    quoted = {typed: (shlex.quote(typed), " ".join(after)) for typed, after in rows.items()}
    if shell == "bash":
        return _BASH.format(rows="\n".join(f"    [{key}]={shlex.quote(text)}" for key, text in quoted.values()))
    if shell == "zsh":
        return _ZSH.format(rows="\n".join(f"    {key} {shlex.quote(text)}" for key, text in quoted.values()))
    lines = (f"        case {key}\n            printf '%s\\n' {text}" for key, text in quoted.values())
    return _FISH.format(rows="\n".join(lines))


SHELLS: Final = ("bash", "fish", "zsh")


class Complete(Command):
    """Print a script that lets a shell complete commands: `source <(sluice complete)`."""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Called by cliff."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--shell", choices=SHELLS, default="bash", help="default: bash")
        return parser

    def take_action(self, parsed_args: Namespace) -> int:
        """Called by cliff."""
        options = [flag for action in self.app.parser._actions for flag in action.option_strings]
        self.app.stdout.write(script(parsed_args.shell, candidates(options)))
        return 0
