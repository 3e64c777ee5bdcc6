"""The class `lock`: one exclusive owner or several shared ones, each for a time.

A time-out is a duration.  It counts from the grant or its renewal, and again from the beginning when the home of the
object changes: a holder keeps the lock for its whole time-out at least.  A paused holder does not notice that its time
passed.  So a holder hands the token of its grant on with each request, and the resource refuses a token that is lower
than one it has seen.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sluice_objects.api import Context, ObjectClass, Refused, Value, method
from sluice_objects.classes.arguments import Arguments
from sluice_objects.values import pack, unpack

EXCLUSIVE: Final = "exclusive"
SHARED: Final = "shared"


class Grant(NamedTuple):
    """
    :param token: the version of the object that the grant made: higher than that of each earlier grant
    :param since: the time of the grant or its renewal
    :param timeout: seconds
    """

    mode: str
    token: int
    since: float
    timeout: float


class Lock(ObjectClass):
    """A lock with time-outs and fencing tokens; owners choose ids of their own, such as UUIDs."""

    name = "lock"

    @method(writes=True)
    def acquire(self, context: Context, argument: Value) -> Value:
        """Get the lock; an owner that holds it in the same mode renews its grant.

        :param argument: `owner` (text), `mode` (`exclusive`, or `shared`), `timeout` (seconds)
        :returns: `token`
        :raises Refused: 409 while others hold the lock, or the owner does in the other mode
        """
        given = Arguments(argument, "owner", "mode", "timeout")
        owner, mode = given.key("owner"), given.word("mode", (EXCLUSIVE, SHARED), EXCLUSIVE)
        timeout = given.timeout("timeout")
        grants = _without_expired(context)
        mine = grants.pop(owner, None)
        if mine is not None and mine.mode != mode:
            raise Refused(f"`{owner.decode()}` holds the lock as {mine.mode}, expected a release before", 409)
        for other, grant in grants.items():
            if EXCLUSIVE in (mode, grant.mode):
                left = context.remaining(grant.since, grant.timeout)
                raise Refused(f"`{other.decode()}` holds the lock as {grant.mode} for {left:.3f} s", 409)
        token = context.version + 1 if mine is None else mine.token
        context.items.set(owner, pack([mode, token, context.time, timeout]))
        return {"token": token}

    @method(writes=True)
    def renew(self, context: Context, argument: Value) -> Value:
        """Begin the time-out of a grant again; also after it passed, while no other owner got the lock.

        :param argument: `owner` (text), `token` (integer), `timeout` (seconds, as before by default)
        :returns: `token`
        :raises Refused: 404 when the owner does not hold the lock, 409 when its grant has another token
        """
        given = Arguments(argument, "owner", "token", "timeout")
        owner, grant = _held(context, given)
        timeout = given.timeout("timeout", grant.timeout)
        context.items.set(owner, pack([grant.mode, grant.token, context.time, timeout]))
        return {"token": grant.token}

    @method(writes=True)
    def release(self, context: Context, argument: Value) -> Value:
        """Give the lock back.

        :param argument: `owner` (text), `token` (integer)
        :returns: nothing
        :raises Refused: as :meth:`renew`
        """
        owner, _ = _held(context, Arguments(argument, "owner", "token"))
        context.items.remove(owner)

    @method(writes=True)
    def break_lock(self, context: Context, argument: Value) -> Value:
        """Take the lock from its holders, who do not notice it.

        :param argument: `owner` (text, all holders by default)
        :returns: `owners`, a list of those who held it
        """
        given = Arguments(argument, "owner")
        only = given.key("owner") if "owner" in given else None
        broken = [owner for owner in _grants(context) if only in (None, owner)]
        for owner in broken:
            context.items.remove(owner)
        return {"owners": [owner.decode() for owner in broken]}

    @method()
    def holders(self, context: Context, argument: Value) -> Value:
        """List who holds the lock.

        :param argument: nothing
        :returns: a list of maps with `owner`, `mode`, `token` and `remaining` (seconds)
        """
        Arguments(argument)
        return [
            {"owner": owner.decode(), "mode": grant.mode, "token": grant.token, "remaining": left}
            for owner, grant in _grants(context).items()
            if (left := context.remaining(grant.since, grant.timeout))
        ]


def _grants(context: Context) -> dict[bytes, Grant]:
    return {owner: Grant(*unpack(stored)) for owner, stored in context.items.range()}


def _without_expired(context: Context) -> dict[bytes, Grant]:
    """The grants whose time has not passed; the others are removed."""
    grants = _grants(context)
    for owner, grant in list(grants.items()):
        if not context.remaining(grant.since, grant.timeout):
            context.items.remove(owner)
            del grants[owner]
    return grants


def _held(context: Context, given: Arguments) -> tuple[bytes, Grant]:
    owner, token = given.key("owner"), given.integer("token")
    stored = context.items.get(owner)
    if stored is None:
        raise Refused(f"`{owner.decode()}` does not hold the lock", 404)
    grant = Grant(*unpack(stored))
    if grant.token != token:
        raise Refused(f"the token of the grant is {grant.token}, expected {token}", 409)
    return owner, grant
