"""Uploaded native code: read as text, loaded from verified bytes, and its permitted imports.

Native code is the administrator's: it runs inside Swift's proxies and object servers, or in an actor host's child
process, with all their rights.  Nothing here confines it.  The checks find mistakes: code that cannot work is refused
before it replaces working code.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Final

from sluice_code.code_store import BadUpload
from sluice_core.messages.uploads import CONTROLLER_CODE, FILTER_CODE, METRIC_CODE

#: Prefix of the file name of uploaded code, in tracebacks.
_ORIGIN: Final = "<uploaded code"
_CODECS: Final = frozenset({"zstandard", "lz4", "isal", "cryptography", "pyarrow", "msgpack"})
#: Kind → packages beside the standard library that the role's extra brings (a test compares with setup.cfg).
OFFERED: Final[Mapping[str, frozenset[str]]] = {
    FILTER_CODE: _CODECS | {"sluice_core", "sluice_filters"},
    METRIC_CODE: frozenset({"msgpack", "sluice_core", "sluice_metrics"}),
    CONTROLLER_CODE: frozenset({"msgpack", "sluice_core"}),
}


def check_source(code: bytes, kind: str) -> None:
    """Check uploaded code without running it.

    :raises BadUpload: when it is not Python, or imports packages that nodes may lack; names the line
    """
    try:
        tree = ast.parse(code, "<uploaded code>")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"line {line}: " if line else ""
        raise BadUpload(
            f"this is no Python {sys.version_info[0]}.{sys.version_info[1]}: {where}{error.args[0]}"
        ) from error
    except (RecursionError, MemoryError) as error:
        raise BadUpload("this is nested too deeply for Python") from error
    offered = OFFERED[kind]
    for line, name in _imports(tree):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in offered:
            known = ", ".join(sorted(offered))
            raise BadUpload(f"line {line} imports `{name}`, expected the standard library or one of {known}")


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, "." * node.level + (node.module or "")
            else:
                yield node.lineno, node.module or ""


class _Loader(importlib.abc.InspectLoader):
    """Loads one module from bytes that the caller has verified."""

    def __init__(self, code: bytes, origin: str) -> None:
        self._code = code
        self._origin = origin

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self._code)

    def get_code(self, fullname: str):  # type: ignore[no-untyped-def]  # types.CodeType | None
        return self.source_to_code(self._code, self._origin)

    def is_package(self, fullname: str) -> bool:
        return False


@contextlib.contextmanager
def refuse_failures(what: str) -> Iterator[None]:
    """Convert exceptions of uploaded code into :class:`BadUpload`.

    :param what: what failed, as the beginning of the reason
    :raises BadUpload: with the exception and its text
    """
    try:
        yield
    except BadUpload:
        raise
    except Exception as error:
        raise BadUpload(f"{what}: {type(error).__name__}: {error}") from error


def load_class(code: bytes, sha256: str, base: type, main: str = "") -> type:
    """Return the class ``main`` of uploaded code; without a name the only subclass of ``base``.

    The module is named after its digest, so that two revisions can be loaded together.

    :raises BadUpload: when it cannot be loaded or has no such class
    """
    name = f"sluice_uploaded_{sha256}"
    module = _module(code, name, f"{_ORIGIN} {sha256[:12]}>")
    classes = {
        one.__name__: one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, base) and one.__module__ == name
    }
    if main:
        if main in classes:
            return classes[main]
        there = f", it has {', '.join(sorted(classes))}" if classes else ""
        what = "is no" if main in vars(module) else "is missing, expected a"
        raise BadUpload(f"class `{main}` {what} subclass of {base.__name__}{there}")
    if len(classes) == 1:
        return next(iter(classes.values()))
    if not classes:
        raise BadUpload(f"the code has no subclass of {base.__name__}")
    raise BadUpload(
        f"the code has several subclasses of {base.__name__}: {', '.join(sorted(classes))}; name one with `main`"
    )


def _module(code: bytes, name: str, origin: str) -> ModuleType:
    loader = _Loader(code, origin)
    spec = importlib.util.spec_from_loader(name, loader, origin=origin)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and typing look the module up there
    try:
        loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if isinstance(error, Exception | SystemExit):
            raise BadUpload(f"the code cannot be loaded: {describe_error(error)}") from error
        raise
    return module


def describe_error(error: BaseException) -> str:
    """Return the error in one line, with the last line of uploaded code in its traceback."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(_ORIGIN):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f"line {line}: " if line else ""
    return f"{where}{type(error).__name__}: {error}"
