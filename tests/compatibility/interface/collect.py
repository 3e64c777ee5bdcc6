"""Collects the interface of today's code, as plain data.

``python -m tests.compatibility.interface.collect`` writes it over the recorded data.  Run it after an intended change
of the interface, never to make a test pass that found a difference.
"""

from __future__ import annotations

import ast
import configparser
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tests.compatibility.interface.client_calls import collect_client_calls

ROOT: Final = Path(__file__).resolve().parents[3]
RECORDED: Final = Path(__file__).with_name("recorded.json.gz")
#: Swift's own daemons under other names.
_OF_SWIFT: Final = ("sluice-object-reconstructor", "sluice-object-replicator", "sluice-objectd")
#: Replaces a value in a text.
_VALUE: Final = "{}"
#: The least words of a sentence.
_WORDS: Final = 3
_word = re.compile(r"[A-Za-z]{2,}")
_header = re.compile(r"x-[a-z-]*sluice[a-z-]*", re.IGNORECASE)


def collect_schema() -> Any:
    """The response to ``/schema``."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")
    import django

    django.setup()
    from drf_spectacular.generators import SchemaGenerator

    return json.loads(json.dumps(SchemaGenerator().get_schema(request=None, public=True), default=str, sort_keys=True))


def collect_samples() -> dict[str, str]:
    """Every option with its default, and every rule, as the sample files have them."""
    from docs.generated import options, rest

    return {**options.samples(), **rest.rule_samples()}


def collect_commands() -> str:
    """Every command of the client with its arguments, columns and examples."""
    from docs.generated.commands import reference

    return reference()


def programs() -> dict[str, str]:
    """Console script → its function, as ``setup.cfg`` has them."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = setup["options.entry_points"]["console_scripts"].split("\n")
    found = dict(one.split(" = ") for one in lines if one.strip())
    return {name: place for name, place in found.items() if name not in _OF_SWIFT}


def collect_help(place: str) -> dict[str, str]:
    """The ``--help`` of a program and of its commands, by their words; printed in a process of its own."""
    command = [sys.executable, "-m", "tests.compatibility.interface.print_help", place]
    env = {**os.environ, "COLUMNS": "100", "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=True)
    found: dict[str, str] = json.loads(shown.stdout)
    return found


def collect_messages() -> list[Any]:
    """Version and fields of every message."""
    for file in _files():
        if "sluice_core.messages.base import" in file.read_text(encoding="utf-8"):
            import_module(".".join(file.relative_to(ROOT).with_suffix("").parts[1:]))
    from tests.fuzz.fuzz_targets import load_all_messages

    return sorted([one.version, one.binary, sorted(each.name for each in fields(one))] for one in load_all_messages())


def collect_texts() -> dict[str, list[str]]:
    """Sentences for users, keys of Redis and names of headers; values in sentences are ``{}``."""
    names = all_texts()
    headers = {match.lower() for text in names for match in _header.findall(text)}
    sentences = (one for one in names if " " in one and "\n" not in one and len(_word.findall(one)) >= _WORDS)
    return {"sentences": sorted(sentences), "headers": sorted(headers), "keys": sorted(_keys())}


def all_texts() -> set[str]:
    """All texts in the code except its docstrings."""
    return {text for tree in _trees() for text in _texts(tree)}


def _keys() -> Iterator[str]:
    from sluice_core.store.keys import Keys

    keys = Keys("P")
    for name in dir(Keys):
        if name.startswith("_") or name == "prefix":
            continue
        value: Any = getattr(keys, name)
        if isinstance(value, str):
            yield value
        else:
            function: Callable[..., str] = value
            yield function(*["V"] * (function.__func__.__code__.co_argcount - 1))


def _files() -> list[Path]:
    return [one for one in sorted(ROOT.glob("*/sluice_*/**/*.py")) if "tests" not in one.relative_to(ROOT).parts]


def _trees() -> Iterator[ast.AST]:
    return (ast.parse(one.read_text(encoding="utf-8")) for one in _files())


def _texts(tree: ast.AST) -> Iterator[str]:
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # a docstring
            passed.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            passed.update(map(id, node.values))
            parts = (str(one.value) if isinstance(one, ast.Constant) else _VALUE for one in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.value


def collect() -> dict[str, Any]:
    """The whole interface."""
    return {
        "schema": collect_schema(),
        "samples": collect_samples(),
        "commands": collect_commands(),
        "client": collect_client_calls(),
        "help": {name: collect_help(place) for name, place in programs().items()},
        "messages": collect_messages(),
        "texts": collect_texts(),
    }


def recorded() -> dict[str, Any]:
    """The recorded interface."""
    found: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return found


if __name__ == "__main__":
    RECORDED.write_bytes(gzip.compress(json.dumps(collect(), sort_keys=True).encode(), mtime=0))
