"""The root key in a policy's parameters; separate from the codec, so that a policy is checked without cryptography."""

from __future__ import annotations

from collections.abc import Mapping

from sluice_core.describe import Scalar
from sluice_filters.key_ring import is_key_id
from sluice_filters.stream import BadParameter


def read_policy_key(params: Mapping[str, Scalar | None]) -> str | None:
    """Return the identifier in parameter ``key``; None when there is none.

    :raises BadParameter: for an invalid identifier
    """
    key = params.get("key")
    if key is None:
        return None
    if not is_key_id(str(key)):
        raise BadParameter(f"`key` is `{key}`, expected up to 64 letters, digits, `.`, `_` or `-`")
    return str(key)
