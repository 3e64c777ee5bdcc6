"""Loads a tool of ``tools/``, whose name has no suffix, as a module, without writing bytecode beside it."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def load_tool(name: str) -> ModuleType:
    """The module, which is not kept in ``sys.modules``."""
    loader = SourceFileLoader(name.replace("-", "_"), str(TOOLS / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setitem(sys.modules, loader.name, module)  # where dataclasses search it
        loader.exec_module(module)
    return module
