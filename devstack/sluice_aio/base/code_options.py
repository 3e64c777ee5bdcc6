"""Options for uploaded code: where it is stored, and who runs it."""

from __future__ import annotations

import secrets
from typing import Final

from sluice_aio.base.files import ensure_secret
from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST

#: The Swift user that owns the code, in an account (or a project) of its own.
CODE_USER: Final = "sluice:code"


def ensure_code_key(layout: Layout) -> str:
    """That user's key; made at the first call."""
    layout.configs.mkdir(parents=True, exist_ok=True)
    return ensure_secret(layout.code_key_file, secrets.token_urlsafe(24).encode()).decode("ascii")


def code_store_options(layout: Layout, keystone: bool = False) -> dict[str, str]:
    """Options of the API, of agents and of actor hosts: where the code lies."""
    ensure_code_key(layout)
    swift = f"http://{HOST}:{layout.ports['proxy']}/auth/v1.0"
    return {
        "code_auth_url": layout.keystone_url if keystone else swift,
        "code_user": CODE_USER,
        "code_key_file": str(layout.code_key_file),
    }


def code_host_options(layout: Layout, prefix: str = "") -> dict[str, str]:
    """Options of whoever runs filters: where the node has the code, and its sandboxes."""
    found = {
        "code_dir": layout.code,
        "sandbox_dir": layout.sandbox,
        "wasm_cache": layout.data / "wasm",
    }
    return {prefix + name: str(path) for name, path in found.items()}
