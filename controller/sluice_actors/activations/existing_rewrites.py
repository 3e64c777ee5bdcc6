"""Starts rewrite jobs for actions with EXISTING, when the action comes into force for the first time.

Every actor host sees in the change stream which of these actions are in force; the host that owns the policy creates
the jobs.  Redis keeps the jobs of each assignment, with a digest of its action.  So a host that takes over, an agent
that was unreachable or a policy that fires again creates no job twice, and a changed action counts as another action.
When an action is taken back, its jobs are cancelled, since their result is no longer wanted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_forever, wait_at_most
from sluice_core.jobs import request_id
from sluice_core.messages.policies import GROUP, Assignment, Change
from sluice_core.store import fencing
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, decoded, nothing, read_documents
from sluice_core.store.store import AsyncStore
from sluice_rewrites import operations
from sluice_rewrites.accounts import close_request, new_request, open_request
from sluice_rewrites.messages import CANCELLED, COLLECTING, FAILED, POLICIES, RUNNING, RewriteJob

#: Seconds after which the host checks for jobs to create, even without a change.
_INTERVAL: Final = 5.0
#: This text is in the document of every assignment with EXISTING.
_MARK: Final = b'"existing":true'


class ExistingRewrites(Service):
    """Creates and cancels the rewrite jobs of the policies that this host owns.

    :param clock: Unix time
    """

    def __init__(self, store: AsyncStore, ownership: Ownership, groups: GroupIndex, clock: Callable[[], float]) -> None:
        self._store = store
        self._ownership = ownership
        self._groups = groups
        self._clock = clock
        self._in_force: dict[str, Assignment] | None = None
        self._work = asyncio.Event()

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_forever("existing", self._step))

    async def reread(self) -> None:
        """Read which actions are in force.

        :raises PeerError: when Redis is unreachable
        """
        keys = self._store.keys
        in_force: dict[str, Assignment] = {}
        names = await self._store.run(fencing.hash_fields(keys.assignments))
        for part in fencing.chunks(names):
            some = await self._store.run(_read_marked(keys, part))
            in_force.update({one.id: one for one in some})
        self._in_force = in_force
        self.review()

    def apply(self, change: Change) -> None:
        """Apply ``change``, which the groups contain already."""
        if self._in_force is None:
            return
        before = len(self._in_force)
        gone = [self._in_force.pop(name, None) for name in (*change.drops, *(one.id for one in change.puts))]
        self._in_force.update({one.id: one for one in change.puts if one.existing})
        if any(gone) or len(self._in_force) != before:
            self.review()

    def review(self) -> None:
        """Check soon which jobs to create or cancel: this host may own other policies now."""
        self._work.set()

    async def _step(self) -> None:
        await wait_at_most(self._work, _INTERVAL)
        if not self._work.is_set() or self._in_force is None:
            return
        self._work.clear()
        try:
            orders = await self._store.run(read_documents(self._store.keys.rewrite_orders))
            for assignment in list(self._in_force.values()):
                if self._ownership.owns(assignment.policy) and orders.get(assignment.id, {}).get("digest") != _digest(
                    assignment
                ):
                    await self._cancel(assignment.id, orders)
                    await self._order(assignment)
            for name in orders.keys() - self._in_force.keys():
                if self._ownership.owns(name.partition("@")[0].rpartition(".")[0]):
                    await self._cancel(name, orders)
        except BaseException:
            self._work.set()
            raise

    async def _order(self, assignment: Assignment) -> None:
        keys, head, digest = self._store.keys, await self._store.head(), _digest(assignment)
        jobs = []
        for number, (account, container, prefix) in enumerate(self._targets(assignment)):
            state, request = (RUNNING, "") if account else (COLLECTING, new_request())
            job = RewriteJob(
                f"{digest}-{number}", account, container, prefix, POLICIES, state, int(self._clock() * 1000),
                f"policy {assignment.policy}", history=head.history, epoch=head.epoch, request=request,
            )  # fmt: skip
            await self._create(job)
            jobs.append(job.id)
        order = json.dumps({"digest": digest, "jobs": jobs})
        await self._store.run(Operation((("HSET", keys.rewrite_orders, assignment.id, order),), nothing))

    async def _create(self, job: RewriteJob) -> None:
        keys = self._store.keys
        if job.request:
            await self._store.run(open_request(keys, job.request))
        if await self._store.run(operations.create_job(keys, job)):
            return
        if await self._ended_undone(job.id):
            await self._store.run(operations.delete_job(keys, job.id))
            await self._store.run(operations.create_job(keys, job))
        elif job.request:
            await self._store.run(close_request(keys, job.request))

    async def _ended_undone(self, job_id: str) -> bool:
        """True when the job was cancelled (its action is in force again by now) or has failed."""
        known = await self._store.run(operations.JOBS.read(self._store.keys, job_id))
        return known is not None and known.state in (CANCELLED, FAILED)

    async def _cancel(self, name: str, orders: dict[str, dict[str, object]]) -> None:
        known = orders.get(name)
        if known is None:
            return
        jobs = known.get("jobs")
        for job in jobs if isinstance(jobs, list) else ():
            await self._store.run(operations.change_state(self._store.keys, str(job), CANCELLED))
        await self._store.run(Operation((("HDEL", self._store.keys.rewrite_orders, name),), nothing))

    def _targets(self, assignment: Assignment) -> Iterator[tuple[str, str, str]]:
        """Account, container and prefix of each job; all empty for the cluster."""
        target = assignment.target
        paths: tuple[str, ...] = (assignment.path(),)
        if not paths[0] and target.select == GROUP:
            paths = self._groups.members(target.level, target.name)
        for path in paths:
            account, _, rest = path.partition("/")
            container, _, prefix = rest.partition("/")
            yield account, container, prefix


def _read_marked(keys: Keys, names: Sequence[str]) -> Operation[list[Assignment]]:
    """Read those of some assignments that have EXISTING; the others, which may be many, are not decoded."""

    def parse(replies: list[Any]) -> list[Assignment]:
        marked = ((name, raw) for name, raw in zip(names, replies[0], strict=True) if raw and _MARK in raw)
        found = (decoded(Assignment, name, raw) for name, raw in marked)
        return [one for one in found if one is not None and one.existing]

    return Operation((("HMGET", keys.assignments, *names),), parse)


def _digest(assignment: Assignment) -> str:
    """A digest that distinguishes this action from another one under the same id."""
    return request_id(
        16, assignment.id, assignment.verb, assignment.keyword, dict(assignment.params), assignment.place,
        assignment.target.to_data(), assignment.created,
    )  # fmt: skip
