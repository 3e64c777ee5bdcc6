"""Idempotent creation of policies with the header ``Idempotency-Key``.

A client that gets no answer cannot know whether its request took effect.  With the header, the ids of the new
policies are a hash of caller, key and text instead of random.  A second request with the same three values finds the
policies of the first one, in any process, and answers with them.  No other state is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from rest_framework.request import Request

from sluice_controller.catalog.backend import Backend
from sluice_controller.policies import services
from sluice_controller.policies.services import Authorize, WrittenPolicies
from sluice_core.errors import CallerError, Conflict
from sluice_core.jobs import request_id
from sluice_dsl.diagnostics import PolicyErrors

HEADER: Final = "Idempotency-Key"
_LONGEST: Final = 128
#: The form that :func:`read_key` accepts, for the schema.
FORM: Final = {"type": "string", "minLength": 1, "maxLength": _LONGEST, "pattern": "^[!-~]+$"}


def read_key(request: Request) -> str:
    """The key in the headers; empty without one.

    :raises CallerError: when it is not valid
    """
    key: str = request.headers.get(HEADER, "")
    fits = 0 < len(key) <= _LONGEST and all("!" <= sign <= "~" for sign in key)
    if HEADER in request.headers and not fits:
        raise CallerError(f"`{HEADER}` has {len(key)} characters, expected 1 to {_LONGEST}, ascii without spaces")
    return key


def create_once(backend: Backend, text: str, by: str, key: str, allow: Authorize) -> WrittenPolicies:
    """Create the policies of the sentences of ``text``, or find those that the same request created before.

    :raises PolicyErrors: all errors in it
    """
    before = _created(backend, text, by, key, allow)
    if before is not None:
        return before
    try:
        return services.create_policies(backend, text, by, allow, policy_ids(text, by, key))
    except (Conflict, PolicyErrors):
        # The conflict may be with the policies that the first of two requests has just created.
        before = _created(backend, text, by, key, allow)
        if before is None:
            raise
        return before


def policy_ids(text: str, by: str, key: str) -> Iterator[str]:
    """The ids of the policies of the sentences of ``text``, one after the other."""
    for number in count():
        yield request_id(12, by, key, text, number)


def _created(backend: Backend, text: str, by: str, key: str, allow: Authorize) -> WrittenPolicies | None:
    contents = backend.policy_cache.contents()
    # A text has at most as many sentences as words FOR.
    wanted = (name for name, _ in zip(policy_ids(text, by, key), range(text.upper().count("FOR")), strict=False))
    policies = tuple(contents.policies[name] for name in wanted if name in contents.policies)
    if not policies:
        return None
    allow([one.plan for one in policies])
    epoch = max(contents.epochs.get(one.policy.id, 0) for one in policies)
    return WrittenPolicies(policies, epoch, ((),) * len(policies))
