"""The installation guide as steps: its pages are parsed, and followed on hosts word for word.

A step is a fenced block whose first line names its host:

* `sh host=controller`: commands of a root's shell.  With `repeat` behind it, they are repeated until their
  output is the expected one: what they show takes a moment.  With `together`, the hosts of a role run them at the same
  time; otherwise one after the other.
* `ini host=proxy edit=/etc/swift/proxy-server.conf`: options that are set in an existing file.
* `text output`: the output of the commands before it; `...` stands for anything.

``host`` is a role, whose hosts take turns, or the name of one host.  A shell block without a host is not followed; as
everywhere in the documentation, the line before it has the reason: ``<!-- no-run: reason -->``.
"""

from __future__ import annotations

import configparser
import doctest
import io
import re
import textwrap
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from tests.support.hosts.scratch_root import ScratchRoot

GUIDE: Final = Path(__file__).resolve().parents[3] / "docs" / "install"
#: What other hosts do is announced to nobody here, so a step is repeated: for how many seconds, after which pause.
_PATIENCE: Final = 90.0
_PAUSE: Final = 0.5
_FENCE: Final = re.compile(
    r"^(?P<mark> *<!-- no-run: [^\n]+ -->\n)?(?P<indent> *)```(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_OPTION: Final = re.compile(r'([a-z-]+)(?:=(?:"([^"]*)"|(\S+)))?')
_LIKE: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Step:
    """:param place: page and line
    :param host: role or host
    :param file: the file whose options `text` sets; empty: `text` are commands
    :param output: their output; None: anything
    :param is_repeated: whether they are repeated until they print that
    :param is_together: whether several hosts run them at the same time
    """

    place: str
    host: str
    text: str
    file: str = ""
    output: str | None = None
    is_repeated: bool = False
    is_together: bool = False


def read_page(path: Path) -> list[Step]:
    """The steps of a page.

    :raises ValueError: for a block that is not followed and has no reason, and for an output that would be compared
        with nothing
    """
    text = path.read_text(encoding="utf-8")
    steps: list[Step] = []
    prints = False  # whether the block before has commands without an output
    for match in _FENCE.finditer(text):
        place = f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}"
        language, _, rest = match["info"].partition(" ")
        options = {name: quoted or word for name, quoted, word in _OPTION.findall(rest)}
        content = textwrap.dedent(match["text"])
        if language == "text" and "output" in options:
            if not prints:
                raise ValueError(f"{place}: an output without commands, expected a block with host=… directly above it")
            steps[-1], prints = replace(steps[-1], output=content), False
        elif "host" in options:
            edited, repeats, together = options.get("edit", ""), "repeat" in options, "together" in options
            steps.append(Step(place, options["host"], content, edited, None, repeats, together))
            prints = not steps[-1].file
        elif language in ("sh", "console", "ini"):
            if not match["mark"]:
                raise ValueError(f"{place}: a block of `{language}` has no host, expected host=… or a comment `no-run`")
            prints = False
    return steps


class Guide:
    """Follows pages.

    :param hosts: name → host
    :param roles: role → names of its hosts
    :param substitutions: the guide's placeholder of a password or a version → its value
    """

    def __init__(
        self,
        hosts: Mapping[str, ScratchRoot],
        roles: Mapping[str, Sequence[str]],
        substitutions: Mapping[str, str],
    ) -> None:
        self._hosts = hosts
        self.roles = dict(roles)
        self._substitutions = dict(substitutions)
        #: Seconds of each step, with its place.
        self.done: list[tuple[str, float]] = []

    def follow(self, page: str, **roles: Sequence[str]) -> None:
        """Follow all steps of a page of the guide; ``roles`` name other hosts for a role.

        :raises AssertionError: when a command fails, or prints something else
        """
        for step in read_page(GUIDE / f"{page}.md"):
            names = {**self.roles, **roles}.get(step.host, (step.host,))
            with ThreadPoolExecutor(len(names) if step.is_together else 1) as pool:
                for done in pool.map(partial(self._follow_step, step), names):
                    self.done.append(done)

    def _follow_step(self, step: Step, name: str) -> tuple[str, float]:
        began = time.monotonic()
        self._do(step, self._hosts[name])
        return f"{step.place} on {name}", time.monotonic() - began

    def _do(self, step: Step, host: ScratchRoot) -> None:
        text = self._written(step.text)
        if step.file:
            self._edit(host, step.file, text)
            return
        end = time.monotonic() + (_PATIENCE if step.is_repeated else 0.0)
        while True:
            status, said = self._run(host, text)
            wanted = None if step.output is None else self._written(step.output)
            if status == 0 and (wanted is None or doctest.OutputChecker().check_output(wanted, said, _LIKE)):
                return
            if time.monotonic() > end:
                raise AssertionError(
                    f"{step.place} on {host.name}: {text}ended with status {status} and printed\n{said}"
                    + (f"instead of\n{wanted}" if wanted else "")
                )
            time.sleep(_PAUSE)

    def _run(self, host: ScratchRoot, text: str) -> tuple[int, str]:
        if text.startswith("scp "):
            return 0, "".join(self._copy(host, *line.split()[1:]) for line in text.splitlines())
        # a registry is unreachable from here: pip uses the folder of --find-links
        ended = host.enter("root", ["/bin/bash", "-e", "-o", "pipefail", "-c", text], {"PIP_NO_INDEX": "1", **_QUIET})
        return ended.returncode, ended.stdout

    def _copy(self, host: ScratchRoot, source: str, target: str) -> str:
        """``scp HOST:FILE FOLDER/``, which a test's hosts do without an SSH server."""
        name, _, path = source.partition(":")
        content = self._hosts[name].run("base64", path)
        place = target + Path(path).name if target.endswith("/") else target
        ended = host.enter("root", ["/bin/sh", "-c", 'umask 077; base64 -d > "$1"', "sh", place], {}, content)
        assert ended.returncode == 0, ended.stdout
        return ""

    def _edit(self, host: ScratchRoot, file: str, text: str) -> None:
        known, wanted = (
            configparser.RawConfigParser(strict=False, allow_no_value=True, default_section="") for _ in range(2)
        )
        known.optionxform = wanted.optionxform = str  # type: ignore[assignment, method-assign]
        known.read_string(host.run("cat", file))
        wanted.read_string(text)
        for section in wanted.sections():
            if not known.has_section(section):
                known.add_section(section)
            for name, value in wanted.items(section):
                known.set(section, name, value)
        changed = io.StringIO()
        known.write(changed)
        ended = host.enter("root", ["tee", file], {}, changed.getvalue())
        assert ended.returncode == 0, ended.stdout

    def _written(self, text: str) -> str:
        for shown, written in self._substitutions.items():
            text = text.replace(shown, written)
        return text


_QUIET: Final = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", "PYTHONWARNINGS": "ignore"}
